package repositorystorage

import (
	"context"
	"errors"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/frame"
	"github.com/forgeplane/forgeplane/internal/repository"
)

// errReplaced says that the cache does not show the current object yet.
var errReplaced = errors.New("it was declared again")

// recognize refuses a directory that is not the volume of the shard. It marks the volume of a shard that was never marked.
func (c *Controller) recognize(ctx context.Context, s *v1alpha1.RepositoryStorage) error {
	err := c.checkVolume(ctx, s)
	if err == nil {
		return nil
	}
	if unseen := c.look(ctx, s); unseen != nil {
		return unseen
	}
	return c.refused(ctx, s, err)
}

func (c *Controller) checkVolume(ctx context.Context, s *v1alpha1.RepositoryStorage) error {
	if info, err := os.Stat(s.Spec.Path); err != nil || !info.IsDir() {
		return frame.WaitingFor(probeInterval, v1alpha1.ReasonStorageUnavailable,
			"%s is not a directory: check that the volume is mounted", s.Spec.Path)
	}
	m, err := repository.ReadMarker(s)
	away := repository.JudgeMarker(s, m, err)
	if away == nil {
		s.Status.MarkerUID = string(s.UID)
		return nil
	}
	switch {
	case err == nil && m != nil && m.Name != s.Name:
		return c.foreign(ctx, s, m)
	case err != nil, repository.Marked(s):
		return frame.WaitingFor(probeInterval, v1alpha1.ReasonStorageUnavailable, "%w; if this is the right volume, or a new one in its place, write %s to %s",
			away, repository.MarkerOf(s), repository.MarkerPath(s))
	case m == nil:
		err = c.checkContent(ctx, s)
	default:
		err = c.checkReplaced(ctx, s)
	}
	if err != nil {
		return err
	}
	return c.mark(s, m)
}

// mark marks the volume of a shard. A former RepositoryStorage of the same name may have marked it before.
func (c *Controller) mark(s *v1alpha1.RepositoryStorage, former *repository.Marker) error {
	if err := repository.Mark(s, former != nil); err != nil {
		return frame.WaitingFor(probeInterval, v1alpha1.ReasonStorageUnavailable, "%s cannot be written to: %w", s.Spec.Path, cause(err))
	}
	s.Status.MarkerUID = string(s.UID)
	if former != nil {
		c.frame.Events.Eventf(s, nil, corev1.EventTypeNormal, "TookOver", "TakeOver",
			"the volume at %s belonged to the former RepositoryStorage of this name, with the UID %s", s.Spec.Path, former.UID)
	}
	return nil
}

// foreign returns the error for a volume with the marker of a RepositoryStorage of another name.
func (c *Controller) foreign(ctx context.Context, s *v1alpha1.RepositoryStorage, m *repository.Marker) error {
	holder, err := catalog.Get[*v1alpha1.RepositoryStorage](ctx, c.frame.Catalog, "", m.Name)
	switch {
	case err == nil && holder.UID == m.UID:
		return frame.WaitingFor(probeInterval, v1alpha1.ReasonAlreadyExists,
			"directory %s is held by RepositoryStorage %s, as its file %s says: mount another volume, or declare another path",
			s.Spec.Path, m.Name, repository.MarkerPath(s))
	case err != nil && !errors.Is(err, catalog.ErrNotFound):
		return err
	}
	return frame.WaitingFor(probeInterval, v1alpha1.ReasonAlreadyExists,
		"directory %s belongs to RepositoryStorage %s, which does not exist here: declare it with this name, or remove %s to give the volume to %s",
		s.Spec.Path, m.Name, repository.MarkerPath(s), s.Name)
}

// alien reports whether the directory of a shard has something else than the marker of a RepositoryStorage of this name.
func alien(s *v1alpha1.RepositoryStorage) bool {
	m, err := repository.ReadMarker(s)
	return err != nil || m != nil && m.Name != s.Name
}

// checkReplaced returns an error unless a shard is the current one of its name.
func (c *Controller) checkReplaced(ctx context.Context, s *v1alpha1.RepositoryStorage) error {
	var there v1alpha1.RepositoryStorageList
	if err := c.options.Live.List(ctx, &there, client.MatchingFields{"metadata.name": s.Name}); err != nil {
		return fmt.Errorf("checking which RepositoryStorage has the name %s: %w", s.Name, err)
	}
	if len(there.Items) == 0 || there.Items[0].UID != s.UID {
		return apierrors.NewConflict(v1alpha1.GroupVersion.WithResource("repositorystorages").GroupResource(), s.Name, errReplaced)
	}
	return nil
}

// checkContent returns an error if the directory of a shard without a marker lacks most of its repositories, like the one at which a volume
// is not mounted. A RepositoryStorage that is declared again has repositories, but no status that says that its volume was marked.
func (c *Controller) checkContent(ctx context.Context, s *v1alpha1.RepositoryStorage) error {
	projects, err := c.projects(ctx, s)
	if err != nil {
		return err
	}
	left, err := c.retainedOn(ctx, s)
	if err != nil {
		return err
	}
	all, missing := len(left), 0
	for _, p := range projects {
		if p.Status.RefsChecksum == "" {
			continue // it may have none yet
		}
		all++
		repo, err := c.repositories.Of(ctx, p)
		if err != nil {
			return err
		}
		if lost(p, repo.Check()) {
			missing++
		}
	}
	for _, r := range left {
		if there, err := c.exists(ctx, r); err != nil {
			return err
		} else if !there {
			missing++
		}
	}
	if 2*missing > all {
		return frame.WaitingFor(probeInterval, v1alpha1.ReasonStorageUnavailable,
			"%d of its %d repositories are not in %s: mount its volume there; if this is the right volume, or a new one in its place, write %s to %s",
			missing, all, s.Spec.Path, repository.MarkerOf(s), repository.MarkerPath(s))
	}
	return nil
}
