package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/forgeplane/forgeplane/test/controlplane"
	"github.com/forgeplane/forgeplane/test/forgeplane"
)

// parts returns the processes of Forgeplane: one process for everything, or separate processes for the controllers and the server, like in a
// cluster.
func (d *development) parts(ctx context.Context) ([]forgeplane.Options, error) {
	s := &d.settings
	all := forgeplane.Options{
		Programs: filepath.Join(s.checkout, "bin"), Data: s.data, Logs: s.logs(),
		HTTPPort: s.httpPort, TLSPort: s.tlsPort, HealthPort: s.healthPort, MetricsPort: s.metricsPort, Flags: s.flags,
		ControlPlane: d.controlPlane,
	}
	if !s.split {
		return []forgeplane.Options{all}, nil
	}
	var parts []forgeplane.Options
	unknown := slices.Clone(s.flags)
	for _, part := range []forgeplane.Part{forgeplane.APIServer, forgeplane.Manager} {
		o := all
		o.Part, o.Data, o.Logs = part, filepath.Join(s.data, string(part)), filepath.Join(s.logs(), string(part))
		o.Activity = filepath.Join(s.data, "activity.db")
		var err error
		if o.Flags, err = known(ctx, filepath.Join(all.Programs, "forgeplane"), part, s.flags); err != nil {
			return nil, err
		}
		unknown = slices.DeleteFunc(unknown, func(flag string) bool { return slices.Contains(o.Flags, flag) })
		if part == forgeplane.Manager {
			for _, port := range []*int{&o.HealthPort, &o.MetricsPort} {
				if *port, err = controlplane.FreePort(ctx); err != nil {
					return nil, err
				}
			}
		}
		for _, directory := range []string{o.Data, o.Logs} {
			if err := os.MkdirAll(directory, 0o700); err != nil {
				return nil, err
			}
		}
		parts = append(parts, o)
	}
	if len(unknown) > 0 {
		return nil, fmt.Errorf("no part of forgeplane has the flag %s", unknown[0])
	}
	return parts, nil
}

// known returns the flags that a part has. The other part can have the remaining flags.
func known(ctx context.Context, program string, part forgeplane.Part, flags []string) ([]string, error) {
	if len(flags) == 0 {
		return nil, nil
	}
	help, err := exec.CommandContext(ctx, program, string(part), "--help").Output()
	if err != nil {
		return nil, fmt.Errorf("asking forgeplane %s for its flags: %w", part, err)
	}
	var its []string
	for _, flag := range flags {
		name, _, _ := strings.Cut(flag, "=")
		if strings.Contains(string(help), " "+name+" ") {
			its = append(its, flag)
		}
	}
	return its, nil
}
