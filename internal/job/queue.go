package job

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"

	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/fair"
)

const (
	// MaxKey is how many bytes a key can have.
	MaxKey = 255
	// MaxPayload is how many bytes a payload can have.
	MaxPayload = 64 << 10
	// maxText is how many bytes are kept of what a worker tells: its progress, and why it failed.
	maxText = 4 << 10
)

const (
	defaultLease = 30 * time.Second
	defaultPoll  = 5 * time.Second
	firstRetry   = 10 * time.Second
	lastRetry    = 10 * time.Minute
)

// ErrLost is the cause with which the context of an attempt ends that has lost its lease, or whose task was forgotten.
var ErrLost = errors.New("the lease of the job is lost")

// Task is work that a Queue keeps until it is done.
type Task struct {
	// Key is what the work is for. A queue has one task of a key.
	Key string
	// Tenant is who the task is counted for, and who its context names.
	Tenant fair.Key
	// Payload is what the work needs beside the key. It is stored in plain text, so it must not hold credentials.
	Payload []byte
}

// Attempt is one run of a task.
type Attempt struct {
	Task
	// Number is larger than that of every attempt of the queue that began before. What the work writes elsewhere than in the database can
	// carry it, so that whoever keeps that can refuse what comes late with a smaller one.
	Number int64
	// Failed is how many attempts before this one failed since the last success, including those whose process was killed.
	Failed int
	// Progress is what the attempt before this one told last. It can be empty, and older than what was told.
	Progress string

	confirm func(ctx context.Context) error
}

// Confirm returns ErrLost if the attempt has lost its lease, for example after a pause of its process, or if its task was forgotten. What
// the work writes to the activity database must be in one transaction with Confirm: no other attempt begins before that ends, so nothing
// is written by an attempt that has been replaced. Outside a transaction the answer can be outdated at once.
func (a Attempt) Confirm(ctx context.Context) error { return a.confirm(ctx) }

// QueueOptions say how the tasks of a queue are run.
type QueueOptions struct {
	// Name is the name of the queue in the database, and of its slots in the metrics, as in "moves".
	Name string
	// Limits are how many tasks this process runs at once, in all and of one tenant.
	Limits fair.Limits
	// Run does the work, and can tell how far it is: in words for people, or in JSON from which a later attempt goes on. 4 KiB of that
	// are kept. A task is done when Run returns nil, and is tried again after an error, whose text people read: it must not hold
	// credentials. The context ends when the process stops, when the task is forgotten, and, with the cause ErrLost, when the lease is
	// lost. The run must end soon then: its outcome and progress are not recorded, and Attempt.Confirm refuses what else it writes. It can
	// happen that a task is run again after its work was done.
	Run func(ctx context.Context, a Attempt, progress func(string)) error
	// Retry is how long a task waits for its next attempt after a failure, as in Options. The default is 10 seconds, and twice as long
	// each time, up to 10 minutes.
	Retry func(failed int, err error) time.Duration
	// Lease is how long a task stays with a process that is gone. It is renewed when a third of it is over. The default is 30 seconds.
	Lease time.Duration
	// Poll is how often the queue looks for tasks that another process has added, or that have become due. The default is 5 seconds.
	Poll time.Duration
	Log  logr.Logger
}

// Queue is tasks in the activity database, which outlive processes. Any number of processes add tasks to the queue of a name, and run
// them from Start on.
type Queue struct {
	db      *database.DB
	options QueueOptions
	owner   string
	pool    *Pool[string]
	woken   chan struct{}

	mu   sync.Mutex
	held map[string]*lease
	// last is the tenant that had its turn last.
	last string
}

// NewQueue returns a queue in a database that was opened with Migrations. Processes that only add tasks need no more options than Name.
func NewQueue(db *database.DB, o QueueOptions) *Queue {
	o.Lease, o.Poll, o.Limits.Total = cmp.Or(o.Lease, defaultLease), cmp.Or(o.Poll, defaultPoll), max(o.Limits.Total, 1)
	if o.Retry == nil {
		o.Retry = Growing(firstRetry, lastRetry)
	}
	host, _ := os.Hostname() // for people; the rest is unique
	return &Queue{
		db: db, options: o, owner: host + "/" + rand.Text(), woken: make(chan struct{}, 1), held: map[string]*lease{},
		pool: New[string](Options{Name: o.Name, Limits: o.Limits, Clock: clock.RealClock{}}),
	}
}

// Growing returns a Retry that waits twice as long after each failure, from first up to last, and a little longer, so that what failed
// together does not come back together.
func Growing(first, last time.Duration) func(failed int, err error) time.Duration {
	const maxDoubled, jitter = 10, 0.2
	return func(failed int, _ error) time.Duration {
		return wait.Jitter(min(first<<min(failed, maxDoubled), last), jitter)
	}
}

// Slots are those that tasks take in this process, for the metrics.
func (q *Queue) Slots() *fair.Slots { return q.pool.Slots() }

// Add has a task run. In a transaction of the database, it is there exactly when the transaction is committed. Of a key that waits there
// is one task, with the payload that was added last, and it keeps its number of failures; a key that runs is run once more afterwards.
//
// A transaction that adds several tasks must add them in the order of their keys: others that add the same keys wait for it.
func (q *Queue) Add(ctx context.Context, t Task) error { return q.AddAfter(ctx, t, 0) }

// AddAfter is Add for a task that is due after a delay. A task that waits keeps the earlier time.
func (q *Queue) AddAfter(ctx context.Context, t Task, delay time.Duration) error {
	switch {
	case t.Key == "" || len(t.Key) > MaxKey || bounded(t.Key, MaxKey) != t.Key:
		return fmt.Errorf("the key of a task must be text of 1 to %d bytes", MaxKey)
	case len(t.Payload) > MaxPayload:
		return fmt.Errorf("the payload of %s must have at most %d bytes and has %d", q.quoted(t.Key), MaxPayload, len(t.Payload))
	}
	defer q.db.Afterwards(ctx, q.wake)
	return q.add(ctx, t, max(delay, 0))
}

// Look says how far the task of a key is, in whatever process. A task that is done is not known any more. The times of its attempts are
// not known.
func (q *Queue) Look(ctx context.Context, key string) (State, error) {
	r, err := q.look(ctx, key)
	if err != nil || r == nil {
		return State{}, err
	}
	return r.state(), nil
}

// Forget removes the task of a key. Its run ends at once in this process, and in another one when that renews the lease. A task that is
// added for the key meanwhile waits for that.
func (q *Queue) Forget(ctx context.Context, key string) error {
	defer q.db.Afterwards(ctx, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		if l := q.held[key]; l != nil {
			signal(l.check)
		}
	})
	return q.forget(ctx, key)
}

func (q *Queue) wake() { signal(q.woken) }

// signal wakes up the listener of a channel, and does not wait for one.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// bounded returns what a database can hold as text, and at most so many bytes of it.
func bounded(text string, limit int) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
	if len(text) <= limit {
		return text
	}
	end := limit
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}
