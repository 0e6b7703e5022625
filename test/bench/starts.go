package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/forgeplane/forgeplane/test/bench/gitclient"
	"github.com/forgeplane/forgeplane/test/controlplane"
	"github.com/forgeplane/forgeplane/test/process"
)

const (
	secondStartRounds = 3
	// firstTimeout and laterTimeout limit one start.
	firstTimeout = 40 * time.Minute
	laterTimeout = 3 * time.Minute
	// lineInterval is the time between two checks of the output of "make run", and silence is the time without output after which the bench reports
	// that it is waiting.
	lineInterval = 50 * time.Millisecond
	silence      = 30 * time.Second
)

// clone is a clone of the checkout, in which "make run" is started.
type clone struct {
	*bench
	directory string
	env       []string
	binaries  controlplane.Binaries
	starts    int
}

// measureStarts measures "make run" in a clone. If the row of the first start is chosen, its caches are empty.
func (b *bench) measureStarts(ctx context.Context) error {
	cold := b.wants(rowFirstStart)
	c, err := b.newClone(cold)
	if err != nil {
		return err
	}
	git, err := gitclient.New(filepath.Join(b.directory, "home"), "nobody", "none")
	if err != nil {
		return err
	}
	b.say("cloning the checkout; what is not committed is not in it")
	begun := time.Now()
	if _, err := git.Run(ctx, b.directory, nil, "clone", "--quiet", b.settings.checkout, c.directory); err != nil {
		return err
	}
	cloned := time.Since(begun)
	took, err := c.makeRun(ctx, firstTimeout)
	if err != nil {
		return err
	}
	if cold {
		b.record(rowFirstStart, []float64{cloned.Seconds() + took}, nil)
	}
	if !b.wants(rowSecondStart) {
		return nil
	}
	o, r, err := alternate(exactly(secondStartRounds),
		func(int) (float64, error) { return c.makeRun(ctx, laterTimeout) },
		func(int) (float64, error) { return c.startControlPlane(ctx) })
	b.record(rowSecondStart, o, r)
	return err
}

// newClone prepares a clone. A cold one has its own caches; any other one uses the control plane of the checkout.
func (b *bench) newClone(cold bool) (*clone, error) {
	c := &clone{bench: b, directory: filepath.Join(b.directory, "clone")}
	c.env = slices.DeleteFunc(os.Environ(), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		// "make run" must not consider itself a part of "make bench".
		return slices.Contains([]string{"MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "ROWS", "DEV_DIR", "KUBEBUILDER_ASSETS"}, name)
	})
	if cold {
		assets := filepath.Join(c.directory, "bin", "k8s")
		c.binaries = controlplane.Binaries{
			Etcd: filepath.Join(assets, "etcd"), APIServer: filepath.Join(assets, "kube-apiserver"),
			Controllers: filepath.Join(assets, "controllers"), Kubectl: filepath.Join(assets, "kubectl"),
		}
		c.env = append(c.env,
			"GOCACHE="+filepath.Join(b.directory, "go-cache"), "GOMODCACHE="+filepath.Join(b.directory, "go-modules"),
			// The go command makes its modules read-only, which only it can remove.
			"GOFLAGS="+strings.TrimSpace(os.Getenv("GOFLAGS")+" -modcacherw"))
		return c, nil
	}
	var err error
	if c.binaries, err = controlplane.FindBinaries(); err != nil {
		return nil, err
	}
	c.env = append(c.env, "KUBEBUILDER_ASSETS="+filepath.Dir(c.binaries.Etcd))
	return c, nil
}

// makeRun runs "make run" until it is ready, stops it, and returns the seconds until it was ready.
func (c *clone) makeRun(ctx context.Context, patience time.Duration) (seconds float64, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("make run was not ready within %s", patience))
	defer cancel()
	args := []string{"run"}
	for _, variable := range []string{"HTTP_PORT", "KUBE_PORT", "TLS_PORT", "HEALTH_PORT", "METRICS_PORT"} {
		port, err := controlplane.FreePort(ctx)
		if err != nil {
			return 0, err
		}
		args = append(args, fmt.Sprintf("%s=%d", variable, port))
	}
	c.starts++
	log := filepath.Join(c.bench.directory, fmt.Sprintf("make-run-%d.log", c.starts))
	begun := time.Now()
	run, err := process.Start(process.Program{
		Name: "make run", Path: "make", Args: args, Dir: c.directory, Env: c.env, Log: log, Grace: 30 * time.Second,
	})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, run.Stop()) }()
	err = c.awaitStarted(ctx, run, log)
	took := time.Since(begun).Seconds()
	if err == nil {
		c.say("make run was ready after %.1f s", took)
	}
	return took, err
}

// awaitStarted waits until "make run" says that it is ready.
func (c *clone) awaitStarted(ctx context.Context, run *process.Process, log string) error {
	ticker := time.NewTicker(lineInterval)
	defer ticker.Stop()
	last := time.Now()
	for shown := 0; ; {
		text, err := os.ReadFile(log)
		if err != nil {
			return err
		}
		lines := strings.SplitAfter(string(text), "\n")
		for ; shown < len(lines)-1; shown++ {
			line := strings.TrimSpace(lines[shown])
			if ready, err := c.read(line); ready || err != nil {
				return err
			}
			last = time.Now()
		}
		if time.Since(last) > silence {
			c.say("  make run is at work, and has said nothing")
			last = time.Now()
		}
		select {
		case <-ticker.C:
		case <-run.Done():
			return run.Ended()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// read handles a line of "make run". It forwards the lines of the first start, which can take minutes.
func (c *clone) read(line string) (ready bool, err error) {
	switch {
	case strings.HasPrefix(line, "Ready after "):
		return true, nil
	case strings.HasPrefix(line, "Running, with "):
		return false, fmt.Errorf("make run: %s", line)
	case line != "" && c.starts == 1 && !strings.HasPrefix(line, "go: downloading "):
		c.say("  %s", line)
	}
	return false, nil
}

// startControlPlane starts only the control plane with the data that "make run" has left, and returns the time in seconds.
func (c *clone) startControlPlane(ctx context.Context) (float64, error) {
	begun := time.Now()
	plane, err := controlplane.Start(ctx, controlplane.Options{
		Directory: filepath.Join(c.directory, ".dev", "control-plane"), Logs: filepath.Join(c.bench.directory, "logs"), Binaries: c.binaries,
	})
	if err != nil {
		return 0, err
	}
	took := time.Since(begun).Seconds()
	c.say("the control plane alone was ready after %.1f s", took)
	return took, plane.Stop()
}
