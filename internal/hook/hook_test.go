package hook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forgeplane/forgeplane/internal/git/update"
)

const (
	id1 = "1111111111111111111111111111111111111111"
	id2 = "2222222222222222222222222222222222222222"
)

// serve runs a server until the test ends, and returns the path of its socket.
func serve(t *testing.T, s *Server) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "run", "hook.sock")
	l, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error)
	go func() { served <- s.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return path
}

// run runs a hook. It returns the exit code and the text that the user reads.
func run(socket, token, quarantine, stdin string) (int, string) {
	env := map[string]string{SocketEnv: socket, TokenEnv: token, "GIT_QUARANTINE_PATH": quarantine}
	var terminal bytes.Buffer
	code := PreReceive(strings.NewReader(stdin), &terminal, func(name string) string { return env[name] })
	return code, terminal.String()
}

func TestQuestionAndAnswer(t *testing.T) {
	var s Server
	socket := serve(t, &s)
	for about, c := range map[string]struct {
		quarantine, stdin string
		push              Push
		verdict           Verdict
		code              int
		terminal          string
	}{
		"accepted": {"/r/objects/tmp_objdir-incoming-x", id1 + " " + id2 + " refs/heads/main\n",
			Push{Quarantine: "/r/objects/tmp_objdir-incoming-x", Updates: []update.Ref{{Name: "refs/heads/main", Old: id1, New: id2}}},
			Verdict{Accepted: true}, 0, ""},
		"accepted with a remark": {"", id1 + " " + id2 + " refs/heads/main\n",
			Push{Updates: []update.Ref{{Name: "refs/heads/main", Old: id1, New: id2}}}, Verdict{Accepted: true, Text: "Welcome."}, 0, "Welcome.\n"},
		"refused": {"", id1 + " " + id2 + " refs/heads/\xff\x01 ä\n" + id2 + " " + id1 + " x\n",
			Push{Updates: []update.Ref{{Name: "refs/heads/\xff\x01 ä", Old: id1, New: id2}, {Name: "x", Old: id2, New: id1}}},
			Verdict{Text: "No.\nReally not.\n"}, 1, "No.\nReally not.\n"},
		"without updates": {"", "", Push{}, Verdict{Text: "No."}, 1, "No.\n"},
		"a long text":     {"", "", Push{}, Verdict{Text: strings.Repeat("x", 2*maxText)}, 1, strings.Repeat("x", maxText) + "\n"},
	} {
		t.Run(about, func(t *testing.T) {
			var got Push
			token, forget := s.Expect(func(_ context.Context, p Push) Verdict { got = p; return c.verdict })
			defer forget()
			code, terminal := run(socket, token, c.quarantine, c.stdin)
			if code != c.code || terminal != c.terminal {
				t.Errorf("got %d %q, want %d %q", code, terminal, c.code, c.terminal)
			}
			if !reflect.DeepEqual(got, c.push) {
				t.Errorf("got %+v, want %+v", got, c.push)
			}
		})
	}
}

func TestToken_isValidForOneQuestion(t *testing.T) {
	var s Server
	var asked atomic.Int32
	accept := func(context.Context, Push) Verdict { asked.Add(1); return Verdict{Accepted: true} }
	socket := serve(t, &s)
	token, forget := s.Expect(accept)
	defer forget()
	if code, _ := run(socket, token, "", ""); code != 0 {
		t.Error("the first question is refused")
	}
	forgotten, forget2 := s.Expect(accept)
	forget2()
	for about, token := range map[string]string{"used": token, "forgotten": forgotten, "unknown": "x"} {
		if code, terminal := run(socket, token, "", ""); code == 0 || !strings.Contains(terminal, "does not recognize this push") {
			t.Errorf("%s: got %d %q", about, code, terminal)
		}
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("asked %d times", n)
	}
	if a, _ := s.Expect(accept); len(a) < 43 || a == token {
		t.Errorf("the token %q can be guessed", a)
	}
}

