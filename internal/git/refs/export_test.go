package refs

import (
	"github.com/forgeplane/forgeplane/internal/git/internal/disk"

	"github.com/forgeplane/forgeplane/internal/git"
)

// The limits of the memory for refs.
const (
	MaxWitnesses = maxWitnesses
	Tick         = disk.Tick
)

// Witnessed reports whether changes of every ref can be noticed.
func Witnessed(r *git.Repository) bool { return lookUpKnown(r) != nil }
