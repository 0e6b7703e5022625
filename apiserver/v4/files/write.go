package files

import (
	"context"
	"errors"
	"net/http"
	"unicode/utf8"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/ref"
	"github.com/forgeplane/forgeplane/internal/git/edit"
	"github.com/forgeplane/forgeplane/internal/git/object"
)

// Written is the path and branch of a changed file.
type Written struct {
	FilePath string `json:"file_path"`
	Branch   string `json:"branch"`
}

// change has the parameters of all requests that change a file.
type change struct {
	FilePath      string `param:"file_path" doc:"Path of the file from the root of the repository."`
	Branch        string `param:"branch" required:"" blank:"refuse" example:"main" doc:"The branch that gets the commit."`
	StartBranch   string `param:"start_branch" doc:"The branch that a new branch starts at."`
	CommitMessage string `param:"commit_message" required:"" blank:"refuse" example:"Write a page" doc:"The message of the commit."`
	AuthorEmail   string `param:"author_email" doc:"The author's address; the caller's if it is not given."`
	AuthorName    string `param:"author_name" doc:"The author's name; the caller's if it is not given."`
}

// content is the requested content of a file.
type content struct {
	Content         string                  `param:"content" required:"" example:"# Page" doc:"The content."`
	Encoding        string                  `param:"encoding" values:"text,base64" default:"text" doc:"Encoding of the content."`
	ExecuteFilemode endpoint.Optional[bool] `param:"execute_filemode" doc:"Whether the file can be executed."`
}

// fill sets the content of an action.
func (c content) fill(a *edit.Action) error {
	var ok bool
	if a.Content, ok = ref.Content(c.Content, c.Encoding); !ok {
		return endpoint.Parameters("content is invalid")
	}
	if c.ExecuteFilemode.Set && !c.ExecuteFilemode.Null {
		a.Executable = &c.ExecuteFilemode.Value
	}
	return nil
}

type createRequest struct {
	change
	content
}

func (f *Family) create(ctx context.Context, s auth.Project, r *createRequest) (none Written, err error) {
	does := edit.Action{Kind: edit.CreateFile}
	if err := r.fill(&does); err != nil {
		return none, err
	}
	return f.commit(ctx, s, r.change, does)
}

type updateRequest struct {
	change
	content

	LastCommitID string `param:"last_commit_id" doc:"Id of the commit that is expected to have changed the file last."`
}

func (f *Family) update(ctx context.Context, s auth.Project, r *updateRequest) (none Written, err error) {
	does := edit.Action{Kind: edit.UpdateFile, LastCommit: r.LastCommitID}
	if err := r.fill(&does); err != nil {
		return none, err
	}
	written, err := f.commit(ctx, s, r.change, does)
	if errors.Is(err, edit.ErrFileChanged) {
		err = endpoint.Message(http.StatusBadRequest, "You are attempting to update a file that has changed since you started editing it.")
	}
	return written, err
}

type removeRequest struct {
	change

	LastCommitID string `param:"last_commit_id" doc:"Id of the commit that is expected to have changed the file last."`
}

func (f *Family) remove(ctx context.Context, s auth.Project, r *removeRequest) (none endpoint.None, err error) {
	_, err = f.commit(ctx, s, r.change, edit.Action{Kind: edit.DeleteFile, LastCommit: r.LastCommitID})
	if errors.Is(err, edit.ErrFileChanged) {
		err = endpoint.Message(http.StatusBadRequest, "You are attempting to delete a file that has been previously updated.")
	}
	return none, err
}

// commit commits an action on the file of a request. The error is edit.ErrFileChanged or a response.
func (f *Family) commit(ctx context.Context, s auth.Project, r change, does edit.Action) (none Written, err error) {
	if clean, ok := object.CleanPath(r.FilePath); !ok || clean != r.FilePath || !utf8.ValidString(clean) {
		return none, endpoint.Parameters("file_path should be a valid file path")
	}
	does.Path = r.FilePath
	repo, err := f.Repositories.Content(ctx, s.Scope.Project)
	if err == nil {
		_, err = f.Refs.Commit(ctx, s, repo, ref.Draft{
			Branch: r.Branch, StartBranch: r.StartBranch, Actions: []edit.Action{does},
			Message: r.CommitMessage, AuthorName: r.AuthorName, AuthorEmail: r.AuthorEmail, When: f.Clock.Now(),
		})
	}
	var refused *ref.RefusedError
	switch {
	case errors.Is(err, edit.ErrFileChanged):
		return none, err
	case errors.As(err, &refused):
		return none, endpoint.Message(http.StatusBadRequest, "%s", refused.Reason).Describe("%s", refused.Description)
	case err != nil:
		return none, ref.Uncommitted(err)
	}
	return Written{FilePath: r.FilePath, Branch: r.Branch}, nil
}
