package endpoint

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
)

// Memory limits the memory that the server holds for its callers. The context of each call identifies the caller.
type Memory interface {
	// Take waits until the caller may hold the given number of bytes. weigh changes that number afterwards; 0 releases all of it.
	Take(ctx context.Context, bytes int64) (weigh func(bytes int64), err error)
	// Try is Take without waiting. It returns nil if there is no room.
	Try(ctx context.Context, bytes int64) (weigh func(bytes int64))
	// OverShare reports whether the given number of additional bytes exceeds the share of one caller.
	OverShare(ctx context.Context, bytes int64) bool
}

const (
	// freeBody and freeAnswer are the sizes of a body, and of a JSON answer, up to which memory is not counted, in bytes.
	freeBody, freeAnswer = 64 << 10, 64 << 10
	// bodyTimes is the number of copies of a body in memory: as it was sent, as parameters, and as the handler's request.
	bodyTimes = 3
	// encodingTimes is the number of copies of an answer in memory during encoding: in the encoder's buffer, in the smaller buffer from
	// which that grew, and in the buffer that is sent.
	encodingTimes = 3
	// writeAnswer is the number of bytes that must be left in the caller's share before a request that writes is carried out. If the caller
	// had to wait for that, a larger answer gets its memory without waiting.
	writeAnswer = 1 << 20
)

// admitBody waits until the body of a request may be held in memory. weigh sets how many bytes of it are still held; it is nil if the body
// is not counted.
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

// admitWrite makes a request that writes wait if its caller has no memory left for the answer, because they have not read other answers. If
// it must be refused, it is refused before it is carried out. Only the caller's own requests can cause this.
func (h *Handler) admitWrite(ctx context.Context, r *http.Request, a *answer) (err error) {
	if h.options.Memory != nil && a.weigh == nil && !reads(r) && h.options.Memory.OverShare(ctx, writeAnswer) {
		a.weigh, err = h.options.Memory.Take(ctx, writeAnswer)
	}
	return err
}

func uncounted(int64) {}

// reads reports whether the method of a request changes nothing.
func reads(r *http.Request) bool { return r.Method == http.MethodGet || r.Method == http.MethodHead }

// short reads a body of unknown length up to the size that is not counted, and reports whether that is the whole body. The body can still
// be read from its beginning afterwards.
func short(r *http.Request) bool {
	var begun bytes.Buffer
	_, err := io.CopyN(&begun, r.Body, freeBody+1)
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(&begun, r.Body), r.Body}
	return err != nil // the next read returns the error again
}

// answer is the response of a handler to a request.
type answer struct {
	request, response any
	sent              parameters
	known             Sent
	// kept has the uploads of the request; nil if there are none.
	kept *spool
	// weigh sets how many bytes are held, first for the body and then for the answer; it is nil if nothing is held.
	weigh func(bytes int64)
	// hold is Memory.Take for the caller. If wait is false and memory is short, the error is noRoom.
	hold func(bytes int64, wait bool) (weigh func(bytes int64), err error)
}

// leave releases everything that is held. It can be called more than once.
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

// noRoom is the error for an answer for which there is not enough memory.
type noRoom struct{ bytes int64 }

func (noRoom) Error() string { return "there is no memory for the answer" }

// holding is the memory for an answer of at most size bytes.
type holding struct {
	size  int64
	weigh func(bytes int64)
}

// room reserves the memory for encoding an answer. The error is noRoom.
func (h *Handler) room(a *answer, body any) (holding, error) {
	size, times := sizeOf(body)
	switch {
	case h.options.Memory == nil || size <= freeAnswer:
		a.leave()
		return holding{size, uncounted}, nil
	case a.weigh != nil:
		a.weigh(times * size)
		return holding{size, a.weigh}, nil
	default:
		weigh, err := a.hold(times*size, false)
		return holding{size, weigh}, err
	}
}

// sizeOf returns the maximum size of an answer in JSON, and how many times it is in memory while it is sent.
func sizeOf(body any) (size, times int64) {
	k, is := body.(anyKept)
	if !is {
		return jsonSizes.of(body), encodingTimes
	}
	if _, text := k.load(); text != nil {
		return int64(len(text)), 1
	}
	return k.Size(), encodingTimes
}

// buffers are kept for later answers of about the same length, so that a short answer does not occupy a long buffer. A comparison of 200
// commits needs more than 1 MiB, and takes twice as long with a new buffer.
type buffers [3]sync.Pool

// kept returns the maximum size of a buffer in each pool, in bytes.
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

// put keeps a buffer that get has returned for a size. The size of an answer is estimated, and can be far above its length, so the buffer is
// kept for the size.
func (b *buffers) put(buffer *bytes.Buffer, size int64) {
	for i, most := range kept() {
		if max(size, int64(buffer.Cap())) <= int64(most) {
			b[i].Put(buffer)
			return
		}
	}
}

// wait answers a request once there is room if failed is noRoom, and returns any other error. It holds nothing while it waits: a request
// that only reads is carried out again.
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
