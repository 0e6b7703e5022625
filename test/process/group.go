package process

import (
	"errors"
	"sync"
)

// Group is a group of processes that run together. It fails when any of them ends. Its methods can be called by several goroutines. The zero Group
// is not usable.
type Group struct {
	failed chan error

	lock      sync.Mutex
	processes []*Process
	stopped   bool
}

// NewGroup returns an empty group.
func NewGroup() *Group { return &Group{failed: make(chan error, 1)} }

// Start adds a program to the group.
func (g *Group) Start(program Program) (*Process, error) {
	g.lock.Lock()
	defer g.lock.Unlock()
	if g.stopped {
		return nil, errors.New("the group was stopped")
	}
	p, err := Start(program)
	if err != nil {
		return nil, err
	}
	g.processes = append(g.processes, p)
	go g.watch(p)
	return p, nil
}

// watch runs as long as its process.
func (g *Group) watch(p *Process) {
	<-p.Done()
	g.lock.Lock()
	defer g.lock.Unlock()
	if g.stopped {
		return
	}
	select {
	case g.failed <- p.Ended():
	default: // The first end is the cause, and the others follow from it.
	}
}

// Failed receives the error of the first process that ended without being stopped, with the last lines of its log.
func (g *Group) Failed() <-chan error { return g.failed }

// Processes returns the processes in the order in which they started.
func (g *Group) Processes() []*Process {
	g.lock.Lock()
	defer g.lock.Unlock()
	return append([]*Process(nil), g.processes...)
}

// Stop stops all processes one after another, the last started first. Nothing can be started afterwards.
func (g *Group) Stop() error {
	g.lock.Lock()
	g.stopped = true
	g.lock.Unlock()
	var errs []error
	processes := g.Processes()
	for i := len(processes) - 1; i >= 0; i-- {
		errs = append(errs, processes[i].Stop())
	}
	return errors.Join(errs...)
}
