package remotemirror

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/credential"
	"github.com/forgeplane/forgeplane/internal/frame"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/protection"
)

// rules say what to push, and how.
type rules struct {
	keep bool
	// guarded selects only branches that match one of protected.
	guarded   bool
	protected []string
	// matching, unless nil, selects only branches whose names it matches.
	matching *regexp.Regexp
}

// rules returns the rules of the mirror, with the protections that are in force.
func (c *Controller) rules(ctx context.Context, m *v1alpha1.RemoteMirror, scope catalog.Scope) (rules, error) {
	r := rules{keep: m.Spec.KeepDivergentRefs, guarded: m.Spec.OnlyProtectedBranches}
	if m.Spec.BranchRegex != "" {
		var err error
		if r.matching, err = regexp.Compile(m.Spec.BranchRegex); err != nil {
			return r, frame.Stalled(v1alpha1.ReasonInvalid, "branchRegex is not in RE2 syntax: %w", err)
		}
	}
	if r.guarded {
		all, err := protection.All(ctx, c.frame.Catalog, scope)
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

// branch reports whether to push a branch.
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

// digest returns a string that differs between different rules.
func (r rules) digest() string {
	sum := sha256.New()
	fmt.Fprintf(sum, "%t %t %q", r.keep, r.guarded, r.protected)
	if r.matching != nil {
		fmt.Fprintf(sum, " %q", r.matching)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// push returns a function that pushes the project's repository.
func (c *Controller) push(m *v1alpha1.RemoteMirror, ready ready) pushFunc {
	url, p, r := m.Spec.URL, ready.project.DeepCopy(), ready.rules
	object, declared := audit.ObjectOf(m, ""), m.DeepCopy()
	object.Verb = "push"
	return func(ctx context.Context) (git.PushResult, error) {
		ctx = audit.Because(audit.For(ctx, declared), audit.Event{Objects: []audit.Object{object}})
		repo, err := c.repositories.Of(ctx, p)
		if err != nil {
			return git.PushResult{}, err
		}
		o := git.PushOptions{
			URL: url, Branch: r.branch, Keep: r.keep, Timeout: c.options.Limits.Timeout, Stall: c.options.Limits.Stall,
		}
		if ready.credentials.read != nil {
			if o.Username, o.Password, err = ready.credentials.read(ctx); err != nil {
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

// credentials are the credentials of a mirror.
type credentials struct {
	// version identifies a version of their Secret.
	version string
	// read returns the credentials when a push begins; nil if there are none.
	read func(ctx context.Context) (username, password string, err error)
}

// credentials finds the Secret of a mirror: the declared one, or the platform's.
func (c *Controller) credentials(ctx context.Context, m *v1alpha1.RemoteMirror) (credentials, error) {
	if m.Spec.SecretRef != nil {
		offer := credential.Offer{
			Holder: m.DeepCopy(), Field: "secretRef", Name: m.Spec.SecretRef.Name, Kind: v1alpha1.SecretOfRemoteMirror, URL: m.Spec.URL,
		}
		s, err := offer.Check(ctx, c.frame.Client)
		if err != nil {
			return credentials{}, err
		}
		return credentials{s.ResourceVersion, func(ctx context.Context) (string, string, error) {
			username, password, err := offer.Login(ctx, c.options.Secrets)
			if err == nil && username == "" && password == "" {
				err = fmt.Errorf("secretRef: Secret %s has neither the key username nor the key password", offer.Name)
			}
			return username, password, err
		}}, nil
	}
	if m.Status.SecretRef.Name == "" {
		return credentials{}, nil
	}
	s, err := c.options.Store.Of(ctx, v1alpha1.SecretOfRemoteMirror, m, m.Status.SecretRef.Name)
	if err != nil {
		return credentials{}, err
	}
	if s == nil {
		return credentials{}, frame.Waiting(v1alpha1.ReasonReferenceNotFound,
			"the credentials that were set over REST no longer exist: create a new mirror, or set secretRef")
	}
	return credentials{s.ResourceVersion, func(context.Context) (string, string, error) {
		return string(s.Data[credential.UsernameKey]), string(s.Data[credential.PasswordKey]), nil
	}}, nil
}
