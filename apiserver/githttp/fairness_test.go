package githttp_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"github.com/forgeplane/forgeplane/apiserver/githttp"
	"github.com/forgeplane/forgeplane/apiserver/ratelimit"
	"github.com/forgeplane/forgeplane/internal/fair"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
)

// limited adds rate limits to a forge. Without them, callers have no address.
func (f *forge) limited(o ratelimit.Options) {
	o.Clock = clock.RealClock{}
	f.Config.Handler = ratelimit.New(o).Handler(f.Config.Handler)
}

// occupy sends fetches of a user that git does not end before the test ends.
func (f *forge) occupy(t *testing.T, user string, number int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	t.Cleanup(func() { cancel(); all.Wait() })
	for range number {
		all.Go(func() {
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, f.URL+"/group/project.git/git-upload-pack", strings.NewReader(lsRefs()))
			if err != nil {
				t.Error(err)
				return
			}
			if user != "" {
				r.SetBasicAuth("whoever", user)
			}
			r.Header.Set("Content-Type", fetchType)
			r.Header.Set("Git-Protocol", "version=2")
			answer, err := http.DefaultClient.Do(r)
			if err == nil {
				_ = answer.Body.Close()
			}
		})
	}
}

// held returns the number of slots that are held according to the metrics.
func (f *forge) held() int {
	registry := prometheus.NewRegistry()
	registry.MustRegister(f.handler.Requests())
	families, err := registry.Gather()
	if err != nil {
		return -1
	}
	for _, family := range families {
		if family.GetName() == "forgeplane_slots_held" {
			return int(family.GetMetric()[0].GetGauge().GetValue())
		}
	}
	return -1
}

// take holds a slot until leave is called.
func (f *forge) take(t *testing.T) (leave func()) {
	leave, err := f.handler.Requests().Enter(t.Context())
	if err != nil {
		t.Error(err)
		return func() {}
	}
	return leave
}

// stuckFor returns the path of a git whose fetches of one project never end.
func stuckFor(t *testing.T, path string) string {
	t.Helper()
	return script(t, `case "$1:$PWD" in upload-pack:*/`+path+`.git) exec sleep 600;; esac`)
}

func TestSlots_keepSomeForOtherClients(t *testing.T) {
	f := newForgeWith(t, stuckFor(t, "group/project"), func(o *githttp.Options) {
		o.Slots = fair.Limits{Total: 8, Share: 4, Reserved: 2, Wait: 20 * time.Second}
	})
	f.limited(ratelimit.Options{})
	f.add(t, "group/project", "sha1").public = true
	f.add(t, "group/other", "sha1")
	c := gittest.New(t, "sha1")
	id := c.Commit(t, "a", "1")
	c.Git(t, "push", "--quiet", f.url(developer, "group/other"), "main")

	for name, occupant := range map[string]string{"a user": developer, "an address": ""} {
		t.Run(name, func(t *testing.T) {
			f.occupy(t, occupant, 64)
			gittest.Eventually(t, "the share is taken", func() bool { return f.held() == 4 })
			clone := &gittest.Client{Dir: t.TempDir()}
			clone.Git(t, "clone", "--quiet", f.url(reporter, "group/other"), ".")
			if got := clone.Git(t, "rev-parse", "HEAD"); got != id {
				t.Errorf("got %q", got)
			}
		})
		gittest.Eventually(t, "the slots are free", func() bool { return f.held() == 0 })
	}
}

func TestSlots_explainRefusalsAndWhenToRetry(t *testing.T) {
	f := newForgeWith(t, stuckFor(t, "group/project"), func(o *githttp.Options) {
		o.Slots = fair.Limits{Total: 8, Share: 2, Wait: 50 * time.Millisecond}
	})
	f.limited(ratelimit.Options{})
	f.add(t, "group/project", "sha1")
	f.occupy(t, developer, 2)
	gittest.Eventually(t, "the share is taken", func() bool { return f.held() == 2 })

	const sentence = "You have 2 of 2 Git requests running at once, and others waiting. Please try again in 10 seconds."
	c := &gittest.Client{Dir: t.TempDir()}
	contains(t, c.Refused(t, "clone", f.url(developer, "group/project"), "."), "remote: "+sentence, "429")
	answer, text := f.do(t, http.MethodGet, "/group/project.git/info/refs?service=git-receive-pack", developer, nil, "")
	if answer.StatusCode != http.StatusTooManyRequests || answer.Header.Get("Retry-After") != "10" || strings.TrimSpace(text) != sentence {
		t.Errorf("got %d %v %q", answer.StatusCode, answer.Header, text)
	}
	// After the list of refs, git only shows errors that are sent in its own protocol.
	answer, text = f.do(t, http.MethodPost, "/group/project.git/git-upload-pack", developer,
		http.Header{"Content-Type": {fetchType}, "Git-Protocol": {"version=2"}}, lsRefs())
	if want := fmt.Sprintf("%04xERR %s", len(sentence)+8, sentence); answer.Header.Get("Retry-After") != "10" || text != want {
		t.Errorf("got %d %v %q", answer.StatusCode, answer.Header, text)
	}
}

