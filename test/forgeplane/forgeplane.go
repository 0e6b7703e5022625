// Package forgeplane starts Forgeplane with a control plane on the same machine, for "make run" and tests.
package forgeplane

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strconv"
	"time"

	"github.com/forgeplane/forgeplane/test/controlplane"
	"github.com/forgeplane/forgeplane/test/process"
)

const (
	// Namespace is the namespace of the platform, which has the Secrets of access tokens.
	Namespace = "forgeplane-system"

	// AuditLog is the name of the log file that has a line for every write.
	AuditLog = "audit.log"

	// grace is the time for unfinished pushes.
	grace        = 15 * time.Second
	pollInterval = 20 * time.Millisecond
)

// Part is the part of Forgeplane that a process runs: a subcommand of forgeplane.
type Part string

// These are the parts.
const (
	All       Part = "all"
	Manager   Part = "manager"
	APIServer Part = "apiserver"
	Registry  Part = "registry"
)

// Account returns the identity of a process with this part in the cluster. Here, the process uses a certificate of that name, so that a permission
// that is missing in config/rbac is missing here too.
func (p Part) Account() string {
	account := "system:serviceaccount:" + Namespace + ":forgeplane"
	switch p {
	case All:
		return account
	case Registry:
		return APIServer.Account()
	default:
		return account + "-" + string(p)
	}
}

// Options configure a process of Forgeplane.
type Options struct {
	// Part is the part of Forgeplane. An empty part is All.
	Part Part
	// Programs is the directory of the executables forgeplane and forgeplane-hook.
	Programs string
	// Data is the directory of the files that Forgeplane itself needs: its kubeconfig file and its socket. Two processes that run at the same time
	// must not share it.
	Data string
	// Activity is the file of the activity database, which several processes on one machine can share. If it is empty, it is activity.db in Data.
	Activity string
	// Blobs is the directory of the blob store, which several processes can share. If it is empty, it is blobs beside the file of the activity
	// database.
	Blobs string
	// Registry is the directory of images. If it is empty, it is registry beside the file of the activity database.
	Registry string
	// Logs is the directory of the log. New lines are appended.
	Logs string
	// HTTPPort, TLSPort and HealthPort are the ports on 127.0.0.1 for clients, for kube-apiserver, and for health checks.
	HTTPPort, TLSPort, HealthPort int
	// MetricsPort is the port on 127.0.0.1 for metrics. If it is 0, none are served.
	MetricsPort int
	// ServicePort is the port at which kube-apiserver finds the servers, such as the port of a balancer. If it is 0, it is TLSPort.
	ServicePort int
	// Flags are further flags of the program. They override the flags that this package sets.
	Flags []string
	// ControlPlane is the control plane of the cluster, to which config/base is applied.
	ControlPlane *controlplane.ControlPlane
}

// Program returns how to run Forgeplane, and writes the kubeconfig file that Forgeplane needs.
func (o Options) Program() (process.Program, error) {
	part := cmp.Or(o.Part, All)
	identity, err := o.ControlPlane.Identity(part.Account(), "system:serviceaccounts", "system:serviceaccounts:"+Namespace)
	if err != nil {
		return process.Program{}, err
	}
	kubeconfig := filepath.Join(o.Data, "forgeplane.kubeconfig")
	if err := controlplane.WriteKubeconfig(kubeconfig, identity); err != nil {
		return process.Program{}, err
	}
	activity := cmp.Or(o.Activity, filepath.Join(o.Data, "activity.db"))
	metrics := "0"
	if o.MetricsPort != 0 {
		metrics = loopback(o.MetricsPort)
	}
	args := []string{
		string(part),
		"--development",
		"--kubeconfig=" + kubeconfig,
		"--health-address=" + loopback(o.HealthPort),
		"--metrics-address=" + metrics,
		"--audit-log=" + filepath.Join(o.Logs, AuditLog),
		"--activity-database=" + activity,
		"--registry-storage=" + cmp.Or(o.Registry, filepath.Join(filepath.Dir(activity), "registry")),
	}
	if part != Registry {
		args = append(args,
			// Mirrors can lead from one project to another.
			"--allow-private-targets=127.0.0.1",
			"--service-port="+strconv.Itoa(cmp.Or(o.ServicePort, o.TLSPort)),
			"--service-external-name=localhost",
			"--blobs="+cmp.Or(o.Blobs, filepath.Join(filepath.Dir(activity), "blobs")),
		)
	}
	if part != Manager {
		args = append(args, "--http-address="+loopback(o.HTTPPort))
	}
	if part == All || part == APIServer {
		args = append(args,
			"--tls-address="+loopback(o.TLSPort),
			"--hook-binary="+filepath.Join(o.Programs, "forgeplane-hook"),
			"--runtime-dir="+filepath.Join(o.Data, "run"),
		)
	}
	args = append(args, o.Flags...)
	return process.Program{
		Name:  "forgeplane",
		Path:  filepath.Join(o.Programs, "forgeplane"),
		Args:  args,
		Dir:   o.Data,
		Log:   filepath.Join(o.Logs, "forgeplane.log"),
		Grace: grace,
	}, nil
}

// AwaitReady is WaitReady for a process. It stops waiting when the process ends, or after the given time.
func (o Options) AwaitReady(p *process.Process, patience time.Duration) error {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	timer := time.AfterFunc(patience, func() { cancel(fmt.Errorf("Forgeplane was not ready within %s", patience)) })
	defer timer.Stop()
	go func() {
		select {
		case <-p.Done():
			cancel(p.Ended())
		case <-ctx.Done():
		}
	}()
	return o.WaitReady(ctx)
}

// WaitReady polls Forgeplane until it is ready, because this state cannot be watched. If the context ends first, WaitReady returns the cause.
func (o Options) WaitReady(ctx context.Context) error {
	prober := http.Client{Timeout: 5 * time.Second}
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+loopback(o.HealthPort)+"/readyz", http.NoBody)
		if err != nil {
			return err
		}
		response, err := prober.Do(request)
		if err == nil {
			_ = response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func loopback(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }
