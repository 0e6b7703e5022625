// Package docs is the page of the API's reference. A browser renders it from the OpenAPI document, and fetches nothing from
// elsewhere.
package docs

import (
	"bytes"
	"compress/gzip"
	"embed"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"html/template"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
	"time"

	// Swagger UI, because it shows OpenAPI 3.1 and a maintained Go module has it: 0.5 MB, compressed.
	"github.com/swaggest/swgui/v5/static"
)

// Path is the path of the page. Its parts are below.
const Path = "/-/docs"

// policy allows the page to run its own scripts and to call its own server, and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

//go:embed page.html page.js
var own embed.FS

// New returns the handler of Path and of the paths below it. document is the URL of the OpenAPI document, relative to Path, such as
// ../api/v4/openapi.json.
func New(title, document string) (http.Handler, error) {
	page, err := template.ParseFS(own, "page.html")
	if err != nil {
		return nil, fmt.Errorf("reading the page: %w", err)
	}
	var text bytes.Buffer
	if err := page.Execute(&text, map[string]string{"Title": title, "Document": document}); err != nil {
		return nil, fmt.Errorf("writing the page: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET "+Path, newAsset("page.html", text.Bytes()))
	mux.HandleFunc("GET "+Path+"/{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "../docs") // http.Redirect would drop the prefix of a proxy
		w.WriteHeader(http.StatusMovedPermanently)
	})
	for name, from := range map[string]fs.FS{
		"page.js": own, "favicon-32x32.png": static.FS, "swagger-ui.css.gz": static.FS, "swagger-ui-bundle.js.gz": static.FS,
	} {
		content, err := fs.ReadFile(from, name)
		if err != nil {
			return nil, fmt.Errorf("reading a part of the page: %w", err)
		}
		a := newAsset(name, content)
		mux.Handle("GET "+Path+"/"+a.name, a)
	}
	return mux, nil
}

// asset is the page or a part of it.
type asset struct {
	name       string
	content    []byte
	compressed bool
	etag       string
}

// newAsset returns an asset, which is compressed if its name ends in .gz.
func newAsset(name string, content []byte) *asset {
	sum := fnv.New128a() // identifies a version; it needs no security
	_, _ = sum.Write(content)
	plain, compressed := strings.CutSuffix(name, ".gz")
	return &asset{name: plain, content: content, compressed: compressed, etag: `W/"` + hex.EncodeToString(sum.Sum(nil)) + `"`}
}

func (a *asset) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-cache")
	h.Set("Content-Type", mime.TypeByExtension(path.Ext(a.name)))
	h.Set("ETag", a.etag)
	content := a.content
	if a.compressed {
		h.Set("Vary", "Accept-Encoding")
		if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			h.Set("Content-Encoding", "gzip")
		} else {
			content = decompress(content)
		}
	}
	http.ServeContent(w, r, a.name, time.Time{}, bytes.NewReader(content))
}

// decompress is for the rare client that is not a browser.
func decompress(content []byte) []byte {
	var plain bytes.Buffer
	if reader, err := gzip.NewReader(bytes.NewReader(content)); err == nil {
		_, _ = io.Copy(&plain, reader) // it is of the binary itself
	}
	return plain.Bytes()
}
