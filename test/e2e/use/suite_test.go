// Package use runs the specs of e2e.Use.
package use

import (
	"testing"

	"github.com/forgeplane/forgeplane/test/e2e"
)

func TestEndToEnd(t *testing.T) {
	e2e.Run(t, e2e.Use)
}
