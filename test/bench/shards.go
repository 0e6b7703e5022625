package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/test/bench/gitclient"
	"github.com/forgeplane/forgeplane/test/bench/testbed"
	"github.com/forgeplane/forgeplane/test/bench/usage"
	"github.com/forgeplane/forgeplane/test/history"
)

const (
	movedProjects = 500
	smallCommits  = 20
	// copiedAtOnce is the number of projects that Forgeplane copies from one storage at once by default.
	copiedAtOnce = 2

	shardNamespace = "shards"
	// emptyTimeout limits the time until a storage is empty.
	emptyTimeout = 15 * time.Minute
	// askInterval is the time between two looks at the objects.
	askInterval = 100 * time.Millisecond
)

// shards are two storages on a testbed.
type shards struct {
	*load
	bench  *bench
	client *gitclient.Client
	from   *v1alpha1.RepositoryStorage
	// directories has the two storages.
	directories [2]string
}

// measureShards compares the deletion of a storage whose projects are all moved to another one before with copies and checks of the same
// repositories by hand.
func (b *bench) measureShards(ctx context.Context) error {
	return b.with(ctx, "shards", func(ctx context.Context, t *testbed.Testbed) error {
		l, err := newCreators(t)
		if err != nil {
			return err
		}
		s := &shards{load: l, bench: b}
		if s.client, err = b.client(t); err != nil {
			return err
		}
		b.say("making %d projects", movedProjects)
		if err := s.fill(ctx); err != nil {
			return err
		}
		reference, err := s.byHand(ctx)
		if err != nil {
			return err
		}
		if err := s.AwaitQuiet(ctx, "project", movedProjects); err != nil {
			return err
		}
		if err := usage.ResetPeak(s.PID()); err != nil {
			return err
		}
		before, err := usage.MemoryOf(s.PID())
		if err != nil {
			return err
		}
		ours, err := s.empty(ctx)
		if err != nil {
			return err
		}
		after, err := usage.MemoryOf(s.PID())
		if err != nil {
			return err
		}
		b.record(rowEmpty, []float64{ours.each(ours.took)}, []float64{reference.each(reference.took)})
		b.record(rowEmptyCPU, []float64{ours.each(ours.cpu)}, []float64{reference.each(reference.cpu)})
		b.record(rowEmptyCores, []float64{ours.cores()}, []float64{reference.cores()})
		b.record(rowEmptyMemory, []float64{megabytes(after.Peak)}, []float64{megabytes(before.Resident)})
		return s.check(ctx)
	})
}

// effort is the cost of the work on all projects.
type effort struct{ took, cpu time.Duration }

func (e effort) each(of time.Duration) float64 { return milliseconds(of) / movedProjects }
func (e effort) cores() float64                { return 100 * e.cpu.Seconds() / e.took.Seconds() }

// fill makes the storages, and the projects in the first one.
func (s *shards) fill(ctx context.Context) error {
	seed, err := os.MkdirTemp(s.bench.directory, "small-")
	if err != nil {
		return err
	}
	if err := s.client.History(ctx, seed, history.Options{Commits: smallCommits}); err != nil {
		return err
	}
	for i, name := range []string{"from", "to"} {
		if s.directories[i], err = os.MkdirTemp(s.bench.directory, "shard-"); err != nil {
			return err
		}
		none := int32(0)
		shard := &v1alpha1.RepositoryStorage{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.RepositoryStorageSpec{
			Path: s.directories[i], Weight: &none, AllowedNamespaces: &v1alpha1.AllowedNamespaces{From: v1alpha1.NamespacesFromAll},
		}}
		if err := s.Create(ctx, shard); err != nil {
			return err
		}
		if i == 0 {
			s.from = shard
		}
	}
	if err := s.Client().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: shardNamespace}}); err != nil {
		return err
	}
	if err := s.Create(ctx, newGroup(shardNamespace)); err != nil {
		return err
	}
	all := make([]*v1alpha1.Project, movedProjects)
	for n := range all {
		all[n] = newProject(shardNamespace, projectName(n), fileURL(seed))
		all[n].Spec.Storage = s.from.Name
	}
	if err := each(ctx, s.load, all, create); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, emptyTimeout, fmt.Errorf("the projects were not ready within %s", emptyTimeout))
	defer cancel()
	if err := watched(ctx, s.imported); err != nil {
		return err
	}
	return s.AwaitQuiet(ctx, "project", movedProjects)
}

