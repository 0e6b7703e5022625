package git

import (
	"io"

	"github.com/forgeplane/forgeplane/internal/fair"
)

// ByShell has the engine bound processes as it does where they cannot be halted.
func (e *Engine) ByShell() { e.halts = false }

// Halts reports whether processes are bounded while they are halted.
func (e *Engine) Halts() bool { return e.halts }

// NewSideband returns a sideband with the limits of an engine that was told none.
func NewSideband(to io.Writer) *sideband {
	b := bounds{memory: DefaultLimits.Memory, cpu: DefaultLimits.CPU}
	return newSideband(to, []sentence{{starved, b.starved()}, {overtime, b.late()}})
}

// Interject is interject.
func (s *sideband) Interject(why *LimitError) { s.interject(why) }

// End is end.
func (s *sideband) End(err error) error { return s.end(err) }

// HalfOf is HalfMemory of another machine.
var HalfOf = halfOf

// HeavyMemory is how many MiB the processes have that are not light, as far as they were measured.
func (e *Engine) HeavyMemory() int { return e.memory.of(e.memory.heavy) }

// LightMemory is that of the light ones.
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

// What bounds the memory of refs.
const (
	MaxWitnesses = maxWitnesses
	Tick         = tick
)

// Witnessed reports whether something tells of each change of a ref.
func (r *Repository) Witnessed() bool { return r.knownRefs() != nil }

// ReadLayout reads the layout of a repository that git has made.
func ReadLayout(dir string) error {
	_, err := readLayout(dir)
	return err
}
