package transfer_test

import (
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/internal/git/transfer"
)

// Git does not check objects from a server of files, for example one whose tree has an entry ".git".
func TestImport_takesNothingThatIsNotChecked(t *testing.T) {
	c := gittest.New(t, "sha1")
	c.Commit(t, "a", "1")
	tree := exec.CommandContext(t.Context(), "git", "mktree")
	tree.Dir, tree.Stdin = c.Dir, strings.NewReader("040000 tree "+c.Git(t, "rev-parse", "HEAD^{tree}")+"\t.git\n")
	bad, err := tree.Output()
	if err != nil {
		t.Fatal(err)
	}
	c.Git(t, "update-ref", "refs/heads/bad", c.Git(t, "commit-tree", "-m", "bad", strings.TrimSpace(string(bad))))
	loose, packed := t.TempDir(), t.TempDir()
	if err := os.CopyFS(loose+"/o.git", os.DirFS(c.Dir+"/.git")); err != nil {
		t.Fatal(err)
	}
	c.Git(t, "clone", "--quiet", "--mirror", "--no-local", ".", packed+"/o.git")
	path, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	for _, root := range []string{loose, packed} {
		c.Git(t, "--git-dir="+root+"/o.git", "update-server-info")
		files := http.FileServer(http.Dir(root))
		smart := &cgi.Handler{Path: path, Args: []string{"http-backend"}, Env: []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1"}}
		for about, askedBefore := range map[string]int32{"from files": 0, "after another answer": 1, "smart": 1000} {
			var asked atomic.Int32
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if strings.HasSuffix(r.URL.Path, "/info/refs") {
					asked.Add(1)
				}
				if asked.Load() <= askedBefore {
					smart.ServeHTTP(w, r)
				} else {
					files.ServeHTTP(w, r)
				}
			}))
			t.Cleanup(server.Close)
			storage := t.TempDir()
			err := transfer.Import(t.Context(), gittest.Repository(t, gittest.NewEngine(t), storage, "1.git"), transfer.ImportOptions{URL: server.URL + "/o.git"})
			switch {
			case err == nil:
				t.Errorf("%s: a tree with an entry .git has come in", about)
			case about == "smart":
				if !strings.Contains(err.Error(), "contains '.git'") {
					t.Errorf("%s: %v", about, err)
				}
			case !strings.HasPrefix(git.LastingLimit(err), "The server offers the repository as files alone"):
				t.Errorf("%s: %v", about, err)
			}
			if left := gittest.Entries(t, storage); len(left) > 0 {
				t.Errorf("%s: left behind: %v", about, left)
			}
		}
	}
}
