package git

import "io"

// ByShell has the engine bound processes as it does where they cannot be halted.
func (e *Engine) ByShell() { e.halts = false }

// Halts reports whether processes are bounded while they are halted.
func (e *Engine) Halts() bool { return e.halts }

// NewSideband returns a sideband with the limits of an engine that was told none.
func NewSideband(to io.Writer) *sideband {
	b := bounds{memory: DefaultLimits.Memory, cpu: DefaultLimits.CPU}
	return newSideband(to, []sentence{{starved, b.starved()}, {overtime, b.late()}})
}

// End is end.
func (s *sideband) End(err error) error { return s.end(err) }

// HalfOf is HalfMemory of another machine.
var HalfOf = halfOf

// HeavyMemory is how many MiB the processes have that are not light, as far as they were measured.
func (e *Engine) HeavyMemory() (sum int) {
	e.memory.mu.Lock()
	defer e.memory.mu.Unlock()
	for a := range e.memory.running {
		if a.slots == e.memory.heavy {
			sum += a.has
		}
	}
	return sum
}

// SetAside is what RemoveUnused does before it looks at the repository once more.
func (r *Repository) SetAside() error { return r.setAside(r.dir, asideUnused) }
