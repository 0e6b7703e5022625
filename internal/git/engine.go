// Package git is the Git engine: it keeps bare repositories in storage directories, and reads their objects.
//
// An Engine runs the git binary in a clean environment, so the git configuration of the machine, of the service's user and of the caller's
// environment has no effect. It keeps processes that read objects; Close ends them. A Repository is a cheap handle on a directory and holds
// nothing open. All methods are safe for concurrent use.
//
// The packages below it are functions on a Repository: snapshot has the files of a commit, history its ancestors, refs the branches and tags,
// edit new commits, transfer what clients and other servers fetch and push, upkeep the maintenance, and relocate the moves to another storage.
// Package object has the formats.
package git

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/forgeplane/forgeplane/internal/fair"
	"github.com/forgeplane/forgeplane/internal/git/internal/process"
	"github.com/forgeplane/forgeplane/internal/git/internal/recall"
)

// Options configure an Engine.
type Options struct {
	// Binary is the git to run: a path, or a name to look up in PATH. The default is "git".
	Binary string
	// ReaderIdle is the time for which an idle process that reads objects is kept. The default is 10 seconds.
	ReaderIdle time.Duration
	// CommandTimeout limits a command on a repository if its context has no deadline. The default is a minute.
	CommandTimeout time.Duration
	// Limits are the limits of all repositories and processes.
	Limits Limits
	// Slots are shared by all callers.
	Slots Slots
	// Memory limits what this process itself holds for its callers: files and archives while clients read them. nil means no limit.
	Memory *fair.Memory
	// MemoryWait is the time for which a command waits for its part of Limits.MemoryTotal. The default is 30 seconds.
	MemoryWait time.Duration
	// Scratch returns a directory for short-lived files of commands. It is called each time. The directory must belong to this process
	// alone, so that no other user can write to it or replace it. Leftovers of killed processes there are removed. If Scratch is nil, the
	// directory for temporary files is used.
	Scratch func() (string, error)
}

// Engine runs the git binary.
type Engine struct {
	processes *process.Runner
	readers   *readers
	answers   *recall.Memory
	// layouts maps a layoutKind to a layout.
	layouts sync.Map
	// The slots that callers share.
	walks, archives, blobs *fair.Slots
	held                   *fair.Memory
	limits                 Limits
	reservations           reservations
	scratch                func() (string, error)
}

// OldestVersion is the oldest version of git that NewEngine accepts.
var OldestVersion = process.Needed

// NewEngine finds the git binary and determines its version. If the binary is missing or too old, the error says what to install.
func NewEngine(ctx context.Context, o Options) (*Engine, error) {
	if o.Binary == "" {
		o.Binary = "git"
	}
	limits := o.Limits.complete()
	processes, err := process.New(ctx, process.Options{
		Binary: o.Binary, Memory: limits.Memory, CPU: limits.CPU, Total: limits.MemoryTotal, Wait: o.MemoryWait, Timeout: o.CommandTimeout,
	})
	if err != nil {
		return nil, err
	}
	e := &Engine{processes: processes, answers: recall.New(), limits: limits, held: o.Memory, scratch: o.Scratch}
	e.share(o.Slots)
	e.readers = newReaders(processes, cmp.Or(o.ReaderIdle, readerIdle))
	processes.OnShortage(e.readers.dismiss)
	if err := e.sweep(); err != nil {
		e.Close()
		return nil, err
	}
	return e, nil
}

// Close ends the idle processes. The engine can no longer read objects afterwards.
func (e *Engine) Close() {
	e.readers.close()
	e.answers.Close()
}

// Limits returns the limits of the server. In each field, 0 means no limit.
func (e *Engine) Limits() Limits { return e.limits }

// Memory limits what this process itself holds for its callers. It can be nil.
func (e *Engine) Memory() *fair.Memory { return e.held }

// Archives returns the slots for archives.
func (e *Engine) Archives() *fair.Slots { return e.archives }

// Blobs returns the slots for blobs that are too large for memory.
func (e *Engine) Blobs() *fair.Slots { return e.blobs }

// Walks returns the slots for commands that walk through history or compare.
func (e *Engine) Walks() *fair.Slots { return e.walks }

// Processes returns the runner of the processes of the engine.
func (e *Engine) Processes() *process.Runner { return e.processes }

// Version returns the version of the git binary.
func (e *Engine) Version() process.Version { return e.processes.Version() }
