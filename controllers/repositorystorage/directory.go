package repositorystorage

import (
	"context"
	"errors"
	"io/fs"
	"os"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/claim"
	"github.com/forgeplane/forgeplane/internal/frame"
	"github.com/forgeplane/forgeplane/internal/repository"
)

// errTaking says that the directory must be tried again.
var errTaking = errors.New("another shard is claiming its directory")

func claims(_ context.Context, _ *catalog.Catalog, s *v1alpha1.RepositoryStorage) ([]claim.Claim, error) {
	return []claim.Claim{repository.DirectoryClaim(s)}, nil
}

// take claims the directory of a shard, unless another shard has it, a part of it, or one around it.
func (c *Controller) take(ctx context.Context, s *v1alpha1.RepositoryStorage) error {
	k := repository.DirectoryClaim(s)
	// Directories that overlap are different claims, so shards take turns.
	if turn := claim.Directory("/"); !k.In(s.Status.Claims) && !c.frame.Catalog.Register().Begin(turn, s.UID) {
		return apierrors.NewConflict(v1alpha1.GroupVersion.WithResource("claims").GroupResource(), k.String(), errTaking)
	}
	holder, err := repository.DirectoryHolder(ctx, c.frame.Catalog, s)
	if err != nil {
		return err
	}
	if at := repository.DirectoryClaim(holder); at != k {
		claim.Release(s, k)
		err = frame.AlreadyExists(s, holder, "directory %s, which overlaps with %s,", holder.Spec.Path, s.Spec.Path)
	} else {
		err = c.frame.Take(ctx, s, holder, k, "directory %s", s.Spec.Path)
	}
	return c.refused(ctx, s, err)
}

// refused returns the error that ends the steps of a shard before its projects are counted, or nil if there is none. It counts them.
func (c *Controller) refused(ctx context.Context, s *v1alpha1.RepositoryStorage, err error) error {
	if err == nil {
		return nil
	}
	if uncounted := c.count(ctx, s); uncounted != nil {
		return uncounted
	}
	return err
}

// distinguish refuses a directory that another shard has under another path, such as a symbolic link or a bind mount. Nothing reports that this
// begins or ends.
func (c *Controller) distinguish(ctx context.Context, s *v1alpha1.RepositoryStorage) error {
	here, err := os.Stat(s.Spec.Path)
	if err != nil {
		c.directories.Delete(s.UID)
		return nil //nolint:nilerr // the probe says what is wrong
	}
	c.directories.Store(s.UID, here)
	all, err := catalog.All[*v1alpha1.RepositoryStorage](ctx, c.frame.Catalog)
	if err != nil {
		return err
	}
	for _, o := range all {
		if o.UID != s.UID && claim.Precedes(o, keeps(o), s, keeps(s)) && os.SameFile(here, c.directory(o)) {
			return c.refused(ctx, s, frame.WaitingFor(probeInterval, v1alpha1.ReasonAlreadyExists,
				"directory %s is the same as %s, which is held by RepositoryStorage %s", s.Spec.Path, o.Spec.Path, o.Name))
		}
	}
	return nil
}

// keeps reports whether a shard can have repositories in its directory that nobody else may claim. A shard that is being deleted is not in force,
// and keeps its directory as long as objects name it.
func keeps(s *v1alpha1.RepositoryStorage) bool {
	return frame.InForce(s) || !s.DeletionTimestamp.IsZero() && s.Status.Repositories+s.Status.Retained > 0
}

// directory returns the directory of a shard as it was last seen, so that one volume that hangs does not block the others. It is nil if there
// was none.
func (c *Controller) directory(s *v1alpha1.RepositoryStorage) fs.FileInfo {
	if seen, ok := c.directories.Load(s.UID); ok {
		return seen.(fs.FileInfo)
	}
	info, err := os.Stat(s.Spec.Path)
	if err != nil {
		return nil
	}
	return info
}

// others maps a shard to all other shards, because one of them may wait for its directory.
func (c *Controller) others(ctx context.Context, s client.Object) (requests []reconcile.Request) {
	all, err := catalog.All[*v1alpha1.RepositoryStorage](ctx, c.frame.Catalog)
	if err != nil {
		log.FromContext(ctx).Error(err, "Failed to list the shards")
	}
	for _, o := range all {
		if o.Name != s.GetName() {
			requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Name: o.Name}})
		}
	}
	return requests
}
