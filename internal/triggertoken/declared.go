package triggertoken

import (
	"context"
	"crypto/subtle"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/credential"
	"github.com/forgeplane/forgeplane/internal/role"
)

// indexDigest has the digests of trigger tokens, and of the values in Secrets of trigger tokens.
const indexDigest = "digest"

// Indexes returns the indexes of trigger tokens and their Secrets.
func Indexes() []catalog.Index {
	return []catalog.Index{
		{Of: &v1alpha1.TriggerToken{}, Name: catalog.IndexUser, Values: func(o client.Object) []string {
			if ref := o.(*v1alpha1.TriggerToken).Spec.OwnerRef; ref != nil {
				return []string{catalog.Key("", *ref)}
			}
			return nil
		}},
		{Of: &v1alpha1.TriggerToken{}, Name: indexDigest, Values: func(o client.Object) []string {
			return catalog.Text(o.(*v1alpha1.TriggerToken).Status.Digest)
		}},
		{Of: &corev1.Secret{}, Name: indexDigest, Values: func(o client.Object) (digests []string) {
			if o.GetLabels()[v1alpha1.LabelSecret] != v1alpha1.SecretOfTriggerToken {
				return nil
			}
			for _, value := range o.(*corev1.Secret).Data {
				digests = append(digests, credential.Digest(string(value)))
			}
			return digests
		}},
	}
}

// OfSecret returns the trigger tokens of a namespace whose value is under one key of one Secret.
func OfSecret(
	ctx context.Context, c *catalog.Catalog, namespace string, ref v1alpha1.SecretKeyReference,
) ([]*v1alpha1.TriggerToken, error) {
	found, err := catalog.List[*v1alpha1.TriggerToken](ctx, c, credential.IndexSecret, credential.Key(namespace, ref.Name))
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(found, func(t *v1alpha1.TriggerToken) bool { return t.Spec.SecretRef.Key != ref.Key }), nil
}

// OfDigest returns the trigger tokens of all namespaces whose accepted value has a digest.
func OfDigest(ctx context.Context, c *catalog.Catalog, digest string) ([]*v1alpha1.TriggerToken, error) {
	return catalog.List[*v1alpha1.TriggerToken](ctx, c, indexDigest, digest)
}

// SecretsOfDigest returns credential.Key of the Secrets that hold a value of a digest for a trigger token, accepted or not.
func SecretsOfDigest(ctx context.Context, c *catalog.Catalog, digest string) (keys []string) {
	if digest == "" {
		return nil
	}
	list := func() client.ObjectList { return &corev1.SecretList{} }
	err := catalog.ForEachByIndex(ctx, c, (*corev1.Secret)(nil), list, indexDigest, []string{digest}, func(s client.Object) {
		keys = append(keys, credential.Key(s.GetNamespace(), s.GetName()))
	})
	if err != nil {
		log.FromContext(ctx).Error(err, "Failed to look up the Secrets with the digest of a trigger token", "index", indexDigest)
	}
	return keys
}

// ByValue returns the trigger token of a project with a value, or catalog.ErrNotFound. It does not find a token of another project, or a
// token whose owner is blocked, gone or currently not allowed to own it. It takes one hash and some look-ups in the cache.
func ByValue(
	ctx context.Context, c *catalog.Catalog, p *v1alpha1.Project, value string, now time.Time,
) (*v1alpha1.TriggerToken, error) {
	// Only digests are looked up and compared, so that the duration reveals nothing about a value.
	digest := credential.Digest(value)
	found, err := OfDigest(ctx, c, digest)
	if err != nil {
		return nil, err
	}
	for _, t := range found {
		if !t.DeletionTimestamp.IsZero() || subtle.ConstantTimeCompare([]byte(t.Status.Digest), []byte(digest)) != 1 {
			continue
		}
		if ok, err := triggers(ctx, c, t, p, now); err != nil {
			return nil, err
		} else if ok {
			return t, nil
		}
	}
	return nil, catalog.ErrNotFound
}

// triggers reports whether a token belongs to the project and to an owner who is neither blocked nor gone, and is allowed to own it.
func triggers(ctx context.Context, c *catalog.Catalog, t *v1alpha1.TriggerToken, p *v1alpha1.Project, now time.Time) (bool, error) {
	of, err := c.Target(ctx, t)
	if err != nil {
		return false, catalog.IgnoreNotFound(err)
	}
	if is := of.GetUID() == p.UID && catalog.Belongs(t, p); !is || t.Spec.OwnerRef == nil {
		return is, nil
	}
	owner, err := c.User(ctx, *t.Spec.OwnerRef)
	if err != nil {
		return false, catalog.IgnoreNotFound(err)
	}
	if !owner.Active() || !owner.DeletionTimestamp.IsZero() {
		return false, nil
	}
	return MayOwn(ctx, c, owner, t, p, now)
}

// MayOwn reports whether a user, who is not blocked, can currently own a trigger token of a project. Everyone who can write to a namespace
// can name any user there without their consent. So the user must be a Maintainer of the project, as for creating a token over REST. An
// administrator must have created the token themselves.
func MayOwn(
	ctx context.Context, c *catalog.Catalog, u *v1alpha1.User, t *v1alpha1.TriggerToken, p *v1alpha1.Project, now time.Time,
) (bool, error) {
	if u.Spec.Admin {
		return t.Status.IssuedTo == string(u.UID), nil
	}
	has, err := c.ProjectRole(ctx, u, p, now)
	if catalog.Misplaced(err) {
		return false, nil
	}
	return has >= role.Maintainer, err
}
