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
	// MaxKey is the maximum size of a key, in bytes.
	MaxKey = 255
	// MaxPayload is the maximum size of a payload, in bytes.
	MaxPayload = 64 << 10
	// maxText is the number of bytes that are kept of a worker's texts: its progress and its error.
	maxText = 4 << 10
)

const (
	defaultLease = 30 * time.Second
	defaultPoll  = 5 * time.Second
	firstRetry   = 10 * time.Second
	lastRetry    = 10 * time.Minute
)

// ErrLost is the cause of an attempt's context after the attempt has lost its lease, or its task was forgotten.
var ErrLost = errors.New("the lease of the job is lost")

// Task is work that a Queue keeps until it is done.
type Task struct {
	// Key says what the work is for. A queue has at most one task for a key.
	Key string
	// Tenant is the tenant whose share the task uses. It is also in the task's context.
	Tenant fair.Key
	// Payload has the data of the work in addition to the key. It is stored in plain text, so it must not contain credentials.
	Payload []byte
}

// Attempt is one run of a task.
type Attempt struct {
	Task
	// Number is larger than the numbers of all earlier attempts of the queue. Writes to systems other than the database can include it, so
	// that those systems can reject late writes with a smaller number.
	Number int64
	// Failed is the number of attempts that failed since the last success, including those whose process was killed.
	Failed int
	// Progress is the progress that the previous attempt reported. It can be empty or outdated.
	Progress string

	confirm func(ctx context.Context) error
}

// Confirm returns ErrLost if the attempt has lost its lease, for example after a pause of its process, or if its task was forgotten. Call
// it in the same transaction as each write to the activity database: no other attempt begins before that transaction ends, so an attempt
// that was replaced writes nothing. Outside a transaction, the result can be outdated at once.
func (a Attempt) Confirm(ctx context.Context) error { return a.confirm(ctx) }

// QueueOptions configure a queue.
type QueueOptions struct {
	// Name is the name of the queue in the database, and of its slots in the metrics, such as "moves".
	Name string
	// Limits are the maximum numbers of tasks that this process runs at once, in total and for one tenant.
	Limits fair.Limits
	// Run does the work, and can report its progress, in words for people or in JSON from which a later attempt resumes; 4 KiB of it are
	// kept. A task is done when Run returns nil. After an error it is retried. People read the text of the error, so it must not contain
	// credentials. The context ends when the process stops, when the task is forgotten, and, with the cause ErrLost, when the lease is
	// lost. Run must then return soon. After ErrLost the task is not done, even if Run returns nil, and once another attempt has begun,
	// Attempt.Confirm rejects the writes of this one. A task can run again although its work was done.
	Run func(ctx context.Context, a Attempt, progress func(string)) error
	// Retry returns the delay before the next attempt after a failure, as in Options. The default is 10 seconds, doubled after each
	// failure, up to 10 minutes.
	Retry func(failed int, err error) time.Duration
	// Lease is the time for which a task stays with a process that is gone. It is renewed after a third of that time. The default is 30
	// seconds.
	Lease time.Duration
	// Poll is the interval at which the queue looks for tasks that another process has added or that have become due. The default is 5
	// seconds.
	Poll time.Duration
	Log  logr.Logger
}

// Queue keeps tasks in the activity database, so that they survive processes. Any number of processes can add tasks to the queue with a name,
// and run them after Start.
type Queue struct {
	db      *database.DB
	options QueueOptions
	owner   string
	pool    *Pool[string]
	woken   chan struct{}

	mu   sync.Mutex
	held map[string]*lease
	// last is the tenant that had the last turn.
	last string
}

// NewQueue returns a queue in a database that was opened with Migrations. A process that only adds tasks needs no option except Name.
func NewQueue(db *database.DB, o QueueOptions) *Queue {
	o.Lease, o.Poll, o.Limits.Total = cmp.Or(o.Lease, defaultLease), cmp.Or(o.Poll, defaultPoll), max(o.Limits.Total, 1)
	if o.Retry == nil {
		o.Retry = Growing(firstRetry, lastRetry)
	}
	host, _ := os.Hostname() // for people; the rest makes it unique
	return &Queue{
		db: db, options: o, owner: host + "/" + rand.Text(), woken: make(chan struct{}, 1), held: map[string]*lease{},
		pool: New[string](Options{Name: o.Name, Limits: o.Limits, Clock: clock.RealClock{}}),
	}
}

// Growing returns a Retry that doubles the delay after each failure, from first up to last, with some jitter, so that tasks that failed
// together are not retried together.
func Growing(first, last time.Duration) func(failed int, err error) time.Duration {
	const maxDoubled, jitter = 10, 0.2
	return func(failed int, _ error) time.Duration {
		return wait.Jitter(min(first<<min(failed, maxDoubled), last), jitter)
	}
}

// Slots returns the slots of this process's tasks, for the metrics.
func (q *Queue) Slots() *fair.Slots { return q.pool.Slots() }

// Add schedules a task. In a transaction of the database, the task exists only once the transaction is committed. If a task with the key
// waits already, it gets the new payload and keeps its number of failures. If the key is running, it runs once more afterwards.
//
// A transaction that adds several tasks must add them in the order of their keys, because other transactions that add the same keys wait
// for it.
func (q *Queue) Add(ctx context.Context, t Task) error { return q.AddAfter(ctx, t, 0) }

// AddAfter is Add for a task that is due after a delay. A task that waits already keeps the earlier time.
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

// Look returns the state of the task of a key, in any process. A task that is done is no longer known. The state has no times of attempts.
func (q *Queue) Look(ctx context.Context, key string) (State, error) {
	r, err := q.look(ctx, key)
	if err != nil || r == nil {
		return State{}, err
	}
	return r.state(), nil
}

// Forget removes the task of a key. Its run is canceled at once in this process, and at the next renewal of the lease in another process. A
// new task for the key waits for that.
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

// signal wakes up the listener of a channel, without waiting for one.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// bounded returns a text that a database can store, of at most limit bytes.
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
