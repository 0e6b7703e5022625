package transfer

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/internal/process"
	"github.com/forgeplane/forgeplane/internal/git/object"
	"github.com/forgeplane/forgeplane/internal/git/refs"
	"github.com/forgeplane/forgeplane/internal/git/upkeep"
)

// ForkOptions configure Fork.
type ForkOptions struct {
	// Branches are the branches that the fork gets, and it gets no tags then. If empty, it gets all branches and tags.
	Branches []string
	// DefaultBranch is the branch that HEAD names. If empty, HEAD names the same branch as in the source.
	DefaultBranch string
	// ObjectFormat is the format of a fork of a repository without refs. The default is "sha1".
	ObjectFormat string
}

// Fork makes the repository a copy of the branches and tags of source, which may be on another storage. If the repository exists already,
// it does nothing. It has the same limits as Import.
//
// The fork is a repository of its own: it never reads files of the source, and has exactly the objects that its own refs need. On the same
// file system it has hard links to files of the source if it needs each object in them, so that they take up their room only once. Git
// writes a pack or an object once and later only removes the file, so neither repository can change or lose what the other has.
func Fork(ctx context.Context, r, source *git.Repository, o ForkOptions) error {
	limit := cmp.Or(r.Engine().Limits().ImportTime, unlimited)
	ctx, stop := context.WithTimeoutCause(ctx, limit, process.Limitf("The fork took longer than the %s that the server allows.", limit))
	defer stop()
	if r.Check() == nil {
		return nil
	}
	ctx, end, err := source.BeginRead(ctx)
	if err != nil {
		return err
	}
	defer end()
	return r.Create(func(staged *git.Repository) error {
		f := &fork{staged: staged, source: source, made: []string{packDir}}
		if err := f.begin(ctx, o); err != nil || len(f.refs) == 0 {
			return err
		}
		switch exact, err := f.linkAll(ctx); {
		case err != nil:
			return err
		case exact:
			return nil
		}
		return f.pick(ctx)
	})
}

// unlimited is the time for a fork if the server has no limit. Commands without any would have to end within a minute.
const unlimited = 24 * time.Hour

// fork is a fork that is being made.
type fork struct {
	staged, source *git.Repository
	refs           []refs.Ref
	// made are the directories of objects in the fork, relative to that of all objects.
	made []string
}

// begin creates the repository with its refs, but without objects. The refs come first: what they need is not removed for weeks.
func (f *fork) begin(ctx context.Context, o ForkOptions) error {
	if err := f.source.Check(); err != nil {
		return err
	}
	head, err := refs.ReadHead(ctx, f.source)
	if err != nil {
		return err
	}
	if f.refs, err = o.chosen(ctx, f.source); err != nil {
		return err
	}
	if len(f.refs) == 0 && len(o.Branches) > 0 && head.Commit != "" {
		return fmt.Errorf("the project has none of the branches %s", strings.Join(o.Branches, ", "))
	}
	if err := admitRefs(f.staged.Engine(), len(f.refs)); err != nil {
		return err
	}
	init := git.InitOptions{DefaultBranch: o.DefaultBranch, ObjectFormat: o.ObjectFormat}
	if init.DefaultBranch == "" {
		init.DefaultBranch = head.Branch
		if len(o.Branches) > 0 && len(f.refs) > 0 && !f.has(head.Branch) {
			init.DefaultBranch = o.first(f)
		}
	}
	if len(f.refs) > 0 {
		init.ObjectFormat = object.FormatOf(f.refs[0].Object)
	}
	if err := f.staged.Format(ctx, init); err != nil || len(f.refs) == 0 {
		return err
	}
	// gitrepository-layout(5). Git itself finds the objects of annotated tags, unless the header says that they are listed.
	var packed bytes.Buffer
	packed.WriteString("# pack-refs with: sorted \n")
	for _, ref := range f.refs {
		fmt.Fprintf(&packed, "%s %s\n", ref.Object, ref.Name)
	}
	return os.WriteFile(filepath.Join(f.staged.Dir(), "packed-refs"), packed.Bytes(), 0o644)
}

// has reports whether the fork has a branch.
func (f *fork) has(branch string) bool {
	return slices.ContainsFunc(f.refs, func(ref refs.Ref) bool { return ref.Name == object.BranchPrefix+branch })
}

// first returns the first of the branches that the fork has, which is at least one.
func (o ForkOptions) first(f *fork) string { return o.Branches[slices.IndexFunc(o.Branches, f.has)] }

// chosen returns the refs of the fork, sorted by name.
func (o ForkOptions) chosen(ctx context.Context, source *git.Repository) ([]refs.Ref, error) {
	var all []refs.Ref
	prefixes := []string{object.BranchPrefix, object.TagPrefix}
	if len(o.Branches) > 0 {
		prefixes = prefixes[:1]
	}
	for ref, err := range refs.List(ctx, source, prefixes...) {
		if err != nil {
			return nil, err
		}
		if len(o.Branches) == 0 || slices.Contains(o.Branches, strings.TrimPrefix(ref.Name, object.BranchPrefix)) {
			all = append(all, ref)
		}
	}
	return all, nil
}

