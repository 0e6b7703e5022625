package jobtokenscope_test

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
	// acme and website are a group and a project of a team, and bolt and tool belong to another team. A job token scope needs only their
	// declarations.
	acme, bolt    *v1alpha1.Group
	website, tool *v1alpha1.Project
)

func TestJobTokenScope(t *testing.T) {
	suite.Run(t, "JobTokenScope")
}

var (
	_ = BeforeSuite(func() { cluster = forge.StartCluster() })
	_ = BeforeEach(func() {
		f = forge.New(cluster, forge.Options{})
		acme = forge.Group("acme").In(f.NewNamespace()).Build()
		website = forge.Project("website").In(acme).ID(8).Build()
		bolt = forge.Group("bolt").In(f.NewNamespace()).Visibility(v1alpha1.VisibilityPublic).Build()
		tool = forge.Project("tool").In(bolt).ID(20).Build()
		f.Create(acme, website, bolt, tool)
	})
)

func byName(name string) v1alpha1.Reference { return v1alpha1.Reference{Name: name} }
func byPath(path string) v1alpha1.Reference { return v1alpha1.Reference{Path: path} }
func byID(id int64) v1alpha1.Reference      { return v1alpha1.Reference{ID: id} }
