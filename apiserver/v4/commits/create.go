package commits

import (
	"context"
	"errors"
	"fmt"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/ref"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/edit"
)

type createRequest struct {
	Branch        string   `param:"branch" required:"" blank:"refuse" example:"main" doc:"The branch that gets the commit."`
	CommitMessage string   `param:"commit_message" required:"" blank:"refuse" example:"Add a page" doc:"The message."`
	StartBranch   string   `param:"start_branch" doc:"The branch that a new branch starts at; branch if it is not given."`
	StartSHA      string   `param:"start_sha" doc:"Id of the commit that it starts at, in place of start_branch."`
	StartProject  string   `param:"start_project" doc:"Id or full path of the project that start_branch or start_sha is in: this one, or another one of the same network of forks."`
	Actions       []action `param:"actions" required:"" doc:"Changes of the commit, in this order."`
	AuthorEmail   string   `param:"author_email" doc:"The author's address; the caller's if it is not given."`
	AuthorName    string   `param:"author_name" doc:"The author's name; the caller's if it is not given."`
	Stats         bool     `param:"stats" default:"true" doc:"Whether to count the changed lines."`
	Force         bool     `param:"force" default:"false" doc:"Whether to overwrite a branch that exists."`
}

// action is a change of a file in a commit.
type action struct {
	Action          string                    `param:"action" required:"" values:"create,update,delete,move,chmod" doc:"Kind of change."`
	FilePath        string                    `param:"file_path" required:"" example:"docs/page.md" doc:"Path of the file from the root of the repository."`
	PreviousPath    endpoint.Optional[string] `param:"previous_path" doc:"Path of the file that is moved."`
	Content         endpoint.Optional[string] `param:"content" example:"# Page" doc:"The content; a file that is moved keeps its own if it is not given."`
	Encoding        string                    `param:"encoding" values:"text,base64" default:"text" doc:"Encoding of the content."`
	LastCommitID    string                    `param:"last_commit_id" doc:"Id of the commit that is expected to have changed the file last."`
	ExecuteFilemode endpoint.Optional[bool]   `param:"execute_filemode" doc:"Whether the file can be executed."`
}

// git converts the action. problem describes a missing parameter; name is the name of the action.
func (a action) git(name string) (does edit.Action, problem string) {
	does = edit.Action{Kind: edit.ActionKind(a.Action), Path: a.FilePath, From: a.PreviousPath.Value}
	switch {
	case does.Kind == edit.MoveFile && !a.PreviousPath.Set:
		return does, name + "[previous_path] is missing"
	case does.Kind == edit.UpdateFile && !a.Content.Set:
		return does, name + "[content] is missing"
	case does.Kind == edit.ChmodFile && !a.ExecuteFilemode.Set:
		return does, name + "[execute_filemode] is missing"
	}
	if does.Kind != edit.MoveFile || a.Content.Set && !a.Content.Null {
		var ok bool
		if does.Content, ok = ref.Content(a.Content.Value, a.Encoding); !ok {
			return does, name + "[content] is invalid"
		}
	}
	if a.ExecuteFilemode.Set && !a.ExecuteFilemode.Null {
		does.Executable = &a.ExecuteFilemode.Value
	}
	if does.Kind != edit.CreateFile {
		does.LastCommit = a.LastCommitID
	}
	return does, ""
}

func (f *Family) create(ctx context.Context, s auth.Project, r *createRequest) (none Detail, err error) {
	if r.StartBranch != "" && r.StartSHA != "" {
		return none, endpoint.Parameters("start_branch, start_sha are mutually exclusive")
	}
	begins, err := f.start(ctx, s, r.StartProject)
	if err != nil {
		return none, err
	}
	actions, err := r.actions()
	if err != nil {
		return none, err
	}
	repo, err := f.repository(ctx, s)
	var in *git.Repository
	if err == nil && begins != nil {
		in, err = f.Repositories.Content(ctx, begins)
	}
	var id string
	if err == nil {
		id, err = f.Refs.Commit(ctx, s, repo, ref.Draft{
			Branch: r.Branch, StartBranch: r.StartBranch, StartCommit: r.StartSHA, StartIn: in, Force: r.Force,
			Actions: actions, Message: r.CommitMessage, AuthorName: r.AuthorName, AuthorEmail: r.AuthorEmail, When: f.Clock.Now(),
		})
	}
	if err != nil {
		return none, uncommitted(err)
	}
	made, err := repo.ReadCommit(ctx, id)
	if err != nil {
		return none, err
	}
	shown, err := f.detail(ctx, s, repo, made, r.Stats)
	if err != nil && r.Stats {
		// The commit exists: a client that received an error would create it again.
		return f.detail(ctx, s, repo, made, false)
	}
	return shown, err
}

// uncommitted is ref.Uncommitted, and names the action that failed.
func uncommitted(err error) error {
	answer := ref.Uncommitted(err)
	var action *edit.ActionError
	var said *endpoint.Error
	if errors.As(err, &action) && errors.As(answer, &said) {
		return said.Describe("actions[%d] cannot be done, so none was. Its path is %.300s.", action.Index, action.Path)
	}
	return answer
}

// start returns the project, by id or full path, in which a commit starts. It is nil for the project of the request.
func (f *Family) start(ctx context.Context, s auth.Project, id string) (*v1alpha1.Project, error) {
	if id == "" {
		return nil, nil
	}
	scope, err := f.Guard.Relative(ctx, s, id)
	switch {
	case errors.Is(err, catalog.ErrNotFound):
		return nil, endpoint.NotFound("Project")
	case errors.Is(err, auth.ErrUnrelated), errors.Is(err, auth.ErrUnreadable):
		return nil, endpoint.Forbidden("Project is not included in the fork network for " + scope.Path())
	case err != nil || scope.Project.UID == s.Scope.Project.UID:
		return nil, err
	default:
		return scope.Project, nil
	}
}

// actions converts the actions of the request.
func (r *createRequest) actions() ([]edit.Action, error) {
	all := make([]edit.Action, len(r.Actions))
	var problems []string
	for i, a := range r.Actions {
		does, problem := a.git(fmt.Sprintf("actions[%d]", i))
		if problem != "" {
			problems = append(problems, problem)
		}
		all[i] = does
	}
	if len(problems) > 0 {
		return nil, endpoint.Parameters(problems...)
	}
	return all, nil
}
