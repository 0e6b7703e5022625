package project_test

import (
	"os"
	"path/filepath"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/audit/audittest"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/repository"
	"github.com/forgeplane/forgeplane/test/forge"
)

const polling = 10 * time.Millisecond

// leave makes a project ready with a commit, deletes the project, and returns the retained repository and the commit.
func leave(p *v1alpha1.Project) (left *v1alpha1.RetainedRepository, commit string) {
	GinkgoHelper()
	f.Create(p)
	f.ExpectReady(p)
	commit = push(p, "main")
	f.ExpectReady(p)
	drop(p)
	return only(), commit
}

// drop deletes a project, which takes one reconcile.
func drop(p *v1alpha1.Project) {
	GinkgoHelper()
	f.Delete(p)
	_, err := f.ReconcileOnce(p)
	Expect(err).NotTo(HaveOccurred())
	f.ExpectGone(p)
}

// retained returns all retained repositories.
func retained() []v1alpha1.RetainedRepository {
	GinkgoHelper()
	var list v1alpha1.RetainedRepositoryList
	Expect(f.Live().List(GinkgoT().Context(), &list)).To(Succeed())
	return list.Items
}

// namespaceUID returns the UID of the team's namespace.
func namespaceUID() types.UID {
	GinkgoHelper()
	var ns corev1.Namespace
	Expect(f.Live().Get(GinkgoT().Context(), client.ObjectKey{Name: namespace}, &ns)).To(Succeed())
	return ns.UID
}

// only returns the only retained repository.
func only() *v1alpha1.RetainedRepository {
	GinkgoHelper()
	all := retained()
	Expect(all).To(HaveLen(1))
	return &all[0]
}

// records returns the files in which the shard records what it retains.
func records() []string {
	GinkgoHelper()
	files, err := filepath.Glob(filepath.Join(shard.Spec.Path, ".retained", "*"))
	Expect(err).NotTo(HaveOccurred())
	return files
}

// expectAdopted expects that a project has the repository with the commit, and that the record is gone.
func expectAdopted(p *v1alpha1.Project, commit string) {
	GinkgoHelper()
	// The first reconcile waits until the garbage collector has removed the protection of the deleted project.
	Eventually(func() ([]v1alpha1.RetainedRepository, error) {
		_, err := f.ReconcileOnce(p)
		for i := range retained() {
			_, _ = f.ReconcileOnce(&retained()[i])
		}
		return retained(), err
	}).WithPolling(polling).Should(BeEmpty())
	f.ExpectReady(p)
	Expect(p.Status.HeadCommit).To(Equal(commit))
	Expect(repositoryOf(p).Dir()).To(Equal(place(p, shard)))
	Expect(records()).To(BeEmpty())
	Expect(p.Status.ProtectedDefaultBranch).To(Equal("main"))
	own := slices.DeleteFunc(protections(), func(b v1alpha1.ProtectedBranch) bool { return b.Spec.ProjectRef.Name != p.Name })
	Expect(own).To(ConsistOf(And(
		HaveField("Spec.Branch", "main"), HaveField("OwnerReferences", ConsistOf(HaveField("UID", p.UID))),
	)))
}

