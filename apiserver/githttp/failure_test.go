package githttp_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/forgeplane/forgeplane/apiserver/githttp"
	"github.com/forgeplane/forgeplane/internal/fair"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/internal/hook"
	"github.com/forgeplane/forgeplane/internal/protection"
)

// script returns the path of a git that runs a script before it serves a request: "$1" is the service. Requests that only list refs do not run
// the script.
func script(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "git.sh")
	if err := os.WriteFile(path, []byte("#!/bin/sh\ncase \"$*\" in *info-refs*) exec git \"$@\";; esac\n"+text+"\nexec git \"$@\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// stuck returns the path of a git whose fetches never end, and of a file to which a fetch writes its process id.
func stuck(t *testing.T) (binary, pid string) {
	t.Helper()
	pid = filepath.Join(t.TempDir(), "pid")
	return script(t, `case "$1" in upload-pack) echo $$ >`+pid+`.new; mv `+pid+`.new `+pid+`; exec sleep 600;; esac`), pid
}

// started waits until a process has written its id to a file.
func started(t *testing.T, path string) (pid int) {
	t.Helper()
	gittest.Eventually(t, "the process has started", func() bool {
		text, _ := os.ReadFile(path)
		pid, _ = strconv.Atoi(strings.TrimSpace(string(text)))
		return pid > 0
	})
	return pid
}

func gone(pid int) bool { return syscall.Kill(pid, 0) != nil }

// fetch sends a fetch request.
func (f *forge) fetch(ctx context.Context, body io.Reader) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, f.URL+"/group/project.git/git-upload-pack", body)
	if err != nil {
		return nil, err
	}
	r.SetBasicAuth("whoever", developer)
	r.Header.Set("Content-Type", fetchType)
	r.Header.Set("Git-Protocol", "version=2")
	return http.DefaultClient.Do(r)
}

func TestProcess_endsWhenClientLeaves(t *testing.T) {
	binary, pidFile := stuck(t)
	f := newForgeWith(t, binary)
	f.add(t, "group/project", "sha1")
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error)
	go func() { _, err := f.fetch(ctx, strings.NewReader(lsRefs())); result <- err }()
	pid := started(t, pidFile)
	cancel()
	if err := <-result; err == nil {
		t.Error("there is an answer")
	}
	gittest.Eventually(t, "the process is gone", func() bool { return gone(pid) })
}

func TestTimeout_endsRequest(t *testing.T) {
	t.Parallel() // it mostly waits
	binary, pidFile := stuck(t)
	f := newForgeWith(t, binary, func(o *githttp.Options) { o.Timeout = 5 * time.Second })
	f.add(t, "group/project", "sha1")
	answer, err := f.fetch(t.Context(), strings.NewReader(lsRefs()))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if text, _ := io.ReadAll(answer.Body); answer.StatusCode != http.StatusServiceUnavailable || !strings.Contains(string(text), "took too long") {
		t.Errorf("got %d %q", answer.StatusCode, text)
	}
	pid := started(t, pidFile)
	gittest.Eventually(t, "the process is gone", func() bool { return gone(pid) })
}

func TestSlots_refuseIfServerIsBusy(t *testing.T) {
	binary, pidFile := stuck(t)
	f := newForgeWith(t, binary, func(o *githttp.Options) {
		o.Slots = fair.Limits{Total: 1, Wait: 100 * time.Millisecond}
	})
	f.add(t, "group/project", "sha1")
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error)
	go func() { _, err := f.fetch(ctx, strings.NewReader(lsRefs())); result <- err }()
	started(t, pidFile)
	answer, text := f.do(t, http.MethodGet, "/group/project.git/info/refs?service=git-upload-pack", reporter, nil, "")
	if answer.StatusCode != http.StatusServiceUnavailable || answer.Header.Get("Retry-After") == "" || !strings.Contains(text, "The server is busy.") {
		t.Errorf("got %d %q", answer.StatusCode, text)
	}
	cancel()
	if err := <-result; err == nil {
		t.Error("the fetch that was cut off has an answer")
	}
	gittest.Eventually(t, "there is room again", func() bool {
		answer, _ := f.do(t, http.MethodGet, "/group/project.git/info/refs?service=git-upload-pack", developer, nil, "")
		return answer.StatusCode == http.StatusOK
	})
}

