package git

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
)

// Head describes HEAD: the default branch and its newest commit.
type Head struct {
	// Branch is the name of the default branch without "refs/heads/". It may not exist yet.
	Branch string
	// Commit is the id of the newest commit; empty if the branch does not exist.
	Commit string
}

// Head reads HEAD. It needs no process of its own, and no process at all while there is no branch.
func (r *Repository) Head(ctx context.Context) (Head, error) {
	known := r.recalledRefs()
	rests := known.atRest()
	if rests && known.head != nil {
		return *known.head, nil
	}
	head, err := r.readHead(ctx)
	if err == nil && rests {
		r.rememberRefs(known.withHead(head))
	}
	return head, err
}

func (r *Repository) readHead(ctx context.Context) (Head, error) {
	if err := r.Check(); err != nil {
		return Head{}, err
	}
	content, err := os.ReadFile(filepath.Join(r.dir, "HEAD")) // gitrepository-layout(5)
	if err != nil {
		return Head{}, fmt.Errorf("reading HEAD: %w", err)
	}
	ref, symbolic := strings.CutPrefix(string(content), "ref:")
	ref = strings.TrimSpace(ref)
	if !symbolic || CheckRefName(ref) != nil {
		return Head{}, fmt.Errorf("reading HEAD: %.100q is not a branch", content)
	}
	branch, isBranch := strings.CutPrefix(ref, branches)
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

// ErrRefNotFound is returned for a ref or revision that does not exist.
var ErrRefNotFound = errors.New("the ref does not exist")

// Resolve returns the id of the commit that a full ref name or a commit id names, or ErrRefNotFound.
func (r *Repository) Resolve(ctx context.Context, revision string) (string, error) {
	out, err := r.output(ctx, 1024, r.command("rev-parse", "--verify", "--quiet", "--end-of-options", revision+"^{commit}"))
	if failed := (*Error)(nil); errors.As(err, &failed) && failed.ExitCode == 1 {
		return "", fmt.Errorf("%q: %w", revision, ErrRefNotFound)
	} else if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(out)), nil
}

// SetHead sets the default branch, named without "refs/heads/". The branch need not exist.
func (r *Repository) SetHead(ctx context.Context, branch string) error {
	ref := "refs/heads/" + branch
	if err := CheckRefName(ref); err != nil {
		return err
	}
	return r.run(ctx, r.command("symbolic-ref", "HEAD", ref))
}

// Ref is a ref and its object.
type Ref struct {
	// Name is the full name.
	Name string
	// Object is the id of the object, and Type its type: "commit" for a branch, and also "tag" for an annotated tag.
	Object, Type string
}

// Refs lists the refs below the prefixes, such as "refs/heads/", sorted by name. The list is streamed: only one ref is in memory at a time,
// and the caller can stop early. An error ends the sequence. Refs starts no process if there are no refs.
func (r *Repository) Refs(ctx context.Context, prefixes ...string) iter.Seq2[Ref, error] {
	return func(yield func(Ref, error) bool) {
		if r.Check() == nil {
			if none, err := refless(r.dir); err == nil && none {
				return
			}
		}
		ctx, stop := context.WithCancel(ctx)
		pr, pw := io.Pipe()
		done := make(chan struct{})
		defer func() { pr.Close(); stop(); <-done }()
		c := r.command(append([]string{"for-each-ref", "--format=%(objectname) %(objecttype) %(refname)", "--"}, prefixes...)...)
		c.stdout = pw
		go func() {
			defer close(done)
			pw.CloseWithError(r.run(ctx, c))
		}()
		lines := bufio.NewScanner(pr)
		for lines.Scan() {
			object, rest, _ := bytes.Cut(lines.Bytes(), []byte(" "))
			kind, name, ok := bytes.Cut(rest, []byte(" "))
			if !ok {
				yield(Ref{}, fmt.Errorf("git for-each-ref: unexpected line %q", lines.Text()))
				return
			}
			if !yield(Ref{Name: string(name), Object: string(object), Type: string(kind)}, nil) {
				return
			}
		}
		if err := lines.Err(); err != nil {
			yield(Ref{}, err)
		}
	}
}
