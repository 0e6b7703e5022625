package git

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/forgeplane/forgeplane/internal/fair"
	"github.com/forgeplane/forgeplane/internal/git/internal/process"
)

// Object describes an object without its content.
type Object struct {
	// ID is the id of the object, and Type "blob", "tree", "commit" or "tag".
	ID, Type string
	// Size is the length of the content in bytes.
	Size int64
}

// ErrObjectNotFound is returned for an object that does not exist.
var ErrObjectNotFound = errors.New("the object does not exist")

// ErrFileTooLarge is returned for a file that exceeds the limit of the caller.
var ErrFileTooLarge = errors.New("the file is too large")

// reader is a git cat-file process that answers requests one after the other. Only one goroutine at a time can use it.
type reader struct {
	process *process.Process
	in      *os.File
	out     *bufio.Reader
	stdout  *os.File
	// caller is the caller who started the process, and whose memory it uses.
	caller fair.Key
	// idle is the timer that ends an unused reader; nil while it is in use.
	idle *time.Timer
}

// readerMemory is the maximum memory of a reader, in bytes. It is lower than that of other processes, because many readers are idle and
// none reads large objects.
const readerMemory = 256 << 20

// startReader starts a reader in the directory of a repository, which inherits pins.
func startReader(ctx context.Context, processes *process.Runner, dir string, held pins) (_ *reader, err error) {
	requests, in, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("starting a reader: %w", err)
	}
	defer requests.Close()
	stdout, answers, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting a reader: %w", err), in.Close())
	}
	defer answers.Close()
	c := process.In(dir, "cat-file", "--batch-command", "--buffer", "-z")
	c.Stdin, c.Stdout, c.Held, c.Bounds = requests, answers, held, process.Bounds{Memory: readerMemory}
	started, err := processes.Start(ctx, c)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting git cat-file: %w", err), in.Close(), stdout.Close())
	}
	return &reader{process: started, in: in, stdout: stdout, out: bufio.NewReaderSize(stdout, 32<<10), caller: fair.From(ctx)}, nil
}

// kill kills the process, which also ends every wait for its answers.
func (r *reader) kill() { r.process.Kill() }

// close ends the process, and waits until it has ended.
func (r *reader) close() {
	r.kill()
	_ = r.in.Close()
	_ = r.stdout.Close()
	_ = r.process.Wait()
}

// ask sends requests: verb is "info" or "contents", followed by the name of an object.
func (r *reader) ask(verb string, names ...string) error {
	var request bytes.Buffer
	for _, n := range names {
		request.WriteString(verb + " " + n + "\x00")
	}
	request.WriteString("flush\x00")
	_, err := r.in.Write(request.Bytes())
	return err
}

