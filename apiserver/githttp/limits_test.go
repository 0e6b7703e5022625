package githttp_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
)

func TestPush_isRefusedIfTooLarge(t *testing.T) {
	f := newForgeOn(t, git.Options{Limits: git.Limits{Push: 100_000}})
	p := f.add(t, "group/project", "sha1")
	c := gittest.New(t, "sha1")
	c.Commit(t, "big", random(3<<20))
	f.unchanged(t, p, func() {
		contains(t, c.Refused(t, "push", f.url(developer, "group/project"), "main"),
			"remote: fatal: The push has more than the 100000 bytes that the server takes in one push.")
	})
}

// An object that is small when it is sent and large when it is unpacked is refused, whether or not git keeps the pack.
func TestPush_limitsUnpackedSizeOfEachObject(t *testing.T) {
	f := newForgeOn(t, git.Options{Limits: git.Limits{Push: 1 << 20}})
	p := f.add(t, "group/project", "sha1")
	for about, files := range map[string]int{"loose": 0, "packed": 12} {
		c := gittest.New(t, "sha1")
		for i := range files {
			c.Commit(t, fmt.Sprint(i), about)
		}
		c.Commit(t, "zeros", strings.Repeat("\x00", 8<<20))
		blob := c.Git(t, "rev-parse", "HEAD:zeros")
		f.unchanged(t, p, func() {
			contains(t, c.Refused(t, "push", "--force", f.url(developer, "group/project"), "main"),
				"remote: The object "+blob+" has 8388608 bytes when it is unpacked, more than the 1 MiB that the server takes in one push.")
		})
		c.Git(t, "reset", "--quiet", "--hard", "HEAD~"+map[bool]string{true: "1", false: "0"}[files > 0])
		if files > 0 {
			c.Git(t, "push", "--quiet", "--force", f.url(developer, "group/project"), "main")
		}
	}
}

