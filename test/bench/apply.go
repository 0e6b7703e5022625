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
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/forgeplane/forgeplane/test/bench/testbed"
)

const applyRounds = 3

// applied is the content of one kubectl apply, in its own namespace.
type applied struct {
	// controller is the name of the controller that makes the objects ready, and what is a name for the objects.
	what, controller string
	// kind is an object of the kind, and list is a list of the kind.
	kind client.Object
	list client.ObjectList
	// before are the objects that are ready before the command begins.
	before func(namespace string) []testbed.Object
	// objects are the objects that the command declares.
	objects func(namespace string) []testbed.Object
}

// measureApply applies files in the way of a user whose objects are in Git, and returns the time in seconds. In the reference without Forgeplane,
// nothing reacts to the objects.
func (r *rest) measureApply(ctx context.Context, a applied) (ours, reference []float64, err error) {
	until := func(round int) (float64, error) {
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
		if err := r.Create(ctx, a.before(namespace)...); err != nil {
			return 0, err
		}
		return r.applyUntilReady(ctx, a, namespace)
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
		err := r.apply(ctx, namespace, a.objects(namespace))
		took := time.Since(begun)
		if err != nil {
			return 0, err
		}
		// Forgeplane must not find these objects when it starts again.
		return took.Seconds(), r.Client().DeleteAllOf(ctx, a.kind, client.InNamespace(namespace))
	}
	return alternate(exactly(applyRounds), until, bare)
}

func (r *rest) newNamespace(ctx context.Context, name string) error {
	return r.Client().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
}

// applyUntilReady applies the objects of a namespace, and returns the seconds until the last one was seen to be ready.
func (r *rest) applyUntilReady(ctx context.Context, a applied, namespace string) (float64, error) {
	if err := r.AwaitQuiet(ctx, a.controller, 0); err != nil {
		return 0, err
	}
	objects := a.objects(namespace)
	ctx, cancel := context.WithTimeoutCause(ctx, readyTimeout, fmt.Errorf("%d %s were not ready within %s", len(objects), a.what, readyTimeout))
	defer cancel()
	events, err := follow(ctx, r.Client(), a.list, client.InNamespace(namespace))
	if err != nil {
		return 0, err
	}
	begun := time.Now()
	tasks, ctx := errgroup.WithContext(ctx)
	tasks.Go(func() error {
		if err := r.apply(ctx, namespace, objects); err != nil {
			return err
		}
		r.bench.say("kubectl had applied %d %s after %.2f s", len(objects), a.what, time.Since(begun).Seconds())
		return nil
	})
	tasks.Go(func() error {
		return awaitReady(ctx, events, len(objects), func(testbed.Object) bool { return true })
	})
	if err := tasks.Wait(); err != nil {
		return 0, err
	}
	took := time.Since(begun).Seconds()
	r.bench.say("%d %s were ready after %.2f s", len(objects), a.what, took)
	return took, nil
}

// apply applies a file with objects of a namespace, in JSON, which is also YAML.
func (r *rest) apply(ctx context.Context, namespace string, objects []testbed.Object) error {
	var text bytes.Buffer
	for _, o := range objects {
		kind, err := apiutil.GVKForObject(o, r.Client().Scheme())
		if err != nil {
			return err
		}
		o.GetObjectKind().SetGroupVersionKind(kind)
		if err := json.NewEncoder(&text).Encode(o); err != nil {
			return err
		}
	}
	file := filepath.Join(r.bench.directory, namespace+".json")
	if err := os.WriteFile(file, text.Bytes(), 0o600); err != nil {
		return err
	}
	return r.Kubectl(ctx, "apply", "--filename="+file)
}

// objectsOf converts a slice of objects.
func objectsOf[T testbed.Object](all []T) []testbed.Object {
	objects := make([]testbed.Object, len(all))
	for n, one := range all {
		objects[n] = one
	}
	return objects
}

// perSecond returns the rates of a number of things from the seconds that they took.
func perSecond(number int, seconds []float64) []float64 {
	rates := make([]float64, len(seconds))
	for n, took := range seconds {
		rates[n] = float64(number) / took
	}
	return rates
}
