package main

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/test/bench/testbed"
)

const (
	listedLabels  = 200
	appliedLabels = 1000
)

func (b *bench) measureLabels(ctx context.Context) error {
	return b.with(ctx, "labels", func(ctx context.Context, t *testbed.Testbed) error {
		r, err := b.newREST(t)
		if err != nil {
			return err
		}
		if b.wants(rowLabelList, rowGroupLabelList, rowLabelCreate) {
			if err := r.measureLabelRequests(ctx); err != nil {
				return err
			}
		}
		if !b.wants(rowLabelApply) {
			return nil
		}
		o, k, err := r.measureApply(ctx, applied{
			what: "labels", controller: "label", kind: &v1alpha1.Label{}, list: &v1alpha1.LabelList{},
			before: func(namespace string) []testbed.Object {
				return []testbed.Object{newGroup(namespace), newProject(namespace, projectName(0), "")}
			},
			objects: func(namespace string) []testbed.Object {
				return objectsOf(labelsOf(namespace, projectName(0), appliedLabels))
			},
		})
		b.record(rowLabelApply, o, k)
		return err
	})
}

// measureLabelRequests creates projects and a group, of which one project and the group have many labels, and requests these.
func (r *rest) measureLabelRequests(ctx context.Context) error {
	if err := r.introduce(ctx); err != nil {
		return err
	}
	listed, filled := newProject(restNamespace, projectName(0), ""), newProject(restNamespace, projectName(1), "")
	below := newGroup(restNamespace)
	below.Name, below.Spec.Path, below.Spec.ParentRef = "labelled", "labelled", &v1alpha1.Reference{Name: restNamespace}
	if err := r.Create(ctx, listed, filled, below); err != nil {
		return err
	}
	labels := slices.Concat(labelsOf(restNamespace, projectName(0), listedLabels), labelsBelow(below, listedLabels))
	if err := each(ctx, r.load, labels, create); err != nil {
		return err
	}
	if err := r.AwaitQuiet(ctx, "label", len(labels)); err != nil {
		return err
	}
	for row, path := range map[string]string{
		rowLabelList:      fmt.Sprintf("/projects/%d/labels?per_page=20", listed.Spec.ID),
		rowGroupLabelList: fmt.Sprintf("/groups/%d/labels?per_page=20", below.Spec.ID),
	} {
		if !r.bench.wants(row) {
			continue
		}
		if err := r.measureRate(ctx, question{row: row, path: path}); err != nil {
			return fmt.Errorf("%s: %w", row, err)
		}
	}
	if !r.bench.wants(rowLabelCreate) {
		return nil
	}
	bare := func(n int) *v1alpha1.Label {
		l := labelsOf(restNamespace, projectName(1), 1)[0]
		l.Name, l.Spec.Title = fmt.Sprintf("bare-%d", n), fmt.Sprintf("over-kubernetes-%d", n)
		return l
	}
	return r.compareCreates(ctx, rowLabelCreate, "label",
		func(n int) error {
			return r.post(ctx, fmt.Sprintf("/projects/%d/labels", filled.Spec.ID), fmt.Sprintf("name=over-rest-%d&color=%%23D9534F", n))
		},
		func(n int) error { return r.Client().Create(ctx, bare(n)) })
}

// labelsBelow returns labels of a group.
func labelsBelow(g *v1alpha1.Group, number int) []*v1alpha1.Label {
	all := labelsOf(g.Namespace, "", number)
	for _, l := range all {
		l.Name = g.Name + "-" + l.Name
		l.Spec.ProjectRef, l.Spec.GroupRef = nil, &v1alpha1.Reference{Name: g.Name}
	}
	return all
}

// labelsOf returns labels of a project.
func labelsOf(namespace, project string, number int) []*v1alpha1.Label {
	all := make([]*v1alpha1.Label, number)
	for n := range all {
		all[n] = &v1alpha1.Label{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("label-%04d", n)},
			Spec: v1alpha1.LabelSpec{
				ProjectRef: &v1alpha1.Reference{Name: project}, Title: fmt.Sprintf("area::%04d", n), Color: "#428BCA",
				Description: fmt.Sprintf("Everything that has to do with the **area** %d.", n),
			},
		}
	}
	return all
}
