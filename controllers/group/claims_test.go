package group_test

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/test/forge"
)

// expectRead expects that another process, whose cache may be outdated, finds a group by a full path.
func expectRead(path string, g *v1alpha1.Group) {
	GinkgoHelper()
	Eventually(f.Catalog.ByPath).WithArguments(GinkgoT().Context(), path).Should(HaveField("UID", g.UID))
}

// expectHolder expects that all readers find a group by a full path.
func expectHolder(path string, g *v1alpha1.Group) {
	GinkgoHelper()
	f.ExpectReady(g)
	expectRead(path, g)
	Expect(g.Status.FullPath).To(Equal(path))
}

var _ = Describe("The holder of a full path", func() {
	var old, acme *v1alpha1.Group

	// Old exists before acme, in another namespace.
	BeforeEach(func() {
		old = forge.Group("old").In(f.NewNamespace()).Build()
		acme = forge.Group("acme").In(namespace).Build()
		f.Run()
		f.Create(old)
		forge.UntilYounger(old)
		f.Create(acme)
		f.ExpectReady(old, acme)
	})

	It("keeps it when an older group is renamed to it, and keeps everything below it", func() {
		team := forge.Group("team").In(namespace).BelowPath("acme").Build()
		f.Create(team)
		f.ExpectReady(team)
		f.Change(old, func() { old.Spec.Path = "ACME" })
		f.ExpectStalled(old, v1alpha1.ReasonAlreadyExists, "full path ACME is held by Group "+namespace+"/acme")
		expectHolder("acme", acme)
		expectHolder("acme/team", team)
		f.ExpectRestartWritesNothing()
	})

	It("keeps it when an older group moves to the place", func() {
		top := forge.Group("top").In(namespace).Admitting(v1alpha1.NamespacesFromAll).Build()
		held := forge.Group("old").Below(top).Build()
		f.Create(top, held)
		f.ExpectReady(top, held)
		f.Change(old, func() { old.Spec.ParentRef = &v1alpha1.Reference{Path: "top"} })
		f.ExpectStalled(old, v1alpha1.ReasonAlreadyExists, "full path top/old is held by Group "+namespace+"/old")
		expectHolder("top/old", held)
	})

	It("keeps it while it is being deleted, and until it is gone", func() {
		f.Change(acme, func() { acme.Finalizers = append(acme.Finalizers, forge.Hold) })
		f.Delete(acme)
		f.Change(old, func() { old.Spec.Path = "acme" })
		f.ExpectStalled(old, v1alpha1.ReasonAlreadyExists, "is held by Group "+namespace+"/acme")
		expectRead("acme", acme)
		f.Change(acme, func() { acme.Finalizers = nil })
		expectHolder("acme", old)
	})

	It("gives it up by its own change, and does not get it back from the next holder", func() {
		f.Change(acme, func() { acme.Spec.Path = "other" })
		next := forge.Group("acme").In(old.Namespace).Build()
		f.Create(next)
		f.ExpectReady(next, acme)
		f.Change(acme, func() { acme.Spec.Path = "acme" })
		f.ExpectStalled(acme, v1alpha1.ReasonAlreadyExists, "is held by Group "+old.Namespace+"/acme")
		expectHolder("acme", next)
	})

	It("can give it up while it is being deleted, and then claims nothing else", func() {
		f.Change(acme, func() { acme.Finalizers = append(acme.Finalizers, forge.Hold) })
		f.Delete(acme)
		f.Change(acme, func() { acme.Spec.Path = "free" })
		f.Change(old, func() { old.Spec.Path = "acme" })
		expectHolder("acme", old)
		f.Change(acme, func() { acme.Spec.Path = "acme" })
		expectHolder("acme", old)
		f.Change(acme, func() { acme.Finalizers = nil })
	})
})

