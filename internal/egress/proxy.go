package egress

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"syscall"
	"time"

	"golang.org/x/net/netutil" // bounds how many connections a listener has open
)

// The limits of a proxy.
const (
	dialTimeout   = 15 * time.Second
	headerTimeout = 10 * time.Second
	// idleTimeout is the time after which a connection without traffic in either direction is closed.
	idleTimeout    = 10 * time.Minute
	maxConnections = 256
	maxHeader      = 64 << 10
)

// Proxy is an HTTP proxy on the loopback interface, for programs that this process starts and that make their own connections. It only
// connects to targets that its policy allows, and checks the address to which a name resolves at that moment. Using it requires
// credentials, which Through creates for one use.
type Proxy struct {
	policy   *Policy
	limits   Limits
	listener net.Listener
	// resolver is the system's when it is nil.
	resolver *net.Resolver

	mu     sync.Mutex
	routes map[string]*route
}

// route is one use of a proxy.
type route struct {
	digest   [sha256.Size]byte
	patience patience

	mu     sync.Mutex
	err    error
	open   map[io.Closer]bool
	closed bool
}

// NewProxy returns a proxy that listens. Start serves.
func NewProxy(ctx context.Context, p *Policy, l Limits) (*Proxy, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listening for outgoing connections of programs: %w", err)
	}
	return &Proxy{policy: p, limits: l, listener: netutil.LimitListener(listener, maxConnections), routes: map[string]*route{}}, nil
}

// CheckHost calls CheckHost of the policy.
func (p *Proxy) CheckHost(host string) error { return p.policy.CheckHost(host) }

// NeedLeaderElection is false: each process has its own.
func (p *Proxy) NeedLeaderElection() bool { return false }

// Start serves until ctx ends, which ends every connection as well.
func (p *Proxy) Start(ctx context.Context) error {
	server := &http.Server{
		Handler: http.HandlerFunc(p.serve), ReadHeaderTimeout: headerTimeout, IdleTimeout: time.Minute, MaxHeaderBytes: maxHeader,
		BaseContext: func(net.Listener) context.Context { return ctx },
		// Errors of clients are reported to the clients, and errors of targets to the user of the proxy.
		ErrorLog: log.New(io.Discard, "", 0),
	}
	stop := context.AfterFunc(ctx, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, r := range p.routes {
			r.end()
		}
		_ = server.Close()
	})
	defer stop()
	if err := server.Serve(p.listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving outgoing connections of programs: %w", err)
	}
	return nil
}

// Through calls do with the URL of the proxy, which is good until do returns. It holds a credential, so it does not belong into
// the arguments of a program. When do fails because of a target that was not reached, or is too slow, the error says so.
func (p *Proxy) Through(do func(proxy string) error) error {
	name, password := rand.Text(), rand.Text()
	r := &route{digest: sha256.Sum256([]byte(password)), patience: patience{limits: p.limits}, open: map[io.Closer]bool{}}
	p.mu.Lock()
	p.routes[name] = r
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		delete(p.routes, name)
		p.mu.Unlock()
		r.end()
	}()
	address := url.URL{Scheme: "http", User: url.UserPassword(name, password), Host: p.listener.Addr().String()}
	err := do(address.String())
	if cause := r.cause(); err != nil && cause != nil {
		return cause
	}
	return err
}

func (p *Proxy) serve(w http.ResponseWriter, r *http.Request) {
	way := p.authenticate(r)
	if way == nil {
		w.Header().Set("Proxy-Authenticate", "Basic")
		w.WriteHeader(http.StatusProxyAuthRequired)
		return
	}
	switch {
	case r.Method == http.MethodConnect:
		p.tunnel(w, r, way)
	case r.URL.Scheme == "http" && r.URL.Host != "":
		p.forward(w, r, way)
	default:
		w.WriteHeader(http.StatusBadRequest)
	}
}

func (p *Proxy) authenticate(r *http.Request) *route {
	given := &http.Request{Header: http.Header{"Authorization": r.Header["Proxy-Authorization"]}}
	name, password, _ := given.BasicAuth()
	p.mu.Lock()
	way := p.routes[name]
	p.mu.Unlock()
	digest := sha256.Sum256([]byte(password))
	if way == nil || subtle.ConstantTimeCompare(digest[:], way.digest[:]) != 1 {
		return nil
	}
	return way
}

