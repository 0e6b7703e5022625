package store_test

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/store"
)

func TestGroups_findsGroupOfRequest(t *testing.T) {
	s := newShop(t, v1alpha1.RESTWritesAllow)
	above := auth.Subject{Scope: s.web.Scope}
	above.Scope.Project = nil
	g, err := store.Groups(s.Writer).Get(t.Context(), above, store.Only{})
	if err != nil || g.Name != "acme" {
		t.Errorf("got %v, %v", g, err)
	}
}

func TestProjects_refuseIfProjectRefusesWrites(t *testing.T) {
	for policy, want := range map[v1alpha1.RESTWrites]int{v1alpha1.RESTWritesAllow: 0, v1alpha1.RESTWritesRefuse: 403} {
		for verb, write := range map[string]func(s *shop) error{
			"update": func(s *shop) error {
				_, err := store.Projects(s.Writer).Update(t.Context(), s.web, store.Only{}, func(p *v1alpha1.Project) error {
					p.Spec.Description = "changed"
					return nil
				})
				return err
			},
			"delete": func(s *shop) error { return store.Projects(s.Writer).Delete(t.Context(), s.web, store.Only{}) },
		} {
			s := newShop(t, policy)
			writes := 0
			s.Before = func(string, client.Object) error { writes++; return nil }
			if got := status(write(s)); got != want || (want == 0) != (writes == 1) {
				t.Errorf("%s of a project with %s: %d and %d writes, want %d", verb, policy, got, writes, want)
			}
		}
	}
}
