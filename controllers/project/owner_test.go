package project_test

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/frame"
	"github.com/forgeplane/forgeplane/internal/quota"
	"github.com/forgeplane/forgeplane/internal/repository"
	"github.com/forgeplane/forgeplane/test/forge"
)

// owners returns the files in which the shard records the owners of its repositories.
func owners() []string {
	GinkgoHelper()
	files, err := filepath.Glob(filepath.Join(shard.Spec.Path, ".projects", "*", "*"))
	Expect(err).NotTo(HaveOccurred())
	return files
}

// lookThrough makes the controller scan the shard, as it does periodically.
func lookThrough(after time.Duration) {
	GinkgoHelper()
	f.Clock.SetTime(f.Clock.Now().Add(after))
	f.ExpectReady(shard)
}

// strip removes the finalizer of a project.
func strip(p *v1alpha1.Project) {
	GinkgoHelper()
	f.Change(p, func() { p.Finalizers = nil })
}

// vanish deletes a project without Forgeplane noticing.
func vanish(p *v1alpha1.Project) {
	GinkgoHelper()
	strip(p)
	f.Delete(p)
	f.ExpectGone(p)
}

var _ = Describe("A project that is deleted without its finalizer", func() {
	// filled makes a project ready with a commit.
	filled := func(p *v1alpha1.Project) (commit string) {
		GinkgoHelper()
		f.Create(p)
		f.ExpectReady(p)
		commit = push(p, "main")
		f.ExpectReady(p)
		return commit
	}

	It("leaves a record of its repository, and the same declaration adopts that repository even if it came first", func() {
		web := forge.Project("website").In(acme).Build()
		commit := filled(web)
		id, uid := web.Spec.ID, string(web.UID)
		vanish(web)
		again := forge.Project("website").In(acme).Build()
		f.Create(again)
		f.ExpectWaiting(again, v1alpha1.ReasonRepositoryRetained, "storage shard", "to appear")
		Expect(again.Spec.ID).To(BeZero(), "it can still have that of the repository")
		lookThrough(time.Minute)
		r := only()
		Expect(r.Spec.Project).To(And(
			HaveField("Namespace", namespace), HaveField("NamespaceUID", string(namespaceUID())), HaveField("Name", "website"),
			HaveField("UID", uid), HaveField("ID", id), HaveField("FullPath", "acme/website"), HaveField("DefaultBranch", "main"),
		))
		Expect(r.Spec.SizeBytes).To(BeNumerically(">", 0))
		Expect(r.Spec.RetainedAt.Time).To(BeTemporally("==", f.Clock.Now()))
		expectAdopted(again, commit)
		Expect(again.Spec.ID).To(Equal(id))
		lookThrough(time.Minute)
		Expect(retained()).To(BeEmpty())
		Expect(owners()).To(HaveLen(1))
	})

	It("counts for what its namespace retains, and is not removed because it is missing", func() {
		f = forge.New(cluster, forge.Options{Retention: quota.Retention{Repositories: 1}})
		first, second, third := forge.Project("first").In(acme).Build(), forge.Project("second").In(acme).Build(), forge.Project("third").In(acme).Build()
		second.Spec.DeletionPolicy = v1alpha1.DeletionPolicyDelete
		for _, p := range []*v1alpha1.Project{first, second, third} {
			filled(p)
		}
		drop(first)
		vanish(second)
		f.Delete(third)
		f.ExpectWaiting(third, v1alpha1.ReasonDeleting, "no room", "it has 1,")
		lookThrough(time.Minute)
		Expect(retained()).To(ConsistOf(HaveField("Spec.Project.Name", "first"), HaveField("Spec.Project.Name", "second")))
		f.ExpectWaiting(third, v1alpha1.ReasonDeleting, "no room", "it has 2,")
		strip(third)
		f.ExpectGone(third)
		lookThrough(time.Minute)
		Expect(retained()).To(HaveLen(3))
		lookThrough(time.Minute)
		Expect(owners()).To(BeEmpty())
	})

	It("is recorded if the repository appears late, and forgotten if it is missing for a day", func() {
		web := forge.Project("website").In(acme).Build()
		filled(web)
		directory := place(web, shard)
		Expect(os.Rename(directory, directory+".away")).To(Succeed())
		vanish(web)
		lookThrough(time.Minute)
		Expect(retained()).To(BeEmpty())
		Expect(owners()).To(HaveLen(1), "it may be about to be made")
		Expect(os.Rename(directory+".away", directory)).To(Succeed())
		lookThrough(time.Minute)
		Expect(only().Spec.Project.Name).To(Equal("website"))
		Expect(owners()).To(HaveLen(1), "until the cache shows the record")
		lookThrough(time.Minute)
		Expect(owners()).To(BeEmpty())

		shop := forge.Project("shop").In(acme).Build()
		filled(shop)
		Expect(os.RemoveAll(place(shop, shard))).To(Succeed())
		vanish(shop)
		lookThrough(25 * time.Hour)
		Expect(owners()).To(BeEmpty())
		Expect(retained()).To(HaveLen(1))
	})

	It("is recorded if it was adopting a repository", func() {
		r, commit := leave(forge.Project("website").In(acme).Build())
		site := forge.Project("site").In(acme).Adopting(r.Name).Build()
		f.Create(site)
		expectAdopted(site, commit)
		Expect(owners()).To(HaveLen(1))
		vanish(site)
		lookThrough(time.Minute)
		Expect(only().Spec.Project.Name).To(Equal("site"))
	})
})

