// Package forgeplane starts Forgeplane beside a control plane on the same machine, as "make run" and tests do.
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
	// Namespace is the platform's namespace, which has the Secrets of access tokens.
	Namespace = "forgeplane-system"

	// AuditLog is the file among the logs that has a line for every write.
	AuditLog = "audit.log"

	// grace is for pushes under way.
	grace        = 15 * time.Second
	pollInterval = 20 * time.Millisecond
)

// Part is what a process runs: a subcommand of forgeplane.
type Part string

// The parts.
const (
	All       Part = "all"
	Manager   Part = "manager"
	APIServer Part = "apiserver"
)

// Account is who a process with this part is in the cluster, here by a certificate of that name: a permission that is missing in
// config/rbac is missing here too.
func (p Part) Account() string {
	account := "system:serviceaccount:" + Namespace + ":forgeplane"
	if p == All {
		return account
	}
	return account + "-" + string(p)
}

// Options say what to start.
type Options struct {
	// Part is All when it is empty.
	Part Part
	// Programs is the directory of the executables forgeplane and forgeplane-hook.
	Programs string
	// Data is the directory of what Forgeplane itself needs: its kubeconfig file and its socket. Two that run at the
	// same time must not share it.
	Data string
	// Activity is the file of the activity database, which several on one machine may share; activity.db in Data when it is
	// empty.
	Activity string
	// Logs is the directory of the log, which is appended to.
	Logs string
	// HTTPPort, TLSPort and HealthPort are where it listens on 127.0.0.1: for clients, for kube-apiserver, and for health
	// checks.
	HTTPPort, TLSPort, HealthPort int
	// ServicePort is where kube-apiserver finds the servers, such as a balancer in front of several; TLSPort when it is 0.
	ServicePort int
	// Flags are further ones of the program, which win over those that are given to it here.
	Flags []string
	// ControlPlane is what it works on; config/default is applied to it.
	ControlPlane *controlplane.ControlPlane
}

// Program returns how to run Forgeplane, and writes the kubeconfig file that it needs.
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
	args := []string{
		string(part),
		"--development",
		// Mirrors may lead from one project to another.
		"--allow-private-targets=127.0.0.1",
		"--kubeconfig=" + kubeconfig,
		"--service-port=" + strconv.Itoa(cmp.Or(o.ServicePort, o.TLSPort)),
		"--service-external-name=localhost",
		"--health-address=" + loopback(o.HealthPort),
		"--metrics-address=0",
		"--audit-log=" + filepath.Join(o.Logs, AuditLog),
		"--activity-database=" + cmp.Or(o.Activity, filepath.Join(o.Data, "activity.db")),
	}
	if part != Manager {
		args = append(args,
			"--http-address="+loopback(o.HTTPPort),
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

// AwaitReady is WaitReady for a process, whose end ends the waiting, as does patience.
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

// WaitReady polls Forgeplane until it says that it is ready, which no watch can tell. When the context ends first, it
// returns the cause of that.
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
