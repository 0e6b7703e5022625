package recall

// Waits reports whether an attempt waits for slots.
func (a Results) Waits() bool {
	a.answers.coalesced.mu.Lock()
	defer a.answers.coalesced.mu.Unlock()
	for _, q := range a.answers.coalesced.open {
		for _, one := range q.attempts {
			if one.waited && q.working != one {
				return true
			}
		}
	}
	return false
}

// Asked returns the number of questions without an answer.
func (a Results) Asked() int {
	a.answers.coalesced.mu.Lock()
	defer a.answers.coalesced.mu.Unlock()
	return len(a.answers.coalesced.open)
}

// Forget forgets all answers about the repository.
func (a Results) Forget() { a.answers.Forget(a.dir) }