var _ = Describe("The owner of a repository that a shard records", func() {
	It("exists as long as the project, and is written again if it is missing", func() {
		web, shop := forge.Project("website").In(acme).Build(), forge.Project("shop").In(acme).Build()
		shop.Spec.DeletionPolicy = v1alpha1.DeletionPolicyDelete
		f.Create(web, shop)
		f.ExpectReady(web, shop)
		Expect(owners()).To(HaveLen(2))
		Expect(os.RemoveAll(filepath.Join(shard.Spec.Path, ".projects"))).To(Succeed())
		f.ExpectReady(web, shop)
		Expect(owners()).To(HaveLen(2))
		f.Change(web, func() { web.Spec.Path = "site" })
		f.ExpectReady(web)
		Expect(owners()).To(ContainElement(WithTransform(os.ReadFile, ContainSubstring("acme/site"))))
		drop(web)
		drop(shop)
		Expect(owners()).To(BeEmpty())
	})

	It("retains nothing of an existing project, whatever the name of the shard", func() {
		web := forge.Project("website").In(acme).Build()
		f.Create(web)
		f.ExpectReady(web)
		f.Delete(shard)
		f.Change(shard, func() { shard.Finalizers = nil })
		f.ExpectGone(shard)
		Expect(os.Remove(filepath.Join(shard.Spec.Path, ".forgeplane-storage"))).To(Succeed())
		shard = forge.RepositoryStorage("other").At(shard.Spec.Path).Build()
		f.Create(shard)
		f.ExpectReady(shard)
		lookThrough(time.Minute)
		Expect(retained()).To(BeEmpty())
		Expect(owners()).To(HaveLen(1))
	})

	It("retains nothing of a project of another cluster, which a restore creates again", func() {
		web := forge.Project("website").In(acme).Build()
		f.Create(web)
		f.ExpectReady(web)
		commit := push(web, "main")
		f.ExpectReady(web)
		text, err := os.ReadFile(owners()[0])
		Expect(err).NotTo(HaveOccurred())
		cluster, err := repository.Cluster(GinkgoT().Context(), f.Live())
		Expect(err).NotTo(HaveOccurred())
		Expect(string(text)).To(ContainSubstring(string(cluster)))
		Expect(os.WriteFile(owners()[0], []byte(strings.ReplaceAll(string(text), string(cluster), "another")), 0o600)).To(Succeed())
		id := web.Spec.ID
		vanish(web)
		lookThrough(time.Minute)
		Expect(retained()).To(BeEmpty())
		again := forge.Project("website").In(acme).ID(id).Build()
		f.Create(again)
		// The first reconcile waits until the garbage collector has removed the protection of the deleted project.
		Eventually(func() (*v1alpha1.Project, error) {
			_, err := f.ReconcileOnce(again)
			return again, err
		}).WithPolling(polling).Should(WithTransform(frame.InForce, BeTrue()))
		Expect(again.Status.HeadCommit).To(Equal(commit))
		Expect(owners()).To(ConsistOf(WithTransform(os.ReadFile, ContainSubstring(string(again.UID)))))
	})
})
