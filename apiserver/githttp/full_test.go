package githttp_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/apiserver/githttp"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
)

// logged returns an option that logs to lines, and the lines so far.
func logged() (option func(*githttp.Options), lines func() []string) {
	var mu sync.Mutex
	var all []string
	log := funcr.New(func(_, args string) {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, args)
	}, funcr.Options{})
	return func(o *githttp.Options) { o.Log = log }, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return append([]string{}, all...)
	}
}

func TestPush_toFullStorageHasOneLineInEachLog(t *testing.T) {
	for name, tt := range map[string]struct {
		options string
		fill    func(dir string) error
	}{
		"blocks": {"size=1m", func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "filling"), []byte(strings.Repeat("x", 1<<20)), 0o600)
		}},
		"inodes": {"nr_inodes=200", func(dir string) (err error) {
			for i := 0; err == nil; i++ {
				err = os.WriteFile(filepath.Join(dir, fmt.Sprint("filling-", i)), nil, 0o600)
			}
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			option, lines := logged()
			f := newForge(t, option)
			f.storage = gittest.Mount(t, tt.options)
			p := f.add(t, "group/project", "sha1")
			c := gittest.New(t, "sha1")
			c.Commit(t, "README.md", "Hello\n")
			c.Git(t, "remote", "add", "origin", f.url(developer, "group/project"))
			c.Git(t, "push", "--quiet", "origin", "main")
			events := f.audited(t)
			g.Expect(tt.fill(f.storage)).To(MatchError(syscall.ENOSPC))

			c.Commit(t, "large", gittest.Incompressible(1<<20))
			c.Refused(t, "push", "--quiet", "origin", "main")
			g.Expect(f.events(events)).To(ConsistOf(And(HaveField("Result", audit.Failed), HaveField("Reason", git.Full))))
			g.Expect(lines()).To(ConsistOf(And(
				ContainSubstring("Failed to store a push"), ContainSubstring("no space left on device"),
				ContainSubstring("group/project"), ContainSubstring(p.repository.Dir()),
			)))
		})
	}
}

func TestPush_toMissingStorageHasItsReasonInTheAudit(t *testing.T) {
	g := NewWithT(t)
	f, p, c := seeded(t, "sha1")
	events := f.audited(t)
	c.Commit(t, "README.md", "Changed\n")
	f.set(func() { p.openErr = fmt.Errorf("opening: %w", git.ErrStorageMissing) })
	contains(t, c.Refused(t, "push", "--quiet", "origin", "main"), "503")
	g.Expect(f.events(events)).To(ConsistOf(And(HaveField("Result", audit.Failed), HaveField("Reason", git.Unavailable))))
}
