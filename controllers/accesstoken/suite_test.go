package accesstoken_test

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/test/forge"
	"github.com/forgeplane/forgeplane/test/suite"
)

var (
	cluster *forge.Cluster
	f       *forge.Forge
)

func TestAccessToken(t *testing.T) {
	suite.Run(t, "AccessToken")
}

var (
	_ = BeforeSuite(func() { cluster = forge.StartCluster() })
	_ = BeforeEach(func() { f = forge.New(cluster, forge.Options{}) })
)

// newToken creates the user ada, and returns the user and one of their tokens, which is not created yet.
func newToken() (*v1alpha1.User, *v1alpha1.AccessToken) {
	GinkgoHelper()
	ada := forge.User("ada").Build()
	f.Create(ada)
	f.ExpectReady(ada)
	return ada, forge.AccessToken("laptop").For(ada).Build()
}
