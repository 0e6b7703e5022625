package githttp_test

import (
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/forgeplane/forgeplane/apiserver/githttp"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/internal/git/upkeep"
)

func TestGit_clonesFetchesAndPushes(t *testing.T) {
	for _, format := range []string{"sha1", "sha256"} {
		for _, version := range []string{"0", "1", "2"} {
			t.Run(format+" v"+version, func(t *testing.T) {
				f := newForge(t)
				p := f.add(t, "group/sub/project", format)
				c := gittest.New(t, format)
				c.Git(t, "config", "protocol.version", version)
				c.Git(t, "remote", "add", "origin", f.url(developer, "group/sub/project"))
				first := c.Commit(t, "a", "1")
				c.Git(t, "tag", "v1")
				c.Git(t, "push", "origin", "main", "v1")

				other := &gittest.Client{Dir: t.TempDir()}
				other.Git(t, "-c", "protocol.version="+version, "clone", "--quiet", f.url(reporter, "group/sub/project"), ".")
				if got := other.Git(t, "rev-parse", "HEAD", "v1"); got != first+"\n"+first {
					t.Errorf("got %q", got)
				}

				second := c.Commit(t, "a", "2")
				c.Git(t, "push", "origin", "main:main", "main:topic")
				c.Git(t, "push", "origin", ":v1")
				other.Git(t, "fetch", "--quiet", "--prune", "--prune-tags", "origin")
				if got := other.Git(t, "for-each-ref", "--format=%(refname) %(objectname)", "refs/remotes/origin/main", "refs/remotes/origin/topic", "refs/tags"); got !=
					"refs/remotes/origin/main "+second+"\nrefs/remotes/origin/topic "+second {
					t.Errorf("got %q", got)
				}
				if err := upkeep.Fsck(t.Context(), p.repository, true); err != nil {
					t.Error(err)
				}
				if got := len(f.pushed[p.name]); got != 5 {
					t.Errorf("told of %d updates: %v", got, f.pushed[p.name])
				}
				f.idle(t, p)
			})
		}
	}
}

func TestClone_worksForEmptyRepository(t *testing.T) {
	f := newForge(t)
	f.add(t, "group/project", "sha1")
	c := &gittest.Client{Dir: t.TempDir()}
	c.Git(t, "clone", "--quiet", f.url(developer, "group/project"), ".")
	c.Commit(t, "a", "1")
	c.Git(t, "push", "origin", "HEAD:main")
}

func TestClone_canBeShallowOrPartial(t *testing.T) {
	f, _, c := seeded(t, "sha1")
	for i := range 5 {
		c.Commit(t, "file", fmt.Sprint(i))
	}
	old := c.Git(t, "rev-parse", "HEAD~3:file")
	c.Git(t, "push", "--quiet", "origin", "main")
	for _, version := range []string{"0", "2"} {
		shallow := &gittest.Client{Dir: t.TempDir()}
		shallow.Git(t, "-c", "protocol.version="+version, "clone", "--quiet", "--depth=2", f.url(reporter, "group/project"), ".")
		if got := shallow.Git(t, "rev-list", "--count", "HEAD"); got != "2" {
			t.Errorf("v%s shallow: %s commits", version, got)
		}
		shallow.Git(t, "fetch", "--quiet", "--unshallow")
		if got := shallow.Git(t, "rev-list", "--count", "HEAD"); got != "6" {
			t.Errorf("v%s unshallow: %s commits", version, got)
		}

		partial := &gittest.Client{Dir: t.TempDir()}
		partial.Git(t, "-c", "protocol.version="+version, "clone", "--quiet", "--no-checkout", "--filter=blob:none", f.url(reporter, "group/project"), ".")
		if got := partial.Git(t, "rev-list", "--objects", "--all", "--missing=print"); !strings.Contains(got, "?"+old) {
			t.Errorf("v%s partial: all blobs are there:\n%s", version, got)
		}
		if got := partial.Git(t, "cat-file", "-p", old); got != "1" {
			t.Errorf("v%s partial: a missing blob is fetched as %q", version, got)
		}

		// A shallow clone can push.
		again := &gittest.Client{Dir: t.TempDir()}
		again.Git(t, "clone", "--quiet", "--depth=1", f.url(developer, "group/project"), ".")
		again.Commit(t, "more", version)
		again.Git(t, "push", "--quiet", "origin", "HEAD:refs/heads/shallow-"+version)
	}
}

func TestPush_canBeSentInChunks(t *testing.T) {
	f, p, c := seeded(t, "sha1")
	content := random(6 << 20)
	c.Commit(t, "big", content)
	c.Env = []string{"GIT_TRACE_CURL=1", "GIT_TRACE_CURL_NO_DATA=1"}
	contains(t, c.Trace(t, "-c", "http.postBuffer=65536", "push", "origin", "main"), "Transfer-Encoding: chunked")
	other := &gittest.Client{Dir: t.TempDir()}
	other.Git(t, "clone", "--quiet", f.url(reporter, "group/project"), ".")
	if got, err := os.ReadFile(filepath.Join(other.Dir, "big")); err != nil || string(got) != content {
		t.Errorf("got %d bytes, %v", len(got), err)
	}
	f.idle(t, p)
}

