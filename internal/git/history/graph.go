package history

import "github.com/forgeplane/forgeplane/internal/git/object"

// Graph has the commits of a range with their parents. The zero Graph is empty.
type Graph struct {
	ids     []string
	parents [][]string
	// sorted are the positions of the commits, each before those of its parents, and at the indexes in sorted by the ids. They are nil after Add.
	sorted []int
	at     map[string]int
}

// Add adds a commit, once.
func (g *Graph) Add(c *object.Commit) {
	g.ids, g.parents = append(g.ids, c.ID), append(g.parents, c.Parents)
	g.sorted, g.at = nil, nil
}

// IDs returns the ids of the commits.
func (g *Graph) IDs() []string { return g.ids }

// Between calls each with the ids of the commits that are reachable from to but not from from. from has no effect if it is not in the graph.
func (g *Graph) Between(from, to string, each func(id string)) {
	if g.at == nil {
		g.sort()
	}
	begin, known := g.at[to]
	if !known || from == to {
		return
	}
	const wanted, excluded = 1, 2
	flags := map[int]uint8{begin: wanted}
	if start, known := g.at[from]; known {
		flags[start] |= excluded
		begin = min(begin, start)
	}
	// open is the number of commits that are wanted so far and not visited.
	open := 1
	for n := begin; n < len(g.sorted) && open > 0; n++ {
		own := flags[n]
		if own == 0 {
			continue
		}
		if own == wanted {
			open--
			each(g.ids[g.sorted[n]])
		}
		for _, id := range g.parents[g.sorted[n]] {
			p, known := g.at[id]
			if !known {
				continue
			}
			if before := flags[p]; before == 0 && own == wanted {
				open++
			} else if before == wanted && own&excluded != 0 {
				open--
			}
			flags[p] |= own
		}
	}
}

// sort sorts the commits.
func (g *Graph) sort() {
	position, children := make(map[string]int, len(g.ids)), make([]int, len(g.ids))
	for n, id := range g.ids {
		position[id] = n
	}
	each := func(n int, visit func(parent int)) {
		for _, id := range g.parents[n] {
			if p, known := position[id]; known {
				visit(p)
			}
		}
	}
	for n := range g.ids {
		each(n, func(p int) { children[p]++ })
	}
	g.sorted = make([]int, 0, len(g.ids))
	for n := range g.ids {
		if children[n] == 0 {
			g.sorted = append(g.sorted, n)
		}
	}
	for n := 0; n < len(g.sorted); n++ {
		each(g.sorted[n], func(p int) {
			if children[p]--; children[p] == 0 {
				g.sorted = append(g.sorted, p)
			}
		})
	}
	g.at = position
	for n, p := range g.sorted {
		g.at[g.ids[p]] = n
	}
}
