package transfer

import (
	"bufio"
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/update"
)

// native are the default ports of the schemes whose servers talk to receive-pack directly.
var native = map[string]string{"ssh": "22", "git": "9418"} //nolint:gochecknoglobals // Go knows no constant maps

// wire is a connection to receive-pack.
type wire struct {
	io.Reader
	io.Writer
	// finish says that nothing more is written, and close ends the connection.
	finish, close func()
	// said returns the messages of the server; nil if there are none.
	said func() string
	// secret must not appear in a message of the server.
	secret string
}

// defaultStall is the default of PushOptions.Stall.
const defaultStall = time.Minute

// watched is a connection that ends when nothing has been sent or received for some time.
type watched struct {
	net.Conn
	limit   time.Duration
	timer   *time.Timer
	stalled atomic.Bool
}

func watch(conn net.Conn, limit time.Duration) *watched {
	w := &watched{Conn: conn, limit: limit}
	w.timer = time.AfterFunc(limit, func() {
		w.stalled.Store(true)
		_ = conn.Close()
	})
	return w
}

// Read implements io.Reader.
func (w *watched) Read(p []byte) (int, error) {
	n, err := w.Conn.Read(p)
	if n > 0 {
		w.timer.Reset(w.limit)
	}
	return n, err
}

// Write implements io.Writer.
func (w *watched) Write(p []byte) (int, error) {
	n, err := w.Conn.Write(p)
	if n > 0 {
		w.timer.Reset(w.limit)
	}
	return n, err
}

// Close ends the connection and the watch.
func (w *watched) Close() error {
	w.timer.Stop()
	return w.Conn.Close()
}

// pushNative is Push for the schemes in native.
func pushNative(ctx context.Context, r *git.Repository, o PushOptions, u *url.URL, decide func(remote map[string]string) []change) (PushResult, error) {
	ctx, cancel := r.Engine().Processes().Limited(ctx)
	defer cancel()
	raw, err := tunnel(ctx, o.Proxy, net.JoinHostPort(u.Hostname(), portOf(u)))
	if err != nil {
		return PushResult{}, err
	}
	conn := watch(raw, cmp.Or(o.Stall, defaultStall))
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	defer conn.Close()
	var w *wire
	if u.Scheme == "ssh" {
		w, err = overSSH(conn, u, o)
	} else {
		w, err = overGit(conn, u, o.Password)
	}
	if err == nil {
		defer w.close()
		var result PushResult
		if result, err = exchange(ctx, r, w, o.Tell, decide); err == nil {
			return result, nil
		}
	}
	switch {
	case ctx.Err() != nil:
		return PushResult{}, context.Cause(ctx)
	case conn.stalled.Load():
		return PushResult{}, fmt.Errorf("%s has sent and taken nothing for %s: %w", u.Hostname(), conn.limit, ErrTimeout)
	}
	if w != nil && w.said != nil && errors.Is(err, io.EOF) {
		if said := words(w.said(), o.Password); said != "" {
			err = &ServerError{Reason: said}
		}
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New("the server ended the connection in the middle of the push")
	}
	return PushResult{}, err
}

func portOf(u *url.URL) string {
	if port := u.Port(); port != "" {
		return port
	}
	return native[u.Scheme]
}

// exchange asks the other side for its refs, and requests the changes that decide returns.
func exchange(ctx context.Context, r *git.Repository, w *wire, tell func(update.Ref, string), decide func(remote map[string]string) []change) (PushResult, error) {
	receiver := newReceiver(w, w)
	receiver.secret = w.secret
	if err := receiver.list(); err != nil {
		return PushResult{}, err
	}
	var result PushResult
	refuse := func(c change, why RefusedRef) {
		result.Refused = append(result.Refused, why)
		if tell != nil {
			tell(c.Ref, why.Reason)
		}
	}
	changes := decide(receiver.refs)
	if slices.ContainsFunc(changes, func(c change) bool { return c.New != "" && len(c.New) != receiver.idLength() }) {
		return PushResult{}, fmt.Errorf("the repository at the target has the object format %s, unlike this one", receiver.format())
	}
	lost, err := losses(ctx, r, changes, receiver.format())
	if err != nil {
		return PushResult{}, err
	}
	var wanted []change
	for _, c := range changes {
		if lost[c.Name] {
			refuse(c, RefusedRef{Name: c.Name, Reason: hasDiverged, Diverged: true})
			continue
		}
		wanted = append(wanted, c)
	}
	if len(wanted) == 0 {
		_, _ = io.WriteString(w, flush) // a goodbye: the server may have ended before it, or on its first half
		w.finish()
		return result, nil
	}
	outcomes, err := receiver.push(ctx, r, wanted)
	if err != nil {
		return PushResult{}, err
	}
	for _, c := range wanted {
		switch reason, known := outcomes[c.Name]; {
		case !known:
			return result, fmt.Errorf("%w: it does not say whether %s has changed", errBroken, c.Name)
		case reason != "":
			refuse(c, RefusedRef{Name: c.Name, Reason: reason})
		default:
			result.Updated++
			if tell != nil {
				tell(c.Ref, "")
			}
		}
	}
	slices.SortFunc(result.Refused, func(a, b RefusedRef) int { return strings.Compare(a.Name, b.Name) })
	return result, nil
}

// overGit requests receive-pack of a git daemon.
func overGit(conn net.Conn, u *url.URL, secret string) (*wire, error) {
	request := fmt.Sprintf("git-receive-pack %s\x00host=%s\x00", u.Path, u.Host)
	if _, err := fmt.Fprintf(conn, "%04x%s", len(request)+lengthSize, request); err != nil {
		return nil, err
	}
	return &wire{Reader: conn, Writer: conn, finish: func() {}, close: func() {}, secret: secret}, nil
}

// tunnel connects to an address, through the HTTP proxy with a URL if there is one.
func tunnel(ctx context.Context, proxy, address string) (net.Conn, error) {
	if proxy == "" {
		return new(net.Dialer).DialContext(ctx, "tcp", address)
	}
	at, err := url.Parse(proxy)
	if err != nil || at.Host == "" {
		return nil, fmt.Errorf("%w: the URL of the proxy is malformed", ErrURL)
	}
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", at.Host)
	if err != nil {
		return nil, fmt.Errorf("connecting to the proxy: %w", err)
	}
	password, _ := at.User.Password()
	request := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: address}, Host: address, Header: http.Header{
		"Proxy-Authorization": {"Basic " + base64.StdEncoding.EncodeToString([]byte(at.User.Username()+":"+password))},
	}}
	reader := bufio.NewReader(conn) // a server of ssh speaks first
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	err = request.Write(conn)
	var answer *http.Response
	if err == nil {
		answer, err = http.ReadResponse(reader, request) //nolint:bodyclose // the answer to CONNECT has no body; the connection goes on
	}
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("the proxy answers %s", answer.Status)
	}
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("connecting to %s: %w", address, err)
	}
	return &begun{Conn: conn, reader: reader}, nil
}

// begun is a connection of which a reader may have read more than was needed.
type begun struct {
	net.Conn
	reader *bufio.Reader
}

// Read implements io.Reader.
func (b *begun) Read(p []byte) (int, error) { return b.reader.Read(p) }
