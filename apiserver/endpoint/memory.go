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
}

const (
	// freeBody and freeAnswer are how many bytes of a body, and of an answer in JSON, are held without being counted.
	freeBody, freeAnswer = 64 << 10, 64 << 10
	// bodyTimes is how often a body is in memory: as it was sent, as its parameters, and as what the handler makes of them.
	bodyTimes = 3
	// encodingTimes is how often an answer is while it is encoded: in what the encoder has put together, in what had become too small for
	// that, and in the buffer that is sent.
	encodingTimes = 3
)

// admitBody waits until the body of a request may be held. The caller must call leave when it needs nothing of the body any more.
func (h *Handler) admitBody(ctx context.Context, w http.ResponseWriter, r *http.Request, e *Endpoint) (leave func(), err error) {
	most := e.maxBody
	if r.ContentLength >= 0 {
		most = r.ContentLength
	}
	if h.options.Memory == nil || most <= freeBody || r.ContentLength < 0 && short(r) {
		return func() {}, nil
	}
	weigh, err := h.options.Memory.Take(ctx, bodyTimes*most)
	if err != nil {
		return nil, err
	}
	h.awaitBody(w, r)
	return func() { weigh(0) }, nil
}

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
	// memory is Memory.Take for the caller. Without wait the error is noRoom where some is short.
	memory func(bytes int64, wait bool) (weigh func(bytes int64), err error)
}

// noRoom is the error for an answer that there is no room for.
type noRoom struct{ bytes int64 }

func (noRoom) Error() string { return "there is no memory for the answer" }

// memory is answer.memory for the caller of ctx.
func (h *Handler) memory(ctx context.Context) func(bytes int64, wait bool) (func(int64), error) {
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

// holding is the memory for an answer of at most size bytes.
type holding struct {
	size  int64
	weigh func(bytes int64)
}

// uncounted is for an answer that is not counted.
func uncounted() holding { return holding{weigh: func(int64) {}} }

// room holds the memory that it takes to encode an answer. The error is noRoom.
func (h *Handler) room(a *answer, body any) (holding, error) {
	size := h.sizes.of(body)
	if h.options.Memory == nil || size <= freeAnswer {
		return holding{size, uncounted().weigh}, nil
	}
	weigh, err := a.memory(encodingTimes*size, false)
	return holding{size, weigh}, err
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
// is read once more.
func (h *Handler) wait(w http.ResponseWriter, r *http.Request, e *Endpoint, path map[string]string, a *answer, failed error) error {
	var full noRoom
	if !errors.As(failed, &full) {
		return failed
	}
	again := r.Method == http.MethodGet || r.Method == http.MethodHead
	if again {
		a.response = nil
	}
	weigh, err := a.memory(full.bytes, true)
	if err != nil {
		return err
	}
	defer weigh(0)
	if again {
		ctx, err := h.options.Guard.Admit(r, e, path)
		if err != nil {
			return err
		}
		if a.response, err = e.answer(ctx, r, a.request); err != nil {
			return err
		}
	}
	a.memory = func(bytes int64, _ bool) (func(int64), error) {
		weigh(bytes)
		return weigh, nil
	}
	return h.write(w, r, e, a)
}
