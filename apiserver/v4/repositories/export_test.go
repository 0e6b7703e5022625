package repositories

// With makes the family find the merge requests of commits in m.
func (f *Family) With(m mergeRequests) *Family {
	f.mergeRequests = m
	return f
}
