package auth

import (
	"context"
	"strings"
	"testing"

	"github.com/forgeplane/forgeplane/apiserver/endpoint"
)

func TestGuard_checksEndpoints(t *testing.T) {
	type none = endpoint.None
	project := func(context.Context, Project, *none) (none, error) { return none{}, nil }
	group := func(context.Context, Group, *none) (none, error) { return none{}, nil }
	instance := func(context.Context, Instance, *none) (none, error) { return none{}, nil }
	foreign := func(context.Context, Subject, *none) (none, error) { return none{}, nil }
	tests := map[string]struct {
		endpoint *endpoint.Endpoint
		want     string
	}{
		"an ability about its subject":         {endpoint.Get("/projects/{id}", project).Needs(ReadProject), ""},
		"none, about the instance":             {endpoint.Get("/version", instance), ""},
		"none, about a project":                {endpoint.Get("/projects/{id}", project), `there is no ability ""`},
		"one that nobody defined":              {endpoint.Get("/projects/{id}", project).Needs("fly"), `there is no ability "fly"`},
		"one about something else":             {endpoint.Get("/groups/{id}", group).Needs(ReadProject), "the ability read_project is not about auth.Group"},
		"a subject that is none":               {endpoint.Get("/projects", foreign).Needs(ReadProject), "auth.Subject is no form of a subject"},
		"served to nobody who has the ability": {endpoint.Post("/projects/{id}", project).Needs(PushCode).Anonymous(endpoint.Served), "that is endpoint.Hidden"},
		"hidden from those who have it":        {endpoint.Get("/projects/{id}", project).Needs(ReadProject).Anonymous(endpoint.Hidden), "that is endpoint.Served"},
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
