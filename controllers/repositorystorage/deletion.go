package repositorystorage

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/frame"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/repository"
	"github.com/forgeplane/forgeplane/internal/storagemove"
)

// Finalizer keeps a shard until it holds no repositories, or is lost.
const Finalizer = "forgeplane.dev/repositories"

const (
	// named is the maximum number of repositories in the condition of a shard.
	named = 10
	// page is the number of objects that are read at once past the cache.
	page = 500
)

// release lets a shard go that holds no repositories, or that an administrator has given up.
func (c *Controller) release(ctx context.Context, s *v1alpha1.RepositoryStorage) error {
	if err := c.count(ctx, s); err != nil {
		return err
	}
	held := map[string]bool{}
	if err := c.declared(ctx, s, held); err != nil {
		return err
	}
	advice := "move or delete the projects, and delete the RetainedRepositories"
	if unmounted(s) {
		if s.Annotations[v1alpha1.AnnotationLost] == "true" {
			return nil
		}
		advice += fmt.Sprintf("; or mount %s; or, if the volume is lost, run: kubectl annotate repositorystorage %s %s=true",
			s.Spec.Path, s.Name, v1alpha1.AnnotationLost)
	} else if repository.DirectoryClaim(s).ShownBy(s) && c.distinguish(ctx, s) == nil && !alien(s) { // otherwise they belong to another shard
		if err := c.unrecorded(ctx, s, held); err != nil {
			return err
		}
		left, err := c.unowned(ctx, s, held)
		if err != nil {
			return err
		}
		if left {
			advice += "; and remove the copies of projects that use another shard, which moves have left when this shard was not available"
		}
	}
	if len(held) == 0 {
		if err := c.live(ctx, s, held); err != nil {
			return err
		}
	}
	if len(held) == 0 {
		if err := repository.Unmark(s); err != nil { // a read-only volume keeps nobody waiting
			log.FromContext(ctx).Error(err, "Failed to remove the marker of a volume", "storage", s.Name)
		}
		return nil
	}
	names := slices.Sorted(maps.Keys(held))
	if len(names) > named {
		names = append(names[:named:named], fmt.Sprintf("and %d more", len(names)-named))
	}
	return frame.WaitingFor(probeInterval, v1alpha1.ReasonDeleting, "the shard holds the repositories of %d objects: %s: %s",
		len(held), strings.Join(names, ", "), advice)
}

// unmounted reports whether the volume of a shard is missing.
func unmounted(s *v1alpha1.RepositoryStorage) bool {
	info, err := os.Stat(s.Spec.Path)
	return err != nil || !info.IsDir() || repository.Marked(s) && repository.CheckMarker(s) != nil
}

// declared adds the objects whose repositories are on a shard according to the cache.
func (c *Controller) declared(ctx context.Context, s *v1alpha1.RepositoryStorage, held map[string]bool) error {
	projects, err := catalog.List[*v1alpha1.Project](ctx, c.frame.Catalog, catalog.IndexStorage, s.Name)
	if err != nil {
		return err
	}
	for _, p := range projects {
		held["Project "+p.Namespace+"/"+p.Name] = true
	}
	moves, err := storagemove.Using(ctx, c.frame.Catalog, s.Name)
	if err != nil {
		return err
	}
	for _, m := range moves {
		held["StorageMove "+m.Namespace+"/"+m.Name] = true
	}
	left, err := c.retainedOn(ctx, s)
	for _, r := range left {
		held["RetainedRepository "+r.Name] = true
	}
	return err
}

// unrecorded adds the repositories that only the shard knows. It also creates their RetainedRepositories, so that they can be purged.
func (c *Controller) unrecorded(ctx context.Context, s *v1alpha1.RepositoryStorage, held map[string]bool) error {
	if err := c.recall(ctx, s); err != nil {
		return err
	}
	if err := c.retainLeft(ctx, s); err != nil {
		return err
	}
	records, err := repository.RecordNames(s)
	if err != nil {
		return err
	}
	known, err := c.retainedOn(ctx, s)
	if err != nil {
		return err
	}
	for _, name := range records {
		if known[name] != nil {
			continue
		}
		r, err := repository.ReadRecord(s, name)
		if err == nil && r != nil {
			err = c.hold(ctx, r, held)
		}
		if err != nil {
			held["the record .retained/"+name] = true // nobody can tell that its repository is gone
		}
	}
	return nil
}

