package relocate_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/internal/git/relocate"
)

// BenchmarkMove moves a history of 5,000 commits, which gets another push before it is closed, and reports for how long it is closed.
func BenchmarkMove(b *testing.B) {
	c := gittest.New(b, "sha1")
	var stream bytes.Buffer
	for n := range 5000 {
		fmt.Fprintf(&stream, "commit refs/heads/main\ncommitter a <a@example.com> %d +0000\ndata 1\nx\n", 1e9+n)
		fmt.Fprintf(&stream, "M 100644 inline d%d/f%d\ndata 8\n%08d\n", n%50, n%500, n)
	}
	c.Import(b, &stream)
	c.Git(b, "reset", "--quiet", "--hard", "main")
	from := gittest.Bare(b, c)
	var pause time.Duration
	for n := 0; b.Loop(); n++ {
		to := gittest.Repository(b, from.Engine(), b.TempDir(), "b.git")
		var closed time.Time
		o := relocate.Options{By: fmt.Sprint("bench-", n), Switch: now, Reached: func(point string) {
			switch point {
			case relocate.PointSynced:
				c.Commit(b, "a", fmt.Sprint(n))
				c.Git(b, "push", "--quiet", from.Dir(), "HEAD:refs/heads/main")
				closed = time.Now()
			case relocate.PointOpened:
				pause += time.Since(closed)
			}
		}}
		if err := relocate.Move(b.Context(), []relocate.Pair{{From: from, To: to}}, o); err != nil {
			b.Fatal(err)
		}
		reinstate(b, from, o.By)
	}
	b.ReportMetric(float64(pause.Milliseconds())/float64(b.N), "pause-ms")
}

func reinstate(b *testing.B, r *git.Repository, by string) {
	b.Helper()
	open, err := r.Close(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	defer open()
	if err := r.Reinstate(by); err != nil {
		b.Fatal(err)
	}
}
