package deploykey_test

import (
	. "github.com/onsi/ginkgo/v2"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/test/forge"
)

// The project and the key cannot change, but a path can later lead to another project.
var _ = Describe("A deploy key:", func() {
	forge.DescribeHolder("a key in a project that gets the path that an older deploy key names", func() *forge.Forge { return f }, func() forge.Contest {
		old := forge.DeployKey("old").Of(website).PublicKey(ed25519Key).ReadWrite().Build()
		old.Spec.ProjectRef = v1alpha1.Reference{Path: "acme/next"}
		return forge.Contest{
			Old: old, Young: forge.DeployKey("young").Of(website).PublicKey(ed25519Key).Build(), Words: "the key " + ed25519SHA256,
			Seize: func() { f.Change(website, func() { website.Spec.Path = "next" }) },
		}
	})
})
