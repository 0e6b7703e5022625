package githttp

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/forgeplane/forgeplane/internal/git/transfer"
)

// closing behaves like a body of net/http: reads fail after its end, instead of returning io.EOF again.
type closing struct {
	io.Reader
	ended bool
}

func (c *closing) Read(p []byte) (int, error) {
	if c.ended {
		return 0, errors.New("invalid read on closed body")
	}
	n, err := c.Reader.Read(p)
	c.ended = errors.Is(err, io.EOF)
	return n, err
}

func TestBody_staysAtItsEnd(t *testing.T) {
	const text = "0014command=ls-refs\n0000"
	b, err := newBody(http.NewResponseController(httptest.NewRecorder()), &closing{Reader: strings.NewReader(text)},
		request{service: transfer.UploadPack}, &Handler{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	b.failed = func(err error) { t.Errorf("the body fails: %v", err) }
	var got strings.Builder
	for range 3 {
		if _, err := io.Copy(&got, b); err != nil {
			t.Error(err)
		}
		b.drain()
	}
	if got.String() != text || !b.ended() {
		t.Errorf("got %q, ended: %t", got.String(), b.ended())
	}
}

func TestAnswer_isHeldBackIfBodyBreaksOff(t *testing.T) {
	var packed bytes.Buffer
	z, _ := gzip.NewWriterLevel(&packed, gzip.NoCompression)
	_, _ = io.WriteString(z, "0014command=ls-refs\n0000"+strings.Repeat("x", 1000))
	_ = z.Close()
	packed.Truncate(500)
	told := false
	recorder := httptest.NewRecorder()
	control := http.NewResponseController(recorder)
	b, err := newBody(control, &packed, request{service: transfer.UploadPack, gzip: true}, &Handler{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	b.failed = func(error) { told = true }
	if _, err := io.Copy(io.Discard, b); err == nil || !told {
		t.Fatalf("got %v, told: %t", err, told)
	}
	out := &answer{w: recorder, control: control, in: b}
	if _, err := out.Write([]byte(flush)); err != nil || out.begun || recorder.Body.Len() > 0 {
		t.Errorf("got %v, begun: %t, %q; the refusal must come first", err, out.begun, recorder.Body)
	}
}
