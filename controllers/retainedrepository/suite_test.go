package retainedrepository_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/audit/audittest"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/internal/repository"
	"github.com/forgeplane/forgeplane/test/forge"
	"github.com/forgeplane/forgeplane/test/suite"
)

const polling = 10 * time.Millisecond

var (
	cluster *forge.Cluster
	f       *forge.Forge
	// shard is the shard for repositories, acme is a group of a team, and namespace is the namespace of the team.
	shard     *v1alpha1.RepositoryStorage
	acme      *v1alpha1.Group
	namespace string
	// told has the events of the audit log.
	told *audittest.Lines
)

func TestRetainedRepository(t *testing.T) {
	suite.Run(t, "RetainedRepository")
}

var (
	_ = BeforeSuite(func() { cluster = forge.StartCluster() })
	_ = BeforeEach(func() {
		told = audittest.Open(GinkgoTB())
		f = forge.New(cluster, forge.Options{Audit: told.Log})
		shard = f.NewStorage("shard")
		namespace = f.NewNamespace()
		acme = forge.Group("acme").In(namespace).Build()
		f.Create(acme)
		f.ExpectReady(acme)
	})
)

// leave makes a project ready with a commit, deletes the project, and returns the retained repository, which is ready, and the commit.
func leave(name string) (r *v1alpha1.RetainedRepository, commit string) {
	GinkgoHelper()
	p := forge.Project(name).In(acme).Build()
	f.Create(p)
	f.ExpectReady(p)
	repo, err := f.Repositories.Of(GinkgoT().Context(), p)
	Expect(err).NotTo(HaveOccurred())
	c := gittest.New(GinkgoTB(), string(p.Spec.ObjectFormat))
	commit = c.Commit(GinkgoTB(), "README", "hello")
	c.Git(GinkgoTB(), "push", "--quiet", repo.Dir(), "HEAD:refs/heads/main")
	f.ExpectReady(p)
	uid := string(p.UID)
	f.Delete(p)
	_, err = f.ReconcileOnce(p)
	Expect(err).NotTo(HaveOccurred())
	f.ExpectGone(p)
	for _, one := range retained() {
		if one.Spec.Project.UID == uid {
			r = &one
		}
	}
	Expect(r).NotTo(BeNil())
	f.ExpectReady(r)
	return r, commit
}

// retained returns all retained repositories.
func retained() []v1alpha1.RetainedRepository {
	GinkgoHelper()
	var list v1alpha1.RetainedRepositoryList
	Expect(f.Live().List(GinkgoT().Context(), &list)).To(Succeed())
	return list.Items
}

// place returns the path of a retained repository, and record returns the file in which its shard records its former project.
func place(r *v1alpha1.RetainedRepository) string {
	return filepath.Join(shard.Spec.Path, repository.PathOfRetained(r))
}

func record(r *v1alpha1.RetainedRepository) string {
	return filepath.Join(shard.Spec.Path, ".retained", repository.RecordName(r))
}

// away removes the volume of the shard until back is called.
func away() (back func()) {
	GinkgoHelper()
	Expect(os.Rename(shard.Spec.Path, shard.Spec.Path+".away")).To(Succeed())
	return func() {
		GinkgoHelper()
		Expect(os.Rename(shard.Spec.Path+".away", shard.Spec.Path)).To(Succeed())
	}
}

// letGo removes the shard although it holds repositories, as an administrator can.
func letGo() {
	GinkgoHelper()
	f.Delete(shard)
	f.Change(shard, func() { shard.Finalizers = nil })
	f.ExpectGone(shard)
}

// purge deletes a retained repository, which takes one reconcile.
func purge(r *v1alpha1.RetainedRepository) {
	GinkgoHelper()
	f.Delete(r)
	_, err := f.ReconcileOnce(r)
	Expect(err).NotTo(HaveOccurred())
	f.ExpectGone(r)
}

// claimedBy records that a project is adopting a retained repository, which is the first step of the adoption.
func claimedBy(r *v1alpha1.RetainedRepository, p *v1alpha1.Project) {
	GinkgoHelper()
	patch := client.MergeFrom(r.DeepCopy())
	r.Status.AdoptedBy = &v1alpha1.Adopter{Namespace: p.Namespace, Name: p.Name, UID: string(p.UID)}
	Expect(f.Live().Status().Patch(GinkgoT().Context(), r, patch)).To(Succeed())
	f.Refresh(r)
}
