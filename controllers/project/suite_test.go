package project_test

import (
	"path/filepath"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/utils/clock"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/database/databasetest"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/internal/registry/record"
	"github.com/forgeplane/forgeplane/internal/repository"
	"github.com/forgeplane/forgeplane/test/forge"
	"github.com/forgeplane/forgeplane/test/suite"
)

var (
	cluster *forge.Cluster
	f       *forge.Forge
	// shard is the shard for repositories.
	shard *v1alpha1.RepositoryStorage
	// acme is a group of a team, and namespace is the namespace of the team.
	acme      *v1alpha1.Group
	namespace string
	// images are the container repositories of projects.
	images *record.Store
)

func TestProject(t *testing.T) {
	suite.Run(t, "Project")
}

var (
	_ = BeforeSuite(func() { cluster = forge.StartCluster() })
	_ = BeforeEach(func() {
		images = record.New(databasetest.Open(GinkgoTB(), databasetest.SQLite(GinkgoTB()), record.Migrations()), clock.RealClock{})
		f = forge.New(cluster, forge.Options{AllowFileImport: true, Activity: images})
		shard = f.NewStorage("shard")
		namespace = f.NewNamespace()
		acme = forge.Group("acme").In(namespace).Visibility(v1alpha1.VisibilityPublic).Build()
		f.Create(acme)
		f.ExpectReady(acme)
	})
)

// repositoryOf returns the repository of a project that has a storage and an id.
func repositoryOf(p *v1alpha1.Project) *git.Repository {
	GinkgoHelper()
	r, err := f.Repositories.Of(GinkgoT().Context(), p)
	Expect(err).NotTo(HaveOccurred())
	return r
}

// place returns the current or future path of a project's repository on a shard.
func place(p *v1alpha1.Project, on *v1alpha1.RepositoryStorage) string {
	return filepath.Join(on.Spec.Path, repository.Path(p))
}

// push commits a file, pushes it to the repository of a project without checking protections, and returns the commit.
func push(p *v1alpha1.Project, branches ...string) string {
	GinkgoHelper()
	c := gittest.New(GinkgoTB(), string(p.Spec.ObjectFormat))
	commit := c.Commit(GinkgoTB(), "README", "hello")
	for _, b := range branches {
		c.Git(GinkgoTB(), "push", "--quiet", repositoryOf(p).Dir(), "HEAD:refs/heads/"+b)
	}
	return commit
}

// protections returns all protections.
func protections() []v1alpha1.ProtectedBranch {
	GinkgoHelper()
	var list v1alpha1.ProtectedBranchList
	Expect(f.Live().List(GinkgoT().Context(), &list)).To(Succeed())
	return list.Items
}
