package fair

// Callers returns the number of callers that s remembers.
func Callers(s *Slots) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.callers)
}
