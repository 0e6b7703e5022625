package containers

import (
	"context"
	"errors"
	"fmt"

	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/internal/registry"
	"github.com/forgeplane/forgeplane/internal/registry/record"
)

// Repository is a container repository.
type Repository struct {
	ID                     int64          `json:"id"`
	Name                   string         `json:"name" doc:"The part of the path after the path of the project; it can be empty."`
	Path                   string         `json:"path"`
	ProjectID              int64          `json:"project_id"`
	Location               string         `json:"location"`
	CreatedAt              endpoint.Time  `json:"created_at"`
	CleanupPolicyStartedAt *endpoint.Time `json:"cleanup_policy_started_at"`
	Status                 *string        `json:"status" doc:"null, delete_scheduled or delete_ongoing."`
	DeleteAPIPath          string         `json:"delete_api_path,omitempty" doc:"Only for those who can delete the repository."`
	TagsCount              *int           `json:"tags_count,omitempty" doc:"If requested."`
	Tags                   *[]Tag         `json:"tags,omitempty" doc:"If requested."`
	Size                   *int64         `json:"size,omitempty" doc:"In bytes, if requested."`
}

// Tag is a tag of a container repository.
type Tag struct {
	Name     string `json:"name"`
	Path     string `json:"path"`
	Location string `json:"location"`
}

// TagDetail is a tag with the properties of its image.
type TagDetail struct {
	Tag
	Revision      string         `json:"revision"`
	ShortRevision string         `json:"short_revision"`
	Digest        string         `json:"digest"`
	CreatedAt     *endpoint.Time `json:"created_at" doc:"The time at which the image was made; null if the image does not say it."`
	TotalSize     *int64         `json:"total_size" doc:"In bytes; null for an artifact without layers."`
}

// place is the project of a repository, as the caller sees it.
type place struct {
	// project is the full path of the project.
	project string
	// admin says that the caller can delete the repository.
	admin bool
}

// wanted selects optional parts of the response.
type wanted struct{ tags, count, size bool }

func (f *Family) page(ctx context.Context, rows []record.Repository, total int, at func(record.Repository) place, w wanted) (endpoint.List[Repository], error) {
	shown := make([]Repository, len(rows))
	for i, r := range rows {
		var err error
		if shown[i], err = f.show(ctx, r, at(r), w); err != nil {
			return endpoint.List[Repository]{}, err
		}
	}
	return endpoint.Cut(shown, total, func(r Repository) Repository { return r }), nil
}

func (f *Family) show(ctx context.Context, r record.Repository, at place, w wanted) (Repository, error) {
	path := registry.PathOf(at.project, r.Name)
	shown := Repository{ID: r.ID, Name: r.Name, Path: path, ProjectID: r.ProjectID, Location: f.ImagesHost + "/" + path, CreatedAt: endpoint.Time(r.Created)}
	if !r.Cleanup.IsZero() {
		began := endpoint.Time(r.Cleanup)
		shown.CleanupPolicyStartedAt = &began
	}
	if r.Status != "" {
		status := string(r.Status)
		shown.Status = &status
	}
	if at.admin {
		shown.DeleteAPIPath = fmt.Sprintf("/api/v4/projects/%d/registry/repositories/%d", r.ProjectID, r.ID)
	}
	if w == (wanted{}) {
		return shown, nil
	}
	err := f.add(ctx, &shown, r, w)
	return shown, err
}

// add adds the requested parts to a repository.
func (f *Family) add(ctx context.Context, shown *Repository, r record.Repository, w wanted) error {
	images, err := f.Images.Images(ctx, r)
	if err != nil {
		return err
	}
	if w.tags || w.count {
		names, err := images.Tags(ctx)
		if err != nil {
			return err
		}
		count := len(names)
		shown.TagsCount = &count
		if w.tags {
			tags := f.showTags(shown.Path, names)
			shown.Tags = &tags
		}
		if !w.count {
			shown.TagsCount = nil
		}
	}
	if w.size {
		size, err := images.Size(ctx)
		if errors.Is(err, registry.ErrSizing) {
			return endpoint.Unavailable(err.Error())
		}
		if err != nil {
			return err
		}
		shown.Size = &size
	}
	return nil
}

func (f *Family) showTags(path string, names []string) []Tag {
	tags := make([]Tag, len(names))
	for i, name := range names {
		tags[i] = f.showTag(path, name)
	}
	return tags
}

func (f *Family) showTag(path, name string) Tag {
	path += ":" + name
	return Tag{Name: name, Path: path, Location: f.ImagesHost + "/" + path}
}
