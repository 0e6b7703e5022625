package tenancy_test

import (
	"reflect"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/repository"
	"github.com/forgeplane/forgeplane/test/forge"
)

var _ = Describe("An editor of one namespace", func() {
	var w *world
	BeforeEach(func() { w = newWorld() })

	forbidden := Satisfy(apierrors.IsForbidden)

	It("can read and write nothing in another namespace", func(ctx SpecContext) {
		for _, o := range []client.Object{w.acme, w.website, w.owner, w.key, w.protected, w.trigger, w.label, w.secret} {
			o = o.DeepCopyObject().(client.Object)
			Expect(w.editor.Get(ctx, client.ObjectKeyFromObject(o), o)).To(forbidden)
			Expect(w.editor.Patch(ctx, o, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`)))).To(forbidden)
			Expect(w.editor.Delete(ctx, o)).To(forbidden)
			o.SetResourceVersion("")
			o.SetName("new")
			Expect(w.editor.Create(ctx, o)).To(forbidden)
		}
		lists := []client.ObjectList{&corev1.SecretList{}}
		for _, kind := range v1alpha1.Kinds() {
			namespaced, err := w.editor.IsObjectNamespaced(kind)
			if _, administrative := kind.(*v1alpha1.StorageMove); err == nil && namespaced && !administrative {
				lists = append(lists, kind.NewList())
			}
		}
		Expect(len(lists)).To(BeNumerically(">", 10))
		for _, list := range lists {
			Expect(w.editor.List(ctx, list, client.InNamespace(w.team))).To(forbidden)
			Expect(w.editor.List(ctx, list)).To(forbidden)
			Expect(w.editor.List(ctx, list, client.InNamespace(w.space))).To(Succeed(), "her own she may")
		}
		w.expectUntouched()
	})

	It("can neither see nor create users, tokens and storages", func(ctx SpecContext) {
		for _, o := range []client.Object{w.ada, w.token, w.storage} {
			o = o.DeepCopyObject().(client.Object)
			Expect(w.editor.Get(ctx, client.ObjectKeyFromObject(o), o)).To(forbidden)
			Expect(w.editor.Patch(ctx, o, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"admin":true}}`)))).To(forbidden)
			Expect(w.editor.Status().Patch(ctx, o, client.RawPatch(types.MergePatchType, []byte(`{"status":{"id":1}}`)))).To(forbidden)
		}
		become := forge.User("mallory").Named("mallory-2").Admin().Build()
		Expect(w.editor.Create(ctx, become)).To(forbidden)
		Expect(w.editor.Create(ctx, forge.AccessToken("stolen").For(w.ada).Build())).To(forbidden)
		Expect(w.editor.Create(ctx, forge.RepositoryStorage("everything").At("/etc").Build())).To(forbidden)
		w.expectUntouched()
	})

	It("can neither see nor begin moves between volumes, not even of her own projects", func(ctx SpecContext) {
		p := forge.Project("own").In(w.own).Build()
		Expect(w.Live().Create(ctx, p)).To(Succeed())
		m := forge.StorageMove("off").Of(p).To(w.storage.Name).Build()
		Expect(w.editor.Create(ctx, m.DeepCopy())).To(forbidden)
		Expect(w.Live().Create(ctx, m)).To(Succeed())
		Expect(w.editor.Get(ctx, client.ObjectKeyFromObject(m), m.DeepCopy())).To(forbidden)
		Expect(w.editor.List(ctx, &v1alpha1.StorageMoveList{}, client.InNamespace(w.space))).To(forbidden)
		Expect(w.editor.Delete(ctx, m.DeepCopy())).To(forbidden)
		patch := client.RawPatch(types.MergePatchType, []byte(`{"status":{"move":null,"storage":"elsewhere"}}`))
		Expect(w.editor.Status().Patch(ctx, p, patch)).To(forbidden)
	})

	It("can neither see, adopt nor purge what deleted projects have left", func(ctx SpecContext) {
		p := forge.Project("left").In(w.own).Build()
		p.UID, p.Spec.ID, p.Status.Storage = "left", 4711, w.storage.Name
		r := repository.NewRetained(p, "", "", w.Clock.Now())
		Expect(w.editor.Create(ctx, r.DeepCopy())).To(forbidden)
		Expect(w.Live().Create(ctx, r)).To(Succeed())
		Expect(w.editor.Get(ctx, client.ObjectKeyFromObject(r), r.DeepCopy())).To(forbidden)
		Expect(w.editor.List(ctx, &v1alpha1.RetainedRepositoryList{})).To(forbidden)
		patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"adoptBy":{"namespace":"a","name":"b"}}}`))
		Expect(w.editor.Patch(ctx, r.DeepCopy(), patch)).To(forbidden)
		Expect(w.editor.Status().Patch(ctx, r.DeepCopy(), patch)).To(forbidden)
		Expect(w.editor.Delete(ctx, r.DeepCopy())).To(forbidden)
	})

	It("cannot read the values of tokens", func(ctx SpecContext) {
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: forge.PlatformNamespace, Name: w.token.Spec.SecretRef.Name}}
		Expect(w.Live().Get(ctx, client.ObjectKeyFromObject(s), s)).To(Succeed(), "it is there")
		Expect(w.editor.Get(ctx, client.ObjectKeyFromObject(s), s)).To(forbidden)
		Expect(w.editor.List(ctx, &corev1.SecretList{}, client.InNamespace(forge.PlatformNamespace))).To(forbidden)
		Expect(w.editor.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: forge.PlatformNamespace, Name: "mine"}})).To(forbidden)
	})

	It("cannot write a status or finalizers by subresource, even of their own objects", func(ctx SpecContext) {
		key := forge.DeployKey("k").Of(w.mine).Build()
		b, m := forge.ProtectedBranch("x").Of(w.mine).Build(), forge.Membership(w.mallory).In(w.mine).Build()
		badge, scope := forge.Badge("b").Of(w.mine).Build(), forge.JobTokenScope("s").Of(w.mine).Build()
		t := forge.TriggerToken("t").Of(w.mine).Build()
		w.declare(key, b, m, t, badge, scope)
		w.ExpectReady(key, b, m, t, badge, scope)
		for _, o := range []client.Object{w.own, w.mine, key, b, m, t, badge, scope} {
			o = o.DeepCopyObject().(client.Object)
			patch := client.RawPatch(types.MergePatchType, []byte(`{"status":{"observedGeneration":7}}`))
			Expect(w.editor.Status().Patch(ctx, o, patch)).To(forbidden)
			Expect(w.editor.Status().Update(ctx, o)).To(forbidden)
		}
		w.expectUntouched()
	})

	It("cannot create an object with a status, and cannot change the status with the object", func(ctx SpecContext) {
		p := forge.Project("brought").In(w.own).Build()
		p.Status = v1alpha1.ProjectStatus{
			ID: w.website.Spec.ID, FullPath: "acme/website", Storage: "default", RepositoryPath: w.website.Status.RepositoryPath,
			RefsChecksum: w.website.Status.RefsChecksum, ProtectedDefaultBranch: "main",
		}
		w.declare(p)
		w.ExpectReady(p)
		Expect(p.Status.ID).NotTo(Equal(w.website.Spec.ID))
		Expect(p.Status.FullPath).To(Equal("bolt/brought"))
		Expect(p.Status.RepositoryPath).NotTo(Equal(w.website.Status.RepositoryPath))

		var before v1alpha1.ProjectStatus
		Expect(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
			w.Refresh(w.mine)
			before = w.mine.Status
			w.mine.Status.RepositoryPath, w.mine.Status.Storage, w.mine.Status.ID = w.website.Status.RepositoryPath, "elsewhere", 1
			return w.editor.Update(ctx, w.mine)
		})).To(Succeed())
		w.Refresh(w.mine)
		Expect(w.mine.Status).To(Equal(before))
		w.expectUntouched()
	})

	It("cannot take over the Secret of a token by creating a Secret of the same name", func(ctx SpecContext) {
		// The value of a token is in a Secret of the platform. A Secret of the same name in another namespace must have no effect.
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.space, Name: w.token.Spec.SecretRef.Name}, StringData: map[string]string{"token": "a-value-of-my-own-choice"}}
		Expect(w.editor.Create(ctx, s)).To(Succeed())
		w.expectUntouched()
	})
})

// tried are the namespaced kinds that this package has specs for. A new kind must get some.
var tried = []string{
	"Badge", "BotToken", "DeployKey", "Group", "JobTokenScope", "Label", "Membership", "Project", "ProtectedBranch", "RegistryCleanup", "RemoteMirror", "StorageMove",
	"TriggerToken", "Variable",
}

var _ = It("has specs for every namespaced kind", func() {
	f := forge.New(cluster, forge.Options{})
	var namespaced []string
	for kind, typ := range f.Live().Scheme().KnownTypes(v1alpha1.GroupVersion) {
		o, ok := reflect.New(typ).Interface().(v1alpha1.Object)
		if !ok {
			continue // a list, or the options of a request
		}
		scoped, err := f.Live().IsObjectNamespaced(o)
		Expect(err).NotTo(HaveOccurred())
		if scoped {
			namespaced = append(namespaced, kind)
		}
	}
	Expect(namespaced).To(ConsistOf(tried))
})