var _ = Describe("A project that is deleted and applied again", func() {
	It("has a record in between, for kubectl and on its shard, and gets its repository and its id back", func() {
		web := forge.Project("website").In(acme).Build()
		was := web.DeepCopy()
		r, commit := leave(web)
		was.Spec.ID, was.UID = r.Spec.Project.ID, "" // ids are never reused
		Expect(r.Spec.Project).To(And(
			HaveField("Namespace", namespace), HaveField("NamespaceUID", string(namespaceUID())), HaveField("Name", "website"),
			HaveField("UID", Not(BeEmpty())), HaveField("ID", BeNumerically(">", 0)), HaveField("FullPath", "acme/website"),
			HaveField("DefaultBranch", "main"),
		))
		Expect(r.Spec.Storage).To(Equal("shard"))
		Expect(r.Spec.SizeBytes).To(BeNumerically(">", 0))
		f.ExpectReady(r)
		Expect(r.Status.RepositoryPath).To(Equal(repository.Path(was)))
		Expect(place(was, shard)).To(BeADirectory())
		Expect(records()).To(HaveLen(1))
		Expect(os.ReadFile(records()[0])).To(And(ContainSubstring(r.Spec.Project.UID), ContainSubstring(`"kind": "RetainedRepository"`)))
		f.ExpectReady(shard)
		Expect(shard.Status.Retained).To(BeEquivalentTo(1))

		again := forge.Project("website").In(acme).Build()
		f.Create(again)
		expectAdopted(again, commit)
		Expect(again.Spec.ID).To(Equal(r.Spec.Project.ID))
		Expect(again.Status.AdoptedRepository).To(Equal(r.Name))
		Expect(f.Events()).To(ContainElement(And(ContainSubstring("Normal Adopted website"), ContainSubstring(r.Spec.Project.UID))))
	})

	It("is let in by the job token scopes that let in the deleted project, by its id and UID", func() {
		web := forge.Project("website").In(acme).Build()
		other := forge.Project("other").In(acme).Build()
		third := forge.Project("third").In(acme).Build()
		f.Create(web, other, third)
		f.ExpectReady(web, other, third)
		byPath := forge.JobTokenScope("third").Of(third).Allowing(v1alpha1.Reference{Path: "acme/website"}).Build()
		f.Create(byPath)
		f.ExpectReady(byPath)
		scope := forge.JobTokenScope("other").Of(other).Build()
		scope.Spec.Allowlist = []v1alpha1.AllowlistEntry{
			{ProjectRef: catalog.Refer(web)}, {ProjectRef: v1alpha1.Reference{ID: web.Spec.ID + 100, UID: string(web.UID)}},
		}
		f.Create(scope)
		commit := push(web, "main")
		f.ExpectReady(web)
		drop(web)
		again := forge.Project("website").In(acme).Build()
		f.Create(again)
		expectAdopted(again, commit)
		f.Refresh(scope)
		Expect(scope.Spec.Allowlist).To(ConsistOf(
			HaveField("ProjectRef", catalog.Refer(again)), HaveField("ProjectRef.UID", scope.Spec.Allowlist[1].ProjectRef.UID),
		))
		Expect(scope.Spec.Allowlist[1].ProjectRef.UID).NotTo(Equal(string(again.UID)), "that was another id's")
		f.Refresh(byPath)
		Expect(byPath.Status.RecordedAllowlist).To(ConsistOf(HaveField("ProjectRef", v1alpha1.Reference{Path: "acme/website", UID: string(again.UID)})))
	})

	It("gets its images back", func() {
		web := forge.Project("website").In(acme).Build()
		f.Create(web)
		f.ExpectReady(web)
		pushed, err := images.Ensure(GinkgoT().Context(), web.Spec.ID, web.UID, "app")
		Expect(err).NotTo(HaveOccurred())
		commit := push(web, "main")
		f.ExpectReady(web)
		drop(web)
		again := forge.Project("website").In(acme).Build()
		f.Create(again)
		expectAdopted(again, commit)
		Expect(again.UID).NotTo(Equal(web.UID))
		Expect(images.Find(GinkgoT().Context(), again.UID, "app")).To(And(HaveField("ID", pushed.ID), HaveField("ProjectID", again.Spec.ID)))
	})

	It("appears in the audit log with the recorded UID and the new one", func() {
		lines := audittest.Open(GinkgoTB())
		f = forge.New(cluster, forge.Options{Audit: lines.Log})
		web := forge.Project("website").In(acme).Build()
		r, commit := leave(web)
		again := forge.Project("website").In(acme).Build()
		f.Create(again)
		expectAdopted(again, commit)
		drop(again)
		last := only()
		f.ExpectReady(last)
		f.Delete(last)
		_, err := f.ReconcileOnce(last)
		Expect(err).NotTo(HaveOccurred())
		events := slices.DeleteFunc(lines.Events(), func(e audit.Event) bool {
			return !slices.Contains([]string{"retain", "adopt", "purge"}, e.Action)
		})
		Expect(events).To(HaveExactElements(
			And(HaveField("Action", "retain"), HaveField("About.UID", r.Spec.Project.UID)),
			And(HaveField("Action", "adopt"), HaveField("About.UID", last.Spec.Project.UID), HaveField("Reason", ContainSubstring(r.Spec.Project.UID))),
			And(HaveField("Action", "retain"), HaveField("About.UID", last.Spec.Project.UID)),
			And(HaveField("Action", "purge"), HaveField("About.UID", last.Spec.Project.UID), HaveField("Objects", ConsistOf(HaveField("Verb", "delete")))),
		))
	})

	It("is adopted every time while the controllers run", func() {
		f.Run()
		web := forge.Project("website").In(acme).Build()
		f.Create(web)
		f.ExpectReady(web)
		commit, id := push(web, "main"), web.Spec.ID
		for range 3 {
			f.Delete(web)
			f.ExpectGone(web)
			web = forge.Project("website").In(acme).Build()
			f.Create(web)
			f.ExpectReady(web)
			Expect(web.Status.HeadCommit).To(Equal(commit))
			Expect(web.Spec.ID).To(Equal(id))
			Eventually(retained).WithPolling(polling).Should(BeEmpty())
			Eventually(records).WithPolling(polling).Should(BeEmpty())
		}
		Expect(protections()).To(HaveLen(1))
		f.ExpectRestartWritesNothing()
	})

	It("is adopted if it was imported, and not imported again", func() {
		source := newOrigin().URL + "/tools.git"
		f.Run()
		web := forge.Project("website").In(acme).ImportedFrom(source).Build()
		f.Create(web)
		f.ExpectReady(web)
		commit, id := web.Status.HeadCommit, web.Spec.ID
		f.Delete(web)
		f.ExpectGone(web)
		again := forge.Project("website").In(acme).ImportedFrom(source).Build()
		f.Create(again)
		f.ExpectReady(again)
		Expect(again.Status.HeadCommit).To(Equal(commit))
		Expect(again.Spec.ID).To(Equal(id))
		Expect(again.Status.AdoptedRepository).NotTo(BeEmpty())
	})

	DescribeTable("says how to decide if the declaration differs, and follows the decision",
		func(change func(*v1alpha1.Project), words string) {
			r, commit := leave(forge.Project("website").In(acme).Build())
			open("other")
			again := forge.Project("website").In(acme).Build()
			change(again)
			f.Create(again)
			f.ExpectStalled(again, v1alpha1.ReasonRepositoryRetained, words, "adoptRepository to "+r.Name, "None")
			Expect(again.Spec.ID).To(BeZero(), "until it is decided, the id can still come back")
			Expect(again.Status.Storage).To(BeEmpty())
			Expect(only().UID).To(Equal(r.UID))

			f.Change(again, func() { again.Spec.AdoptRepository = v1alpha1.AdoptNone })
			// An import would take too long.
			f.Change(again, func() { again.Spec.ImportURL = "" })
			f.ExpectReady(again)
			Expect(again.Status.HeadCommit).To(BeEmpty())
			Expect(again.Spec.ID).NotTo(Equal(r.Spec.Project.ID))
			Expect(only().UID).To(Equal(r.UID))
			f.ExpectReady(r)
			f.Change(again, func() { again.Spec.DeletionPolicy = v1alpha1.DeletionPolicyDelete })
			drop(again)

			again = forge.Project("website").In(acme).Adopting(r.Name).Build()
			if words == "its full path was acme/website" {
				change(again)
			}
			f.Create(again)
			expectAdopted(again, commit)
			Expect(again.Spec.ID).To(Equal(r.Spec.Project.ID))
		},
		Entry("in its path", func(p *v1alpha1.Project) { p.Spec.Path = "site" }, "its full path was acme/website"),
		Entry("in its storage", func(p *v1alpha1.Project) { p.Spec.Storage = "other" }, "it is on storage shard"),
		Entry("in its object format", func(p *v1alpha1.Project) { p.Spec.ObjectFormat = v1alpha1.ObjectFormatSHA256 }, "its objectFormat is sha1"),
		Entry("in what it imports", func(p *v1alpha1.Project) { p.Spec.ImportURL = "https://git.example.com/a.git" }, "its importURL was different"),
	)

	It("says that another project has its id, and can be adopted without the id", func() {
		r, commit := leave(forge.Project("website").In(acme).Build())
		thief := forge.Project("thief").In(acme).ID(r.Spec.Project.ID).Build()
		f.Create(thief)
		f.ExpectReady(thief)
		Expect(thief.Status.HeadCommit).To(BeEmpty())
		again := forge.Project("website").In(acme).Build()
		f.Create(again)
		f.ExpectStalled(again, v1alpha1.ReasonRepositoryRetained, "its id was")
		f.Change(again, func() { again.Spec.AdoptRepository = "website" })
		expectAdopted(again, commit)
		Expect(again.Spec.ID).NotTo(Equal(r.Spec.Project.ID))
	})

	It("waits if it names a retained repository that does not exist", func() {
		web := forge.Project("website").In(acme).Adopting("nothing").Build()
		f.Create(web)
		f.ExpectWaiting(web, v1alpha1.ReasonReferenceNotFound, "adoptRepository", "nothing")
		f.Change(web, func() { web.Spec.AdoptRepository = "" })
		f.ExpectReady(web)
	})

	It("leaves no record if it had no repository", func() {
		f.Delete(acme)
		web := forge.Project("website").In(acme).Build()
		f.Create(web)
		f.ExpectWaiting(web, v1alpha1.ReasonReferenceNotFound)
		drop(web)
		Expect(retained()).To(BeEmpty())
	})
})

