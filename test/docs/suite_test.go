// Package docs_test compares the documentation with the schemas, with the reasons of conditions, and with a real API server to which its examples
// are applied.
package docs_test

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"

	"github.com/forgeplane/forgeplane/test/forge"
	"github.com/forgeplane/forgeplane/test/suite"
)

var cluster *forge.Cluster

func TestDocs(t *testing.T) {
	suite.Run(t, "Documentation")
}

var _ = BeforeSuite(func() { cluster = forge.StartCluster() })
