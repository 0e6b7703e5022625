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
)

// Tag is a tag as clients of the API know it.
type Tag struct {
	Name      string         `json:"name"`
	Message   *string        `json:"message" doc:"Null for a tag that is not annotated."`
	Target    string         `json:"target" doc:"Id of the tag where it is annotated, and of the commit otherwise."`
	Commit    *commit.Commit `json:"commit" doc:"Null where something else is tagged."`
	Release   *Release       `json:"release" doc:"Always null."`
	Protected bool           `json:"protected" doc:"Always false."`
	CreatedAt *commit.Time   `json:"created_at" doc:"Null for a tag that is not annotated."`
}

// Release is what is said of the release that a tag stands for.
type Release struct {
	TagName     string `json:"tag_name"`
	Description string `json:"description"`
}

func (f *Family) showOne(ctx context.Context, repo *git.Repository, t git.Ref) (Tag, error) {
	all, err := f.show(ctx, repo, []git.Ref{t})
	if err != nil {
		return Tag{}, err
	}
	return all[0], nil
}

// show is how tags are shown.
func (f *Family) show(ctx context.Context, repo *git.Repository, all []git.Ref) ([]Tag, error) {
	tagged := make([]string, len(all))
	for i, t := range all {
		tagged[i] = t.Object + "^{commit}"
	}
	commits, err := repo.Objects(ctx, tagged...)
	if err != nil {
		return nil, err
	}
	projectURL := f.webURL + "/" + auth.From(ctx).Scope.Path()
	shown := make([]Tag, len(all))
	for i, t := range all {
		shown[i] = Tag{Name: ref.Name(t), Target: t.Object}
		if t.Type == "tag" {
			if err := shown[i].annotate(ctx, repo); err != nil {
				return nil, err
			}
		}
		if commits[i].ID == "" {
			continue
		}
		if shown[i].Commit, err = ref.Commit(ctx, repo, commits[i].ID, projectURL); err != nil {
			return nil, err
		}
	}
	return shown, nil
}

// annotate adds what stands in an annotated tag, unless it is too large to be shown.
func (t *Tag) annotate(ctx context.Context, repo *git.Repository) error {
	found, err := repo.ReadTag(ctx, t.Target)
	if errors.Is(err, git.ErrFileTooLarge) {
		return nil
	} else if err != nil {
		return err
	}
	message := git.Abridge(strings.TrimRight(found.Message, "\n"))
	t.Message = &message
	if when := found.Tagger.When; !when.IsZero() && when.After(time.Unix(0, 0)) {
		t.CreatedAt = (*commit.Time)(&when)
	}
	return nil
}
