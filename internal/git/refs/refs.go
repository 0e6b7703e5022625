// Package refs lists, resolves and changes the refs of repositories.
package refs

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/internal/disk"
	"github.com/forgeplane/forgeplane/internal/git/internal/process"
	"github.com/forgeplane/forgeplane/internal/git/object"
)

// Head describes HEAD: the default branch and its newest commit.
type Head struct {
	// Branch is the name of the default branch without "refs/heads/". It may not exist yet.
	Branch string
	// Commit is the id of the newest commit; empty if the branch does not exist.
	Commit string
}

// ReadHead reads HEAD. It needs no process of its own, and no process at all while there is no branch.
func ReadHead(ctx context.Context, r *git.Repository) (Head, error) {
	known := recalledRefs(r)
	rests := known.atRest()
	if rests && known.head != nil {
		return *known.head, nil
	}
	head, err := lookUpHead(ctx, r)
	if err == nil && rests {
		rememberRefs(r, known.withHead(head))
	}
	return head, err
}

func lookUpHead(ctx context.Context, r *git.Repository) (Head, error) {
	if err := r.Check(); err != nil {
		return Head{}, err
	}
	content, err := os.ReadFile(filepath.Join(r.Dir(), "HEAD")) // gitrepository-layout(5)
	if err != nil {
		return Head{}, fmt.Errorf("reading HEAD: %w", err)
	}
	ref, symbolic := strings.CutPrefix(string(content), "ref:")
	ref = strings.TrimSpace(ref)
	if !symbolic || object.CheckRefName(ref) != nil {
		return Head{}, fmt.Errorf("reading HEAD: %.100q is not a branch", content)
	}
	branch, isBranch := strings.CutPrefix(ref, object.BranchPrefix)
	if isBranch {
		if empty, err := r.Empty(); err == nil && empty {
			return Head{Branch: branch}, nil
		}
	}
	found, err := r.Objects(ctx, ref+"^{commit}")
	if err != nil {
		return Head{}, err
	}
	return Head{Branch: branch, Commit: found[0].ID}, nil
}

// ErrNotFound is returned for a ref or revision that does not exist.
var ErrNotFound = errors.New("the ref does not exist")

// Resolve returns the id of the commit that a full ref name or a commit id names, or ErrNotFound.
func Resolve(ctx context.Context, r *git.Repository, revision string) (string, error) {
	out, err := r.Output(ctx, 1024, process.In(r.Dir(), "rev-parse", "--verify", "--quiet", "--end-of-options", revision+"^{commit}"))
	if failed := (*process.Error)(nil); errors.As(err, &failed) && failed.ExitCode == 1 {
		return "", fmt.Errorf("%q: %w", revision, ErrNotFound)
	} else if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(out)), nil
}

// SetHead sets the default branch, named without "refs/heads/". The branch need not exist.
func SetHead(ctx context.Context, r *git.Repository, branch string) error {
	ref := "refs/heads/" + branch
	if err := object.CheckRefName(ref); err != nil {
		return err
	}
	return r.Run(ctx, process.In(r.Dir(), "symbolic-ref", "HEAD", ref))
}

// Ref is a ref and its object.
type Ref struct {
	// Name is the full name.
	Name string
	// Object is the id of the object, and Type its type: "commit" for a branch, and also "tag" for an annotated tag.
	Object, Type string
}

// List lists the refs below the prefixes, such as "refs/heads/", sorted by name. The list is streamed: only one ref is in memory at a time,
// and the caller can stop early. An error ends the sequence. Refs starts no process if there are no refs.
func List(ctx context.Context, r *git.Repository, prefixes ...string) iter.Seq2[Ref, error] {
	return func(yield func(Ref, error) bool) {
		if r.Check() == nil {
			if none, err := disk.Refless(r.Dir()); err == nil && none {
				return
			}
		}
		ctx, stop := context.WithCancel(ctx)
		pr, pw := io.Pipe()
		done := make(chan struct{})
		defer func() { pr.Close(); stop(); <-done }()
		c := process.In(r.Dir(), append([]string{"for-each-ref", "--format=%(objectname) %(objecttype) %(refname)", "--"}, prefixes...)...)
		c.Stdout = pw
		go func() {
			defer close(done)
			pw.CloseWithError(r.Run(ctx, c))
		}()
		lines := bufio.NewScanner(pr)
		for lines.Scan() {
			id, rest, _ := bytes.Cut(lines.Bytes(), []byte(" "))
			kind, name, ok := bytes.Cut(rest, []byte(" "))
			if !ok {
				yield(Ref{}, fmt.Errorf("git for-each-ref: unexpected line %q", lines.Text()))
				return
			}
			if !yield(Ref{Name: string(name), Object: string(id), Type: string(kind)}, nil) {
				return
			}
		}
		if err := lines.Err(); err != nil {
			yield(Ref{}, err)
		}
	}
}
