// Package tenancy_test tries, kind by kind, what a user can do who can write everything in one namespace and nothing elsewhere. None of it may
// affect the objects, the projects, the users or the Secrets of others.
package tenancy_test

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"

	"github.com/forgeplane/forgeplane/test/forge"
	"github.com/forgeplane/forgeplane/test/suite"
)

var cluster *forge.Cluster

func TestTenancy(t *testing.T) {
	suite.Run(t, "Tenancy")
}

var _ = BeforeSuite(func() { cluster = forge.StartCluster() })
