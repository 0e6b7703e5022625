// Package audit records writes: one line of JSON for each write through any interface, which says who did what to which object, and with
// what result. No line contains a secret, because lines are made of names, ids and paths, and never of the content of a request.
//
// Handler creates the line of a request and puts a Record into its context. The authenticator, the guard and the client that writes objects
// add what they find out. Code that acts without a request writes an Event.
package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"gopkg.in/natefinch/lumberjack.v2" // rotates files; the generic API server writes its own audit log with it

	"github.com/forgeplane/forgeplane/internal/fair"
)

const (
	// queue is the maximum number of pieces in the queue, and piece is the size of a piece in bytes. The lines of a write use as many
	// pieces as they need.
	queue, piece = 8192, 4 << 10
	// callerShare is the percentage of the queue that one caller can use, and reserved the percentage for signed-in callers.
	callerShare, reserved = 25, 25
	// patience is the maximum time for which a request waits for room in the queue.
	patience = time.Second
	// closeTimeout limits the time for writing the remaining lines when the log is closed.
	closeTimeout = 10 * time.Second
	// batch is the number of bytes that are written at once.
	batch = 64 << 10
)

// Paths that are not files.
const (
	// Stdout is the path that stands for the standard output.
	Stdout = "-"
	// Off is the path that turns the log off.
	Off = "none"
)

// Options are the options of a Log.
type Options struct {
	// Path is the path of a file that only its owner can read, or Stdout, or Off.
	Path string
	// MaxSize is the size in MiB at which a file is rotated. The default is 100.
	MaxSize int
	// MaxBackups is the maximum number of rotated files. 0 keeps all.
	MaxBackups int
	// Metrics registers the counters of lines.
	Metrics []prometheus.Registerer
	// Log gets the lines that cannot be written to the audit log.
	Log logr.Logger
}

// Log writes lines. A nil Log writes none. It is safe for use by several goroutines.
type Log struct {
	out   io.WriteCloser
	log   logr.Logger
	lines *prometheus.CounterVec
	// room limits the pieces of the queue. A caller who holds some can send without blocking.
	room *fair.Slots

	mu     sync.RWMutex // held for reading by senders
	closed bool
	queue  chan entry
	ended  chan struct{}
	lost   atomic.Int64
}

// entry has the lines of a write, and the pieces of the queue that they use until they are written.
type entry struct {
	lines []byte
	count int
	room  *fair.Hold
}

// Open returns a log, which the caller must close. It returns nil if the options turn the log off.
func Open(o Options) (*Log, error) {
	switch o.Path {
	case Off:
		return nil, nil
	case Stdout:
		return start(keepOpen{os.Stdout}, o)
	}
	path, err := filepath.Abs(o.Path)
	if err != nil {
		return nil, fmt.Errorf("finding the audit log: %w", err)
	}
	// Opening fails early if the file cannot be written.
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		err = file.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("opening the audit log: %w", err)
	}
	return start(&lumberjack.Logger{Filename: path, MaxSize: o.MaxSize, MaxBackups: o.MaxBackups}, o)
}

type keepOpen struct{ io.Writer }

func (keepOpen) Close() error { return nil }

func start(out io.WriteCloser, o Options) (*Log, error) {
	room := fair.Of(queue, callerShare, reserved)
	room.Wait = patience
	l := &Log{
		out: out, log: o.Log, queue: make(chan entry, queue), ended: make(chan struct{}), room: fair.New("audit", "lines of the audit log", room),
		lines: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "forgeplane_audit_lines_total",
			Help: "Lines of the audit log: written, failed (then they are in the log of the process), or lost because nothing could be written for too long, or one caller had too many waiting.",
		}, []string{"outcome"}),
	}
	for _, outcome := range []string{written, failed, dropped} {
		l.lines.WithLabelValues(outcome)
	}
	for _, registry := range o.Metrics {
		if err := registry.Register(l.lines); err != nil {
			return nil, fmt.Errorf("registering the metrics of the audit log: %w", err)
		}
	}
	go l.run()
	return l, nil
}

// The values of the label of the counter of lines.
const written, failed, dropped = "written", "failed", "lost"

// Write adds an event. It waits at most a second if the log cannot be written, or if too many events of the same caller are waiting.
func (l *Log) Write(e Event) {
	if l == nil {
		return
	}
	if e.Time.IsZero() {
		e.Time = time.Now()
	}
	lines := e.lines()
	all := entry{lines: bytes.Join(lines, nil), count: len(lines)}
	var err error
	all.room, err = l.room.Take(fair.With(context.Background(), e.caller()), (len(all.lines)+piece-1)/piece)
	if err != nil {
		l.lose(all.count)
		return
	}
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.closed {
		all.room.Leave()
		l.lose(all.count)
		return
	}
	l.queue <- all
}

func (l *Log) lose(count int) {
	l.lost.Add(int64(count))
	l.lines.WithLabelValues(dropped).Add(float64(count))
}

// run writes until the queue is closed. Lines that wait together are written together.
func (l *Log) run() {
	defer close(l.ended)
	var together bytes.Buffer
	var rooms []*fair.Hold
	for next := range l.queue {
		together.Reset()
		rooms = rooms[:0]
		count := 0
		for open := true; open; {
			together.Write(next.lines)
			rooms = append(rooms, next.room)
			count += next.count
			if together.Len() >= batch {
				break
			}
			select {
			case next, open = <-l.queue:
			default:
				open = false
			}
		}
		l.put(together.Bytes(), count)
		for _, room := range rooms {
			room.Leave()
		}
	}
}

func (l *Log) put(lines []byte, count int) {
	if _, err := l.out.Write(lines); err != nil {
		l.lines.WithLabelValues(failed).Add(float64(count))
		l.log.Error(err, "Failed to write the audit log", "lines", string(lines))
	} else {
		l.lines.WithLabelValues(written).Add(float64(count))
	}
	if lost := l.lost.Swap(0); lost > 0 {
		l.log.Error(errLost, "Failed to write all lines of the audit log", "lines", lost)
	}
}

var errLost = errors.New("lines were lost, because nothing could be written for too long, or because one caller had too many waiting")

// Close writes the remaining events. Later events are counted as lost.
func (l *Log) Close() error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	already := l.closed
	l.closed = true
	if !already {
		close(l.queue)
	}
	l.mu.Unlock()
	timer := time.NewTimer(closeTimeout)
	defer timer.Stop()
	select {
	case <-l.ended:
		return l.out.Close()
	case <-timer.C:
		return fmt.Errorf("closing the audit log: the lines of %d writes could not be written", len(l.queue))
	}
}
