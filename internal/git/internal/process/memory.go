package process

import (
	"context"
	"sync"
	"time"

	"github.com/forgeplane/forgeplane/internal/fair"
)

const (
	mebibyte = 1 << 20
	// The assumed memory of a process in MiB before it is measured: of a process that walks, packs or serves, and of a process that looks something up.
	heavyMemory, lightMemory = 16, 2
	// lightPart is the percentage of the memory that is reserved for light processes. Heavy processes can wait for light ones, so light
	// ones must never wait for heavy ones.
	lightPart = 25
	// memoryShare is the maximum percentage of the memory for one caller while others wait, and memoryReserved the percentage that is
	// reserved for callers who have signed in.
	memoryShare, memoryReserved = 50, 25
	// census is the interval between two measurements. most is the number of measurements for which others must wait for a caller above its
	// share.
	census = 100 * time.Millisecond
	most   = 50
)

// light are the commands that look something up or write little. Most need a few MiB; one that needs more is ended if others wait.
var light = map[string]bool{
	"version": true, "init": true, "rev-parse": true, "symbolic-ref": true, "cat-file": true, "update-ref": true, "for-each-ref": true,
	"hash-object": true, "mktag": true, "mktree": true, "ls-tree": true,
}

// memory manages the memory of all processes of an engine. Each counts with its assumed memory at first, and later with its measured
// memory. A shortage is therefore noticed a moment later; then the largest process of the caller with the most memory is ended.
type memory struct {
	total        int64
	heavy, light *fair.Slots
	// evict ends idle processes that a caller has started; nil stands for all callers.
	evict func(who *fair.Key)

	mu      sync.Mutex
	running map[*allotment]struct{}
	// watched says that a measurement is scheduled. short counts the consecutive measurements during which a caller waited for slots of a
	// kind.
	watched bool
	short   map[*fair.Slots]int
	seen    groups
}

// allotment is the memory of a process and its children.
type allotment struct {
	memory *memory
	slots  *fair.Slots
	hold   *fair.Hold
	least  int // in MiB
	group  int
	// command is the command of the process, and early ends it.
	command Command
	early   *cleanup
	// The mutex of the memory guards these fields.
	has   int
	ended *LimitError
}

func newMemory(total int64, wait time.Duration) *memory {
	m := &memory{total: total, running: map[*allotment]struct{}{}, short: map[*fair.Slots]int{}, evict: func(*fair.Key) {}}
	pool := func(name string, percent, reserved int) *fair.Slots {
		l := fair.Of(max(int(total*int64(percent)/100/mebibyte), 1), memoryShare, reserved)
		l.Wait = wait
		return fair.New(name, "MiB of memory for Git processes", l).WithMessages(
			"Your Git processes use all of the %d MiB of memory that one caller can have while others need memory.",
			"The server is busy: its Git processes use all of the %d MiB of memory that it allows them together.")
	}
	m.heavy, m.light = pool("git-memory", 100-lightPart, memoryReserved), pool("git-memory-light", lightPart, 0)
	return m
}

// allot waits until there is memory for a process. The error is ErrBusy if there is none in time.
func (m *memory) allot(ctx context.Context, c Command, early *cleanup) (*allotment, error) {
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
	if a.slots.OverShare(ctx, a.least) { // no other caller is in the way then
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

// began sets the process group that uses the memory.
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

// end releases the memory, and returns the reason if the processes were ended early, or nil.
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

// watch schedules a measurement, as long as there are processes.
func (m *memory) watch() {
	if !m.watched && len(m.running) > 0 {
		m.watched = true
		time.AfterFunc(census, m.look)
	}
}

// look measures the processes, and ends one if they use too much.
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
		if over.command.Short != nil {
			over.command.Short(over.ended)
		}
		over.early.begin(over.group)
	}
	m.watch()
}

// weigh updates the memory of every process.
func (m *memory) weigh() {
	leaders := make(map[int]int64, len(m.running))
	for a := range m.running {
		leaders[a.group] = 0
	}
	m.seen.measure(leaders)
	for a := range m.running {
		if has := max(a.least, int((leaders[a.group]+mebibyte-1)/mebibyte)); has != a.has {
			a.has = has
			a.hold.Resize(has)
		}
	}
}

// over returns the largest process of the caller with the most memory if all processes exceed the total, or if others have waited for a
// caller that exceeds its share; otherwise nil. It never returns a push that was accepted, which must complete.
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
	e := Limitf("This was stopped because not enough memory is available: the server allows all Git processes together %s. Ask for less, or try again later.",
		FormatBytes(m.total))
	e.Passing = true
	return e
}