var header = regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64}) (blob|tree|commit|tag) ([0-9]{1,19})\n$`)

// absentSubmodule matches the answer of git 2.51 and later for the path of a submodule whose commit is not in the repository.
var absentSubmodule = regexp.MustCompile(`^(?:[0-9a-f]{40}|[0-9a-f]{64}) submodule\n$`)

// answer reads the header of the answer for a name. After ErrObjectNotFound, the reader can still be used.
func (r *reader) answer(name string) (Object, error) {
	line, err := r.out.ReadString('\n')
	if err != nil {
		return Object{}, err
	}
	if m := header.FindStringSubmatch(line); m != nil {
		size, err := strconv.ParseInt(m[3], 10, 64)
		return Object{ID: m[1], Type: m[2], Size: size}, err
	}
	for _, reason := range []string{" missing\n", " ambiguous\n"} {
		// A name can contain line breaks.
		whole := name + reason
		if rest, ok := strings.CutPrefix(whole, line); ok {
			read := make([]byte, len(rest))
			if _, err := io.ReadFull(r.out, read); err != nil {
				return Object{}, err
			}
			if string(read) == rest {
				return Object{}, ErrObjectNotFound
			}
		}
	}
	if absentSubmodule.MatchString(line) {
		return Object{}, ErrObjectNotFound
	}
	return Object{}, fmt.Errorf("git cat-file: unexpected answer %.100q", line)
}

// content reads the content that follows the header for an object.
func (r *reader) content(o Object) ([]byte, error) {
	content := make([]byte, o.Size+1)
	if _, err := io.ReadFull(r.out, content); err != nil {
		return nil, err
	}
	return content[:o.Size], nil
}

// beginning reads the content that follows the header for an object, and returns at most limit bytes of it.
func (r *reader) beginning(o Object, limit int64) ([]byte, error) {
	if o.Size <= limit {
		return r.content(o)
	}
	content := make([]byte, limit)
	if _, err := io.ReadFull(r.out, content); err != nil {
		return nil, err
	}
	_, err := io.CopyN(io.Discard, r.out, o.Size+1-limit)
	return content, err
}

// checkObjectName rejects names that would be more than one request.
func checkObjectName(name string) error {
	if name == "" || len(name) > maxObjectName || strings.ContainsRune(name, 0) {
		return fmt.Errorf("object %.100q: %w", name, ErrObjectNotFound)
	}
	return nil
}

// maxObjectName is the maximum length of a name (an id or ref, a colon and a path), in bytes.
const maxObjectName = 16 << 10

// Objects looks up objects by names such as an id, a full ref name, "refs/heads/main^{commit}" or "<id>:path". It returns one Object for
// each name; the zero Object stands for an object that does not exist.
func (r *Repository) Objects(ctx context.Context, names ...string) ([]Object, error) {
	for _, n := range names {
		if err := checkObjectName(n); err != nil {
			return nil, err
		}
	}
	found := make([]Object, len(names))
	err := r.engine.readers.use(ctx, r.dir, r.pin, func(from *reader) error {
		// A pipe holds a limited number of requests until the answers are read.
		for done := 0; done < len(names); {
			batch := names[done:min(done+objectBatch, len(names))]
			if err := from.ask("info", batch...); err != nil {
				return err
			}
			for i, n := range batch {
				o, err := from.answer(n)
				if err != nil && !errors.Is(err, ErrObjectNotFound) {
					return err
				}
				found[done+i] = o
			}
			done += len(batch)
		}
		return nil
	})
	return found, err
}

// objectBatch times maxObjectName fits into a pipe and the buffer of git.
const objectBatch = 3

// Read returns an object and its content. The error is ErrObjectNotFound if there is no object with this name, and ErrFileTooLarge,
// together with the object, if it has more than limit bytes.
func (r *Repository) Read(ctx context.Context, name string, limit int64) (o Object, content []byte, err error) {
	if err := checkObjectName(name); err != nil {
		return Object{}, nil, err
	}
	missing := false
	err = r.engine.readers.use(ctx, r.dir, r.pin, func(from *reader) error {
		if err := from.ask("contents", name); err != nil {
			return err
		}
		if o, err = from.answer(name); errors.Is(err, ErrObjectNotFound) {
			missing = true
			return nil
		} else if err != nil {
			return err
		}
		if o.Size > limit {
			return ErrFileTooLarge // skipping the content would take longer than starting another process
		}
		content, err = from.content(o)
		return err
	})
	switch {
	case errors.Is(err, ErrFileTooLarge):
		return o, nil, fmt.Errorf("%.100q: %w", name, ErrFileTooLarge)
	case err != nil:
		return Object{}, nil, fmt.Errorf("reading %.100q: %w", name, err)
	case missing:
		return Object{}, nil, fmt.Errorf("%.100q: %w", name, ErrObjectNotFound)
	}
	return o, content, nil
}

// ReadSmall returns an object, and its content if that has at most limit bytes; otherwise the content is nil. The error is
// ErrObjectNotFound if there is no object with this id.
func (r *Repository) ReadSmall(ctx context.Context, id string, limit int64) (o Object, content []byte, err error) {
	missing := false
	err = r.engine.readers.use(ctx, r.dir, r.pin, func(from *reader) error {
		if err := from.ask("info", id); err != nil {
			return err
		}
		if o, err = from.answer(id); errors.Is(err, ErrObjectNotFound) {
			missing = true
			return nil
		} else if err != nil || o.Size > limit {
			return err
		}
		if err := from.ask("contents", id); err != nil {
			return err
		}
		if o, err = from.answer(id); err != nil {
			return err
		}
		content, err = from.content(o)
		return err
	})
	switch {
	case err != nil:
		return Object{}, nil, fmt.Errorf("reading %s: %w", id, err)
	case missing:
		return Object{}, nil, fmt.Errorf("%s: %w", id, ErrObjectNotFound)
	}
	return o, content, nil
}
