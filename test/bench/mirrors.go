package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/test/bench/testbed"
	"github.com/forgeplane/forgeplane/test/bench/usage"
)

const (
	idleMirrors = 500
	// arrivalTimeout limits the time until a mirror has received a push, and arrivalInterval is the time between two checks.
	arrivalTimeout  = time.Minute
	arrivalInterval = time.Millisecond
	// allowedPushes is the number of bare pushes that a push to a mirror can take, in addition to the difference of the bound.
	allowedPushes = 1.3
)

func (b *bench) measureMirrors(ctx context.Context) error {
	return b.with(ctx, "mirrors", func(ctx context.Context, t *testbed.Testbed) (err error) {
		s, err := b.newServers(ctx, t)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, s.backend.Stop()) }()
		one, err := s.serve(ctx, "mirrored", s.checkout)
		if err != nil {
			return err
		}
		if b.wants(rowMirrorPush) {
			if err := s.measureMirrorPush(ctx, one); err != nil {
				return err
			}
		}
		if b.wants(rowMirrorIdle, rowMirrorIdleWrites) {
			return s.measureIdleMirrors(ctx, one)
		}
		return nil
	})
}

// target creates a repository to which mirrors are pushed, with the current content of the project, and returns its directory.
func (s *servers) target(ctx context.Context, name string, of *site) (string, error) {
	directory := filepath.Join(s.copies, name+".git")
	if err := os.CopyFS(directory, os.DirFS(s.RepositoryDir(of.project))); err != nil {
		return "", fmt.Errorf("copying a repository: %w", err)
	}
	_, err := s.client.Run(ctx, directory, nil, "config", "http.receivepack", "true")
	return directory, err
}

func (s *servers) mirror(name string, of *site, target string) *v1alpha1.RemoteMirror {
	return &v1alpha1.RemoteMirror{
		ObjectMeta: metav1.ObjectMeta{Namespace: gitNamespace, Name: name},
		Spec: v1alpha1.RemoteMirrorSpec{
			ProjectRef: v1alpha1.Reference{Name: of.project.Name}, URL: s.backend.URL + "/" + target + ".git",
		},
	}
}

// measureMirrorPush compares the time from the answer to a push until a mirror has received it with the time of a bare push of the same commit to a
// repository of the same kind.
func (s *servers) measureMirrorPush(ctx context.Context, one *site) error {
	const warmUp = 2
	directory, err := s.target(ctx, "mirror", one)
	if err != nil {
		return err
	}
	m := s.mirror("mirror", one, "mirror")
	if err := s.Create(ctx, m); err != nil {
		return err
	}
	p, err := s.newPusher(ctx, "push-mirrored", one.ours)
	if err != nil {
		return err
	}
	from := func(first int) (ours, reference func(round int) (float64, error)) {
		return func(round int) (float64, error) {
				if _, err := p.push(ctx, one.ours, first+round); err != nil {
					return 0, err
				}
				took, err := awaitArrival(ctx, directory, p.commits[first+round])
				if err != nil {
					return 0, err
				}
				return took, s.AwaitQuiet(ctx, "remotemirror", 0)
			}, func(round int) (float64, error) {
				took, err := p.push(ctx, one.reference, first+round)
				return allowedPushes * took, err
			}
	}
	ours, reference := from(0)
	if _, _, err := alternate(exactly(warmUp), ours, reference); err != nil {
		return err
	}
	ours, reference = from(warmUp)
	o, r, err := alternate(until(pushRounds), ours, reference)
	if err != nil {
		return err
	}
	s.bench.record(rowMirrorPush, o, r)
	return s.Client().Delete(ctx, m)
}

// awaitArrival waits until the branch of a repository is at a commit, and returns the time in milliseconds.
func awaitArrival(ctx context.Context, directory, commit string) (float64, error) {
	begun := time.Now()
	ctx, cancel := context.WithTimeoutCause(ctx, arrivalTimeout, fmt.Errorf("a mirror did not have a push within %s", arrivalTimeout))
	defer cancel()
	ticker := time.NewTicker(arrivalInterval)
	defer ticker.Stop()
	for {
		if at, err := os.ReadFile(filepath.Join(directory, "refs", "heads", pushedBranch)); err == nil && strings.TrimSpace(string(at)) == commit {
			return milliseconds(time.Since(begun)), nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
}

// measureIdleMirrors compares the work of Forgeplane when nothing happens, with many mirrors that are up to date and without mirrors.
func (s *servers) measureIdleMirrors(ctx context.Context, one *site) error {
	if _, err := s.target(ctx, "idle", one); err != nil {
		return err
	}
	without, _, err := s.idle(ctx)
	if err != nil {
		return err
	}
	s.bench.say("making %d mirrors", idleMirrors)
	all := make([]testbed.Object, idleMirrors)
	for n := range all {
		all[n] = s.mirror(fmt.Sprintf("idle-%d", n), one, "idle")
	}
	if err := s.Create(ctx, all...); err != nil {
		return err
	}
	if err := s.AwaitQuiet(ctx, "remotemirror", 0); err != nil {
		return err
	}
	with, writes, err := s.idle(ctx)
	if err != nil {
		return err
	}
	s.bench.record(rowMirrorIdle, []float64{with}, []float64{without})
	s.bench.record(rowMirrorIdleWrites, []float64{float64(writes)}, nil)
	return nil
}

// idle returns the share of a core that Forgeplane uses while nothing happens, and how often it writes.
func (s *servers) idle(ctx context.Context) (percent float64, writes int, err error) {
	written, err := s.Writes(ctx)
	if err != nil {
		return 0, 0, err
	}
	before, err := usage.CPUTime(s.PID())
	if err != nil {
		return 0, 0, err
	}
	timer := time.NewTimer(idleTime)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return 0, 0, context.Cause(ctx)
	}
	after, err := usage.CPUTime(s.PID())
	if err != nil {
		return 0, 0, err
	}
	now, err := s.Writes(ctx)
	return 100 * (after - before).Seconds() / idleTime.Seconds(), now - written, err
}
