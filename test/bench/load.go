package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/test/bench/testbed"
	"github.com/forgeplane/forgeplane/test/history"
)

const (
	// batch is the number of protections that are created at once, in their own namespace, for a number of projects.
	batch         = 1000
	batchProjects = 10
	// creators is the number of clients that create them.
	creators = 10
	// readyTimeout limits the time until created objects are ready.
	readyTimeout = 3 * time.Minute
)

// made selects the protections that are created here, and not those that projects create for their default branches.
var made = client.MatchingLabels{"bench.example.com/made": "true"}

// load puts protections into a testbed.
type load struct {
	*testbed.Testbed
	clients []client.WithWatch
	// seed is the URL of the repository that each project begins with.
	seed string
}

// newCreators returns a load without a seed.
func newCreators(t *testbed.Testbed) (*load, error) {
	l := &load{Testbed: t}
	for n := range creators {
		c, err := t.NewClient(fmt.Sprintf("creator-%d", n))
		if err != nil {
			return nil, err
		}
		l.clients = append(l.clients, c)
	}
	return l, nil
}

// newLoad creates the seed with the branches that will be protected.
func (b *bench) newLoad(ctx context.Context, t *testbed.Testbed) (*load, error) {
	l, err := newCreators(t)
	if err != nil {
		return nil, err
	}
	git, err := b.client(t)
	if err != nil {
		return nil, err
	}
	var branches []string
	for n := range batch / batchProjects {
		branches = append(branches, topic(n))
	}
	directory, err := newDirectory(b.directory, "seed")
	if err != nil {
		return nil, err
	}
	l.seed = fileURL(directory)
	return l, git.History(ctx, directory, history.Options{Commits: 20, Branches: branches})
}

func topic(n int) string { return fmt.Sprintf("topic/%03d", n) }

// prepare creates the objects that the protections of a namespace refer to.
func (l *load) prepare(ctx context.Context, namespace string) error {
	if err := l.Client().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		return fmt.Errorf("making namespace %s: %w", namespace, err)
	}
	objects := []testbed.Object{newGroup(namespace)}
	for n := range batchProjects {
		objects = append(objects, newProject(namespace, projectName(n), l.seed))
	}
	if err := l.Create(ctx, objects...); err != nil {
		return err
	}
	return l.AwaitQuiet(ctx, "project", 0)
}

func projectName(n int) string { return fmt.Sprintf("project-%d", n) }

// newGroup returns a root group that has the name of its namespace.
func newGroup(namespace string) *v1alpha1.Group {
	return &v1alpha1.Group{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: namespace}, Spec: v1alpha1.GroupSpec{Path: namespace},
	}
}

// newProject returns a project in the group that has the name of its namespace. The project begins with the content of another repository.
func newProject(namespace, name, importURL string) *v1alpha1.Project {
	return &v1alpha1.Project{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1alpha1.ProjectSpec{
			Path: name, GroupRef: v1alpha1.Reference{Name: namespace}, ImportURL: importURL,
		},
	}
}

// protections returns the protections for a namespace.
func protections(namespace string, number int) []*v1alpha1.ProtectedBranch {
	all := make([]*v1alpha1.ProtectedBranch, number)
	for n := range all {
		all[n] = &v1alpha1.ProtectedBranch{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("protection-%04d", n), Labels: made},
			Spec: v1alpha1.ProtectedBranchSpec{
				ProjectRef: &v1alpha1.Reference{Name: projectName(n % batchProjects)},
				Branch:     topic(n / batchProjects),
				Push:       []v1alpha1.AccessLevel{{Role: v1alpha1.AccessDeveloper}},
			},
		}
	}
	return all
}

// ready creates protections in a prepared namespace, and returns the time from the first request until the last one was seen to be ready.
func (l *load) ready(ctx context.Context, namespace string, number int) (time.Duration, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, readyTimeout, fmt.Errorf("%d protections were not ready within %s", number, readyTimeout))
	defer cancel()
	events, err := follow(ctx, l.Client(), &v1alpha1.ProtectedBranchList{}, client.InNamespace(namespace), made)
	if err != nil {
		return 0, err
	}
	begun := time.Now()
	tasks, ctx := errgroup.WithContext(ctx)
	tasks.Go(func() error {
		return each(ctx, l, protections(namespace, number), create)
	})
	tasks.Go(func() error {
		return awaitReady(ctx, events, number, func(*v1alpha1.ProtectedBranch) bool { return true })
	})
	err = tasks.Wait()
	return time.Since(begun), err
}

