package registry

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/distribution/reference"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/registry/record"
)

// ErrNoProject says that a name does not begin with the path of a project that has a registry.
var ErrNoProject = errors.New("the name does not begin with the path of a project")

// maxLevels is the maximum number of components after the path of the project in the name of a repository.
const maxLevels = 2

// Name is the name of a repository of images: the path of a project, and up to two components after it.
type Name struct {
	Project *v1alpha1.Project
	// Image is the part after the path of the project. It is empty for the repository with the path of the project.
	Image string
}

// Names maps the names that clients use to projects.
type Names struct{ catalog *catalog.Catalog }

// NewNames returns the names of the projects in a catalog.
func NewNames(c *catalog.Catalog) *Names { return &Names{c} }

// Resolve returns the project and image that a name means. A path leads to one project or group, so a name means one project at most. The
// error is ErrNoProject if it means none, such as a name that is not valid.
func (n *Names) Resolve(ctx context.Context, name string) (Name, error) {
	if _, err := reference.WithName(name); err != nil {
		return Name{}, ErrNoProject
	}
	project, image := name, ""
	for range maxLevels + 1 {
		p, err := n.catalog.ProjectByPath(ctx, project)
		switch {
		case err == nil && p.DeletionTimestamp.IsZero() && p.RESTID() != 0:
			return Name{p, image}, nil
		case err != nil && !errors.Is(err, catalog.ErrNotFound) && !catalog.Misplaced(err):
			return Name{}, fmt.Errorf("finding the project of the repository %s: %w", name, err)
		}
		cut := strings.LastIndexByte(project, '/')
		if cut < 0 {
			break
		}
		image = strings.TrimPrefix(project[cut+1:]+"/"+image, "/")
		image = strings.TrimSuffix(image, "/")
		project = project[:cut]
	}
	return Name{}, ErrNoProject
}

// PathOf returns the name of a repository of the project at a full path. Names of images have no capital letters.
func PathOf(projectPath, image string) string {
	name := strings.ToLower(projectPath)
	if image != "" {
		name += "/" + image
	}
	return name
}

// Of returns the current name of a repository. The error is ErrNoProject if its project is gone or has no place in the tree.
func (n *Names) Of(ctx context.Context, r record.Repository) (string, error) {
	p, err := catalog.ByID[*v1alpha1.Project](ctx, n.catalog, r.ProjectID)
	if errors.Is(err, catalog.ErrNotFound) || err == nil && p.UID != r.ProjectUID {
		return "", ErrNoProject
	}
	if err != nil {
		return "", fmt.Errorf("finding the project of container repository %d: %w", r.ID, err)
	}
	s, err := n.catalog.ProjectScope(ctx, p)
	if catalog.Misplaced(err) {
		return "", ErrNoProject
	}
	if err != nil {
		return "", fmt.Errorf("finding the project of container repository %d: %w", r.ID, err)
	}
	return PathOf(s.Path(), r.Name), nil
}

// places is the directory of the repositories in the storage.
const places = "repositories"

// place returns the name under which the storage has the images of a repository.
func place(of record.Repository) (reference.Named, error) {
	named, err := reference.WithName(places + "/" + of.Place)
	if err != nil {
		return nil, fmt.Errorf("finding the images of container repository %d: %w", of.ID, err)
	}
	return named, nil
}
