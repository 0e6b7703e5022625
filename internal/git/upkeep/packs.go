package upkeep

import (
	"bufio"
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/internal/process"
	"github.com/forgeplane/forgeplane/internal/git/object"
)

// Packs returns the paths of the packs of a repository, without the extension: those in general, and those that Maintain has made of objects
// that were unreachable.
func Packs(r *git.Repository) (packs, cruft []string, err error) {
	indexes, err := filepath.Glob(filepath.Join(r.Dir(), "objects/pack/pack-*.idx"))
	if err != nil {
		return nil, nil, fmt.Errorf("listing packs: %w", err)
	}
	for _, index := range indexes {
		pack := strings.TrimSuffix(index, ".idx")
		if _, err := os.Lstat(pack + ".mtimes"); errors.Is(err, fs.ErrNotExist) {
			packs = append(packs, pack)
		} else if err != nil {
			return nil, nil, fmt.Errorf("listing packs: %w", err)
		} else {
			cruft = append(cruft, pack)
		}
	}
	return packs, cruft, nil
}

// maxShared is the maximum number of shared packs that are kept unchanged. Each fork of a repository can pin the packs that the repository
// has at that time, and many packs make every read slow.
const maxShared = 4

// shared returns the packs that the repository shares with others, the largest first: a fork has links to the files of the project that it was
// made of.
func shared(r *git.Repository) (some []string, err error) {
	all, _, err := Packs(r)
	sizes := map[string]int64{}
	for _, pack := range all {
		info, err := os.Lstat(pack + ".pack")
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("listing packs: %w", err)
		}
		if stat, ok := info.Sys().(*syscall.Stat_t); ok && stat.Nlink > 1 {
			some = append(some, pack)
			sizes[pack] = info.Size()
		}
	}
	slices.SortStableFunc(some, func(a, b string) int { return cmp.Compare(sizes[b], sizes[a]) })
	return some, err
}

// kept returns the shared packs that stay as they are.
func kept(shared []string) []string { return shared[:min(len(shared), maxShared)] }

// keeping returns the arguments of "git repack" that leave packs alone.
func keeping(packs []string) (args []string) {
	for _, pack := range packs {
		args = append(args, "--keep-pack="+filepath.Base(pack)+".pack")
	}
	return args
}

// Whole returns the packs whose objects are all reachable from objects with the given ids, or from any ref if there are none. It leaves out
// packs that Git removes meanwhile.
func Whole(ctx context.Context, r *git.Repository, packs []string, ids ...string) (whole []string, err error) {
	if len(packs) == 0 {
		return nil, nil
	}
	c := process.In(r.Dir(), "rev-list", "--objects", "--no-object-names", "--use-bitmap-index")
	if c.Nice = true; len(ids) == 0 {
		c.Args = append(c.Args, "--all")
	} else {
		c.Args = append(c.Args, "--stdin")
		c.Stdin = strings.NewReader(strings.Join(ids, "\n") + "\n")
	}
	var all []*marks
	defer func() {
		for _, m := range all {
			err = errors.Join(err, m.index.Close())
		}
	}()
	err = r.Pipe(ctx, c, func(out io.Reader) error {
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			id, err := hex.DecodeString(lines.Text())
			if err != nil {
				return fmt.Errorf("git rev-list: unexpected line %.100q", lines.Text())
			}
			if all == nil {
				if all, err = openMarks(packs, len(lines.Text())); err != nil {
					return err
				}
			}
			for _, m := range all {
				m.mark(id)
			}
		}
		return lines.Err()
	})
	if err != nil {
		return nil, fmt.Errorf("finding out which objects are reachable: %w", err)
	}
	for _, m := range all {
		if m.missing == 0 {
			whole = append(whole, m.pack)
		}
	}
	return whole, nil
}

// marks say which objects of a pack are reachable.
type marks struct {
	pack    string
	index   *object.PackIndex
	found   []bool
	missing int
}

func openMarks(packs []string, idLength int) (all []*marks, err error) {
	for _, pack := range packs {
		index, err := object.OpenPackIndex(pack+".idx", idLength)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return all, err
		}
		all = append(all, &marks{pack, index, make([]bool, index.Length()), index.Length()})
	}
	return all, nil
}

func (m *marks) mark(id []byte) {
	if at := m.index.Find(id); at >= 0 && !m.found[at] {
		m.found[at] = true
		m.missing--
	}
}
