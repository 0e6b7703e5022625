// Package jobtoken decides whether the token of a CI job, which acts for a user, can read a project.
package jobtoken

import (
	"context"
	"fmt"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
)

// Outcome is the access of a job token to a project, in ascending order.
type Outcome int

const (
	// Refused means no access: the project must look as if it did not exist. It is the zero value.
	Refused Outcome = iota
	// AsAnybody means the access of anonymous callers. The token gives no access that requires a membership or signing in.
	AsAnybody
	// AsUser means the access of the job's user, and never more, because scopes only restrict access.
	AsUser
)

// Question has the input of a decision.
type Question struct {
	// Own is true if the job belongs to the project that it reads.
	Own bool
	// Restricted is true if the project allows only the projects of its allowlists.
	Restricted bool
	// Listed is true if the job's project, or a group above it, is in one of the allowlists.
	Listed bool
	Rights
}

// Rights are the permissions to read a project, apart from job token scopes.
type Rights struct {
	// User is true if the job's user can read the project.
	User bool
	// Anybody is true if anonymous callers can read the project.
	Anybody bool
}

// Decide decides on a question. A job of the project itself has the access of its user, regardless of the scope. A job of another project
// has it if the scope is not restricted or lists that project. All other jobs have the access of anonymous callers.
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

// Scopes decides with the declared job token scopes.
type Scopes struct{ catalog *catalog.Catalog }

// NewScopes returns the scopes in a catalog.
func NewScopes(c *catalog.Catalog) *Scopes { return &Scopes{catalog: c} }

// Decide returns the access to target for the token of a job of source, whose user has the given rights in target. A project without a
// JobTokenScope is restricted, with an empty allowlist. The outcome of an error is Refused.
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
