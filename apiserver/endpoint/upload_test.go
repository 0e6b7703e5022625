package endpoint_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/endpoint/endpointtest"
)

type uploading struct {
	Path   string                           `param:"path" required:""`
	File   endpoint.File                    `param:"file" required:"" doc:"The archive."`
	Avatar endpoint.Optional[endpoint.File] `param:"avatar"`
	Params map[string]string                `param:"params"`
}

// uploaded is a file as the handler received it.
type uploaded struct {
	Path, Name, Type string
	Size             int64
	Digest           string
	Avatar           string
}

func seen(r *uploading) (*uploaded, error) {
	whole := sha256.New()
	if _, err := io.Copy(whole, r.File.Open()); err != nil {
		return nil, err
	}
	u := &uploaded{Path: r.Path, Name: r.File.Name, Type: r.File.Type, Size: r.File.Size, Digest: fmt.Sprintf("%x", whole.Sum(nil))}
	switch avatar := r.Avatar; {
	case avatar.Null:
		u.Avatar = "none"
	case avatar.Set:
		text, err := io.ReadAll(avatar.Value.Open())
		if err != nil {
			return nil, err
		}
		u.Avatar = string(text)
	}
	return u, nil
}

const eachFile, allFiles = 4 << 20, 5 << 20

var uploads = endpoint.Table{
	endpoint.Post("/imports", func(_ context.Context, _ endpoint.None, r *uploading) (*uploaded, error) { return seen(r) }).Uploads(eachFile, allFiles),
}

// part is a part of a form. It is a file if it has a file name.
type part struct{ name, file, kind, content string }

