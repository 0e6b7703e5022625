package project_test

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/refs"
	"github.com/forgeplane/forgeplane/internal/git/upkeep"
	"github.com/forgeplane/forgeplane/test/forge"
)

var _ = Describe("A fork", func() {
	named := func(p *v1alpha1.Project) v1alpha1.Reference { return v1alpha1.Reference{Name: p.Name} }
	// source creates a project with the branches main and topic.
	source := func(b *forge.ProjectBuilder) (p *v1alpha1.Project, commit string) {
		GinkgoHelper()
		p = b.Build()
		f.Create(p)
		f.ExpectReady(p)
		return p, push(p, "main", "topic")
	}
	expectFork := func(p *v1alpha1.Project, commit string, branches ...string) {
		GinkgoHelper()
		f.ExpectReady(p)
		var names []string
		for ref, err := range refs.List(GinkgoT().Context(), repositoryOf(p), "refs/") {
			Expect(err).NotTo(HaveOccurred())
			names = append(names, ref.Name)
		}
		Expect(names).To(Equal(branches))
		Expect(p.Status.HeadCommit).To(Equal(commit))
		Expect(upkeep.Fsck(GinkgoT().Context(), repositoryOf(p), true)).To(Succeed())
	}

	It("begins with the branches of its source, on the same shard, which share files", func() {
		f.Run()
		open("other")
		web, commit := source(forge.Project("website").In(acme).On("other"))
		fork := forge.Project("fork").In(acme).ForkOf(named(web)).Build()
		f.Create(fork)
		expectFork(fork, commit, "refs/heads/main", "refs/heads/topic")
		Expect(fork.Status.Storage).To(Equal("other"))
		Expect(fork.Status.ForkedFrom).To(HaveField("ID", web.RESTID()))
		Expect(fork.Status.ForkedFrom.ProjectRef.UID).To(BeEquivalentTo(web.UID))
		objects, err := filepath.Glob(filepath.Join(repositoryOf(fork).Dir(), "objects/??/*"))
		Expect(err).NotTo(HaveOccurred())
		Expect(objects).NotTo(BeEmpty())
		for _, object := range objects {
			own, err := os.Stat(object)
			Expect(err).NotTo(HaveOccurred())
			directory, name := filepath.Split(object)
			theirs, err := os.Stat(filepath.Join(repositoryOf(web).Dir(), "objects", filepath.Base(directory), name))
			Expect(err).NotTo(HaveOccurred())
			Expect(os.SameFile(own, theirs)).To(BeTrue())
		}
		look(web)
		Eventually(protections).Should(And(HaveLen(2), HaveEach(HaveField("Status.Conditions", Not(BeEmpty())))))
		Eventually(func() string {
			f.Refresh(web)
			return web.Status.ProtectedDefaultBranch
		}).Should(Equal("main"))
		f.ExpectRestartWritesNothing()

		f.Delete(web)
		f.ExpectGone(web)
		f.ExpectReady(fork)
		Expect(upkeep.Fsck(GinkgoT().Context(), repositoryOf(fork), true)).To(Succeed())
	})

	It("waits for its source", func() {
		f.Run()
		fork := forge.Project("fork").In(acme).ForkOf(v1alpha1.Reference{Name: "website"}).Build()
		f.Create(fork)
		f.ExpectWaiting(fork, v1alpha1.ReasonReferenceNotFound, "forkOf: project website: not found")
		source(forge.Project("website").In(acme))
		f.ExpectReady(fork)
	})

	It("waits for the repository of its source, which is ordinary progress", func() {
		web := forge.Project("website").In(acme).Build()
		web.Spec.Suspend, web.Spec.ImportURL = true, "https://example.com/website.git"
		fork := forge.Project("fork").In(acme).ForkOf(named(web)).Build()
		f.Create(web, fork)
		f.ExpectSettled(web, v1alpha1.ReasonSuspended)
		f.ExpectWaiting(fork, v1alpha1.ReasonReferenceNotReady, "forkOf: project website has no repository yet")
		Expect(f.Events()).To(ContainElement(HavePrefix("Normal ReferenceNotReady fork: forkOf: project website has no repository yet")))
	})

	It("begins as soon as the shard of its source is back", func() {
		f.Run()
		other := open("other")
		open("third")
		web, commit := source(forge.Project("website").In(acme).On("other"))
		aside := other.Spec.Path + "-aside"
		Expect(os.Rename(other.Spec.Path, aside)).To(Succeed())
		fork := forge.Project("fork").In(acme).On("third").ForkOf(named(web)).Build()
		f.Create(fork)
		f.ExpectWaiting(fork, v1alpha1.ReasonImportFailed, "forking project website", "(Forgeplane tries again)")
		f.Delete(other)
		f.Change(other, func() { other.Finalizers = nil })
		f.ExpectGone(other)
		f.ExpectWaiting(fork, v1alpha1.ReasonReferenceNotFound, "forkOf")

		Expect(os.Rename(aside, other.Spec.Path)).To(Succeed())
		again := forge.RepositoryStorage("other").At(other.Spec.Path).Build()
		f.Create(again)
		f.ExpectReady(again)
		expectFork(fork, commit, "refs/heads/main", "refs/heads/topic")
	})

	It("is an empty project if forkOf is removed before it begins", func() {
		f.Run()
		fork := forge.Project("fork").In(acme).ForkOf(v1alpha1.Reference{Name: "website"}).Build()
		f.Create(fork)
		f.ExpectWaiting(fork, v1alpha1.ReasonReferenceNotFound, "forkOf: project website: not found")
		f.Change(fork, func() { fork.Spec.ForkOf = nil })
		f.ExpectReady(fork)
		Expect(fork.Status.HeadCommit).To(BeEmpty())
	})

	It("says that it is not tried again if it could not begin within a day then", func() {
		f = forge.New(cluster, forge.Options{Limits: git.Limits{ImportTime: time.Nanosecond}})
		f.Run()
		other := forge.Group("other").In(f.NewNamespace()).Visibility(v1alpha1.VisibilityPublic).Build()
		f.Create(other)
		f.ExpectReady(other)
		secret, _ := source(forge.Project("secret").In(other))
		fork := forge.Project("fork").In(acme).ForkOf(v1alpha1.Reference{ID: secret.RESTID(), UID: string(secret.UID)}).Build()
		f.Clock.SetTime(f.Clock.Now().Add(time.Hour))
		f.Create(fork)
		f.ExpectWaiting(fork, v1alpha1.ReasonImportFailed, "The fork took longer than the 1ns that the server allows.",
			"(a fork must begin within a day, so Forgeplane does not try again: delete this project and fork again)")
	})

	It("can have some branches only", func() {
		f.Run()
		web, commit := source(forge.Project("website").In(acme))
		fork := forge.Project("fork").In(acme).ForkOf(named(web), "topic").Build()
		f.Create(fork)
		expectFork(fork, commit, "refs/heads/topic")
		Expect(fork.Status.DefaultBranch).To(Equal("topic"))
	})

	It("is not made while it is suspended", func() {
		f.Run()
		web, commit := source(forge.Project("website").In(acme))
		fork := forge.Project("fork").In(acme).ForkOf(named(web)).Build()
		fork.Spec.Suspend = true
		f.Create(fork)
		f.ExpectSettled(fork, v1alpha1.ReasonSuspended, "the repository is not forked: spec.suspend is true")
		Expect(place(fork, shard)).NotTo(BeADirectory())
		f.Change(fork, func() { fork.Spec.Suspend = false })
		expectFork(fork, commit, "refs/heads/main", "refs/heads/topic")
	})

	It("begins within a day, or not at all, unless everybody can read its source", func() {
		other := forge.Group("other").In(f.NewNamespace()).Visibility(v1alpha1.VisibilityPublic).Build()
		f.Create(other)
		f.ExpectReady(other)
		secret, _ := source(forge.Project("secret").In(other))
		fork := forge.Project("fork").In(acme).ForkOf(v1alpha1.Reference{ID: secret.RESTID(), UID: string(secret.UID)}).Build()
		fork.Spec.Suspend = true
		f.Create(fork)
		f.ExpectSettled(fork, v1alpha1.ReasonSuspended, "the repository is not forked: spec.suspend is true")
		f.Clock.SetTime(f.Clock.Now().Add(25 * time.Hour))
		f.Change(fork, func() { fork.Spec.Suspend = false })
		f.ExpectStalled(fork, v1alpha1.ReasonReferenceNotFound, fmt.Sprintf(
			"forkOf: the fork of project with id %d could not begin within a day: delete this project and fork again", secret.RESTID()))
		Expect(place(fork, shard)).NotTo(BeADirectory())
	})

	It("is refused for a private project of another namespace", func() {
		f.Run()
		other := forge.Group("other").In(f.NewNamespace()).Visibility(v1alpha1.VisibilityPublic).Build()
		f.Create(other)
		f.ExpectReady(other)
		secret, commit := source(forge.Project("secret").In(other))
		fork := forge.Project("fork").In(acme).ForkOf(v1alpha1.Reference{Path: "other/secret"}).Build()
		f.Create(fork)
		f.ExpectWaiting(fork, v1alpha1.ReasonReferenceNotFound, "forkOf: project other/secret: not found")
		Expect(place(fork, shard)).NotTo(BeADirectory())
		f.Change(secret, func() { secret.Spec.Visibility = v1alpha1.VisibilityPublic })
		expectFork(fork, commit, "refs/heads/main", "refs/heads/topic")
		f.Change(secret, func() { secret.Spec.Visibility = v1alpha1.VisibilityPrivate })
		f.ExpectReady(fork)
		Expect(fork.Status.ForkedFrom).To(HaveField("ID", secret.RESTID()), "it stays recorded")
	})

	It("cannot become a fork of another project, but of none", func() {
		f.Run()
		web, _ := source(forge.Project("website").In(acme))
		fork := forge.Project("fork").In(acme).ForkOf(named(web)).Build()
		f.Create(fork)
		f.ExpectReady(fork)
		f.ExpectChangeRefused(fork, func() { fork.Spec.ForkOf.ProjectRef.Name = "other" }, "forkOf cannot name another project: remove it first")
		f.Change(fork, func() { fork.Spec.ForkOf = nil })
		f.Eventually(fork).Should(HaveField("Status.ForkedFrom", BeNil()))
		Expect(repositoryOf(fork).Check()).To(Succeed())
	})
})
