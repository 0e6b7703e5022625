package membership_test

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"

	"github.com/forgeplane/forgeplane/test/forge"
	"github.com/forgeplane/forgeplane/test/suite"
)

var (
	cluster *forge.Cluster
	f       *forge.Forge
	// namespace is the namespace of a team.
	namespace string
)

func TestMembership(t *testing.T) {
	suite.Run(t, "Membership")
}

var (
	_ = BeforeSuite(func() { cluster = forge.StartCluster() })
	_ = BeforeEach(func() {
		f = forge.New(cluster, forge.Options{})
		namespace = f.NewNamespace()
	})
)