func TestSlots_explainRefusalsAfterRefsWereListed(t *testing.T) {
	for _, version := range []string{"0", "2"} {
		f := newForge(t, func(o *githttp.Options) { o.Slots = fair.Limits{Total: 1, Wait: time.Millisecond} })
		f.add(t, "group/project", "sha1")
		c := gittest.New(t, "sha1")
		c.Commit(t, "a", "1")
		c.Git(t, "push", "--quiet", f.url(developer, "group/project"), "main")
		// The server lists the refs, and refuses the requests that follow.
		inner := f.Config.Handler
		f.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				leave := f.take(t)
				defer leave()
			}
			inner.ServeHTTP(w, r)
		})
		clone := &gittest.Client{Dir: t.TempDir()}
		contains(t, clone.Refused(t, "-c", "protocol.version="+version, "clone", f.url(developer, "group/project"), "."),
			"remote error: The server is busy. It runs as many Git requests as it can at once. Please try again in 10 seconds.")
	}
}

func TestMemory_explainsRefusals(t *testing.T) {
	binary, pidFile := stuck(t)
	// The memory is enough for one request.
	f := newForgeOn(t, git.Options{Binary: binary, Limits: git.Limits{MemoryTotal: 24 << 20}, MemoryWait: 10 * time.Millisecond})
	f.add(t, "group/project", "sha1")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if answer, err := f.fetch(ctx, strings.NewReader(lsRefs())); err == nil {
			_ = answer.Body.Close()
		}
	}()
	started(t, pidFile)
	const sentence = "Your Git processes use all of the 9 MiB of memory that one caller can have while others need memory. Please try again in 10 seconds."
	c := &gittest.Client{Dir: t.TempDir()}
	contains(t, c.Refused(t, "clone", f.url(developer, "group/project"), "."), "remote: "+sentence, "429")
	contains(t, c.Refused(t, "clone", f.url(reporter, "group/project"), "."),
		"remote: The server is busy: its Git processes use all of the 18 MiB of memory that it allows them together. Please try again in 10 seconds.", "503")
	answer, text := f.do(t, http.MethodPost, "/group/project.git/git-upload-pack", developer,
		http.Header{"Content-Type": {fetchType}, "Git-Protocol": {"version=2"}}, lsRefs())
	if want := fmt.Sprintf("%04xERR %s", len(sentence)+8, sentence); answer.Header.Get("Retry-After") != "10" || text != want {
		t.Errorf("got %d %v %q", answer.StatusCode, answer.Header, text)
	}
	cancel()
	<-ended
}

func TestRateLimits_applyToGit(t *testing.T) {
	f := newForge(t)
	f.limited(ratelimit.Options{GitAuthenticated: 4, GitUnauthenticated: 2, FailedSignIns: 3})
	public := f.add(t, "group/project", "sha1")
	public.public = true
	private := f.add(t, "group/private", "sha1")
	ask := func(project, user string) (int, string) {
		before := public.opened.Load() + private.opened.Load()
		answer, text := f.do(t, http.MethodGet, "/group/"+project+".git/info/refs?service=git-upload-pack", user, nil, "")
		if opened := public.opened.Load() + private.opened.Load(); opened > before && answer.StatusCode != http.StatusOK {
			t.Errorf("a repository was waited for before the answer %d", answer.StatusCode)
		}
		if answer.StatusCode == http.StatusTooManyRequests && answer.Header.Get("Retry-After") == "" {
			t.Error("nothing says when to come back")
		}
		return answer.StatusCode, text
	}
	for _, tt := range []struct {
		project, user  string
		served, status int
		text           string
	}{
		{"project", "", 2, 200, "Your address has made more than the 2 Git requests"},
		{"project", "no token", 3, 401, "Your address has made more than the 3 Git requests with a token that is not valid"},
		{"private", developer, 4, 200, "You have made more than the 4 Git requests"},
		{"private", maintainer, 4, 200, "You have made more than the 4 Git requests"},
	} {
		// A minute may end, and the count start again, during this loop.
		gittest.Eventually(t, fmt.Sprintf("%d of %q are served and the next is refused", tt.served, tt.user), func() bool {
			for i := range tt.served + 1 {
				status, text := ask(tt.project, tt.user)
				if i == tt.served {
					return status == http.StatusTooManyRequests && strings.Contains(text, tt.text)
				}
				if status == http.StatusTooManyRequests && i == 0 {
					return false
				}
				if status != tt.status {
					return false
				}
			}
			return false
		})
	}
	for range 10 {
		if status, _ := ask("private", ""); status != http.StatusUnauthorized {
			t.Errorf("whoever is asked to sign in got %d", status)
		}
	}
}

