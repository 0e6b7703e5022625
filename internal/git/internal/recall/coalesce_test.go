package recall_test

import (
	"context"
	"net/netip"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/internal/fair"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/internal/git/history"
	"github.com/forgeplane/forgeplane/internal/git/snapshot"
	"github.com/forgeplane/forgeplane/test/patience"
)

var nobody, ann = fair.Address(netip.MustParseAddr("192.0.2.1")), fair.User(1)

// Whatever kind of slots a read takes: an address that has used up its share does not delay a signed-in user, and gets the user's answer.
func TestReads_ofWhatAnotherCallerWaitsFor(t *testing.T) {
	const long = time.Hour
	limits := fair.Limits{Total: 4, Share: 2, Reserved: 1, Wait: long}
	e, err := git.NewEngine(t.Context(), git.Options{Limits: git.Limits{MemoryTotal: 400 << 20}, MemoryWait: long, Slots: git.Slots{Walks: limits, Blobs: limits}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	c := gittest.New(t, "sha1")
	first, last := c.Commit(t, "dir/a", "1"), c.Commit(t, "dir/a", "2")
	large := c.Write(t, "blob", strings.Repeat("z", 17<<20))
	r, err := e.Repository(c.Dir, ".git")
	if err != nil {
		t.Fatal(err)
	}
	blob, err := snapshot.OpenBlob(t.Context(), r, large)
	if err != nil {
		t.Fatal(err)
	}
	reads := map[string]func(context.Context) (any, error){
		"contributors":    func(ctx context.Context) (any, error) { return history.Contributors(ctx, r, last) },
		"merged":          func(ctx context.Context) (any, error) { return history.Merged(ctx, r, last, first) },
		"common ancestor": func(ctx context.Context) (any, error) { return history.CommonAncestor(ctx, r, last, first) },
		"commits between": func(ctx context.Context) (any, error) { return history.CommitsBetween(ctx, r, first, last) },
		"log": func(ctx context.Context) (any, error) {
			commits, _, err := history.List(ctx, r, history.Log{Tips: []string{last}, Limit: 10})
			return commits, err
		},
		"last commit":   func(ctx context.Context) (any, error) { return history.LastCommit(ctx, r, last, "dir/a") },
		"changed lines": func(ctx context.Context) (any, error) { return history.CountLines(ctx, r, last) },
		"tree":          func(ctx context.Context) (any, error) { return snapshot.Tree(ctx, r, last, "dir", false) },
		"all below":     func(ctx context.Context) (any, error) { return snapshot.Tree(ctx, r, last, "", true) },
		"diff":          func(ctx context.Context) (any, error) { return history.Compare(ctx, r, first, last, long) },
		"blob":          func(ctx context.Context) (any, error) { return snapshot.OpenBlob(ctx, r, large) },
		"hash":          func(ctx context.Context) (any, error) { return blob.SHA256(ctx) },
		"commit":        func(ctx context.Context) (any, error) { return r.ReadCommit(ctx, last) },
	}
	waited := map[string]bool{}
	slots := e.Slots()
	for held, slots := range map[string]*fair.Slots{
		"blobs": slots[1], "walks": slots[2], "readers": slots[3], "memory": slots[4], "light memory": slots[5],
	} {
		r.Evict()
		holds := exhaust(fair.With(t.Context(), nobody), slots)
		for name, read := range reads {
			t.Run(name+" while "+held+" are held", func(t *testing.T) {
				g := NewWithT(t)
				r.Results().Forget()
				r.Evict()
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
				g.Eventually(func() bool { return r.Results().Waits() || len(theirs) > 0 }).WithTimeout(patience.Wait).Should(BeTrue())
				waited[held] = waited[held] || r.Results().Waits()
				var mine any
				g.Eventually(answer(ann)).WithTimeout(patience.Wait).Should(Receive(&mine))
				_, failed := mine.(error)
				g.Expect(failed).To(BeFalse(), "%v", mine)
				g.Eventually(theirs).WithTimeout(patience.Wait).Should(Receive(Equal(mine)), "a caller without a share gets the same value")
				g.Expect(r.Results().Asked()).To(BeZero())
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
