package protectedbranch_test

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/internal/repository"
	"github.com/forgeplane/forgeplane/test/forge"
)

var _ = Describe("The branches that a protection matches", func() {
	var observer *repository.Observer
	var worker *gittest.Client
	BeforeEach(func() {
		f.NewStorage("default")
		f.Run()
		f.ExpectReady(website)
		observer = repository.NewObserver(f.Repositories, f.Live())
		ctx, stop := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- observer.Start(ctx) }()
		DeferCleanup(func() {
			stop()
			Eventually(ended).Should(Receive(BeNil()))
		})
		worker = gittest.New(GinkgoTB(), "sha1")
		worker.Commit(GinkgoTB(), "README", "hello")
	})

	// push simulates a push that the server has accepted and observed.
	push := func(refspecs ...string) {
		GinkgoHelper()
		repo, err := f.Repositories.Of(GinkgoT().Context(), website)
		Expect(err).NotTo(HaveOccurred())
		worker.Git(GinkgoTB(), append([]string{"push", "--quiet", repo.Dir()}, refspecs...)...)
		observer.Pushed(client.ObjectKeyFromObject(website))
	}
	protect := func(branch, name string) *v1alpha1.ProtectedBranch {
		GinkgoHelper()
		b := forge.ProtectedBranch(branch).Of(website).Named(name).Build()
		f.Create(b)
		f.ExpectReady(b)
		return b
	}

	It("follow pushes", func() {
		exact, wild := protect("release/1.0", "exact"), protect("release/*", "wild")
		Expect(wild.Status.MatchedBranches).To(BeEmpty())
		push("HEAD:refs/heads/release/1.0", "HEAD:refs/heads/release/x/y", "HEAD:refs/heads/other", "HEAD:refs/tags/release/9")
		f.Eventually(wild).Should(HaveField("Status.MatchedBranches", Equal([]string{"release/1.0", "release/x/y"})))
		Expect(wild.Status.MatchedBranchCount).To(BeEquivalentTo(2))
		f.Eventually(exact).Should(HaveField("Status.MatchedBranches", Equal([]string{"release/1.0"})))
		f.ExpectReady(exact, wild)

		push("--delete", "refs/heads/release/1.0")
		f.Eventually(exact).Should(HaveField("Status.MatchedBranchCount", BeZero()))
		f.Eventually(wild).Should(HaveField("Status.MatchedBranches", Equal([]string{"release/x/y"})))
		f.ExpectRestartWritesNothing()
	})

	It("are shown for a protection that is created later", func() {
		push("HEAD:refs/heads/main")
		f.Eventually(website).Should(HaveField("Status.HeadCommit", Not(BeEmpty())))
		late := protect("m*n", "late")
		f.Eventually(late).Should(HaveField("Status.MatchedBranches", Equal([]string{"main"})))
	})

	It("are all counted, and the first hundred are named", func() {
		all := protect("*", "all")
		var refspecs []string
		for i := range 120 {
			refspecs = append(refspecs, fmt.Sprintf("HEAD:refs/heads/b-%03d", i))
		}
		push(refspecs...)
		f.Eventually(all).Should(HaveField("Status.MatchedBranchCount", BeEquivalentTo(120)))
		Expect(all.Status.MatchedBranches).To(HaveLen(100))
		Expect(all.Status.MatchedBranches).To(ContainElements("b-000", "b-099"))
	})

	It("are not shown for a group, but for its projects", func() {
		push("HEAD:refs/heads/main")
		f.Eventually(website).Should(HaveField("Status.HeadCommit", Not(BeEmpty())))
		above := forge.ProtectedBranch("*").Of(acme).Named("above").Build()
		f.Create(above)
		f.ExpectReady(above)
		Expect(above.Status.MatchedBranchCount).To(BeZero())
	})
})
