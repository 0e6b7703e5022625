package badge_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/test/forge"
)

var _ = Describe("A badge", func() {
	forge.DescribeIDs(func() *forge.Forge { return f }, func(name string) v1alpha1.Identified { return forge.Badge(name).Of(website).Build() })

	It("becomes ready, even if it is declared twice", func() {
		one, two := forge.Badge("one").Of(website).Build(), forge.Badge("two").Of(website).Build()
		one.Spec.Name, two.Spec.Name = "Build", "Build"
		f.Create(one, two)
		f.ExpectReady(one, two)
		Expect(one.Status.TargetPath).To(Equal("acme/website"))
		Expect(one.Status.RenderedLinkURL).To(Equal(one.Spec.LinkURL))
		Expect(one.Status.RenderedImageURL).To(Equal(one.Spec.ImageURL))
	})

	It("shows its URLs with the values of the project", func() {
		f.Change(website, func() { website.Spec.ID, website.Spec.Name = 7, `The "Website"` })
		b := forge.Badge("b").Of(website).
			Link("https://ci.example.com/%{project_path}/%{default_branch}?of=%{project_id}&at=%{commit_sha}").
			Image("https://%{project_name}.example.com/%{project_title}.svg?%{unknown}").Build()
		f.Create(b)
		f.ExpectReady(b)
		Expect(b.Status.RenderedLinkURL).To(Equal("https://ci.example.com/acme/website/main?of=7&at=%{commit_sha}"))
		Expect(b.Status.RenderedImageURL).To(Equal("https://website.example.com/The%20%22Website%22.svg?%{unknown}"))
	})

	It("shows the values of the group if it belongs to a group", func() {
		b := forge.Badge("b").Of(acme).Link("https://ci.example.com/%{group_name}/%{project_path}").Build()
		f.Create(b)
		f.ExpectReady(b)
		Expect(b.Status.TargetPath).To(Equal("acme"))
		Expect(b.Status.RenderedLinkURL).To(Equal("https://ci.example.com/acme/%{project_path}"))
	})

	DescribeTable("is refused by the schema",
		func(change func(b *v1alpha1.Badge), words string) {
			b := forge.Badge("b").Of(website).Build()
			change(b)
			f.ExpectRefused(b, words)
		},
		Entry("without a project or group", func(b *v1alpha1.Badge) { b.Spec.ProjectRef = nil }, "exactly one of the fields in [projectRef groupRef]"),
		Entry("with both", func(b *v1alpha1.Badge) { b.Spec.GroupRef = byName("acme") }, "exactly one of the fields in [projectRef groupRef]"),
		Entry("with another scheme", func(b *v1alpha1.Badge) { b.Spec.LinkURL = "javascript:alert(1)" }, "linkURL must begin with http:// or https:// and a host"),
		Entry("with another scheme of the image", func(b *v1alpha1.Badge) { b.Spec.ImageURL = "data:image/png,x" }, "imageURL must begin with http:// or https:// and a host"),
		Entry("with a placeholder for the scheme", func(b *v1alpha1.Badge) { b.Spec.LinkURL = "%{project_name}://example.com" }, "linkURL must begin with"),
		Entry("without a host", func(b *v1alpha1.Badge) { b.Spec.LinkURL = "https:///example.com" }, "linkURL must begin with"),
		Entry("with a space", func(b *v1alpha1.Badge) { b.Spec.LinkURL = "https://example.com/a b" }, "linkURL must not contain spaces"),
		Entry("with a line end", func(b *v1alpha1.Badge) { b.Spec.LinkURL = "https://example.com\n.example.org" }, "linkURL must not contain spaces"),
		Entry("with a backslash", func(b *v1alpha1.Badge) { b.Spec.ImageURL = `https://example.com\@example.org` }, "imageURL must not contain spaces"),
		Entry("with a quote", func(b *v1alpha1.Badge) { b.Spec.ImageURL = `https://example.com/"` }, "imageURL must not contain spaces"),
		Entry("with credentials", func(b *v1alpha1.Badge) { b.Spec.LinkURL = "https://ada:secret@example.com" }, "linkURL must not contain credentials"),
		Entry("with credentials by a placeholder", func(b *v1alpha1.Badge) { b.Spec.ImageURL = "https://%{project_name}@example.com/a" }, "imageURL must not contain credentials"),
		Entry("with too long a URL", func(b *v1alpha1.Badge) { b.Spec.LinkURL = "https://example.com/" + strings.Repeat("a", 2048) }, "spec.linkURL"),
		Entry("with too long a name", func(b *v1alpha1.Badge) { b.Spec.Name = strings.Repeat("a", 256) }, "spec.name"),
	)

	It("cannot move to another project, but can change everything else", func() {
		b := forge.Badge("b").Of(website).Build()
		f.Create(b)
		f.ExpectChangeRefused(b, func() { b.Spec.ProjectRef, b.Spec.GroupRef = nil, byName("acme") }, "cannot replace each other")
		f.Change(b, func() {
			b.Spec.Name, b.Spec.LinkURL, b.Spec.ImageURL = "Other", "HTTP://%{project_name}", "https://a/%{project_name}"
		})
		f.ExpectReady(b)
		Expect(b.Status.RenderedLinkURL).To(Equal("HTTP://website"))
		Expect(b.Status.RenderedImageURL).To(Equal("https://a/website"))
	})
})

var _ = Describe("A badge:", func() {
	forge.DescribeTarget("a badge", forge.ProjectsAndGroups, func() *forge.Forge { return f },
		func(name string, project, group *v1alpha1.Reference) v1alpha1.Targeted {
			b := forge.Badge(name).Build()
			b.Spec.ProjectRef, b.Spec.GroupRef = project, group
			return b
		})

	It("shows no rendered URL while its target is not found", func() {
		b := forge.Badge("b").Of(website).Link("https://a/%{project_path}").Build()
		b.Namespace = f.NewNamespace()
		f.Create(b)
		f.ExpectWaiting(b, v1alpha1.ReasonReferenceNotFound)
		Expect(b.Status.RenderedLinkURL).To(BeEmpty())
	})
})