// tunnel is for https: the proxy sees nothing of it.
func (p *Proxy) tunnel(w http.ResponseWriter, r *http.Request, way *route) {
	out, err := p.dial(r.Context(), r.Host, way)
	if err != nil {
		w.WriteHeader(status(err))
		return
	}
	defer out.Close()
	defer way.track(out)()
	in, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer in.Close()
	defer way.track(in)()
	if _, err := io.WriteString(in, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { pass(out, in, buffered.Reader) })
	both.Go(func() { pass(in, out, out) })
	both.Wait()
}

// pass copies until either side ends, or stands still.
func pass(to, from net.Conn, read io.Reader) {
	defer func() { _ = to.SetDeadline(time.Unix(1, 0)) }() // wakes up the other direction, too
	buffer := make([]byte, 32<<10)
	for {
		_ = from.SetReadDeadline(time.Now().Add(idleTimeout))
		n, err := read.Read(buffer)
		if n > 0 {
			_ = to.SetWriteDeadline(time.Now().Add(idleTimeout))
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// forward is for http.
func (p *Proxy) forward(w http.ResponseWriter, r *http.Request, way *route) {
	proxy := httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.Out.Header.Del("Proxy-Authorization") },
		Transport: &http.Transport{
			DialContext: func(ctx context.Context, _, address string) (net.Conn, error) { return p.dial(ctx, address, way) },
			// A connection can be authenticated, so it must not carry the requests of others.
			DisableKeepAlives: true, DisableCompression: true,
			ResponseHeaderTimeout: idleTimeout, MaxResponseHeaderBytes: maxHeader,
		},
		FlushInterval: -1,
		ErrorHandler:  func(w http.ResponseWriter, _ *http.Request, err error) { w.WriteHeader(status(err)) },
		ErrorLog:      log.New(io.Discard, "", 0),
	}
	proxy.ServeHTTP(w, r)
}

func status(err error) int {
	if refused(err) {
		return http.StatusForbidden
	}
	return http.StatusBadGateway
}

// dial connects to a target if the policy allows it, and otherwise records the reason.
func (p *Proxy) dial(ctx context.Context, address string, way *route) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if err := p.policy.CheckHost(host); err != nil {
		way.fail(fmt.Errorf("%s: %w", host, err))
		return nil, err
	}
	dialer := &net.Dialer{Timeout: dialTimeout, Resolver: p.resolver, ControlContext: func(_ context.Context, _, resolved string, _ syscall.RawConn) error {
		return p.policy.checkSocket(host, resolved)
	}}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		way.fail(explain(host, address, err))
		return nil, err
	}
	return &paced{Conn: conn, host: host, way: way}, nil
}

// explain words why there is no connection.
func explain(host, address string, err error) error {
	unknown := (*net.DNSError)(nil)
	failed := (*net.OpError)(nil)
	switch {
	case errors.Is(err, ErrLocalhost):
		return fmt.Errorf("%s: %w", host, ErrLocalhost)
	case errors.Is(err, ErrLocalNetwork):
		return fmt.Errorf("%s: %w", host, ErrLocalNetwork)
	case errors.Is(err, ErrPort) && errors.As(err, &failed):
		return fmt.Errorf("%s: %w", host, failed.Err)
	case errors.As(err, &unknown) && unknown.IsNotFound:
		return fmt.Errorf("Could not resolve host %s", host)
	case errors.As(err, &unknown):
		return fmt.Errorf("Could not resolve host %s: %s", host, unknown.Err)
	case errors.As(err, &failed):
		return fmt.Errorf("Failed to connect to %s: %w", address, failed.Err)
	default:
		return fmt.Errorf("Failed to connect to %s: %w", address, err)
	}
}

func (r *route) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = err
}

func (r *route) cause() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// track closes the connection when the route ends. Call the returned function when the connection is closed earlier.
func (r *route) track(c io.Closer) func() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		_ = c.Close()
	}
	r.open[c] = true
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.open, c)
	}
}

// end closes every connection of the route.
func (r *route) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	for c := range r.open {
		_ = c.Close()
	}
}
