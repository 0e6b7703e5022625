// Package resources runs the specs of conformance.Resources.
package resources

import (
	"testing"

	"github.com/forgeplane/forgeplane/test/conformance"
)

func TestConformance(t *testing.T) {
	conformance.Run(t, conformance.Resources)
}