// onDisk returns the number of bytes that the objects of a repository take.
func onDisk(t *testing.T, dir string) (sum int64) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(dir, "objects"), func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err == nil {
			sum += info.Size()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

// Each of the objects is small enough on its own.
func TestPush_limitsUnpackedSizeOfAllObjects(t *testing.T) {
	f := newForgeOn(t, git.Options{Limits: git.Limits{Push: 2 << 20, PushUnpacked: 8 << 20}})
	p := f.add(t, "group/project", "sha1")
	for about, commits := range map[string]int{"loose": 1, "packed": 12} {
		c := gittest.New(t, "sha1")
		for i := range commits {
			c.Commit(t, fmt.Sprint(i), about)
		}
		c.Git(t, "push", "--quiet", "--force", f.url(developer, "group/project"), "main")
		small := c.Git(t, "rev-parse", "HEAD")
		for i := range 9 {
			c.Commit(t, fmt.Sprint("zeros", i), strings.Repeat(fmt.Sprint(i), 1<<20))
		}
		before := onDisk(t, p.repository.Dir())
		f.unchanged(t, p, func() {
			contains(t, c.Refused(t, "push", f.url(developer, "group/project"), "main"),
				"remote: The objects of the push have more than the 8 MiB together that the server takes in one push when they are unpacked.")
		})
		if after := onDisk(t, p.repository.Dir()); after != before {
			t.Errorf("%s: the repository had %d bytes before, and has %d now", about, before, after)
		}
		c.Git(t, "reset", "--quiet", "--hard", small)
		for i := range 6 {
			c.Commit(t, fmt.Sprint("zeros", i), strings.Repeat(fmt.Sprint(i), 1<<20))
		}
		c.Git(t, "push", "--quiet", f.url(developer, "group/project"), "main")
	}
}

// A compressed body that is mostly zeros is decompressed only as far as git reads it.
func TestPush_isNotUnpackedFurtherThanGitReads(t *testing.T) {
	f := newForgeOn(t, git.Options{Limits: git.Limits{Push: 1 << 20}})
	p := f.add(t, "group/project", "sha1")
	var body bytes.Buffer
	packed := gzip.NewWriter(&body)
	line := strings.Repeat("0", 40) + " " + strings.Repeat("1", 40) + " refs/heads/x\x00report-status side-band-64k"
	fmt.Fprintf(packed, "%04x%s0000PACK\x00\x00\x00\x02\x00\x00\xff\xff", len(line)+4, line)
	for zeros, n := make([]byte, 1<<20), 0; n < 200; n++ {
		_, _ = packed.Write(zeros)
	}
	_ = packed.Close()
	f.unchanged(t, p, func() {
		answer, text := f.do(t, http.MethodPost, "/group/project.git/git-receive-pack", developer,
			http.Header{"Content-Type": {pushType}, "Content-Encoding": {"gzip"}}, body.String())
		if text = demultiplex(t, text); answer.StatusCode != http.StatusOK || !strings.Contains(text, "ng refs/heads/x unpacker error") {
			t.Errorf("got %d %q", answer.StatusCode, text)
		}
	})
}

// Pushes to a repository with the maximum number of refs can still update and delete refs.
func TestPush_cannotExceedTheLimitOfRefs(t *testing.T) {
	f := newForgeOn(t, git.Options{Limits: git.Limits{Refs: 3}})
	p := f.add(t, "group/project", "sha1")
	c := gittest.New(t, "sha1")
	c.Commit(t, "a", "1")
	url := f.url(developer, "group/project")
	c.Git(t, "push", "--quiet", url, "main:main", "main:topic")
	f.unchanged(t, p, func() {
		contains(t, c.Refused(t, "push", url, "main:refs/tags/1", "main:refs/tags/2"),
			"remote: The repository would have 4 branches and tags, more than the 3 that the server allows. Delete some of them first.")
	})
	c.Git(t, "push", "--quiet", url, "main:refs/tags/1")
	c.Commit(t, "a", "2")
	f.unchanged(t, p, func() {
		contains(t, c.Refused(t, "push", url, "main", "main:refs/tags/2", ":refs/tags/1"), "would have 4 branches and tags")
	})
	c.Git(t, "push", "--quiet", url, "main", ":refs/tags/1")
	c.Git(t, "push", "--quiet", url, "main:refs/tags/2")
}

// A full repository accepts no new objects, but refs can be deleted.
func TestPush_cannotAddToFullRepository(t *testing.T) {
	const sentence = "remote: The repository would have more than the 1 MiB that the server allows a repository on disk. Nothing can be added to it."
	f := newForgeOn(t, git.Options{Limits: git.Limits{Repository: 1 << 20}})
	p := f.add(t, "group/project", "sha1")
	c := gittest.New(t, "sha1")
	c.Commit(t, "a", "small")
	url := f.url(developer, "group/project")
	c.Git(t, "push", "--quiet", url, "main:main", "main:other")
	c.Commit(t, "big", random(2<<20))
	f.unchanged(t, p, func() { contains(t, c.Refused(t, "push", url, "main"), sentence) })
	c.Git(t, "reset", "--quiet", "--hard", "HEAD~1")
	c.Commit(t, "b", "small")
	c.Git(t, "push", "--quiet", url, "main")
	if err := os.WriteFile(p.repository.Dir()+"/objects/filler", []byte(random(2<<20)), 0o644); err != nil {
		t.Fatal(err)
	}
	c.Commit(t, "c", "small")
	f.unchanged(t, p, func() { contains(t, c.Refused(t, "push", url, "main"), sentence) })
	c.Git(t, "push", "--quiet", url, ":other")
}

// A push without objects is measured as well, unless it only removes refs that exist.
func TestPush_withoutObjectsIsMeasuredToo(t *testing.T) {
	f := newForgeOn(t, git.Options{Limits: git.Limits{Repository: 1 << 20}})
	p := f.add(t, "group/project", "sha1")
	c := gittest.New(t, "sha1")
	head := c.Commit(t, "a", "small")
	c.Git(t, "push", "--quiet", p.repository.Dir(), "main:main", "main:other")
	if err := os.WriteFile(p.repository.Dir()+"/objects/filler", []byte(random(2<<20)), 0o644); err != nil {
		t.Fatal(err)
	}
	push := func(updates ...string) string {
		body := ""
		for _, u := range updates {
			body += line(u)
		}
		_, text := f.do(t, http.MethodPost, "/group/project.git/git-receive-pack", developer, http.Header{"Content-Type": {pushType}},
			line(updates[0]+"\x00report-status side-band-64k")+strings.TrimPrefix(body, line(updates[0]))+flush)
		return text
	}
	for about, updates := range map[string][]string{
		"neither old nor new":        {nothing + " " + nothing + " refs/heads/x"},
		"a ref that does not exist":  {head + " " + nothing + " refs/heads/x"},
		"an invalid ref name":        {head + " " + nothing + " refs/heads/a\x01b"},
		"a ref that exists, and one": {head + " " + nothing + " refs/heads/other", nothing + " " + nothing + " refs/heads/x"},
	} {
		f.unchanged(t, p, func() {
			if text := push(updates...); !strings.Contains(text, "The repository would have more than the 1 MiB") {
				t.Errorf("%s: got %q", about, text)
			}
		})
	}
	if text := push(head + " " + nothing + " refs/heads/other"); !strings.Contains(text, "ok refs/heads/other") {
		t.Errorf("got %q", text)
	}
}

// The client reads about the limit, and not that the repository could be corrupt. Other fetches are still served.
func TestMemory_explainsTheLimit(t *testing.T) {
	const sentence = "fatal: This takes more than the 24 MiB of memory that the server allows a Git process."
	f := newForgeOn(t, git.Options{Limits: git.Limits{Memory: 24 << 20}})
	p := f.add(t, "group/project", "sha1")
	c := gittest.New(t, "sha1")
	small := c.Commit(t, "a", "small")
	large := c.Write(t, "commit", "tree "+c.Git(t, "rev-parse", small+"^{tree}")+"\nauthor a <a> 0 +0000\ncommitter a <a> 0 +0000\n\n"+strings.Repeat("long ", 7<<20))
	c.Git(t, "update-ref", "refs/heads/large", large)
	url := f.url(developer, "group/project")
	f.unchanged(t, p, func() { contains(t, c.Refused(t, "push", url, "large"), "remote: "+sentence) })

	c.Git(t, "push", "--quiet", p.repository.Dir(), "main", "large")
	said := c.Refused(t, "clone", "--bare", url, t.TempDir()+"/all")
	contains(t, said, "fatal: remote error: "+strings.TrimPrefix(sentence, "fatal: "))
	if strings.Contains(said, "corruption") {
		t.Errorf("got %q", said)
	}
	c.Git(t, "clone", "--quiet", "--bare", "--single-branch", "--branch=main", url, t.TempDir()+"/main")
}
