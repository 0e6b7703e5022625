package git

import (
	"context"
	"sync"
	"time"

	"github.com/forgeplane/forgeplane/internal/fair"
)

const (
	mebibyte = 1 << 20
	// What a process is thought to take in MiB before it is measured: one that walks, packs or serves, and one that looks something up.
	heavyMemory, lightMemory = 16, 2
	// lightPart of a hundred is for light processes alone. Heavy ones may wait for them, so they never wait for heavy ones.
	lightPart = 25
	// memoryShare and memoryReserved are how many percent of the memory one caller has at most while others wait, and how many are kept
	// for those who have signed in.
	memoryShare, memoryReserved = 50, 25
	// census is the time between two looks at what processes take, and most how many of them somebody waits for a caller who has more
	// than a share.
	census = 100 * time.Millisecond
	most   = 50
)

// light are the commands that look something up or write little. Most take a few MiB; one that takes more is ended where others wait.
var light = map[string]bool{
	"version": true, "init": true, "rev-parse": true, "symbolic-ref": true, "cat-file": true, "update-ref": true, "for-each-ref": true,
	"hash-object": true, "mktag": true, "mktree": true, "ls-tree": true,
}

// memory is what all processes of an engine have together. Each is counted with what it is thought to take, and from then on with what
// it has: what is short is known a moment later, and then the largest process of the caller who has most is ended.
type memory struct {
	total        int64
	heavy, light *fair.Slots
	// evict ends processes that nobody uses, and that a caller has started; who is nil for whoever it was.
	evict func(who *fair.Key)

	mu      sync.Mutex
	running map[*allotment]struct{}
	// watched says that a look is due. short counts the looks at which somebody was waiting for slots of a kind.
	watched bool
	short   map[*fair.Slots]int
	seen    groups
}

// allotment is the memory of a process, and of those that it starts.
type allotment struct {
	memory *memory
	slots  *fair.Slots
	hold   *fair.Hold
	least  int // in MiB
	group  int
	// command is what it is for, and early ends it.
	command command
	early   *ending
	// Guarded by the mutex of the memory.
	has   int
	ended *LimitError
}

func newMemory(total int64, wait time.Duration) *memory {
	m := &memory{total: total, running: map[*allotment]struct{}{}, short: map[*fair.Slots]int{}, evict: func(*fair.Key) {}}
	pool := func(name string, percent, reserved int) *fair.Slots {
		l := fair.Of(max(int(total*int64(percent)/100/mebibyte), 1), memoryShare, reserved)
		l.Wait = wait
		return fair.New(name, "MiB of memory for Git processes", l).Words(
			"Your Git processes have the %d MiB of memory that one caller may have while others need some.",
			"The server is busy: its Git processes have the %d MiB of memory that it allows them together.")
	}
	m.heavy, m.light = pool("git-memory", 100-lightPart, memoryReserved), pool("git-memory-light", lightPart, 0)
	return m
}

// allot waits until there is memory for a process. The error is ErrBusy where there is none in time.
func (m *memory) allot(ctx context.Context, c command, early *ending) (*allotment, error) {
	if m.total == 0 {
		return nil, nil
	}
	a := &allotment{memory: m, slots: m.heavy, least: heavyMemory, command: c, early: early}
	if c.light() {
		a.slots, a.least = m.light, lightMemory
	}
	if a.hold = a.slots.Try(ctx, a.least); a.hold != nil {
		return a, nil
	}
	if a.slots.OverShare(ctx, a.least) { // then nobody else is in the way
		caller := fair.From(ctx)
		m.evict(&caller)
		if a.hold = a.slots.Try(ctx, a.least); a.hold != nil {
			return a, nil
		}
	}
	if !a.slots.OverShare(ctx, a.least) {
		m.evict(nil)
	}
	var err error
	a.hold, err = take(ctx, a.slots, a.least)
	return a, err
}

// began says which group of processes has the memory.
func (a *allotment) began(group int) {
	if a == nil {
		return
	}
	m := a.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	a.group, a.has = group, a.least
	m.running[a] = struct{}{}
	m.watch()
}

// end gives the memory back, and returns why the processes were ended before their time, or nil.
func (a *allotment) end() error {
	if a == nil {
		return nil
	}
	m := a.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.running, a)
	a.hold.Leave()
	if a.ended == nil {
		return nil
	}
	return a.ended
}

// watch has somebody look at the processes in a moment, as long as there are any.
func (m *memory) watch() {
	if !m.watched && len(m.running) > 0 {
		m.watched = true
		time.AfterFunc(census, m.look)
	}
}

// look counts what the processes have, and ends one where that is too much.
func (m *memory) look() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.watched = false
	m.weigh()
	for _, s := range []*fair.Slots{m.heavy, m.light} {
		if s.Short() {
			m.short[s]++
		} else {
			m.short[s] = 0
		}
	}
	for over := m.over(); over != nil; over = m.over() {
		m.short[over.slots] = 0
		over.ended = m.exceeded()
		if over.command.short != nil {
			over.command.short(over.ended)
		}
		over.early.begin(over.group)
	}
	m.watch()
}

// weigh counts every process with what it has.
func (m *memory) weigh() {
	leaders := make(map[int]int64, len(m.running))
	for a := range m.running {
		leaders[a.group] = 0
	}
	m.seen.measure(leaders)
	for a := range m.running {
		if has := max(a.least, int((leaders[a.group]+mebibyte-1)/mebibyte)); has != a.has {
			a.has = has
			a.hold.Weigh(has)
		}
	}
}

// over returns the largest process of the caller who has most, where all have more than the total, or that caller has more than a share
// which another one has waited for; otherwise nil. A push that was accepted is carried through.
func (m *memory) over() (largest *allotment) {
	type holder struct {
		slots  *fair.Slots
		caller fair.Key
	}
	sum, callers, holders := 0, map[fair.Key]int{}, map[holder]int{}
	for a := range m.running {
		if a.ended == nil {
			sum += a.has
			callers[a.hold.Caller()] += a.has
			holders[holder{a.slots, a.hold.Caller()}] += a.has
		}
	}
	tooMuch := int64(sum)*mebibyte > m.total
	for a := range m.running {
		k := a.hold.Caller()
		missed := m.short[a.slots] >= most && holders[holder{a.slots, k}] > a.slots.Share()
		switch {
		case a.ended != nil, a.has == a.least, !tooMuch && !missed, a.command.spared():
		case largest == nil, callers[k] > callers[largest.hold.Caller()],
			callers[k] == callers[largest.hold.Caller()] && a.has > largest.has:
			largest = a
		}
	}
	return largest
}

func (m *memory) exceeded() *LimitError {
	e := limitf("This was ended because it takes more memory than there is: the server allows all Git processes together %s. Ask for less, or try again later.",
		FormatBytes(m.total))
	e.Passing = true
	return e
}
