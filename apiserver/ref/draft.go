package ref

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/change"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/edit"
	"github.com/forgeplane/forgeplane/internal/git/object"
	"github.com/forgeplane/forgeplane/internal/git/refs"
	"github.com/forgeplane/forgeplane/internal/git/transfer"
	"github.com/forgeplane/forgeplane/internal/git/update"
)

// Draft is a commit that a caller would make on a branch:
//
//	id, err := writer.Commit(ctx, repo, ref.Draft{
//		Branch: "main", Message: "Add a greeting", When: clock.Now(),
//		Actions: []edit.Action{{Kind: edit.CreateFile, Path: "greeting", Content: []byte("Hello\n")}},
//	})
//	if err != nil {
//		return none, ref.Uncommitted(err)
//	}
type Draft struct {
	// Branch is the one that gets the commit, without its prefix.
	Branch string
	// StartBranch is the branch, and StartCommit the id of the commit, on which the commit is based. Branch is used if both are empty. If
	// it is another branch, Branch must not exist, unless Force is set.
	StartBranch, StartCommit string
	// StartIn is the repository of another project that StartBranch or StartCommit is in; nil for the repository that gets the commit.
	StartIn *git.Repository
	// Force puts Branch at the commit, whatever it has been at.
	Force bool
	// Actions are the changes of the commit.
	Actions []edit.Action
	// ActionsAt, unless nil, returns the actions in place of Actions, given the id of the parent commit.
	ActionsAt func(ctx context.Context, parent string) ([]edit.Action, error)
	Message   string
	// AuthorName and AuthorEmail default to the caller's. The committer is always the caller.
	AuthorName, AuthorEmail string
	// When is the time of the commit.
	When time.Time
}

// MaxBody is the maximum size of a request with the contents of files, in bytes.
const MaxBody = 20 << 20

// Content decodes the content of a file in a request, which is plain or in Base64. It reports false for invalid Base64.
func Content(text, encoding string) (content []byte, ok bool) {
	if encoding != "base64" {
		return []byte(text), true
	}
	content, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(text, "=\r\n"))
	return content, err == nil
}

// Commit creates the commit as the caller of the request, in the repository of its project, and updates the branch. In a repository without
// branches it creates the first one. The update is decided like a push; if it is refused, only unreferenced objects remain. If another
// request changes the branch in the meantime, the branch stays as that request left it.
//
// The error is RefusedError if the caller may not do this; an answer if the project takes no changes, the start does not exist, or the caller is
// not a User; or an error of edit.Commit or refs.Apply. Uncommitted converts it to an answer.
func (u *Updater) Commit(ctx context.Context, s auth.Project, repo *git.Repository, d Draft) (id string, err error) {
	commit, err := d.commit(s)
	if err != nil {
		return "", err
	}
	ref := Branches + d.Branch
	err = u.Write(ctx, s, repo, func(ctx context.Context) ([]update.Ref, error) {
		if may, err := u.MayPush(ctx, s, ref); err != nil {
			return nil, err
		} else if !may.Allowed {
			return nil, &RefusedError{change.Refusal{Ref: ref, Reason: notAllowed}, may.Reason}
		}
		parent, old, err := d.start(ctx, repo)
		if err != nil {
			return nil, err
		}
		commit.Parent = parent
		if d.ActionsAt != nil {
			if commit.Actions, err = d.ActionsAt(ctx, parent); err != nil {
				return nil, err
			}
		}
		if id, err = edit.Commit(ctx, repo, commit); err != nil {
			return nil, err
		}
		return []update.Ref{{Name: ref, Old: old, New: id}}, nil
	})
	return id, err
}

// commit returns the commit of the draft, without its parent.
func (d Draft) commit(s auth.Project) (edit.NewCommit, error) {
	person, err := s.Caller.Person()
	if err != nil {
		return edit.NewCommit{}, err
	}
	committer := object.Signature{Name: catalog.DisplayName(person), Email: person.Spec.Email, When: d.When}
	author := object.Signature{Name: cmp.Or(d.AuthorName, committer.Name), Email: cmp.Or(d.AuthorEmail, committer.Email), When: d.When}
	return edit.NewCommit{Actions: d.Actions, Author: author, Committer: committer, Message: d.Message}, nil
}

// notAllowed is the message about a protected branch.
const notAllowed = "You are not allowed to push into this branch"

