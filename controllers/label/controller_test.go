package label_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/test/forge"
)

var _ = Describe("A label", func() {
	forge.DescribeIDs(func() *forge.Forge { return f }, func(name string) v1alpha1.Identified {
		return forge.LabelTitled(name).Of(website).Build()
	})

	It("becomes ready, with its colors", func() {
		l := forge.LabelTitled("bug").Of(website).Color("#D9534F").Build()
		f.Create(l)
		f.ExpectReady(l)
		Expect(l.Status.TargetPath).To(Equal("acme/team/website"))
		Expect(l.Status.Color).To(Equal("#D9534F"))
		Expect(l.Status.TextColor).To(Equal("#FFFFFF"))
		f.Change(l, func() { l.Spec.Color = "white" })
		f.ExpectReady(l)
		Expect(l.Spec.Color).To(Equal("white"))
		Expect(l.Status.Color).To(Equal("#FFFFFF"))
		Expect(l.Status.TextColor).To(Equal("#1F1E24"))
	})

	It("is invalid with an unknown color", func() {
		l := forge.LabelTitled("bug").Of(website).Color("reddish").Build()
		f.Create(l)
		f.ExpectStalled(l, v1alpha1.ReasonInvalid, "color reddish is not valid", "the name of a CSS color")
		Expect(l.Status.Color).To(BeEmpty())
		Expect(l.Status.TextColor).To(BeEmpty())
		f.Change(l, func() { l.Spec.Color = "red" })
		f.ExpectReady(l)
	})

	DescribeTable("is refused by the schema",
		func(change func(l *v1alpha1.Label), words string) {
			l := forge.LabelTitled("bug").Of(website).Build()
			change(l)
			f.ExpectRefused(l, words)
		},
		Entry("without a project or group", func(l *v1alpha1.Label) { l.Spec.ProjectRef = nil }, "exactly one of the fields in [projectRef groupRef]"),
		Entry("with both", func(l *v1alpha1.Label) { l.Spec.GroupRef = byName("acme") }, "exactly one of the fields in [projectRef groupRef]"),
		Entry("with a reference to two things", func(l *v1alpha1.Label) { l.Spec.ProjectRef.Path = "acme/team/website" }, "exactly one of the fields in [name path id]"),
		Entry("without a title", func(l *v1alpha1.Label) { l.Spec.Title = "" }, "spec.title"),
		Entry("with a comma", func(l *v1alpha1.Label) { l.Spec.Title = "a,b" }, "spec.title"),
		Entry("with a leading blank", func(l *v1alpha1.Label) { l.Spec.Title = " a" }, "spec.title"),
		Entry("with a trailing blank", func(l *v1alpha1.Label) { l.Spec.Title = "a " }, "spec.title"),
		Entry("with a control character", func(l *v1alpha1.Label) { l.Spec.Title = "a\x1bb" }, "spec.title"),
		Entry("with a line end", func(l *v1alpha1.Label) { l.Spec.Title = "a\n" }, "spec.title"),
		Entry("with a title that is too long", func(l *v1alpha1.Label) { l.Spec.Title = strings.Repeat("a", 256) }, "spec.title"),
		Entry("without a color", func(l *v1alpha1.Label) { l.Spec.Color = "" }, "spec.color"),
		Entry("with too few digits", func(l *v1alpha1.Label) { l.Spec.Color = "#ab" }, "spec.color"),
		Entry("with a number of digits between the two forms", func(l *v1alpha1.Label) { l.Spec.Color = "#abcd" }, "spec.color"),
		Entry("with digits that are not hexadecimal", func(l *v1alpha1.Label) { l.Spec.Color = "#abcdeg" }, "spec.color"),
		Entry("with more than a color", func(l *v1alpha1.Label) { l.Spec.Color = "red;x:url(a)" }, "spec.color"),
		Entry("with a description that is too long", func(l *v1alpha1.Label) { l.Spec.Description = strings.Repeat("a", 4097) }, "spec.description"),
		Entry("with a negative priority", func(l *v1alpha1.Label) { l.Spec.Priority = ptr.To[int32](-1) }, "spec.priority"),
		Entry("with a group and a priority", func(l *v1alpha1.Label) {
			l.Spec.ProjectRef, l.Spec.GroupRef, l.Spec.Priority = nil, byName("acme"), ptr.To[int32](0)
		}, "labelPriorities"),
	)

	DescribeTable("accepts as a title",
		func(title string) {
			l := forge.LabelTitled("any").Of(website).Build()
			l.Spec.Title = title
			f.Create(l)
			f.ExpectReady(l)
		},
		Entry("one character", "0"), Entry("anything but commas", "type::bug & more? 100% ~ #1/2"), Entry("characters beyond ASCII", "große Ändérung 🐛"),
		Entry("as many characters as fit", strings.Repeat("ä", 255)),
	)

	It("can change everything except its project or group", func() {
		l := forge.LabelTitled("bug").Of(website).Build()
		f.Create(l)
		f.ExpectChangeRefused(l, func() { l.Spec.ProjectRef, l.Spec.GroupRef = nil, byName("acme") }, "cannot replace each other")
		f.Change(l, func() {
			l.Spec.Title, l.Spec.Color, l.Spec.Description, l.Spec.Priority = "defect", "#000", "Something is **wrong**", ptr.To[int32](0)
		})
		f.ExpectReady(l)
	})

	It("is not changed by a restart", func() {
		f.NewStorage("default")
		running := f.Run()
		ofProject, ofGroup := forge.LabelTitled("bug").Of(website).Build(), forge.LabelTitled("docs").Of(acme).Build()
		f.Create(ofProject, ofGroup)
		f.ExpectReady(website, ofProject, ofGroup)
		running.ExpectIdle()
		f.ExpectRestartWritesNothing()
	})
})

