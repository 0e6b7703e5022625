package remotemirror

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/frame"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/protection"
)

// rules say what is pushed, and how.
type rules struct {
	keep bool
	// guarded says that only branches which match one of protected are pushed.
	guarded   bool
	protected []string
	// matching, if it is there, is what the name of a branch matches that is pushed.
	matching *regexp.Regexp
}

// rules are what the mirror declares, with the protections that are in force.
func (c *Controller) rules(ctx context.Context, m *v1alpha1.RemoteMirror, scope catalog.Scope) (rules, error) {
	r := rules{keep: m.Spec.KeepDivergentRefs, guarded: m.Spec.OnlyProtectedBranches}
	if m.Spec.BranchRegex != "" {
		var err error
		if r.matching, err = regexp.Compile(m.Spec.BranchRegex); err != nil {
			return r, frame.Stalled(v1alpha1.ReasonInvalid, "branchRegex is not in RE2 syntax: %w", err)
		}
	}
	if r.guarded {
		all, err := c.catalog.Protections(ctx, scope)
		if err != nil {
			return r, err
		}
		for _, b := range all {
			r.protected = append(r.protected, b.Spec.Branch)
		}
		slices.Sort(r.protected)
		r.protected = slices.Compact(r.protected)
	}
	return r, nil
}

// branch reports whether a branch is pushed.
func (r rules) branch(name string) bool {
	switch {
	case r.guarded:
		return slices.ContainsFunc(r.protected, func(rule string) bool { return protection.Match(rule, name) })
	case r.matching != nil:
		return r.matching.MatchString(name)
	default:
		return true
	}
}

// digest differs between rules that differ.
func (r rules) digest() string {
	sum := sha256.New()
	fmt.Fprintf(sum, "%t %t %q", r.keep, r.guarded, r.protected)
	if r.matching != nil {
		fmt.Fprintf(sum, " %q", r.matching)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// push returns what pushes the project's repository.
func (c *Controller) push(m *v1alpha1.RemoteMirror, p *v1alpha1.Project, r rules) pushFunc {
	key, spec := client.ObjectKey{Namespace: m.Namespace}, m.Spec.DeepCopy()
	return func(ctx context.Context) (git.PushResult, error) {
		repo, err := c.repositories.Of(ctx, p)
		if err != nil {
			return git.PushResult{}, err
		}
		o := git.PushOptions{
			URL: spec.URL, Branch: r.branch, Keep: r.keep, Timeout: c.options.Limits.Timeout, Stall: c.options.Limits.Stall,
		}
		if spec.SecretRef != nil {
			key.Name = spec.SecretRef.Name
			if o.Username, o.Password, err = c.credentials(ctx, key); err != nil {
				return git.PushResult{}, err
			}
		}
		var result git.PushResult
		err = c.options.Egress.Through(func(proxy string) error {
			o.Proxy = proxy
			result, err = repo.Push(ctx, o)
			return err
		})
		return result, err
	}
}

// secretVersion tells apart what the Secret of a mirror has been, where it bears the label by which the cache follows it. It is empty
// where it does not, or there is none.
func (c *Controller) secretVersion(ctx context.Context, m *v1alpha1.RemoteMirror) (string, error) {
	if m.Spec.SecretRef == nil {
		return "", nil
	}
	var s corev1.Secret
	err := c.client.Get(ctx, client.ObjectKey{Namespace: m.Namespace, Name: m.Spec.SecretRef.Name}, &s)
	if client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("looking for a change of Secret %s: %w", m.Spec.SecretRef.Name, err)
	}
	return s.ResourceVersion, nil
}

func secretKey(_ context.Context, obj client.Object) []string {
	return []string{catalog.SecretKey(obj.GetNamespace(), obj.GetName())}
}

// credentials reads a Secret of the mirror's own namespace.
func (c *Controller) credentials(ctx context.Context, key client.ObjectKey) (username, password string, err error) {
	var secret corev1.Secret
	if err := c.options.Secrets.Get(ctx, key, &secret); apierrors.IsNotFound(err) {
		return "", "", fmt.Errorf("secretRef: there is no Secret %s", key.Name)
	} else if err != nil {
		return "", "", fmt.Errorf("reading Secret %s: %w", key.Name, err)
	}
	username, password = string(secret.Data["username"]), string(secret.Data["password"])
	if username == "" && password == "" {
		return "", "", fmt.Errorf("secretRef: Secret %s has neither a key username nor a key password", key.Name)
	}
	return username, password, nil
}
