package label_test

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
	// acme, team and website belong to a tenant, and namespace is the tenant's. A label needs only their declarations.
	acme, team *v1alpha1.Group
	website    *v1alpha1.Project
	namespace  string
)

func TestLabel(t *testing.T) {
	suite.Run(t, "Label")
}

var (
	_ = BeforeSuite(func() { cluster = forge.StartCluster() })
	_ = BeforeEach(func() {
		f = forge.New(cluster, forge.Options{})
		namespace = f.NewNamespace()
		acme = forge.Group("acme").In(namespace).Build()
		team = forge.Group("team").In(namespace).Below(acme).Build()
		website = forge.Project("website").In(team).Build()
		f.Create(acme, team, website)
	})
)

func byName(name string) *v1alpha1.Reference { return &v1alpha1.Reference{Name: name} }
func byPath(path string) *v1alpha1.Reference { return &v1alpha1.Reference{Path: path} }
func byID(id int64) *v1alpha1.Reference      { return &v1alpha1.Reference{ID: id} }
