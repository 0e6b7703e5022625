package protectedbranch_test

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
	// acme and website are a group and a project of a team, and namespace is the namespace of the team. Most of what a protection does needs only
	// their declarations.
	acme      *v1alpha1.Group
	website   *v1alpha1.Project
	namespace string
)

func TestProtectedBranch(t *testing.T) {
	suite.Run(t, "ProtectedBranch")
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
func byPath(path string) *v1alpha1.Reference { return &v1alpha1.Reference{Path: path} }
func byID(id int64) *v1alpha1.Reference      { return &v1alpha1.Reference{ID: id} }

// shown returns the access levels of a status without their ids.
func shown(levels []v1alpha1.ResolvedAccessLevel) (all []v1alpha1.ResolvedAccessLevel) {
	for _, l := range levels {
		l.ID = 0
		all = append(all, l)
	}
	return all
}

var maintainers = v1alpha1.ResolvedAccessLevel{Role: v1alpha1.AccessMaintainer, Description: "Maintainers"}