func TestFetch_canHaveCompressedBody(t *testing.T) {
	f, _, c := seeded(t, "sha1")
	clone := &gittest.Client{Dir: t.TempDir()}
	clone.Git(t, "clone", "--quiet", f.url(reporter, "group/project"), ".")
	for i := range 120 { // git lists commits that the server does not have, and compresses requests of more than 1024 bytes
		clone.Git(t, "commit", "--quiet", "--allow-empty", "-m", fmt.Sprint(i))
	}
	for _, version := range []string{"0", "2"} {
		var id string
		for i := range 5 {
			id = c.Commit(t, "a", fmt.Sprint(version, i))
			c.Git(t, "branch", fmt.Sprint("b", version, i))
		}
		c.Git(t, "push", "--quiet", "--all", "origin")
		clone.Env = []string{"GIT_TRACE_CURL=1", "GIT_TRACE_CURL_NO_DATA=1"}
		seen := clone.Trace(t, "-c", "protocol.version="+version, "fetch", "origin")
		contains(t, seen, "Content-Encoding: gzip")
		if got := clone.Git(t, "rev-parse", "origin/main"); got != id {
			t.Errorf("got %s", got)
		}
	}
}

const (
	fetchType   = "application/x-git-upload-pack-request"
	pushType    = "application/x-git-receive-pack-request"
	fetchResult = "application/x-git-upload-pack-result"
	flush       = "0000"
)

func lsRefs() string {
	return "0014command=ls-refs\n00010009peel\n0000"
}

func TestBodies_areChecked(t *testing.T) {
	f := newForge(t, func(o *githttp.Options) { o.MaxFetchBytes = 100_000 })
	f.add(t, "group/project", "sha1").public = true
	packed := func(text string) string {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = z.Write([]byte(text))
		_ = z.Close()
		return b.String()
	}
	v2 := func(more ...string) http.Header {
		h := http.Header{"Content-Type": {fetchType}, "Git-Protocol": {"version=2"}}
		for i := 0; i < len(more); i += 2 {
			h[more[i]] = []string{more[i+1]}
		}
		return h
	}
	for about, c := range map[string]struct {
		header http.Header
		body   string
		status int
		want   string
	}{
		"plain":                   {v2(), lsRefs(), 200, "0000"},
		"compressed":              {v2("Content-Encoding", "gzip"), packed(lsRefs()), 200, "0000"},
		"by the old name":         {v2("Content-Encoding", "x-gzip"), packed(lsRefs()), 200, "0000"},
		"a lone flush":            {v2(), "0000", 200, ""},
		"not compressed":          {v2("Content-Encoding", "gzip"), lsRefs(), 400, "malformed"},
		"cut compression":         {v2("Content-Encoding", "gzip"), packed(lsRefs() + random(1000))[:500], 400, ""},
		"another compression":     {v2("Content-Encoding", "br"), lsRefs(), 415, "use gzip"},
		"another type":            {v2("Content-Type", "text/plain"), lsRefs(), 415, "Content-Type"},
		"the type of a push":      {v2("Content-Type", pushType), lsRefs(), 415, "Content-Type"},
		"no body":                 {v2(), "", 400, "malformed"},
		"no packet line":          {v2(), "hello world", 400, "malformed"},
		"an impossible length":    {v2(), "0003", 400, "malformed"},
		"too long a line":         {v2(), "ffffcommand=ls-refs", 400, "malformed"},
		"another word":            {v2(), "0010hello world\n0000", 400, "malformed"},
		"a protocol with a space": {v2("Git-Protocol", "version=2 x"), lsRefs(), 400, "Git-Protocol"},
		"too long":                {v2(), "0014command=ls-refs\n0001" + strings.Repeat("0009peel\n", 20_000) + "0000", 413, "larger than 100000 bytes"},
		"a bomb":                  {v2("Content-Encoding", "gzip"), packed("0014command=ls-refs\n0001" + strings.Repeat("0009peel\n", 5_000_000)), 413, "larger than 100000 bytes"},
	} {
		t.Run(about, func(t *testing.T) {
			answer, text := f.do(t, http.MethodPost, "/group/project.git/git-upload-pack", "", c.header, c.body)
			if answer.StatusCode != c.status || !strings.Contains(text, c.want) {
				t.Errorf("got %d %q, want %d %q", answer.StatusCode, text, c.status, c.want)
			}
			if c.status == 200 && answer.Header.Get("Content-Type") != fetchResult {
				t.Errorf("got type %q", answer.Header.Get("Content-Type"))
			}
			if got := answer.Header.Get("Cache-Control"); !strings.HasPrefix(got, "no-cache") {
				t.Errorf("got Cache-Control %q", got)
			}
		})
	}
}

// random returns bytes that do not repeat, even between calls.
func random(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b)
	return string(b)
}
