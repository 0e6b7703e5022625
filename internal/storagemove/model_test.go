package storagemove_test

import (
	"errors"
	"fmt"
	"strconv"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/storagemove"
	"github.com/forgeplane/forgeplane/test/soak"
)

// The model explores every interleaving of pushes, of processes that carry out a move and a move back, of crashes, of writes to the API server
// whose answer is lost, and of processes that begin although another one only sleeps. The project is changed by the functions of this package; the
// shards are what internal/git/relocate does to them, step by step. Change the model together with controllers/storagemove and
// internal/git/relocate.

// place is the state of the project on a shard. copy identifies the copy, 0 for none; pushes are the pushes that it has, as bits; mark is
// the attempt that has retired it; closer is the process that has closed it.
type place struct{ copy, pushes, mark, closer int8 }

// moveState is the status of a move that is stored.
type moveState struct {
	state          int8
	source, target int8
	attempt        int8
}

// lock is a ProjectMove: move is 1 or 2, and 0 for none.
type lock struct{ move, attempt, source, target int8 }

// worker is a process that carries out a move. It has ended at step 0. failing says that it gives the move up.
type worker struct {
	step, move, attempt, staged, mine int8
	failing                           bool
	// seen is its knowledge of the other move.
	seen moveState
}

// world is a state of everything. The first move leads from shard 0 to shard 1, and the second one back.
type world struct {
	storage    int8
	held, last lock
	moves      [2]moveState
	shards     [2]place
	workers    [2]worker
	// everLive has the shards that servers can take for the project's, as bits. accepted are the pushes that clients saw succeed.
	// A move removes the former copy when all servers know the new one.
	everLive, accepted, copies          int8
	pushesLeft, starts, crashes, losses int8
}

const (
	initial = iota
	scheduled
	replicated
	finished
	failed
)

var states = []v1alpha1.StorageMoveState{
	v1alpha1.StorageMoveInitial, v1alpha1.StorageMoveScheduled, v1alpha1.StorageMoveReplicated, v1alpha1.StorageMoveFinished, v1alpha1.StorageMoveFailed,
}

var shardNames = []string{"a", "b"}

// mark is the name of an attempt on the shards.
func (me worker) mark() int8 { return me.move*16 + me.attempt }

func uid(move int8) types.UID { return types.UID(strconv.Itoa(int(move))) }

func object(move int8) *v1alpha1.StorageMove {
	return &v1alpha1.StorageMove{ObjectMeta: metav1.ObjectMeta{Name: string(uid(move)), UID: uid(move)}}
}

func (l lock) project() *v1alpha1.ProjectMove {
	if l.move == 0 {
		return nil
	}
	return &v1alpha1.ProjectMove{
		Name: string(uid(l.move)), UID: string(uid(l.move)), Attempt: int64(l.attempt), Source: shardNames[l.source], Destination: shardNames[l.target],
	}
}

func shardOf(name string) int8 { return int8(name[0] - 'a') }

func lockOf(p *v1alpha1.ProjectMove) lock {
	if p == nil {
		return lock{}
	}
	move, _ := strconv.Atoi(p.UID)
	return lock{int8(move), int8(p.Attempt), shardOf(p.Source), shardOf(p.Destination)} //nolint:gosec // small numbers
}

func (w *world) project() *v1alpha1.Project {
	p := &v1alpha1.Project{}
	p.Status.Storage, p.Status.RefsChecksum = shardNames[w.storage], "0"
	p.Status.Move, p.Status.LastMove = w.held.project(), w.last.project()
	return p
}

// change applies a change to the project by a function of the package, as one write with an optimistic lock does.
func (w *world) change(me *worker, do func(p *v1alpha1.Project, m *v1alpha1.StorageMove) error) error {
	p := w.project()
	if err := do(p, object(me.move)); err != nil {
		return err
	}
	w.held, w.last = lockOf(p.Status.Move), lockOf(p.Status.LastMove)
	w.storage = shardOf(p.Status.Storage)
	w.everLive |= 1 << w.storage
	return nil
}

func (w *world) holds(me *worker) bool {
	return storagemove.Holds(w.project(), object(me.move), int64(me.attempt)) && w.storage == w.moves[me.move-1].source
}

// blocked reports whether a move must wait for the other one.
func (w *world) blocked(me *worker) bool {
	other := object(3 - me.move)
	other.Status.State, other.Status.Source = states[me.seen.state], shardNames[me.seen.source]
	return storagemove.Blocking([]*v1alpha1.StorageMove{other}, w.project(), object(me.move), shardNames[2-me.move]) != nil
}

