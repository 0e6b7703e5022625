package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/test/bench/testbed"
)

const (
	listedLabels  = 200
	appliedLabels = 1000
	applyRounds   = 3
)

func (b *bench) measureLabels(ctx context.Context) error {
	return b.with(ctx, "labels", func(ctx context.Context, t *testbed.Testbed) error {
		l, err := newCreators(t)
		if err != nil {
			return err
		}
		r := &rest{load: l, bench: b}
		if b.wants(rowLabelList, rowLabelCreate) {
			if err := r.measureLabelRequests(ctx); err != nil {
				return err
			}
		}
		if b.wants(rowLabelApply) {
			return r.measureApply(ctx)
		}
		return nil
	})
}

// measureLabelRequests makes projects, one of which has many labels, and asks for them.
func (r *rest) measureLabelRequests(ctx context.Context) error {
	if err := r.introduce(ctx); err != nil {
		return err
	}
	listed, filled := newProject(restNamespace, projectName(0), ""), newProject(restNamespace, projectName(1), "")
	if err := r.Create(ctx, listed, filled); err != nil {
		return err
	}
	if err := each(ctx, r.load, labelsOf(restNamespace, projectName(0), listedLabels), create); err != nil {
		return err
	}
	if err := r.AwaitQuiet(ctx, "label", listedLabels); err != nil {
		return err
	}
	if r.bench.wants(rowLabelList) {
		path := fmt.Sprintf("/projects/%d/labels?per_page=20", listed.Spec.ID)
		if err := r.measureRate(ctx, question{row: rowLabelList, path: path}); err != nil {
			return fmt.Errorf("%s: %w", rowLabelList, err)
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

// labelsOf are labels of a project.
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

// measureApply applies files as whoever has his labels in Git does. Without Forgeplane nobody does anything about them.
func (r *rest) measureApply(ctx context.Context) error {
	ours := func(round int) (float64, error) {
		if !r.Running() {
			if err := r.StartForgeplane(ctx); err != nil {
				return 0, err
			}
		}
		if err := r.AwaitServing(ctx); err != nil {
			return 0, err
		}
		namespace := fmt.Sprintf("applied-%d", round)
		if err := r.newNamespace(ctx, namespace); err != nil {
			return 0, err
		}
		if err := r.Create(ctx, newGroup(namespace), newProject(namespace, projectName(0), "")); err != nil {
			return 0, err
		}
		return r.applyUntilReady(ctx, namespace)
	}
	bare := func(round int) (float64, error) {
		if err := r.StopForgeplane(); err != nil {
			return 0, err
		}
		namespace := fmt.Sprintf("bare-%d", round)
		if err := r.newNamespace(ctx, namespace); err != nil {
			return 0, err
		}
		begun := time.Now()
		err := r.apply(ctx, namespace)
		took := time.Since(begun)
		if err != nil {
			return 0, err
		}
		// Forgeplane is not to find them when it starts again.
		return took.Seconds(), r.Client().DeleteAllOf(ctx, &v1alpha1.Label{}, client.InNamespace(namespace))
	}
	o, k, err := alternate(exactly(applyRounds), ours, bare)
	r.bench.record(rowLabelApply, o, k)
	return err
}

func (r *rest) newNamespace(ctx context.Context, name string) error {
	return r.Client().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
}

// applyUntilReady applies the labels of a namespace, and returns how many seconds it took until the last one was seen to be
// ready.
func (r *rest) applyUntilReady(ctx context.Context, namespace string) (float64, error) {
	if err := r.AwaitQuiet(ctx, "label", 0); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, readyTimeout, fmt.Errorf("%d labels were not ready within %s", appliedLabels, readyTimeout))
	defer cancel()
	events, err := follow(ctx, r.Client(), &v1alpha1.LabelList{}, client.InNamespace(namespace))
	if err != nil {
		return 0, err
	}
	begun := time.Now()
	tasks, ctx := errgroup.WithContext(ctx)
	tasks.Go(func() error {
		err := r.apply(ctx, namespace)
		r.bench.say("kubectl had applied %d labels after %.2f s", appliedLabels, time.Since(begun).Seconds())
		return err
	})
	tasks.Go(func() error {
		return awaitReady(ctx, events, appliedLabels, func(*v1alpha1.Label) bool { return true })
	})
	err = tasks.Wait()
	return time.Since(begun).Seconds(), err
}

// apply applies a file with the labels of a namespace: of JSON, which is YAML as well.
func (r *rest) apply(ctx context.Context, namespace string) error {
	var text bytes.Buffer
	for _, l := range labelsOf(namespace, projectName(0), appliedLabels) {
		l.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("Label"))
		if err := json.NewEncoder(&text).Encode(l); err != nil {
			return err
		}
	}
	file := filepath.Join(r.bench.directory, namespace+".json")
	if err := os.WriteFile(file, text.Bytes(), 0o600); err != nil {
		return err
	}
	return r.Kubectl(ctx, "apply", "--filename="+file)
}
