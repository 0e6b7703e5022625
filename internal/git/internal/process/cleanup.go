package process

import (
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"syscall"
	"time"
)

// followersAgain is the interval at which processes are listed that git has started in the meantime.
const followersAgain = 100 * time.Millisecond

// cleanup ends the processes of a command early, because their callers no longer wait or because of a lack of memory.
//
// When git is asked to end, it removes its lock files, but not the objects of a push. It removes those when a process that it started has
// failed. So for a push, the child processes are asked to end first; git then informs its client, removes the objects, and ends. Processes
// that have not ended after a grace period are asked to end, and after another one they are killed. In that case cleanup removes what the
// push has left.
type cleanup struct {
	// push says that the command is a push.
	push bool

	mu    sync.Mutex
	group int
	// begun is the time at which the end was requested; zero before that.
	begun time.Time
	// asked says that all processes of the group were asked to end, and over that the leader has ended.
	asked, over bool
	next        *time.Timer
	// quarantines are the names of the directories with the objects of the push.
	quarantines map[string]struct{}
}

// begin starts to end the processes of a group. It does not wait for them.
func (e *cleanup) begin(group int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.over || !e.begun.IsZero() {
		return
	}
	e.group, e.begun, e.quarantines = group, time.Now(), map[string]struct{}{}
	e.step()
}

func (e *cleanup) again() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.over {
		e.step()
	}
}

// step takes the next step if it is due.
func (e *cleanup) step() {
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

var quarantineName = regexp.MustCompile(`^tmp_objdir-incoming-[A-Za-z0-9]+$`)

// IsQuarantine reports whether a directory has the name of one with the objects of a push.
func IsQuarantine(name string) bool { return quarantineName.MatchString(name) }

// tellFollowers asks the processes of the group to end, except the leader.
func (e *cleanup) tellFollowers() {
	for _, pid := range followers(e.group) {
		if name := quarantineOf(pid); IsQuarantine(name) {
			e.quarantines[name] = struct{}{}
		}
		_ = syscall.Kill(pid, syscall.SIGTERM)
	}
}

// end must be called when the leader has ended for any reason, with the directory of the repository.
func (e *cleanup) end(dir string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.over = true
	if e.begun.IsZero() {
		return
	}
	e.next.Stop()
	_ = syscall.Kill(-e.group, syscall.SIGKILL) // processes of the group that have outlived the leader
	for name := range e.quarantines {
		_ = os.RemoveAll(filepath.Join(dir, "objects", name)) // leftovers become stale and are removed later
	}
}
