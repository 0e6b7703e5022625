// Package content runs the specs of conformance.Content.
package content

import (
	"testing"

	"github.com/forgeplane/forgeplane/test/conformance"
)

func TestConformance(t *testing.T) {
	conformance.Run(t, conformance.Content)
}