var _ = Describe("A retained repository", func() {
	// renew deletes the namespace of the team, and creates another one of the same name.
	renew := func() {
		GinkgoHelper()
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
		f.Delete(ns)
		f.ExpectGone(ns)
		f.Create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
		acme = forge.Group("acme").In(namespace).Visibility(v1alpha1.VisibilityPublic).Build()
		f.Create(acme)
	}

	It("is not available to a new namespace of the same name until an administrator gives it away", func() {
		r, commit := leave(forge.Project("website").In(acme).Build())
		renew()
		f.ExpectReady(acme)
		for _, p := range []*v1alpha1.Project{
			forge.Project("website").In(acme).Adopting(r.Name).Build(),
			forge.Project("website").In(acme).ID(r.Spec.Project.ID).Build(),
			forge.Project("website").In(acme).Named("site").Build(),
		} {
			f.Create(p)
			if p.Spec.AdoptRepository != "" {
				f.ExpectWaiting(p, v1alpha1.ReasonReferenceNotFound, "adoptRepository")
			} else {
				f.ExpectStalled(p, v1alpha1.ReasonRepositoryRetained, "an earlier namespace", "an administrator", r.Name)
			}
			Expect(p.Status.Storage).To(BeEmpty())
			drop(p)
			Expect(only().UID).To(Equal(r.UID))
		}
		web := forge.Project("website").In(acme).Named("site").Build()
		f.Create(web)
		f.ExpectStalled(web, v1alpha1.ReasonRepositoryRetained)
		f.Change(r, func() { r.Spec.AdoptBy = &v1alpha1.ProjectName{Namespace: namespace, Name: "site"} })
		expectAdopted(web, commit)
		Expect(web.Spec.ID).To(Equal(r.Spec.Project.ID))
	})

	It("does not give its id to a project with an empty repository", func() {
		r, _ := leave(forge.Project("website").In(acme).Build())
		web := forge.Project("website").In(acme).ID(r.Spec.Project.ID).Adopting(v1alpha1.AdoptNone).Build()
		f.Create(web)
		f.ExpectStalled(web, v1alpha1.ReasonRepositoryRetained, "belongs to RetainedRepository "+r.Name)
	})

	It("is recovered from its shard when the record is lost, and not claimed before", func() {
		r, commit := leave(forge.Project("website").In(acme).Build())
		f.ExpectReady(r)
		f.Change(r, func() { r.Finalizers = nil })
		f.Delete(r)
		f.ExpectGone(r)
		renew()
		f.ExpectReady(acme)
		web := forge.Project("website").In(acme).ID(r.Spec.Project.ID).Build()
		f.Create(web)
		f.ExpectWaiting(web, v1alpha1.ReasonRepositoryRetained, r.Name)
		f.ExpectReady(shard)
		found := only()
		Expect(found.Spec.Project).To(Equal(r.Spec.Project))
		Expect(found.Name).To(Equal(r.Name))
		f.ExpectReady(found, shard)
		Expect(place(web, shard)).To(BeADirectory())
		f.Change(found, func() { found.Spec.AdoptBy = &v1alpha1.ProjectName{Namespace: namespace, Name: "website"} })
		drop(web)
		web = forge.Project("website").In(acme).Build()
		f.Create(web)
		expectAdopted(web, commit)
	})

	It("is purged only when an administrator deletes it", func() {
		r, _ := leave(forge.Project("website").In(acme).Build())
		f.ExpectReady(r)
		directory := filepath.Join(shard.Spec.Path, r.Status.RepositoryPath)
		Expect(directory).To(BeADirectory())
		f.Delete(r)
		_, err := f.ReconcileOnce(r)
		Expect(err).NotTo(HaveOccurred())
		f.ExpectGone(r)
		Expect(directory).NotTo(BeADirectory())
		Expect(records()).To(BeEmpty())
		again := forge.Project("website").In(acme).Build()
		f.Create(again)
		f.ExpectReady(again)
		Expect(again.Status.HeadCommit).To(BeEmpty())
		Expect(again.Spec.ID).NotTo(Equal(r.Spec.Project.ID))
	})

	It("does not remove the repository of an existing project if it is forged", func() {
		web := forge.Project("website").In(acme).Build()
		f.Create(web)
		f.ExpectReady(web)
		forged := repository.NewRetained(web, "", "acme/website", f.Clock.Now())
		f.Create(forged)
		f.ExpectStalled(forged, v1alpha1.ReasonAlreadyExists, "Project "+namespace+"/website")
		f.Delete(forged)
		_, err := f.ReconcileOnce(forged)
		Expect(err).NotTo(HaveOccurred())
		f.ExpectGone(forged)
		Expect(repositoryOf(web).Check()).To(Succeed())
	})

	It("cannot change which project it belonged to", func() {
		r, _ := leave(forge.Project("website").In(acme).Build())
		f.ExpectChangeRefused(r, func() { r.Spec.Project.NamespaceUID = "another" }, "cannot change")
		f.ExpectChangeRefused(r, func() { r.Spec.Storage = "another" }, "cannot change")
	})

	It("is created even if the shard is mounted without the repository, and is adopted when that is back", func() {
		web := forge.Project("website").In(acme).Build()
		f.Create(web)
		f.ExpectReady(web)
		uid := string(web.UID)
		commit := push(web, "main")
		f.ExpectReady(web)
		Expect(os.Rename(shard.Spec.Path, shard.Spec.Path+".away")).To(Succeed())
		Expect(os.Mkdir(shard.Spec.Path, 0o755)).To(Succeed())
		Expect(os.Link(shard.Spec.Path+".away/.forgeplane-storage", shard.Spec.Path+"/.forgeplane-storage")).To(Succeed())
		drop(web)
		r := only()
		Expect(r.Spec.Project.UID).To(Equal(uid))
		f.ExpectFailing(r, v1alpha1.ReasonStorageUnavailable, "no longer on storage shard", repository.Path(web))
		again := forge.Project("website").In(acme).Build()
		f.Create(again)
		f.ExpectFailing(again, v1alpha1.ReasonStorageUnavailable, "no longer on storage shard", r.Name)
		Expect(os.RemoveAll(shard.Spec.Path)).To(Succeed())
		Expect(os.Rename(shard.Spec.Path+".away", shard.Spec.Path)).To(Succeed())
		expectAdopted(again, commit)
	})

	It("is created for a project that is deleted before it has checked the repository that it adopted", func() {
		r, _ := leave(forge.Project("website").In(acme).Build())
		again := forge.Project("website").In(acme).ID(r.Spec.Project.ID).Build()
		again.Finalizers = []string{"forgeplane.dev/repository"}
		f.Create(again)
		patch := client.MergeFrom(again.DeepCopy())
		again.Status.Storage, again.Status.AdoptedRepository = "shard", r.Name
		Expect(f.Live().Status().Patch(GinkgoT().Context(), again, patch)).To(Succeed())
		f.Refresh(again)
		uid := string(again.UID)
		f.Change(r, func() { r.Finalizers = nil })
		f.Delete(r)
		f.ExpectGone(r)
		Expect(os.Rename(shard.Spec.Path, shard.Spec.Path+".away")).To(Succeed())
		Expect(os.Mkdir(shard.Spec.Path, 0o755)).To(Succeed())
		Expect(os.Link(shard.Spec.Path+".away/.forgeplane-storage", shard.Spec.Path+"/.forgeplane-storage")).To(Succeed())
		drop(again)
		Expect(only().Spec.Project.UID).To(Equal(uid))
	})

	It("waits for its shard if the project was deleted while that was away", func() {
		web := forge.Project("website").In(acme).Build()
		f.Create(web)
		f.ExpectReady(web)
		Expect(os.Rename(shard.Spec.Path, shard.Spec.Path+".away")).To(Succeed())
		drop(web)
		r := only()
		f.ExpectWaiting(r, v1alpha1.ReasonStorageUnavailable, "storage shard is not mounted")
		Expect(os.Rename(shard.Spec.Path+".away", shard.Spec.Path)).To(Succeed())
		f.ExpectReady(r)
		Expect(records()).To(HaveLen(1))
	})
})

