package badge_test

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
	// acme and website are a group and a project of a team, and namespace is the team's. Most of what a badge shows needs only their declarations.
	acme      *v1alpha1.Group
	website   *v1alpha1.Project
	namespace string
)

func TestBadge(t *testing.T) {
	suite.Run(t, "Badge")
}

var (
	_ = BeforeSuite(func() { cluster = forge.StartCluster() })
	_ = BeforeEach(func() {
		f = forge.New(cluster, forge.Options{})
		namespace = f.NewNamespace()
		acme = forge.Group("acme").In(namespace).Build()
		website = forge.Project("website").In(acme).Build()
		f.Create(acme, website)
	})
)

func byName(name string) *v1alpha1.Reference { return &v1alpha1.Reference{Name: name} }