// crash kills a process: the kernel releases its locks.
func (w world) crash(i int8) world {
	w.workers[i] = worker{}
	for s := range w.shards {
		if w.shards[s].closer == i+1 {
			w.shards[s].closer = 0
		}
	}
	w.crashes--
	return w
}

// push pushes to a shard, perhaps by a server that does not know yet where the project is.
func (w world) push(shard int) world {
	w.pushesLeft--
	bit := int8(1) << w.pushesLeft
	if s := &w.shards[shard]; s.copy != 0 && s.closer == 0 && s.mark == 0 {
		s.pushes |= bit
		w.accepted |= bit
	}
	return w
}

// successors returns all states that one event leads to.
func (w world) successors() (all []world) {
	for i := range int8(len(w.workers)) {
		if w.workers[i].step == ended {
			for move := int8(1); w.starts > 0 && move <= 2; move++ {
				if w.moves[move-1].state < finished {
					begun := w
					begun.starts--
					begun.workers[i] = worker{step: read, move: move}
					all = append(all, begun)
				}
			}
			continue
		}
		all = append(all, w.next(i)...)
		if w.crashes > 0 {
			all = append(all, w.crash(i))
		}
	}
	for s := range w.shards {
		if w.pushesLeft > 0 && w.everLive&(1<<s) != 0 {
			all = append(all, w.push(s))
		}
	}
	return all
}

// check returns an error if a state is wrong.
func (w world) check() error {
	live := w.shards[w.storage]
	if live.copy == 0 {
		return errors.New("the project uses a shard that has no copy")
	}
	if live.pushes&w.accepted != w.accepted {
		return errors.New("the live copy lacks an accepted push")
	}
	return nil
}

// settle lets new processes run alone until nothing is left to do, and returns an error if a state is wrong.
func (w world) settle() (world, error) {
	w.losses = 0
	for n := range 12 {
		w.workers[0] = worker{step: read, move: int8(n%2 + 1)} //nolint:gosec // 1 or 2
		for w.workers[0].step != ended {
			w = w.next(0)[0]
			if err := w.check(); err != nil {
				return w, err
			}
		}
		// The controller of projects releases a project that a move holds which has ended, and makes a live copy writable that an attempt has retired
		// after it was replaced.
		if w.held.move != 0 && w.moves[w.held.move-1].state >= replicated {
			w.held = lock{}
		}
		if w.held.move == 0 {
			w.shards[w.storage].mark = 0
		}
	}
	live, other := w.shards[w.storage], w.shards[1-w.storage]
	switch {
	case w.moves[0].state < finished || w.moves[1].state < finished:
		return w, errors.New("a move does not end")
	case w.held.move != 0:
		return w, errors.New("the project is still held")
	case live.mark != 0 || live.closer != 0:
		return w, errors.New("the project takes no writes")
	case other.mark != 0:
		return w, errors.New("a former copy is left")
	}
	return w, nil
}

func TestModel_losesNoPush(t *testing.T) {
	ends := map[string]int{}
	for name, begin := range map[string]world{
		"crashes":      {pushesLeft: 1, starts: 4, crashes: soak.Times[int8](2, 3)},
		"lost answers": {pushesLeft: 1, starts: soak.Times[int8](3, 4), crashes: 1, losses: 1},
		"pushes":       {pushesLeft: soak.Times[int8](2, 4), starts: 3, crashes: 1},
	} {
		t.Run(name, func(t *testing.T) { explore(t, begin, ends) })
	}
	for _, end := range []string{"finished, finished back", "failed, finished back"} {
		if ends[end] == 0 {
			t.Errorf("the model does not reach this end: %s", end)
		}
	}
}

// explore adds the ends of the moves to ends.
func explore(t *testing.T, begin world, ends map[string]int) {
	t.Helper()
	begin.everLive, begin.copies = 1, 1
	begin.shards[0].copy = 1
	// step is the transition to a state.
	type step struct{ from *world }
	seen := map[world]step{begin: {}}
	for queue := []world{begin}; len(queue) > 0; {
		w := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		err := w.check()
		final := w
		if err == nil && w.workers == [2]worker{} {
			if final, err = w.settle(); err == nil {
				ends[fmt.Sprintf("%s, %s back", states[final.moves[0].state], states[final.moves[1].state])]++
			}
		}
		if err != nil {
			for at := &w; at != nil; at = seen[*at].from {
				t.Logf("%+v", *at)
			}
			t.Fatalf("%v: %+v", err, final)
		}
		for _, next := range w.successors() {
			if _, known := seen[next]; !known {
				seen[next] = step{&w}
				queue = append(queue, next)
			}
		}
	}
	t.Logf("%d states; so far, the moves end as follows where all processes have stopped: %v", len(seen), ends)
}
