package transfer

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/forgeplane/forgeplane/internal/git/refs"
)

func TestPlan(t *testing.T) {
	local := []refs.Ref{{Name: "refs/heads/main", Object: "1"}, {Name: "refs/heads/new", Object: "2"}, {Name: "refs/tags/v1", Object: "3"}}
	remote := map[string]string{"refs/heads/main": "0", "refs/heads/old": "4", "refs/tags/v1": "3", "refs/tags/v0": "5"}
	release := func(name string) bool { return strings.HasPrefix(name, "release/") }
	for about, c := range map[string]struct {
		local  []refs.Ref
		remote map[string]string
		branch func(string) bool
		keep   bool
		want   []string
	}{
		"all":            {local, remote, nil, false, []string{"+1:refs/heads/main", "+2:refs/heads/new", ":refs/heads/old", ":refs/tags/v0"}},
		"keeping":        {local, remote, nil, true, []string{"1:refs/heads/main", "2:refs/heads/new"}},
		"other branches": {local, remote, release, false, []string{":refs/tags/v0"}},
		"nothing there":  {local, nil, nil, false, []string{"+1:refs/heads/main", "+2:refs/heads/new", "+3:refs/tags/v1"}},
		"the same":       {local[2:], map[string]string{"refs/tags/v1": "3"}, nil, false, nil},
	} {
		t.Run(about, func(t *testing.T) {
			var got []string
			for _, change := range plan(c.local, c.remote, c.branch, c.keep) {
				got = append(got, strings.TrimSpace(strings.TrimPrefix(change.command(), "push ")))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestAPlanCarriedOutLeadsToTheRules carries out plans for random refs.
func TestPlan_leadsToTheRules(t *testing.T) {
	chance := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var local []refs.Ref
		remote, here := map[string]string{}, map[string]string{}
		for _, kind := range []string{"refs/heads/", "refs/tags/"} {
			for n := range 6 {
				name := fmt.Sprintf("%s%d", kind, n)
				if chance.IntN(2) == 0 {
					here[name] = fmt.Sprint(chance.IntN(3))
					local = append(local, refs.Ref{Name: name, Object: here[name]})
				}
				if chance.IntN(2) == 0 {
					remote[name] = fmt.Sprint(chance.IntN(3))
				}
			}
		}
		least, keep := fmt.Sprint(chance.IntN(7)), chance.IntN(2) == 0
		branch := func(name string) bool { return name >= least }
		after := maps.Clone(remote)
		for _, c := range plan(local, remote, branch, keep) {
			switch {
			case c.New == "":
				delete(after, c.Name)
			case c.force || remote[c.Name] == "":
				after[c.Name] = c.New
			}
		}
		for _, name := range slices.Concat(slices.Collect(maps.Keys(here)), slices.Collect(maps.Keys(remote))) {
			short, isBranch := strings.CutPrefix(name, "refs/heads/")
			want := here[name]
			if isBranch && !branch(short) || keep && remote[name] != "" {
				want = remote[name]
			}
			if after[name] != want {
				t.Fatalf("%s is %q, want %q: here %v, there %v, from %s, keeping %t", name, after[name], want, here, remote, least, keep)
			}
		}
		if again := plan(local, after, branch, keep); !keep && len(again) > 0 {
			t.Fatalf("there is still something to do: %v", again)
		}
	}
}

func TestExchange_outlivesAServerThatHasNothingToDo(t *testing.T) {
	advertisement := "004b" + strings.Repeat("1", 40) + " refs/heads/main\x00report-status\n" + flush
	left, right := net.Pipe()
	right.Close() // as a server of ssh that has read the flush, and ends before it is told that nothing follows
	w := &wire{Reader: strings.NewReader(advertisement), Writer: left, finish: func() { left.Close() }, close: func() {}}
	result, err := exchange(t.Context(), nil, w, nil, func(remote map[string]string) []change {
		if len(remote) != 1 {
			t.Errorf("the server has %v", remote)
		}
		return nil
	})
	if err != nil || result.Updated != 0 {
		t.Errorf("got %+v, %v", result, err)
	}
}
