package project_test

import (
	"crypto/rand"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/internal/quota"
	"github.com/forgeplane/forgeplane/internal/repository"
	"github.com/forgeplane/forgeplane/test/forge"
)

var _ = Describe("A repository that nothing was ever written to", func() {
	It("is adopted with its id by the same declaration", func() {
		web := forge.Project("website").In(acme).Build()
		f.Create(web)
		f.ExpectReady(web)
		Expect(web.Spec.DeletionPolicy).To(Equal(v1alpha1.DeletionPolicyRetain))
		id := web.Spec.ID
		drop(web)
		Expect(only().Spec.Project.ID).To(Equal(id))
		again := forge.Project("website").In(acme).Build()
		f.Create(again)
		expectAdopted(again, "")
		Expect(again.Spec.ID).To(Equal(id))
	})

	It("is removed if the limit leaves no room for another one", func() {
		f = forge.New(cluster, forge.Options{Retention: quota.Retention{Repositories: 1}})
		first, second := forge.Project("first").In(acme).Build(), forge.Project("second").In(acme).Build()
		f.Create(first, second)
		f.ExpectReady(first, second)
		directory := place(second, shard)
		drop(first)
		drop(second)
		Expect(only().Spec.Project.Name).To(Equal("first"))
		Expect(directory).NotTo(BeADirectory())
	})

	It("is deleted together with its namespace", func() {
		f.Run()
		web := forge.Project("website").In(acme).Build()
		f.Create(web)
		f.ExpectReady(web)
		directory := place(web, shard)
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
		f.Delete(ns)
		f.ExpectGone(ns, web)
		Expect(retained()).To(BeEmpty())
		Expect(directory).NotTo(BeADirectory())
	})

	It("is kept if a push is accepted during the removal", func(ctx SpecContext) {
		f = forge.New(cluster, forge.Options{Retention: quota.Retention{Repositories: 1}})
		first, second := forge.Project("first").In(acme).Build(), forge.Project("second").In(acme).Build()
		f.Create(first, second)
		f.ExpectReady(first, second)
		drop(first)
		repo, err := f.Repositories.Of(ctx, second)
		Expect(err).NotTo(HaveOccurred())
		_, end, err := repo.BeginWrite(ctx)
		Expect(err).NotTo(HaveOccurred())
		worker := gittest.New(GinkgoTB(), "sha1")
		worker.Commit(GinkgoTB(), "README", "hello")
		accepted := make(chan struct{})
		go func() {
			defer GinkgoRecover()
			defer close(accepted)
			defer end()
			Eventually(repo.Closed).Should(BeTrue(), "the removal waits for the push")
			worker.Git(GinkgoTB(), "push", "--quiet", repo.Dir(), "HEAD:refs/heads/main")
		}()
		f.Delete(second)
		_, err = f.ReconcileOnce(second)
		Expect(err).NotTo(HaveOccurred())
		<-accepted
		f.Refresh(second)
		Expect(second.Finalizers).NotTo(BeEmpty(), "there is no room for what it leaves")
		Expect(worker.Git(GinkgoTB(), "ls-remote", repo.Dir(), "refs/heads/main")).NotTo(BeEmpty())
	})

	DescribeTable("stays until the end of a push that runs while its project is deleted", func(ctx SpecContext, policy v1alpha1.DeletionPolicy) {
		web := forge.Project("website").In(acme).Build()
		web.Spec.DeletionPolicy = policy
		f.Create(web)
		f.ExpectReady(web)
		repo := repositoryOf(web)
		_, end, err := repo.BeginWrite(ctx)
		Expect(err).NotTo(HaveOccurred())
		ended := make(chan struct{})
		worker := gittest.New(GinkgoTB(), "sha1")
		worker.Commit(GinkgoTB(), "README", "hello")
		go func() {
			defer GinkgoRecover()
			defer close(ended)
			defer end()
			Eventually(repo.Closed).Should(BeTrue(), "it is waited for")
			worker.Git(GinkgoTB(), "push", "--quiet", repo.Dir(), "HEAD:refs/heads/main")
		}()
		f.Delete(web)
		_, err = f.ReconcileOnce(web)
		Expect(err).NotTo(HaveOccurred())
		Expect(ended).To(BeClosed())
		if policy == v1alpha1.DeletionPolicyDelete {
			Expect(repo.Dir()).NotTo(BeADirectory())
			return
		}
		Expect(worker.Git(GinkgoTB(), "ls-remote", repo.Dir(), "refs/heads/main")).NotTo(BeEmpty())
		Expect(only().Spec.SizeBytes).To(BeNumerically(">", web.Status.SizeBytes), "the push is part of what stays")
	},
		Entry("and is retained", v1alpha1.DeletionPolicyRetain),
		Entry("and is removed", v1alpha1.DeletionPolicyDelete),
	)

	It("is kept if its branches were removed again", func() {
		web := forge.Project("website").In(acme).Build()
		f.Create(web)
		f.ExpectReady(web)
		push(web, "main")
		directory := place(web, shard)
		gittest.New(GinkgoTB(), "sha1").Git(GinkgoTB(), "--git-dir="+directory, "update-ref", "-d", "refs/heads/main")
		f.ExpectReady(web)
		drop(web)
		Expect(directory).To(BeADirectory())
		f.ExpectReady(only())
	})
})

