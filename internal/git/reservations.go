package git

import "sync"

// reservations count the refs that are about to be created, by repository directory.
type reservations struct {
	mu   sync.Mutex
	refs map[string]int
}

// reserve adds a number of refs, and returns the total.
func (r *reservations) reserve(dir string, refs int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.refs == nil {
		r.refs = map[string]int{}
	}
	r.refs[dir] += refs
	reserved := r.refs[dir]
	if reserved == 0 {
		delete(r.refs, dir)
	}
	return reserved
}

// PlanRefs counts refs that are about to be created, or with a negative number, that no longer are. It returns how many are.
func (r *Repository) PlanRefs(number int) (planned int) {
	return r.engine.reservations.reserve(r.dir, number)
}