var _ = Describe("A label:", func() {
	forge.DescribeTarget("a label", forge.ProjectsAndGroups, func() *forge.Forge { return f },
		func(name string, project, group *v1alpha1.Reference) v1alpha1.Targeted {
			l := forge.LabelTitled(name).Build()
			l.Spec.ProjectRef, l.Spec.GroupRef = project, group
			return l
		})
})

var _ = Describe("A title that two labels have", func() {
	DescribeTable("belongs to the older label, and the younger one takes over when that is deleted",
		func(other *v1alpha1.Reference) {
			f.Change(website, func() { website.Spec.ID = 8 })
			f.Run()
			a := forge.LabelTitled("bug").Of(website).Named("a").Build()
			b := forge.LabelTitled("bug").Of(website).Named("b").Build()
			b.Spec.ProjectRef = other
			older, younger := forge.CreateInTurn(f, a, b)
			f.ExpectReady(older)
			f.ExpectStalled(younger, v1alpha1.ReasonAlreadyExists, "the title bug in acme/team/website is held by Label "+older.Name)
			f.Delete(older)
			f.ExpectReady(younger)
		},
		Entry("by name", byName("website")),
		Entry("by full path", byPath("Acme/Team/Website")),
		Entry("by id", byID(8)),
	)

	It("belongs to an older label of a group above until that is renamed, and then to the next label below", func() {
		f.Run()
		above := forge.LabelTitled("bug").Of(acme).Named("above").Build()
		f.Create(above)
		forge.UntilYounger(above)
		ofTeam, ofProject := forge.LabelTitled("bug").Of(team).Named("of-team").Build(), forge.LabelTitled("bug").Of(website).Named("of-project").Build()
		f.Create(ofTeam)
		forge.UntilYounger(ofTeam)
		f.Create(ofProject)
		f.ExpectReady(above)
		f.ExpectStalled(ofTeam, v1alpha1.ReasonAlreadyExists, "the title bug in acme/team is held by Label above")
		f.ExpectStalled(ofProject, v1alpha1.ReasonAlreadyExists, "the title bug in acme/team/website is held by Label above")
		f.Change(above, func() { above.Spec.Title = "defect" })
		f.ExpectReady(ofTeam)
		f.ExpectStalled(ofProject, v1alpha1.ReasonAlreadyExists, "the title bug in acme/team/website is held by Label of-team")
		f.Delete(ofTeam)
		f.ExpectReady(ofProject)
		f.Change(above, func() { above.Spec.Title = "bug" })
		f.ExpectReady(above, ofProject)
		f.ExpectRestartWritesNothing()
	})

	It("is free again when the project moves away from the group that has it", func() {
		f.Run()
		aside := forge.Group("aside").In(namespace).Build()
		above := forge.LabelTitled("bug").Of(acme).Named("above").Build()
		f.Create(aside, above)
		forge.UntilYounger(above)
		below := forge.LabelTitled("bug").Of(website).Named("below").Build()
		f.Create(below)
		f.ExpectStalled(below, v1alpha1.ReasonAlreadyExists, "above")
		f.Change(website, func() { website.Spec.GroupRef = *byName("aside") })
		f.ExpectReady(below)
		Expect(below.Status.TargetPath).To(Equal("aside/website"))
	})

	It("is available to a label of a group, even if a label below has it", func() {
		below := forge.LabelTitled("bug").Of(website).Named("below").Build()
		f.Create(below)
		forge.UntilYounger(below)
		above := forge.LabelTitled("bug").Of(acme).Named("above").Build()
		f.Create(above)
		f.ExpectReady(below)
		f.ExpectReady(above)
	})

	It("can exist in another project, in another case, and in another namespace", func() {
		other := forge.Project("other").In(team).Build()
		f.Create(other)
		all := []*v1alpha1.Label{
			forge.LabelTitled("bug").Of(website).Named("a").Build(), forge.LabelTitled("Bug").Of(website).Named("b").Build(),
			forge.LabelTitled("bug").Of(other).Named("c").Build(),
		}
		elsewhere := forge.LabelTitled("bug").Of(website).Build()
		elsewhere.Namespace, elsewhere.Spec.ProjectRef = f.NewNamespace(), byPath("acme/team/website")
		f.Create(elsewhere)
		f.ExpectWaiting(elsewhere, v1alpha1.ReasonReferenceNotFound)
		forge.UntilYounger(elsewhere)
		for _, l := range all {
			f.Create(l)
		}
		for _, l := range all {
			f.ExpectReady(l)
		}
	})

	It("is inherited by the groups of another namespace", func() {
		f.Change(acme, func() { acme.Spec.AllowedNamespaces = &v1alpha1.AllowedNamespaces{From: v1alpha1.NamespacesFromAll} })
		guests := forge.Group("guests").In(f.NewNamespace()).BelowPath("acme").Build()
		app := forge.Project("app").In(guests).Build()
		above := forge.LabelTitled("bug").Of(acme).Build()
		f.Create(guests, app, above)
		forge.UntilYounger(above)
		below := forge.LabelTitled("bug").Of(app).Build()
		f.Create(below)
		f.ExpectReady(above)
		f.ExpectStalled(below, v1alpha1.ReasonAlreadyExists, "held by Label "+namespace+"/bug")
	})
})

var _ = Describe("An id that is pinned while another label has it", func() {
	It("passes on when that label is deleted, as in a move from a project to its group", func() {
		f.Run()
		ofProject := forge.LabelTitled("bug").Of(website).Named("of-project").Build()
		f.Create(ofProject)
		f.ExpectReady(ofProject)
		forge.UntilYounger(ofProject)
		ofGroup := forge.LabelTitled("bug").Of(team).Named("of-group").ID(ofProject.Spec.ID).Build()
		f.Create(ofGroup)
		f.ExpectStalled(ofGroup, v1alpha1.ReasonAlreadyExists, "id", "of-project")
		f.ExpectReady(ofProject)
		f.Delete(ofProject)
		f.ExpectReady(ofGroup)
		Expect(ofGroup.Status.ID).To(Equal(ofProject.Spec.ID))
	})
})
