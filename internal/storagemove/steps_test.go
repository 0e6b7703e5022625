package storagemove_test

import (
	"errors"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/storagemove"
)

// The steps of a process in the model.
const (
	ended = iota
	read
	block
	hold
	schedule
	resume
	advance
	concede
	look
	vacateClose
	vacateConfirm
	vacateRemove
	undoClose
	undoConfirm
	undoRemove
	undoReinstate
	undoOpen
	release
	copyFiles
	closeSource
	catchUp
	confirm
	put
	retire
	change
	openSource
	withdraw
	reinstate
	openAgain
	giveUp
	remove
)

// next returns the states that one step of a process can lead to. The first one is that in which every answer arrives.
func (w world) next(i int8) []world {
	me := &w.workers[i]
	step := me.step
	me.step++ // unless it goes elsewhere
	m := &w.moves[me.move-1]
	switch step {
	case read, block, hold, schedule, resume:
		w.begin(me, m, step)
	case advance, change, release:
		return w.write(i, step)
	case concede, giveUp:
		w.end(me, m, step)
	case remove:
		me.step = ended
		if from := &w.shards[m.source]; w.storage != m.source && (from.mark == me.mark() || from.copy == 0) {
			if from.closer != 0 {
				break // it waits
			}
			*from = place{}
			m.state, w.everLive = finished, 1<<w.storage
		} else if w.storage == m.source {
			m.state = finished // a later move has brought the project back
		}
	default:
		w.relocate(i, step)
	}
	return []world{w}
}

// begin is a step before an attempt.
func (w *world) begin(me *worker, m *moveState, step int8) {
	p, o := w.project(), object(me.move)
	switch step {
	case read:
		switch {
		case m.state == initial && storagemove.LockOf(p, o) != nil:
			me.step = schedule
		case m.state == scheduled:
			me.step = resume
		case m.state == replicated:
			me.attempt, me.step = m.attempt, remove
		case m.state > replicated:
			me.step = ended
		}
	case block:
		me.seen = w.moves[2-me.move]
	case hold:
		if w.blocked(me) || w.change(me, func(p *v1alpha1.Project, o *v1alpha1.StorageMove) error {
			return storagemove.Hold(p, o, shardNames[2-me.move])
		}) != nil {
			me.step = ended // another process begins later
		}
		me.seen = moveState{}
	case schedule:
		if l := storagemove.LockOf(p, o); l != nil && m.state == initial {
			m.state, m.source, m.target = scheduled, shardOf(l.Source), shardOf(l.Destination)
		} else {
			me.step = ended
		}
	case resume:
		switch switched := storagemove.Switched(p, o); {
		case m.state != scheduled:
			me.step = ended // the status is written with an optimistic lock
		case m.source == m.target:
			_ = w.change(me, func(p *v1alpha1.Project, o *v1alpha1.StorageMove) error { return storagemove.Release(p, o, 0) })
			m.state, me.step = finished, ended
		case switched != nil:
			m.state, m.attempt = replicated, int8(switched.Attempt) //nolint:gosec // a small number
			me.attempt, me.step = m.attempt, remove
		case !storagemove.Held(p, o):
			me.failing, me.step = true, advance
		}
	}
}

// write is a step that writes the project. The answer can be lost, and with it perhaps the write.
func (w world) write(i, step int8) []world {
	do := func(w world, answered bool) world {
		me := &w.workers[i]
		me.step = step + 1
		m := &w.moves[me.move-1]
		switch step {
		case advance:
			err := w.change(me, storagemove.Advance)
			switch {
			case err == nil && answered:
				if me.attempt = w.held.attempt; me.failing {
					me.step = undoClose
				} else {
					me.step = look
				}
			case me.failing && answered: // it is not held, so there is nothing to undo
				me.step = ended
				w.conclude(me, m)
			case me.failing:
				me.step = ended
			default:
				me.step = concede
			}
		case change:
			err := w.change(me, func(p *v1alpha1.Project, o *v1alpha1.StorageMove) error {
				return storagemove.Switch(p, o, int64(me.attempt))
			})
			if err != nil {
				me.step = withdraw
			} else if !answered {
				me.step = change // it asks whether the project was switched
			}
			if switched := storagemove.Switched(w.project(), object(me.move)); switched != nil && switched.Attempt == int64(me.attempt) {
				me.step = openSource
			}
		case release:
			err := w.change(me, me.release(me.attempt))
			if me.step = ended; answered && err == nil {
				w.conclude(me, m)
			}
		}
		return w
	}
	all := []world{do(w, true)}
	if w.losses > 0 {
		w.losses--
		all = append(all, do(w, false))
		unwritten := w
		switch me := &unwritten.workers[i]; {
		case step == change:
			me.step = change
		case step == advance && !me.failing:
			me.step = concede
		default:
			me.step = ended
		}
		all = append(all, unwritten)
	}
	return all
}

