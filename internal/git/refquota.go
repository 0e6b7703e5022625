package git

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
)

// reservations count the refs that are about to be created, by repository directory.
type reservations struct {
	mu   sync.Mutex
	refs map[string]int
}

// reserve adds a number of refs, and returns the total.
func (r *reservations) reserve(dir string, refs int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.refs == nil {
		r.refs = map[string]int{}
	}
	r.refs[dir] += refs
	reserved := r.refs[dir]
	if reserved == 0 {
		delete(r.refs, dir)
	}
	return reserved
}

// ReserveRefs makes sure that the repository may have the refs that the updates create, and counts them until release is called, exactly
// once. The error is a *LimitError if there would be too many refs. Updates that create none always pass, so that a full repository can be
// changed and made smaller.
func (r *Repository) ReserveRefs(updates ...RefUpdate) (release func(), err error) {
	made := 0
	for _, u := range updates {
		if (u.Old == "" || IsZeroID(u.Old)) && u.New != "" && !IsZeroID(u.New) {
			made++
		}
	}
	limit := r.engine.limits.Refs
	if limit == 0 || made == 0 {
		return func() {}, nil
	}
	reserved := r.engine.reservations.reserve(r.dir, made)
	release = sync.OnceFunc(func() { r.engine.reservations.reserve(r.dir, -made) })
	count, err := r.countRefs()
	if count += reserved; err == nil && int64(count) > limit {
		err = limitf("The repository would have %d branches and tags, more than the %d that the server allows. Delete some of them first.", count, limit)
	}
	if err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// countRefs counts the refs that clients see. It reads only files (gitrepository-layout(5)), which is faster than git's own listing for a
// client that pushes.
func (r *Repository) countRefs() (int, error) {
	loose := map[string]bool{}
	counts := func(name string) bool { return !strings.HasPrefix(name, InternalRefs) }
	err := filepath.WalkDir(filepath.Join(r.dir, "refs"), func(path string, entry fs.DirEntry, err error) error {
		name := filepath.ToSlash(strings.TrimPrefix(path, r.dir+"/"))
		switch {
		case errors.Is(err, fs.ErrNotExist): // it was removed or packed in the meantime
			return nil
		case err != nil:
			return err
		case entry.Type().IsRegular() && !temporary(name) && counts(name):
			loose[name] = true
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("counting refs: %w", err)
	}
	count := len(loose)
	err = packedRefs(filepath.Join(r.dir, "packed-refs"), func(name []byte) bool {
		if !loose[string(name)] && counts(string(name)) {
			count++
		}
		return true
	})
	return count, err
}
