package credential

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
)

// Digest returns the digest of the value of a token: SHA-256 in lower-case hexadecimal. Values are long and random, so a slower hash is not
// needed.
func Digest(value string) string {
	sum := sha256.Sum256([]byte(value))
	return hex.EncodeToString(sum[:])
}

// IndexSecret indexes projects, trigger tokens, bot tokens, mirrors and variables by the Key or IssuedKey of the Secrets with their credentials.
const IndexSecret = "secret"

// Indexes returns the indexes that find the objects with credentials in a Secret.
func Indexes() []catalog.Index {
	return []catalog.Index{
		{Of: &v1alpha1.Project{}, Name: IndexSecret, Values: func(o client.Object) []string {
			return offered(o, o.(*v1alpha1.Project).Spec.ImportSecretRef)
		}},
		{Of: &v1alpha1.RemoteMirror{}, Name: IndexSecret, Values: func(o client.Object) []string {
			m := o.(*v1alpha1.RemoteMirror)
			if name := Issued(m); name != "" {
				return []string{IssuedKey(name)}
			}
			return offered(m, m.Spec.SecretRef)
		}},
		{Of: &v1alpha1.TriggerToken{}, Name: IndexSecret, Values: func(o client.Object) []string {
			t := o.(*v1alpha1.TriggerToken)
			if name := Issued(t); name != "" {
				return []string{IssuedKey(name)}
			}
			return KeysOf(t, t.Spec.SecretRef)
		}},
		{Of: &v1alpha1.BotToken{}, Name: IndexSecret, Values: func(o client.Object) []string {
			return KeysOf(o, o.(*v1alpha1.BotToken).Spec.SecretRef)
		}},
		{Of: &v1alpha1.Variable{}, Name: IndexSecret, Values: func(o client.Object) (keys []string) {
			v := o.(*v1alpha1.Variable)
			if ref := v.Spec.SecretRef; ref != nil {
				keys = append(keys, Key(v.Namespace, ref.Name))
			}
			if name := Issued(v); name != "" {
				keys = append(keys, IssuedKey(name))
			}
			return keys
		}},
	}
}

// Key returns the key of a tenant's Secret in IndexSecret.
func Key(namespace, name string) string {
	return catalog.Key(namespace, v1alpha1.Reference{Name: name})
}

// IssuedKey returns the key of a platform Secret in IndexSecret, which an object names in its status.
func IssuedKey(name string) string { return "issued:" + name }

// offered returns the key of the Secret that an object of a tenant names, or nil.
func offered(o client.Object, ref *v1alpha1.LocalSecretReference) []string {
	if ref == nil {
		return nil
	}
	return []string{Key(o.GetNamespace(), ref.Name)}
}

// KeysOf returns the key of the Secret that a token of a tenant names for its value, or nil.
func KeysOf(token client.Object, ref *v1alpha1.SecretKeyReference) []string {
	if ref == nil {
		return nil
	}
	return []string{Key(token.GetNamespace(), ref.Name)}
}

// Keys maps a Secret to the keys that find its holders. A tenant's Secret can also match the holder of a platform Secret with the same
// name, which causes an unnecessary reconcile.
func Keys(_ context.Context, s client.Object) []string {
	return []string{IssuedKey(s.GetName()), Key(s.GetNamespace(), s.GetName())}
}

// Issued returns the name of the platform's Secret with the credentials of an object, or with the value of a variable. It is empty if there is
// none, or if the declaration of a token or mirror takes precedence.
func Issued(o client.Object) string {
	switch o := o.(type) {
	case *v1alpha1.TriggerToken:
		if o.Spec.SecretRef == nil {
			return o.Status.SecretRef.Name
		}
	case *v1alpha1.RemoteMirror:
		if o.Spec.SecretRef == nil {
			return o.Status.SecretRef.Name
		}
	case *v1alpha1.Variable:
		return o.Status.SecretRef.Name
	}
	return ""
}

// Holders returns the objects whose status names a Secret of the platform.
func Holders(ctx context.Context, c *catalog.Catalog, name string) (holders []client.Object, err error) {
	tokens, err := catalog.List[*v1alpha1.TriggerToken](ctx, c, IndexSecret, IssuedKey(name))
	if err != nil {
		return nil, fmt.Errorf("looking up who holds Secret %s: %w", name, err)
	}
	mirrors, err := catalog.List[*v1alpha1.RemoteMirror](ctx, c, IndexSecret, IssuedKey(name))
	if err != nil {
		return nil, fmt.Errorf("looking up who holds Secret %s: %w", name, err)
	}
	variables, err := catalog.List[*v1alpha1.Variable](ctx, c, IndexSecret, IssuedKey(name))
	if err != nil {
		return nil, fmt.Errorf("looking up who holds Secret %s: %w", name, err)
	}
	for _, t := range tokens {
		holders = append(holders, t)
	}
	for _, m := range mirrors {
		holders = append(holders, m)
	}
	for _, v := range variables {
		holders = append(holders, v)
	}
	return holders, nil
}