// end is a step after an attempt that has failed.
func (w *world) end(me *worker, m *moveState, step int8) {
	from, to := w.shards[m.source], w.shards[m.target]
	if m.state != scheduled {
		me.step = ended
		return
	}
	if from.mark != 0 || from.copy == 0 || to.copy != 0 {
		me.failing, me.step = true, advance
		return
	}
	number := me.attempt
	if step == concede {
		number = 0 // the answer to Advance is lost
	}
	err := w.change(me, me.release(number))
	if errors.Is(err, storagemove.ErrNotHeld) {
		me.failing, me.step = true, advance
		return
	}
	me.step = ended
	w.conclude(me, m)
}

// release returns the release of the project at an attempt.
func (me *worker) release(attempt int8) func(*v1alpha1.Project, *v1alpha1.StorageMove) error {
	return func(p *v1alpha1.Project, o *v1alpha1.StorageMove) error {
		return storagemove.Release(p, o, int64(attempt))
	}
}

// conclude writes the state of a move that no longer holds the project, with an optimistic lock.
func (w *world) conclude(me *worker, m *moveState) {
	if m.state != scheduled {
		return
	}
	m.state = failed
	if switched := storagemove.Switched(w.project(), object(me.move)); switched != nil {
		m.state, m.attempt = replicated, int8(switched.Attempt) //nolint:gosec // a small number
	}
}

// relocate is a step of internal/git/relocate, or of what clears the way for it.
func (w *world) relocate(i, step int8) {
	me := &w.workers[i]
	m := w.moves[me.move-1]
	from, to := &w.shards[m.source], &w.shards[m.target]
	switch step {
	case look:
		if to.copy == 0 && from.mark == 0 {
			me.step = copyFiles
		}
	case vacateClose:
		switch {
		case to.mark == 0:
			me.step = undoClose
		case to.closer != 0:
			me.step = giveUp
		default:
			to.closer = i + 1
		}
	case vacateConfirm:
		if !w.holds(me) {
			to.closer, me.step = 0, giveUp
		}
	case vacateRemove:
		if to.mark != 0 {
			*to = place{}
		} else {
			to.closer = 0
		}
	case undoClose:
		if from.closer != 0 {
			me.step = ended // it waits; another process begins later
		} else {
			from.closer = i + 1
		}
	case undoConfirm:
		if !w.holds(me) {
			from.closer, me.step = 0, ended
		}
	case undoRemove:
		if to.closer != 0 {
			from.closer, me.step = 0, ended
		} else {
			*to = place{}
		}
	case undoReinstate:
		from.mark = 0
	case undoOpen:
		if from.closer = 0; !me.failing {
			me.step = copyFiles
		}
	case copyFiles:
		me.staged, me.step = from.pushes, closeSource
		if from.copy == 0 {
			me.step = giveUp
		}
	case closeSource:
		if from.copy == 0 || from.closer != 0 || from.mark != 0 {
			me.step = giveUp
		} else {
			from.closer = i + 1
		}
	case catchUp:
		me.staged = from.pushes
	case confirm:
		if !w.holds(me) {
			me.step = openAgain
		}
	case put:
		if to.copy != 0 {
			me.step = openAgain
		} else {
			w.copies++
			me.mine = w.copies
			*to = place{copy: me.mine, pushes: me.staged}
		}
	case retire:
		from.mark = me.mark()
	case openSource:
		from.closer, me.step = 0, ended // the controller goes on with the removal
	case withdraw:
		if to.copy == me.mine {
			*to = place{}
		}
	case reinstate:
		if from.mark == me.mark() {
			from.mark = 0
		}
	case openAgain:
		from.closer = 0
	}
}
