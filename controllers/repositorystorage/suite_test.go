package repositorystorage_test

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"

	"github.com/forgeplane/forgeplane/test/forge"
	"github.com/forgeplane/forgeplane/test/suite"
)

var (
	cluster *forge.Cluster
	f       *forge.Forge
)

func TestRepositoryStorage(t *testing.T) {
	suite.Run(t, "RepositoryStorage")
}

var (
	_ = BeforeSuite(func() { cluster = forge.StartCluster() })
	_ = BeforeEach(func() { f = forge.New(cluster, forge.Options{}) })
)