// unowned adds the repositories of projects of this cluster that are gone, or use another shard. left reports whether there are some of the
// latter. Nobody removes these: they can be newer than what the project uses, if etcd was restored from a backup.
func (c *Controller) unowned(ctx context.Context, s *v1alpha1.RepositoryStorage, held map[string]bool) (left bool, err error) {
	names, err := repository.OwnerNames(s)
	if err != nil || len(names) == 0 {
		return false, err
	}
	here, err := c.owned(ctx, s)
	if err != nil {
		return false, err
	}
	cluster, err := repository.Cluster(ctx, c.options.Live)
	if err != nil {
		return false, err
	}
	for _, name := range names {
		if here[name] {
			continue
		}
		o, err := repository.ReadOwner(s, name)
		if err == nil && o != nil && o.Cluster == cluster {
			var copied bool
			copied, err = c.holdOwned(ctx, s, o.Retained, held)
			left = left || copied
		}
		if err != nil {
			held["the record .projects/"+name] = true
		}
	}
	return left, nil
}

// holdOwned adds the repository of a project that is not on the shard, if it exists. copied reports whether it is the copy of a project that
// exists, and for which no move is responsible.
func (c *Controller) holdOwned(ctx context.Context, s *v1alpha1.RepositoryStorage, r *v1alpha1.RetainedRepository, held map[string]bool) (copied bool, err error) {
	was := r.Spec.Project
	if gone, err := c.gone(ctx, was); gone || err != nil {
		return false, errors.Join(err, c.hold(ctx, r, held))
	}
	moves, err := storagemove.Using(ctx, c.frame.Catalog, s.Name)
	if err != nil || slices.ContainsFunc(moves, func(m *v1alpha1.StorageMove) bool {
		return m.Status.TargetRef != nil && m.Status.TargetRef.UID == was.UID
	}) {
		return false, err
	}
	exists, err := c.exists(ctx, r)
	if exists {
		held[fmt.Sprintf("the copy of Project %s/%s in %s", was.Namespace, was.Name, repository.PathOfRetained(r))] = true
	}
	return exists, err
}

// hold adds a repository without an object, if it exists.
func (c *Controller) hold(ctx context.Context, r *v1alpha1.RetainedRepository, held map[string]bool) error {
	exists, err := c.exists(ctx, r)
	if exists {
		held["RetainedRepository "+r.Name] = true
	}
	return err
}

// exists reports whether there is something at the path of a retained repository.
func (c *Controller) exists(ctx context.Context, r *v1alpha1.RetainedRepository) (bool, error) {
	repo, err := c.repositories.OfRetained(ctx, r)
	if err != nil {
		return false, err
	}
	return !errors.Is(repo.Check(), git.ErrNotFound), nil
}

// live is declared past the cache, which may not show yet what a project has chosen or left just before.
func (c *Controller) live(ctx context.Context, s *v1alpha1.RepositoryStorage, held map[string]bool) error {
	for next := ""; ; {
		var projects v1alpha1.ProjectList
		if err := c.options.Live.List(ctx, &projects, client.Limit(page), client.Continue(next)); err != nil {
			return fmt.Errorf("checking whether projects are on the shard: %w", err)
		}
		for i := range projects.Items {
			if p := &projects.Items[i]; storage(p) == s.Name || p.Status.Move != nil && p.Status.Move.Destination == s.Name {
				held["Project "+p.Namespace+"/"+p.Name] = true
			}
		}
		if next = projects.Continue; next == "" {
			break
		}
	}
	for next := ""; ; {
		var left v1alpha1.RetainedRepositoryList
		if err := c.options.Live.List(ctx, &left, client.MatchingFields{"spec.storage": s.Name}, client.Limit(page), client.Continue(next)); err != nil {
			return fmt.Errorf("checking whether retained repositories are on the shard: %w", err)
		}
		for i := range left.Items {
			held["RetainedRepository "+left.Items[i].Name] = true
		}
		if next = left.Continue; next == "" {
			return nil
		}
	}
}
