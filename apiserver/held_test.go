package apiserver

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/ratelimit"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/internal/fair"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/test/soak"
)

const (
	// greedy is the number of simultaneous requests of one client that does not read their answers, or does not finish their bodies. busy is
	// the number of such requests if the answers are short.
	greedy, busy = 12, 192
	// atOnce is the number of requests that are sent before one of them is answered.
	atOnce = 32
	// room is the memory that the server may hold for all clients, share its part for one client, remembered the size of the cache of
	// repositories, and besides the memory that requests need for everything else.
	room, share, remembered, besides = 96 << 20, room / 4, 64 << 20, 16 << 20
	// unfinished is the length of a body without its last byte.
	unfinished = 4<<20 - 1
)

// hoard creates a repository with large contents: greedy files of 12 MiB, which compress well, busy files of less than 1 MiB, and a branch
// with 5 MiB of text that main does not have. Each byte of the text takes six bytes in JSON. "make test" needs only one file of each size.
func hoard(t *testing.T) (c *gittest.Client, blobs, short []string) {
	t.Helper()
	c = history(t)
	c.Git(t, "config", "core.compression", "1")
	c.Git(t, "config", "pack.window", "0")
	for n := range soak.Times(1, greedy) {
		blobs = append(blobs, c.Write(t, "blob", fmt.Sprint(n)+strings.Repeat("0123456789abcde\n", 12<<16)))
		c.Git(t, "update-index", "--add", "--cacheinfo", "100644,"+blobs[n]+fmt.Sprintf(",large-%d", n))
	}
	for n := range soak.Times(1, busy) {
		short = append(short, c.Write(t, "blob", fmt.Sprint(n)+strings.Repeat("0123456789abcde\n", 45<<10)))
		c.Git(t, "update-index", "--add", "--cacheinfo", "100644,"+short[n]+fmt.Sprintf(",short-%d", n))
	}
	c.Git(t, "commit", "--quiet", "--message", "Large")
	c.Git(t, "checkout", "--quiet", "-b", "wide")
	text := strings.Repeat(strings.Repeat("\x01", 1023)+"\n", 190)
	for n := range greedy {
		c.Git(t, "update-index", "--add", "--cacheinfo", "100644,"+c.Write(t, "blob", fmt.Sprint(n)+text)+fmt.Sprintf(",wide-%d", n))
	}
	c.Git(t, "commit", "--quiet", "--message", "Wide")
	return c, blobs, short
}

// heap returns the number of bytes of the heap that are in use.
func heap() int64 {
	for range 3 { // a sync.Pool is empty only after the second collection
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m) //nolint:forbidigo // only "make soak" asserts it
	return int64(m.HeapAlloc)
}

