// Package docs_test holds the documentation against what it speaks of: the schemas, the reasons of conditions, and a real
// API server on which its examples are tried.
package docs_test

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/test/forge"
)

var cluster *forge.Cluster

func TestDocs(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Documentation")
}

var _ = BeforeSuite(func() { cluster = forge.StartCluster() })
