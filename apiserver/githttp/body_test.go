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

	"github.com/forgeplane/forgeplane/internal/git"
)

// closing is a body as net/http has it: once the answer has begun, it no longer says that it is at its end.
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

func TestTheEndOfABodyIsFinal(t *testing.T) {
	const text = "0014command=ls-refs\n0000"
	b, err := newBody(http.NewResponseController(httptest.NewRecorder()), &closing{Reader: strings.NewReader(text)},
		request{service: git.UploadPack}, &Handler{}, 0)
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

func TestAnswer_waitsForABodyThatIsCut(t *testing.T) {
	var packed bytes.Buffer
	z, _ := gzip.NewWriterLevel(&packed, gzip.NoCompression)
	_, _ = io.WriteString(z, "0014command=ls-refs\n0000"+strings.Repeat("x", 1000))
	_ = z.Close()
	packed.Truncate(500)
	told := false
	recorder := httptest.NewRecorder()
	control := http.NewResponseController(recorder)
	b, err := newBody(control, &packed, request{service: git.UploadPack, gzip: true}, &Handler{}, 0)
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
