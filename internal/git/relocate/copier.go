package relocate

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/internal/disk"
)

// parts are the directories of a repository in the order in which they are listed and copied, and what belongs to another part. Git writes
// objects before the refs that need them, packs a ref before it removes its file, and packs objects before it removes their files. So what is
// read later has everything that was read before needs.
var parts = []struct {
	dir  string
	skip []string
}{
	{dir: "refs"},
	{dir: ".", skip: []string{"refs", "objects"}},
	{dir: "objects/info"},
	{dir: "objects", skip: []string{"objects/info", "objects/pack"}},
	{dir: "objects/pack"},
}

// chunk is the number of bytes that are copied at a time.
const chunk = 32 << 20

// copier keeps a copy of the files of a repository.
type copier struct {
	from, to *os.Root
	told     *reporter
	files    map[string]copied
	// dirs are the directories of the copy, by part.
	dirs map[string]int
	// unsynced are the files and directories of the copy that are not durable.
	unsynced map[string]bool
}

// copied is a file as it was copied.
type copied struct {
	part  int
	stamp stamp
	// sum is the checksum of a file outside of objects.
	sum [sha256.Size]byte
}

// stamp identifies the state of a file.
type stamp struct {
	size     int64
	modified time.Time
	inode    uint64
}

func stampOf(info fs.FileInfo) stamp {
	s := stamp{size: info.Size(), modified: info.ModTime()}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		s.inode = stat.Ino
	}
	return s
}

func newCopier(from *os.Root, told *reporter) *copier {
	return &copier{from: from, told: told, files: map[string]copied{}, dirs: map[string]int{}, unsynced: map[string]bool{}}
}

func (c *copier) close() {
	_ = c.from.Close()
	if c.to != nil {
		_ = c.to.Close()
	}
}

// listing are the files and directories of a part.
type listing struct {
	files []file
	dirs  []string
}

type file struct {
	path string
	info fs.FileInfo
}

// list lists what must be copied of a part: only files and directories.
func (c *copier) list(ctx context.Context, part int) (l listing, err error) {
	err = fs.WalkDir(c.from.FS(), parts[part].dir, func(name string, entry fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		var info fs.FileInfo
		if err == nil {
			info, err = entry.Info()
		}
		switch _, known := c.dirs[name]; {
		case errors.Is(err, fs.ErrNotExist) && name == parts[part].dir && known:
			return err // git never removes it
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case name == "objects/info/alternates" || name == "objects/info/http-alternates":
			return fmt.Errorf("it has %s, so some of its objects are elsewhere; repack it with git repack -a and remove the file", name)
		case info.IsDir() && (slices.Contains(parts[part].skip, name) || temporary(name)):
			return fs.SkipDir
		case info.IsDir():
			l.dirs = append(l.dirs, name)
		case info.Mode().IsRegular() && !temporary(name) && !git.Bound(name):
			l.files = append(l.files, file{name, info})
		}
		return nil
	})
	if err != nil {
		return l, fmt.Errorf("listing the files of %s: %w", c.from.Name(), err)
	}
	return l, nil
}

// temporary reports whether a path is of a process that is running or was killed.
func temporary(name string) bool {
	return disk.Temporary(name) || path.Dir(name) == "objects" && strings.HasPrefix(path.Base(name), "incoming-")
}

// passed is the result of a pass.
type passed struct {
	// changed is the number of files that were copied or removed. vanished says that an object disappeared before it was copied.
	changed  int
	vanished bool
}

// pass makes the copy what the source is, as far as that does not change meanwhile.
func (c *copier) pass(ctx context.Context) (done passed, err error) {
	for part := range parts {
		l, err := c.list(ctx, part)
		if err != nil {
			return done, err
		}
		if err := c.tidy(part, l, &done); err != nil {
			return done, fmt.Errorf("copying %s: %w", c.from.Name(), err)
		}
		for _, f := range l.files {
			if ctx.Err() != nil {
				return done, context.Cause(ctx)
			}
			if err := c.update(ctx, part, f, &done); err != nil {
				return done, fmt.Errorf("copying %s: %w", c.from.Name(), err)
			}
		}
	}
	return done, nil
}

// tidy removes what is no longer in a part of the source, and creates its new directories. A file can have the place of a former directory,
// and the other way round.
func (c *copier) tidy(part int, l listing, done *passed) error {
	there := make(map[string]bool, len(l.files)+len(l.dirs))
	for _, f := range l.files {
		there[f.path] = true
	}
	for name, f := range c.files {
		if f.part == part && !there[name] {
			done.changed++
			if err := c.remove(name); err != nil {
				return err
			}
		}
	}
	clear(there)
	for _, dir := range l.dirs {
		there[dir] = true
	}
	var gone []string
	for dir, of := range c.dirs {
		if of == part && !there[dir] {
			gone = append(gone, dir)
		}
	}
	slices.Sort(gone)
	for _, dir := range slices.Backward(gone) {
		if err := c.remove(dir); err != nil {
			return err
		}
	}
	for _, dir := range l.dirs {
		if _, known := c.dirs[dir]; known || dir == "." {
			continue
		}
		if err := c.to.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		c.dirs[dir] = part
		c.touch(dir)
	}
	return nil
}

