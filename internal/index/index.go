// Package index has the indexes of the cache, those of all kinds together.
package index

import (
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/internal/accesstoken"
	"github.com/forgeplane/forgeplane/internal/bottoken"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/credential"
	"github.com/forgeplane/forgeplane/internal/ids"
	"github.com/forgeplane/forgeplane/internal/jobtoken"
	"github.com/forgeplane/forgeplane/internal/label"
	"github.com/forgeplane/forgeplane/internal/protection"
	"github.com/forgeplane/forgeplane/internal/retained"
	"github.com/forgeplane/forgeplane/internal/storagemove"
	"github.com/forgeplane/forgeplane/internal/triggertoken"
	"github.com/forgeplane/forgeplane/internal/variable"
)

// Add registers every index that servers use, before the cache starts. AddForManagers registers the indexes of kinds that only the managers
// can read.
func Add(ctx context.Context, indexer client.FieldIndexer) error {
	return add(ctx, indexer, slices.Concat(
		catalog.Indexes(), credential.Indexes(), accesstoken.Indexes(), jobtoken.Indexes(), label.Indexes(), protection.Indexes(),
		triggertoken.Indexes(), bottoken.Indexes(), variable.Indexes(),
	))
}

// AddForManagers registers what Add leaves out, where controllers run.
func AddForManagers(ctx context.Context, indexer client.FieldIndexer) error {
	return add(ctx, indexer, slices.Concat(retained.Indexes(), storagemove.Indexes(), ids.Indexes()))
}

func add(ctx context.Context, indexer client.FieldIndexer, all []catalog.Index) error {
	for _, i := range all {
		if err := indexer.IndexField(ctx, i.Of, i.Name, i.Values); err != nil {
			return fmt.Errorf("adding index %s of %T: %w", i.Name, i.Of, err)
		}
	}
	return nil
}