func form(t *testing.T, parts ...part) (contentType string, body []byte) {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for _, p := range parts {
		h := textproto.MIMEHeader{"Content-Disposition": {`form-data; name="` + p.name + `"`}}
		if p.file != "" {
			h.Set("Content-Disposition", `form-data; name="`+p.name+`"; filename="`+p.file+`"`)
		}
		if p.kind != "" {
			h.Set("Content-Type", p.kind)
		}
		to, err := w.CreatePart(h)
		if err == nil {
			_, err = io.WriteString(to, p.content)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return w.FormDataContentType(), b.Bytes()
}

func noise(size int) string {
	text := make([]byte, size)
	random := rand.NewChaCha8([32]byte{1})
	_, _ = random.Read(text)
	return string(text)
}

// send serves a request with a spool in a temporary directory, and fails the test if anything is left there.
func send(t *testing.T, table endpoint.Table, memory endpoint.Memory, r *http.Request) *httptest.ResponseRecorder {
	t.Helper()
	dir := t.TempDir()
	h := endpoint.NewHandler(endpoint.Options{
		Guard: open{}, Log: logr.Discard(), BaseURL: mustParse(t, "https://forge.example/api/v4"), Memory: memory, Spool: dir,
		Info: endpoint.Info{Title: "A forge", Version: "1.2.3"},
	}, table)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	w.Body = bytes.NewBufferString(endpointtest.Undescribed(w.Body.String()))
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left in the spool: %v %v", left, err)
	}
	return w
}

func TestUploads_reachTheHandler(t *testing.T) {
	small, large := noise(100), noise(3<<20)
	for name, parts := range map[string][]part{
		"the file first":         {{"file", "dir/a.tgz", "application/gzip", large}, {"path", "", "", "x"}},
		"the file last":          {{"path", "", "", "x"}, {"file", "a.tgz", "application/gzip", large}},
		"a small one":            {{"file", "a.tgz", "application/gzip", small}, {"path", "", "", "x"}},
		"an empty one":           {{"file", "a.tgz", "application/gzip", ""}, {"path", "", "", "x"}},
		"a small one after":      {{"file", "a.tgz", "application/gzip", large}, {"avatar", "a.png", "", "picture"}, {"path", "", "", "x"}},
		"a small one before":     {{"avatar", "a.png", "", "picture"}, {"file", "a.tgz", "application/gzip", large}, {"path", "", "", "x"}},
		"an empty optional file": {{"file", "a.tgz", "application/gzip", small}, {"avatar", "", "", ""}, {"path", "", "", "x"}},
		"an unknown file":        {{"other", "b", "", large}, {"file", "a.tgz", "application/gzip", small}, {"path", "", "", "x"}},
	} {
		t.Run(name, func(t *testing.T) {
			contentType, body := form(t, parts...)
			r := httptest.NewRequest(http.MethodPost, "/imports", bytes.NewReader(body))
			r.Header.Set("Content-Type", contentType)
			w := send(t, uploads, nil, r)
			want := uploaded{Path: "x", Name: "a.tgz", Type: "application/gzip"}
			for _, p := range parts {
				switch p.name {
				case "file":
					want.Size, want.Digest = int64(len(p.content)), fmt.Sprintf("%x", sha256.Sum256([]byte(p.content)))
				case "avatar":
					want.Avatar = p.content
					if p.file == "" {
						want.Avatar = "none"
					}
				}
			}
			var got uploaded
			if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != http.StatusCreated || got != want {
				t.Errorf("got %d %s, %v\nwant %+v", w.Code, w.Body, err, want)
			}
		})
	}
}

func TestUpload_canBeLinkedIfItIsOneFileOnDisk(t *testing.T) {
	small, large := noise(100), noise(1<<20)
	for name, tt := range map[string]struct {
		parts []part
		want  bool
	}{
		"in memory":          {[]part{{"file", "a", "", small}}, false},
		"on disk":            {[]part{{"file", "a", "", large}}, true},
		"beside a small one": {[]part{{"avatar", "b", "", small}, {"file", "a", "", large}}, true},
		"before another":     {[]part{{"file", "a", "", large}, {"avatar", "b", "", large}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			to := filepath.Join(t.TempDir(), "linked")
			table := endpoint.Table{endpoint.Post("/imports", func(_ context.Context, _ endpoint.None, r *uploading) (*uploaded, error) {
				return &uploaded{}, r.File.Open().Link(to)
			}).Uploads(eachFile, allFiles)}
			contentType, body := form(t, append(tt.parts, part{"path", "", "", "x"})...)
			r := httptest.NewRequest(http.MethodPost, "/imports", bytes.NewReader(body))
			r.Header.Set("Content-Type", contentType)
			if w := send(t, table, nil, r); (w.Code == http.StatusCreated) != tt.want {
				t.Fatalf("got %d %s", w.Code, w.Body)
			}
			if got, err := os.ReadFile(to); tt.want && (err != nil || string(got) != large) {
				t.Errorf("got %d bytes, %v", len(got), err)
			}
		})
	}
}

func TestUploads_areRefusedIfInvalid(t *testing.T) {
	path, ok := part{"path", "", "", "x"}, part{"file", "a", "", "abc"}
	for name, tt := range map[string]struct {
		parts  []part
		status int
		want   string
	}{
		"without the file":          {[]part{path}, 400, `{"error":"file is missing"}`},
		"without a field":           {[]part{ok}, 400, `{"error":"path is missing"}`},
		"a text for a file":         {[]part{path, {"file", "", "", "abc"}}, 400, `{"error":"file is invalid"}`},
		"a file for a text":         {[]part{{"path", "a", "", "x"}, ok}, 400, `{"error":"path is missing"}`},
		"a file twice":              {[]part{path, ok, ok}, 400, `{"error":"file is invalid"}`},
		"a file and a text":         {[]part{path, ok, {"file", "", "", "abc"}}, 400, `{"error":"file is invalid"}`},
		"an invalid name":           {[]part{path, {"file", "\xff", "", "abc"}}, 400, `{"error":"file is invalid"}`},
		"a file that is too long":   {[]part{path, {"file", "a", "", noise(eachFile + 1)}}, 413, `{"message":"413 Request Entity Too Large"}`},
		"files that are too long":   {[]part{path, {"file", "a", "", noise(eachFile)}, {"avatar", "a", "", noise(allFiles - eachFile + 1)}}, 413, `{"message":"413 Request Entity Too Large"}`},
		"fields that are too long":  {[]part{path, {"a", "", "", noise(40 << 10)}, {"b", "", "", noise(40 << 10)}, ok}, 413, `{"message":"413 Request Entity Too Large"}`},
		"a header that is too long": {[]part{path, {"file", strings.Repeat("a", 64<<10), "", "abc"}}, 413, `{"message":"413 Request Entity Too Large"}`},
	} {
		t.Run(name, func(t *testing.T) {
			contentType, body := form(t, tt.parts...)
			for _, length := range []int64{int64(len(body)), -1} {
				r := httptest.NewRequest(http.MethodPost, "/imports", bytes.NewReader(body))
				r.Header.Set("Content-Type", contentType)
				r.ContentLength = length
				if w := send(t, uploads, nil, r); w.Code != tt.status || w.Body.String() != tt.want {
					t.Errorf("length %d: got %d %.300s, want %d %s", length, w.Code, w.Body, tt.status, tt.want)
				}
			}
		})
	}
}

func TestUploads_areRefusedIfTheyBreakOff(t *testing.T) {
	contentType, body := form(t, part{"path", "", "", "x"}, part{"file", "a", "", noise(1 << 20)})
	for _, length := range []int{10, 70, 100, 150, 200, 250, 300, 100_000, len(body) - 10} {
		r := httptest.NewRequest(http.MethodPost, "/imports", bytes.NewReader(body[:length]))
		r.Header.Set("Content-Type", contentType)
		if w := send(t, uploads, nil, r); w.Code != http.StatusBadRequest || w.Body.String() != `{"error":"the form is malformed"}` {
			t.Errorf("%d bytes: got %d %s", length, w.Code, w.Body)
		}
	}
}

func TestForms_areRefusedIfTheyBreakOff(t *testing.T) {
	contentType, body := form(t, part{"name", "", "", "a"}, part{"color", "", "", "b"}, part{"x", "file", "", "c"})
	h := newHandler(echoing)
	for length := range len(body) + 1 {
		r := httptest.NewRequest(http.MethodPost, "/projects/1/labels", bytes.NewReader(body[:length]))
		r.Header.Set("Content-Type", contentType)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		want := `{"error":"the form is malformed"}`
		switch {
		case length == 0:
			want = `{"error":"name is missing, color is missing"}`
		case length >= len(body)-len("\r\n"):
			continue // the form is complete
		}
		if w.Code != http.StatusBadRequest || w.Body.String() != want {
			t.Errorf("%d of %d bytes: got %d %s", length, len(body), w.Code, w.Body)
		}
	}
}

func TestUploads_doNotTakeMemory(t *testing.T) {
	memory := &scarce{}
	contentType, body := form(t, part{"path", "", "", "x"}, part{"file", "a", "", noise(eachFile)})
	r := httptest.NewRequest(http.MethodPost, "/imports", bytes.NewReader(body))
	r.Header.Set("Content-Type", contentType)
	if w := send(t, uploads, memory, r); w.Code != http.StatusCreated || memory.waited != 0 {
		t.Errorf("got %d %s, waited %d times for memory", w.Code, w.Body, memory.waited)
	}
}

// disk records the announced, the current and the final number of bytes on disk.
type disk struct {
	told []int64
	err  error
}

// Take implements endpoint.Memory.
func (d *disk) Take(_ context.Context, size int64) (func(int64), error) {
	weigh := func(size int64) { d.told = append(d.told, size) }
	weigh(size)
	return weigh, d.err
}

// Try implements endpoint.Memory.
func (*disk) Try(context.Context, int64) func(int64) { return nil }

// OverShare implements endpoint.Memory.
func (*disk) OverShare(context.Context, int64) bool { return false }

func TestUploads_areCountedOnDisk(t *testing.T) {
	contentType, body := form(t, part{"path", "", "", "x"}, part{"file", "a", "", noise(1 << 20)})
	large := strings.Repeat("x", 80<<10)
	const raw = "/envelopes/7?key=k"
	for name, tt := range map[string]struct {
		target, contentType, encoding, body string
		unknown                             bool
		status                              int
		told                                []int64
		err                                 error
	}{
		"a form":                   {"/imports", contentType, "", string(body), false, 201, []int64{int64(len(body)), 1 << 20, 0}, nil},
		"a form of unknown length": {"/imports", contentType, "", string(body), true, 201, []int64{allFiles + 64<<10, 1 << 20, 0}, nil},
		"a body":                   {raw, "text/plain", "", large, false, 201, []int64{80 << 10, 80 << 10, 0}, nil},
		"a small one":              {raw, "text/plain", "", "abc", false, 201, nil, nil},
		"one of unknown length":    {raw, "text/plain", "", "abc", true, 201, []int64{sentBytes, 0, 0}, nil},
		"a zipped one":             {raw, "text/plain", "gzip", zipped(t, large), false, 201, []int64{unzippedBytes, 80 << 10, 0}, nil},
		"one that fails":           {raw, "text/plain", "gzip", "abc", false, 400, []int64{unzippedBytes, 0, 0}, nil},
		"one without free space":   {"/imports", contentType, "", string(body), false, 503, []int64{int64(len(body))}, endpoint.Busy(time.Second)},
	} {
		t.Run(name, func(t *testing.T) {
			d := &disk{err: tt.err}
			table := append(rawTable(&trace{}), uploads...)
			h := endpoint.NewHandler(endpoint.Options{Guard: open{}, Log: logr.Discard(), BaseURL: &url.URL{}, Spool: t.TempDir(), Disk: d}, table)
			r := httptest.NewRequest(http.MethodPost, tt.target, strings.NewReader(tt.body))
			r.Header.Set("Content-Type", tt.contentType)
			r.Header.Set("Content-Encoding", tt.encoding)
			if tt.unknown {
				r.ContentLength = -1
			}
			w := httptest.NewRecorder()
			if h.ServeHTTP(w, r); w.Code != tt.status || !slices.Equal(d.told, tt.told) {
				t.Errorf("got %d %s, told %d", w.Code, w.Body, d.told)
			}
		})
	}
}

func TestUploads_waitForMemoryIfFieldsCanBeLong(t *testing.T) {
	memory := &scarce{}
	table := endpoint.Table{
		endpoint.Post("/imports", func(_ context.Context, _ endpoint.None, r *uploading) (*uploaded, error) { return seen(r) }).Uploads(eachFile, allFiles).MaxBody(1 << 20),
	}
	contentType, body := form(t, part{"path", "", "", "x"}, part{"file", "a", "", noise(eachFile)})
	r := httptest.NewRequest(http.MethodPost, "/imports", bytes.NewReader(body))
	r.Header.Set("Content-Type", contentType)
	if w := send(t, table, memory, r); w.Code != http.StatusCreated || memory.waited != 1 || memory.most != 3<<20 || memory.held != 0 {
		t.Errorf("got %d %s, waited %d times, held %d at most and %d in the end", w.Code, w.Body, memory.waited, memory.most, memory.held)
	}
}

func TestUploads_canBeReadAgainInRetry(t *testing.T) {
	calls := 0
	var digests []string
	table := endpoint.Table{endpoint.Post("/imports", func(_ context.Context, _ endpoint.None, r *uploading) (*uploaded, error) {
		u, err := seen(r)
		if calls++; err == nil && calls == 1 {
			err = endpoint.NotFound("Group")
		}
		digests = append(digests, u.Digest)
		return u, err
	}).Uploads(eachFile, allFiles)}
	contentType, body := form(t, part{"path", "", "", "x"}, part{"file", "a", "", noise(1 << 20)})
	h := endpoint.NewHandler(endpoint.Options{
		Guard: open{}, Log: logr.Discard(), BaseURL: &url.URL{}, Outdated: func(context.Context) (bool, error) { return calls == 1, nil }, Spool: t.TempDir(),
	}, table)
	r := httptest.NewRequest(http.MethodPost, "/imports", bytes.NewReader(body))
	r.Header.Set("Content-Type", contentType)
	w := httptest.NewRecorder()
	if h.ServeHTTP(w, r); w.Code != http.StatusCreated || calls != 2 || digests[0] != digests[1] {
		t.Errorf("got %d %s after %d calls: %v", w.Code, w.Body, calls, digests)
	}
}

func TestUploads_failIfSpoolIsMissing(t *testing.T) {
	contentType, body := form(t, part{"path", "", "", "x"}, part{"file", "a", "", noise(1 << 20)})
	var failed error
	h := endpoint.NewHandler(endpoint.Options{
		Guard: open{}, Log: logr.Discard(), BaseURL: &url.URL{}, Spool: t.TempDir() + "/missing",
		Refused: func(err error) *endpoint.Error {
			failed = err
			return nil
		},
	}, uploads)
	r := httptest.NewRequest(http.MethodPost, "/imports", bytes.NewReader(body))
	r.Header.Set("Content-Type", contentType)
	w := httptest.NewRecorder()
	if h.ServeHTTP(w, r); w.Code != http.StatusInternalServerError {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
	if !errors.Is(failed, endpoint.ErrSpool) || !errors.Is(failed, fs.ErrNotExist) {
		t.Errorf("failed with %v", failed)
	}
}

func TestUploads_panicWithoutLimit(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("nothing panicked")
		}
	}()
	newHandler(endpoint.Table{endpoint.Post("/imports", nothing[uploading])})
}

