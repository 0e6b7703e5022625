package auth

import (
	"context"
	"fmt"
	"reflect"

	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/role"
)

// Subject is what a request is about, and what its caller may do with it. A handler takes one of its forms, and so says what its
// endpoint is about.
type Subject struct {
	Caller Caller
	// Scope has the project or group; nothing for an Instance.
	Scope  catalog.Scope
	Access Access

	// endpoint is what is asked for, and id what its path names.
	endpoint *endpoint.Endpoint
	id       string
}

// Instance is the form of endpoints that are about the installation as a whole.
type Instance struct{ Subject }

// Project is the form of endpoints that are about a project.
type Project struct{ Subject }

// Group is the form of endpoints that are about a group, and not about a user's own namespace.
type Group struct{ Subject }

// Namespace is the form of endpoints that are about what holds projects: a group, or a user's own namespace.
type Namespace struct{ Subject }

var (
	_ endpoint.Located = Project{}
	_ endpoint.Located = Group{}
	_ endpoint.Located = Namespace{}
)

// Parameter implements endpoint.Located.
func (Project) Parameter() string { return "Id or full path of the project." }

// Parameter implements endpoint.Located.
func (Group) Parameter() string { return "Id or full path of the group." }

// Parameter implements endpoint.Located.
func (Namespace) Parameter() string { return "Id or full path of the group, or username." }

// Form is a form of Subject.
type Form interface {
	Instance | Project | Group | Namespace
	// About is the subject, whatever its form is.
	About() Subject
}

// Named is what the path of the request calls the project or group: its id or full path, as the client has sent it.
func (s Subject) Named() string { return s.id }

// About implements Form.
func (s Subject) About() Subject { return s }

// On returns a handler for the subjects of a form, of one that treats those of all forms alike.
func On[S Form, Req, Resp any](handler endpoint.Func[Subject, Req, Resp]) endpoint.Func[S, Req, Resp] {
	return func(ctx context.Context, s S, r *Req) (Resp, error) { return handler(ctx, s.About(), r) }
}

// form is what the type of a subject stands for.
type form struct {
	about subject
	of    func(Subject) any
}

// formOf returns the form that a type stands for; false for any other type.
func formOf(t reflect.Type) (form, bool) {
	switch t {
	case reflect.TypeFor[Project]():
		return form{aboutProject, func(s Subject) any { return Project{s} }}, true
	case reflect.TypeFor[Group]():
		return form{aboutGroup, func(s Subject) any { return Group{s} }}, true
	case reflect.TypeFor[Namespace]():
		return form{aboutNamespace, func(s Subject) any { return Namespace{s} }}, true
	case reflect.TypeFor[Instance]():
		return form{aboutInstance, func(s Subject) any { return Instance{s} }}, true
	case reflect.TypeFor[endpoint.None]():
		return form{aboutInstance, func(Subject) any { return endpoint.None{} }}, true
	default:
		return form{}, false
	}
}

// Check implements endpoint.Guard: the ability of an endpoint must be one about its subject, and only an endpoint about the instance can
// do without.
func (g *Guard) Check(e *endpoint.Endpoint) error {
	f, known := formOf(e.Subject())
	if !known {
		return fmt.Errorf("%s is no form of a subject", e.Subject())
	}
	for _, c := range e.Credentials() {
		if c != endpoint.AccessToken {
			return fmt.Errorf("nobody is known by a credential of the kind %s", c)
		}
	}
	what := e.Ability()
	if what == "" && f.about == aboutInstance {
		return nil
	}
	r, known := rules[what]
	switch public := r.role == role.None; {
	case !known:
		return fmt.Errorf("there is no ability %q", what)
	case r.about != f.about:
		return fmt.Errorf("the ability %s is not about %s", what, e.Subject())
	case e.ForAnonymous() == endpoint.Served && !public:
		return fmt.Errorf("nobody is served without an account, as nobody has the ability %s then: that is endpoint.Hidden", what)
	case e.ForAnonymous() == endpoint.Hidden && public:
		return fmt.Errorf("everybody is served who may see the subject, as all have the ability %s then: that is endpoint.Served", what)
	default:
		return nil
	}
}