// linkAll links the fork to all objects of the source, and reports whether the fork needs each of them, and no others. Otherwise the fork has
// no objects afterwards.
func (f *fork) linkAll(ctx context.Context) (exact bool, err error) {
	if exact, err = f.linked(ctx); exact {
		return true, nil
	}
	if ctx.Err() != nil {
		return false, errors.Join(context.Cause(ctx), err)
	}
	// The objects can be picked whatever the reason was, such as a file system without links.
	objects := filepath.Join(f.staged.Dir(), "objects")
	for _, dir := range f.made {
		if err := os.RemoveAll(filepath.Join(objects, dir)); err != nil {
			return false, err
		}
	}
	return false, os.Mkdir(filepath.Join(objects, packDir), 0o755)
}

// linked is linkAll, but leaves the objects.
func (f *fork) linked(ctx context.Context) (exact bool, err error) {
	// Git moves objects to packs, so one that is missing here is in a pack below.
	linked, err := f.linkLoose()
	if err != nil {
		return false, err
	}
	packs, cruft, err := upkeep.Packs(f.source)
	if err != nil {
		return false, err
	}
	for _, pack := range packs {
		n, err := f.link(pack)
		if err != nil {
			return false, err
		}
		linked += n
	}
	// All objects that the fork has are counted, and those that its refs need. If the numbers are equal and no needed object is missing, these
	// are the same objects. Git finds the number in an index of reachable objects, if there is one; it then checks less.
	out, err := f.staged.Output(ctx, 100, process.In(f.staged.Dir(), "rev-list", "--count", "--objects", "--use-bitmap-index", "--all"))
	if err != nil || strings.TrimSpace(string(out)) != strconv.Itoa(linked) {
		return false, err
	}
	if len(cruft) > 0 { // it may have an object that is reachable again
		err = f.connected(ctx)
	}
	return err == nil, err
}

// connected returns an error if an object is missing that the refs of the fork need.
func (f *fork) connected(ctx context.Context) error {
	return f.staged.Run(ctx, process.In(f.staged.Dir(), "rev-list", "--count", "--objects", "--all"))
}

// packDir is the directory of the packs in that of the objects.
const packDir = "pack"

// sidecars are the extensions of the files of a pack, the index last, because it makes the pack count.
var sidecars = []string{".pack", ".rev", ".bitmap", ".idx"}

// link links the fork to a pack of the source, and returns the number of its objects. If that fails, the fork does not have the pack.
func (f *fork) link(pack string) (objects int, err error) {
	to := filepath.Join(f.staged.Dir(), "objects", packDir, filepath.Base(pack))
	defer func() {
		if err != nil {
			for _, ext := range sidecars {
				_ = os.Remove(to + ext)
			}
		}
	}()
	for _, ext := range sidecars {
		err := os.Link(pack+ext, to+ext)
		if optional := ext == ".rev" || ext == ".bitmap"; optional && errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return 0, err
		}
	}
	index, err := object.OpenPackIndex(to+".idx", len(f.refs[0].Object))
	if err != nil {
		return 0, err
	}
	return index.Length(), index.Close()
}

// linkLoose links the fork to the objects of the source that are in no pack, and returns their number.
func (f *fork) linkLoose() (objects int, err error) {
	dirs, err := filepath.Glob(filepath.Join(f.source.Dir(), "objects/[0-9a-f][0-9a-f]"))
	if err != nil {
		return 0, err
	}
	for _, from := range dirs {
		entries, err := os.ReadDir(from)
		if err != nil {
			return 0, err
		}
		dir := filepath.Base(from)
		to := filepath.Join(f.staged.Dir(), "objects", dir)
		for _, e := range entries {
			if !object.IsID(dir + e.Name()) {
				continue
			}
			if !slices.Contains(f.made, dir) {
				f.made = append(f.made, dir)
				if err := os.Mkdir(to, 0o755); err != nil {
					return 0, err
				}
			}
			if err := os.Link(filepath.Join(from, e.Name()), filepath.Join(to, e.Name())); err != nil {
				return 0, err
			}
			objects++
		}
	}
	return objects, nil
}

// pick links the fork to the packs of the source of which it needs each object, and copies all other objects that it needs.
func (f *fork) pick(ctx context.Context) error {
	tips := make([]string, len(f.refs))
	for i, ref := range f.refs {
		tips[i] = ref.Object
	}
	packs, _, err := upkeep.Packs(f.source)
	if err != nil {
		return err
	}
	if packs, err = upkeep.Whole(ctx, f.source, packs, tips...); err != nil {
		return err
	}
	// Only this command reads the objects of the source, and it writes to the fork alone.
	c := process.In(f.staged.Dir(), "pack-objects", "--revs", "--quiet", "--delta-base-offset")
	c.Env = append(c.Env, "GIT_ALTERNATE_OBJECT_DIRECTORIES="+quotePath(filepath.Join(f.source.Dir(), "objects")))
	for _, pack := range packs {
		if _, err := f.link(pack); err == nil { // otherwise its objects are copied like all others
			c.Args = append(c.Args, "--keep-pack="+filepath.Base(pack)+".pack")
		}
	}
	c.Args = append(c.Args, filepath.Join("objects", packDir, "pack"))
	c.Stdin = strings.NewReader(strings.Join(tips, "\n") + "\n")
	limited, stop := watchLimits(ctx, f.staged)
	defer stop()
	if err := f.staged.Run(limited, c); err != nil {
		return err
	}
	if err := withinLimits(ctx, f.staged); err != nil {
		return err
	}
	return f.connected(ctx)
}

// quotePath quotes a path for a list that is separated by colons.
func quotePath(path string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(path) + `"`
}
