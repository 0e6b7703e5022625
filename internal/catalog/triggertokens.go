package catalog

import (
	"context"
	"crypto/subtle"
	"errors"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/role"
)

func triggerTokenIndexes() []index {
	spec := func(o client.Object) v1alpha1.TriggerTokenSpec { return o.(*v1alpha1.TriggerToken).Spec }
	return []index{
		{&v1alpha1.TriggerToken{}, IndexProject, func(o client.Object) []string {
			ref := spec(o).ProjectRef
			return optional(o, &ref)
		}},
		{&v1alpha1.TriggerToken{}, IndexUser, func(o client.Object) []string {
			if ref := spec(o).OwnerRef; ref != nil {
				return []string{Key("", *ref)}
			}
			return nil
		}},
		{&v1alpha1.TriggerToken{}, IndexDigest, func(o client.Object) []string {
			return some(o.(*v1alpha1.TriggerToken).Status.Digest)
		}},
		{&v1alpha1.TriggerToken{}, IndexSecret, func(o client.Object) []string {
			t := o.(*v1alpha1.TriggerToken)
			if name := IssuedSecret(t); name != "" {
				return []string{IssuedKey(name)}
			}
			return []string{SecretKey(t.Namespace, t.SecretRef().Name)}
		}},
		{&corev1.Secret{}, IndexDigest, func(o client.Object) (digests []string) {
			if o.GetLabels()[v1alpha1.LabelSecret] != v1alpha1.SecretOfTriggerToken {
				return nil
			}
			for _, value := range o.(*corev1.Secret).Data {
				digests = append(digests, Digest(string(value)))
			}
			return digests
		}},
	}
}

// TriggerTokensOf returns the trigger tokens of a project.
func (c *Catalog) TriggerTokensOf(ctx context.Context, p *v1alpha1.Project) ([]*v1alpha1.TriggerToken, error) {
	found, err := c.triggerTokens(ctx, IndexProject, c.ProjectKeys(ctx, p)...)
	if err != nil {
		return nil, err
	}
	return belonging(found, p), nil
}

// TriggerTokensOfSecret returns the trigger tokens of a namespace whose value is kept under one key of one Secret.
func (c *Catalog) TriggerTokensOfSecret(ctx context.Context, namespace string, ref v1alpha1.SecretKeyReference) ([]*v1alpha1.TriggerToken, error) {
	found, err := c.triggerTokens(ctx, IndexSecret, SecretKey(namespace, ref.Name))
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(found, func(t *v1alpha1.TriggerToken) bool { return t.SecretRef().Key != ref.Key }), nil
}

// TriggerTokensWithID returns the trigger tokens that declare an id, be they in force or not.
func (c *Catalog) TriggerTokensWithID(ctx context.Context, id int64) ([]*v1alpha1.TriggerToken, error) {
	return c.triggerTokens(ctx, IndexID, strconv.FormatInt(id, 10))
}

// TriggerTokensOfDigest returns the trigger tokens of all namespaces whose accepted value has a digest.
func (c *Catalog) TriggerTokensOfDigest(ctx context.Context, digest string) ([]*v1alpha1.TriggerToken, error) {
	return c.triggerTokens(ctx, IndexDigest, digest)
}

// SecretsOfDigest returns SecretKey of the Secrets that hold a value of a digest for a trigger token, accepted or not.
func (c *Catalog) SecretsOfDigest(ctx context.Context, digest string) []string {
	if digest == "" {
		return nil
	}
	var l corev1.SecretList
	if err := c.reader.List(ctx, &l, client.MatchingFields{IndexDigest: digest}, client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "Looking up the Secrets that hold a value", "index", IndexDigest)
		return nil
	}
	keys := make([]string, len(l.Items))
	for i := range l.Items {
		keys[i] = SecretKey(l.Items[i].Namespace, l.Items[i].Name)
	}
	return keys
}

// TriggerTokenByValue returns the trigger token of a project that has a value, or ErrNotFound: that is as well the answer to
// a value that belongs to another project, and for a token whose owner is blocked, gone, or may not own it now. It costs one hash
// and some look-ups in memory.
func (c *Catalog) TriggerTokenByValue(ctx context.Context, p *v1alpha1.Project, value string, now time.Time) (*v1alpha1.TriggerToken, error) {
	// Only digests of what was presented are looked up and compared: how long that takes tells nothing about a value.
	digest := Digest(value)
	found, err := c.TriggerTokensOfDigest(ctx, digest)
	if err != nil {
		return nil, err
	}
	for _, t := range found {
		if !t.DeletionTimestamp.IsZero() || subtle.ConstantTimeCompare([]byte(t.Status.Digest), []byte(digest)) != 1 {
			continue
		}
		if ok, err := c.triggers(ctx, t, p, now); err != nil {
			return nil, err
		} else if ok {
			return t, nil
		}
	}
	return nil, ErrNotFound
}

// triggers reports whether a token is one of the project, and not of an owner who is blocked, gone, or may not own it.
func (c *Catalog) triggers(ctx context.Context, t *v1alpha1.TriggerToken, p *v1alpha1.Project, now time.Time) (bool, error) {
	of, err := c.Project(ctx, t.Namespace, t.Spec.ProjectRef)
	if err != nil {
		return false, ignoreNotFound(err)
	}
	if is := of.UID == p.UID && Belongs(t, p); !is || t.Spec.OwnerRef == nil {
		return is, nil
	}
	owner, err := c.User(ctx, *t.Spec.OwnerRef)
	if err != nil {
		return false, ignoreNotFound(err)
	}
	if owner.Spec.State == v1alpha1.UserBlocked || !owner.DeletionTimestamp.IsZero() {
		return false, nil
	}
	return c.MayOwnTriggerToken(ctx, owner, t, p, now)
}

// MayOwnTriggerToken reports whether a user, who is not blocked, may own a trigger token of a project now. Whoever writes in a
// namespace can name any user there without asking him: so he has to be a Maintainer of the project, as for making a token over
// REST, and an administrator has to have made this one himself.
func (c *Catalog) MayOwnTriggerToken(
	ctx context.Context, u *v1alpha1.User, t *v1alpha1.TriggerToken, p *v1alpha1.Project, now time.Time,
) (bool, error) {
	if u.Spec.Admin {
		return t.Status.IssuedTo == string(u.UID), nil
	}
	has, err := c.ProjectRole(ctx, u, p, now)
	if Misplaced(err) {
		return false, nil
	}
	return has >= role.Maintainer, err
}

func ignoreNotFound(err error) error {
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}
