package controlplane

import (
	"fmt"

	"github.com/forgeplane/forgeplane/test/process"
)

// Location locates a running control plane for other processes.
type Location struct {
	Directory string `json:"directory"`
	Port      int    `json:"port"`
}

// Location returns the location of the control plane.
func (c *ControlPlane) Location() Location { return Location{Directory: c.directory, Port: c.port} }

// Attach returns a control plane that another process runs. failed receives an error if it ends, and Stop calls release instead of stopping
// its programs.
func Attach(at Location, failed <-chan error, release func() error) (*ControlPlane, error) {
	c := &ControlPlane{port: at.Port, programs: attached{failed: failed, release: release}}
	err := c.locate(at.Directory)
	if err == nil {
		err = c.readKeys()
	}
	if err != nil {
		return nil, fmt.Errorf("attaching to the control plane in %s: %w", at.Directory, err)
	}
	c.logs = c.path("logs")
	return c, nil
}

// attached are the programs of a control plane that another process runs.
type attached struct {
	failed  <-chan error
	release func() error
}

func (a attached) Stop() error                 { return a.release() }
func (a attached) Failed() <-chan error        { return a.failed }
func (attached) Processes() []*process.Process { return nil }
