package catalog

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
)

// SecretKey is the key in IndexSecret of a Secret of a tenant.
func SecretKey(namespace, name string) string { return nameKey(namespace, name) }

// IssuedKey is the key in IndexSecret of a Secret of the platform that an object names in its status.
func IssuedKey(name string) string { return "issued:" + name }

func secretKeys(o client.Object, ref *v1alpha1.LocalSecretReference) []string {
	if ref == nil {
		return nil
	}
	return []string{SecretKey(o.GetNamespace(), ref.Name)}
}

// SecretKeys maps a Secret to the keys by which its holders are found. One of a tenant may wake up somebody in vain who holds one of the
// platform of the same name.
func SecretKeys(_ context.Context, s client.Object) []string {
	return []string{IssuedKey(s.GetName()), SecretKey(s.GetNamespace(), s.GetName())}
}

// IssuedSecret is the name of the Secret of the platform that holds the credentials of an object; empty where there is none, or where
// what is declared goes before it.
func IssuedSecret(o client.Object) string {
	switch o := o.(type) {
	case *v1alpha1.TriggerToken:
		if o.Spec.SecretRef == nil {
			return o.Status.SecretRef.Name
		}
	case *v1alpha1.RemoteMirror:
		if o.Spec.SecretRef == nil {
			return o.Status.SecretRef.Name
		}
	}
	return ""
}

// HoldersOfSecret returns the objects whose status names a Secret of the platform.
func (c *Catalog) HoldersOfSecret(ctx context.Context, name string) (holders []client.Object, err error) {
	tokens, err := c.triggerTokens(ctx, IndexSecret, IssuedKey(name))
	if err != nil {
		return nil, fmt.Errorf("looking up who holds Secret %s: %w", name, err)
	}
	mirrors, err := c.remoteMirrors(ctx, IndexSecret, IssuedKey(name))
	if err != nil {
		return nil, fmt.Errorf("looking up who holds Secret %s: %w", name, err)
	}
	for _, t := range tokens {
		holders = append(holders, t)
	}
	for _, m := range mirrors {
		holders = append(holders, m)
	}
	return holders, nil
}
