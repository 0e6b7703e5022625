package files_test

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"

	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	. "github.com/forgeplane/forgeplane/apiserver/v4/files"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/test/history"
	"github.com/forgeplane/forgeplane/test/seed"
	"github.com/forgeplane/forgeplane/test/soak"
)

// TestFiles_agreeWithGit asks for random files of random commits of a large history with branches, merges and renames, and of one
// with odd names, and compares each answer with the output of git.
func TestFiles_agreeWithGit(t *testing.T) {
	large := gittest.New(t, "sha1")
	size := soak.Times(300, 5000)
	large.Import(t, history.Stream(history.Options{Commits: size, Topics: size / 10}))
	for name, c := range map[string]*gittest.Client{"many commits": large, "odd names": oddTree(t, "sha1")} {
		t.Run(name, func(t *testing.T) {
			s := newShop(t, c)
			random := rand.New(rand.NewPCG(seed.Value(), 12))
			commits := strings.Fields(c.Git(t, "rev-list", "--all"))
			names := strings.Split(strings.TrimSuffix(c.Git(t, "ls-tree", "-r", "-z", "--name-only", "main"), "\x00"), "\x00")
			there, asked := 0, soak.Times(20, 2000)
			for range asked {
				commit, path := commits[random.IntN(len(commits))], names[random.IntN(len(names))]
				if s.agrees(t, commit, path) {
					there++
				}
			}
			if there < asked/4 {
				t.Errorf("only %d files were there", there)
			}
		})
	}
}

// agrees compares the answers about a path of a commit with git, and reports whether the path is a file.
func (s *shop) agrees(t *testing.T, commit, path string) bool {
	t.Helper()
	git := func(args ...string) string {
		return s.client.Git(t, append([]string{"--literal-pathspecs"}, args...)...)
	}
	at := at + url.PathEscape(path)
	answer := s.As("", "GET "+at+"?ref="+commit, "")
	kind, _, _ := strings.Cut(git("ls-tree", commit, "--", path), "\t")
	mode, id, ok := strings.Cut(kind, " blob ")
	if !ok {
		if answer.Code != 404 {
			t.Errorf("%q of %s is no file, and is answered %.300s", path, commit, answer)
		}
		return false
	}
	if answer.Code != 200 {
		t.Fatalf("%q of %s: %.300s", path, commit, answer)
	}
	f := familytest.Decode[File](t, answer)
	content, err := base64.StdEncoding.DecodeString(f.Content)
	got := fmt.Sprintln(f.FilePath, f.BlobID, f.CommitID, f.LastCommitID, f.Size, f.ExecuteFilemode, err)
	want := fmt.Sprintln(strings.ToValidUTF8(path, "\uFFFD"), id, commit, git("log", "--max-count=1", "--format=%H", commit, "--", path), git("cat-file", "-s", id), mode == "100755", nil)
	if got != want {
		t.Errorf("%q of %s is\n%swant\n%s", path, commit, got, want)
	}
	raw := s.As("", "GET "+at+"/raw?ref="+commit, "")
	// The Git method of the client trims the last newline.
	if text := git("cat-file", "blob", id); raw.Body != string(content) || strings.TrimSuffix(raw.Body, "\n") != text {
		t.Errorf("%q of %s is %.100q and %.100q, want %.100q", path, commit, content, raw.Body, text)
	}
	head := headers(t, s.As("", "HEAD "+at+"?ref="+commit, "").Header)
	if head.BlobID != f.BlobID || head.LastCommitID != f.LastCommitID || head.ContentSHA256 != f.ContentSHA256 {
		t.Errorf("the headers of %q of %s are %+v", path, commit, head)
	}
	return true
}
