package badge_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/internal/repository"
	"github.com/forgeplane/forgeplane/test/forge"
)

var _ = Describe("The rendered URLs of a badge", func() {
	link := func(b *v1alpha1.Badge) AsyncAssertion {
		return Eventually(func() string { f.Refresh(b); return b.Status.RenderedLinkURL }).WithPolling(10 * time.Millisecond)
	}

	It("follow the project, the group, and the groups above", func() {
		f.Run()
		below := forge.Group("below").Below(acme).Build()
		deep := forge.Project("deep").In(below).Build()
		f.Create(below, deep)
		b := forge.Badge("b").Of(deep).Link("https://a/%{project_path}/%{project_name}/%{project_title}/%{default_branch}/%{group_name}").Build()
		ofGroup := forge.Badge("g").Of(below).Link("https://a/%{group_name}").Build()
		f.Create(b, ofGroup)
		f.ExpectReady(b, ofGroup)
		link(b).Should(Equal("https://a/acme/below/deep/deep/deep/main/acme"))
		f.Change(deep, func() { deep.Spec.Name, deep.Spec.DefaultBranch = "Depth", "next/1" })
		link(b).Should(Equal("https://a/acme/below/deep/deep/Depth/next/1/acme"))
		f.Change(deep, func() { deep.Spec.Path = "deeper" })
		link(b).Should(Equal("https://a/acme/below/deeper/deeper/Depth/next/1/acme"))
		f.Change(acme, func() { acme.Spec.Path = "example" })
		link(b).Should(Equal("https://a/example/below/deeper/deeper/Depth/next/1/example"))
		link(ofGroup).Should(Equal("https://a/example"))
		Expect(b.Status.TargetPath).To(Equal("example/below/deeper"))
		f.ExpectReady(b, ofGroup)
		f.ExpectRestartWritesNothing()
	})

	It("appear with the project, and disappear when the project loses its path", func() {
		f.Run()
		later := forge.Project("later").In(acme).Build()
		b := forge.Badge("b").Of(later).Link("https://a/%{project_path}").Build()
		f.Create(b)
		f.ExpectWaiting(b, v1alpha1.ReasonReferenceNotFound, "projectRef: project later: not found")
		Expect(b.Status.RenderedLinkURL).To(BeEmpty())
		f.Create(later)
		f.ExpectReady(b)
		Expect(b.Status.RenderedLinkURL).To(Equal("https://a/acme/later"))
		f.Delete(acme)
		f.ExpectWaiting(b, v1alpha1.ReasonReferenceNotFound, "projectRef", "acme")
		Expect(b.Status.RenderedLinkURL).To(BeEmpty())
	})
})

var _ = Describe("The commit in the URLs of a badge", func() {
	It("is the head of the default branch from the first push on", func() {
		f.NewStorage("default")
		f.Run()
		f.ExpectReady(website)
		observer := repository.NewObserver(f.Repositories, f.Live())
		ctx, stop := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- observer.Start(ctx) }()
		DeferCleanup(func() {
			stop()
			Eventually(ended).Should(Receive(BeNil()))
		})
		worker := gittest.New(GinkgoTB(), "sha1")
		push := func(refspec string) string {
			GinkgoHelper()
			repo, err := f.Repositories.Of(GinkgoT().Context(), website)
			Expect(err).NotTo(HaveOccurred())
			worker.Git(GinkgoTB(), "push", "--quiet", repo.Dir(), refspec)
			observer.Pushed(client.ObjectKeyFromObject(website))
			return worker.Git(GinkgoTB(), "rev-parse", "HEAD")
		}
		b := forge.Badge("b").Of(website).Image("https://a/%{commit_sha}?%{default_branch}").Build()
		f.Create(b)
		f.ExpectReady(b)
		Expect(b.Status.RenderedImageURL).To(Equal("https://a/%{commit_sha}?main"))
		for _, file := range []string{"README", "more"} {
			worker.Commit(GinkgoTB(), file, "hello")
			commit := push("HEAD:refs/heads/main")
			f.Eventually(b).Should(HaveField("Status.RenderedImageURL", Equal("https://a/"+commit+"?main")))
		}
		worker.Commit(GinkgoTB(), "beside", "hello")
		push("HEAD:refs/heads/beside")
		f.Change(website, func() { website.Spec.DefaultBranch = "beside" })
		f.Eventually(b).Should(HaveField("Status.RenderedImageURL", Equal("https://a/"+worker.Git(GinkgoTB(), "rev-parse", "HEAD")+"?beside")))
		f.ExpectReady(b)
		f.ExpectRestartWritesNothing()
	})
})
