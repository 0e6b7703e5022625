package tenancy_test

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/remotemirror"
	"github.com/forgeplane/forgeplane/internal/repository"
	"github.com/forgeplane/forgeplane/internal/triggertoken"
	"github.com/forgeplane/forgeplane/test/forge"
)

var _ = Describe("An editor of one namespace", func() {
	var w *world

	Describe("with a Group", func() {
		It("neither enters nor replaces the group of others", func() {
			w = newWorld()
			attempts := []attempt{
				{"the same path", forge.Group("acme").Build(), v1alpha1.ReasonAlreadyExists, "full path acme"},
				{"the same path in other letters", forge.Group("ACME").Build(), v1alpha1.ReasonAlreadyExists, "full path ACME"},
				{"the same id", forge.Group("other").ID(w.acme.Spec.ID).Build(), v1alpha1.ReasonAlreadyExists, "id "},
			}
			for how, ref := range refs("acme", "acme", w.acme.Spec.ID) {
				below := forge.Group("website").Build()
				below.Spec.ParentRef = &ref
				attempts = append(attempts, attempt{"below it by " + how, below, v1alpha1.ReasonReferenceNotFound, "parentRef"})
			}
			w.try(attempts...)
		})

		It("gains no rights in the group of others, even if that admits everybody", func() {
			w = newWorld()
			w.Change(w.acme, func() { w.acme.Spec.AllowedNamespaces = &v1alpha1.AllowedNamespaces{From: v1alpha1.NamespacesFromAll} })
			w.running.ExpectIdle()
			w.before = w.snapshot()
			below := forge.Group("below").In(w.space).BelowPath("acme").Build()
			w.declare(below)
			w.ExpectReady(below)
			w.try(
				attempt{"the path of a project", forge.Group("website").BelowPath("acme").Build(), v1alpha1.ReasonAlreadyExists, "full path acme/website"},
				attempt{"a project in the group itself", forge.Project("app").InPath(w.space, "acme").Build(), v1alpha1.ReasonReferenceNotFound, "groupRef"},
				attempt{"a member of the group itself", membership(w.mallory, nil, &v1alpha1.Reference{Path: "acme"}), v1alpha1.ReasonReferenceNotFound, "groupRef"},
				attempt{"a protection of the group itself", protecting("*", nil, &v1alpha1.Reference{Path: "acme"}), v1alpha1.ReasonReferenceNotFound, "groupRef"},
			)
			// Rights in a group below apply only there.
			w.declare(forge.Membership(w.mallory).In(below).As(v1alpha1.RoleOwner).Build())
			w.declare(forge.ProtectedBranch("*").Of(below).Push(forge.Role(v1alpha1.AccessNoOne)).Build())
			w.expectUntouched()
		})

		It("claims no path at the root that the installation has not given to the namespace, however old the claim", func() {
			f := forge.New(cluster, forge.Options{RootGroups: []catalog.RootGroupRule{{Namespace: "platform", Path: "*"}}})
			squat := forge.Group("acme").In(f.NewNamespace()).Build()
			f.Create(squat)
			f.ExpectStalled(squat, v1alpha1.ReasonNamespaceNotAllowed)
			_, err := f.Catalog.ByPath(GinkgoT().Context(), "acme")
			Expect(err).To(MatchError(catalog.ErrNotFound))
		})

		It("does not become the parent of a group whose reference names a path that no group can hold", func() {
			f := forge.New(cluster, forge.Options{})
			team, space := f.NewNamespace(), f.NewNamespace()
			f = forge.New(cluster, forge.Options{RootGroups: []catalog.RootGroupRule{{Namespace: team, Path: "*"}}})
			orphan := forge.Group("acme").In(team).BelowPath("platform").Build()
			website := forge.Project("website").In(orphan).Build()
			squat := forge.Group("platform").In(space).Admitting(v1alpha1.NamespacesFromAll).Build()
			mallory := forge.User("mallory").Build()
			f.Create(orphan, website, squat, mallory, forge.Membership(mallory).In(squat).As(v1alpha1.RoleOwner).Build())
			f.ExpectStalled(squat, v1alpha1.ReasonNamespaceNotAllowed)
			f.ExpectWaiting(orphan, v1alpha1.ReasonReferenceNotFound)
			_, err := f.Catalog.ProjectRole(GinkgoT().Context(), mallory, website, f.Clock.Now())
			Expect(err).To(MatchError(catalog.ErrNotFound))
		})
	})

	Describe("with a Project", func() {
		It("neither enters the group of others nor reaches their repository", func() {
			w = newWorld()
			attempts := []attempt{
				{"the same id", forge.Project("other").In(w.own).ID(w.website.Spec.ID).Build(), v1alpha1.ReasonAlreadyExists, "id "},
			}
			for how, ref := range refs("acme", "acme", w.acme.Spec.ID) {
				in := forge.Project("website").Build()
				in.Spec.GroupRef = ref
				attempts = append(attempts, attempt{"in it by " + how, in, v1alpha1.ReasonReferenceNotFound, "groupRef"})
			}
			w.try(attempts...)
			for _, a := range attempts {
				p := a.object.(*v1alpha1.Project)
				Expect(p.Status.Storage).To(BeEmpty(), a.what)
				Expect(repository.Path(p)).NotTo(Equal(repository.Path(w.website)))
			}
		})

		It("imports neither with a Secret of others nor from the disk of the server", func() {
			w = newWorld()
			directory := "file://" + w.storage.Spec.Path + "/" + repository.Path(w.website)
			w.try(
				attempt{"their Secret", forge.Project("a").In(w.own).ImportedFrom("http://127.0.0.1:1/x.git").ImportSecret(w.secret.Name).Build(),
					v1alpha1.ReasonReferenceNotFound, "there is no Secret import"},
				attempt{"the Secret of a token", forge.Project("b").In(w.own).ImportedFrom("http://127.0.0.1:1/x.git").ImportSecret("ada").Build(),
					v1alpha1.ReasonReferenceNotFound, "there is no Secret ada"},
				attempt{"their repository on the disc", forge.Project("c").In(w.own).ImportedFrom(directory).Build(), v1alpha1.ReasonInvalid, "file URLs"},
			)
			dotted := forge.Project("d").In(w.own).ImportedFrom("http://127.0.0.1:1/x.git").ImportSecret("../" + w.team + "/import").Build()
			w.declare(dotted)
			w.expectUntouched()
			ready := func() string { w.Refresh(dotted); return dotted.Status.Conditions[0].Reason }
			Expect(ready()).NotTo(Equal(v1alpha1.ReasonImporting))
		})
	})

	Describe("with a Membership", func() {
		It("becomes a member of nothing that belongs to others", func() {
			w = newWorld()
			var attempts []attempt
			for how, ref := range refs("acme", "acme", w.acme.Spec.ID) {
				attempts = append(attempts, attempt{"of the group by " + how, membership(w.mallory, nil, &ref), v1alpha1.ReasonReferenceNotFound, "groupRef"})
			}
			for how, ref := range refs("website", "acme/website", w.website.Spec.ID) {
				attempts = append(attempts, attempt{"of the project by " + how, membership(w.mallory, &ref, nil), v1alpha1.ReasonReferenceNotFound, "projectRef"})
			}
			w.try(attempts...)
		})

		It("can add others as members of objects in the namespace, and gains nothing from that", func() {
			w = newWorld()
			guest := forge.Membership(w.ada).In(w.mine).As(v1alpha1.RoleGuest).Build()
			w.declare(guest)
			w.ExpectReady(guest)
			w.expectUntouched()
		})
	})

	Describe("with a DeployKey", func() {
		It("adds no key to the project of others, and does not replace one of their keys", func() {
			w = newWorld()
			attempts := []attempt{
				{"the same id", forge.DeployKey("k").Of(w.mine).ID(w.key.Spec.ID).Build(), v1alpha1.ReasonAlreadyExists, "id "},
			}
			for how, ref := range refs("website", "acme/website", w.website.Spec.ID) {
				k := forge.DeployKey("k").ReadWrite().Build()
				k.Spec.ProjectRef = ref
				attempts = append(attempts, attempt{"of it by " + how, k, v1alpha1.ReasonReferenceNotFound, "projectRef"})
			}
			w.try(attempts...)
			keys, err := catalog.ListForProject[*v1alpha1.DeployKey](GinkgoT().Context(), w.Catalog, w.website)
			Expect(err).NotTo(HaveOccurred())
			Expect(keys).To(HaveLen(1))
		})
	})

	Describe("with a TriggerToken", func() {
		It("adds no token to the project of others", func() {
			w = newWorld()
			attempts := []attempt{
				{"the same id", forge.TriggerToken("t").Of(w.mine).ID(w.trigger.Spec.ID).Build(), v1alpha1.ReasonAlreadyExists, "id "},
			}
			for how, ref := range refs("website", "acme/website", w.website.Spec.ID) {
				t := forge.TriggerToken("t").Of(w.mine).Build()
				t.Spec.ProjectRef = ref
				attempts = append(attempts, attempt{"of it by " + how, t, v1alpha1.ReasonReferenceNotFound, "projectRef"})
			}
			w.try(attempts...)
			tokens, err := catalog.ListForProject[*v1alpha1.TriggerToken](GinkgoT().Context(), w.Catalog, w.website)
			Expect(err).NotTo(HaveOccurred())
			Expect(tokens).To(HaveLen(1))
		})

		It("neither uses nor invalidates a value or digest of others", func(ctx SpecContext) {
			w = newWorld()
			value := string(w.valueOf(w.trigger))
			w.declare(&corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: w.space, Name: "copied", Labels: map[string]string{v1alpha1.LabelSecret: v1alpha1.SecretOfTriggerToken},
				}, StringData: map[string]string{"value": value, "digest": w.trigger.Status.Digest},
			})
			w.try(attempt{"the value", forge.TriggerToken("t").Of(w.mine).Secret("copied", "value").Build(), v1alpha1.ReasonAlreadyExists, "another project"})
			digest := forge.TriggerToken("digest").Of(w.mine).Secret("copied", "digest").Build()
			digest.Status.Digest = w.trigger.Status.Digest
			w.declare(digest)
			w.ExpectReady(digest)
			Expect(triggertoken.ByValue(ctx, w.Catalog, w.website, value, w.Clock.Now())).To(HaveField("UID", w.trigger.UID))
			for _, wrong := range []string{value, w.trigger.Status.Digest} {
				found, err := triggertoken.ByValue(ctx, w.Catalog, w.mine, wrong, w.Clock.Now())
				Expect(found == nil || found.UID == digest.UID && wrong == w.trigger.Status.Digest).To(BeTrue(), "%v", err)
			}
			_, err := triggertoken.ByValue(ctx, w.Catalog, w.website, w.trigger.Status.Digest, w.Clock.Now())
			Expect(err).To(MatchError(catalog.ErrNotFound))
			w.expectUntouched()
		})

		It("reads no Secret of others, even one of the same name", func() {
			w = newWorld()
			var attempts []attempt
			for i, name := range []string{w.secret.Name, w.token.Spec.SecretRef.Name, w.trigger.Status.SecretRef.Name} {
				t := forge.TriggerToken(fmt.Sprintf("t-%d", i)).Of(w.mine).Secret(name, "token").Build()
				t.Status.SecretRef.Name = w.trigger.Status.SecretRef.Name
				attempts = append(attempts, attempt{"Secret " + name, t, v1alpha1.ReasonReferenceNotFound, "there is no Secret " + name})
			}
			w.try(attempts...)
			w.expectUntouched()
		})
	})

	Describe("with a BotToken", func() {
		It("gets no bot in a project or group of others", func() {
			w = newWorld()
			var attempts []attempt
			for how, ref := range refs("website", "acme/website", w.website.Spec.ID) {
				t := forge.BotToken("t").Of(w.mine).Build()
				t.Spec.ProjectRef = &ref
				attempts = append(attempts, attempt{"of the project by " + how, t, v1alpha1.ReasonReferenceNotFound, "projectRef"})
			}
			for how, ref := range refs("acme", "acme", w.acme.Spec.ID) {
				t := forge.BotToken("t").Of(w.mine).Build()
				t.Spec.ProjectRef, t.Spec.GroupRef = nil, &ref
				attempts = append(attempts, attempt{"of the group by " + how, t, v1alpha1.ReasonReferenceNotFound, "groupRef"})
			}
			w.try(attempts...)
		})

		It("neither uses nor takes over a value of others", func(ctx SpecContext) {
			w = newWorld()
			personal := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: forge.PlatformNamespace, Name: w.token.Spec.SecretRef.Name}}
			w.Refresh(personal)
			w.declare(&corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: w.space, Name: "copied", Labels: map[string]string{v1alpha1.LabelSecret: v1alpha1.SecretOfBotToken},
				}, Data: personal.Data,
			})
			w.try(
				attempt{"the value of an access token", forge.BotToken("t").Of(w.mine).Secret("copied", "token").Build(), v1alpha1.ReasonAlreadyExists, "another token"},
				attempt{"a Secret for another purpose", forge.BotToken("t").Of(w.mine).Secret(w.secret.Name, "password").Build(), v1alpha1.ReasonReferenceNotFound, "there is no Secret"},
			)
			Expect(w.editor.Create(ctx, forge.BotToken("digest").Of(w.mine).Digest(w.token.Status.Digest).Build())).
				To(MatchError(ContainSubstring("omit spec.digest")))
			w.expectUntouched()
		})
	})

	Describe("with a RegistryCleanup", func() {
		It("deletes no images of the project of others", func() {
			w = newWorld()
			var attempts []attempt
			for how, ref := range refs("website", "acme/website", w.website.Spec.ID) {
				m := forge.RegistryCleanup("c").Build()
				m.Spec.ProjectRef = ref
				attempts = append(attempts, attempt{"of it by " + how, m, v1alpha1.ReasonReferenceNotFound, "projectRef"})
			}
			w.try(attempts...)
		})
	})

	Describe("with a RemoteMirror", func() {
		It("receives nothing of the project of others", func() {
			w = newWorld()
			var attempts []attempt
			for how, ref := range refs("website", "acme/website", w.website.Spec.ID) {
				m := forge.RemoteMirror("m", "https://example.com/m.git").Build()
				m.Spec.ProjectRef = ref
				attempts = append(attempts, attempt{"of it by " + how, m, v1alpha1.ReasonReferenceNotFound, "projectRef"})
			}
			w.try(attempts...)
			mirrors, err := remotemirror.Of(GinkgoT().Context(), w.Catalog, w.website)
			Expect(err).NotTo(HaveOccurred())
			Expect(mirrors).To(BeEmpty())
		})
	})

	Describe("with a ProtectedBranch", func() {
		It("neither protects nor opens a branch of others", func() {
			w = newWorld()
			var attempts []attempt
			for how, ref := range refs("website", "acme/website", w.website.Spec.ID) {
				for _, branch := range []string{"main", "release/*", "*"} {
					b := protecting(branch, &ref, nil)
					attempts = append(attempts, attempt{branch + " of the project by " + how, b, v1alpha1.ReasonReferenceNotFound, "projectRef"})
				}
				b := protecting("main", &ref, nil)
				b.Labels = map[string]string{v1alpha1.LabelDefaultProtection: "true"}
				attempts = append(attempts, attempt{"as the project's own by " + how, b, v1alpha1.ReasonReferenceNotFound, "projectRef"})
			}
			for how, ref := range refs("acme", "acme", w.acme.Spec.ID) {
				attempts = append(attempts, attempt{"of the group by " + how, protecting("*", nil, &ref), v1alpha1.ReasonReferenceNotFound, "groupRef"})
			}
			attempts = append(attempts, attempt{"the same id", forge.ProtectedBranch("x").Of(w.mine).ID(w.protected.Spec.ID).Build(), v1alpha1.ReasonAlreadyExists, "id "})
			w.try(attempts...)
		})

		It("can name no group and no deploy key of others", func() {
			w = newWorld()
			var attempts []attempt
			level := func(what string, l v1alpha1.AccessLevel) {
				b := forge.ProtectedBranch(what + "/*").Of(w.mine).Push(l).Build()
				attempts = append(attempts, attempt{what, b, v1alpha1.ReasonReferenceNotFound, "push[0]"})
			}
			for how, ref := range refs("acme", "acme", w.acme.Spec.ID) {
				level("group-by-"+how[:2]+how[len(how)-1:], v1alpha1.AccessLevel{GroupRef: &ref})
			}
			for how, ref := range refs("ci", "", w.key.Spec.ID) {
				level("key-by-"+how, v1alpha1.AccessLevel{DeployKeyRef: &ref})
			}
			w.try(attempts...)
		})
	})

	Describe("with a Label", func() {
		It("neither adds a label to a project or group of others nor removes one", func() {
			w = newWorld()
			var attempts []attempt
			for _, title := range []string{"bug", "docs"} {
				for how, ref := range refs("website", "acme/website", w.website.Spec.ID) {
					attempts = append(attempts, attempt{title + " of the project by " + how, labelled(title, &ref, nil), v1alpha1.ReasonReferenceNotFound, "projectRef"})
				}
				for how, ref := range refs("acme", "acme", w.acme.Spec.ID) {
					attempts = append(attempts, attempt{title + " of the group by " + how, labelled(title, nil, &ref), v1alpha1.ReasonReferenceNotFound, "groupRef"})
				}
			}
			attempts = append(attempts, attempt{"the same id", forge.LabelTitled("x").Of(w.mine).ID(w.label.Spec.ID).Build(), v1alpha1.ReasonAlreadyExists, "id "})
			w.try(attempts...)
		})
	})

	It("cannot make an object of others be deleted with an object of the namespace", func() {
		w = newWorld()
		bait := forge.Group("bait").In(w.space).Build()
		w.declare(bait)
		w.ExpectReady(bait)
		// Tenants can only write owner references of their own objects, which can only cause the deletion of these objects.
		for i, owner := range []client.Object{w.acme, w.website, w.ada} {
			o := forge.Group("owned").In(w.space).Named(string(rune('a' + i))).Build()
			o.Spec.Path += o.Name
			gvk, err := w.Live().GroupVersionKindFor(owner)
			Expect(err).NotTo(HaveOccurred())
			o.OwnerReferences = []metav1.OwnerReference{{
				APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Name: owner.GetName(), UID: owner.GetUID(),
				Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
			}}
			w.declare(o)
		}
		Expect(w.editor.Delete(GinkgoT().Context(), bait)).To(Succeed())
		w.ExpectGone(bait)
		w.expectUntouched()
	})
})

func membership(u *v1alpha1.User, project, group *v1alpha1.Reference) *v1alpha1.Membership {
	m := forge.Membership(u).As(v1alpha1.RoleOwner).Build()
	m.Spec.ProjectRef, m.Spec.GroupRef = project, group
	return m
}

func protecting(branch string, project, group *v1alpha1.Reference) *v1alpha1.ProtectedBranch {
	b := forge.ProtectedBranch(branch).Push(forge.Role(v1alpha1.AccessDeveloper)).ForcePush().Build()
	b.Spec.ProjectRef, b.Spec.GroupRef = project, group
	return b
}

func labelled(title string, project, group *v1alpha1.Reference) *v1alpha1.Label {
	l := forge.LabelTitled(title).Build()
	l.Spec.ProjectRef, l.Spec.GroupRef = project, group
	return l
}
