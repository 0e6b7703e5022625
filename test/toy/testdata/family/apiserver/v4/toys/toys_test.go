package toys_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/apiserver/v4/toys"
)

func TestToys_areListedAndRemoved(t *testing.T) {
	f := familytest.New(t,
		familytest.User("root", 1, familytest.Admin), familytest.Group("acme", "acme", 10, "", v1alpha1.VisibilityPublic),
		familytest.Project("acme", "web", 20, "acme", v1alpha1.VisibilityPublic),
		&v1alpha1.Toy{
			ObjectMeta: metav1.ObjectMeta{Namespace: "acme", Name: "ball"},
			Spec:       v1alpha1.ToySpec{ID: 30, ProjectRef: &v1alpha1.Reference{Name: "web"}},
		},
	)
	f.Serve(toys.New(f.Kit).Table())
	for _, step := range []struct{ request, want string }{
		{"GET /projects/20/toys", `200 [{"id":30}]`},
		{"DELETE /projects/20/toys/31", `404 {"message":"404 Not found"}`},
		{"DELETE /projects/20/toys/30", "204"},
		{"GET /projects/20/toys", "200 []"},
	} {
		if got := f.As("root", step.request, ""); got.String() != step.want {
			t.Errorf("%s: got %s, want %s", step.request, got, step.want)
		}
	}
}
