// Package blob writes the content of blobs to responses of the REST API: in Base64 within JSON, or unchanged.
package blob

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/internal/git/snapshot"
)

const (
	// large is the minimum size in bytes of a blob that is encoded in pieces.
	large = 1 << 20
	// limited is the minimum size in bytes of a blob that a caller gets in Base64, or hashed, at most aMinute times a minute (API
	// behaviour, section 2.1).
	limited = 10 << 20
	aMinute = 5
)

// Large reports whether the content is too large to build in memory. Use Write for such content, not Text.
func Large(b snapshot.Blob) bool { return b.Size > large }

// Count counts a request for a large blob of a project, once. The error is 429 if the caller has sent too many such requests. what names them
// in the error, and requests with the same name share the count.
func Count(ctx context.Context, s auth.Subject, b snapshot.Blob, what string) error {
	if b.Size <= limited {
		return nil
	}
	return s.Count(ctx, aMinute, what)
}

// Text returns the content in Base64, on one line.
func Text(ctx context.Context, b snapshot.Blob) (string, error) {
	var whole bytes.Buffer
	whole.Grow(int(b.Size))
	if err := b.Write(ctx, &whole); err != nil {
		return "", err
	}
	return base64.StdEncoding.EncodeToString(whole.Bytes()), nil
}

// empty is the field that Write fills. It cannot occur elsewhere in the JSON, because quotes in strings are escaped.
const empty = `"content":""`

// Write writes shown as JSON, and fills its empty field content with the content in Base64. It counts the request like Count, with the same
// error.
func Write(ctx context.Context, s auth.Subject, w io.Writer, shown any, b snapshot.Blob, what string) error {
	if err := Count(ctx, s, b, what); err != nil {
		return err
	}
	text, err := json.Marshal(shown)
	if err != nil {
		return err
	}
	at := bytes.Index(text, []byte(empty))
	if at < 0 {
		return fmt.Errorf("%T has no empty content", shown)
	}
	at += len(empty) - len(`"`)
	// The buffer delays the response, so that an error at the beginning can still be reported.
	out := bufio.NewWriterSize(w, 64<<10)
	if _, err := out.Write(text[:at]); err != nil {
		return err
	}
	encoder := base64.NewEncoder(base64.StdEncoding, out)
	if err := b.Write(ctx, encoder); err != nil {
		return err
	}
	if err := encoder.Close(); err != nil {
		return err
	}
	if _, err := out.Write(text[at:]); err != nil {
		return err
	}
	return out.Flush()
}

// Raw returns the content as plain text, which a browser does not show as a page. It adds headers to header that forbid caching.
func Raw(ctx context.Context, b snapshot.Blob, header http.Header) endpoint.Content {
	header["Cache-Control"] = []string{"max-age=0, private, must-revalidate, no-store, no-cache"}
	header["Pragma"] = []string{"no-cache"}
	header["Expires"] = []string{"Fri, 01 Jan 1990 00:00:00 GMT"}
	return endpoint.Content{
		Type: "text/plain", Header: header, Size: b.Size,
		Write: func(w io.Writer) error { return b.Write(ctx, w) },
	}
}