// remove removes a file or an empty directory of the copy.
func (c *copier) remove(name string) error {
	delete(c.files, name)
	delete(c.dirs, name)
	delete(c.unsynced, name)
	c.unsynced[path.Dir(name)] = true
	if err := c.to.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// touch records that a file or directory was created.
func (c *copier) touch(name string) { c.unsynced[name], c.unsynced[path.Dir(name)] = true, true }

// isObject reports whether a path is of a file whose content never changes as long as it is the same file. Git changes the modification
// time if a client needs an object again.
func isObject(name string) bool {
	dir, base := path.Split(name)
	return dir == "objects/pack/" && strings.HasSuffix(base, ".pack") || strings.HasPrefix(dir, "objects/") && len(dir) == len("objects/00/")
}

// update copies a file that has changed.
func (c *copier) update(ctx context.Context, part int, f file, done *passed) error {
	was, known := c.files[f.path]
	now := stampOf(f.info)
	switch {
	case !known:
	case !strings.HasPrefix(f.path, "objects/"): // it is read, because it can change without a new stamp
	case was.stamp == now:
		return nil
	case isObject(f.path) && was.stamp.inode == now.inode && was.stamp.size == now.size:
		was.stamp = now
		c.files[f.path] = was
		return c.to.Chtimes(f.path, time.Time{}, now.modified)
	}
	err := c.copy(ctx, part, f.path, known, done)
	if errors.Is(err, errVanished) {
		done.vanished = done.vanished || strings.HasPrefix(f.path, "objects/")
		if known {
			return c.remove(f.path)
		}
		return nil
	}
	return err
}

// errVanished is returned for a file of the source that no longer exists.
var errVanished = errors.New("the file has disappeared")

// copy copies a file, unless the copy is the same.
func (c *copier) copy(ctx context.Context, part int, name string, known bool, done *passed) error {
	src, err := c.from.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return errVanished
	}
	if err != nil {
		return err
	}
	defer src.Close()
	info, err := src.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return errVanished
	}
	one := copied{part: part, stamp: stampOf(info)}
	mutable := !strings.HasPrefix(name, "objects/")
	if mutable && known {
		if one.sum, err = sumOf(src); err != nil {
			return err
		}
		if one.sum == c.files[name].sum {
			c.files[name] = one
			return c.to.Chtimes(name, time.Time{}, one.stamp.modified)
		}
		if _, err := src.Seek(0, io.SeekStart); err != nil {
			return err
		}
	}
	if known {
		if err := c.remove(name); err != nil {
			return err
		}
	}
	if err := c.write(ctx, name, src, info, &one); err != nil {
		return err
	}
	c.files[name] = one
	c.touch(name)
	done.changed++
	c.told.add(0, objectsIn(name, src))
	return nil
}

func sumOf(r io.Reader) (sum [sha256.Size]byte, err error) {
	h := sha256.New()
	_, err = io.Copy(h, r)
	return [sha256.Size]byte(h.Sum(nil)), err
}

// write writes a file of the copy, which must not exist.
func (c *copier) write(ctx context.Context, name string, src *os.File, info fs.FileInfo, one *copied) (err error) {
	dst, err := c.to.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dst.Close()) }()
	h := sha256.New()
	for offset := int64(0); ; {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		var n int64
		if strings.HasPrefix(name, "objects/") {
			n, err = io.CopyN(dst, src, chunk)
		} else {
			n, err = io.CopyN(io.MultiWriter(dst, h), src, chunk)
		}
		c.told.add(n, 0)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		// The disk works while the rest is copied and checked. Small files are synced together.
		disk.StartSync(dst, offset, n)
		offset += n
	}
	one.sum = [sha256.Size]byte(h.Sum(nil))
	if err := dst.Chmod(info.Mode().Perm()); err != nil {
		return err
	}
	return c.to.Chtimes(name, time.Time{}, info.ModTime())
}

// objectsIn returns the number of objects in a file. The header of a pack has it (gitformat-pack(5)).
func objectsIn(name string, f io.ReaderAt) int64 {
	if !isObject(name) {
		return 0
	}
	if !strings.HasSuffix(name, ".pack") {
		return 1
	}
	var header [12]byte
	if _, err := f.ReadAt(header[:], 0); err != nil {
		return 0
	}
	return int64(binary.BigEndian.Uint32(header[8:]))
}

// syncsAtOnce is the number of files that are synced at once. A file system makes them durable together, so this takes little longer than one.
const syncsAtOnce = 16

// sync makes the copy durable.
func (c *copier) sync(ctx context.Context) error {
	syncs, within := errgroup.WithContext(ctx)
	syncs.SetLimit(syncsAtOnce)
	for name := range c.unsynced {
		if within.Err() != nil {
			break
		}
		syncs.Go(func() error {
			f, err := c.to.Open(name)
			if err != nil {
				return err
			}
			return errors.Join(f.Sync(), f.Close())
		})
	}
	err := syncs.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return fmt.Errorf("syncing the copy of %s: %w", c.from.Name(), err)
	}
	clear(c.unsynced)
	return nil
}
