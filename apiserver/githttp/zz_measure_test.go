package githttp_test

import (
	"fmt"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/internal/hook"
	"github.com/forgeplane/forgeplane/internal/protection"
	"github.com/forgeplane/forgeplane/internal/role"
)

func median(d []time.Duration) time.Duration { slices.Sort(d); return d[len(d)/2] }

func TestMeasure(t *testing.T) {
	if os.Getenv("MEASURE") == "" {
		t.Skip()
	}
	hb := os.Getenv("HOOKBIN")
	f := newForge(t)
	if hb != "" {
		if err := hook.InstallDir(f.hooksDir, hb); err != nil {
			t.Fatal(err)
		}
	}
	p := f.add(t, "group/project", "sha1")
	c := gittest.New(t, "sha1")
	for i := range 60 {
		c.Commit(t, fmt.Sprintf("d%d/f%d", i%7, i), incompressible(300<<10)+fmt.Sprint(i))
	}
	for i := range 400 {
		c.Commit(t, fmt.Sprintf("s%d/f", i%50), strings.Repeat(fmt.Sprint(i), 500))
	}
	c.Git(t, "push", "--quiet", f.url(developer, "group/project"), "main")
	c.Git(t, "--git-dir="+p.repository.Dir(), "repack", "-adq")
	root := t.TempDir()
	c.Git(t, "clone", "--quiet", "--mirror", p.repository.Dir(), root+"/ref.git")
	c.Git(t, "--git-dir="+root+"/ref.git", "config", "http.receivepack", "true")
	gitPath, _ := exec.LookPath("git")
	backend := &cgi.Handler{Path: gitPath, Args: []string{"http-backend"}, Env: []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=x"}}
	ref := httptest.NewServer(http.HandlerFunc(backend.ServeHTTP))
	defer ref.Close()
	urls := map[string]string{"ours": f.url(developer, "group/project"), "ref": ref.URL + "/ref.git"}
	n := 30
	measure := func(what string, n int, do func(which, url string, i int) time.Duration) {
		got := map[string][]time.Duration{}
		for i := range n {
			for _, which := range []string{"ours", "ref"} {
				got[which] = append(got[which], do(which, urls[which], i))
			}
		}
		slices.Sort(got["ours"]); slices.Sort(got["ref"])
		fmt.Printf("%-12s ours %v (min %v)  ref %v (min %v)  ratio %.3f (min ratio %.3f)\n", what, median(got["ours"]), got["ours"][0], median(got["ref"]), got["ref"][0],
			float64(median(got["ours"]))/float64(median(got["ref"])), float64(got["ours"][0])/float64(got["ref"][0]))
	}
	measure("clone", n, func(which, url string, i int) time.Duration {
		dir := filepath.Join("/dev/shm", fmt.Sprintf("measure-%s-%d", which, i))
		defer os.RemoveAll(dir)
		start := time.Now()
		c.Git(t, "clone", "--quiet", "--bare", url, dir)
		return time.Since(start)
	})
	measure("clone x16", 4, func(which, url string, i int) time.Duration {
		start := time.Now()
		var wg sync.WaitGroup
		for k := range 16 {
			wg.Go(func() {
				dir := filepath.Join("/dev/shm", fmt.Sprintf("measure-%s-%d-%d", which, i, k))
				defer os.RemoveAll(dir)
				c.Git(t, "clone", "--quiet", "--bare", url, dir)
			})
		}
		wg.Wait()
		return time.Since(start)
	})
	measure("ls-remote", n, func(which, url string, i int) time.Duration {
		start := time.Now()
		c.Git(t, "ls-remote", url)
		return time.Since(start)
	})
	push := func(what string) {
		measure(what, 40, func(which, url string, i int) time.Duration {
			c.Commit(t, "tick", fmt.Sprint(which, i, what))
			start := time.Now()
			c.Git(t, "push", "--quiet", url, "HEAD:refs/heads/main")
			return time.Since(start)
		})
	}
	push("push")
	f.set(func() { p.rules = []protection.Rule{protect("main", role.Developer)} })
	push("push 1 rule")
	f.set(func() {
		p.rules = nil
		for i := range 500 {
			p.rules = append(p.rules, protect(fmt.Sprintf("release/%d/*", i), role.Maintainer))
		}
		p.rules[499] = protect("main", role.Developer)
	})
	push("push 500 r")
}
