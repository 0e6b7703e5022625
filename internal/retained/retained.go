// Package retained finds the repositories that deleted projects have left, and the projects that are about to.
package retained

import (
	"context"
	"errors"
	"strconv"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
)

const (
	// indexFormer holds the keys of the deleted project of a retained repository: its name and its full path.
	indexFormer = "former"
	// indexNamespace holds the namespace of the deleted project of a retained repository.
	indexNamespace = "namespace"
	// indexID holds the REST id of the deleted project of a retained repository.
	indexID = "formerID"
	// indexAdopter holds the key of the project that an administrator gives a retained repository to, and the UID of the one that is
	// taking it over.
	indexAdopter = "adopter"
	// indexLeaving holds the namespace of a project that is being deleted.
	indexLeaving = "leaving"
)

// Indexes returns the indexes of retained repositories, which only the managers can read, and of the projects that are about to leave one.
func Indexes() []catalog.Index {
	return []catalog.Index{
		of(indexFormer, func(r *v1alpha1.RetainedRepository) []string {
			was := r.Spec.Project
			keys := []string{named(was.Namespace, was.Name)}
			if was.FullPath == "" {
				return keys
			}
			return append(keys, at(was.FullPath))
		}),
		of(indexID, func(r *v1alpha1.RetainedRepository) []string {
			return []string{strconv.FormatInt(r.Spec.Project.ID, 10)}
		}),
		of(indexAdopter, func(r *v1alpha1.RetainedRepository) (keys []string) {
			if by := r.Spec.AdoptBy; by != nil {
				keys = append(keys, named(by.Namespace, by.Name))
			}
			if by := r.Status.AdoptedBy; by != nil {
				keys = append(keys, by.UID)
			}
			return keys
		}),
		of(catalog.IndexStorage, func(r *v1alpha1.RetainedRepository) []string { return []string{r.Spec.Storage} }),
		of(indexNamespace, func(r *v1alpha1.RetainedRepository) []string { return []string{r.Spec.Project.Namespace} }),
		{Of: &v1alpha1.Project{}, Name: indexLeaving, Values: func(o client.Object) []string {
			if o.GetDeletionTimestamp().IsZero() {
				return nil
			}
			return []string{o.GetNamespace()}
		}},
	}
}

func of(name string, values func(*v1alpha1.RetainedRepository) []string) catalog.Index {
	return catalog.Index{Of: &v1alpha1.RetainedRepository{}, Name: name, Values: func(o client.Object) []string {
		return values(o.(*v1alpha1.RetainedRepository))
	}}
}

// named is the key of a project by its name.
func named(namespace, name string) string {
	return catalog.Key(namespace, v1alpha1.Reference{Name: name})
}

// at is the key of a project by its full path.
func at(fullPath string) string { return catalog.Key("", v1alpha1.Reference{Path: fullPath}) }

// For returns, in no order, the retained repositories that a project may have something to do with: those of projects of its
// namespace and name or of its full path, those that it names in adoptRepository, and those that name it. The path may be empty. Some
// of them may be of other namespaces.
func For(ctx context.Context, c *catalog.Catalog, p *v1alpha1.Project, fullPath string) ([]*v1alpha1.RetainedRepository, error) {
	former, wanted := []string{named(p.Namespace, p.Name)}, p.Spec.AdoptRepository
	if wanted != "" {
		former = append(former, named(p.Namespace, wanted))
	}
	if fullPath != "" {
		former = append(former, at(fullPath))
	}
	found, err := catalog.List[*v1alpha1.RetainedRepository](ctx, c, indexFormer, former...)
	if err != nil {
		return nil, err
	}
	adopting, err := catalog.List[*v1alpha1.RetainedRepository](ctx, c, indexAdopter, named(p.Namespace, p.Name), string(p.UID))
	if err != nil {
		return nil, err
	}
	if wanted != "" {
		r, err := catalog.Get[*v1alpha1.RetainedRepository](ctx, c, "", wanted)
		if err == nil {
			adopting = append(adopting, r)
		} else if !errors.Is(err, catalog.ErrNotFound) {
			return nil, err
		}
	}
	seen := map[string]bool{}
	for _, r := range found {
		seen[r.Name] = true
	}
	for _, r := range adopting {
		if !seen[r.Name] {
			seen[r.Name] = true
			found = append(found, r)
		}
	}
	return found, nil
}

// TakenBy returns the retained repositories that a project is taking over.
func TakenBy(ctx context.Context, c *catalog.Catalog, p *v1alpha1.Project) ([]*v1alpha1.RetainedRepository, error) {
	return catalog.List[*v1alpha1.RetainedRepository](ctx, c, indexAdopter, string(p.UID))
}

// WithID returns the retained repositories of deleted projects that had an id in the REST API.
func WithID(ctx context.Context, c *catalog.Catalog, id int64) ([]*v1alpha1.RetainedRepository, error) {
	return catalog.List[*v1alpha1.RetainedRepository](ctx, c, indexID, strconv.FormatInt(id, 10))
}

// OnStorage returns the retained repositories on a shard.
func OnStorage(ctx context.Context, c *catalog.Catalog, storage string) ([]*v1alpha1.RetainedRepository, error) {
	return catalog.List[*v1alpha1.RetainedRepository](ctx, c, catalog.IndexStorage, storage)
}

// From returns the retained repositories that projects of a namespace have left, of earlier namespaces of its name too.
func From(ctx context.Context, c *catalog.Catalog, namespace string) ([]*v1alpha1.RetainedRepository, error) {
	return catalog.List[*v1alpha1.RetainedRepository](ctx, c, indexNamespace, namespace)
}

// Leaving returns the projects of a namespace that are being deleted.
func Leaving(ctx context.Context, c *catalog.Catalog, namespace string) ([]*v1alpha1.Project, error) {
	return catalog.List[*v1alpha1.Project](ctx, c, indexLeaving, namespace)
}
