package apiserver

import (
	"strings"
	"testing"

	"github.com/forgeplane/forgeplane/apiserver/docs"
	"github.com/forgeplane/forgeplane/apiserver/namespace"
)

func TestListener_reservesItsOwnPaths(t *testing.T) {
	for _, path := range []string{restPrefix, retiredPrefix, docs.Path} {
		first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
		if !namespace.Reserved(first) {
			t.Errorf("%s is below %q, which a group could have", path, first)
		}
	}
}
