package hook

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// Verifier decides about a push. Its context ends when the push does. It must not panic.
type Verifier func(ctx context.Context, push Push) Verdict

// Server answers hooks. The zero Server is ready for use.
type Server struct {
	mu      sync.Mutex
	pending map[string]*expected
}

// expected is a push whose hook has not asked yet. answered is closed when verify has returned, or is not called any more.
type expected struct {
	verify   Verifier
	answered chan struct{}
}

// Expect makes the server answer one question, from the hook that knows the token, with verify. The caller must call forget when the push
// has ended. forget returns after verify has returned, so everything that verify uses can be closed afterwards.
func (s *Server) Expect(verify Verifier) (token string, forget func()) {
	token = rand.Text() + rand.Text() // more than 256 bits
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pending == nil {
		s.pending = map[string]*expected{}
	}
	e := &expected{verify, make(chan struct{})}
	s.pending[token] = e
	return token, func() {
		if s.take(token) == nil {
			<-e.answered
		}
	}
}

func (s *Server) take(token string) *expected {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.pending[token]
	delete(s.pending, token)
	return e
}

// Serve answers the hooks that connect to the listener, until ctx ends or the listener fails. It closes the listener, and returns when all
// answers are sent. Answers that are not ready when ctx ends are refusals.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	defer l.Close()
	var answers sync.WaitGroup
	defer answers.Wait()
	for {
		conn, err := l.Accept()
		switch {
		case err == nil:
			answers.Go(func() { s.answer(ctx, conn) })
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, net.ErrClosed):
			return err
		default: // such as too many open files, which passes
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
	}
}

// answer owns the connection.
func (s *Server) answer(ctx context.Context, conn net.Conn) {
	ctx, cancel := context.WithTimeout(ctx, verifyTimeout)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(time.Unix(1, 0)) })() // a hook that says nothing holds up no stop
	defer conn.Close()
	if conn.SetDeadline(time.Now().Add(sendTimeout)) != nil {
		return
	}
	token, push, err := readPush(conn)
	v := Verdict{Text: "The server does not recognize this push. Nothing was changed."}
	e := s.take(token)
	if err != nil {
		v.Text = err.Error() + ". Nothing was changed."
	} else if e != nil {
		v = s.verify(ctx, cancel, conn, e.verify, push)
	}
	if e != nil {
		close(e.answered)
	}
	if conn.SetWriteDeadline(time.Now().Add(sendTimeout)) == nil {
		_ = writeVerdict(conn, v) // a hook that hears nothing refuses
	}
}

// verify lets the verifier decide, and tells it when the hook has gone away.
func (s *Server) verify(ctx context.Context, cancel func(), conn net.Conn, verify Verifier, push Push) Verdict {
	if conn.SetReadDeadline(time.Time{}) != nil || ctx.Err() != nil {
		return Verdict{Text: "The server is stopping. Nothing was changed."}
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_, _ = io.ReadFull(conn, make([]byte, 1)) // the hook has nothing more to say: it ends with the connection
		cancel()
	}()
	v := verify(ctx, push)
	_ = conn.SetReadDeadline(time.Unix(1, 0))
	<-gone
	return v
}
