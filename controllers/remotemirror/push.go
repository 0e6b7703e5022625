package remotemirror

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/credential"
	"github.com/forgeplane/forgeplane/internal/frame"
	"github.com/forgeplane/forgeplane/internal/git/transfer"
	"github.com/forgeplane/forgeplane/internal/pattern"
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
		if r.matching, err = pattern.Branches(m.Spec.BranchRegex); errors.Is(err, pattern.ErrFullName) {
			return r, frame.Stalled(v1alpha1.ReasonInvalid, "branchRegex %w", err)
		} else if err != nil {
			return r, frame.Stalled(v1alpha1.ReasonInvalid, "branchRegex is not in RE2 syntax, or too large: %w", err)
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
	return func(ctx context.Context) (transfer.PushResult, error) {
		ctx = audit.WithReason(audit.For(ctx, declared), audit.Event{Objects: []audit.Object{object}})
		repo, err := c.repositories.Of(ctx, p)
		if err != nil {
			return transfer.PushResult{}, err
		}
		o := transfer.PushOptions{
			URL: url, Branch: r.branch, Keep: r.keep, Timeout: c.options.Limits.Timeout, Stall: c.options.Limits.Stall,
		}
		if ready.credentials.read != nil {
			login, err := ready.credentials.read(ctx)
			if err != nil {
				return transfer.PushResult{}, err
			}
			o.Username, o.Password, o.Identity, o.KnownHosts = login.Username, login.Password, login.Identity, login.KnownHosts
		}
		var result transfer.PushResult
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
	read func(ctx context.Context) (credential.Login, error)
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
		return credentials{s.ResourceVersion, func(ctx context.Context) (credential.Login, error) {
			login, err := offer.Login(ctx, c.options.Secrets)
			if err == nil {
				err = complete(offer.URL, offer.Name, login) // the attempt runs while the reconcile writes m
			}
			return login, err
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
	return credentials{s.ResourceVersion, func(context.Context) (credential.Login, error) {
		return credential.LoginOf(s), nil
	}}, nil
}

// complete returns an error if a declared Secret lacks a key that a URL needs.
func complete(url, secret string, l credential.Login) error {
	ssh := strings.HasPrefix(url, "ssh:")
	switch {
	case !ssh && l.Username == "" && l.Password == "":
		return fmt.Errorf("secretRef: Secret %s has neither the key %s nor the key %s", secret, credential.UsernameKey, credential.PasswordKey)
	case ssh && len(l.Identity) == 0 && l.Password == "":
		return fmt.Errorf("secretRef: Secret %s has neither the key %s nor the key %s", secret, corev1.SSHAuthPrivateKey, credential.PasswordKey)
	case ssh && len(l.KnownHosts) == 0:
		return fmt.Errorf("secretRef: Secret %s has no key %s with the host keys of the target, as ssh-keyscan prints them", secret, credential.KnownHostsKey)
	}
	return nil
}
