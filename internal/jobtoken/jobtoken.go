// Package jobtoken decides what the token of a CI job may be used for: whether a job of one project, which acts for a user, may
// read another project.
package jobtoken

import (
	"context"
	"fmt"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
)

// Outcome is what a job token is good for in a project. Each is more than the one before it.
type Outcome int

const (
	// Refused is nothing at all: the project must look as if it did not exist. It is the zero value.
	Refused Outcome = iota
	// AsAnybody is what anybody may do without a token. The token adds nothing to that: what is for members or for users who are
	// signed in stays out of its reach.
	AsAnybody
	// AsUser is what the job's user may do, and never more: a scope opens a door, it grants no right.
	AsUser
)

// Question has all that a decision depends on.
type Question struct {
	// Own is true when the job belongs to the project that it reads.
	Own bool
	// Restricted is true when the project lets in no other projects than those of its allowlists.
	Restricted bool
	// Listed is true when the job's project, or a group above it, is in one of them.
	Listed bool
	Rights
}

// Rights are those to read a project without regard to job token scopes.
type Rights struct {
	// User is true when the job's user may read the project now.
	User bool
	// Anybody is true when everybody may, without a token.
	Anybody bool
}

// Decide answers a question. A job of the project itself has its user's rights whatever the scope says. So has a job of another
// project where the scope is not restricted, or lists that project. Everybody else's token is worth no more than none.
func Decide(q Question) Outcome {
	switch {
	case q.User && (q.Own || !q.Restricted || q.Listed):
		return AsUser
	case q.Anybody:
		return AsAnybody
	default:
		return Refused
	}
}

// Scopes answers questions by what is declared.
type Scopes struct{ catalog *catalog.Catalog }

// NewScopes returns the scopes that a catalog holds.
func NewScopes(c *catalog.Catalog) *Scopes { return &Scopes{catalog: c} }

// Decide answers what the token of a job of source, whose user has the rights in target, is good for in target. A project for
// which no JobTokenScope is declared is restricted, with an empty allowlist. With an error the outcome is Refused.
func (s *Scopes) Decide(ctx context.Context, source *v1alpha1.Project, target catalog.Scope, may Rights) (Outcome, error) {
	q := Question{Own: source.UID == target.Project.UID, Restricted: true, Rights: may}
	if q.Own {
		return Decide(q), nil
	}
	declared, err := ScopeOf(ctx, s.catalog, target)
	if err != nil {
		return Refused, fmt.Errorf("looking up the job token scope of %s: %w", target.Path(), err)
	}
	if declared != nil {
		q.Restricted = declared.Spec.Restricted()
		if q.Listed, err = lists(ctx, s.catalog, declared, source); err != nil {
			return Refused, fmt.Errorf("looking up who is in the job token scope of %s: %w", target.Path(), err)
		}
	}
	return Decide(q), nil
}
