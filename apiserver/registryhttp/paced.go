package registryhttp

import (
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/forgeplane/forgeplane/apiserver/endpoint/pace"
)

const (
	// patience is the total time for which the server waits for a client, in either direction, before the client must be as fast as package
	// pace requires, and pause how long it waits for one piece.
	patience, pause = time.Minute, 5 * time.Minute
)

// paced limits how slowly a client can send its body and take its answer. The returned request and writer are the ones to serve, and done
// removes the limits.
func paced(w http.ResponseWriter, r *http.Request) (out http.ResponseWriter, in *http.Request, done func()) {
	control := http.NewResponseController(w)
	_ = control.SetWriteDeadline(time.Time{}) // removes the deadline of the previous request
	limited := *r
	if r.ContentLength != 0 {
		limited.Body = &body{ReadCloser: r.Body, control: control, pace: pace.Pace{Patience: patience, Pause: pause}}
	}
	return &writer{ResponseWriter: w, control: control, pace: pace.Pace{Patience: patience, Pause: pause}}, &limited,
		func() { _ = control.SetWriteDeadline(time.Now().Add(pause)) }
}

// body is the body of a request.
type body struct {
	io.ReadCloser
	control *http.ResponseController
	pace    pace.Pace
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.pace.Pass(b.control.SetReadDeadline, func() (int, error) { return b.ReadCloser.Read(p) })
	if errors.Is(err, io.EOF) {
		_ = b.control.SetReadDeadline(time.Time{})
	}
	return n, err
}

// writer writes the answer.
type writer struct {
	http.ResponseWriter
	control *http.ResponseController
	pace    pace.Pace
}

// Write implements io.Writer.
func (w *writer) Write(p []byte) (int, error) {
	return w.pace.Pass(w.control.SetWriteDeadline, func() (int, error) { return w.ResponseWriter.Write(p) })
}

// Unwrap is for http.ResponseController.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }
