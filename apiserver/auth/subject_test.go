package auth

import (
	"context"
	"strings"
	"testing"

	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/internal/role"
)

func TestGuard_checksEndpoints(t *testing.T) {
	type none = endpoint.None
	project := func(context.Context, Project, *none) (none, error) { return none{}, nil }
	group := func(context.Context, Group, *none) (none, error) { return none{}, nil }
	instance := func(context.Context, Instance, *none) (none, error) { return none{}, nil }
	user := func(context.Context, User, *none) (none, error) { return none{}, nil }
	record := func(context.Context, Record[person], *none) (none, error) { return none{}, nil }
	find := func(context.Context, Subject, int64) (person, error) { return person{}, nil }
	foreign := func(context.Context, Subject, *none) (none, error) { return none{}, nil }
	tests := map[string]struct {
		endpoint *endpoint.Endpoint
		want     string
	}{
		"an ability about its subject":         {endpoint.Get("/projects/{id}", project).Needs(ReadProject), ""},
		"no ability, about the instance":       {endpoint.Get("/version", instance), ""},
		"no ability, about a project":          {endpoint.Get("/projects/{id}", project), `there is no ability ""`},
		"an ability that does not exist":       {endpoint.Get("/projects/{id}", project).Needs("fly"), `there is no ability "fly"`},
		"an ability that the handler asks for": {endpoint.Post("/projects", instance).Anybody().Asks(CreateProjects), ""},
		"an ability to ask for, unknown":       {endpoint.Post("/projects", instance).Anybody().Asks("fly"), `there is no ability "fly"`},
		"an ability of another subject":        {endpoint.Get("/groups/{id}", group).Needs(ReadProject), "the ability read_project is not about auth.Group"},
		"a subject of an unknown kind":         {endpoint.Get("/projects", foreign).Needs(ReadProject), "auth.Subject is not a kind of subject"},
		"anonymous callers, but no ability":    {endpoint.Post("/projects/{id}", project).Needs(PushCode).Anonymous(endpoint.Served), "use endpoint.Hidden"},
		"no ability, about a user":             {endpoint.Get("/users/{id}", user), ""},
		"no ability, and a change":             {endpoint.Put("/users/{id}", user), "name an ability by Needs, or say Anybody"},
		"no ability, and a change by anybody":  {endpoint.Post("/projects", instance).Anybody(), ""},
		"an ability, and a change by anybody":  {endpoint.Post("/users", instance).Needs(AdminInstance).Anybody(), "the ability admin_instance is not that of anybody"},
		"a user, and an ability of a project":  {endpoint.Get("/users/{id}", user).Needs(ReadProject), "the ability read_project is not about auth.User"},
		"a rule on a user":                     {endpoint.Put("/users/{id}", user).Needs(AdminInstance).Or(Own), ""},
		"a rule without an ability":            {endpoint.Put("/users/{id}", user).And(Own), "the rule own is about a record, and beside an ability"},
		"a rule on no record":                  {endpoint.Put("/projects/{id}", project).Needs(AdminProject).Or(Own), "the rule own is about a record, and beside an ability"},
		"a rule that does not exist":           {endpoint.Put("/users/{id}", user).Needs(AdminInstance).Or("friend"), `there is no rule "friend"`},
		"a record":                             {endpoint.Put("/records/{id}", record).Found(find).Needs(AdminInstance).And(Own), ""},
		"a private record":                     {endpoint.Put("/records/{id}", record).Found(find).Needs(AdminInstance).And(Private), "a record that is Missable"},
		"a record that nothing finds":          {endpoint.Put("/records/{id}", record).Needs(AdminInstance), "is found by <nil>"},
		"a record that something else finds":   {endpoint.Put("/records/{id}", record).Found(TestGuard_checksEndpoints).Needs(AdminInstance), "is found by func(*testing.T)"},
		"a project that something finds":       {endpoint.Put("/projects/{id}", project).Found(find).Needs(AdminProject), "no auth.Project is found by"},
		"a project, and an administrator":      {endpoint.Get("/projects/{id}", project).Needs(AdminInstance), ""},
		"a record, and an ability of a group":  {endpoint.Put("/records/{id}", record).Found(find).Needs(ReadGroup), "the ability read_group is not about"},
		"a feature":                            {endpoint.Get("/version", instance).Feature("mr_approved_filter"), ""},
		"a feature that does not exist":        {endpoint.Get("/version", instance).Feature("dark_mode"), `there is no feature "dark_mode"`},
		"hidden from callers who may see it":   {endpoint.Get("/projects/{id}", project).Needs(ReadProject).Anonymous(endpoint.Hidden), "that is endpoint.Served"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			err := (&Guard{}).Check(tt.endpoint)
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestSubject_hasOnlyAbilitiesThatTheTableNames(t *testing.T) {
	e := endpoint.Post("/projects/{id}/labels", func(context.Context, Project, *endpoint.None) (endpoint.None, error) { return endpoint.None{}, nil }).
		Needs(WriteLabels).Asks(WriteGroupLabels)
	s := Subject{endpoint: e}
	for what, want := range map[endpoint.Ability]bool{WriteLabels: true, WriteGroupLabels: true, AdminProject: false, OwnProject: false} {
		if got := s.Has(Access{Role: role.Owner}, what); got != want {
			t.Errorf("%s: got %t", what, got)
		}
		if s.Has(Access{Role: role.Guest}, what) {
			t.Errorf("a guest has %s", what)
		}
	}
}
