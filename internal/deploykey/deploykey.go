// Package deploykey finds deploy keys, and says what they claim.
package deploykey

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/claim"
)

// Named returns the deploy key that a reference names in a namespace.
func Named(ctx context.Context, c *catalog.Catalog, namespace string, ref v1alpha1.Reference) (*v1alpha1.DeployKey, error) {
	var k *v1alpha1.DeployKey
	var err error
	if ref.Name != "" {
		k, err = catalog.Get[*v1alpha1.DeployKey](ctx, c, namespace, ref.Name)
	} else {
		k, err = catalog.ByID[*v1alpha1.DeployKey](ctx, c, ref.ID)
	}
	if errors.Is(err, catalog.ErrNotFound) || err == nil && (k.Namespace != namespace || !catalog.Means(ref, k)) {
		err = catalog.ErrNotFound // by the reference, and not as it was looked up
	}
	if err != nil {
		return nil, fmt.Errorf("deploy key %s: %w", catalog.Show(ref), err)
	}
	return k, nil
}

// Claims returns the claims of a deploy key with a fingerprint.
func Claims(ctx context.Context, c *catalog.Catalog, k *v1alpha1.DeployKey, fingerprint string) ([]claim.Claim, error) {
	return catalog.ClaimsIn(ctx, c, k, func(target types.UID) claim.Claim { return claim.DeployKey(target, fingerprint) })
}
