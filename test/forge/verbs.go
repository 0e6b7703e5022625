package forge

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/internal/claim"
	"github.com/forgeplane/forgeplane/internal/fieldmanager"
)

// The verbs of this file act as the administrator of the cluster. They return when the cache shows the result, and update the given objects.
// They write several objects of one call without a pause in between.

// Create creates the objects.
func (f *Forge) Create(objs ...client.Object) {
	GinkgoHelper()
	f.create(objs)
}

// CreateOverREST is Create with the field manager of the REST API. As after a restore, the objects do not belong to their targets yet.
func (f *Forge) CreateOverREST(objs ...client.Object) {
	GinkgoHelper()
	f.create(objs, client.FieldOwner(fieldmanager.REST))
}

func (f *Forge) create(objs []client.Object, options ...client.CreateOption) {
	GinkgoHelper()
	f.rest()
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	for _, obj := range objs {
		Expect(f.cluster.writer(obj).Create(ctx, obj, options...)).To(Succeed(), "creating %s", f.show(obj))
	}
}

// Apply declares an object that exists, like the client-side apply of kubectl and Argo CD for a manifest that changes none of its fields.
func (f *Forge) Apply(obj client.Object) {
	GinkgoHelper()
	f.Change(obj, func() {
		annotations := maps.Clone(obj.GetAnnotations())
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[corev1.LastAppliedConfigAnnotation] = "{}"
		obj.SetAnnotations(annotations)
	})
}

// Change reads obj again, calls change, which changes obj, and writes it. It retries if a controller wrote in between.
func (f *Forge) Change(obj client.Object, change func()) {
	GinkgoHelper()
	Expect(f.change(obj, change)).To(Succeed(), "changing %s", f.show(obj))
}

// Replace overwrites the existing object with obj, like kubectl replace: fields that obj omits are removed, except the status.
func (f *Forge) Replace(obj client.Object) {
	GinkgoHelper()
	f.rest()
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	there := obj.DeepCopyObject().(client.Object)
	Expect(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		f.Refresh(there)
		obj.SetResourceVersion(there.GetResourceVersion())
		return f.cluster.writer(obj).Update(ctx, obj)
	})).To(Succeed(), "replacing %s", f.show(obj))
}

func (f *Forge) change(obj client.Object, change func()) error {
	GinkgoHelper()
	f.rest()
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		f.Refresh(obj)
		change()
		return f.cluster.writer(obj).Update(ctx, obj)
	})
}

// Delete deletes the objects. An object with a finalizer still exists afterwards.
func (f *Forge) Delete(objs ...client.Object) {
	GinkgoHelper()
	f.rest()
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	for _, obj := range objs {
		Expect(f.cluster.writer(obj).Delete(ctx, obj)).To(Succeed(), "deleting %s", f.show(obj))
	}
}

// Refresh reads the objects as they are now.
func (f *Forge) Refresh(objs ...client.Object) {
	GinkgoHelper()
	for _, obj := range objs {
		Expect(f.refresh(obj)).To(Succeed(), "reading %s", f.show(obj))
	}
}

func (f *Forge) refresh(obj client.Object) error {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	return wait.PollUntilContextCancel(ctx, polling, true, func(ctx context.Context) (bool, error) {
		fresh := reflect.New(reflect.TypeOf(obj).Elem())
		if err := f.cluster.live.Get(ctx, client.ObjectKeyFromObject(obj), fresh.Interface().(client.Object)); err != nil {
			return false, err
		}
		reflect.ValueOf(obj).Elem().Set(fresh.Elem())
		if !cached(obj) {
			return true, nil
		}
		shown, err := f.cluster.show(ctx, obj)
		return err == nil && shown.GetResourceVersion() == obj.GetResourceVersion(), client.IgnoreNotFound(err)
	})
}

// ExpectRefused expects that the API server refuses to create obj, with a message that contains each of the words.
func (f *Forge) ExpectRefused(obj client.Object, words ...string) {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	expectInvalid(f.cluster.live.Create(ctx, obj), words)
}

// ExpectChangeRefused is Change for a change that the API server refuses. It restores obj.
func (f *Forge) ExpectChangeRefused(obj client.Object, change func(), words ...string) {
	GinkgoHelper()
	expectInvalid(f.change(obj, change), words)
	f.Refresh(obj)
}

func expectInvalid(err error, words []string) {
	GinkgoHelper()
	Expect(err).To(Satisfy(apierrors.IsInvalid), "the answer of the API server")
	for _, w := range words {
		Expect(err).To(MatchError(ContainSubstring(w)))
	}
}

// ExpectGone expects that the objects no longer exist, or disappear without another request.
func (f *Forge) ExpectGone(objs ...client.Object) {
	GinkgoHelper()
	for _, obj := range objs {
		Eventually(func() error { return f.refresh(obj) }).WithPolling(polling).
			Should(Satisfy(apierrors.IsNotFound), "reading %s", f.show(obj))
		if cached(obj) {
			Eventually(func(ctx context.Context) error {
				_, err := f.cluster.show(ctx, obj)
				return err
			}).WithContext(GinkgoT().Context()).WithPolling(polling).
				Should(Satisfy(apierrors.IsNotFound), "the cache still shows %s", f.show(obj))
		}
	}
}

// ByAge returns the objects in an order in which the first one holds what both claim. If both were created within the same second, their order is
// random.
func ByAge[T client.Object](a, b T) (older, younger T) {
	if claim.Older(a, b) {
		return a, b
	}
	return b, a
}

// CreateInTurn creates a, waits until b will be younger, creates b, and returns both. If both were created within the same second while controllers
// run, the object that is reconciled first would hold what both claim.
func CreateInTurn[T client.Object](f *Forge, a, b T) (older, younger T) {
	GinkgoHelper()
	f.Create(a)
	UntilYounger(a)
	f.Create(b)
	return a, b
}

// UntilYounger waits until the next object will be younger than obj by the clock of the API server, which counts seconds. Among objects of the same
// second, the holder of what both claim would be random.
func UntilYounger(obj client.Object) {
	GinkgoHelper()
	Eventually(time.Now).WithPolling(polling).
		Should(BeTemporally(">=", obj.GetCreationTimestamp().Add(time.Second)))
}

// rest waits until running controllers have finished their work.
func (f *Forge) rest() {
	GinkgoHelper()
	if f.running != nil {
		f.running.ExpectIdle()
	}
}

func (f *Forge) show(obj client.Object) string {
	return fmt.Sprintf("%s %s", f.kind(obj), client.ObjectKeyFromObject(obj))
}
