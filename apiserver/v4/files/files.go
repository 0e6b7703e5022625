// Package files is the family of the files in the repository of a project, by their paths.
package files

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/blob"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/family"
	"github.com/forgeplane/forgeplane/apiserver/ref"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/history"
	"github.com/forgeplane/forgeplane/internal/git/refs"
	"github.com/forgeplane/forgeplane/internal/git/snapshot"
)

// Family serves the files of projects.
type Family struct {
	family.Kit
}

// New returns the family.
func New(k family.Kit) *Family { return &Family{k} }

// readers are the scopes that read files, including those that clone the repository (API behaviour, section 1.2).
var readers = []string{"api", "read_api", "read_repository"}

// Table lists the endpoints.
func (f *Family) Table() endpoint.Table {
	return endpoint.Table{
		endpoint.Get("/projects/{id}/repository/files/{file_path}", f.get).Needs(auth.ReadCode).
			Anonymous(endpoint.Served).Scopes(readers...).Doc("Get a file with its content. HEAD returns only its properties, in headers."),
		endpoint.Get("/projects/{id}/repository/files/{file_path}/raw", f.raw).Needs(auth.ReadCode).
			Anonymous(endpoint.Served).Scopes(readers...).Doc("Get the raw content of a file."),
		endpoint.Post("/projects/{id}/repository/files/{file_path}", f.create).Needs(auth.CommitCode).
			Anonymous(endpoint.Hidden).MaxBody(ref.MaxBody).Doc("Create a file with a commit on a branch."),
		endpoint.Put("/projects/{id}/repository/files/{file_path}", f.update).Needs(auth.CommitCode).
			Anonymous(endpoint.Hidden).MaxBody(ref.MaxBody).Doc("Update a file with a commit on a branch."),
		endpoint.Delete("/projects/{id}/repository/files/{file_path}", f.remove).Needs(auth.CommitCode).
			Anonymous(endpoint.Hidden).Doc("Delete a file with a commit on a branch."),
	}
}

// The name of the limit for large files.
const what = "file"

// find returns the file at a path in a revision, and its content.
func (f *Family) find(ctx context.Context, s auth.Project, path, revision string) (file File, content snapshot.Blob, err error) {
	if slices.Contains(strings.Split(path, "/"), "..") {
		return file, content, endpoint.Parameters("file_path should be a valid file path")
	}
	repo, err := f.Repositories.Content(ctx, s.Scope.Project)
	var commit string
	if err == nil {
		commit, err = refs.Commit(ctx, repo, revision)
	}
	if ref.Missing(err) {
		return file, content, endpoint.NotFound("Commit")
	} else if err != nil {
		return file, content, err
	}
	entry, err := snapshot.Entry(ctx, repo, commit, path)
	if errors.Is(err, git.ErrFileTooLarge) {
		return file, content, endpoint.Message(http.StatusUnprocessableEntity, "The directory of the file is too large to be read")
	}
	if err == nil && entry.Path == path && entry.Type == "blob" {
		content, err = snapshot.OpenBlob(ctx, repo, entry.ID)
	}
	if ref.Missing(err) || err == nil && content.ID == "" {
		return file, content, endpoint.NotFound("File")
	} else if err != nil {
		return file, content, err
	}
	if !content.Hashed() {
		if err := blob.Count(ctx, s.Subject, content, what); err != nil {
			return file, content, err
		}
	}
	file = newFile(entry, content, revision, commit)
	if file.ContentSHA256, err = content.SHA256(ctx); err == nil {
		file.LastCommitID, err = history.LastCommit(ctx, repo, commit, path)
	}
	return file, content, err
}

type getRequest struct {
	FilePath string `param:"file_path" doc:"Path of the file from the root of the repository."`
	Ref      string `param:"ref" required:"" blank:"refuse" doc:"A branch, tag or commit; HEAD for the default branch."`
}

func (f *Family) get(ctx context.Context, s auth.Project, r *getRequest) (File, error) {
	file, content, err := f.find(ctx, s, r.FilePath, r.Ref)
	if err != nil {
		return File{}, err
	}
	if blob.Large(content) {
		file.large = func(w io.Writer) error { return blob.Write(ctx, s.Subject, w, file, content, what) }
		return file, nil
	}
	file.Content, err = blob.Text(ctx, content)
	return file, err
}

type rawRequest struct {
	FilePath string `param:"file_path" doc:"Path of the file from the root of the repository."`
	Ref      string `param:"ref" default:"HEAD" doc:"A branch, tag or commit; the default branch if it is not given."`
	LFS      bool   `param:"lfs" default:"false" doc:"Has no effect: the file is sent as stored in the repository."`
}

func (f *Family) raw(ctx context.Context, s auth.Project, r *rawRequest) (endpoint.Content, error) {
	file, content, err := f.find(ctx, s, r.FilePath, cmp.Or(r.Ref, "HEAD"))
	if err != nil {
		return endpoint.Content{}, err
	}
	header := file.Header()
	header["Content-Disposition"] = []string{inline(file.FileName)}
	return blob.Raw(ctx, content, header), nil
}
