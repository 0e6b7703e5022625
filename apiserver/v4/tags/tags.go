// Package tags is the family of the tags in the repository of a project.
package tags

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/family"
	"github.com/forgeplane/forgeplane/apiserver/ref"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/edit"
	"github.com/forgeplane/forgeplane/internal/git/object"
	"github.com/forgeplane/forgeplane/internal/git/refs"
	"github.com/forgeplane/forgeplane/internal/git/update"
)

// Family serves the tags of projects.
type Family struct {
	family.Kit
}

// New returns the family.
func New(k family.Kit) *Family { return &Family{k} }

// Table lists the endpoints. None requires signing in first: callers who may not see a project receive 404, even if they want to change
// something.
func (f *Family) Table() endpoint.Table {
	return endpoint.Table{
		endpoint.Get("/projects/{id}/repository/tags", f.list).Needs(auth.ReadCode).
			Anonymous(endpoint.Served).Doc("List the tags of the repository."),
		endpoint.Get("/projects/{id}/repository/tags/{tag_name}", f.get).Needs(auth.ReadCode).
			Anonymous(endpoint.Served).Doc("Get a tag."),
		endpoint.Post("/projects/{id}/repository/tags", f.create).Needs(auth.PushCode).
			Anonymous(endpoint.Hidden).Doc("Create a tag."),
		endpoint.Delete("/projects/{id}/repository/tags/{tag_name}", f.remove).Needs(auth.PushCode).
			Anonymous(endpoint.Hidden).Conditional().Doc("Delete a tag."),
	}
}

type listRequest struct {
	ref.Paging
	Search  string `param:"search" doc:"Part of a name; ^ before it for how a name begins, $ behind it for how it ends."`
	OrderBy string `param:"order_by" values:"name,updated,version" default:"updated" doc:"Field that orders the list."`
	Sort    string `param:"sort" values:"asc,desc" default:"desc" doc:"In which direction."`
}

// orders has an order for each value of order_by.
var orders = map[string]refs.Order{"name": refs.ByName, "updated": refs.ByDate, "version": refs.ByVersion}

func (f *Family) list(ctx context.Context, s auth.Project, r *listRequest) (none endpoint.List[Tag], err error) {
	repo, err := f.repository(ctx, s)
	if ref.Missing(err) {
		return endpoint.Page(r.Paging.Paging, nil, func(t Tag) Tag { return t }), nil
	} else if err != nil {
		return none, err
	}
	all, err := refs.Sorted(ctx, repo, ref.Tags, orders[r.OrderBy], r.Sort == "desc")
	if err != nil && !ref.Missing(err) {
		return none, err
	}
	var byName func(a, b string) int
	if r.OrderBy == "name" {
		byName = strings.Compare
		if r.Sort == "desc" {
			byName = func(a, b string) int { return strings.Compare(b, a) }
		}
	}
	page, err := ref.Page(r.Paging, all, ref.Search(r.Search), byName)
	if err != nil {
		return none, err
	}
	return endpoint.Each(page, func(rows []refs.Ref) ([]Tag, error) { return f.show(ctx, s, repo, rows) })
}

func (f *Family) repository(ctx context.Context, s auth.Project) (*git.Repository, error) {
	return f.Repositories.Content(ctx, s.Scope.Project)
}

// find returns the tag with a name, and its repository.
func (f *Family) find(ctx context.Context, s auth.Project, name string) (repo *git.Repository, t refs.Ref, err error) {
	if object.CheckRefName(ref.Tags+name) != nil {
		return nil, t, endpoint.NotFound("Tag")
	}
	repo, t, err = ref.Find(ctx, f.Repositories, s.Scope.Project, ref.Tags+name)
	if ref.Missing(err) {
		err = endpoint.NotFound("Tag")
	}
	return repo, t, err
}

type tagRequest struct {
	TagName string `param:"tag_name" doc:"Name of the tag."`
}

