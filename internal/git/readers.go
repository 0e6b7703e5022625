package git

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/forgeplane/forgeplane/internal/fair"
	"github.com/forgeplane/forgeplane/internal/git/internal/process"
)

// The limits of an engine's readers.
const (
	// maxReaders is the maximum number of readers in use, and of idle readers, for all repositories.
	maxReaders = 64
	// maxReadersEach is the maximum number of readers in use for one repository.
	maxReadersEach = 4
	readerIdle     = 10 * time.Second
	// readTimeout limits one use of a reader.
	readTimeout = time.Minute
	// readersShare is the maximum percentage of the readers that one caller can use at once. It is high, because a read never waits for a
	// client.
	readersShare = 75
)

// errClosedEngine is returned after Engine.Close.
var errClosedEngine = errors.New("the Git engine is closed")

// readers manages the processes with which an engine reads objects. Starting one takes as long as fifty reads.
type readers struct {
	processes *process.Runner
	slots     *fair.Slots
	// patience is the time for which an idle reader is kept.
	patience time.Duration

	mu     sync.Mutex
	closed bool
	// shelves are by repository directory. Only repositories with a reader, idle or in use, have one.
	shelves map[string]*shelf
	// idle is the number of idle readers on all shelves.
	idle int
}

// shelf has the readers of one repository.
type shelf struct {
	slots *fair.Slots
	// users is the number of goroutines that hold or wait for a slot.
	users int
	// idle are the idle readers; the last one was used most recently.
	idle []*reader
	// evicted counts how often all readers were evicted.
	evicted int
}

func newReaders(processes *process.Runner, patience time.Duration) *readers {
	return &readers{processes: processes, patience: patience, slots: fair.New("readers", "reads of repositories", fair.Of(maxReaders, readersShare, 0)), shelves: map[string]*shelf{}}
}

// use calls do with a reader of the repository in a directory. pin is called before a reader is started. The reader is not used again if do fails or is cancelled.
func (p *readers) use(ctx context.Context, dir string, pin func(context.Context) (pins, error), do func(*reader) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readTimeout, fmt.Errorf("reading objects took longer than %s: %w", readTimeout, process.ErrBusy))
	defer cancel()
	s := p.enter(dir)
	defer p.leave(dir, s)
	leaveShelf, err := process.Enter(ctx, s.slots)
	if err != nil {
		return err
	}
	defer leaveShelf()
	leave, err := process.Enter(ctx, p.slots)
	if err != nil {
		return err
	}
	defer leave()
	for {
		one, used, evicted, err := p.take(ctx, dir, pin, s)
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
		if failure := one.process.Wait(); failure != nil {
			return failure
		}
		if !used || errors.Is(err, ErrFileTooLarge) {
			return err
		}
		// An idle reader may have died, which says nothing about the repository. do starts again with another one.
	}
}

// enter returns the shelf of a directory, which exists until leave is called.
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

// tidy removes a shelf that is no longer needed.
func (p *readers) tidy(dir string, s *shelf) {
	if s.users == 0 && len(s.idle) == 0 && p.shelves[dir] == s {
		delete(p.shelves, dir)
	}
}

// take returns a reader, and whether it was used before. evicted must be passed to put.
func (p *readers) take(ctx context.Context, dir string, pin func(context.Context) (pins, error), s *shelf) (one *reader, used bool, evicted int, err error) {
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
		// It has expired, and expire closes it.
	}
	p.mu.Unlock()
	held, err := pin(ctx)
	if err != nil {
		return nil, false, 0, err
	}
	defer held.release()
	one, err = startReader(ctx, p.processes, dir, held)
	return one, false, evicted, err
}

// put returns a reader to its shelf, unless the shelf was evicted in the meantime.
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

// expire ends a reader that was not used for a while.
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

// evict ends the readers of a directory; readers in use end when they are returned.
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

// dismiss ends the idle readers that a caller has started; nil stands for all callers.
func (p *readers) dismiss(who *fair.Key) {
	p.mu.Lock()
	var ended []*reader
	for dir, s := range p.shelves {
		if who == nil {
			s.evicted++ // readers in use end when they are returned
		}
		ended = append(ended, p.clear(s, who)...)
		p.tidy(dir, s)
	}
	p.mu.Unlock()
	for _, one := range ended {
		one.close()
	}
}

// clear removes the idle readers that a caller has started from a shelf; nil stands for all callers.
func (p *readers) clear(s *shelf, who *fair.Key) (ended []*reader) {
	s.idle = slices.DeleteFunc(s.idle, func(one *reader) bool {
		if who != nil && one.caller != *who {
			return false
		}
		p.idle--
		if one.idle.Stop() { // otherwise expire closes it
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
