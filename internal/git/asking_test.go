package git

import (
	"context"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/internal/fair"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
)

// waits reports whether an attempt waits for slots.
func (a *asking) waits() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, q := range a.open {
		for _, one := range q.attempts {
			if one.waited && q.working != one {
				return true
			}
		}
	}
	return false
}

// Whatever kind of slots a read takes: an address that has used up its share does not delay a signed-in user, and gets the user's answer.
func TestReads_ofWhatAnotherCallerWaitsFor(t *testing.T) {
	const long = time.Hour
	limits := fair.Limits{Total: 4, Share: 2, Reserved: 1, Wait: long}
	e, err := NewEngine(t.Context(), Options{Limits: Limits{MemoryTotal: 400 << 20}, MemoryWait: long, Slots: Slots{Walks: limits, Blobs: limits}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	c := gittest.New(t, "sha1")
	first, last := c.Commit(t, "dir/a", "1"), c.Commit(t, "dir/a", "2")
	large := c.Write(t, "blob", strings.Repeat("z", maxResult+1))
	r, err := e.Repository(c.Dir, ".git")
	if err != nil {
		t.Fatal(err)
	}
	blob, err := r.Blob(t.Context(), large)
	if err != nil {
		t.Fatal(err)
	}
	reads := map[string]func(context.Context) (any, error){
		"contributors":    func(ctx context.Context) (any, error) { return r.Contributors(ctx, last) },
		"merged":          func(ctx context.Context) (any, error) { return r.Merged(ctx, last, first) },
		"common ancestor": func(ctx context.Context) (any, error) { return r.CommonAncestor(ctx, last, first) },
		"commits between": func(ctx context.Context) (any, error) { return r.CommitsBetween(ctx, first, last) },
		"log": func(ctx context.Context) (any, error) {
			commits, _, err := r.Log(ctx, Log{Tips: []string{last}, Limit: 10})
			return commits, err
		},
		"last commit":   func(ctx context.Context) (any, error) { return r.LastCommit(ctx, last, "dir/a") },
		"changed lines": func(ctx context.Context) (any, error) { return r.CountLines(ctx, last) },
		"tree":          func(ctx context.Context) (any, error) { return r.Tree(ctx, last, "dir", false) },
		"all below":     func(ctx context.Context) (any, error) { return r.Tree(ctx, last, "", true) },
		"diff":          func(ctx context.Context) (any, error) { return r.Diff(ctx, first, last, long) },
		"blob":          func(ctx context.Context) (any, error) { return r.Blob(ctx, large) },
		"hash":          func(ctx context.Context) (any, error) { return blob.SHA256(ctx) },
		"commit":        func(ctx context.Context) (any, error) { return r.ReadCommit(ctx, last) },
	}
	waited := map[string]bool{}
	for held, slots := range map[string]*fair.Slots{
		"walks": e.walks, "blobs": e.blobs, "readers": e.readers.slots, "memory": e.memory.heavy, "light memory": e.memory.light,
	} {
		e.readers.dismiss(nil)
		holds := exhaust(fair.With(t.Context(), nobody), slots)
		for name, read := range reads {
			t.Run(name+" while "+held+" are held", func(t *testing.T) {
				g := NewWithT(t)
				e.forget(r.dir)
				e.readers.dismiss(nil)
				answer := func(k fair.Key) <-chan any {
					told := make(chan any, 1)
					go func() {
						value, err := read(fair.With(t.Context(), k))
						if err != nil {
							value = err
						}
						told <- value
					}()
					return told
				}
				theirs := answer(nobody)
				g.Eventually(func() bool { return e.asking.waits() || len(theirs) > 0 }).WithTimeout(time.Minute).Should(BeTrue())
				waited[held] = waited[held] || e.asking.waits()
				var mine any
				g.Eventually(answer(ann)).WithTimeout(time.Minute).Should(Receive(&mine))
				_, failed := mine.(error)
				g.Expect(failed).To(BeFalse(), "%v", mine)
				g.Eventually(theirs).WithTimeout(time.Minute).Should(Receive(Equal(mine)), "who has none")
				g.Expect(e.asking.open).To(BeEmpty())
			})
		}
		for _, h := range holds {
			h.Leave()
		}
		if !waited[held] {
			t.Errorf("nobody waited for %s", held)
		}
	}
}

// exhaust takes all slots that the caller of ctx can get.
func exhaust(ctx context.Context, s *fair.Slots) (all []*fair.Hold) {
	for h := s.Try(ctx, 1); h != nil; h = s.Try(ctx, 1) {
		all = append(all, h)
	}
	return all
}
