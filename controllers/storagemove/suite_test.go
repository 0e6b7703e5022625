package storagemove_test

import (
	"path/filepath"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/test/forge"
	"github.com/forgeplane/forgeplane/test/suite"
)

var (
	cluster *forge.Cluster
	f       *forge.Forge
	// website is a project on the shard source, and worker is a client that works on it.
	acme           *v1alpha1.Group
	website        *v1alpha1.Project
	worker         *gittest.Client
	source, target *v1alpha1.RepositoryStorage
)

func TestStorageMove(t *testing.T) {
	suite.Run(t, "StorageMove")
}

var _ = BeforeSuite(func() { cluster = forge.StartCluster() })

// install makes an installation in which a project with a commit is on one of two shards.
func install(o forge.Options) {
	GinkgoHelper()
	f = forge.New(cluster, o)
	source = f.NewStorage("old")
	acme = forge.Group("acme").In(f.NewNamespace()).Build()
	website = forge.Project("website").In(acme).Build()
	f.Create(acme, website)
	f.ExpectReady(acme, website)
	target = forge.RepositoryStorage("new").At(f.NewDirectory("new")).Weight(0).Build()
	f.Create(target)
	f.ExpectReady(target)
	worker = gittest.New(GinkgoTB(), "sha1")
	commit("first")
	push()
}

// commit makes a commit and returns it.
func commit(content string) string {
	GinkgoHelper()
	return worker.Commit(GinkgoTB(), "README", content)
}

// push pushes to the repository of the website, past all rules, wherever the project says that it is.
func push() {
	GinkgoHelper()
	f.Refresh(website)
	worker.Git(GinkgoTB(), "push", "--quiet", repositoryOf().Dir(), "HEAD:refs/heads/main")
}

// repositoryOf returns the repository that the website uses.
func repositoryOf() *git.Repository {
	GinkgoHelper()
	r, err := f.Repositories.Of(GinkgoT().Context(), website)
	Expect(err).NotTo(HaveOccurred())
	return r
}

// on returns the directory of the website's repository on a shard.
func on(s *v1alpha1.RepositoryStorage) string {
	GinkgoHelper()
	f.Refresh(website)
	return filepath.Join(s.Spec.Path, website.Status.RepositoryPath)
}

// branch returns the commit of the main branch in a repository, which must be sound.
func branch(directory string) string {
	GinkgoHelper()
	worker.Git(GinkgoTB(), "-C", directory, "fsck", "--strict", "--full")
	return worker.Git(GinkgoTB(), "-C", directory, "rev-parse", "refs/heads/main")
}

// expectOnly expects that the website uses a shard, and that the other one has nothing of it.
func expectOnly(s, other *v1alpha1.RepositoryStorage, want string) {
	GinkgoHelper()
	f.Refresh(website)
	Expect(website.Status.Storage).To(Equal(s.Name))
	Expect(website.Status.Move).To(BeNil())
	Expect(branch(on(s))).To(Equal(want))
	Expect(left(other)).To(BeEmpty())
	Expect(repositoryOf().Closed()).To(BeFalse(), "it takes writes")
}

// left returns the repositories that a shard has, finished or not.
func left(s *v1alpha1.RepositoryStorage) (paths []string) {
	GinkgoHelper()
	for _, pattern := range []string{"*.git", "*.git.new/*", "*.git.trash/*"} {
		some, err := filepath.Glob(filepath.Join(s.Spec.Path, "??", "??", pattern))
		Expect(err).NotTo(HaveOccurred())
		paths = append(paths, some...)
	}
	return paths
}
