package repositorystorage

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/git"
)

const (
	// lookPause is the least time between two looks at the repositories of a shard, because shards are reconciled often.
	lookPause = 5 * time.Second
	// lookTime limits one look. The next one goes on where it ended.
	lookTime = 2 * time.Second
)

// looked is the state after the last look at the repositories of a shard.
type looked struct {
	at time.Time
	// next is the first project of the next look.
	next int
}

// look wakes the projects whose repositories have disappeared or are back, because no watch reports this.
func (c *Controller) look(ctx context.Context, s *v1alpha1.RepositoryStorage) error {
	now, last := c.options.Clock.Now(), looked{}
	if l, ok := c.looked.Load(s.UID); ok {
		last = l.(looked)
	}
	if now.Sub(last.at) < lookPause {
		return nil
	}
	projects, err := c.projects(ctx, s)
	if err != nil {
		return err
	}
	slices.SortFunc(projects, func(a, b *v1alpha1.Project) int { return cmp.Compare(a.UID, b.UID) })
	limited, stop := context.WithTimeout(ctx, lookTime)
	defer stop()
	n := 0
	for ; n < len(projects) && limited.Err() == nil; n++ {
		p := projects[(last.next+n)%len(projects)]
		// One project must not put a whole shard out of use.
		if repo, err := c.repositories.Of(ctx, p); err == nil && changed(p, repo.Check()) {
			select {
			case c.options.Changed <- event.TypedGenericEvent[*v1alpha1.Project]{Object: p}:
			default: // the next look finds it
			}
		}
	}
	c.looked.Store(s.UID, looked{now, (last.next + n) % max(len(projects), 1)})
	return nil
}

// projects returns the projects that have chosen a shard for good, and are not being deleted.
func (c *Controller) projects(ctx context.Context, s *v1alpha1.RepositoryStorage) ([]*v1alpha1.Project, error) {
	all, err := catalog.List[*v1alpha1.Project](ctx, c.frame.Catalog, catalog.IndexStorage, s.Name)
	return slices.DeleteFunc(all, func(p *v1alpha1.Project) bool {
		return p.Status.Storage != s.Name || !p.DeletionTimestamp.IsZero()
	}), err
}

// changed reports whether a project says something else about its repository than there says, the result of its Check.
func changed(p *v1alpha1.Project, there error) bool {
	ready := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionReady)
	says := ready != nil && ready.Reason == v1alpha1.ReasonStorageUnavailable
	return says != (errors.Is(there, git.ErrStorageMissing) || lost(p, there))
}

// lost reports whether the repository of a project has existed and is gone, according to the result of its Check.
func lost(p *v1alpha1.Project, there error) bool {
	return p.Status.RefsChecksum != "" && errors.Is(there, git.ErrNotFound)
}
