package githttp_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/test/soak"
)

// size is the limit in MiB of the histories with objects of zeros.
var size = soak.Times(1, 16)

// hostile are histories that take little space on disk but many resources to process. pushed and clone are the messages that users see when
// they push such a history, or clone one that is already on the server; clone is empty if the server can serve it. Only "make soak" tries those
// that are slow; TestMemory_explainsTheLimit is their smaller form.
var hostile = map[string]struct {
	limits        git.Limits
	make          func(t *testing.T, c *gittest.Client)
	pushed, clone string
	slow          bool
}{
	"a message of 192 MiB": {
		limits: git.Limits{Memory: 128 << 20},
		make: func(t *testing.T, c *gittest.Client) {
			tree := c.Git(t, "rev-parse", "HEAD^{tree}")
			large := c.Write(t, "commit", "tree "+tree+"\nparent "+c.Git(t, "rev-parse", "HEAD")+"\nauthor a <a@a.a> 0 +0000\ncommitter a <a@a.a> 0 +0000\n\n"+
				strings.Repeat("m", 192<<20))
			c.Git(t, "update-ref", "refs/heads/main", large)
		},
		pushed: "This takes more than the 128 MiB of memory that the server allows a Git process.",
		clone:  "This takes more than the 128 MiB of memory that the server allows a Git process.",
		slow:   true,
	},
	"an object of zeros": {
		limits: git.Limits{Push: int64(size) << 20},
		make:   func(t *testing.T, c *gittest.Client) { c.Commit(t, "zeros", strings.Repeat("\x00", size<<21)) },
		pushed: fmt.Sprintf("has %d bytes when it is unpacked, more than the %d MiB that the server takes in one push.", size<<21, size),
	},
	"many objects of zeros": {
		limits: git.Limits{PushUnpacked: int64(size) << 20},
		make: func(t *testing.T, c *gittest.Client) {
			for i := range 9 {
				c.Commit(t, fmt.Sprint(i), strings.Repeat(fmt.Sprint(i), size<<17))
			}
		},
		pushed: fmt.Sprintf("The objects of the push have more than the %d MiB together that the server takes in one push when they are unpacked.", size),
	},
	"more than the repository may have": {
		limits: git.Limits{Repository: 1 << 20},
		make:   func(t *testing.T, c *gittest.Client) { c.Commit(t, "noise", random(2<<20)) },
		pushed: "The repository would have more than the 1 MiB that the server allows a repository on disk. Nothing can be added to it.",
	},
}

// A push that is stopped because there is no memory left says so, and leaves nothing behind.
func TestPush_explainsThatMemoryIsExhausted(t *testing.T) {
	c := gittest.New(t, "sha1")
	c.Commit(t, "a", "1")
	large := c.Write(t, "commit", "tree "+c.Git(t, "rev-parse", "HEAD^{tree}")+"\nauthor a <a> 0 +0000\ncommitter a <a> 0 +0000\n\n"+
		strings.Repeat("m", 32<<20))
	c.Git(t, "update-ref", "refs/heads/large", large)
	binary, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	helpers := t.TempDir()
	// Each of these processes holds 32 MiB until its output is read.
	if err := os.WriteFile(helpers+"/git", []byte("#!/bin/sh\nunset GIT_EXEC_PATH\ncase \"$1\" in unpack-objects) for i in 1 2; do "+
		binary+" cat-file commit "+large+" | sleep 600 & done; wait;; esac\nexec "+binary+" \"$@\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	f := newForgeOn(t, git.Options{
		Binary: script(t, `case "$1" in receive-pack) export GIT_EXEC_PATH=`+helpers+`;; esac; exec `+binary+` "$@"`),
		Limits: git.Limits{MemoryTotal: 50 << 20},
	})
	p := f.add(t, "group/project", "sha1")
	c.Git(t, "push", "--quiet", p.repository.Dir(), "main", "large")
	c.Commit(t, "b", "2")
	f.unchanged(t, p, func() {
		contains(t, c.Refused(t, "push", f.url(developer, "group/project"), "main"),
			"remote: fatal: This was stopped because not enough memory is available: the server allows all Git processes together 50 MiB.",
			"! [remote rejected] main -> main (unpacker error)")
	})
}

func TestHostileRepositories_doNotDisturbOthers(t *testing.T) {
	for name, tt := range hostile {
		t.Run(name, func(t *testing.T) {
			if tt.slow {
				soak.Only(t)
			}
			f := newForgeOn(t, git.Options{Limits: tt.limits})
			p, lying := f.add(t, "group/project", "sha1"), f.add(t, "group/lying", "sha1")
			other := f.add(t, "group/other", "sha1")
			c := gittest.New(t, "sha1")
			c.Commit(t, "a", "1")
			for _, target := range []*project{p, other} {
				c.Git(t, "push", "--quiet", target.repository.Dir(), "main")
			}
			small := c.Git(t, "rev-parse", "HEAD")
			tt.make(t, c)
			c.Git(t, "push", "--quiet", lying.repository.Dir(), "main")
			serves := func(when string) {
				t.Helper()
				ended := make(chan error, 1)
				go func() {
					_, err := (&gittest.Client{Dir: t.TempDir()}).Try("clone", "--quiet", f.url(reporter, "group/other"), ".")
					ended <- err
				}()
				select {
				case err := <-ended:
					if err != nil {
						t.Errorf("another client %s: %v", when, err)
					}
				case <-time.After(time.Minute):
					t.Fatalf("another client %s waits for ever", when)
				}
			}
			f.unchanged(t, p, func() {
				contains(t, c.Refused(t, "push", f.url(developer, "group/project"), "main"), tt.pushed)
			})
			serves("after the push")
			into := &gittest.Client{Dir: t.TempDir()}
			if tt.clone == "" {
				into.Git(t, "clone", "--quiet", "--no-checkout", f.url(reporter, "group/lying"), ".")
			} else {
				contains(t, into.Refused(t, "clone", f.url(reporter, "group/lying"), "."), tt.clone)
			}
			serves("after the clone")
			c.Git(t, "reset", "--quiet", "--hard", small)
			c.Commit(t, "b", "2")
			c.Git(t, "push", "--quiet", f.url(developer, "group/project"), "main")
			if left, _ := filepath.Glob(p.repository.Dir() + "/objects/tmp_*"); len(left) > 0 {
				t.Errorf("there is still %v", left)
			}
		})
	}
}