func TestLimits(t *testing.T) {
	var s Server
	socket := serve(t, &s)
	lines := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "%s %s refs/heads/%d\n", id1, id2, i)
		}
		return b.String()
	}
	token, _ := s.Expect(func(_ context.Context, p Push) Verdict { return Verdict{Accepted: len(p.Updates) == MaxUpdates} })
	if code, terminal := run(socket, token, "", lines(MaxUpdates)); code != 0 {
		t.Errorf("at the limit: %q", terminal)
	}
	for about, c := range map[string]struct{ stdin, want string }{
		"updates": {lines(MaxUpdates + 1), "at most 10000 refs"},
		"many":    {lines(5 * MaxUpdates), "at most 10000 refs"},
		"bytes":   {strings.Repeat(id1+" "+id2+" refs/heads/"+strings.Repeat("x", 60_000)+"\n", 300), "at most 10000 refs"},
		"a line":  {id1 + " " + id2 + " refs/heads/" + strings.Repeat("x", 100_000) + "\n", "Nothing was changed"},
		"garbage": {"hello\n", "Nothing was changed"},
		"no end":  {id1, "Nothing was changed"},
	} {
		token, forget := s.Expect(func(context.Context, Push) Verdict { t.Errorf("%s: asked", about); return Verdict{Accepted: true} })
		if code, terminal := run(socket, token, "", c.stdin); code == 0 || !strings.Contains(strings.ToLower(terminal), strings.ToLower(c.want)) {
			t.Errorf("%s: got %d %q", about, code, terminal)
		}
		forget()
	}
}

func TestHook_failsClosed(t *testing.T) {
	answer := func(with func(net.Conn)) string {
		path := filepath.Join(t.TempDir(), "s")
		l, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				with(conn)
				conn.Close()
			}
		}()
		return path
	}
	say := func(text string) string {
		return answer(func(c net.Conn) { _, _, _ = readPush(c); fmt.Fprint(c, text) })
	}
	var silent Server
	held, release := context.WithCancel(context.Background())
	defer release()
	silentSocket := serve(t, &silent)
	silentToken, _ := silent.Expect(func(_ context.Context, _ Push) Verdict { <-held.Done(); return Verdict{Accepted: true} })

	for about, c := range map[string]struct{ socket, token, want string }{
		"no socket":      {"", "t", "was not started by the server"},
		"no token":       {"/nonexistent", "", "was not started by the server"},
		"nobody listens": {"/nonexistent", "t", "cannot be reached"},
		"cut at once":    {answer(func(net.Conn) {}), "t", "could not check this push"},
		"cut later":      {answer(func(c net.Conn) { _, _, _ = readPush(c) }), "t", "did not answer"},
		"half an answer": {say("accep"), "t", "did not answer"},
		"unfinished":     {say("accept"), "t", "did not answer"},
		"another answer": {say("accepted\n"), "t", "did not answer"},
		"HTTP":           {say("HTTP/1.1 200 OK\n"), "t", "did not answer"},
		"silence":        {silentSocket, silentToken, "did not answer"},
		"a bad token":    {silentSocket, "a\nb", "could not check this push"},
	} {
		t.Run(about, func(t *testing.T) {
			env := map[string]string{SocketEnv: c.socket, TokenEnv: c.token}
			var terminal bytes.Buffer
			code := preReceive(strings.NewReader(id1+" "+id2+" refs/heads/main\n"), &terminal, func(n string) string { return env[n] }, time.Second/2)
			if code == 0 || !strings.Contains(terminal.String(), c.want) || !strings.Contains(terminal.String(), "nothing was changed") {
				t.Errorf("got %d %q", code, terminal.String())
			}
		})
	}
}

// Git writes the names of refs as they were sent: lines after an empty line must not be lost.
func TestPreReceive_refusesEmptyLines(t *testing.T) {
	var s Server
	socket := serve(t, &s)
	accept := func(context.Context, Push) Verdict { return Verdict{Accepted: true} }
	const first, second = id1 + " " + id2 + " refs/heads/x\n", id2 + " " + id1 + " refs/heads/main\n"
	for _, stdin := range []string{first + "\n" + second, first + "\ny\n" + second, "\n" + first, first + second + "\n", "\n"} {
		token, forget := s.Expect(accept)
		if code, terminal := run(socket, token, "", stdin); code == 0 || !strings.Contains(terminal, "an invalid name") {
			t.Errorf("%q: got %d %q", stdin, code, terminal)
		}
		forget()
	}
	token, forget := s.Expect(accept)
	defer forget()
	if code, terminal := run(socket, token, "", first+second); code != 0 {
		t.Errorf("got %d %q", code, terminal)
	}
}

func TestVerifier_stopsWhenHookIsGone(t *testing.T) {
	var s Server
	socket := serve(t, &s)
	asked, stopped := make(chan struct{}), make(chan struct{})
	token, _ := s.Expect(func(ctx context.Context, _ Push) Verdict {
		close(asked)
		<-ctx.Done()
		close(stopped)
		return Verdict{}
	})
	conn, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	if err := writePush(conn, token, "", strings.NewReader("")); err != nil {
		t.Fatal(err)
	}
	<-asked
	conn.Close()
	select {
	case <-stopped:
	case <-time.After(20 * time.Second):
		t.Error("it goes on")
	}
}

