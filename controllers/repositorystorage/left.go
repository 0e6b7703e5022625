package repositorystorage

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/frame"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/repository"
)

// staleAge is when the shard stops saying whose a repository is that is not there, and whose project is gone: that may have gone while
// the repository was being made, as by a long import.
const staleAge = 24 * time.Hour

// retainLeft makes the RetainedRepositories of projects that have gone without leaving one, as when somebody has removed their finalizer.
// Nothing is removed on that ground, whatever the deletionPolicy was: a project can also be missing because etcd was restored from a
// backup that is older than the project.
func (c *Controller) retainLeft(ctx context.Context, s *v1alpha1.RepositoryStorage) error {
	now := c.options.Clock.Now()
	if last, ok := c.lookedThrough.Load(s.UID); ok && now.Sub(last.(time.Time)) < probeInterval {
		return nil // there may be very many, and something happens to a shard all the time
	}
	names, err := repository.OwnerNames(s)
	if err != nil {
		return frame.WaitingFor(probeInterval, v1alpha1.ReasonStorageUnavailable, "%s cannot be read: %w", s.Spec.Path, cause(err))
	}
	here, err := c.owned(ctx, s)
	if err != nil {
		return err
	}
	var cluster types.UID
	for _, name := range names {
		if here[name] {
			continue
		}
		if cluster == "" {
			if cluster, err = repository.Cluster(ctx, c.options.Live); err != nil {
				return err
			}
		}
		// As of a record: one of them is no reason to put a whole shard out of use.
		if err := c.retainOne(ctx, s, name, cluster); err != nil {
			log.FromContext(ctx).Error(err, "Retaining the repository of a deleted project", "storage", s.Name, "record", name)
		}
	}
	c.lookedThrough.Store(s.UID, now)
	return nil
}

// owned are the names of what a shard says of projects that are there.
func (c *Controller) owned(ctx context.Context, s *v1alpha1.RepositoryStorage) (map[string]bool, error) {
	projects, err := catalog.List[*v1alpha1.Project](ctx, c.frame.Catalog, catalog.IndexStorage, s.Name)
	if err != nil {
		return nil, err
	}
	here := make(map[string]bool, len(projects))
	for _, p := range projects {
		here[repository.OwnerName(p)] = true
	}
	return here, nil
}

// retainOne makes the RetainedRepository of what a shard says to be a project's, if the project is gone.
func (c *Controller) retainOne(ctx context.Context, s *v1alpha1.RepositoryStorage, name string, cluster types.UID) error {
	o, err := repository.ReadOwner(s, name)
	if o == nil || err != nil || o.Cluster != cluster {
		return err
	}
	if gone, err := c.gone(ctx, o.Retained.Spec.Project); !gone || err != nil {
		return err
	}
	switch r, err := catalog.Get[*v1alpha1.RetainedRepository](ctx, c.frame.Catalog, "", o.Retained.Name); {
	case err == nil && r.DeletionTimestamp.IsZero() && r.Spec.Storage == s.Name:
		return o.Forget() // it is recorded
	case err == nil:
		return nil // it is being purged, or has a record on another shard
	case !errors.Is(err, catalog.ErrNotFound):
		return err
	}
	return c.retain(ctx, o)
}

// retain makes the RetainedRepository that an owner has not made who is gone.
func (c *Controller) retain(ctx context.Context, o *repository.Owner) error {
	repo, err := c.repositories.OfRetained(ctx, o.Retained)
	if err != nil {
		return err
	}
	switch err := repo.Check(); {
	case errors.Is(err, git.ErrNotFound) && c.options.Clock.Since(o.Written) > staleAge:
		return o.Forget()
	case errors.Is(err, git.ErrNotFound), errors.Is(err, git.ErrStorageMissing):
		return nil
	case err == nil:
		if err := complete(ctx, o.Retained, repo); err != nil {
			return err
		}
	case !errors.Is(err, git.ErrNotRepository):
		return err
	}
	o.Retained.Spec.RetainedAt = metav1.NewTime(c.options.Clock.Now())
	was := o.Retained.Spec.Project
	told := audit.Because(ctx, audit.Event{
		Action: "retain", Reason: "the project was deleted, and its finalizer was removed before the repository was retained",
		About: &audit.Object{Kind: "Project", Namespace: was.Namespace, Name: was.Name, ID: was.ID, UID: was.UID, Path: was.FullPath},
	})
	// The file goes when the cache shows the record: until one of them does, a new project of that name would begin with nothing.
	return client.IgnoreAlreadyExists(c.frame.Client.Create(told, o.Retained))
}

// complete says what is in a repository now, which counts for what its namespace has left.
func complete(ctx context.Context, r *v1alpha1.RetainedRepository, repo *git.Repository) error {
	repo.Evict()
	head, err := repo.Head(ctx)
	if err != nil {
		return fmt.Errorf("reading HEAD: %w", err)
	}
	r.Spec.Project.DefaultBranch = head.Branch
	if r.Spec.SizeBytes, err = repo.Size(ctx); err != nil {
		return fmt.Errorf("measuring the repository: %w", err)
	}
	return nil
}

// gone reports whether a project is not there any more. The cache says so only of those that are there.
func (c *Controller) gone(ctx context.Context, was v1alpha1.FormerProject) (bool, error) {
	p, err := c.frame.Catalog.Project(ctx, was.Namespace, v1alpha1.Reference{Name: was.Name})
	if err == nil && string(p.UID) == was.UID {
		return false, nil
	}
	if err != nil && !errors.Is(err, catalog.ErrNotFound) {
		return false, err
	}
	var there v1alpha1.ProjectList
	if err := c.options.Live.List(ctx, &there, client.InNamespace(was.Namespace), client.MatchingFields{"metadata.name": was.Name}); err != nil {
		return false, fmt.Errorf("checking whether project %s/%s still exists: %w", was.Namespace, was.Name, err)
	}
	for i := range there.Items {
		if string(there.Items[i].UID) == was.UID {
			return false, nil
		}
	}
	return true, nil
}
