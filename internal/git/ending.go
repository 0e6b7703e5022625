package git

import (
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// followersAgain is the time between two looks at whom git has started meanwhile.
const followersAgain = 100 * time.Millisecond

// ending ends the processes of a command before their time: because nobody waits for them any more, or for want of memory.
//
// git removes its lock files when it is told to end, but not the objects of a push: those it removes when what it has started has failed.
// So a push is told by way of that. Git goes on to tell its client, removes the objects, and ends. Whoever has not ended after a while is
// told to end, and after another while killed; then what the push has left is removed here.
type ending struct {
	// push says that the command is a push.
	push bool

	mu    sync.Mutex
	group int
	// begun is when it was; zero as long as nobody has asked for it.
	begun time.Time
	// asked says that all of the group were told, and over that the leader has ended.
	asked, over bool
	next        *time.Timer
	// quarantines are the names of the directories that the objects of the push lie in.
	quarantines map[string]struct{}
}

// begin ends the processes of a group. It does not wait for them.
func (e *ending) begin(group int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.over || !e.begun.IsZero() {
		return
	}
	e.group, e.begun, e.quarantines = group, time.Now(), map[string]struct{}{}
	e.step()
}

func (e *ending) again() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.over {
		e.step()
	}
}

// step does what is due.
func (e *ending) step() {
	switch {
	case e.push && time.Since(e.begun) < grace:
		e.tellFollowers()
		e.next = time.AfterFunc(followersAgain, e.again)
	case !e.asked:
		e.asked = true
		_ = syscall.Kill(-e.group, syscall.SIGTERM)
		e.next = time.AfterFunc(grace, e.again)
	default:
		_ = syscall.Kill(-e.group, syscall.SIGKILL)
	}
}

// tellFollowers tells the processes of the group to end, apart from the leader.
func (e *ending) tellFollowers() {
	for _, pid := range followers(e.group) {
		if name := quarantineOf(pid); quarantineName.MatchString(name) {
			e.quarantines[name] = struct{}{}
		}
		_ = syscall.Kill(pid, syscall.SIGTERM)
	}
}

// end is called when the leader has ended, for whatever reason, with the directory of the repository.
func (e *ending) end(dir string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.over = true
	if e.begun.IsZero() {
		return
	}
	e.next.Stop()
	_ = syscall.Kill(-e.group, syscall.SIGKILL) // whoever of the group has outlived its leader
	for name := range e.quarantines {
		_ = os.RemoveAll(filepath.Join(dir, "objects", name)) // what stays is stale one day
	}
}
