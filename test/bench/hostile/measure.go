package hostile

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/history"
	"github.com/forgeplane/forgeplane/internal/git/object"
	"github.com/forgeplane/forgeplane/internal/git/refs"
	"github.com/forgeplane/forgeplane/internal/git/snapshot"
	"github.com/forgeplane/forgeplane/internal/git/transfer"
	"github.com/forgeplane/forgeplane/internal/git/upkeep"
)

// argument is the first argument of a process that performs one operation with one repository.
const argument = "hostile"

// Figure is the result of one operation.
type Figure struct {
	// Peak is the largest memory of a process of git in bytes, including mapped files. It is at least the memory of this program, from which git is
	// started.
	Peak int64
	Took time.Duration
	// Said is the message to a client if a limit was reached. Failed is any other failure.
	Said, Failed string
}

// operation works with the repository at a path of a storage. A copy of its source is at another path.
type operation struct {
	name string
	do   func(ctx context.Context, e *git.Engine, r *git.Repository, source string) error
}

// operations are all operations in their order. The first one creates the repository that the others use.
var operations = []operation{
	{"import", func(ctx context.Context, _ *git.Engine, r *git.Repository, source string) error {
		err := transfer.Import(ctx, r, transfer.ImportOptions{URL: "file://" + source, AllowFile: true})
		if git.LimitReached(err) != "" { // several pushes can create what one import cannot
			err = errors.Join(err, os.CopyFS(r.Dir(), os.DirFS(source)))
		}
		return err
	}},
	{"push", push},
	{"list refs", func(ctx context.Context, _ *git.Engine, r *git.Repository, _ string) error {
		return transfer.Serve(ctx, r, transfer.ServeOptions{Service: transfer.UploadPack, Advertise: true, Stdout: io.Discard})
	}},
	{"clone", clone},
	{"tree", func(ctx context.Context, _ *git.Engine, r *git.Repository, _ string) error {
		return onHead(ctx, r, func(head string) error { _, err := snapshot.Tree(ctx, r, head, "", false); return err })
	}},
	{"recursive tree", func(ctx context.Context, _ *git.Engine, r *git.Repository, _ string) error {
		return onHead(ctx, r, func(head string) error { _, err := snapshot.Tree(ctx, r, head, "", true); return err })
	}},
	{"raw", raw},
	{"archive", func(ctx context.Context, _ *git.Engine, r *git.Repository, _ string) error {
		return onHead(ctx, r, func(head string) error {
			return snapshot.WriteArchive(ctx, r, snapshot.Archive{Commit: head, Prefix: "x", Format: snapshot.TarGzip}, io.Discard)
		})
	}},
	{"compare", func(ctx context.Context, _ *git.Engine, r *git.Repository, _ string) error {
		return onHead(ctx, r, func(head string) error { _, err := history.Compare(ctx, r, "", head, 30*time.Second); return err })
	}},
	{"log", func(ctx context.Context, _ *git.Engine, r *git.Repository, _ string) error {
		return onHead(ctx, r, func(head string) error {
			_, _, err := history.List(ctx, r, history.Log{Tips: []string{head}, Path: "file", Limit: 100})
			return err
		})
	}},
	{"contributors", func(ctx context.Context, _ *git.Engine, r *git.Repository, _ string) error {
		return onHead(ctx, r, func(head string) error { _, err := history.Contributors(ctx, r, head); return err })
	}},
	{"maintenance", func(ctx context.Context, _ *git.Engine, r *git.Repository, _ string) error {
		mark, long := filepath.Join(r.Dir(), "forgeplane-maintenance"), time.Now().AddDate(0, -1, 0)
		if err := errors.Join(os.WriteFile(mark, nil, 0o600), os.Chtimes(mark, long, long)); err != nil {
			return err
		}
		return upkeep.Maintain(ctx, r) // everything is repacked
	}},
}

// Operations returns the names of the operations.
func Operations() (names []string) {
	for _, o := range operations {
		names = append(names, o.name)
	}
	return names
}

func onHead(ctx context.Context, r *git.Repository, do func(commit string) error) error {
	head, err := refs.ReadHead(ctx, r)
	if err != nil {
		return err
	}
	return do(head.Commit)
}

// raw reads the first file completely.
func raw(ctx context.Context, _ *git.Engine, r *git.Repository, _ string) error {
	return onHead(ctx, r, func(head string) error {
		path, kind := head+":", "tree"
		var entry object.TreeEntry
		for kind == "tree" {
			entries, err := snapshot.Tree(ctx, r, head, strings.TrimPrefix(path, head+":"), false)
			if err != nil {
				return err
			}
			entry = entries[0]
			path, kind = head+":"+entry.Path, entry.Type
		}
		blob, err := snapshot.OpenBlob(ctx, r, entry.ID)
		if err != nil {
			return err
		}
		return blob.Write(ctx, io.Discard)
	})
}

