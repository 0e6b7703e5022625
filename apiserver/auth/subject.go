package auth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/feature"
	"github.com/forgeplane/forgeplane/internal/role"
)

// Subject is the thing that a request is about, with the caller's permissions on it. A handler takes one of its forms, which declares what
// its endpoint is about.
type Subject struct {
	Caller Caller
	// Scope has the project or group; empty for an Instance.
	Scope  catalog.Scope
	Access Access

	// endpoint is the requested endpoint, and named are the path parameters that name the subject, the outermost container first.
	endpoint *endpoint.Endpoint
	named    []string
}

// Instance is the form of endpoints that are about the installation as a whole.
type Instance struct{ Subject }

// Project is the form of endpoints that are about a project.
type Project struct{ Subject }

// Group is the form of endpoints that are about a group, but not a user's own namespace.
type Group struct{ Subject }

// Namespace is the form of endpoints about a container of projects: a group, or a user's own namespace.
type Namespace struct{ Subject }

// Parameters implements endpoint.Located.
func (Project) Parameters() []endpoint.Parameter {
	return []endpoint.Parameter{{Doc: "Id or full path of the project."}}
}

// Parameters implements endpoint.Located.
func (Group) Parameters() []endpoint.Parameter {
	return []endpoint.Parameter{{Doc: "Id or full path of the group."}}
}

// Parameters implements endpoint.Located.
func (Namespace) Parameters() []endpoint.Parameter {
	return []endpoint.Parameter{{Doc: "Id or full path of the group, or username."}}
}

// Form is a form of Subject.
type Form interface {
	Instance | Project | Group | Namespace
	// About returns the Subject.
	About() Subject
}

// Named returns the id or full path of the project or group as the client sent it in the path.
func (s Subject) Named() string {
	if len(s.named) == 0 {
		return ""
	}
	return s.named[0]
}

// Has reports whether an access includes an ability that the endpoint's table declares, by Needs or Asks. The access is the subject's own,
// or one that Guard.Access returned for the caller. Has reports false for an ability that the table does not declare.
func (s Subject) Has(access Access, what endpoint.Ability) bool {
	return (what == s.endpoint.Ability() || slices.Contains(s.endpoint.Asked(), what)) && s.permits(access, what)
}

// permits reports whether an access includes an ability in a request to the endpoint.
func (s Subject) permits(access Access, what endpoint.Ability) bool {
	if s.endpoint.Method() == http.MethodGet {
		return access.mayRead(what)
	}
	return access.may(what)
}

// About implements Form.
func (s Subject) About() Subject { return s }

// On adapts a handler that treats the subjects of all forms alike to one form.
func On[S Form, Req, Resp any](handler endpoint.Func[Subject, Req, Resp]) endpoint.Func[S, Req, Resp] {
	return func(ctx context.Context, s S, r *Req) (Resp, error) { return handler(ctx, s.About(), r) }
}

// form describes a form of Subject.
type form struct {
	about subject
	// of converts a subject to the form, with the record that was found for it.
	of func(s Subject, record any) any
	// finds reports whether the value that endpoint.Found set can find the record, and find finds it. Both are nil if the subject is not a
	// record.
	finds func(by any) bool
	find  func(ctx context.Context, q *search) (Kept, error)
	// missing is the Missing of a Placed record, and concealed that of an innermost record which the rule Private can be about; nil for others.
	missing, concealed func() *endpoint.Error
}

func (Project) form() form {
	return form{about: aboutProject, of: func(s Subject, _ any) any { return Project{s} }}
}

func (Group) form() form {
	return form{about: aboutGroup, of: func(s Subject, _ any) any { return Group{s} }}
}

func (Namespace) form() form {
	return form{about: aboutNamespace, of: func(s Subject, _ any) any { return Namespace{s} }}
}

func (Instance) form() form {
	return form{about: aboutInstance, of: func(s Subject, _ any) any { return Instance{s} }}
}

// formOf returns the form of an endpoint's subject, or false if the subject has none.
func formOf(e *endpoint.Endpoint) (form, bool) {
	switch zero := e.Subject().(type) {
	case interface{ form() form }:
		return zero.form(), true
	case endpoint.None:
		return form{about: aboutInstance, of: func(Subject, any) any { return endpoint.None{} }}, true
	default:
		return form{}, false
	}
}

// Check implements endpoint.Guard. The ability of an endpoint must apply to its subject. Only endpoints about the instance or a user can do
// without an ability, and they must call Anybody if they change something.
func (g *Guard) Check(e *endpoint.Endpoint) error {
	f, known := formOf(e)
	if !known {
		return fmt.Errorf("%T is not a kind of subject", e.Subject())
	}
	for _, c := range e.Credentials() {
		if !f.takes(e, c) {
			return fmt.Errorf("no caller of %T can have a credential of kind %s", e.Subject(), c)
		}
		if err := checkFeature(e.CredentialFeature(c)); err != nil {
			return err
		}
	}
	if err := checkFeature(e.RequiredFeature()); err != nil {
		return err
	}
	for _, what := range e.Asked() {
		if _, known := rules[what]; !known {
			return fmt.Errorf("there is no ability %q", what)
		}
	}
	if err := checkRecord(e, f); err != nil {
		return err
	}
	return checkAbility(e, f)
}

func checkFeature(name string) error {
	if _, known := feature.Find(name); name != "" && !known {
		return fmt.Errorf("there is no feature %q", name)
	}
	return nil
}

func checkAbility(e *endpoint.Endpoint, f form) error {
	what := e.Ability()
	if what == "" && (f.about == aboutInstance || f.about == aboutUser) {
		if e.Method() != http.MethodGet && !e.ForAnybody() {
			return errors.New("everybody who has signed in could change something: name an ability by Needs, or say Anybody")
		}
		return nil
	}
	if e.ForAnybody() {
		return fmt.Errorf("the ability %s is not that of anybody", what)
	}
	r, known := rules[what]
	switch public := r.role == role.None; {
	case !known:
		return fmt.Errorf("there is no ability %q", what)
	case !f.about.admits(r.about):
		return fmt.Errorf("the ability %s is not about %T", what, e.Subject())
	case e.ForAnonymous() == endpoint.Served && !public:
		return fmt.Errorf("ability %s is never granted to anonymous callers: use endpoint.Hidden", what)
	case e.ForAnonymous() == endpoint.Hidden && public:
		return fmt.Errorf("everybody is served who may see the subject, as all have the ability %s then: that is endpoint.Served", what)
	default:
		return nil
	}
}
