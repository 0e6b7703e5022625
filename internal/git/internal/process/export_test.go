package process

import "github.com/forgeplane/forgeplane/internal/fair"

// ByShell makes the runner limit processes as it does if they cannot be halted.
func (p *Runner) ByShell() { p.halts = false }

// Halts reports whether limits are set while a process is halted.
func (p *Runner) Halts() bool { return p.halts }

// HeavyMemory returns the last measured memory of the processes that are not light, in MiB.
func (p *Runner) HeavyMemory() int { return p.memory.of(p.memory.heavy) }

// LightMemory returns the last measured memory of the light processes, in MiB.
func (p *Runner) LightMemory() int { return p.memory.of(p.memory.light) }

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
