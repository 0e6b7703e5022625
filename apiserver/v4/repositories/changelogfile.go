package repositories

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/ref"
	"github.com/forgeplane/forgeplane/internal/changelog"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/edit"
	"github.com/forgeplane/forgeplane/internal/git/object"
	"github.com/forgeplane/forgeplane/internal/git/refs"
	"github.com/forgeplane/forgeplane/internal/git/snapshot"
)

// maxChangelog is the maximum size of a changelog file to update, in bytes.
const maxChangelog = 10 << 20

type addNotesRequest struct {
	notesRequest
	Branch  string `param:"branch" doc:"The branch that gets the commit; the default branch if it is not given."`
	File    string `param:"file" default:"CHANGELOG.md" doc:"Path of the changelog."`
	Message string `param:"message" doc:"Message of the commit; Add changelog for version X if it is not given."`
}

// addNotes commits a section, unless the changelog has one for the version. Clients expect 200 in both cases.
func (f *Family) addNotes(ctx context.Context, s auth.Project, r *addNotesRequest) (status int, err error) {
	if _, ok := changelog.ParseVersion(r.Version); !ok {
		return 0, endpoint.Parameters("version is invalid")
	}
	repo, err := f.repository(ctx, s)
	if err != nil {
		return 0, ungenerated(err)
	}
	branch := r.Branch
	if branch == "" {
		head, err := refs.ReadHead(ctx, repo)
		if err != nil {
			return 0, ungenerated(err)
		}
		branch = head.Branch
	}
	if may, err := f.Refs.MayPush(ctx, s, ref.Branches+branch); err != nil {
		return 0, err
	} else if !may.Allowed {
		return 0, endpoint.Forbidden(notAllowed).Describe("%s", may.Reason)
	}
	if err := f.commitNotes(ctx, s, repo, branch, r); err != nil && !errors.Is(err, errPresent) {
		return 0, uncommitted(err)
	}
	return http.StatusOK, nil
}

// errPresent is returned if a changelog already has the section.
var errPresent = errors.New("the changelog already has a section for this version")

func (f *Family) commitNotes(ctx context.Context, s auth.Project, repo *git.Repository, branch string, r *addNotesRequest) error {
	tip, err := tip(ctx, repo, branch)
	if err != nil {
		return err
	}
	section, err := f.section(ctx, s, repo, &r.notesRequest, tip)
	if err != nil {
		return err
	}
	_, err = f.Refs.Commit(ctx, s, repo, ref.Draft{
		Branch: branch, When: f.Clock.Now(), Message: cmp.Or(r.Message, "Add changelog for version "+r.Version),
		// The branch, and the changelog in it, can have changed since the section was generated.
		ActionsAt: func(ctx context.Context, commit string) ([]edit.Action, error) {
			return insert(ctx, repo, commit, cmp.Or(r.File, "CHANGELOG.md"), section)
		},
	})
	return err
}

// tip returns the newest commit of a branch.
func tip(ctx context.Context, repo *git.Repository, branch string) (string, error) {
	name := ref.Branches + branch
	if object.CheckRefName(name) == nil {
		found, err := repo.Objects(ctx, name+"^{commit}")
		if err != nil {
			return "", err
		}
		if found[0].ID != "" {
			return found[0].ID, nil
		}
	}
	return "", changelog.Error(fmt.Sprintf("There is no branch %.100q", branch))
}

// insert returns a function that adds a section to the changelog of a commit. The error is errPresent if the section exists already.
func insert(ctx context.Context, repo *git.Repository, commit, file string, s changelog.Section) ([]edit.Action, error) {
	kind := edit.UpdateFile
	before, err := snapshot.ReadFile(ctx, repo, commit, file, maxChangelog)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrInvalid):
		kind = edit.CreateFile // it fails if the path is invalid or another object has it
	case errors.Is(err, git.ErrFileTooLarge):
		return nil, changelog.Error(fmt.Sprintf("The changelog is larger than %d bytes", maxChangelog))
	case err != nil:
		return nil, err
	default:
		if entry, err := snapshot.Entry(ctx, repo, commit, file); err != nil {
			return nil, err
		} else if entry.Mode == "120000" { // a symbolic link, whose text is not a changelog
			return nil, changelog.Error(fmt.Sprintf("%.100q is a symbolic link", file))
		}
	}
	after, changed := s.Insert(string(before))
	if !changed {
		return nil, errPresent
	}
	return []edit.Action{{Kind: kind, Path: file, Content: []byte(after)}}, nil
}

// uncommitted returns the response for a section that was not committed.
func uncommitted(err error) error {
	var answer *endpoint.Error
	switch {
	case ref.Missing(err), !errors.As(ref.Uncommitted(err), &answer):
		return ungenerated(err)
	case answer.Status == http.StatusBadRequest:
		return ungenerated(changelog.Error("The changelog could not be committed: " + answer.Text()))
	default:
		return answer
	}
}
