package egress_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/net/dns/dnsmessage" // the resolver of the test answers with DNS messages

	"github.com/forgeplane/forgeplane/internal/egress"
)

// resolver returns a resolver that answers the first lookup with the first list of addresses, the second with the second, and all further
// lookups with the last list, whatever the name. It counts the lookups.
func resolver(t *testing.T, asked *atomic.Int32, answers ...[]netip.Addr) *net.Resolver {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	t.Cleanup(func() { _ = conn.Close(); <-ended })
	go func() {
		defer close(ended)
		buffer := make([]byte, 4096)
		for {
			n, from, err := conn.ReadFrom(buffer)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if err := m.Unpack(buffer[:n]); err != nil || len(m.Questions) != 1 {
				continue
			}
			m.Response, m.Additionals = true, nil
			if q := m.Questions[0]; q.Type == dnsmessage.TypeA {
				for _, a := range answers[min(int(asked.Add(1)), len(answers))-1] {
					m.Answers = append(m.Answers, dnsmessage.Resource{
						Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class},
						Body:   &dnsmessage.AResource{A: a.As4()},
					})
				}
			}
			if packed, err := m.Pack(); err == nil {
				_, _ = conn.WriteTo(packed, from)
			}
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

func addrs(all ...string) (parsed []netip.Addr) {
	for _, text := range all {
		parsed = append(parsed, netip.MustParseAddr(text))
	}
	return parsed
}

func TestProxy_refusesNamesThatResolveToLocalAddresses(t *testing.T) {
	for _, c := range []struct {
		answer []netip.Addr
		want   error
	}{
		{addrs("10.0.0.1"), egress.ErrLocalNetwork}, {addrs("169.254.169.254"), egress.ErrLocalNetwork},
		{addrs("127.0.0.1"), egress.ErrLocalhost}, {addrs("192.168.0.1", "10.0.0.1"), egress.ErrLocalNetwork},
	} {
		for _, scheme := range []string{"http", "https"} {
			var asked atomic.Int32
			p := started(t)
			p.ResolveBy(resolver(t, &asked, c.answer))
			if err := p.CheckHost("forge.example"); err != nil {
				t.Errorf("a name says nothing by itself: %v", err)
			}
			err := p.Through(func(proxy string) error { return get(t, proxy, scheme+"://forge.example/", nil) })
			if !errors.Is(err, c.want) || !strings.HasPrefix(err.Error(), "forge.example: ") {
				t.Errorf("%s at %v: got %v, want %v", scheme, c.answer, err, c.want)
			}
			if asked.Load() == 0 {
				t.Errorf("%s at %v: nobody asked for the address", scheme, c.answer)
			}
		}
	}
}

// counted starts a server that counts its connections.
func counted(t *testing.T, address string, came *atomic.Int32) *httptest.Server {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Skipf("this machine has one loopback address only: %v", err)
	}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	_ = s.Listener.Close()
	s.Listener = listener
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			came.Add(1)
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	return s
}

// The first address stands for a public one, and the second for one in the network of the forge.
func TestProxy_checksEachResolutionOfName(t *testing.T) {
	const outside, inside = "127.0.0.1", "127.0.0.2"
	var atTarget, atVictim, asked atomic.Int32
	target := counted(t, outside+":0", &atTarget)
	_, port, _ := net.SplitHostPort(target.Listener.Addr().String())
	counted(t, inside+":"+port, &atVictim)

	p := started(t, outside)
	p.ResolveBy(resolver(t, &asked, addrs(outside), addrs(inside), addrs(outside, inside), addrs(inside)))
	err := p.Through(func(proxy string) error {
		for i, want := range []error{nil, errGet, nil, errGet} {
			if err := get(t, proxy, "http://forge.example:"+port+"/", nil); !errors.Is(err, want) || want == nil && err != nil {
				t.Errorf("request %d: got %v, want %v", i, err, want)
			}
		}
		return errGet
	})
	if !errors.Is(err, egress.ErrLocalhost) {
		t.Errorf("got %v", err)
	}
	if asked.Load() != 4 || atTarget.Load() != 2 || atVictim.Load() != 0 {
		t.Errorf("%d lookups, %d connections to the target and %d to the other", asked.Load(), atTarget.Load(), atVictim.Load())
	}
}
