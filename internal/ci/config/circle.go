package config

// Circles calls found for each need that closes a circle of jobs, with its index. needs returns the jobs that a job needs; nil for a job that is
// missing.
func Circles[J any](jobs []*J, needs func(*J) []*J, found func(job *J, need int)) {
	const open, done = 1, 2
	state := make(map[*J]int, len(jobs))
	var visit func(*J) (circle bool)
	visit = func(j *J) bool {
		if state[j] != 0 {
			return state[j] == open
		}
		state[j] = open
		for i, needed := range needs(j) {
			if needed != nil && visit(needed) {
				found(j, i)
			}
		}
		state[j] = done
		return false
	}
	for _, j := range jobs {
		visit(j)
	}
}