func TestOpenAPI_describesFiles(t *testing.T) {
	var document any
	table := append(endpoint.Table{endpoint.Put("/appearance", nothing[struct {
		Title string                           `param:"title"`
		Logo  endpoint.Optional[endpoint.File] `param:"logo"`
	}]).Uploads(1, 1)}, uploads...)
	if err := json.Unmarshal(newHandler(table).OpenAPI(), &document); err != nil {
		t.Fatal(err)
	}
	const body = "paths /imports post requestBody "
	for place, want := range map[string]string{
		body + "content application/json":                            `null`,
		body + "required":                                            `true`,
		body + "content multipart/form-data schema required":         `["path","file"]`,
		body + "content multipart/form-data schema properties file":  `{"type":"string","contentMediaType":"application/octet-stream","description":"The archive."}`,
		body + "content multipart/form-data schema properties path":  `{"type":"string"}`,
		body + "content multipart/form-data encoding params":         `{"style":"deepObject","explode":true}`,
		"paths /appearance put requestBody content application/json": `{"example":{},"schema":{"type":"object","properties":{"title":{"type":"string"}}}}`,
		"paths /appearance put requestBody content multipart/form-data schema": `{"type":"object","properties":{"title":{"type":"string"},
			"logo":{"type":["string","null"],"contentMediaType":"application/octet-stream"}}}`,
	} {
		if got := find(document, place); !equalJSON(t, got, want) {
			shown, _ := json.Marshal(got)
			t.Errorf("%s:\ngot  %s\nwant %s", place, shown, want)
		}
	}
}