func TestExpect_forgetsAfterVerifierReturned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s Server
		asked, answer, forgotten := make(chan struct{}), make(chan struct{}), make(chan struct{})
		token, forget := s.Expect(func(context.Context, Push) Verdict {
			close(asked)
			<-answer
			return Verdict{Accepted: true}
		})
		client, server := net.Pipe()
		defer client.Close()
		go s.answer(t.Context(), server)
		if err := writePush(client, token, "", strings.NewReader("")); err != nil {
			t.Fatal(err)
		}
		<-asked
		go func() { forget(); close(forgotten) }()
		synctest.Wait()
		select {
		case <-forgotten:
			t.Error("the push is forgotten while the verifier runs")
		default:
		}
		close(answer)
		<-forgotten
	})
}

func TestServe_endsWithItsContext(t *testing.T) {
	var s Server
	l, err := Listen(filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error)
	go func() { served <- s.Serve(ctx, l) }()
	asked := make(chan struct{})
	token, _ := s.Expect(func(ctx context.Context, _ Push) Verdict {
		close(asked)
		<-ctx.Done()
		return Verdict{Text: "Stopped."}
	})
	idle, err := net.Dial("unix", l.Addr().String()) // a hook that sends nothing
	if err != nil {
		t.Fatal(err)
	}
	defer idle.Close()
	result := make(chan string)
	go func() { _, terminal := run(l.Addr().String(), token, "", ""); result <- terminal }()
	<-asked
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
	if terminal := <-result; terminal != "Stopped.\n" {
		t.Errorf("got %q", terminal)
	}
}

func TestInstallDir(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "hooks")
	binary := filepath.Join(t.TempDir(), "hook")
	if err := InstallDir(dir, binary); err == nil {
		t.Error("a binary that does not exist is installed")
	}
	if err := os.WriteFile(binary, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := InstallDir(dir, binary); err == nil {
		t.Error("a binary that cannot be executed is installed")
	}
	other := filepath.Join(t.TempDir(), "other")
	for _, path := range []string{binary, other} {
		if err := os.WriteFile(path, nil, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{binary, binary, other} {
		if err := InstallDir(dir, path); err != nil {
			t.Fatal(err)
		}
		if target, err := os.Readlink(dir + "/pre-receive"); err != nil || target != path {
			t.Errorf("got %q, %v", target, err)
		}
		if entries, _ := os.ReadDir(dir); len(entries) != 1 {
			t.Errorf("got %v", entries)
		}
	}
}

func TestListen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run", "s")
	l, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got %v, %v", info.Mode(), err)
	}
	if _, err := Listen(path); err == nil || !strings.Contains(err.Error(), "another process listens") {
		t.Errorf("twice: %v", err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	l.Close() // as a crash would
	again, err := Listen(path)
	if err != nil {
		t.Fatalf("after a crash: %v", err)
	}
	again.Close()
	if _, err := Listen("/" + strings.Repeat("x", 200)); err == nil || !strings.Contains(err.Error(), "longer than") {
		t.Errorf("a long path: %v", err)
	}
}

func FuzzReadPush(f *testing.F) {
	f.Add([]byte(greeting + "\ntoken\n/q\n" + id1 + " " + id2 + " refs/heads/main\n\n"))
	f.Add([]byte(greeting + "\n\n\n\n"))
	f.Add([]byte(greeting + "\nt\nq\n" + id1 + " " + id2 + "  \n"))
	f.Fuzz(func(t *testing.T, question []byte) {
		token, push, err := readPush(bytes.NewReader(question))
		if err != nil {
			if token != "" && !errors.Is(err, errTooLarge) {
				t.Error("a question that cannot be read has a token")
			}
			return
		}
		var updates strings.Builder
		for _, u := range push.Updates {
			fmt.Fprintf(&updates, "%s %s %s\n", u.Old, u.New, u.Name)
		}
		var again bytes.Buffer
		if err := writePush(&again, token, push.Quarantine, strings.NewReader(updates.String())); err != nil {
			if strings.ContainsRune(token+push.Quarantine, 0) {
				return
			}
			t.Fatal(err)
		}
		if !bytes.HasPrefix(question, again.Bytes()) {
			t.Errorf("%q is written as %q", question, again.Bytes())
		}
	})
}