func TestIdleClients_areCutOff(t *testing.T) {
	t.Parallel() // it mostly waits
	pidFile := filepath.Join(t.TempDir(), "pid")
	binary := script(t, `case "$1" in upload-pack) echo $$ >`+pidFile+`.new; mv `+pidFile+`.new `+pidFile+`; exec yes;; esac`)
	f := newForgeWith(t, binary, func(o *githttp.Options) { o.IdleTimeout = 3 * time.Second })
	f.add(t, "group/project", "sha1").public = true
	send := func(body string) net.Conn {
		conn, err := net.Dial("tcp", f.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "POST /group/project.git/git-upload-pack HTTP/1.1\r\nHost: x\r\nContent-Type: %s\r\nGit-Protocol: version=2\r\nContent-Length: %d\r\n\r\n%s",
			fetchType, len(lsRefs()), body)
		return conn
	}
	t.Run("a client that stops sending", func(t *testing.T) {
		conn := send(lsRefs()[:10])
		defer conn.Close()
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != http.StatusBadRequest {
			t.Errorf("got %d", answer.StatusCode)
		}
	})
	t.Run("a client that stops reading", func(t *testing.T) {
		conn := send(lsRefs())
		defer conn.Close()
		pid := started(t, pidFile)
		gittest.Eventually(t, "the process is gone", func() bool { return gone(pid) })
	})
}

// An answer that is too long to buffer begins while the client still sends.
func TestAnswer_canBeginBeforeRequestEnds(t *testing.T) {
	const size = 3_000_000
	f := newForgeWith(t, script(t, fmt.Sprintf(`case "$1" in upload-pack) head -c %d /dev/zero; exec wc -c;; esac`, size)))
	f.add(t, "group/project", "sha1")
	pr, pw := io.Pipe()
	go func() { _, _ = io.WriteString(pw, lsRefs()) }()
	answer, err := f.fetch(t.Context(), pr)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	go func() { _, _ = io.WriteString(pw, strings.Repeat("x", 1000)); pw.Close() }()
	got, err := io.ReadAll(answer.Body)
	want := fmt.Sprintf("%s%d\n", strings.Repeat("\x00", size), len(lsRefs())+1000)
	if err != nil || string(got) != want {
		t.Errorf("got %d bytes, ending with %q, %v", len(got), got[max(0, len(got)-20):], err)
	}
}

func TestExpectContinue_isAnsweredAfterAuthorization(t *testing.T) {
	f := newForge(t)
	f.add(t, "group/project", "sha1")
	continued := 0
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got100Continue: func() { continued++ }})
	send := func(user string) int {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, f.URL+"/group/project.git/git-upload-pack", strings.NewReader(lsRefs()))
		if err != nil {
			t.Fatal(err)
		}
		r.Header = http.Header{"Content-Type": {fetchType}, "Git-Protocol": {"version=2"}, "Expect": {"100-continue"}}
		r.SetBasicAuth("whoever", user)
		transport := &http.Transport{ExpectContinueTimeout: time.Minute}
		defer transport.CloseIdleConnections()
		answer, err := transport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		return answer.StatusCode
	}
	if status := send(developer); status != 200 || continued != 1 {
		t.Errorf("got %d, continued %d times", status, continued)
	}
	if status := send(stranger); status != 404 || continued != 1 {
		t.Errorf("refused: got %d, continued %d times", status, continued)
	}
}

func TestPush_isRefusedIfDiskIsFull(t *testing.T) {
	// A limit on the size of files stands for a full disk. Its signal is ignored, so that writing fails instead.
	f := newForgeWith(t, script(t, `case "$1" in receive-pack) trap '' XFSZ; ulimit -f 64;; esac`))
	p := f.add(t, "group/project", "sha1")
	c := gittest.New(t, "sha1")
	c.Commit(t, "a", "small")
	c.Git(t, "push", "--quiet", f.url(developer, "group/project"), "main")
	c.Commit(t, "big", random(1<<20))
	f.unchanged(t, p, func() {
		contains(t, c.Refused(t, "push", f.url(developer, "group/project"), "main"), "File too large", "! [remote rejected]")
	})
	c.Git(t, "reset", "--quiet", "--hard", "HEAD~1")
	c.Commit(t, "b", "small")
	c.Git(t, "push", "--quiet", f.url(developer, "group/project"), "main")
}

