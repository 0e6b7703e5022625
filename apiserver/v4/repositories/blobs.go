package repositories

import (
	"bufio"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/internal/git"
)

const (
	// largeBlob is how many bytes a blob has that is encoded piece by piece.
	largeBlob = 1 << 20
	// limitedBlob is how many bytes one has that is to be had limitedBlobs times a minute (API behaviour, section 2.1).
	limitedBlob  = 10 << 20
	limitedBlobs = 5
)

// Blob is what the API shows of a blob.
type Blob struct {
	Size     int64  `json:"size"`
	Encoding string `json:"encoding" doc:"base64."`
	Content  string `json:"content" doc:"On one line."`
	SHA      string `json:"sha"`

	large func(io.Writer) error
}

var _ endpoint.Streamed = Blob{}

// Stream implements endpoint.Streamed.
func (b Blob) Stream() (endpoint.Content, bool) {
	return endpoint.Content{Type: "application/json", Size: -1, Write: b.large}, b.large != nil
}

type blobRequest struct {
	ID  string `param:"id" doc:"Id or full path of the project."`
	SHA string `param:"sha" doc:"Id of the blob."`
}

func (f *Family) find(ctx context.Context, sha string) (git.Blob, error) {
	repo, err := f.repository(ctx)
	if err != nil {
		return git.Blob{}, orNotFound(err, endpoint.NotFound("Blob"))
	}
	found, err := repo.Blob(ctx, sha)
	return found, orNotFound(err, endpoint.NotFound("Blob"))
}

func (f *Family) blob(ctx context.Context, r *blobRequest) (Blob, error) {
	found, err := f.find(ctx, r.SHA)
	if err != nil {
		return Blob{}, err
	}
	if found.Size > limitedBlob {
		if err := auth.Count(ctx, limitedBlobs, "blob"); err != nil {
			return Blob{}, err
		}
	}
	shown := Blob{Size: found.Size, Encoding: "base64", SHA: found.ID}
	if found.Size > largeBlob {
		shown.large = func(w io.Writer) error { return encode(ctx, found, w) }
		return shown, nil
	}
	content := make(buffer, 0, found.Size)
	if err := found.Write(ctx, &content); err != nil {
		return Blob{}, err
	}
	shown.Content = base64.StdEncoding.EncodeToString(content)
	return shown, nil
}

// buffer is written to.
type buffer []byte

// Write implements io.Writer.
func (b *buffer) Write(p []byte) (int, error) {
	*b = append(*b, p...)
	return len(p), nil
}

// encode writes the JSON of a Blob.
func encode(ctx context.Context, b git.Blob, w io.Writer) error {
	// Nothing is sent before there is something to send, so that a failure to begin is an answer.
	out := bufio.NewWriterSize(w, 64<<10)
	fmt.Fprintf(out, `{"size":%d,"encoding":"base64","content":"`, b.Size)
	encoder := base64.NewEncoder(base64.StdEncoding, out)
	if err := b.Write(ctx, encoder); err != nil {
		return err
	}
	if err := encoder.Close(); err != nil {
		return err
	}
	fmt.Fprintf(out, `","sha":%q}`, b.ID)
	return out.Flush()
}

// rawHeader goes with the content of a file: nobody keeps it, and no browser takes it for a page.
var rawHeader = http.Header{
	"Content-Disposition": {"inline"},
	"Cache-Control":       {"max-age=0, private, must-revalidate, no-store, no-cache"},
	"Pragma":              {"no-cache"},
	"Expires":             {"Fri, 01 Jan 1990 00:00:00 GMT"},
}

func (f *Family) rawBlob(ctx context.Context, r *blobRequest) (endpoint.Content, error) {
	found, err := f.find(ctx, r.SHA)
	if err != nil {
		return endpoint.Content{}, err
	}
	header := rawHeader.Clone()
	header["X-Gitlab-Blob-Id"] = []string{found.ID}
	return endpoint.Content{
		Type: "text/plain", Header: header, Size: found.Size,
		Write: func(w io.Writer) error { return found.Write(ctx, w) },
	}, nil
}
