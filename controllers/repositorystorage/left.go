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
	"github.com/forgeplane/forgeplane/internal/git/refs"
	"github.com/forgeplane/forgeplane/internal/git/upkeep"
	"github.com/forgeplane/forgeplane/internal/repository"
)

// staleAge is the age at which a shard's owner record is removed if neither the repository nor the project exists. The project may have
// been deleted while its repository was being created, for example by a long import.
const staleAge = 24 * time.Hour

// retainLeft creates the RetainedRepositories of projects that disappeared without leaving one, for example because somebody removed their
// finalizer. It never removes a repository, whatever the deletionPolicy was, because a project can also be missing after etcd was restored
// from a backup that is older than the project.
func (c *Controller) retainLeft(ctx context.Context, s *v1alpha1.RepositoryStorage) error {
	now := c.options.Clock.Now()
	if last, ok := c.lookedThrough.Load(s.UID); ok && now.Sub(last.(time.Time)) < probeInterval {
		return nil // there can be very many records, and shards are reconciled often
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
		// As with records, one of them must not put a whole shard out of use.
		if err := c.retainOne(ctx, s, name, cluster); err != nil {
			log.FromContext(ctx).Error(err, "Failed to retain the repository of a deleted project", "storage", s.Name, "record", name)
		}
	}
	c.lookedThrough.Store(s.UID, now)
	return nil
}

// owned returns the names of the shard's owner files of existing projects.
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

// retainOne creates the RetainedRepository for an owner file of a shard, if the project is gone.
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

// retain creates the RetainedRepository that a deleted project did not create.
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
		// A move removes what it has left.
		if by, err := repo.RetiredBy(); err != nil || by != "" {
			return err
		}
		if err := complete(ctx, o.Retained, repo); err != nil {
			return err
		}
	case !errors.Is(err, git.ErrNotRepository):
		return err
	}
	o.Retained.Spec.RetainedAt = metav1.NewTime(c.options.Clock.Now())
	was := o.Retained.Spec.Project
	told := audit.WithReason(ctx, audit.Event{
		Action: "retain", Reason: "the project was deleted, and its finalizer was removed before the repository was retained",
		About: &audit.Object{Kind: "Project", Namespace: was.Namespace, Name: was.Name, ID: was.ID, UID: was.UID, Path: was.FullPath},
	})
	// The owner file is removed once the cache shows the RetainedRepository: without both, a new project of that name would begin with an
	// empty repository.
	return client.IgnoreAlreadyExists(c.frame.Client.Create(told, o.Retained))
}

// complete adds the current content of a repository, whose size counts against the limit of its namespace.
func complete(ctx context.Context, r *v1alpha1.RetainedRepository, repo *git.Repository) error {
	repo.Evict()
	head, err := refs.ReadHead(ctx, repo)
	if err != nil {
		return fmt.Errorf("reading HEAD: %w", err)
	}
	r.Spec.Project.DefaultBranch = head.Branch
	if r.Spec.SizeBytes, err = upkeep.Size(ctx, repo); err != nil {
		return fmt.Errorf("measuring the repository: %w", err)
	}
	return nil
}

// gone reports whether a project no longer exists. The cache is only trusted if it shows the project.
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
