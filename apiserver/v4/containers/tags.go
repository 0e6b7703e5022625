package containers

import (
	"context"
	"errors"
	"net/http"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/registry"
	"github.com/forgeplane/forgeplane/internal/registry/record"
)

// shortRevision is the length of the short form of a revision.
const shortRevision = 9

type tagsRequest struct {
	endpoint.Paging
}

func (f *Family) tags(ctx context.Context, s auth.ProjectRecord[repository], r *tagsRequest) (endpoint.List[Tag], error) {
	images, err := f.Images.Images(ctx, s.Record.Repository)
	if err != nil {
		return endpoint.List[Tag]{}, err
	}
	names, err := images.Newest(ctx)
	if errors.Is(err, registry.ErrOrdering) {
		return endpoint.List[Tag]{}, endpoint.Unavailable(err.Error())
	}
	if err != nil {
		return endpoint.List[Tag]{}, err
	}
	path := registry.PathOf(s.Scope.Path(), s.Record.Name)
	return endpoint.Cut(endpoint.Rows(r.Paging, names), len(names), func(name string) Tag { return f.showTag(path, name) }), nil
}

type tagRequest struct {
	Name string `param:"tag_name" doc:"Name of the tag."`
}

func (f *Family) tag(ctx context.Context, s auth.ProjectRecord[repository], r *tagRequest) (TagDetail, error) {
	images, err := f.Images.Images(ctx, s.Record.Repository)
	if err != nil {
		return TagDetail{}, err
	}
	d, err := images.Detail(ctx, r.Name)
	if err != nil {
		return TagDetail{}, noTag(err)
	}
	shown := TagDetail{
		Tag:      f.showTag(registry.PathOf(s.Scope.Path(), s.Record.Name), r.Name),
		Revision: d.Revision, ShortRevision: d.Revision[:min(shortRevision, len(d.Revision))], Digest: d.Digest.String(), TotalSize: d.Size,
	}
	if d.Created != nil {
		created := endpoint.Time(*d.Created)
		shown.CreatedAt = &created
	}
	return shown, nil
}

// noTag converts an error about a tag to a response.
func noTag(err error) error {
	switch {
	case errors.Is(err, registry.ErrNoTag):
		return endpoint.NotFound("Tag")
	case errors.Is(err, record.ErrDeleted), errors.Is(err, record.ErrNotFound):
		return endpoint.BadRequest(record.ErrDeleted.Error())
	default:
		return err
	}
}

// removeTag deletes a tag. The body of the response is the status, as in the reference product.
func (f *Family) removeTag(ctx context.Context, s auth.ProjectRecord[repository], r *tagRequest) (int, error) {
	if err := writable(s); err != nil {
		return 0, err
	}
	images, err := f.Images.Images(ctx, s.Record.Repository)
	if err != nil {
		return 0, err
	}
	err = noTag(images.Untag(ctx, r.Name))
	switch {
	case err != nil && !errors.As(err, new(*endpoint.Error)):
		return 0, endpoint.BadRequest("the tag cannot be deleted at the moment").Because(err)
	case err != nil:
		return 0, err
	}
	audit.From(ctx).Did("delete", audit.ContainerTag, registry.PathOf(s.Scope.Path(), s.Record.Name)+":"+r.Name, 0)
	return http.StatusOK, nil
}