// imported reports whether all projects are ready.
func (s *shards) imported(ctx context.Context) (bool, error) {
	var all v1alpha1.ProjectList
	if err := s.Client().List(ctx, &all, client.InNamespace(shardNamespace)); err != nil {
		return false, fmt.Errorf("listing the projects: %w", err)
	}
	ready := 0
	for i := range all.Items {
		if testbed.Ready(&all.Items[i]) {
			ready++
		}
	}
	return ready == movedProjects, nil
}

// watched asks until the answer is yes.
func watched(ctx context.Context, ask func(ctx context.Context) (bool, error)) error {
	ticker := time.NewTicker(askInterval)
	defer ticker.Stop()
	for {
		if done, err := ask(ctx); done || err != nil {
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// repositories returns the paths of the repositories on a storage.
func repositories(directory string) ([]string, error) {
	all, err := filepath.Glob(filepath.Join(directory, "??", "??", "*.git"))
	if err == nil && len(all) != movedProjects {
		err = fmt.Errorf("%s has %d repositories, not %d", directory, len(all), movedProjects)
	}
	return all, err
}

// byHand copies and checks all repositories, as many at once as Forgeplane.
func (s *shards) byHand(ctx context.Context) (e effort, err error) {
	s.bench.say("copying %d repositories by hand", movedProjects)
	all, err := repositories(s.directories[0])
	if err != nil {
		return e, err
	}
	target, err := os.MkdirTemp(s.bench.directory, "by-hand-")
	if err != nil {
		return e, err
	}
	used, begun := childrenCPU(), time.Now()
	copies, within := errgroup.WithContext(ctx)
	copies.SetLimit(copiedAtOnce)
	for n, repository := range all {
		copies.Go(func() error {
			made := filepath.Join(target, fmt.Sprintf("%d.git", n))
			_, err := s.client.Run(within, target, nil, "clone", "--quiet", "--mirror", "--no-hardlinks", repository, made)
			if err == nil {
				_, err = s.client.Run(within, made, nil, "fsck", "--connectivity-only", "--no-dangling")
			}
			return err
		})
	}
	err = copies.Wait()
	e = effort{time.Since(begun), childrenCPU() - used}
	return e, errors.Join(err, os.RemoveAll(target))
}

// childrenCPU returns the CPU time of the processes that this one has started and that have ended.
func childrenCPU() time.Duration {
	var used syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_CHILDREN, &used) != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// empty moves all projects off the first storage, and deletes it.
func (s *shards) empty(ctx context.Context) (e effort, err error) {
	s.bench.say("moving %d projects", movedProjects)
	used, err := usage.TotalCPUTime(s.PID())
	if err != nil {
		return e, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, emptyTimeout, fmt.Errorf("the storage was not empty within %s", emptyTimeout))
	defer cancel()
	begun := time.Now()
	form := url.Values{"source_storage_name": {s.from.Name}, "destination_storage_name": {"to"}}
	if err := s.submit(ctx, "/project_repository_storage_moves", form, http.StatusAccepted); err != nil {
		return e, err
	}
	if err := s.Client().Delete(ctx, s.from); err != nil {
		return e, err
	}
	err = watched(ctx, func(ctx context.Context) (bool, error) {
		err := s.Client().Get(ctx, client.ObjectKeyFromObject(s.from), s.from)
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
	if err != nil {
		return e, err
	}
	e.took = time.Since(begun)
	now, err := usage.TotalCPUTime(s.PID())
	e.cpu = now - used
	return e, err
}

// submit sends a form as the administrator.
func (s *shards) submit(ctx context.Context, path string, form url.Values, status int) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL()+"/api/v4"+path, strings.NewReader(form.Encode()))
	if err != nil {
		return err
	}
	r.Header.Set("PRIVATE-TOKEN", s.Token())
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != status {
		return fmt.Errorf("POST %s was answered with %s", path, answer.Status)
	}
	return nil
}

// check returns an error unless the second storage has all repositories, and the first one has none.
func (s *shards) check(context.Context) error {
	if _, err := repositories(s.directories[1]); err != nil {
		return err
	}
	left, err := filepath.Glob(filepath.Join(s.directories[0], "??", "??", "*"))
	if err == nil && len(left) > 0 {
		err = fmt.Errorf("%s still has %d directories", s.directories[0], len(left))
	}
	return err
}
