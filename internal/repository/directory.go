package repository

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/claim"
)

// DirectoryClaim returns the claim that the spec of a shard makes.
func DirectoryClaim(s *v1alpha1.RepositoryStorage) claim.Claim {
	return claim.Directory(filepath.Clean(s.Spec.Path))
}

// DirectoryHolder returns the shard that holds the directory of a shard, a directory around it, or a directory inside it. If no other shard
// precedes it, that is the shard itself.
func DirectoryHolder(ctx context.Context, c *catalog.Catalog, s *v1alpha1.RepositoryStorage) (*v1alpha1.RepositoryStorage, error) {
	all, err := catalog.All[*v1alpha1.RepositoryStorage](ctx, c)
	if err != nil {
		return nil, err
	}
	holder, shown := s, DirectoryClaim(s).ShownBy(s)
	for _, o := range all {
		if o.UID == s.UID || !overlap(o, s) {
			continue
		}
		if is := DirectoryClaim(o).ShownBy(o); claim.Precedes(o, is, holder, shown) {
			holder, shown = o, is
		}
	}
	return holder, nil
}

func overlap(a, b *v1alpha1.RepositoryStorage) bool {
	x, y := filepath.Clean(a.Spec.Path)+"/", filepath.Clean(b.Spec.Path)+"/"
	return strings.HasPrefix(x, y) || strings.HasPrefix(y, x)
}
