package githttp_test

import (
	"fmt"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"sync"
	"testing"

	"github.com/forgeplane/forgeplane/internal/git/gittest"
)

func TestRepro(t *testing.T) {
	if os.Getenv("MEASURE") == "" {
		t.Skip()
	}
	f := newForge(t)
	p := f.add(t, "group/project", "sha1")
	c := gittest.New(t, "sha1")
	for i := range 30 {
		c.Commit(t, fmt.Sprintf("d%d/f%d", i%7, i), incompressible(300<<10)+fmt.Sprint(i))
	}
	c.Git(t, "push", "--quiet", f.url(developer, "group/project"), "main")
	c.Git(t, "--git-dir="+p.repository.Dir(), "repack", "-adq")
	root := t.TempDir()
	c.Git(t, "clone", "--quiet", "--mirror", p.repository.Dir(), root+"/ref.git")
	gitPath, _ := exec.LookPath("git")
	backend := &cgi.Handler{Path: gitPath, Args: []string{"http-backend"}, Env: []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=x"}}
	ref := httptest.NewServer(http.HandlerFunc(backend.ServeHTTP))
	defer ref.Close()
	for _, url := range []string{f.url(developer, "group/project"), ref.URL + "/ref.git"} {
		bad := 0
		for round := range 12 {
			var wg sync.WaitGroup
			var mu sync.Mutex
			for k := range 16 {
				wg.Go(func() {
					dir := fmt.Sprintf("/dev/shm/m-%d-%d", round, k)
					defer os.RemoveAll(dir)
					tr := fmt.Sprintf("/tmp/trace-%d-%d", round, k)
					os.Remove(tr)
					cmd := exec.Command("git", "clone", "--quiet", "--bare", url, dir)
					cmd.Env = append(os.Environ(), "GIT_TRACE_CURL="+tr, "GIT_TRACE="+tr, "GIT_TRACE_CURL_NO_DATA=1")
					out, err := cmd.CombinedOutput()
					mu.Lock()
					defer mu.Unlock()
					if err != nil {
						bad++
						fmt.Println(url, round, k, err, string(out))
					} else {
						os.Remove(tr)
					}
				})
			}
			wg.Wait()
		}
		fmt.Println(url, "bad", bad)
	}
}
