package transfer

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/internal/process"
	"github.com/forgeplane/forgeplane/internal/git/object"
	"github.com/forgeplane/forgeplane/internal/git/refs"
)

// Bring copies a commit from another repository, with all objects that the commit needs and that no ref of the repository needs. No ref
// names the commit yet; if none ever does, the garbage collection removes the objects. Git checks them like the objects of a push.
//
// The error is a *git.LimitError if the objects are more than a push can have, or if the repository is full; and git.ErrObjectNotFound if the
// source has no such commit, or another object format.
func Bring(ctx context.Context, r, source *git.Repository, commit string) error {
	// Every repository has the empty tree, in its own format.
	own, err := r.Objects(ctx, object.EmptyTree(commit))
	if err == nil && own[0].ID == "" {
		err = git.ErrObjectNotFound
	}
	if err == nil {
		_, err = source.ReadCommit(ctx, commit)
	}
	if err != nil {
		return err
	}
	if err := r.CheckRoom(ctx); err != nil {
		return err
	}
	dir, remove, err := r.Engine().ScratchDir()
	if err != nil {
		return err
	}
	defer remove()
	pack, err := os.Create(filepath.Join(dir, "pack"))
	if err != nil {
		return fmt.Errorf("%w: %w", git.ErrScratch, err)
	}
	defer pack.Close()
	if err := gather(ctx, r, source, commit, pack); err != nil {
		return fmt.Errorf("gathering the objects of a commit: %w", err)
	}
	if err := unpack(ctx, r, pack); err != nil {
		return fmt.Errorf("storing the objects of a commit: %w", err)
	}
	return nil
}

// gather writes a pack of the objects that a commit of the source needs and that no ref of the repository needs.
func gather(ctx context.Context, r, source *git.Repository, commit string, pack io.Writer) error {
	var wanted strings.Builder
	wanted.WriteString(commit + "\n--not\n")
	for ref, err := range refs.List(ctx, r, "refs/") {
		if err != nil {
			return err
		}
		wanted.WriteString(ref.Object + "\n")
	}
	ctx, end, err := source.BeginRead(ctx)
	if err != nil {
		return err
	}
	defer end()
	// Only this command reads the objects of the source, and it writes to neither repository.
	c := process.In(r.Dir(), "pack-objects", "--revs", "--stdout", "--quiet", "--delta-base-offset")
	c.Env = append(c.Env, "GIT_ALTERNATE_OBJECT_DIRECTORIES="+quotePath(filepath.Join(source.Dir(), "objects")))
	c.Stdin = strings.NewReader(wanted.String())
	limit := r.MaxPush()
	return r.Pipe(ctx, c, func(out io.Reader) error {
		if limit > 0 {
			out = io.LimitReader(out, limit+1)
		}
		n, err := io.Copy(pack, out)
		if limit > 0 && n > limit {
			return process.Limitf("The commit at which the branch starts needs more than the %s that the server takes in one push.", process.FormatBytes(limit))
		}
		if git.NoSpace(err) { // the source is only read
			err = fmt.Errorf("%w: %w", git.ErrScratch, err)
		}
		return err
	})
}

// packHeader is the size of the header of a pack, which ends with the number of the objects (gitformat-pack(5)).
const packHeader = 12

// unpack adds the objects of a pack to a repository.
func unpack(ctx context.Context, r *git.Repository, pack *os.File) error {
	var header [packHeader]byte
	if _, err := pack.ReadAt(header[:], 0); err != nil {
		return err
	}
	if binary.BigEndian.Uint32(header[packHeader-4:]) == 0 {
		return nil
	}
	if _, err := pack.Seek(0, io.SeekStart); err != nil {
		return err
	}
	c := process.In(r.Dir(), "index-pack", "--stdin", process.Strict)
	c.Stdin = pack
	if err := r.Run(ctx, c); err != nil {
		return err
	}
	return r.Measure(ctx)
}
