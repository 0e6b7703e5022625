package repositorystorage_test

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/test/forge"
)

var (
	cluster *forge.Cluster
	f       *forge.Forge
)

func TestRepositoryStorage(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "RepositoryStorage")
}

var (
	_ = BeforeSuite(func() { cluster = forge.StartCluster() })
	_ = BeforeEach(func() { f = forge.New(cluster, forge.Options{}) })
)
