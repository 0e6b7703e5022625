package relocate

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/internal/process"
	"github.com/forgeplane/forgeplane/internal/git/object"
	"github.com/forgeplane/forgeplane/internal/git/refs"
	"github.com/forgeplane/forgeplane/internal/git/upkeep"
)

const (
	// maxPasses limits how often a source that changes is copied again.
	maxPasses = 10
	// shortPass is the duration of a pass from which on another one makes the pause of the writers shorter.
	shortPass = 200 * time.Millisecond
	// maxChecks limits how often the copy of a source that changes is checked.
	maxChecks = 3
	// checkTime limits the check of a copy.
	checkTime = 6 * time.Hour
)

// replica is one repository that is being moved.
type replica struct {
	from, to, staged *git.Repository
	told             *reporter
	copier           *copier
	// endRead keeps the source from being removed.
	endRead func()
	// checked are the ids from which everything reachable is known to be in the copy.
	checked map[string]bool
	// open opens the source; nil if it is not closed. withdraw takes the copy back; nil if it is not in place.
	open     func()
	withdraw func() error
}

// measure adds the size of the source to the total.
func (r *replica) measure(ctx context.Context) (err error) {
	if _, r.endRead, err = r.from.BeginRead(ctx); err != nil {
		return err
	}
	from, err := os.OpenRoot(r.from.Dir())
	if err != nil {
		return err
	}
	r.copier = newCopier(from, r.told)
	for part := range parts {
		found, err := r.copier.list(ctx, part)
		if err != nil {
			return err
		}
		for _, f := range found.files {
			r.told.so.TotalBytes += f.info.Size()
		}
	}
	return nil
}

// stage creates the directory of the copy.
func (r *replica) stage(by string) (err error) {
	if r.staged, err = r.to.Stage(by); err != nil {
		return err
	}
	if err := os.Mkdir(r.staged.Dir(), 0o755); err != nil {
		return err
	}
	r.copier.to, err = os.OpenRoot(r.staged.Dir())
	return err
}

// settle makes the copy what the source is. Files that git moves meanwhile can be missed, so it goes on until no file has disappeared.
func (r *replica) settle(ctx context.Context) error {
	for n := 0; ; n++ {
		began := time.Now()
		done, err := r.copier.pass(ctx)
		if err != nil {
			return err
		}
		if n == maxPasses && done.vanished {
			return fmt.Errorf("copying %s: its files change too fast; try again: %w", r.from.Dir(), git.ErrBusy)
		}
		if n == maxPasses || !done.vanished && (done.changed == 0 || time.Since(began) < shortPass) {
			return nil
		}
	}
}

// check checks that everything that the refs of the copy need is in it. The source is in use, so the copy can lack something that a repack
// has moved while the files were listed; a source that is damaged does not get better.
func (r *replica) check(ctx context.Context) error {
	for n := 1; ; n++ {
		err := r.fsck(ctx)
		if err == nil {
			break
		}
		if n == maxChecks || ctx.Err() != nil {
			return err
		}
		done, again := r.copier.pass(ctx)
		if again != nil || done.changed == 0 {
			return errors.Join(err, again)
		}
	}
	state, err := stateOf(ctx, r.staged)
	if err != nil {
		return err
	}
	r.checked = state.tips
	// The check can have taken long.
	return r.settle(ctx)
}

func (r *replica) fsck(ctx context.Context) error {
	ctx, stop := context.WithTimeoutCause(ctx, checkTime, fmt.Errorf("checking the copy took longer than %s: %w", checkTime, git.ErrBusy))
	defer stop()
	if err := upkeep.Fsck(ctx, r.staged, false); err != nil {
		return fmt.Errorf("checking the copy of %s: %w", r.from.Dir(), err)
	}
	return nil
}

// verify checks that the copy has the same refs as the source, and everything that they need.
func (r *replica) verify(ctx context.Context) error {
	copied, err := stateOf(ctx, r.staged)
	if err != nil {
		return err
	}
	source, err := stateOf(ctx, r.from)
	if err != nil {
		return err
	}
	if source.sum != copied.sum {
		return fmt.Errorf("verifying the copy of %s: it has other refs than the source; check the source with git fsck", r.from.Dir())
	}
	var walk bytes.Buffer
	for id := range copied.tips {
		if !r.checked[id] {
			walk.WriteString(id + "\n")
		}
	}
	if walk.Len() == 0 {
		return nil
	}
	for id := range r.checked {
		if copied.tips[id] { // otherwise its objects may have been pruned since
			walk.WriteString("^" + id + "\n")
		}
	}
	c := process.In(r.staged.Dir(), "rev-list", "--objects", "--quiet", "--stdin")
	c.Stdin = &walk
	if err := r.staged.Run(ctx, c); err != nil {
		return fmt.Errorf("verifying the copy of %s: %w", r.from.Dir(), err)
	}
	return nil
}

// state is the state of the refs of a repository.
type state struct {
	// sum is a checksum of the refs and HEAD.
	sum string
	// tips are the ids of their objects.
	tips map[string]bool
}

func stateOf(ctx context.Context, r *git.Repository) (s state, err error) {
	sum := sha256.New()
	s.tips = map[string]bool{}
	for ref, err := range refs.List(ctx, r, "refs/") {
		if err != nil {
			return s, fmt.Errorf("listing the refs of %s: %w", r.Dir(), err)
		}
		fmt.Fprintf(sum, "%s %s\n", ref.Object, ref.Name)
		s.tips[ref.Object] = true
	}
	head, err := os.ReadFile(filepath.Join(r.Dir(), "HEAD")) // gitrepository-layout(5)
	if err != nil {
		return s, fmt.Errorf("reading HEAD: %w", err)
	}
	sum.Write(head)
	if id := strings.TrimSpace(string(head)); object.IsID(id) {
		s.tips[id] = true
	}
	s.sum = hex.EncodeToString(sum.Sum(nil))
	return s, nil
}

// sync makes the copy durable.
func (r *replica) sync(ctx context.Context) error { return r.copier.sync(ctx) }

// place puts the copy into place.
func (r *replica) place() (err error) {
	r.withdraw, err = r.to.Place(r.staged)
	return err
}

// discard removes the copy.
func (r *replica) discard(by string) error {
	if r.staged == nil {
		return nil
	}
	r.staged.Evict()
	return r.to.Unstage(by)
}

// explain adds to an error that the storage of the copy is missing, if that is so.
func (r *replica) explain(err error) error {
	if gone := r.to.Check(); errors.Is(gone, git.ErrStorageMissing) && !errors.Is(err, git.ErrStorageMissing) {
		return errors.Join(gone, err)
	}
	return err
}

// release closes the files.
func (r *replica) release() {
	if r.endRead != nil {
		r.endRead()
	}
	if r.copier != nil {
		r.copier.close()
	}
}