func (f *Family) get(ctx context.Context, s auth.Project, r *tagRequest) (Tag, error) {
	repo, t, err := f.find(ctx, s, r.TagName)
	if err != nil {
		return Tag{}, err
	}
	return f.showOne(ctx, s, repo, t)
}

type createRequest struct {
	TagName string `param:"tag_name" required:"" example:"v1.2.0" doc:"Name of the new tag."`
	Ref     string `param:"ref" required:"" example:"main" doc:"The branch, tag or commit that is tagged."`
	Message string `param:"message" doc:"Makes the tag an annotated one, by the caller."`
}

func (f *Family) create(ctx context.Context, s auth.Project, r *createRequest) (none Tag, err error) {
	made := refs.Ref{Name: ref.Tags + r.TagName, Type: "commit"}
	if object.CheckRefName(made.Name) != nil {
		return none, endpoint.Message(http.StatusBadRequest, "Tag name invalid")
	}
	repo, _, err := ref.Find(ctx, f.Repositories, s.Scope.Project, made.Name)
	if err == nil {
		return none, exists(r.TagName)
	}
	if errors.Is(err, refs.ErrNotFound) {
		made.Object, err = refs.Commit(ctx, repo, r.Ref)
	}
	if ref.Missing(err) || r.Ref == "" {
		return none, endpoint.Message(http.StatusBadRequest, "Target %s is invalid", r.Ref)
	} else if err != nil {
		return none, err
	}
	err = f.Refs.Write(ctx, s, repo, func(ctx context.Context) (_ []update.Ref, err error) {
		if message := strings.TrimSpace(r.Message); message != "" {
			made, err = f.annotate(ctx, s, repo, made, message)
		}
		return []update.Ref{{Name: made.Name, New: made.Object}}, err
	})
	var refused *ref.RefusedError
	switch {
	case errors.As(err, &refused):
		return none, refused.Answer()
	case errors.Is(err, refs.ErrMoved):
		return none, exists(r.TagName)
	case errors.Is(err, refs.ErrInTheWay):
		return none, endpoint.Message(http.StatusBadRequest, "Failed to create tag '%s': another tag is in the way", r.TagName)
	case err != nil:
		return none, err
	}
	return f.showOne(ctx, s, repo, made)
}

func exists(name string) error {
	return endpoint.Message(http.StatusBadRequest, "Tag %s already exists", name)
}

// annotate writes an annotated tag by the caller for the object that t names.
func (f *Family) annotate(ctx context.Context, s auth.Project, repo *git.Repository, t refs.Ref, message string) (refs.Ref, error) {
	person, err := s.Caller.Person()
	if err != nil {
		return t, err
	}
	id, err := edit.Tag(ctx, repo, object.Tag{
		Name: strings.TrimPrefix(t.Name, ref.Tags), Object: t.Object, Type: t.Type, Message: message,
		Tagger: object.Signature{Name: catalog.DisplayName(person), Email: person.Spec.Email, When: f.Clock.Now()},
	})
	return refs.Ref{Name: t.Name, Object: id, Type: "tag"}, err
}

func (f *Family) remove(ctx context.Context, s auth.Project, r *tagRequest) (none endpoint.None, err error) {
	repo, t, err := f.find(ctx, s, r.TagName)
	if err != nil {
		return none, err
	}
	commit, err := repo.Objects(ctx, t.Object+"^{commit}")
	if err != nil {
		return none, err
	}
	if id := commit[0].ID; id != "" {
		if err := ref.Unmodified(ctx, repo, id); err != nil {
			return none, err
		}
	}
	var refused *ref.RefusedError
	switch err := f.Refs.Update(ctx, s, repo, update.Ref{Name: t.Name, Old: t.Object}); {
	case errors.As(err, &refused):
		return none, refused.Answer()
	case errors.Is(err, refs.ErrMoved):
		return none, endpoint.Conflict("The tag has changed in the meantime")
	default:
		return none, err
	}
}
