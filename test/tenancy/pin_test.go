package tenancy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/credential"
	"github.com/forgeplane/forgeplane/internal/ids"
	"github.com/forgeplane/forgeplane/test/forge"
)

// pinRefused matches the refusal of an id from a user who is not allowed to choose one.
var pinRefused = And(
	Satisfy(apierrors.IsForbidden), MatchError(And(ContainSubstring("omit spec.id: Forgeplane allocates one"), ContainSubstring("the verb pin on "))))

// tenants are users who can write in one namespace, by their Kubernetes role in that namespace.
var tenants = []string{"edit", "admin", "cluster-admin"}

var _ = Describe("A REST id", func() {
	var f *forge.Forge
	var space string
	BeforeEach(func() {
		f = forge.New(cluster, forge.Options{})
		space = f.NewNamespace()
	})

	// tenant returns a client of a user with a ClusterRole in the namespace as soon as the role is in force.
	tenant := func(ctx context.Context, roles ...string) client.Client {
		GinkgoHelper()
		name := fmt.Sprint(roles, "@", space)
		for _, role := range roles {
			f.Create(&rbacv1.RoleBinding{
				ObjectMeta: metav1.ObjectMeta{Namespace: space, Name: "has-" + role},
				RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
				Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: name}},
			})
		}
		as := cluster.ClientOf(name)
		Eventually(func() error {
			return as.Create(ctx, forge.Group("probe").In(space).Build(), client.DryRunAll)
		}).Should(Succeed())
		return as
	}

	// restorer returns a client of a user who can write in the namespace, and restore backups.
	restorer := func(ctx context.Context) client.Client {
		GinkgoHelper()
		name := "restores-" + space
		who := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: name}}
		role := func(name string) rbacv1.RoleRef {
			return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}
		}
		f.Create(
			&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: space, Name: name}, RoleRef: role("edit"), Subjects: who},
			&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: role("forgeplane-restore"), Subjects: who},
		)
		as := cluster.ClientOf(name)
		Eventually(func() error {
			return as.Create(ctx, forge.Group("probe").In(space).Build(), client.DryRunAll)
		}).Should(Succeed())
		return as
	}

	// identified are objects of all namespaced kinds that have an id.
	identified := func() []v1alpha1.Identified {
		acme := forge.Group("acme").In(space).Build()
		web := forge.Project("web").In(acme).Build()
		return []v1alpha1.Identified{
			acme, web, forge.DeployKey("k").Of(web).Build(), forge.ProtectedBranch("b").Of(web).Build(),
			forge.TriggerToken("t").Of(web).Build(), forge.BotToken("bot").Of(web).Build(), forge.Badge("b").Of(web).Build(),
			forge.RemoteMirror("m", "https://example.com/m.git").Of(web).Build(), forge.LabelTitled("l").Of(web).Build(),
		}
	}
	copyOf := func(obj v1alpha1.Identified) v1alpha1.Identified { return obj.DeepCopyObject().(v1alpha1.Identified) }
	pin := func(obj v1alpha1.Identified, id int64) v1alpha1.Identified {
		obj = copyOf(obj)
		spec, _ := obj.IDs()
		*spec = id
		return obj
	}
	patch := func(text string, args ...any) client.Patch {
		return client.RawPatch(types.MergePatchType, fmt.Appendf(nil, text, args...))
	}

	for _, role := range tenants {
		It("cannot be chosen by a user with the role "+role+" in the namespace, with any request and any kind", func(ctx SpecContext) {
			as := tenant(ctx, role)
			for _, obj := range identified() {
				what := fmt.Sprintf("%T", obj)
				Eventually(func() error { return as.Create(ctx, pin(obj, 77), client.DryRunAll) }).Should(pinRefused, what)
				Expect(as.Create(ctx, pin(obj, 77))).To(pinRefused, what)
				generated := pin(obj, 77)
				generated.SetName("")
				generated.SetGenerateName("any-")
				Expect(as.Create(ctx, generated)).To(pinRefused, what)
				Expect(apply(ctx, as, pin(obj, 77))).To(pinRefused, what)

				Expect(as.Create(ctx, copyOf(obj))).To(Succeed(), what)
				again := copyOf(obj)
				Expect(as.Get(ctx, client.ObjectKeyFromObject(again), again)).To(Succeed())
				Expect(as.Update(ctx, pin(again, 77))).To(pinRefused, what+" replaced")
				Expect(as.Patch(ctx, again, patch(`{"spec":{"id":77}}`))).To(pinRefused, what)
				Expect(as.Patch(ctx, again, client.RawPatch(types.JSONPatchType, []byte(`[{"op":"add","path":"/spec/id","value":77}]`)))).To(pinRefused, what)
				Expect(apply(ctx, as, pin(obj, 77))).To(pinRefused, what)
				Expect(as.Patch(ctx, again, patch(`{"metadata":{"labels":{"a":"b"}}}`))).To(Succeed(), what)
			}
		})
	}

	It("comes with an owner only if REST has created the group: no tenant can make Forgeplane create the owner", func(ctx SpecContext) {
		as := tenant(ctx, "edit", "cluster-admin")
		refused := And(Satisfy(apierrors.IsForbidden), MatchError(ContainSubstring("omit the annotation forgeplane.dev/owner")))
		acme := forge.Group("acme").In(space).Build()
		acme.Annotations = map[string]string{v1alpha1.AnnotationOwner: "1/any"}
		Eventually(func() error { return as.Create(ctx, acme.DeepCopy(), client.DryRunAll) }).Should(refused)
		Expect(apply(ctx, as, acme.DeepCopy())).To(refused)
		bare := forge.Group("acme").In(space).Build()
		bare.Annotations = map[string]string{"any": "thing"}
		Expect(as.Create(ctx, bare)).To(Succeed())
		annotate := `{"metadata":{"annotations":{"forgeplane.dev/owner":%q}}}`
		Expect(as.Patch(ctx, bare.DeepCopy(), patch(annotate, "1/any"))).To(refused)
		Expect(f.Live().Patch(ctx, bare.DeepCopy(), patch(annotate, "1/any"))).To(Succeed(), "by a cluster administrator")
		Expect(as.Patch(ctx, bare.DeepCopy(), patch(annotate, "2/any"))).To(refused)
		Expect(as.Patch(ctx, bare.DeepCopy(), patch(`{"metadata":{"labels":{"a":"b"}}}`))).To(Succeed(), "left as it is")
		Expect(as.Patch(ctx, bare.DeepCopy(), patch(`{"metadata":{"annotations":{"forgeplane.dev/owner":null}}}`))).To(Succeed(), "dropped")
	})

	It("does not hold a shard: no tenant can say that a project has chosen one", func(ctx SpecContext) {
		as := tenant(ctx, "edit", "cluster-admin")
		refused := And(Satisfy(apierrors.IsForbidden), MatchError(ContainSubstring("omit the annotation forgeplane.dev/planned-storage")))
		acme := forge.Group("acme").In(space).Build()
		planned := forge.Project("web").In(acme).Build()
		planned.Annotations = map[string]string{v1alpha1.AnnotationPlannedStorage: "fast/any"}
		Eventually(func() error { return as.Create(ctx, planned.DeepCopy(), client.DryRunAll) }).Should(refused)
		Expect(apply(ctx, as, planned.DeepCopy())).To(refused)
		web := forge.Project("web").In(acme).Build()
		Expect(as.Create(ctx, web)).To(Succeed())
		annotate := `{"metadata":{"annotations":{"forgeplane.dev/planned-storage":%q}}}`
		Expect(as.Patch(ctx, web.DeepCopy(), patch(annotate, "fast/any"))).To(refused)
		Expect(f.Live().Patch(ctx, web.DeepCopy(), patch(annotate, "fast/any"))).To(Succeed(), "by a cluster administrator")
		Expect(as.Patch(ctx, web.DeepCopy(), patch(annotate, "slow/any"))).To(refused)
		Expect(as.Patch(ctx, web.DeepCopy(), patch(`{"metadata":{"labels":{"a":"b"}}}`))).To(Succeed(), "left as it is")
		Expect(as.Patch(ctx, web.DeepCopy(), patch(`{"metadata":{"annotations":{"forgeplane.dev/planned-storage":null}}}`))).To(Succeed(), "dropped")
	})

	It("does not open projects of other namespaces: no tenant can set the uid of the project that is forked", func(ctx SpecContext) {
		as := tenant(ctx, "edit", "cluster-admin")
		refused := And(Satisfy(apierrors.IsForbidden), MatchError(ContainSubstring("omit the uid in spec.forkOf.projectRef")))
		acme := forge.Group("acme").In(space).Build()
		fork := func(uid string) *v1alpha1.Project {
			return forge.Project("web").In(acme).ForkOf(v1alpha1.Reference{ID: 7, UID: uid}).Build()
		}
		Eventually(func() error { return as.Create(ctx, fork("any"), client.DryRunAll) }).Should(refused)
		Expect(apply(ctx, as, fork("any"))).To(refused)
		web := forge.Project("web").In(acme).Build()
		Expect(as.Create(ctx, web)).To(Succeed())
		named := `{"spec":{"forkOf":{"projectRef":{"id":7,"uid":%q}}}}`
		Expect(as.Patch(ctx, web.DeepCopy(), patch(named, "any"))).To(refused)
		Expect(f.Live().Patch(ctx, web.DeepCopy(), patch(named, "any"))).To(Succeed(), "by a cluster administrator")
		Expect(as.Patch(ctx, web.DeepCopy(), patch(`{"metadata":{"labels":{"a":"b"}}}`))).To(Succeed(), "left as it is")
		Expect(as.Patch(ctx, web.DeepCopy(), patch(`{"spec":{"forkOf":null}}`))).To(Succeed(), "dropped")
		Expect(as.Create(ctx, forge.Project("other").In(acme).ForkOf(v1alpha1.Reference{ID: 7}).Build())).To(Succeed(), "without the uid")
	})

	It("does not turn a group into a group of personal projects: no tenant can mark a group as one", func(ctx SpecContext) {
		as := tenant(ctx, "edit", "cluster-admin")
		refused := And(Satisfy(apierrors.IsForbidden), MatchError(ContainSubstring("omit the label forgeplane.dev/personal and the annotation")))
		marked := forge.Group("acme").In(space).Build()
		marked.Labels = map[string]string{v1alpha1.LabelPersonal: "1"}
		Eventually(func() error { return as.Create(ctx, marked.DeepCopy(), client.DryRunAll) }).Should(refused)
		Expect(apply(ctx, as, marked.DeepCopy())).To(refused)
		acme := forge.Group("acme").In(space).Build()
		Expect(as.Create(ctx, acme)).To(Succeed())
		for _, mark := range []string{`{"metadata":{"labels":{"forgeplane.dev/personal":%q}}}`, `{"metadata":{"annotations":{"forgeplane.dev/personal-uid":%q}}}`} {
			Expect(as.Patch(ctx, acme.DeepCopy(), patch(mark, "1"))).To(refused, mark)
			Expect(f.Live().Patch(ctx, acme.DeepCopy(), patch(mark, "1"))).To(Succeed(), "by a cluster administrator")
			Expect(as.Patch(ctx, acme.DeepCopy(), patch(mark, "2"))).To(refused, mark)
		}
		Expect(as.Patch(ctx, acme.DeepCopy(), patch(`{"metadata":{"labels":{"a":"b"}}}`))).To(Succeed(), "left as it is")
		Expect(as.Patch(ctx, acme.DeepCopy(), patch(`{"metadata":{"labels":{"forgeplane.dev/personal":null}}}`))).To(Succeed(), "dropped")
	})

	It("can be kept, dropped and restored by a tenant who applies the same object again", func(ctx SpecContext) {
		as := tenant(ctx, "edit")
		f.Run()
		acme := forge.Group("acme").In(space).Build()
		Expect(apply(ctx, as, acme)).To(Succeed())
		f.ExpectReady(acme)
		id := acme.Status.ID
		Expect(id).NotTo(BeZero())
		Expect(apply(ctx, as, acme.DeepCopy())).To(Succeed(), "with the id")
		bare := forge.Group("acme").In(space).Build()
		Expect(apply(ctx, as, bare)).To(Succeed(), "by server-side apply without it")
		f.Refresh(acme)
		Expect(acme.Spec.ID).To(Equal(id), "it is Forgeplane's field")

		replaced := acme.DeepCopy()
		replaced.Spec.ID = 0
		Expect(as.Update(ctx, replaced)).To(Succeed(), "replaced without it")
		Expect(as.Patch(ctx, acme.DeepCopy(), patch(`{"spec":{"id":%d}}`, id))).To(Succeed(), "put back by the tenant")
		Expect(as.Patch(ctx, acme.DeepCopy(), patch(`{"spec":{"id":null}}`))).To(Succeed(), "patched away")
		Expect(as.Patch(ctx, acme.DeepCopy(), patch(`{"spec":{"id":%d}}`, id+1))).NotTo(Succeed())
		f.ExpectReady(acme)
		Expect(acme.Spec.ID).To(Equal(id), "put back by Forgeplane")
	})

	// record returns the record of a namespace.
	record := func(ctx context.Context, namespace string) *rbacv1.RoleBinding {
		GinkgoHelper()
		var b rbacv1.RoleBinding
		err := f.Live().Get(ctx, f.IDs.BindingKey(namespace), &b)
		Expect(client.IgnoreNotFound(err)).To(Succeed())
		return &b
	}
	// recorded waits until the ids of some objects, such as group.acme.7, and no others are recorded for their namespace.
	recorded := func(ctx context.Context, namespace string, subjects ...string) {
		GinkgoHelper()
		Eventually(func() (names []string) {
			for _, s := range record(ctx, namespace).Subjects {
				names = append(names, s.Name)
			}
			return names
		}).Should(ConsistOf(subjects))
	}
	// declared returns how an object with an id is recorded.
	declared := func(obj v1alpha1.Identified, id int64) string {
		GinkgoHelper()
		d, err := f.IDs.DeclarerOf(obj)
		Expect(err).NotTo(HaveOccurred())
		return fmt.Sprintf("%s.%s.%d", d.Kind, d.Name, id)
	}
	// allocated waits until an object has an id, and returns it.
	allocated := func(ctx context.Context, obj v1alpha1.Identified) (id int64) {
		GinkgoHelper()
		Eventually(func(g Gomega) {
			g.Expect(f.Live().Get(ctx, client.ObjectKeyFromObject(obj), obj)).To(Succeed())
			_, status := obj.IDs()
			id = *status
			g.Expect(id).NotTo(BeZero())
		}).Should(Succeed())
		return id
	}

	for _, serverSide := range []bool{true, false} {
		It(fmt.Sprintf("in a manifest can be applied again after the object was deleted, if it was that object's own (server-side: %t)", serverSide), func(ctx SpecContext) {
			as := tenant(ctx, "edit")
			f.Run()
			declare := func(obj v1alpha1.Identified) error {
				if serverSide {
					return apply(ctx, as, obj)
				}
				return applyClientSide(ctx, as, obj)
			}
			var all []string
			for _, obj := range identified() {
				By(fmt.Sprintf("declaring a %T", obj))
				bare := copyOf(obj)
				Expect(declare(bare)).To(Succeed())
				id := allocated(ctx, bare)
				Expect(declare(pin(obj, id))).To(Succeed())
				all = append(all, declared(obj, id))
				recorded(ctx, space, all...)

				By("deleting it, and declaring it again")
				Expect(as.Delete(ctx, copyOf(obj))).To(Succeed())
				f.ExpectGone(copyOf(obj))
				Expect(declare(pin(obj, id+1))).To(pinRefused, "with another id")
				Eventually(func() error { return declare(pin(obj, id)) }).Should(Succeed())
				Expect(allocated(ctx, bare)).To(Equal(id))
			}
		})
	}

	It("is not declared again where every service account may do everything", func(ctx SpecContext) {
		as := tenant(ctx, "edit")
		permissive := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "permissive-" + space}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "system:serviceaccounts"}},
		}
		Expect(f.Live().Create(ctx, permissive)).To(Succeed())
		allowed := func(ctx context.Context) bool {
			review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
				User: "system:serviceaccount:" + space + ":any", Groups: []string{"system:serviceaccounts"},
				ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: forge.PlatformNamespace, Group: "forgeplane.dev", Resource: "ids", Verb: "declare"},
			}}
			Expect(f.Live().Create(ctx, review)).To(Succeed())
			return review.Status.Allowed
		}
		DeferCleanup(func(ctx SpecContext) {
			Expect(f.Live().Delete(ctx, permissive)).To(Succeed())
			Eventually(allowed).WithContext(ctx).Should(BeFalse())
		})
		Eventually(allowed).WithContext(ctx).Should(BeTrue())
		Expect(as.Create(ctx, pin(forge.Group("acme").In(space).Build(), 77))).To(pinRefused)
	})

	It("is declared again for no other object and in no other namespace, whatever role a tenant has in the namespace", func(ctx SpecContext) {
		as := tenant(ctx, "edit", "cluster-admin")
		running := f.Run()
		acme := forge.Group("acme").In(space).Build()
		Expect(apply(ctx, as, acme)).To(Succeed())
		id := allocated(ctx, acme)
		again := func() v1alpha1.Identified { return pin(forge.Group("acme").In(space).Build(), id) }
		Expect(apply(ctx, as, again())).To(Succeed())
		recorded(ctx, space, declared(acme, id))
		Expect(as.Delete(ctx, acme.DeepCopy())).To(Succeed())
		f.ExpectGone(acme.DeepCopy())
		Eventually(func() error { return as.Create(ctx, again(), client.DryRunAll) }).Should(Succeed())

		generated := pin(forge.Group("acme").In(space).Build(), id)
		generated.SetName("")
		generated.SetGenerateName("acme")
		for _, obj := range []v1alpha1.Identified{
			generated, pin(forge.Group("acme-2").In(space).Build(), id), pin(forge.Project("acme").In(acme).Build(), id), pin(again(), id+1),
		} {
			Expect(as.Create(ctx, obj)).To(And(pinRefused, MatchError(ContainSubstring("only the id that a manifest of this object contained"))), "%T %s", obj, obj.GetName())
		}
		plain := forge.Group("plain").In(space).Build()
		Expect(as.Create(ctx, plain)).To(Succeed())
		Expect(allocated(ctx, plain)).NotTo(Equal(id))
		Expect(as.Patch(ctx, plain.DeepCopy(), patch(`{"spec":{"id":%d}}`, id))).NotTo(Succeed(), "an object that exists")

		By("writing the record, or another one")
		binding := record(ctx, space)
		Expect(as.Patch(ctx, binding.DeepCopy(), patch(`{"subjects":[]}`))).To(Satisfy(apierrors.IsForbidden))
		mine := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: forge.PlatformNamespace, Name: "mine"}, RoleRef: binding.RoleRef, Subjects: binding.Subjects}
		mine.Subjects[0].Name = declared(acme, id+1)
		Expect(as.Create(ctx, mine.DeepCopy())).To(Satisfy(apierrors.IsForbidden))
		Expect(as.Create(ctx, &rbacv1.Role{
			ObjectMeta: metav1.ObjectMeta{Namespace: space, Name: mine.RoleRef.Name},
			Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}},
		})).To(Succeed())
		mine.Namespace = space
		Expect(as.Create(ctx, mine)).To(Succeed())
		Eventually(func() bool {
			review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
				User:               "system:serviceaccount:" + mine.Subjects[0].Namespace + ":" + mine.Subjects[0].Name,
				ResourceAttributes: &authorizationv1.ResourceAttributes{Group: v1alpha1.GroupVersion.Group, Resource: "ids", Verb: "declare", Namespace: space},
			}}
			Expect(f.Live().Create(ctx, review)).To(Succeed())
			return review.Status.Allowed
		}).Should(BeTrue())
		Expect(as.Create(ctx, pin(again(), id+1))).To(pinRefused)

		By("losing the record")
		running.ExpectIdle()
		running.Stop()
		Expect(f.Live().Delete(ctx, binding)).To(Succeed())
		Eventually(func() error { return as.Create(ctx, again(), client.DryRunAll) }).Should(pinRefused)
		Expect(as.Create(ctx, forge.Group("acme").In(space).Build())).To(Succeed(), "without an id")
	})

	It("that an administrator has given to another object does not come back to the object that had it before", func(ctx SpecContext) {
		former := tenant(ctx, "edit")
		running := f.Run()
		bare := forge.Group("acme").In(space).Build()
		Expect(apply(ctx, former, bare.DeepCopy())).To(Succeed())
		id := allocated(ctx, bare.DeepCopy())
		again := func() v1alpha1.Identified { return pin(bare, id) }
		Expect(apply(ctx, former, again())).To(Succeed())
		recorded(ctx, space, declared(bare, id))
		Expect(former.Delete(ctx, bare.DeepCopy())).To(Succeed())
		f.ExpectGone(bare.DeepCopy())
		Eventually(func() error { return former.Create(ctx, again(), client.DryRunAll) }).Should(Succeed())

		By("giving it to an object that has no place yet")
		first := space
		space = f.NewNamespace()
		owner := tenant(ctx, "edit")
		Expect(owner.Create(ctx, again())).NotTo(Succeed())
		moved := forge.Group("moved").In(space).Below(forge.Group("missing").In(space).Build()).ID(id).Build()
		f.Create(moved)
		recorded(ctx, first)
		Eventually(func() error { return former.Create(ctx, again(), client.DryRunAll) }).Should(pinRefused)
		Expect(apply(ctx, owner, forge.Group("missing").In(space).Build())).To(Succeed())
		f.ExpectReady(moved)
		Expect(moved.Status.ID).To(Equal(id))
		recorded(ctx, space, declared(moved, id))

		By("deleting that object: only it can be declared with the id again")
		running.ExpectIdle()
		Expect(owner.Delete(ctx, moved.DeepCopy())).To(Succeed())
		f.ExpectGone(moved.DeepCopy())
		Expect(former.Create(ctx, again())).To(pinRefused)
		back := forge.Group("moved").In(space).Below(forge.Group("missing").In(space).Build()).ID(id).Build()
		Expect(apply(ctx, owner, back)).To(Succeed())
		f.ExpectReady(back)
		Expect(back.Status.ID).To(Equal(id))
	})

	It("does not come into force for another object while it can be declared for the former one", func(ctx SpecContext) {
		acme, moved := forge.Group("acme").In(space).ID(7).Build(), forge.Group("moved").In(f.NewNamespace()).ID(7).Build()
		var namespace corev1.Namespace
		Expect(f.Live().Get(ctx, client.ObjectKey{Name: space}, &namespace)).To(Succeed())
		d, err := f.IDs.DeclarerOf(acme)
		Expect(err).NotTo(HaveOccurred())
		subject, _ := ids.Subject(namespace.UID, d, 7)
		key := f.IDs.BindingKey(space)
		f.Create(&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}, Subjects: []rbacv1.Subject{subject},
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: ids.DeclareRole},
		}, moved)
		f.ExpectWaiting(moved, v1alpha1.ReasonProgressing, "id 7 belonged to "+space+"/acme")
		Expect(moved.Status.ID).To(BeZero())
		f.Run()
		f.ExpectReady(moved)
		recorded(ctx, space)
	})

	It("is recorded together with all others of its namespace, and forgotten with the namespace", func(ctx SpecContext) {
		const many = 200
		var all []string
		for i := range many {
			l := forge.Group(fmt.Sprintf("g-%d", i)).In(space).ID(int64(i + 1)).Build()
			f.Create(l)
			f.ExpectReady(l)
			all = append(all, declared(l, int64(i+1)))
		}
		running := f.Run()
		recorded(ctx, space, all...)
		running.ExpectIdle()
		Expect(slices.DeleteFunc(running.Writes.All(), func(w string) bool { return !strings.Contains(w, "/rolebindings") })).To(HaveLen(1))
		f.ExpectRestartWritesNothing()

		By("deleting the objects and the namespace")
		Expect(f.Live().DeleteAllOf(ctx, &v1alpha1.Group{}, client.InNamespace(space))).To(Succeed())
		recorded(ctx, space, all...)
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: space}}
		Expect(f.Live().Delete(ctx, namespace)).To(Succeed())
		Expect(client.IgnoreNotFound(f.Live().SubResource("finalize").Update(ctx, namespace))).To(Succeed())
		recorded(ctx, space)
	})

	It("that an administrator has pinned without success cannot be changed by the tenant", func(ctx SpecContext) {
		as := tenant(ctx, "edit")
		one, another := forge.Group("one").In(space).ID(5).Build(), forge.Group("another").In(space).ID(5).Build()
		f.Create(one, another)
		holder, stalled := forge.ByAge(one, another)
		f.ExpectReady(holder)
		f.ExpectStalled(stalled, v1alpha1.ReasonAlreadyExists)
		Expect(as.Patch(ctx, copyOf(stalled), patch(`{"metadata":{"labels":{"a":"b"}}}`))).To(Succeed(), "left as it is")
		Expect(as.Patch(ctx, copyOf(stalled), patch(`{"spec":{"id":null}}`))).To(Succeed(), "dropped")
		Expect(as.Patch(ctx, copyOf(stalled), patch(`{"spec":{"id":6}}`))).To(pinRefused, "another one")
		Expect(as.Patch(ctx, copyOf(stalled), patch(`{"spec":{"id":5}}`))).To(pinRefused, "the same one again")
		f.Run()
		f.ExpectReady(stalled)
		_, status := stalled.IDs()
		Expect(*status).NotTo(Equal(int64(5)))
	})

	for _, role := range []string{"writes-status", "cluster-admin"} {
		It("cannot be written to a status by a user with the role "+role+" in the namespace, nor can claims", func(ctx SpecContext) {
			if role == "writes-status" {
				role += "-" + space
				f.Create(&rbacv1.ClusterRole{
					ObjectMeta: metav1.ObjectMeta{Name: role},
					Rules: []rbacv1.PolicyRule{{
						APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"groups/status", "groups/finalizers"}, Verbs: []string{"patch", "update"},
					}},
				})
			}
			as := tenant(ctx, "edit", role)
			statusRefused := And(Satisfy(apierrors.IsForbidden), MatchError(ContainSubstring("leave the status to Forgeplane")))
			acme := forge.Group("acme").In(space).Build()
			f.Create(acme)
			for _, text := range []string{
				`{"spec":{"id":77},"status":{"observedGeneration":-1}}`, `{"status":{"id":77}}`, `{"status":{"claims":["path//victim"]}}`,
			} {
				Eventually(func() error { return as.Status().Patch(ctx, acme.DeepCopy(), patch("%s", text)) }).Should(statusRefused, text)
			}
			again := acme.DeepCopy()
			again.Status.ID = 77
			Expect(as.Status().Update(ctx, again)).To(statusRefused)
			f.Refresh(acme)
			Expect(acme.Spec.ID).To(BeZero())
			Expect(acme.Status.ID).To(BeZero())
			Expect(acme.Status.Claims).To(BeEmpty())
		})
	}

	It("can be pinned by cluster administrators, and by users who can restore backups and write in the namespace", func(ctx SpecContext) {
		as := restorer(ctx)
		acme := forge.Group("acme").In(space).ID(70).Build()
		Eventually(func() error { return as.Create(ctx, acme) }).Should(Succeed())
		for _, obj := range identified()[1:] {
			Expect(as.Create(ctx, pin(obj, 71))).To(Succeed(), "%T", obj)
		}
		other := forge.Group("other").In(f.NewNamespace()).ID(72).Build()
		Expect(as.Create(ctx, other.DeepCopy())).To(Satisfy(apierrors.IsForbidden))
		Expect(f.Live().Create(ctx, other)).To(Succeed())
	})

	It("can appear in references together with a uid, which only users who can restore backups can change", func(ctx SpecContext) {
		as := tenant(ctx, "edit", "admin")
		acme := forge.Group("acme").In(space).Build()
		member := forge.Membership(forge.User("ada").Build()).In(acme).Build()
		member.Spec.UserRef = v1alpha1.Reference{ID: 7, UID: "old"}
		label := forge.LabelTitled("bug").Of(acme).Build()
		label.Spec.GroupRef.UID = "old"
		web := forge.Project("web").In(acme).Build()
		Expect(as.Create(ctx, acme)).To(Succeed())
		for _, o := range []client.Object{member, label, web} {
			Expect(as.Create(ctx, o)).To(Succeed())
		}
		uidRefused := And(Satisfy(apierrors.IsForbidden), MatchError(ContainSubstring("leave the uid of the reference as it is")))
		changes := []struct {
			obj  client.Object
			text string
		}{
			{member, `{"spec":{"userRef":{"id":7,"uid":"new"}}}`},
			{member, `{"spec":{"userRef":{"id":7,"uid":null}}}`},
			{member, `{"spec":{"groupRef":{"name":"acme","uid":"new"}}}`},
			{label, `{"spec":{"groupRef":{"name":"acme","uid":null}}}`},
		}
		for _, c := range changes {
			Expect(as.Patch(ctx, c.obj.DeepCopyObject().(client.Object), patch("%s", c.text))).To(uidRefused, c.text)
		}
		Expect(as.Patch(ctx, member.DeepCopy(), patch(`{"spec":{"role":"Guest"}}`))).To(Succeed(), "what does not concern it")
		Expect(as.Patch(ctx, web.DeepCopy(), patch(`{"spec":{"groupRef":{"name":"acme","uid":"any"}}}`))).To(Succeed(), "a reference that is not fixed")
		restores := restorer(ctx)
		for _, c := range changes {
			Eventually(func() error { return restores.Patch(ctx, c.obj.DeepCopyObject().(client.Object), patch("%s", c.text)) }).Should(Succeed(), c.text)
		}
	})

	It("requires the right in all namespaces if its kind has no namespace", func(ctx SpecContext) {
		name := "writes-users-" + space
		f.Create(&rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Rules: []rbacv1.PolicyRule{{
				APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"users", "accesstokens"}, Verbs: []string{"create", "patch"},
			}},
		}, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: name}},
		})
		as := cluster.ClientOf(name)
		ada := forge.User("ada").Build()
		Eventually(func() error { return as.Create(ctx, ada.DeepCopy(), client.DryRunAll) }).Should(Succeed())
		Expect(as.Create(ctx, pin(ada, 77))).To(pinRefused)
		Expect(as.Create(ctx, pin(forge.AccessToken("t").For(ada).Build(), 77))).To(pinRefused)

		By("choosing the digest of a token")
		digestRefused := And(Satisfy(apierrors.IsForbidden), MatchError(ContainSubstring("omit spec.digest: name a Secret in spec.secretRef")))
		known := forge.AccessToken("known").For(ada).Digest(credential.Digest("a value of my choice")).Build()
		Expect(as.Create(ctx, known.DeepCopy())).To(digestRefused)
		token := forge.AccessToken("t").For(ada).Build()
		Expect(as.Create(ctx, token)).To(Succeed())
		Expect(as.Patch(ctx, token.DeepCopy(), patch(`{"spec":{"secretRef":null,"digest":"%s"}}`, known.Spec.Digest))).To(digestRefused)
		Expect(f.Live().Create(ctx, known)).To(Succeed(), "by an administrator of the cluster")
		Expect(as.Patch(ctx, known.DeepCopy(), patch(`{"spec":{"description":"kept"}}`))).To(Succeed())
	})
})

