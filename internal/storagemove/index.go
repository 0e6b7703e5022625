package storagemove

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
)

// indexUsed holds the shards that a move needs.
const indexUsed = "used"

// Indexes returns the indexes of moves.
func Indexes() []catalog.Index {
	return []catalog.Index{{Of: &v1alpha1.StorageMove{}, Name: indexUsed, Values: func(o client.Object) []string {
		return UsedBy(o.(*v1alpha1.StorageMove))
	}}}
}

// UsedBy returns the names of the shards that a move needs: both while it runs, and the source until the former copy is removed.
func UsedBy(m *v1alpha1.StorageMove) []string {
	switch s := m.Status; {
	case s.Running():
		return []string{s.Source, s.Destination}
	case s.State == v1alpha1.StorageMoveReplicated, s.State == v1alpha1.StorageMoveCleanupFailed:
		return []string{s.Source}
	default:
		return nil
	}
}

// Using returns the moves that need a shard.
func Using(ctx context.Context, c *catalog.Catalog, storage string) ([]*v1alpha1.StorageMove, error) {
	return catalog.List[*v1alpha1.StorageMove](ctx, c, indexUsed, storage)
}
