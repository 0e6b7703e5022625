package snapshot

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/dsnet/compress/bzip2"    // the standard library can read bzip2 but not write it
	"github.com/klauspost/compress/gzip" // three times as fast as the standard library

	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/internal/process"
	"github.com/forgeplane/forgeplane/internal/git/internal/recall"
	"github.com/forgeplane/forgeplane/internal/git/object"
)

// ArchiveFormat is the format of an archive.
type ArchiveFormat string

// The formats of archives.
const (
	Tar      ArchiveFormat = "tar"
	TarGzip  ArchiveFormat = "tar.gz"
	TarBzip2 ArchiveFormat = "tar.bz2"
	Zip      ArchiveFormat = "zip"
)

// Archive describes an archive of the files of a commit.
type Archive struct {
	// Commit is the id of the commit, and Path a directory or file in it; empty for all files.
	Commit, Path string
	// Exclude are paths of the commit to leave out, with everything below them.
	Exclude []string
	// Prefix is the name of the directory that contains everything. It must be a single path element.
	Prefix string
	Format ArchiveFormat
}

// archiveTimeout limits the time to write an archive, which depends on how fast its receiver is.
const archiveTimeout = time.Hour

// archiveCPU limits the processor time of an archive, which does not depend on the receiver. An archive of 2 GiB needs a quarter of it;
// each file in an archive with a million attributes needs 50 milliseconds.
const archiveCPU = 2 * time.Minute

// WriteArchive writes an archive, without the files that attributes in the commit (export-ignore) exclude. It does not expand placeholders in
// files (export-subst). An archive of more than git.Limits.Archive bytes is cut off there, with a *git.LimitError. An archive is never written to
// disk, and is held in memory, and remembered for a while, only if it is small and there is room in git.Options.Memory. The error is git.ErrBusy if
// too many archives are being written, and git.ErrObjectNotFound if everything is excluded.
func WriteArchive(ctx context.Context, r *git.Repository, a Archive, w io.Writer) error {
	if err := object.CheckIDs(a.Commit); err != nil {
		return err
	}
	path, ok := object.CleanPath(a.Path)
	if !ok {
		return fmt.Errorf("path %.100q: %w", a.Path, git.ErrObjectNotFound)
	}
	if err := r.Check(); err != nil {
		return err
	}
	const what = "writing an archive"
	paths, err := a.pathspecs(path)
	if err != nil {
		return err
	}
	ids := strings.Join(append([]string{a.Commit, a.Prefix, string(a.Format)}, paths...), "\x00")
	if known, ok := recall.Known[[]byte](r.Results(), what, ids); ok {
		if weigh := r.Engine().Memory().Try(ctx, int64(len(known))); weigh != nil {
			defer weigh(0)
			return writePieces(w, known)
		}
	}
	keep := &keeper{to: w, room: func() (weigh func(int64)) { return r.Engine().Memory().Try(ctx, recall.MaxResult) }}
	defer keep.leave()
	if err := writeArchive(ctx, r, a, paths, keep); err != nil {
		return err
	}
	if keep.kept != nil {
		recall.Keep(r.Results(), what, ids, keep.kept, len(keep.kept))
	}
	return nil
}

// keeper keeps what is written through it, unless that is too much or there is no room in memory at the beginning.
type keeper struct {
	to   io.Writer
	room func() (weigh func(bytes int64))
	// weigh releases the memory once it is taken.
	weigh func(bytes int64)
	kept  []byte
	begun bool
}

// Write implements io.Writer.
func (k *keeper) Write(p []byte) (int, error) {
	if !k.begun {
		k.begun, k.weigh = true, k.room()
	}
	if len(k.kept)+len(p) > recall.MaxResult {
		k.leave()
	}
	if k.weigh != nil {
		k.kept = append(k.kept, p...)
	}
	return k.to.Write(p)
}

// leave stops keeping, and discards what was kept.
func (k *keeper) leave() {
	if k.weigh != nil {
		k.weigh(0)
	}
	k.weigh, k.kept = nil, nil
}

// pathspecs returns the pathspecs for a path and for the excluded paths.
func (a Archive) pathspecs(path string) (all []string, err error) {
	if path != "" {
		all = append(all, ":(literal)"+path)
	}
	for _, p := range a.Exclude {
		clean, ok := object.CleanPath(p)
		if !ok {
			return nil, fmt.Errorf("path %.100q: %w", p, git.ErrObjectNotFound)
		}
		if clean != "" {
			all = append(all, ":(exclude,literal)"+clean)
		}
	}
	return all, nil
}

// writeArchive writes an archive of the given paths.
func writeArchive(ctx context.Context, r *git.Repository, a Archive, paths []string, w io.Writer) error {
	leave, err := process.Enter(ctx, r.Engine().Archives())
	if err != nil {
		return fmt.Errorf("writing an archive: %w", err)
	}
	defer leave()
	ctx, cancel := context.WithTimeoutCause(ctx, archiveTimeout, fmt.Errorf("writing an archive took longer than %s", archiveTimeout))
	defer cancel()
	out := bufio.NewWriterSize(w, 64<<10)
	packed, err := a.Format.pack(out)
	if err != nil {
		return err
	}
	format := "tar"
	if a.Format == Zip {
		format = "zip"
	}
	dir, remove, err := archiveDir(r.Engine(), a.Commit)
	if err != nil {
		return err
	}
	defer remove()
	c := process.In(r.Dir(), "archive", "--format="+format, "--prefix="+a.Prefix+"/", a.Commit, "--")
	c.Args = append(c.Args, paths...)
	c.Env = []string{"GIT_DIR=" + dir, "GIT_OBJECT_DIRECTORY=" + filepath.Join(r.Dir(), "objects")}
	c.Bounds = process.Bounds{CPU: archiveCPU}
	most := &ceiling{to: packed, left: r.Engine().Limits().Archive}
	if c.Stdout = most; most.left == 0 {
		c.Stdout = packed
	}
	if err := r.Run(ctx, c); most.exceeded {
		return process.Limitf("The archive has more than the %s that the server allows.", process.FormatBytes(r.Engine().Limits().Archive))
	} else if err != nil {
		var failed *process.Error
		if errors.As(err, &failed) && strings.Contains(failed.Stderr, "did not match any files") {
			return fmt.Errorf("writing an archive of nothing: %w", git.ErrObjectNotFound)
		}
		return err
	}
	if err := packed.Close(); err != nil {
		return err
	}
	return out.Flush()
}

// pack returns a writer that packs what is written to it. It writes nothing to w before the first write.
func (f ArchiveFormat) pack(w io.Writer) (io.WriteCloser, error) {
	switch f {
	case TarGzip:
		return gzip.NewWriter(w), nil
	case TarBzip2:
		return bzip2.NewWriter(w, nil)
	case Tar, Zip:
		return unpacked{w}, nil
	default:
		return nil, fmt.Errorf("there is no archive format %q", f)
	}
}

// unpacked writes everything unchanged.
type unpacked struct{ io.Writer }

// Close implements io.Closer.
func (unpacked) Close() error { return nil }
