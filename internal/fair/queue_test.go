package fair_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/forgeplane/forgeplane/internal/fair"
)

// crew begins jobs while there are slots for them.
type crew struct {
	queue *fair.Queue[string]
	holds map[string]*fair.Hold
	begun []string
	// barred are jobs that cannot begin for another reason.
	barred map[string]bool
}

func newCrew(total, share int) *crew {
	return &crew{
		queue: fair.NewQueue[string](fair.New("test", "jobs", fair.Limits{Total: total, Share: share})),
		holds: map[string]*fair.Hold{}, barred: map[string]bool{},
	}
}

func (c *crew) add(namespace string, number int) {
	for i := range number {
		c.queue.Add(fair.Namespace(namespace), fmt.Sprint(namespace, i))
	}
	c.begin()
}

func (c *crew) begin() {
	for {
		job, hold := c.queue.Next(func(job string) bool { return !c.barred[job] })
		if hold == nil {
			return
		}
		c.holds[job] = hold
		c.begun = append(c.begun, job)
	}
}

func (c *crew) end(jobs ...string) {
	for _, job := range jobs {
		c.queue.Done(c.holds[job])
		delete(c.holds, job)
		c.begin()
	}
}

func (c *crew) expect(t *testing.T, about string, want ...string) {
	t.Helper()
	if !slices.Equal(c.begun, want) {
		t.Errorf("%s: %v began, want %v", about, c.begun, want)
	}
	c.begun = nil
}

func TestQueue_leavesSlotsForOthers(t *testing.T) {
	c := newCrew(4, 2)
	c.add("many", 5000)
	c.expect(t, "with free slots, one namespace", "many0", "many1")
	c.add("a", 1)
	c.add("b", 1)
	c.expect(t, "those who come later", "a0", "b0")
	c.add("c", 1)
	c.expect(t, "when all slots are taken")
	c.end("many0")
	c.expect(t, "who has had nothing goes first", "c0")
	c.end("c0", "many1")
	c.expect(t, "the others follow", "many2", "many3")
}

func TestQueue_takesTurns(t *testing.T) {
	c := newCrew(1, 1)
	c.add("many", 3)
	c.expect(t, "one slot", "many0")
	c.add("few", 2)
	c.add("one", 1)
	c.end("many0", "few0", "one0", "many1", "few1", "many2")
	c.expect(t, "turns", "few0", "one0", "many1", "few1", "many2")
	c.add("many", 1)
	c.expect(t, "again", "many0")
}

func TestQueue_skipsJobsThatCannotBegin(t *testing.T) {
	c := newCrew(2, 1)
	c.barred["a0"], c.barred["a1"] = true, true
	c.add("a", 3)
	c.expect(t, "another one of the same namespace", "a2")
	c.add("b", 1)
	c.expect(t, "another namespace", "b0")
	c.end("a2")
	c.expect(t, "nothing that can begin")
	c.barred = nil
	c.begin()
	c.expect(t, "what was missing is there", "a0")
	c.queue.Remove("a1")
	c.queue.Remove("nobody")
	c.end("a0", "b0")
	c.expect(t, "what was removed")
}

func TestQueue_hasMetrics(t *testing.T) {
	slots := fair.New("test", "jobs", fair.Limits{Total: 3, Share: 2})
	registry := prometheus.NewRegistry()
	if err := slots.Register(registry); err != nil {
		t.Fatal(err)
	}
	c := &crew{queue: fair.NewQueue[string](slots), holds: map[string]*fair.Hold{}}
	expect := func(about string, held, waiting float64) {
		t.Helper()
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]float64{}
		for _, f := range families {
			got[f.GetName()] = 0
			for _, m := range f.GetMetric() {
				got[f.GetName()] += m.GetGauge().GetValue()
			}
		}
		if got["forgeplane_slots_held"] != held || got["forgeplane_slots_waiting"] != waiting {
			t.Errorf("%s: got %v, want %v held and %v waiting", about, got, held, waiting)
		}
	}
	c.add("a", 5)
	expect("two run", 2, 3)
	c.queue.Remove("a4")
	expect("one is gone", 2, 2)
	c.end("a0")
	expect("one has ended", 2, 1)
	c.end("a1", "a2", "a3")
	expect("all have", 0, 0)
}
