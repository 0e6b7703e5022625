package tags

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/commit"
	"github.com/forgeplane/forgeplane/apiserver/ref"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/object"
	"github.com/forgeplane/forgeplane/internal/git/refs"
)

// Tag is a tag in the REST API.
type Tag struct {
	Name      string         `json:"name"`
	Message   *string        `json:"message" doc:"Null for a tag that is not annotated."`
	Target    string         `json:"target" doc:"Id of the tag where it is annotated, and of the commit otherwise."`
	Commit    *commit.Commit `json:"commit" doc:"Null where something else is tagged."`
	Release   *Release       `json:"release" doc:"Always null."`
	Protected bool           `json:"protected" doc:"Always false."`
	CreatedAt *commit.Time   `json:"created_at" doc:"Null for a tag that is not annotated."`
}

// Release is the release of a tag.
type Release struct {
	TagName     string `json:"tag_name"`
	Description string `json:"description"`
}

func (f *Family) showOne(ctx context.Context, s auth.Project, repo *git.Repository, t refs.Ref) (Tag, error) {
	all, err := f.show(ctx, s, repo, []refs.Ref{t})
	if err != nil {
		return Tag{}, err
	}
	return all[0], nil
}

// show returns tags in the form of the REST API.
func (f *Family) show(ctx context.Context, s auth.Project, repo *git.Repository, all []refs.Ref) ([]Tag, error) {
	projectURL := f.WebURL + "/" + s.Scope.Path()
	shown := make([]Tag, len(all))
	for i, t := range all {
		shown[i] = Tag{Name: ref.Name(t), Target: t.Object}
		tagged, err := git.Object{ID: t.Object, Type: t.Type}, error(nil)
		if t.Type == "tag" {
			tagged, err = shown[i].annotate(ctx, repo)
		}
		if err == nil && tagged.Type == "commit" {
			shown[i].Commit, err = ref.Commit(ctx, repo, tagged.ID, projectURL)
		}
		if err != nil {
			return nil, err
		}
	}
	return shown, nil
}

// annotate adds the contents of an annotated tag, unless the tag is too large to be shown. It returns the tagged object, and follows nested
// tags to their commit.
func (t *Tag) annotate(ctx context.Context, repo *git.Repository) (tagged git.Object, err error) {
	found, err := repo.ReadTag(ctx, t.Target)
	switch {
	case errors.Is(err, git.ErrFileTooLarge):
	case err != nil:
		return tagged, err
	default:
		message := object.Abridge(strings.TrimRight(found.Message, "\n"))
		t.Message = &message
		if when := found.Tagger.When; !when.IsZero() && when.After(time.Unix(0, 0)) {
			t.CreatedAt = (*commit.Time)(&when)
		}
		if found.Type != "tag" {
			return git.Object{ID: found.Object, Type: found.Type}, nil
		}
	}
	objects, err := repo.Objects(ctx, t.Target+"^{commit}")
	if err != nil {
		return tagged, err
	}
	return objects[0], nil
}
