package forge

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
)

const polling = 10 * time.Millisecond

// Reconcile calls the controller of obj's kind once, and a second time to check that it writes nothing if nothing has changed. It returns the
// result of the first call, and updates obj. It must not be called while the controllers run.
func (f *Forge) Reconcile(obj v1alpha1.Object) (reconcile.Result, error) {
	GinkgoHelper()
	result, err := f.ReconcileOnce(obj)
	if obj.GetUID() == "" {
		return result, err
	}
	written, told, files := f.cluster.writes.count(), len(f.Events()), f.tree()
	before := obj.GetResourceVersion()
	_, _ = f.ReconcileOnce(obj)
	Expect(f.cluster.writes.since(written)).To(BeEmpty(), "a second reconcile of %s wrote something", f.show(obj))
	Expect(f.Events()[told:]).To(BeEmpty(), "the events of a second reconcile of %s", f.show(obj))
	Expect(f.tree()).To(Equal(files), "the storages after a second reconcile of %s", f.show(obj))
	Expect(obj.GetResourceVersion()).To(Equal(before), "the version of %s after a second reconcile", f.show(obj))
	return result, err
}

// ReconcileOnce is Reconcile without the second call, for unfinished work. An object that is gone afterwards loses its UID.
func (f *Forge) ReconcileOnce(obj v1alpha1.Object) (reconcile.Result, error) {
	GinkgoHelper()
	Expect(f.running).To(BeNil(), "the controllers run: nothing must interfere with them")
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	result, err := f.controllers[f.kind(obj)].Reconcile(ctx, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(obj)})
	gone := f.refresh(obj)
	if apierrors.IsNotFound(gone) {
		obj.SetUID("")
		return result, err
	}
	Expect(gone).NotTo(HaveOccurred())
	Expect(checkStatus(obj)).To(Succeed(), "the status of %s", f.show(obj))
	return result, err
}

// ExpectReady expects that each object is ready.
func (f *Forge) ExpectReady(objs ...v1alpha1.Object) {
	GinkgoHelper()
	for _, obj := range objs {
		f.expect(obj, state{kind: ready})
	}
}

// ExpectSettled expects that an object has no effect because its own declaration says so, that nothing waits for it, and that the message
// contains each of the words.
func (f *Forge) ExpectSettled(obj v1alpha1.Object, reason string, words ...string) {
	GinkgoHelper()
	f.expect(obj, state{ended, reason, words})
}

// ExpectStalled expects that an object is not ready for a reason that only a change can remove, and that the message contains each of the
// words.
func (f *Forge) ExpectStalled(obj v1alpha1.Object, reason string, words ...string) {
	GinkgoHelper()
	f.expect(obj, state{stalled, reason, words})
}

// ExpectWaiting expects that an object is not ready for a reason that a watch or a timer will remove, and that the message contains each of
// the words.
func (f *Forge) ExpectWaiting(obj v1alpha1.Object, reason string, words ...string) {
	GinkgoHelper()
	f.expect(obj, state{waiting, reason, words})
}

// ExpectFailing is ExpectWaiting for work that is retried with a growing delay.
func (f *Forge) ExpectFailing(obj v1alpha1.Object, reason string, words ...string) {
	GinkgoHelper()
	f.expect(obj, state{failing, reason, words})
}

// expect reconciles obj and checks its state. If the controllers run, it waits for the state instead.
func (f *Forge) expect(obj v1alpha1.Object, want state) {
	GinkgoHelper()
	if f.running != nil {
		Eventually(func() error {
			if err := f.look(obj); err != nil {
				return err
			}
			return want.of(obj)
		}).WithPolling(polling).Should(Succeed(), f.show(obj))
		return
	}
	_, err := f.Reconcile(obj)
	if want.kind == failing {
		Expect(err).To(HaveOccurred(), "without an error there is no retry of %s", f.show(obj))
	} else {
		Expect(err).NotTo(HaveOccurred(), "reconciling %s", f.show(obj))
	}
	Expect(obj.GetUID()).NotTo(BeEmpty(), "%s is gone", f.show(obj))
	Expect(want.of(obj)).To(Succeed(), f.show(obj))
}

// look is refresh without a request if the cache still shows the version of obj, as in most tries of a wait.
func (f *Forge) look(obj client.Object) error {
	if cached(obj) && obj.GetResourceVersion() != "" {
		ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
		defer cancel()
		shown, err := f.cluster.show(ctx, obj)
		if err == nil && shown.GetResourceVersion() == obj.GetResourceVersion() {
			return nil
		}
	}
	return f.refresh(obj)
}

// Eventually waits until obj, which is read again each time, matches.
func (f *Forge) Eventually(obj client.Object) AsyncAssertion {
	GinkgoHelper()
	return Eventually(func() (client.Object, error) { return obj, f.look(obj) }).WithPolling(polling)
}