var _ = Describe("The limit of what a namespace retains", func() {
	const size = 1 << 30     // larger than the repositories of these specs together
	const mebibyte = 1 << 20 // larger than a repository with a file of a few words, and smaller than after pushMore

	// filled makes a project ready with a commit.
	filled := func(name string) *v1alpha1.Project {
		GinkgoHelper()
		p := forge.Project(name).In(acme).Build()
		f.Create(p)
		f.ExpectReady(p)
		push(p, "main")
		f.ExpectReady(p)
		return p
	}

	// pushMore pushes a branch of more than a mebibyte without an observation.
	pushMore := func(p *v1alpha1.Project) {
		GinkgoHelper()
		noise := make([]byte, 3<<19)
		_, _ = rand.Read(noise)
		c := gittest.New(GinkgoTB(), "sha1")
		c.Commit(GinkgoTB(), "noise", string(noise))
		c.Git(GinkgoTB(), "push", "--quiet", repositoryOf(p).Dir(), "HEAD:refs/heads/more")
	}

	// bound starts controllers with a limit.
	bound := func(r quota.Retention) {
		f = forge.New(cluster, forge.Options{Retention: r})
		f.Run()
	}

	// expectHeld expects that the deletion of a project waits, with the given words in its condition.
	expectHeld := func(p *v1alpha1.Project, words ...string) {
		GinkgoHelper()
		f.Delete(p)
		f.ExpectWaiting(p, v1alpha1.ReasonDeleting, append(words, "no room", "--quota-retained", "deletionPolicy: Delete", "RetainedRepositories")...)
		Expect(repositoryOf(p).Check()).To(Succeed())
	}

	It("delays the next deletion by their number, until one is purged", func() {
		bound(quota.Retention{Repositories: 1})
		first, second := filled("first"), filled("second")
		f.Delete(first)
		f.ExpectGone(first)
		r := only()
		expectHeld(second, "it has 1,")
		f.Delete(r)
		f.ExpectGone(r, second)
		Expect(only().Spec.Project.Name).To(Equal("second"))
	})

	It("is reported once, by an event", func() {
		f = forge.New(cluster, forge.Options{Retention: quota.Retention{Repositories: 1}})
		first, second := filled("first"), filled("second")
		drop(first)
		f.Delete(second)
		f.ExpectWaiting(second, v1alpha1.ReasonDeleting, "no room")
		f.ExpectWaiting(second, v1alpha1.ReasonDeleting, "no room")
		Expect(f.Events()).To(ContainElement(And(ContainSubstring("Warning Deleting second"), ContainSubstring("no room"))))
	})

	It("delays the next deletion by their size, until its policy removes the repository", func() {
		bound(quota.Retention{Bytes: 1})
		web := filled("website")
		expectHeld(web, "it has 0,")
		directory := repositoryOf(web).Dir()
		f.Change(web, func() { web.Spec.DeletionPolicy = v1alpha1.DeletionPolicyDelete })
		f.ExpectGone(web)
		Expect(directory).NotTo(BeADirectory())
		Expect(retained()).To(BeEmpty())
	})

	It("counts what was pushed at the last moment", func() {
		f = forge.New(cluster, forge.Options{Retention: quota.Retention{Bytes: mebibyte}})
		web := filled("website")
		f.ExpectReady(web)
		Expect(web.Status.SizeBytes).To(BeNumerically("<", mebibyte))
		pushMore(web)
		expectHeld(web, "it has 0,")
		Expect(web.Status.SizeBytes).To(BeNumerically(">", mebibyte))
	})

	It("does not delay the deletion of the namespace, and loses nothing then", func() {
		bound(quota.Retention{Repositories: 1, Bytes: size})
		first, second, third := filled("first"), filled("second"), filled("third")
		f.Delete(first)
		f.ExpectGone(first)
		expectHeld(second)
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
		f.Delete(ns)
		f.ExpectGone(ns, second, third)
		Expect(retained()).To(HaveLen(3))
		for _, r := range retained() {
			f.ExpectReady(&r)
		}
	})

	It("counts neither other namespaces nor an earlier namespace of the same name", func() {
		bound(quota.Retention{Repositories: 1, Bytes: size})
		first := filled("first")
		forged := repository.NewRetained(first, "an earlier one", "acme/other", f.Clock.Now())
		forged.Name, forged.Spec.Project.Name, forged.Spec.Project.UID = "earlier", "other", "another"
		f.Create(forged)
		f.Delete(first)
		f.ExpectGone(first)
		Expect(retained()).To(HaveLen(2))
	})

	It("counts what existed when the project was deleted", func() {
		f = forge.New(cluster, forge.Options{Retention: quota.Retention{Bytes: size}})
		web := filled("website")
		pushMore(web)
		drop(web)
		Expect(only().Spec.SizeBytes).To(BeNumerically(">", mebibyte))
	})

	It("does not delay a deletion that was recorded before a crash", func() {
		f = forge.New(cluster, forge.Options{Retention: quota.Retention{Repositories: 1, Bytes: size}})
		web := filled("website")
		f.Delete(web)
		f.Create(repository.NewRetained(web, namespaceUID(), "acme/website", f.Clock.Now()))
		_, err := f.ReconcileOnce(web)
		Expect(err).NotTo(HaveOccurred())
		f.ExpectGone(web)
		f.ExpectReady(only())
	})
})
