package tenancy_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/test/forge"
)

var _ = Describe("The finalizer of a project", func() {
	const finalizer = "forgeplane.dev/repository"
	var (
		f     *forge.Forge
		space string
		web   *v1alpha1.Project
	)
	BeforeEach(func() {
		f = forge.New(cluster, forge.Options{})
		space = f.NewNamespace()
		acme := forge.Group("acme").In(space).Build()
		web = forge.Project("web").In(acme).Build()
		web.Finalizers = []string{finalizer, "example.com/other"}
		f.Create(acme, web)
	})

	// in returns a client of a user with a ClusterRole in the namespace as soon as the role is in force.
	in := func(ctx SpecContext, role string) client.Client {
		GinkgoHelper()
		name := role + "@" + space
		f.Create(&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: space, Name: "has-" + role},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: name}},
		})
		as := cluster.ClientOf(name)
		Eventually(func() error { return as.Create(ctx, forge.Group("probe").In(space).Build(), client.DryRunAll) }).Should(Succeed())
		return as
	}
	refused := And(Satisfy(apierrors.IsForbidden), MatchError(And(ContainSubstring("leave the finalizer"), ContainSubstring("the verb release"))))
	merge := func(text string) client.Patch { return client.RawPatch(types.MergePatchType, []byte(text)) }

	for _, role := range tenants {
		It("can be removed by a user with the role "+role+" in the namespace, but not while the project is being deleted", func(ctx SpecContext) {
			as := in(ctx, role)
			Expect(as.Patch(ctx, web.DeepCopy(), merge(`{"metadata":{"finalizers":null}}`), client.DryRunAll)).To(Succeed(), "of one that stays")
			replaced := web.DeepCopy()
			replaced.Finalizers = nil
			Expect(as.Update(ctx, replaced, client.DryRunAll)).To(Succeed(), "as by kubectl replace")

			Expect(as.Delete(ctx, web.DeepCopy())).To(Succeed())
			Eventually(func() error {
				return as.Patch(ctx, web.DeepCopy(), merge(`{"metadata":{"finalizers":null}}`), client.DryRunAll)
			}).Should(refused, "policies come into force in their own time")
			for _, patch := range []client.Patch{
				merge(`{"metadata":{"finalizers":null}}`), merge(`{"metadata":{"finalizers":["example.com/other"]}}`),
				client.RawPatch(types.JSONPatchType, []byte(`[{"op":"remove","path":"/metadata/finalizers/0"}]`)),
			} {
				Expect(as.Patch(ctx, web.DeepCopy(), patch)).To(refused)
			}
			f.Refresh(web)
			replaced = web.DeepCopy()
			replaced.Finalizers = nil
			Expect(as.Update(ctx, replaced)).To(refused)

			By("changing whether the repository is removed")
			Expect(as.Patch(ctx, web.DeepCopy(), merge(`{"spec":{"deletionPolicy":"Delete"}}`))).To(Succeed())
			Expect(as.Patch(ctx, web.DeepCopy(), merge(`{"metadata":{"finalizers":["`+finalizer+`"]}}`))).To(Succeed(), "that of others")
		})
	}

	It("must be restored before a tenant can delete a project that has a repository", func(ctx SpecContext) {
		as := in(ctx, "admin")
		bare := func(storage string) {
			GinkgoHelper()
			f.Refresh(web)
			web.Finalizers = nil
			Expect(as.Update(ctx, web)).To(Succeed())
			Expect(f.Live().Status().Patch(ctx, web.DeepCopy(), merge(`{"status":{"storage":"`+storage+`"}}`))).To(Succeed())
		}
		bare("default")
		early := And(Satisfy(apierrors.IsForbidden), MatchError(ContainSubstring("delete the project again in a moment")))
		Eventually(func() error { return as.Delete(ctx, web.DeepCopy(), client.DryRunAll) }).Should(early, "policies come into force in their own time")
		Expect(as.Delete(ctx, web.DeepCopy())).To(early)
		Expect(as.DeleteAllOf(ctx, &v1alpha1.Project{}, client.InNamespace(space))).To(early)
		Expect(f.Live().Delete(ctx, web.DeepCopy(), client.DryRunAll)).To(Succeed(), "a cluster administrator may")
		Expect(as.Patch(ctx, web.DeepCopy(), merge(`{"metadata":{"finalizers":["`+finalizer+`"]}}`))).To(Succeed(), "as Forgeplane does")
		Expect(as.Delete(ctx, web.DeepCopy(), client.DryRunAll)).To(Succeed())
		bare("")
		Expect(as.Delete(ctx, web.DeepCopy())).To(Succeed(), "one without a repository")
	})

	It("can be removed by a cluster administrator, and by users with the verb release in all namespaces", func(ctx SpecContext) {
		name := "releases-" + space
		who := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: name + "@" + space}}
		rules := []rbacv1.PolicyRule{{APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"projects"}, Verbs: []string{"patch", "release"}}}
		f.Create(
			&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules},
			&rbacv1.ClusterRoleBinding{
				ObjectMeta: metav1.ObjectMeta{Name: name}, Subjects: who,
				RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
			},
		)
		f.Delete(web)
		as, take := cluster.ClientOf(name+"@"+space), merge(`{"metadata":{"finalizers":["example.com/other"]}}`)
		Eventually(func() error { return as.Patch(ctx, web.DeepCopy(), take, client.DryRunAll) }).Should(Succeed())
		Expect(f.Live().Patch(ctx, web.DeepCopy(), take)).To(Succeed())
	})
})