// start returns the parent of the draft, empty if there is none, and the current commit of the branch.
func (d Draft) start(ctx context.Context, repo *git.Repository) (parent, old string, err error) {
	if d.StartCommit != "" && !object.IsID(d.StartCommit) {
		return "", "", invalid("Invalid start_sha '%.100s'", d.StartCommit)
	}
	from := cmp.Or(d.StartCommit, Branches+cmp.Or(d.StartBranch, d.Branch))
	if d.StartCommit == "" && object.CheckRefName(from) != nil {
		return "", "", d.onNoBranch()
	}
	if !IsBranchName(d.Branch) {
		return "", "", InvalidBranchName(d.Branch)
	}
	in := cmp.Or(d.StartIn, repo)
	// The branch is read first: if a push moves it afterwards, the start can be a later commit, and the update of the branch is refused.
	branch, err := repo.Objects(ctx, Branches+d.Branch)
	if err != nil {
		return "", "", err
	}
	start, err := in.Objects(ctx, from+"^{commit}")
	if err != nil {
		return "", "", err
	}
	parent, old = start[0].ID, branch[0].ID
	switch elsewhere := in != repo || from != Branches+d.Branch; {
	case parent == "" && d.StartCommit != "":
		return "", "", invalid("Cannot find start_sha '%s'", d.StartCommit)
	case parent == "":
		return "", "", cmp.Or(d.withoutStart(ctx, in), d.withoutStart(ctx, repo))
	case elsewhere && old != "" && !d.Force:
		return "", "", invalid("A branch called '%s' already exists. Switch to that branch in order to make changes", d.Branch)
	case in != repo:
		return parent, old, bring(ctx, repo, in, parent)
	}
	return parent, old, nil
}

// bring copies the commit at which a draft starts from the repository of another project.
func bring(ctx context.Context, repo, from *git.Repository, id string) error {
	err := transfer.Bring(ctx, repo, from, id)
	if errors.Is(err, git.ErrObjectNotFound) {
		err = invalid("The repositories have different object formats")
	}
	return err
}

// withoutStart returns the answer for a start that does not exist, or nil if the repository has no branch yet.
func (d Draft) withoutStart(ctx context.Context, repo *git.Repository) error {
	for _, err := range refs.List(ctx, repo, Branches) {
		if err != nil {
			return err
		}
		return d.onNoBranch()
	}
	return nil
}

// onNoBranch is the answer for a start that is not a branch.
func (d Draft) onNoBranch() *endpoint.Error {
	answer := invalid("You can only create or edit files when you are on a branch")
	if d.StartBranch != "" {
		return answer.Describe("There is no branch %.300s, which start_branch names.", d.StartBranch)
	}
	return answer.Describe("There is no branch %.300s. To create it, send in start_branch the branch at which it begins.", d.Branch)
}

// InvalidBranchName is the answer for a name that no branch can have.
func InvalidBranchName(name string) *endpoint.Error {
	answer := invalid("Branch name is invalid")
	if err := object.CheckRefName(Branches + name); err != nil {
		return answer.Describe("%s.", err)
	}
	return answer.Describe("A branch cannot be named HEAD or like the id of an object.")
}

func invalid(format string, args ...any) *endpoint.Error {
	return endpoint.Message(http.StatusBadRequest, format, args...)
}

// Uncommitted is the answer for an error of Commit.
func Uncommitted(err error) error {
	var refused *RefusedError
	var action *edit.ActionError
	var rejected *edit.RefusedObjectError
	switch {
	case errors.As(err, &refused):
		return endpoint.Forbidden(refused.Reason).Describe("%s", refused.Description)
	case errors.As(err, &action):
		return undone(action)
	case errors.As(err, &rejected):
		return invalid("%s", rejected.Error())
	case errors.Is(err, refs.ErrMoved):
		return invalid("The branch has changed in the meantime. Please refresh and try again.")
	case errors.Is(err, refs.ErrInTheWay):
		return invalid("Another branch is in the way")
	case errors.Is(err, edit.ErrTooLarge):
		return endpoint.Message(http.StatusRequestEntityTooLarge, "413 Request Entity Too Large")
	case Missing(err):
		return endpoint.NotFound("Repository")
	}
	return err
}

// undone is the answer for an action that cannot be done.
func undone(a *edit.ActionError) error {
	switch {
	case errors.Is(a, edit.ErrFileExists):
		return invalid("A file with this name already exists")
	case errors.Is(a, edit.ErrFileNotFound):
		return invalid("A file with this name doesn't exist")
	case errors.Is(a, edit.ErrDirectoryExists):
		return invalid("A directory with this name already exists")
	case errors.Is(a, edit.ErrNotDirectory):
		return invalid("A file is in the place of a directory: %s", a.Path)
	case errors.Is(a, edit.ErrFileChanged):
		return invalid("The file has changed since you started editing it: %s", a.Path)
	default:
		return invalid("invalid path: '%.300s'", a.Path)
	}
}
