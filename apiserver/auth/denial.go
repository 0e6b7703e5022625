package auth

import (
	"net/http"

	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/internal/role"
)

// signIn describes the answer to a request without a token that Forgeplane reads.
const signIn = "The request has no access token: send one in the header PRIVATE-TOKEN, or in the header Authorization as Bearer. " +
	"Other schemes, such as Token and Basic, do not count."

// denial returns the answer to a caller who lacks the ability that the endpoint needs.
func (s Subject) denial() *endpoint.Error {
	if s.challenged() {
		return endpoint.Unauthorized("").Describe(signIn)
	}
	if rule, _ := s.endpoint.Rule(); rule != "" {
		return s.endpoint.Denial() // must not depend on the owner of the record
	}
	return s.denied(s.Access, s.endpoint.Ability(), s.endpoint.Denial())
}

// Denied returns 403 for a caller who lacks an ability that only some requests of an endpoint need. The endpoint must declare it with Asks.
func (s Subject) Denied(what endpoint.Ability) *endpoint.Error {
	return s.denied(s.Access, what, endpoint.Forbidden(""))
}

// denied adds to a refusal which role the caller lacks for an ability. The access is the caller's on a project or group that they can see; an
// answer that hides something stays as it is.
func (s Subject) denied(access Access, what endpoint.Ability, answer *endpoint.Error) *endpoint.Error {
	needs := rules[what]
	switch {
	case answer.Status != http.StatusForbidden && answer.Status != http.StatusUnauthorized:
		return answer
	case s.Caller.Anonymous():
		return answer.Describe(signIn)
	case needs.about == aboutInstance:
		return answer.Describe("Only administrators can do this.")
	case len(s.Scope.Groups) == 0 || access.Role >= needs.role:
		return answer
	}
	in, has := "group", "have no role in it"
	if s.Scope.Project != nil {
		in = "project"
	}
	if access.Role > role.None {
		has = "have the role " + access.Role.String()
	}
	return answer.Describe("This needs the role %s in the %s, and you %s.", needs.role, in, has)
}