// connect sends the beginning of a request on a new connection.
func connect(t *testing.T, to net.Listener, request string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", to.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	return conn
}

// smallBuffers is a listener whose connections buffer little unread data.
type smallBuffers struct{ net.Listener }

func (l smallBuffers) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return conn, conn.(*net.TCPConn).SetWriteBuffer(4 << 10)
}

// withSmallBuffers serves a handler so that the server soon notices when a client does not read.
func withSmallBuffers(t *testing.T, h http.Handler) net.Listener {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Listener = smallBuffers{s.Listener}
	s.Start()
	t.Cleanup(s.Close)
	return s.Listener
}

func post(service, contentType string, length int) string {
	return fmt.Sprintf("POST /group/project.git/%s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Basic d2hvZXZlcjpkZXZlbG9wZXI=\r\n"+
		"Content-Type: %s\r\nGit-Protocol: version=2\r\nContent-Length: %d\r\n\r\n", service, contentType, length)
}

func TestPace_cutsOffSlowFetch(t *testing.T) {
	t.Parallel() // it mostly waits
	pidFile := filepath.Join(t.TempDir(), "pid")
	binary := script(t, `case "$1" in upload-pack) echo $$ >`+pidFile+`.new; mv `+pidFile+`.new `+pidFile+`; exec yes;; esac`)
	f := newForgeWith(t, binary, func(o *githttp.Options) { o.Patience = 3 * time.Second })
	f.add(t, "group/project", "sha1")
	conn := connect(t, withSmallBuffers(t, f.handler), post("git-upload-pack", fetchType, len(lsRefs()))+lsRefs())
	if err := conn.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
		t.Fatal(err)
	}
	pid := started(t, pidFile)
	// The client never stops: it takes 4 KiB every tenth of a second, which is more often than any time-out for one piece.
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	piece := make([]byte, 4<<10)
	for range 300 {
		<-tick.C
		if _, err := io.ReadFull(conn, piece); err != nil {
			break
		}
	}
	gittest.Eventually(t, "the process is gone", func() bool { return gone(pid) })
}

func TestPace_toleratesSlowServer(t *testing.T) {
	t.Parallel() // it mostly waits
	f := newForgeWith(t, script(t, `case "$1" in upload-pack) for i in 1 2 3 4 5 6 7 8; do head -c 100000 /dev/zero; sleep 0.5; done; exit 0;; esac`),
		func(o *githttp.Options) { o.Patience = 2 * time.Second; o.IdleTimeout = 2 * time.Second })
	f.add(t, "group/project", "sha1")
	answer, err := f.fetch(t.Context(), strings.NewReader(lsRefs()))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if n, err := io.Copy(io.Discard, answer.Body); n != 800_000 || err != nil {
		t.Errorf("got %d bytes, %v", n, err)
	}
}

func TestPace_cutsOffSlowPush(t *testing.T) {
	f := newForge(t, func(o *githttp.Options) { o.Patience = 300 * time.Millisecond })
	p := f.add(t, "group/project", "sha1")
	line := strings.Repeat("0", 40) + " " + strings.Repeat("1", 40) + " refs/heads/x\x00report-status"
	f.unchanged(t, p, func() {
		conn := connect(t, f.Listener, post("git-receive-pack", pushType, 1<<20)+fmt.Sprintf("%04x%s0000", len(line)+4, line)+"PACK\x00\x00\x00\x02\x00\x00\x00\x01")
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			if answer, err := http.ReadResponse(bufio.NewReader(conn), nil); err == nil {
				_, _ = io.Copy(io.Discard, answer.Body) // the connection may end with or without an answer
				_ = answer.Body.Close()
			}
			_ = conn.Close()
		}()
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		late := time.After(20 * time.Second)
		for {
			select {
			case <-tick.C:
				_, _ = conn.Write([]byte("x"))
			case <-ended:
				return
			case <-late:
				t.Error("the client still sends")
				return
			}
		}
	})
}

func TestFairness_countsChecksOfPushForThePusher(t *testing.T) {
	f, _, _ := seeded(t, "sha1")
	f.mu.Lock()
	defer f.mu.Unlock()
	if want := []fair.Key{fair.User(userIDs[developer])}; !slices.Equal(f.again, want) {
		t.Errorf("it was decided for %v, want %v", f.again, want)
	}
}
