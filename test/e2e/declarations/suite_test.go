// Package declarations runs the specs of e2e.Declarations.
package declarations

import (
	"testing"

	"github.com/forgeplane/forgeplane/test/e2e"
)

func TestEndToEnd(t *testing.T) {
	e2e.Run(t, e2e.Declarations)
}
