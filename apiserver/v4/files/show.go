package files

import (
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/internal/git/object"
	"github.com/forgeplane/forgeplane/internal/git/snapshot"
)

// File is a file at a revision.
type File struct {
	FileName        string `json:"file_name"`
	FilePath        string `json:"file_path" doc:"From the root of the repository."`
	Size            int64  `json:"size" doc:"In bytes."`
	Encoding        string `json:"encoding" doc:"base64."`
	ContentSHA256   string `json:"content_sha256"`
	Ref             string `json:"ref" doc:"The requested revision."`
	BlobID          string `json:"blob_id"`
	CommitID        string `json:"commit_id" doc:"The commit that the revision names."`
	LastCommitID    string `json:"last_commit_id" doc:"The last commit up to that revision that changed the file."`
	ExecuteFilemode bool   `json:"execute_filemode"`
	Content         string `json:"content" doc:"On one line."`

	large func(io.Writer) error
}

var (
	_ endpoint.Streamed = File{}
	_ endpoint.Headed   = File{}
)

func newFile(e object.TreeEntry, b snapshot.Blob, revision, commit string) File {
	return File{
		FileName: e.Name(), FilePath: e.Path, Size: b.Size, Encoding: "base64", Ref: revision, BlobID: b.ID, CommitID: commit,
		ExecuteFilemode: e.Mode == "100755",
	}
}

// Stream implements endpoint.Streamed.
func (f File) Stream() (endpoint.Content, bool) {
	return endpoint.Content{Type: "application/json", Size: -1, Write: f.large}, f.large != nil
}

// Header implements endpoint.Headed: it has all properties except the content.
func (f File) Header() http.Header {
	return http.Header{
		"X-Gitlab-Blob-Id":          {f.BlobID},
		"X-Gitlab-Commit-Id":        {f.CommitID},
		"X-Gitlab-Content-Sha256":   {f.ContentSHA256},
		"X-Gitlab-Encoding":         {f.Encoding},
		"X-Gitlab-Execute-Filemode": {strconv.FormatBool(f.ExecuteFilemode)},
		"X-Gitlab-File-Name":        {printable(f.FileName)},
		"X-Gitlab-File-Path":        {printable(f.FilePath)},
		"X-Gitlab-Last-Commit-Id":   {f.LastCommitID},
		"X-Gitlab-Ref":              {printable(f.Ref)},
		"X-Gitlab-Size":             {strconv.FormatInt(f.Size, 10)},
	}
}

// printable returns text without control characters, for a header.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '\uFFFD'
		}
		return r
	}, text)
}

// inline returns a Content-Disposition header with which browsers show a file, and save it under its name.
func inline(name string) string {
	quoted := strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' || r == '"' || r == '\\' {
			return '?'
		}
		return r
	}, name)
	if quoted == name {
		return `inline; filename="` + name + `"`
	}
	return mime.FormatMediaType("inline", map[string]string{"filename": name})
}