var _ = Describe("A project whose metadata.name changes", func() {
	for _, order := range []string{"before", "after"} {
		It("leaves its repository to a project that is created "+order+" the deletion, which says how to get it", func() {
			f.Run()
			web := forge.Project("website").In(acme).Build()
			f.Create(web)
			f.ExpectReady(web)
			commit := push(web, "main")
			site := forge.Project("website").In(acme).Named("site").Build()
			if order == "before" {
				f.Create(site)
				f.ExpectStalled(site, v1alpha1.ReasonAlreadyExists)
			}
			f.Delete(web)
			f.ExpectGone(web)
			if order == "after" {
				f.Create(site)
			}
			f.ExpectStalled(site, v1alpha1.ReasonRepositoryRetained, "the deleted project website has left a repository under this full path")
			Expect(retained()).To(HaveLen(1))
			f.Change(site, func() { site.Spec.AdoptRepository = "website" })
			f.ExpectReady(site)
			Expect(site.Status.HeadCommit).To(Equal(commit))
			Eventually(retained).WithPolling(polling).Should(BeEmpty())
			Expect(repositoryOf(site).Dir()).To(Equal(place(site, shard)))
			f.ExpectRestartWritesNothing()
		})
	}

	It("can name in advance the repository that it adopts", func() {
		f.Run()
		web := forge.Project("website").In(acme).Build()
		f.Create(web)
		f.ExpectReady(web)
		commit := push(web, "main")
		site := forge.Project("website").In(acme).Named("site").Adopting("website").Build()
		f.Create(site)
		f.ExpectWaiting(site, v1alpha1.ReasonReferenceNotFound, "adoptRepository")
		f.Delete(web)
		f.ExpectReady(site)
		Expect(site.Status.HeadCommit).To(Equal(commit))
		Expect(site.Spec.ID).To(Equal(web.Spec.ID))
	})
})