var _ = Describe("The parent path or id of a group", func() {
	var acme, team *v1alpha1.Group
	begin := func(below func(b *forge.GroupBuilder)) {
		acme = forge.Group("acme").In(namespace).ID(7).Admitting(v1alpha1.NamespacesFromAll).Build()
		b := forge.Group("team").In(f.NewNamespace())
		below(b)
		team = b.Build()
		f.Run()
		f.Create(acme, team)
		f.ExpectReady(acme, team)
		expectHolder("acme/team", team)
	}
	byPath := func(b *forge.GroupBuilder) { b.BelowPath("acme") }
	// taken makes another tenant claim the path and the id.
	taken := func() *v1alpha1.Group {
		GinkgoHelper()
		other := forge.Group("acme").In(f.NewNamespace()).ID(7).Admitting(v1alpha1.NamespacesFromAll).Build()
		f.Create(other)
		f.ExpectReady(other)
		return other
	}
	expectAlone := func() {
		GinkgoHelper()
		f.ExpectWaiting(team, v1alpha1.ReasonReferenceNotReady, "parentRef: ", "belongs to a different group", "set its uid in parentRef")
		Expect(team.Status.FullPath).To(BeEmpty())
		Eventually(func() error {
			_, err := f.Catalog.ByPath(GinkgoT().Context(), "acme/team")
			return err
		}).Should(MatchError(catalog.ErrNotFound))
		_, err := f.Catalog.Ancestors(GinkgoT().Context(), team)
		Expect(err).To(MatchError(catalog.ErrParentReplaced), "whoever asks for the roles in it")
	}

	DescribeTable("does not bring it below a group of another tenant until its reference names that group",
		func(below func(b *forge.GroupBuilder)) {
			begin(below)
			f.Delete(acme)
			f.ExpectWaiting(team, v1alpha1.ReasonReferenceNotFound)
			f.Change(team, func() { team.Spec.Description = "Nobody has the path now." })
			f.ExpectWaiting(team, v1alpha1.ReasonReferenceNotFound)
			other := taken()
			expectAlone()
			f.Change(team, func() { team.Spec.Description, team.Spec.ID = "Replaced without the id.", 0 })
			expectAlone()
			f.ExpectRestartWritesNothing()
			f.Change(team, func() { team.Spec.ParentRef.UID = string(other.UID) })
			expectHolder("acme/team", team)
		},
		Entry("by path", byPath),
		Entry("by id", func(b *forge.GroupBuilder) { b.BelowID(7) }),
	)

	It("brings it back when the holder returns", func() {
		begin(byPath)
		f.Change(acme, func() { acme.Spec.Path = "elsewhere" })
		f.ExpectWaiting(team, v1alpha1.ReasonReferenceNotFound)
		other := forge.Group("acme").In(f.NewNamespace()).Admitting(v1alpha1.NamespacesFromAll).Build()
		f.Create(other)
		f.ExpectReady(other)
		expectAlone()
		f.Delete(other)
		f.Change(acme, func() { acme.Spec.Path = "acme" })
		expectHolder("acme/team", team)
	})

	It("accepts the first group that gets the path after the reference has changed", func() {
		begin(byPath)
		f.Change(team, func() { team.Spec.ParentRef.Path = "bolt" })
		f.ExpectWaiting(team, v1alpha1.ReasonReferenceNotFound)
		f.Create(forge.Group("bolt").In(f.NewNamespace()).Admitting(v1alpha1.NamespacesFromAll).Build())
		expectHolder("bolt/team", team)
	})

	It("accepts a new group of its own namespace if no other namespace declares anything", func() {
		begin(byPath)
		f.Delete(acme)
		f.Create(forge.Group("acme").In(team.Namespace).Build())
		expectHolder("acme/team", team)
	})
})

