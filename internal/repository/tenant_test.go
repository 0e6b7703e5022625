package repository_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/fair"
	"github.com/forgeplane/forgeplane/internal/repository"
)

func TestTenant(t *testing.T) {
	repos := repository.New(nil, nil).WithHome("home")
	for _, c := range []struct {
		namespace, creator string
		want               fair.Key
	}{
		{"acme", "", fair.Namespace("acme")},
		{"acme", "7", fair.Namespace("acme")}, // a tenant can set any creator
		{"home", "7", fair.User(7)},
		{"home", "", fair.Namespace("home")},
		{"home", "x", fair.Namespace("home")},
	} {
		p := &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace}}
		if c.creator != "" {
			p.Labels = map[string]string{v1alpha1.LabelCreator: c.creator}
		}
		if got := repos.Tenant(p); got != c.want {
			t.Errorf("of %q in %s: got %+v, want %+v", c.creator, c.namespace, got, c.want)
		}
		if got := fair.From(repos.WithTenant(t.Context(), p)); got != c.want {
			t.Errorf("of %q in %s: %+v does the work, want %+v", c.creator, c.namespace, got, c.want)
		}
	}
	p := &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{v1alpha1.LabelCreator: "7"}}}
	if got := repository.New(nil, nil).Tenant(p); got != fair.Namespace("") {
		t.Errorf("without a home: got %+v", got)
	}
}
