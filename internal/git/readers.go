package git

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/forgeplane/forgeplane/internal/fair"
)

// The bounds of the readers of an engine.
const (
	// maxReaders of all repositories are in use at once, and as many wait for their next use.
	maxReaders = 64
	// maxReadersEach of one repository are in use at once.
	maxReadersEach = 4
	readerIdle     = 10 * time.Second
	// readTimeout is for one use.
	readTimeout = time.Minute
	// readersShare is how many percent of the readers one caller has at once. It is much, because a read waits for no client.
	readersShare = 75
)

// errClosedEngine is returned after Engine.Close.
var errClosedEngine = errors.New("the Git engine is closed")

// readers are the processes by which an engine reads objects. To start one takes as long as fifty reads.
type readers struct {
	engine *Engine
	slots  *fair.Slots
	// patience is how long one waits for its next use.
	patience time.Duration

	mu     sync.Mutex
	closed bool
	// shelves are by the directory of the repository; only those that have a reader, in use or not.
	shelves map[string]*shelf
	// idle counts the readers on all shelves.
	idle int
}

// shelf is the readers of one repository.
type shelf struct {
	slots *fair.Slots
	// users hold or wait for a slot.
	users int
	// idle readers, the one that was used last at the end.
	idle []*reader
	// evicted counts how often all of them were thrown away.
	evicted int
}

func newReaders(e *Engine, patience time.Duration) *readers {
	return &readers{engine: e, patience: patience, slots: fair.New("readers", "reads of repositories", fair.Of(maxReaders, readersShare, 0)), shelves: map[string]*shelf{}}
}

// use lets do ask one reader of a repository. A reader that do has failed on, or that was cancelled, is not used again.
func (p *readers) use(ctx context.Context, r *Repository, do func(*reader) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readTimeout, fmt.Errorf("reading objects took longer than %s: %w", readTimeout, ErrBusy))
	defer cancel()
	s := p.enter(r.dir)
	defer p.leave(r.dir, s)
	leaveShelf, err := enter(ctx, s.slots)
	if err != nil {
		return err
	}
	defer leaveShelf()
	leave, err := enter(ctx, p.slots)
	if err != nil {
		return err
	}
	defer leave()
	for {
		one, used, evicted, err := p.take(ctx, r, s)
		if err != nil {
			return err
		}
		stop := context.AfterFunc(ctx, one.kill)
		err = do(one)
		if !stop() { // it was killed
			one.close()
			return context.Cause(ctx)
		}
		if err == nil {
			p.put(s, one, evicted)
			return nil
		}
		one.close()
		if one.failure != nil {
			return one.failure
		}
		if !used || errors.Is(err, ErrFileTooLarge) {
			return err
		}
		// One that has waited may have died meanwhile, which says nothing about the repository. do begins anew with another.
	}
}

// enter returns the shelf of a directory, which stays until leave.
func (p *readers) enter(dir string) *shelf {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.shelves[dir]
	if s == nil {
		s = &shelf{slots: fair.New("readers-of-one", "reads of this repository", fair.Limits{Total: maxReadersEach})}
		p.shelves[dir] = s
	}
	s.users++
	return s
}

func (p *readers) leave(dir string, s *shelf) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.users--
	p.tidy(dir, s)
}

// tidy forgets a shelf that nobody needs.
func (p *readers) tidy(dir string, s *shelf) {
	if s.users == 0 && len(s.idle) == 0 && p.shelves[dir] == s {
		delete(p.shelves, dir)
	}
}

// take returns a reader, and whether it was used before. evicted is for put.
func (p *readers) take(ctx context.Context, r *Repository, s *shelf) (one *reader, used bool, evicted int, err error) {
	p.mu.Lock()
	evicted = s.evicted
	if p.closed {
		p.mu.Unlock()
		return nil, false, 0, errClosedEngine
	}
	for len(s.idle) > 0 {
		last := len(s.idle) - 1
		one, s.idle = s.idle[last], s.idle[:last]
		p.idle--
		if one.idle.Stop() {
			p.mu.Unlock()
			return one, true, evicted, nil
		}
		// Its time is up, and expire closes it.
	}
	p.mu.Unlock()
	if err := r.Check(); err != nil {
		return nil, false, 0, err
	}
	one, err = p.engine.startReader(ctx, r.dir)
	return one, false, evicted, err
}

// put lays a reader on the shelf that it was taken from, unless that was evicted meanwhile.
func (p *readers) put(s *shelf, one *reader, evicted int) {
	p.mu.Lock()
	keep := !p.closed && s.evicted == evicted && p.idle < maxReaders
	if keep {
		p.idle++
		s.idle = append(s.idle, one)
		one.idle = time.AfterFunc(p.patience, func() { p.expire(s, one) })
	}
	p.mu.Unlock()
	if !keep {
		one.close()
	}
}

// expire ends a reader that nobody has used for a while.
func (p *readers) expire(s *shelf, one *reader) {
	p.mu.Lock()
	for i, o := range s.idle {
		if o == one {
			s.idle = append(s.idle[:i], s.idle[i+1:]...)
			p.idle--
			break
		}
	}
	for dir, there := range p.shelves {
		if there == s {
			p.tidy(dir, s)
			break
		}
	}
	p.mu.Unlock()
	one.close()
}

// evict ends the readers of a directory, those in use when they are given back.
func (p *readers) evict(dir string) {
	p.mu.Lock()
	var ended []*reader
	if s := p.shelves[dir]; s != nil {
		s.evicted++
		ended = p.clear(s, nil)
		p.tidy(dir, s)
	}
	p.mu.Unlock()
	for _, one := range ended {
		one.close()
	}
}

// dismiss ends the readers that nobody uses, and that a caller has started; who is nil for whoever it was.
func (p *readers) dismiss(who *fair.Key) {
	p.mu.Lock()
	var ended []*reader
	for dir, s := range p.shelves {
		if who == nil {
			s.evicted++ // those in use follow
		}
		ended = append(ended, p.clear(s, who)...)
		p.tidy(dir, s)
	}
	p.mu.Unlock()
	for _, one := range ended {
		one.close()
	}
}

// clear takes the idle readers off a shelf that a caller has started; all of them where who is nil.
func (p *readers) clear(s *shelf, who *fair.Key) (ended []*reader) {
	s.idle = slices.DeleteFunc(s.idle, func(one *reader) bool {
		if who != nil && one.caller != *who {
			return false
		}
		p.idle--
		if one.idle.Stop() { // else expire closes it
			ended = append(ended, one)
		}
		return true
	})
	return ended
}

// close ends all readers.
func (p *readers) close() {
	p.mu.Lock()
	p.closed = true
	var ended []*reader
	for _, s := range p.shelves {
		ended = append(ended, p.clear(s, nil)...)
	}
	p.mu.Unlock()
	for _, one := range ended {
		one.close()
	}
}
