package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/test/bench/testbed"
)

const appliedProjects = 2500

func (b *bench) measureProjects(ctx context.Context) error {
	return b.with(ctx, "projects", func(ctx context.Context, t *testbed.Testbed) error {
		r, err := b.newREST(t)
		if err != nil {
			return err
		}
		if b.wants(rowProjectCreate, rowProjectUse) {
			if err := r.measureProjectRequests(ctx); err != nil {
				return err
			}
		}
		if !b.wants(rowProjectReady) {
			return nil
		}
		o, k, err := r.measureApply(ctx, applied{
			what: "projects", controller: "project", kind: &v1alpha1.Project{}, list: &v1alpha1.ProjectList{},
			before:  func(namespace string) []testbed.Object { return []testbed.Object{newGroup(namespace)} },
			objects: func(namespace string) []testbed.Object { return objectsOf(newProjects(namespace, appliedProjects)) },
		})
		b.record(rowProjectReady, perSecond(appliedProjects, o), perSecond(appliedProjects, k))
		return err
	})
}

// newProjects returns empty projects in the group that has the name of their namespace.
func newProjects(namespace string, number int) []*v1alpha1.Project {
	all := make([]*v1alpha1.Project, number)
	for n := range all {
		all[n] = newProject(namespace, projectName(n), "")
	}
	return all
}

// measureProjectRequests compares the requests of a client that creates a project and uses it at once with the same over the Kubernetes API.
func (r *rest) measureProjectRequests(ctx context.Context) (err error) {
	if err := r.introduce(ctx); err != nil {
		return err
	}
	var group v1alpha1.Group
	if err := r.Client().Get(ctx, client.ObjectKey{Namespace: restNamespace, Name: restNamespace}, &group); err != nil {
		return fmt.Errorf("reading the group of the projects: %w", err)
	}
	if r.bench.wants(rowProjectCreate) {
		err = r.compareCreates(ctx, rowProjectCreate, "project",
			func(n int) error { return r.postProject(ctx, group.Spec.ID, fmt.Sprintf("over-rest-%d", n)) },
			func(n int) error {
				return r.Client().Create(ctx, newProject(restNamespace, fmt.Sprintf("over-kubernetes-%d", n), ""))
			})
	}
	if err != nil || !r.bench.wants(rowProjectUse) {
		return err
	}
	return r.compareCreates(ctx, rowProjectUse, "project",
		func(n int) error {
			path := fmt.Sprintf("used-over-rest-%d", n)
			return errors.Join(r.postProject(ctx, group.Spec.ID, path), r.postFile(ctx, path))
		},
		func(n int) error {
			path := fmt.Sprintf("used-over-kubernetes-%d", n)
			return errors.Join(r.awaitProject(ctx, newProject(restNamespace, path, "")), r.postFile(ctx, path))
		})
}

func (r *rest) postProject(ctx context.Context, group int64, path string) error {
	return r.post(ctx, "/projects", fmt.Sprintf("namespace_id=%d&path=%s", group, path))
}

// postFile creates the first commit of a project.
func (r *rest) postFile(ctx context.Context, path string) error {
	return r.post(ctx, fmt.Sprintf("/projects/%s%%2F%s/repository/files/README.md", restNamespace, path),
		"branch=main&content=Hello.&commit_message=Begin")
}

// awaitProject creates a project and returns when a watch shows that it is ready.
func (r *rest) awaitProject(ctx context.Context, p *v1alpha1.Project) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := r.Client().Create(ctx, p); err != nil {
		return fmt.Errorf("creating project %s: %w", p.Name, err)
	}
	changes, err := r.clients[0].Watch(ctx, &v1alpha1.ProjectList{}, client.InNamespace(p.Namespace),
		client.MatchingFields{metav1.ObjectNameField: p.Name}, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: p.ResourceVersion}})
	if err != nil {
		return fmt.Errorf("watching project %s: %w", p.Name, err)
	}
	defer changes.Stop()
	for change := range changes.ResultChan() {
		if now, ok := change.Object.(*v1alpha1.Project); ok && change.Type != watch.Deleted && testbed.Ready(now) {
			return nil
		}
	}
	return fmt.Errorf("project %s did not become ready: %w", p.Name, context.Cause(ctx))
}
