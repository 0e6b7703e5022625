package transfer

import (
	"io"

	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/internal/process"
)

// NewSideband returns a sideband with default limits.
func NewSideband(to io.Writer) *sideband {
	b := process.Bounds{Memory: git.DefaultLimits.Memory, CPU: git.DefaultLimits.CPU}
	return newSideband(to, b.Explain)
}

// Interject is interject.
func (s *sideband) Interject(why *process.LimitError) { s.interject(why) }

// End is end.
func (s *sideband) End(err error) error { return s.end(err) }
