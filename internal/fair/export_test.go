package fair

// Callers is how many callers are remembered.
func Callers(s *Slots) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.callers)
}
