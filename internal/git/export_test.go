package git

import (
	"io"

	"github.com/forgeplane/forgeplane/internal/fair"
)

// ByShell makes the engine limit processes as it does if they cannot be halted.
func (e *Engine) ByShell() { e.halts = false }

// Halts reports whether limits are set while a process is halted.
func (e *Engine) Halts() bool { return e.halts }

// NewSideband returns a sideband with default limits.
func NewSideband(to io.Writer) *sideband {
	b := bounds{memory: DefaultLimits.Memory, cpu: DefaultLimits.CPU}
	return newSideband(to, []sentence{{starved, b.starved()}, {overtime, b.late()}})
}

// Interject is interject.
func (s *sideband) Interject(why *LimitError) { s.interject(why) }

// End is end.
func (s *sideband) End(err error) error { return s.end(err) }

// HalfOf is HalfMemory for another machine.
var HalfOf = halfOf

// HeavyMemory returns the last measured memory of the processes that are not light, in MiB.
func (e *Engine) HeavyMemory() int { return e.memory.of(e.memory.heavy) }

// LightMemory returns the last measured memory of the light processes, in MiB.
func (e *Engine) LightMemory() int { return e.memory.of(e.memory.light) }

func (m *memory) of(s *fair.Slots) (sum int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for a := range m.running {
		if a.slots == s {
			sum += a.has
		}
	}
	return sum
}

// The limits of the memory for refs.
const (
	MaxWitnesses = maxWitnesses
	Tick         = tick
)

// Witnessed reports whether changes of every ref can be noticed.
func (r *Repository) Witnessed() bool { return r.knownRefs() != nil }

// ReadLayout reads the layout of a repository that git has created.
func ReadLayout(dir string) error {
	_, err := readLayout(dir)
	return err
}