// apply applies an object in the way of "kubectl apply --server-side".
func apply(ctx context.Context, as client.Client, obj client.Object) error {
	GinkgoHelper()
	declared, text := manifest(as, obj)
	return as.Patch(ctx, declared, client.RawPatch(types.ApplyPatchType, text), client.FieldOwner("gitops"), client.ForceOwnership)
}

// applyClientSide applies an object in the way of "kubectl apply".
func applyClientSide(ctx context.Context, as client.Client, obj client.Object) error {
	GinkgoHelper()
	declared, text := manifest(as, obj)
	declared.SetAnnotations(map[string]string{corev1.LastAppliedConfigAnnotation: string(text)})
	if err := as.Get(ctx, client.ObjectKeyFromObject(declared), declared.DeepCopy()); apierrors.IsNotFound(err) {
		return as.Create(ctx, declared)
	}
	patch, err := declared.MarshalJSON()
	Expect(err).NotTo(HaveOccurred())
	return as.Patch(ctx, declared, client.RawPatch(types.MergePatchType, patch))
}

// manifest returns an object as it lies in Git.
func manifest(as client.Client, obj client.Object) (*unstructured.Unstructured, []byte) {
	GinkgoHelper()
	gvk, err := as.GroupVersionKindFor(obj)
	Expect(err).NotTo(HaveOccurred())
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	Expect(err).NotTo(HaveOccurred())
	declared := &unstructured.Unstructured{Object: map[string]any{"spec": fields["spec"]}}
	declared.SetGroupVersionKind(gvk)
	declared.SetNamespace(obj.GetNamespace())
	declared.SetName(obj.GetName())
	declared.SetLabels(obj.GetLabels())
	declared.SetAnnotations(obj.GetAnnotations())
	text, err := json.Marshal(declared)
	Expect(err).NotTo(HaveOccurred())
	return declared, text
}
