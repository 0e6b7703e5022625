// Package token issues and verifies the tokens with which clients use the registry: signed statements of what their bearer can do with which
// repositories (API behaviour, section 2.11).
package token

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4" // signs and parses JSON web tokens; the storage of the registry needs it anyway
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// Service is the name of the registry, which clients ask for as the parameter "service".
	Service = "container_registry"
	// issuer is the name of the signer.
	issuer = "forgeplane"
	// skew is the difference of clocks that is tolerated.
	skew = 5 * time.Second
)

// Types of what a token gives access to.
const (
	TypeRepository = "repository"
	TypeRegistry   = "registry"
)

// Actions on repositories, and the one on the catalog.
const (
	Pull   = "pull"
	Push   = "push"
	Delete = "delete"
	All    = "*"
)

// Catalog is the name of the list of all repositories.
const Catalog = "catalog"

// ErrInvalid says that a token is malformed, expired, or signed with an unknown key.
var ErrInvalid = errors.New("the registry token is not valid: it may have expired")

// Access has the allowed actions on one repository, or on the catalog.
type Access struct {
	Type    string   `json:"type"`
	Name    string   `json:"name"`
	Actions []string `json:"actions"`
	Meta    *Meta    `json:"meta,omitempty"`
}

// Meta is the project of a repository at the time at which the token was issued. The token is not valid for another project that takes over the
// name.
type Meta struct {
	ProjectPath     string    `json:"project_path"`
	ProjectID       int64     `json:"project_id"`
	ProjectUID      types.UID `json:"project_uid"`
	RootNamespaceID int64     `json:"root_namespace_id"`
}

// Claims are the claims of a token, apart from its times.
type Claims struct {
	// Subject is the username of the bearer; empty for an anonymous one.
	Subject string `json:"-"`
	// Type is the kind of credential of the bearer. It is empty for an anonymous bearer.
	Type string `json:"auth_type,omitempty"`
	// Credential is the access token with which the bearer has signed in; nil for an anonymous one. A token is accepted only as long as that is.
	Credential *Credential `json:"credential,omitempty"`
	Access     []Access    `json:"access"`
}

// Credential is an access token with the value that it had when a token was issued for it, or the token of a job.
type Credential struct {
	// UID is empty for the token of a job.
	UID types.UID `json:"uid"`
	// Digest is the one by which the access token is found. The value cannot be guessed from it, because values are long and random.
	Digest string `json:"digest"`
}

// Scope is one that a client asks for, as in "repository:group/project:pull,push".
type Scope struct {
	Type, Name string
	Actions    []string
}

// ParseScope parses a scope. It reports false for a malformed one.
func ParseScope(text string) (Scope, bool) {
	kind, rest, ok := strings.Cut(text, ":")
	last := strings.LastIndexByte(rest, ':')
	if !ok || last <= 0 {
		return Scope{}, false
	}
	kind, _, _ = strings.Cut(kind, "(") // a class, as in "repository(plugin)"
	s := Scope{Type: kind, Name: rest[:last]}
	for _, a := range strings.Split(rest[last+1:], ",") {
		if a != "" {
			s.Actions = append(s.Actions, a)
		}
	}
	return s, len(s.Actions) > 0
}

// Issue returns a token for a service that is valid for a time.
func (k *Keys) Issue(c Claims, service string, lifetime time.Duration) (string, error) {
	now := k.clock.Now()
	signer, err := k.signer()
	if err != nil {
		return "", err
	}
	registered := jwt.Claims{
		Issuer: issuer, Subject: c.Subject, Audience: jwt.Audience{service}, ID: uuid.NewString(),
		IssuedAt: jwt.NewNumericDate(now), NotBefore: jwt.NewNumericDate(now.Add(-skew)), Expiry: jwt.NewNumericDate(now.Add(lifetime)),
	}
	if c.Access == nil {
		c.Access = []Access{}
	}
	text, err := jwt.Signed(signer).Claims(registered).Claims(c).Serialize()
	if err != nil {
		return "", fmt.Errorf("signing a token: %w", err)
	}
	return text, nil
}

// Verify returns the claims of a token that is valid now. The error is ErrInvalid for any other.
func (k *Keys) Verify(text string) (Claims, error) {
	parsed, err := jwt.ParseSigned(text, []jose.SignatureAlgorithm{algorithm})
	if err != nil || len(parsed.Headers) != 1 {
		return Claims{}, ErrInvalid
	}
	key, ok := k.verifier(parsed.Headers[0].KeyID)
	if !ok {
		return Claims{}, ErrInvalid
	}
	var registered jwt.Claims
	var c Claims
	if err := parsed.Claims(key, &registered, &c); err != nil {
		return Claims{}, ErrInvalid
	}
	expected := jwt.Expected{Issuer: issuer, AnyAudience: jwt.Audience{Service}, Time: k.clock.Now()}
	if err := registered.ValidateWithLeeway(expected, skew); err != nil || registered.Expiry == nil {
		return Claims{}, ErrInvalid
	}
	c.Subject = registered.Subject
	return c, nil
}

// Allows returns the access to a resource that has an action.
func (c Claims) Allows(kind, name, action string) (Access, bool) {
	for _, a := range c.Access {
		if a.Type != kind || a.Name != name {
			continue
		}
		for _, allowed := range a.Actions {
			if allowed == action || allowed == All {
				return a, true
			}
		}
	}
	return Access{}, false
}