// git ends as soon as it reads such a pack, long before the client has sent all of it. The client must still receive the answer.
func TestPush_reportsDamagedPack(t *testing.T) {
	f, p, c := seeded(t, "sha1")
	line := strings.Repeat("0", 40) + " " + c.Git(t, "rev-parse", "HEAD") + " refs/heads/x\x00report-status side-band-64k"
	f.unchanged(t, p, func() {
		answer, text := f.do(t, http.MethodPost, "/group/project.git/git-receive-pack", developer, http.Header{"Content-Type": {pushType}},
			fmt.Sprintf("%04x%s0000", len(line)+4, line)+"PACK\x00\x00\x00\x02\x00\x00\xff\xff"+strings.Repeat("x", 8<<20))
		if text = demultiplex(t, text); answer.StatusCode != http.StatusOK || !strings.Contains(text, "ng refs/heads/x unpacker error") {
			t.Errorf("got %d %q", answer.StatusCode, text)
		}
	})
}

// A push whose client leaves changes nothing unless the push has been accepted.
func TestPush_changesNothingIfClientLeavesBeforeAcceptance(t *testing.T) {
	f, p, c := seeded(t, "sha1")
	c.Commit(t, "a", "1")
	asked := make(chan struct{})
	f.set(func() {
		p.rules = []protection.Rule{{Name: "*", Push: []protection.Grant{{GroupID: 1}}}}
		f.inGroup = func(ctx context.Context, _ int64) (bool, error) { close(asked); <-ctx.Done(); return true, nil }
	})
	f.unchanged(t, p, func() {
		proxy := newProxy(t, f)
		go func() { <-asked; proxy.cut() }()
		c.Refused(t, "push", proxy.url(developer), "main")
	})
}

// An accepted push is completed even if its client has left.
func TestPush_isCompletedIfClientLeavesAfterAcceptance(t *testing.T) {
	f, p, c := seeded(t, "sha1")
	id := c.Commit(t, "a", "1")
	// This hook has the answer of the server, and waits for a file before it reports to git.
	dir, self := t.TempDir(), f.hooks.Dir+"/pre-receive"
	hookPath := filepath.Join(dir, "pre-receive")
	if target, err := os.Readlink(self); err != nil || os.Symlink(target, hookPath) != nil || os.Remove(self) != nil {
		t.Fatal("cannot replace the hook")
	}
	text := fmt.Sprintf("#!/bin/sh\n%s || exit 1\ntouch %s/accepted\nwhile [ ! -e %s/go ]; do sleep 0.02; done\n", hookPath, dir, dir)
	if err := os.WriteFile(self, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	proxy := newProxy(t, f)
	result := make(chan string)
	go func() { result <- c.Refused(t, "push", proxy.url(developer), "main") }()
	gittest.Eventually(t, "the push is accepted", func() bool { _, err := os.Stat(dir + "/accepted"); return err == nil })
	proxy.cut()
	<-result
	if err := os.WriteFile(dir+"/go", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	gittest.Eventually(t, "the push is done and told of", func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return len(f.pushed[p.name]) == 2
	})
	if got := shownRefs(t, p); got != "refs/heads/main "+id+"\n" {
		t.Errorf("got %q", got)
	}
	f.idle(t, p)
}

// proxy is a connection to a forge that a test can cut.
type proxy struct {
	net.Listener
	mu    sync.Mutex
	conns []net.Conn
}

func newProxy(t *testing.T, f *forge) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{Listener: l}
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", f.Listener.Addr().String())
			if err != nil {
				in.Close()
				continue
			}
			p.mu.Lock()
			p.conns = append(p.conns, in, out)
			p.mu.Unlock()
			go func() { _, _ = io.Copy(out, in); out.Close() }()
			go func() { _, _ = io.Copy(in, out); in.Close() }()
		}
	}()
	t.Cleanup(p.cut)
	return p
}

func (p *proxy) url(user string) string {
	return "http://whoever:" + user + "@" + p.Addr().String() + "/group/project.git"
}

func (p *proxy) cut() {
	p.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		c.Close()
	}
}

func TestClone_canRunManyTimesAtOnce(t *testing.T) {
	f, _, c := seeded(t, "sha1")
	c.Commit(t, "a", random(500<<10))
	c.Git(t, "push", "--quiet", "origin", "main")
	for range 2 {
		var clones sync.WaitGroup
		for range 16 {
			clone := &gittest.Client{Dir: t.TempDir()}
			clones.Go(func() {
				if out := clone.Trace(t, "clone", "--bare", f.url(reporter, "group/project"), "."); strings.Contains(out, "error") {
					t.Error(out)
				}
			})
		}
		clones.Wait()
	}
}

func TestNew_refusesMissingProjects(t *testing.T) {
	if _, err := githttp.New(githttp.Options{Hooks: &hook.Server{}}); err == nil {
		t.Error("a handler without projects is made")
	}
}
