// Package connection limits the number of connections of an address, because every connection takes memory, even if it is idle.
package connection

import (
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/forgeplane/forgeplane/apiserver/ratelimit"
	"github.com/forgeplane/forgeplane/internal/fair"
)

// tellTimeout limits the time for telling a client that it has too many connections. The message fits any buffer.
const tellTimeout = 100 * time.Millisecond

// Limits of connections.
type Limits struct {
	// PerAddress is the maximum number of connections of an address. 0 means no limit. An IPv6 network of 64 bits counts as one address.
	PerAddress int
	// Trusted are the networks of proxies, which have no limit.
	Trusted []netip.Prefix
}

// Listen returns a listener that refuses connections beyond the limits. With plain, it answers them with 429 over HTTP/1.1; clients of TLS
// would not understand that.
func (l Limits) Listen(listener net.Listener, plain bool) net.Listener {
	if l.PerAddress <= 0 {
		return listener
	}
	return &limited{Listener: listener, limits: l, plain: plain, held: map[fair.Key]int{}}
}

type limited struct {
	net.Listener
	limits Limits
	plain  bool

	mu   sync.Mutex
	held map[fair.Key]int
}

func (l *limited) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		tcp, ok := c.(*net.TCPConn)
		if !ok {
			return c, nil
		}
		from := tcp.RemoteAddr().(*net.TCPAddr).AddrPort().Addr()
		if ratelimit.Trusts(l.limits.Trusted, from) {
			return c, nil
		}
		key := fair.Address(from)
		if l.take(key) {
			return &counted{TCPConn: tcp, release: sync.OnceFunc(func() { l.release(key) })}, nil
		}
		l.refuse(c)
	}
}

func (l *limited) take(key fair.Key) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held[key] >= l.limits.PerAddress {
		return false
	}
	l.held[key]++
	return true
}

func (l *limited) release(key fair.Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held[key]--; l.held[key] == 0 {
		delete(l.held, key)
	}
}

func (l *limited) refuse(c net.Conn) {
	if l.plain {
		text := fmt.Sprintf("Your address has %d connections, as many as the server allows. Close some of them first.\n", l.limits.PerAddress)
		_ = c.SetWriteDeadline(time.Now().Add(tellTimeout))
		_, _ = fmt.Fprintf(c, "HTTP/1.1 429 Too Many Requests\r\nConnection: close\r\nRetry-After: 10\r\n"+
			"Content-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\n\r\n%s", len(text), text)
	}
	_ = c.Close()
}

// counted is a connection that counts until it is closed. It embeds a TCPConn, because net/http can send files over that without copying them.
type counted struct {
	*net.TCPConn
	release func()
}

func (c *counted) Close() error {
	defer c.release()
	return c.TCPConn.Close()
}
