package repository

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"os"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/git"
)

// OfMove returns the repositories of the project of a move on a shard, whether or not they exist. The project may be gone.
func (a *Audited) OfMove(ctx context.Context, m *v1alpha1.StorageMove, storage string) (*Handle, error) {
	return a.At(ctx, projectOf(m), storage)
}

// Retired reports whether an attempt of Relocate has retired the repository, its wiki or its designs.
func (h *Handle) Retired() (bool, error) {
	by, err := h.RetiredBy()
	return by != "", err
}

// RetiredBy returns the name of the attempt of Relocate that has retired the repository, its wiki or its designs. It is empty if none has.
func (h *Handle) RetiredBy() (by string, err error) {
	for _, r := range h.all() {
		if by, err = r.RetiredBy(); err != nil || by != "" {
			break
		}
	}
	return by, err
}

// Untouched reports whether nothing exists in the places of the repository, the wiki and the designs.
func (h *Handle) Untouched() bool {
	return !slices.ContainsFunc(h.all(), func(r *git.Repository) bool { return !r.Untouched() })
}

// Is reports whether both are the same repository, by whatever paths.
func (h *Handle) Is(other *Handle) bool {
	one, err := os.Stat(h.repo.Dir())
	two, unknown := os.Stat(other.repo.Dir())
	return err == nil && unknown == nil && os.SameFile(one, two)
}

// Vacate removes what an earlier move has retired, if confirm still returns nil while that is closed. It waits for readers until ctx ends.
func (h *Handle) Vacate(ctx context.Context, confirm func(context.Context) error) error {
	for _, r := range h.all() {
		by, err := r.RetiredBy()
		if err == nil && by != "" {
			err = r.RemoveRetiredIf(ctx, by, confirm)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// projectOf returns as much of the project of a move as is known even if the project is gone.
func projectOf(m *v1alpha1.StorageMove) *v1alpha1.Project {
	p := &v1alpha1.Project{}
	p.Namespace, p.Name, p.Spec.ID = m.Namespace, m.Status.ProjectName, m.Status.ProjectID
	p.Status.FullPath = m.Status.TargetPath
	if ref := m.Status.TargetRef; ref != nil {
		p.UID = types.UID(ref.UID)
	}
	return p
}

// OwnsOf reports whether a shard records that the repository at the path of a move belongs to the project of the move.
func (r *Repositories) OwnsOf(ctx context.Context, m *v1alpha1.StorageMove, storage string) (bool, error) {
	return r.HasOwner(ctx, projectOf(m), storage)
}

// ErrTaken says that a shard has something else at the path of a project.
var ErrTaken = errors.New("the shard has a repository of another project at the path of this one")

// OwnAlso records on a further shard that the project may have a repository there. The error is ErrTaken if the shard
// has a repository at its path, or a record of one, that is not known to be the project's.
func (r *Repositories) OwnAlso(ctx context.Context, live client.Reader, p *v1alpha1.Project, storage string) error {
	left, err := r.Recorded(ctx, storage, p)
	if err != nil {
		return err
	}
	if left != nil && left.Spec.Project.UID != string(p.UID) {
		return ErrTaken
	}
	s, err := r.catalog.Storage(ctx, storage)
	if err != nil {
		return err
	}
	switch there, err := readOwner(s, ownerFile(s, OwnerName(p))); {
	case err != nil:
		return err
	case there != nil && there.Retained.Spec.Project.UID != string(p.UID):
		return ErrTaken
	case there == nil:
		all, err := r.on(ctx, storage, Paths(p))
		if err != nil {
			return err
		}
		for _, repo := range all {
			if err := repo.Check(); err == nil {
				return ErrTaken
			} else if !errors.Is(err, git.ErrNotFound) {
				return err
			}
		}
	}
	also := p.DeepCopy()
	also.Status.Storage = storage
	return r.own(ctx, also, true, func(ctx context.Context) (Place, error) { return placeOf(ctx, live, p.Namespace) })
}

// DisownOf removes the record of a shard that the project of a move has a repository there.
func (r *Repositories) DisownOf(ctx context.Context, m *v1alpha1.StorageMove, storage string) error {
	p := projectOf(m)
	p.Status.Storage = storage
	return r.RemoveOwner(ctx, p)
}

// Choose returns the shard that takes a project, by weight, or nil if no shard has a weight above 0. The same shards lead to the same choice.
func Choose(all []*v1alpha1.RepositoryStorage, p *v1alpha1.Project) (chosen *v1alpha1.RepositoryStorage) {
	best := math.Inf(-1)
	for _, s := range all {
		if score := Rank(s, p); score > best {
			chosen, best = s, score
		}
	}
	return chosen
}

// Rank implements weighted rendezvous hashing: over many projects, each shard comes first in proportion to its weight. It returns negative
// infinity for a shard that takes no projects.
func Rank(s *v1alpha1.RepositoryStorage, p *v1alpha1.Project) float64 {
	weight := 100.0
	if s.Spec.Weight != nil {
		weight = float64(*s.Spec.Weight)
	}
	if weight == 0 {
		return math.Inf(-1)
	}
	h := fnv.New64a()
	fmt.Fprintf(h, "%s\x00%s", s.UID, p.UID)
	const bits = 53
	unit := (float64(mix(h.Sum64())>>(64-bits)) + 0.5) / (1 << bits)
	return weight / -math.Log(unit)
}

// mix spreads the entropy in FNV's low bits over the high bits (the finalizer of MurmurHash3).
func mix(x uint64) uint64 {
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}