// follow reports the objects of a kind until ctx ends. When the API server ends a watch, for example because of a new schema, follow begins another
// one, which reports all objects.
func follow(ctx context.Context, c client.WithWatch, list client.ObjectList, o ...client.ListOption) (<-chan watch.Event, error) {
	w, err := c.Watch(ctx, list, o...)
	if err != nil {
		return nil, fmt.Errorf("watching %T: %w", list, err)
	}
	events := make(chan watch.Event)
	go func() {
		defer close(events)
		for err == nil && relay(ctx, w, events) {
			w, err = c.Watch(ctx, list, o...)
		}
	}()
	return events, nil
}

// relay passes events on until their watch ends. It reports whether the watch ended before ctx.
func relay(ctx context.Context, w watch.Interface, to chan<- watch.Event) bool {
	defer w.Stop()
	for event := range w.ResultChan() {
		select {
		case to <- event:
		case <-ctx.Done():
		}
	}
	return ctx.Err() == nil
}

// awaitReady returns when a number of different objects of interest were ready.
func awaitReady[T testbed.Object](ctx context.Context, events <-chan watch.Event, number int, interest func(T) bool) error {
	seen := map[string]bool{}
	for {
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %d of %d were", context.Cause(ctx), len(seen), number)
		case event, open := <-events:
			o, is := event.Object.(T)
			switch {
			case !open:
				return errors.New("the watch ended")
			case !is:
				return fmt.Errorf("the watch failed: %+v", event.Object)
			case testbed.Ready(o) && interest(o):
				seen[o.GetName()] = true
			}
			if len(seen) == number {
				return nil
			}
		}
	}
}

// bare creates the same objects while Forgeplane is stopped, each followed by one write of a status, and returns the time that this takes.
func (l *load) bare(ctx context.Context, namespace string, number int) (time.Duration, error) {
	all := protections(namespace, number)
	begun := time.Now()
	err := each(ctx, l, all, func(ctx context.Context, c client.Client, p *v1alpha1.ProtectedBranch) error {
		if err := c.Create(ctx, p); err != nil {
			return err
		}
		before := p.DeepCopy()
		p.Status = exampleStatus(p)
		return c.Status().Patch(ctx, p, client.MergeFrom(before))
	})
	return time.Since(begun), err
}

// exampleStatus returns a status like those that the controller writes.
func exampleStatus(p *v1alpha1.ProtectedBranch) v1alpha1.ProtectedBranchStatus {
	maintainers := []v1alpha1.ResolvedAccessLevel{{Role: v1alpha1.AccessMaintainer, Description: "Maintainers"}}
	return v1alpha1.ProtectedBranchStatus{
		CommonStatus: v1alpha1.CommonStatus{
			ObservedGeneration: p.Generation,
			Conditions: []metav1.Condition{{
				Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonReady,
				ObservedGeneration: p.Generation, LastTransitionTime: metav1.Now(),
			}},
		},
		TargetStatus: v1alpha1.TargetStatus{TargetPath: p.Namespace + "/" + p.Spec.ProjectRef.Name},
		ID:           1, PushDescription: "Developers + Maintainers",
		Push:  []v1alpha1.ResolvedAccessLevel{{Role: v1alpha1.AccessDeveloper, Description: "Developers + Maintainers"}},
		Merge: maintainers, Unprotect: maintainers,
		MatchedBranches: []string{p.Spec.Branch}, MatchedBranchCount: 1,
	}
}

// each calls a function with every object, with as many simultaneous calls as there are clients.
func each[T client.Object](ctx context.Context, l *load, all []T, do func(ctx context.Context, c client.Client, object T) error) error {
	var next atomic.Int64
	workers, ctx := errgroup.WithContext(ctx)
	for _, c := range l.clients {
		workers.Go(func() error {
			for {
				n := int(next.Add(1)) - 1
				if n >= len(all) {
					return nil
				}
				if err := do(ctx, c, all[n]); err != nil {
					return fmt.Errorf("%T %s/%s: %w", all[n], all[n].GetNamespace(), all[n].GetName(), err)
				}
			}
		})
	}
	return workers.Wait()
}

// up waits until Forgeplane runs and has finished all work.
func (l *load) up(ctx context.Context) error {
	if !l.Running() {
		if err := l.StartForgeplane(ctx); err != nil {
			return err
		}
	}
	if err := l.AwaitServing(ctx); err != nil {
		return err
	}
	return l.AwaitQuiet(ctx, "protectedbranch", 0)
}

// fileURL returns the URL of a directory of this machine.
func fileURL(directory string) string { return "file://" + filepath.ToSlash(directory) }
