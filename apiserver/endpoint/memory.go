package endpoint

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
)

// Memory bounds what the server holds for its callers. The context of each call names the caller.
type Memory interface {
	// Take waits until so many bytes may be held. weigh says how many they are from then on; 0 gives all of them back.
	Take(ctx context.Context, bytes int64) (weigh func(bytes int64), err error)
	// Try is Take without waiting: nil where there is no room.
	Try(ctx context.Context, bytes int64) (weigh func(bytes int64))
	// OverShare reports whether so many bytes more are more than one caller may have.
	OverShare(ctx context.Context, bytes int64) bool
}

const (
	// freeBody and freeAnswer are how many bytes of a body, and of an answer in JSON, are held without being counted.
	freeBody, freeAnswer = 64 << 10, 64 << 10
	// bodyTimes is how often a body is in memory: as it was sent, as its parameters, and as what the handler makes of them.
	bodyTimes = 3
	// encodingTimes is how often an answer is while it is encoded: in what the encoder has put together, in what had become too small for
	// that, and in the buffer that is sent.
	encodingTimes = 3
	// writeAnswer is what a caller must have left of the own share when a request that writes is carried out. An answer that has more gets
	// it without waiting where the caller had to wait for that.
	writeAnswer = 1 << 20
)

// admitBody waits until the body of a request may be held. weigh says how much of it is held from then on; it is nil where nothing is
// counted.
func (h *Handler) admitBody(ctx context.Context, w http.ResponseWriter, r *http.Request, e *Endpoint) (weigh func(bytes int64), err error) {
	most := e.held(r)
	if h.options.Memory == nil || most <= freeBody || r.ContentLength < 0 && short(r) {
		return nil, nil
	}
	if weigh, err = h.options.Memory.Take(ctx, bodyTimes*most); err == nil {
		h.awaitBody(w, r)
	}
	return weigh, err
}

// admitWrite has a request that writes wait whose caller has nothing left for the answer, because of other answers that they do not take. It
// is refused before it is carried out, and nobody else can bring that about.
func (h *Handler) admitWrite(ctx context.Context, r *http.Request, a *answer) (err error) {
	if h.options.Memory != nil && a.weigh == nil && !reads(r) && h.options.Memory.OverShare(ctx, writeAnswer) {
		a.weigh, err = h.options.Memory.Take(ctx, writeAnswer)
	}
	return err
}

func uncounted(int64) {}

// reads reports whether a request changes nothing.
func reads(r *http.Request) bool { return r.Method == http.MethodGet || r.Method == http.MethodHead }

// short reads as much of a body of unknown length as is held without being counted, and reports whether that is all there is. The body
// can be read from its beginning nevertheless.
func short(r *http.Request) bool {
	var begun bytes.Buffer
	_, err := io.CopyN(&begun, r.Body, freeBody+1)
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(&begun, r.Body), r.Body}
	return err != nil // whoever reads on gets the error again
}

// answer is what a handler has answered to a request.
type answer struct {
	request, response any
	sent              tree
	known             Sent
	// kept is what was uploaded; nil for nothing.
	kept *spool
	// weigh says how much is held, first for the body and then for the answer; nil where nothing is.
	weigh func(bytes int64)
	// hold is Memory.Take for the caller. Without wait the error is noRoom where some is short.
	hold func(bytes int64, wait bool) (weigh func(bytes int64), err error)
}

// leave gives back what is held. It can be called more than once.
func (a *answer) leave() {
	if a.weigh != nil {
		a.weigh(0)
	}
}

// hold is answer.hold for the caller of ctx.
func (h *Handler) hold(ctx context.Context) func(bytes int64, wait bool) (func(int64), error) {
	return func(bytes int64, wait bool) (func(int64), error) {
		if wait {
			return h.options.Memory.Take(ctx, bytes)
		}
		if weigh := h.options.Memory.Try(ctx, bytes); weigh != nil {
			return weigh, nil
		}
		return nil, noRoom{bytes}
	}
}

// noRoom is the error for an answer that there is no room for.
type noRoom struct{ bytes int64 }

func (noRoom) Error() string { return "there is no memory for the answer" }

// holding is the memory for an answer of at most size bytes.
type holding struct {
	size  int64
	weigh func(bytes int64)
}

// room holds the memory that it takes to encode an answer. The error is noRoom.
func (h *Handler) room(a *answer, body any) (holding, error) {
	size := h.sizes.of(body)
	switch {
	case h.options.Memory == nil || size <= freeAnswer:
		a.leave()
		return holding{size, uncounted}, nil
	case a.weigh != nil:
		a.weigh(encodingTimes * size)
		return holding{size, a.weigh}, nil
	default:
		weigh, err := a.hold(encodingTimes*size, false)
		return holding{size, weigh}, err
	}
}

// buffers are kept for the next answers of about the same length, so that no short answer takes as much as a long one. A comparison of
// 200 commits needs more than one MiB, and takes twice as long in a new one.
type buffers [3]sync.Pool

// kept returns how many bytes a buffer of each pool has at most.
func kept() [len(buffers{})]int { return [...]int{freeAnswer, 1 << 20, 4 << 20} }

func (b *buffers) get(size int64) *bytes.Buffer {
	for i, most := range kept() {
		if size > int64(most) {
			continue
		}
		if buffer, ok := b[i].Get().(*bytes.Buffer); ok {
			buffer.Reset()
			return buffer
		}
		break
	}
	return &bytes.Buffer{}
}

func (b *buffers) put(buffer *bytes.Buffer) {
	for i, most := range kept() {
		if buffer.Cap() <= most {
			b[i].Put(buffer)
			return
		}
	}
}

// wait answers a request when there is room, where failed is noRoom; other errors it returns. Meanwhile nothing is held: what was only read
// is looked up once more.
func (h *Handler) wait(w http.ResponseWriter, r *http.Request, e *Endpoint, a *answer, failed error) error {
	var full noRoom
	if !errors.As(failed, &full) {
		return failed
	}
	if reads(r) {
		a.response = nil
	}
	weigh, err := a.hold(full.bytes, true)
	if err != nil {
		return err
	}
	a.weigh = weigh
	if reads(r) {
		ctx, subject, err := h.options.Guard.Admit(r, e, a.known)
		if err != nil {
			return err
		}
		if a.response, err = e.answer(h.withPolling(ctx, r, e, a), r, subject, a.request); err != nil {
			return err
		}
	}
	return h.write(w, r, e, a)
}