var _ = Describe("A group that is being deleted", func() {
	It("stays above its subgroups, and cannot be a new parent", func() {
		f.NewStorage("default")
		f.Run()
		acme, web := forge.Group("acme").In(namespace).Build(), forge.Group("web").In(namespace).Build()
		team := forge.Group("team").Below(acme).Build()
		f.Create(acme, team, web)
		f.ExpectReady(acme, team, web)
		f.Change(acme, func() { acme.Finalizers = append(acme.Finalizers, forge.Hold) })
		f.Delete(acme)

		fresh, project := forge.Group("fresh").Below(acme).Build(), forge.Project("site").In(acme).Build()
		f.Create(fresh, project)
		f.Change(web, func() { web.Spec.ParentRef = &v1alpha1.Reference{Name: "acme"} })
		for _, o := range []v1alpha1.Object{fresh, project, web} {
			f.ExpectWaiting(o, v1alpha1.ReasonReferenceNotReady, "the group acme is being deleted")
		}
		expectHolder("acme/team", team)

		f.Change(acme, func() { acme.Finalizers = nil })
		f.ExpectWaiting(fresh, v1alpha1.ReasonReferenceNotFound, "acme")
		f.ExpectWaiting(team, v1alpha1.ReasonReferenceNotFound, "acme")
	})

	It("leads nowhere once it has given up its path, and neither does what is in it", func() {
		f.Run()
		acme := forge.Group("acme").In(namespace).Build()
		team := forge.Group("team").Below(acme).Build()
		f.Create(acme, team)
		f.ExpectReady(acme, team)
		f.Change(acme, func() { acme.Finalizers = append(acme.Finalizers, forge.Hold) })
		f.Delete(acme)
		f.Change(acme, func() { acme.Spec.Path = "free" })
		f.ExpectWaiting(team, v1alpha1.ReasonReferenceNotReady, "a parent group does not hold its own full path")
		Expect(team.Status.FullPath).To(BeEmpty())

		next := forge.Group("free").In(f.NewNamespace()).Build()
		f.Create(next)
		expectHolder("free", next)
		f.Change(acme, func() { acme.Finalizers = nil })
	})
})

var _ = Describe("The path of a user at the root", func() {
	var dana *v1alpha1.User
	var other *v1alpha1.Group

	BeforeEach(func() {
		dana = forge.User("dana").Build()
		other = forge.Group("Dana").In(f.NewNamespace()).Build()
		f.Run()
	})

	It("is reserved for the group of their personal projects, even if another group is older", func() {
		f.Create(dana)
		f.ExpectReady(dana)
		f.Create(other)
		f.ExpectStalled(other, v1alpha1.ReasonAlreadyExists, "full path Dana: it belongs to the user of that username, for their personal projects")
		forge.UntilYounger(other)
		personal := forge.Group("dana").In(namespace).Build()
		personal.Labels = map[string]string{v1alpha1.LabelPersonal: fmt.Sprint(dana.Status.ID)}
		personal.Annotations = map[string]string{v1alpha1.AnnotationPersonal: string(dana.UID)}
		f.Create(personal)
		expectHolder("dana", personal)
		f.ExpectRestartWritesNothing()
	})

	It("is not available to the group of another user, even with the user's id", func() {
		f.Create(dana)
		f.ExpectReady(dana)
		other.Labels = map[string]string{v1alpha1.LabelPersonal: fmt.Sprint(dana.Status.ID)}
		other.Annotations = map[string]string{v1alpha1.AnnotationPersonal: "somebody-else"}
		f.Create(other)
		f.ExpectStalled(other, v1alpha1.ReasonAlreadyExists)
	})

	It("stays with a group that held it before the user existed", func() {
		f.Create(other)
		f.ExpectReady(other)
		f.Create(dana)
		f.ExpectReady(dana)
		f.Change(other, func() { other.Spec.Name = "Dana's team" })
		expectHolder("Dana", other)
	})

	DescribeTable("is free when the user",
		func(goes func()) {
			f.Create(dana)
			f.ExpectReady(dana)
			f.Create(other)
			f.ExpectStalled(other, v1alpha1.ReasonAlreadyExists)
			goes()
			expectHolder("Dana", other)
		},
		Entry("is renamed", func() { f.Change(dana, func() { dana.Spec.Username = "dora" }) }),
		Entry("is deleted", func() { f.Delete(dana) }),
	)
})