var _ = Describe("A crash", func() {
	It("between the record and the end of the project leaves one record", func() {
		web := forge.Project("website").In(acme).Build()
		f.Create(web)
		f.ExpectReady(web)
		push(web, "main")
		f.Create(repository.NewRetained(web, "", "acme/website", f.Clock.Now()))
		drop(web)
		Expect(only().Spec.Project.Name).To(Equal("website"))
	})

	It("after the claim does not prevent the adoption", func() {
		r, commit := leave(forge.Project("website").In(acme).Build())
		again := forge.Project("website").In(acme).Build()
		f.Create(again)
		claimedBy(r, again)
		expectAdopted(again, commit)
	})

	It("after the claim leaves the repository of a project that is then deleted", func() {
		r, _ := leave(forge.Project("website").In(acme).Build())
		again := forge.Project("website").In(acme).ID(r.Spec.Project.ID).Discarded().Build()
		again.Finalizers = []string{"forgeplane.dev/repository"}
		f.Create(again)
		claimedBy(r, again)
		drop(again)
		Expect(only().Status.AdoptedBy).To(BeNil())
		f.ExpectReady(r)
	})

	It("after the move does not prevent the adoption, even if the project is then deleted", func() {
		r, commit := leave(forge.Project("website").In(acme).Build())
		site := forge.Project("website").In(acme).Named("site").Adopting(r.Name).ID(99).Build()
		site.Finalizers = []string{"forgeplane.dev/repository"}
		f.Create(site)
		claimedBy(r, site)
		patch := client.MergeFrom(site.DeepCopy())
		site.Status.Storage, site.Status.AdoptedRepository = "shard", r.Name
		Expect(f.Live().Status().Patch(GinkgoT().Context(), site, patch)).To(Succeed())
		f.Refresh(site)
		Expect(os.MkdirAll(filepath.Dir(place(site, shard)), 0o755)).To(Succeed())
		Expect(os.Rename(filepath.Join(shard.Spec.Path, repository.PathOfRetained(r)), place(site, shard))).To(Succeed())
		drop(site)
		Eventually(func() []v1alpha1.RetainedRepository {
			if f.Refresh(r); !r.DeletionTimestamp.IsZero() {
				_, err := f.ReconcileOnce(r)
				Expect(err).NotTo(HaveOccurred())
			}
			return retained()
		}).WithPolling(polling).Should(ConsistOf(HaveField("Spec.Project.Name", "site")))
		again := forge.Project("website").In(acme).Named("site").Build()
		f.Create(again)
		expectAdopted(again, commit)
	})
})

// claimedBy records that a project is adopting a retained repository, which is the first step of the adoption.
func claimedBy(r *v1alpha1.RetainedRepository, p *v1alpha1.Project) {
	GinkgoHelper()
	patch := client.MergeFrom(r.DeepCopy())
	r.Status.AdoptedBy = &v1alpha1.Adopter{Namespace: p.Namespace, Name: p.Name, UID: string(p.UID)}
	Expect(f.Live().Status().Patch(GinkgoT().Context(), r, patch)).To(Succeed())
	f.Refresh(r)
}
