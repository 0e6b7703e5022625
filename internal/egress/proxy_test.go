package egress_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/forgeplane/forgeplane/internal/egress"
)

// started runs a proxy until the test ends.
func started(t *testing.T, allowed ...string) *egress.Proxy {
	t.Helper()
	return within(t, egress.DefaultLimits, allowed...)
}

// within runs a proxy with other limits until the test ends.
func within(t *testing.T, l egress.Limits, allowed ...string) *egress.Proxy {
	t.Helper()
	policy, err := egress.Parse(allowed)
	if err != nil {
		t.Fatal(err)
	}
	p, err := egress.NewProxy(t.Context(), policy, l)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- p.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		select {
		case err := <-ended:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(10 * time.Second):
			t.Error("the proxy does not end with its context")
		}
	})
	return p
}

var errGet = errors.New("it did not answer with 200")

// get requests a URL through a proxy.
func get(t *testing.T, through, target string, trust *httptest.Server) error {
	t.Helper()
	at, err := url.Parse(through)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{Proxy: http.ProxyURL(at)}
	defer transport.CloseIdleConnections()
	if trust != nil {
		transport.TLSClientConfig = trust.Client().Transport.(*http.Transport).TLSClientConfig
	}
	answer, err := (&http.Client{Transport: transport}).Get(target)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, answer.Body)
	if answer.StatusCode != http.StatusOK {
		return errGet
	}
	return nil
}

func TestProxy_forwardsToAllowedTargets(t *testing.T) {
	var seen http.Header
	answer := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen = r.Header.Clone() })
	plain, secure := httptest.NewServer(answer), httptest.NewTLSServer(answer)
	defer plain.Close()
	defer secure.Close()
	p := started(t, "127.0.0.1")
	for _, target := range []string{plain.URL, secure.URL} {
		if err := p.Through(func(proxy string) error { return get(t, proxy, target, secure) }); err != nil {
			t.Errorf("%s: %v", target, err)
		}
		if seen.Get("Proxy-Authorization") != "" || seen.Get("X-Forwarded-For") != "" {
			t.Errorf("the target sees %v", seen)
		}
	}
}

func TestProxy_refusesLocalTargets(t *testing.T) {
	asked := false
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	defer server.Close()
	p := started(t)
	_, port, _ := strings.Cut(strings.TrimPrefix(server.URL, "http://"), ":")
	for target, want := range map[string]error{
		server.URL: egress.ErrLocalhost, "https://127.0.0.1:" + port: egress.ErrLocalhost, "http://localhost:" + port: egress.ErrLocalhost,
		"http://[::ffff:127.0.0.1]:" + port: egress.ErrLocalhost, "http://169.254.169.254/latest": egress.ErrLocalNetwork,
	} {
		if err := p.Through(func(proxy string) error { return get(t, proxy, target, nil) }); !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", target, err, want)
		}
	}
	if asked {
		t.Error("the target was asked")
	}
}

func TestProxy_refusesPortBeforeConnecting(t *testing.T) {
	const want = "93.184.216.34: port 25: requests to this port are not allowed: use one of 22, 80, 443, 9418, or ask the operator for --allow-target-ports"
	p := started(t)
	for _, target := range []string{"http://93.184.216.34:25/x", "https://93.184.216.34:25/x"} {
		if err := p.Through(func(proxy string) error { return get(t, proxy, target, nil) }); !errors.Is(err, egress.ErrPort) || err.Error() != want {
			t.Errorf("%s: got %v, want %s", target, err, want)
		}
	}
}

func TestProxy_explainsWhyTargetIsUnreachable(t *testing.T) {
	p := started(t, "127.0.0.1")
	for target, want := range map[string]string{
		"http://127.0.0.1:1/x":    "Failed to connect to 127.0.0.1:1: connect: connection refused",
		"https://127.0.0.1:1/x":   "Failed to connect to 127.0.0.1:1: connect: connection refused",
		"http://nobody.invalid/x": "Could not resolve host nobody.invalid",
	} {
		if err := p.Through(func(proxy string) error { return get(t, proxy, target, nil) }); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", target, err, want)
		}
	}
}

func TestProxy_requiresItsCredentials(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the target was asked") }))
	defer server.Close()
	p := started(t, "127.0.0.1")
	var past string
	_ = p.Through(func(proxy string) error {
		past = proxy
		at, err := url.Parse(proxy)
		if err != nil {
			return err
		}
		for _, who := range []*url.Userinfo{nil, url.UserPassword(at.User.Username(), "wrong"), url.UserPassword("", "")} {
			other := *at
			other.User = who
			if err := get(t, other.String(), server.URL, nil); !errors.Is(err, errGet) {
				t.Errorf("%v: got %v", who, err)
			}
		}
		return nil
	})
	if err := get(t, past, server.URL, nil); !errors.Is(err, errGet) {
		t.Errorf("after its use: got %v", err)
	}
}

func TestProxy_closesConnectionsAfterUse(t *testing.T) {
	gone, begun := make(chan struct{}), make(chan struct{})
	server := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(begun)
		<-r.Context().Done()
		close(gone)
	}))
	defer server.Close()
	p := started(t, "127.0.0.1")
	ended := make(chan error, 1)
	_ = p.Through(func(proxy string) error {
		go func() { ended <- get(t, proxy, server.URL, server) }()
		<-begun
		return nil
	})
	if err := <-ended; err == nil {
		t.Error("it goes on")
	}
	<-gone
}
