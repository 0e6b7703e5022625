package refs

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"

	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/internal/disk"
	"github.com/forgeplane/forgeplane/internal/git/internal/process"
	"github.com/forgeplane/forgeplane/internal/git/object"
	"github.com/forgeplane/forgeplane/internal/git/update"
)

// Reserve makes sure that the repository may have the refs that the updates create, and counts them until release is called, exactly
// once. The error is a *git.LimitError if there would be too many refs. Updates that create none always pass, so that a full repository can be
// changed and made smaller.
func Reserve(r *git.Repository, updates ...update.Ref) (release func(), err error) {
	made := 0
	for _, u := range updates {
		if u.Creates() {
			made++
		}
	}
	limit := r.Engine().Limits().Refs
	if limit == 0 || made == 0 {
		return func() {}, nil
	}
	reserved := r.PlanRefs(made)
	release = sync.OnceFunc(func() { r.PlanRefs(-made) })
	count, err := count(r)
	if count += reserved; err == nil && int64(count) > limit {
		err = process.Limitf("The repository would have %d branches and tags, more than the %d that the server allows. Delete some of them first.", count, limit)
	}
	if err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// count counts the refs that clients see. It reads only files (gitrepository-layout(5)), which is faster than git's own listing for a
// client that pushes.
func count(r *git.Repository) (int, error) {
	loose := map[string]bool{}
	counts := func(name string) bool { return !strings.HasPrefix(name, object.InternalRefs) }
	err := filepath.WalkDir(filepath.Join(r.Dir(), "refs"), func(path string, entry fs.DirEntry, err error) error {
		name := filepath.ToSlash(strings.TrimPrefix(path, r.Dir()+"/"))
		switch {
		case errors.Is(err, fs.ErrNotExist): // it was removed or packed in the meantime
			return nil
		case err != nil:
			return err
		case entry.Type().IsRegular() && !disk.Temporary(name) && counts(name):
			loose[name] = true
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("counting refs: %w", err)
	}
	count := len(loose)
	err = disk.PackedRefs(filepath.Join(r.Dir(), "packed-refs"), func(name []byte) bool {
		if !loose[string(name)] && counts(string(name)) {
			count++
		}
		return true
	})
	return count, err
}