func line(text string) string { return fmt.Sprintf("%04x%s", len(text)+4, text) }

// clone does the work of the server for a clone.
func clone(ctx context.Context, _ *git.Engine, r *git.Repository, _ string) error {
	return onHead(ctx, r, func(head string) error {
		request := line("want "+head+" ofs-delta side-band-64k\n") + "0000" + line("done\n")
		return transfer.Serve(ctx, r, transfer.ServeOptions{Service: transfer.UploadPack, Stdin: strings.NewReader(request), Stdout: io.Discard})
	})
}

// push sends the pack of the source to an empty repository.
func push(ctx context.Context, e *git.Engine, r *git.Repository, source string) error {
	empty, err := e.Repository(filepath.Dir(r.Dir()), "empty.git")
	if err != nil {
		return err
	}
	if err := errors.Join(empty.Remove(ctx), empty.Init(ctx, git.InitOptions{})); err != nil {
		return err
	}
	head, err := refs.ReadHead(ctx, r)
	if err != nil {
		return err
	}
	hooks := filepath.Join(filepath.Dir(r.Dir()), "hooks")
	if err := os.MkdirAll(hooks, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(hooks, "pre-receive"), []byte("#!/bin/sh\nexit 0\n"), 0o700); err != nil { //nolint:gosec // Git executes it
		return err
	}
	packs, err := filepath.Glob(filepath.Join(source, "objects/pack/*.pack"))
	if err != nil || len(packs) != 1 {
		return fmt.Errorf("the source has %d packs: %w", len(packs), err)
	}
	pack, err := os.Open(packs[0])
	if err != nil {
		return err
	}
	defer pack.Close()
	commands := line(strings.Repeat("0", 40)+" "+head.Commit+" refs/heads/main\x00report-status") + "0000"
	var said bytes.Buffer
	err = transfer.Serve(ctx, empty, transfer.ServeOptions{
		Service: transfer.ReceivePack, HooksDir: hooks, Stdin: io.MultiReader(strings.NewReader(commands), pack), Stdout: &said,
	})
	if err == nil && !strings.Contains(said.String(), "unpack ok") {
		err = fmt.Errorf("the push was answered with %q", said.String())
	}
	return err
}

// Main performs the operation for which Measure has started this process, and returns its exit status. It reports false in any other process.
func Main(args []string) (status int, called bool) {
	if len(args) != 5 || args[1] != argument {
		return 0, false
	}
	i := slices.IndexFunc(operations, func(o operation) bool { return o.name == args[2] })
	if i < 0 {
		return 2, true
	}
	figure, err := operations[i].measure(context.Background(), args[3], args[4])
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(figure)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s %s: %v\n", argument, args[2], err)
		return 1, true
	}
	return 0, true
}

func (o operation) measure(ctx context.Context, source, storage string) (Figure, error) {
	e, err := git.NewEngine(ctx, git.Options{CommandTimeout: 2 * time.Minute})
	if err != nil {
		return Figure{}, err
	}
	r, err := e.Repository(storage, "served.git")
	if err != nil {
		return Figure{}, err
	}
	begun := time.Now()
	err = o.do(ctx, e, r, source)
	figure := Figure{Took: time.Since(begun)}
	e.Close()
	if figure.Said = git.LimitReached(err); figure.Said == "" && err != nil && !errors.Is(err, git.ErrFileTooLarge) && !errors.Is(err, git.ErrOutputTooLarge) {
		figure.Failed = err.Error()
	} else if figure.Said == "" && err != nil {
		figure.Said = err.Error()
	}
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &used); err != nil {
		return Figure{}, err
	}
	figure.Peak = used.Maxrss << 10
	return figure, nil
}

// Measure performs one operation, in its own process, with the repository that the first operation has created from the source.
func Measure(ctx context.Context, operation, source, storage string) (Figure, error) {
	executable, err := os.Executable()
	if err != nil {
		return Figure{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, executable, argument, operation, source, storage)
	command.Stderr = os.Stderr
	out, err := command.Output()
	if err != nil {
		return Figure{}, fmt.Errorf("%s: %w", operation, err)
	}
	var figure Figure
	if err := json.Unmarshal(out, &figure); err != nil {
		return Figure{}, fmt.Errorf("%s: %w", operation, err)
	}
	return figure, nil
}
