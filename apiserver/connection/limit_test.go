package connection_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/apiserver/connection"
	"github.com/forgeplane/forgeplane/test/patience"
)

// serve runs a server with the limits until the test ends, and returns its address.
func serve(t *testing.T, limits connection.Limits) string {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "served") }))
	server.Listener = limits.Listen(server.Listener, true)
	server.Start()
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// from connects from an address of this machine and sends a request.
func from(t *testing.T, local, server string) (c net.Conn, status int, text string) {
	t.Helper()
	c, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(local)}}).DialContext(t.Context(), "tcp", server)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n") // it may be refused already
	answer, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return c, 0, err.Error()
	}
	defer answer.Body.Close()
	body, _ := io.ReadAll(answer.Body)
	return c, answer.StatusCode, string(body)
}

func TestListen_refusesConnectionsBeyondLimitPerAddress(t *testing.T) {
	g := NewWithT(t)
	at := serve(t, connection.Limits{PerAddress: 3})
	var held []net.Conn
	for range 3 {
		c, status, text := from(t, "127.0.0.2", at)
		g.Expect(status).To(Equal(http.StatusOK), text)
		held = append(held, c)
	}
	// The server may close the connection while the request is still on its way. Then the client never reads the answer.
	g.Eventually(func() string {
		_, status, text := from(t, "127.0.0.2", at)
		g.Expect(status).To(BeElementOf(0, http.StatusTooManyRequests))
		return text
	}).WithTimeout(patience.Wait).Should(Equal("Your address has 3 connections, as many as the server allows. Close some of them first.\n"))
	_, status, text := from(t, "127.0.0.3", at)
	g.Expect(status).To(Equal(http.StatusOK), "another one is served: %s", text)

	held[0].Close()
	g.Eventually(func() int {
		_, status, _ := from(t, "127.0.0.2", at)
		return status
	}).WithTimeout(patience.Wait).Should(Equal(http.StatusOK), "a client that closes a connection can open another one")
}

func TestListen_doesNotLimitTrustedProxies(t *testing.T) {
	g := NewWithT(t)
	for about, limits := range map[string]connection.Limits{
		"trusted":    {PerAddress: 1, Trusted: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
		"any number": {},
	} {
		at := serve(t, limits)
		for range 5 {
			_, status, text := from(t, "127.0.0.2", at)
			g.Expect(status).To(Equal(http.StatusOK), "%s: %s", about, text)
		}
	}
}
