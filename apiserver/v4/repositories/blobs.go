package repositories

import (
	"context"
	"io"
	"net/http"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/blob"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/internal/git/snapshot"
)

// Blob is a blob in the REST API.
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
	SHA string `param:"sha" doc:"Id of the blob."`
}

func (f *Family) find(ctx context.Context, s auth.Project, sha string) (snapshot.Blob, error) {
	repo, err := f.repository(ctx, s)
	if err != nil {
		return snapshot.Blob{}, orNotFound(err, endpoint.NotFound("Blob"))
	}
	found, err := snapshot.OpenBlob(ctx, repo, sha)
	return found, orNotFound(err, endpoint.NotFound("Blob"))
}

func (f *Family) blob(ctx context.Context, s auth.Project, r *blobRequest) (Blob, error) {
	found, err := f.find(ctx, s, r.SHA)
	if err != nil {
		return Blob{}, err
	}
	shown := Blob{Size: found.Size, Encoding: "base64", SHA: found.ID}
	if blob.Large(found) {
		shown.large = func(w io.Writer) error { return blob.Write(ctx, s.Subject, w, shown, found, "blob") }
		return shown, nil
	}
	shown.Content, err = blob.Text(ctx, found)
	return shown, err
}

func (f *Family) rawBlob(ctx context.Context, s auth.Project, r *blobRequest) (endpoint.Content, error) {
	found, err := f.find(ctx, s, r.SHA)
	if err != nil {
		return endpoint.Content{}, err
	}
	return blob.Raw(ctx, found, http.Header{"Content-Disposition": {"inline"}, "X-Gitlab-Blob-Id": {found.ID}}), nil
}