// ask sends the head of a request and a part of its body, and returns the status when the answer begins. It does not read the rest of the
// answer before the test ends. The status is 0 if the server closed the connection while the client was still sending.
func ask(t *testing.T, address, head string, body []byte) (status int) {
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
	if err != nil {
		return 0
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.(*net.TCPConn).SetReadBuffer(16 << 10)
	go func() { // this ends when the connection is closed
		_, _ = io.WriteString(conn, head)
		_, _ = conn.Write(body)
	}()
	answer, err := http.ReadResponse(bufio.NewReaderSize(conn, 4<<10), nil) // the attack is that the client does not read the rest
	if err != nil {
		return 0
	}
	return answer.StatusCode
}

// hoarding is a way to make the server hold memory for one client.
type hoarding struct {
	name string
	// request returns the head of the nth request. The client sends number requests, and open of them are never answered.
	request      func(n int) string
	number, open int
	// refused is the status of refused requests. sends is true if the requests have bodies. most is the growth of the heap that the test allows.
	refused int
	sends   bool
	most    int64
	// path is the path that another client requests at the same time.
	path string
	// slow leaves the way to "make soak".
	slow bool
}

func TestMemory_isBoundedForClientThatStopsReading(t *testing.T) {
	limits := fair.Of(room, 25, 25)
	limits.Wait = time.Second
	engine := git.Options{Memory: fair.NewMemory("test", limits), Slots: git.DefaultSlots()}
	engine.Slots.Blobs.Wait = limits.Wait
	w := newWorldWith(t, v1alpha1.VisibilityPublic, engine)
	c, blobs, short := hoard(t)
	c.Git(t, "push", "--quiet", "--mirror", w.repository.Dir())
	limited := ratelimit.New(ratelimit.Options{Clock: clocktesting.NewFakePassiveClock(noon)}).Handler(w.handler)
	const compare = "/projects/10/repository/compare?from=main&to=wide"
	at := func(id string) string { return "/projects/10/repository/blobs/" + id }
	get := func(path string) string { return "GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n" }
	body := func(request string) string {
		return fmt.Sprintf("%s HTTP/1.1\r\nHost: x\r\nPRIVATE-TOKEN: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", request,
			familytest.Value(member("group", v1alpha1.RoleMaintainer)), unfinished+1)
	}
	const encoded = 18 << 20 // the size of the comparison in JSON
	for _, tt := range []hoarding{
		{"files", func(n int) string { return get(at(blobs[n]) + "/raw") }, greedy, 0, http.StatusOK, false, remembered + share, at(blobs[0]) + "/raw", true},
		{"short files", func(n int) string { return get(at(short[n]) + "/raw") }, busy, 0, http.StatusTooManyRequests, false, remembered + share, at(short[0]), true},
		{"JSON", func(int) string { return get(compare) }, greedy, 0, http.StatusTooManyRequests, false, 3 * encoded, compare, false},
		{"short JSON", func(n int) string { return get(at(short[n])) }, busy, 0, http.StatusTooManyRequests, false, remembered + share, at(short[0]), true},
		{"bodies of GET", func(int) string { return body("GET /projects") }, greedy, 0, http.StatusRequestEntityTooLarge, true, 0, "/projects", false},
		{"bodies of POST", func(int) string { return body("POST /projects/10/labels") }, greedy, 2, http.StatusTooManyRequests, true, share, "/projects", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.slow {
				soak.Only(t)
			}
			tt.try(t, limited)
		})
	}
}

// try sends the requests of the client that hoards memory, and then a request of another client.
func (tt *hoarding) try(t *testing.T, handler http.Handler) {
	server := httptest.NewUnstartedServer(handler)
	server.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		_ = c.(*net.TCPConn).SetWriteBuffer(16 << 10) // small, as if the client were far away
		return ctx
	}
	server.Start()
	t.Cleanup(server.CloseClientConnections)
	var body []byte // shared by all requests, because the client is in the same process
	if tt.sends {
		body = bytes.Repeat([]byte(" "), unfinished)
	}
	before := heap()
	answers, turns := make(chan int, tt.number), make(chan struct{}, atOnce)
	for n := range tt.number {
		go func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			answers <- ask(t, server.Listener.Addr().String(), tt.request(n), body)
		}()
	}
	refused := 0
	for range tt.number - tt.open {
		status := <-answers
		if status != http.StatusOK && status != tt.refused && (status != 0 || !tt.sends) {
			t.Errorf("the answer was %d", status)
		}
		if status != http.StatusOK {
			refused++
		}
	}
	if refused == 0 && tt.refused != http.StatusOK {
		t.Error("nothing was refused")
	}
	// Other tests of the process also change the heap, so its size is for "make soak".
	if grown := heap() - before; soak.Running() && grown > tt.most+besides {
		t.Errorf("the server holds %d MiB for one client", grown>>20)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+tt.path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("PRIVATE-TOKEN", familytest.Value(member("project", v1alpha1.RoleMaintainer)))
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil || answer.StatusCode != http.StatusOK {
		t.Errorf("another caller got %s, %v", answer.Status, err)
	}
}
