package store_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/store"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/internal/catalog"
)

func badge(name, project string, id int64) *v1alpha1.Badge {
	return &v1alpha1.Badge{
		ObjectMeta: metav1.ObjectMeta{Namespace: "acme", Name: name},
		Spec: v1alpha1.BadgeSpec{
			ID: id, ProjectRef: &v1alpha1.Reference{Name: project}, LinkURL: "https://a.example", ImageURL: "https://a.example/a.svg",
		},
	}
}

// shop has the project web with the badges 30 and 31 and a badge without an id, and the project other with the badge 40.
type shop struct {
	*familytest.Forge
	badges store.Identified[*v1alpha1.Badge]
	web    auth.Subject
}

func newShop(t *testing.T, policy v1alpha1.RESTWrites) *shop {
	t.Helper()
	web := familytest.Project("acme", "web", 20, "acme", v1alpha1.VisibilityPublic)
	web.Spec.RESTWrites = policy
	f := familytest.New(t,
		familytest.Group("acme", "acme", 10, "", v1alpha1.VisibilityPublic), web,
		familytest.Project("acme", "other", 21, "acme", v1alpha1.VisibilityPublic),
		badge("b", "web", 31), badge("a", "web", 30), badge("new", "web", 0), badge("c", "other", 40),
	)
	scope, err := f.Catalog.ProjectScope(t.Context(), web)
	if err != nil {
		t.Fatal(err)
	}
	return &shop{f, store.ByID(f.Writer, f.Catalog, catalog.ListInScope[*v1alpha1.Badge]).Named("", "Badge"), auth.Subject{Scope: scope}}
}

// write calls the method for a verb, for the badge with an id.
func (s *shop) write(ctx context.Context, verb string, id int64) error {
	rename := func(b *v1alpha1.Badge) error {
		b.Spec.Name = "renamed"
		return nil
	}
	var err error
	switch verb {
	case "create":
		b := badge("made", "web", 0)
		b.Spec.ProjectRef = &v1alpha1.Reference{Name: "web", UID: string(s.web.Scope.Project.UID)}
		err = s.badges.Create(ctx, b)
	case "update":
		_, err = s.badges.Update(ctx, s.web, id, rename)
	case "act":
		_, err = s.badges.Act(ctx, s.web, id, rename)
	case "delete":
		err = s.badges.Delete(ctx, s.web, id)
	}
	return err
}

func status(err error) int {
	var answer *endpoint.Error
	switch {
	case err == nil:
		return 0
	case errors.As(err, &answer):
		return answer.Status
	default:
		return -1
	}
}

func TestStore_writesOnlyObjectsOfItsProject(t *testing.T) {
	for _, verb := range []string{"update", "act", "delete"} {
		for id, want := range map[int64]int{30: 0, 40: 404, 50: 404, 0: 404} {
			if got := status(newShop(t, v1alpha1.RESTWritesAllow).write(t.Context(), verb, id)); got != want {
				t.Errorf("%s of the badge %d: %d, want %d", verb, id, got, want)
			}
		}
	}
}

func TestStore_refusesIfProjectRefusesWrites(t *testing.T) {
	for verb, want := range map[string]int{"create": 403, "update": 403, "delete": 403, "act": 0} {
		s := newShop(t, v1alpha1.RESTWritesRefuse)
		writes := 0
		s.Before = func(string, client.Object) error { writes++; return nil }
		if got := status(s.write(t.Context(), verb, 30)); got != want || (want != 0) != (writes == 0) {
			t.Errorf("%s: %d and %d writes, want %d", verb, got, writes, want)
		}
	}
}

func TestCreate_deletesObjectThatCannotBeCompleted(t *testing.T) {
	s := newShop(t, v1alpha1.RESTWritesAllow)
	b := badge("made", "web", 0)
	b.Spec.ProjectRef = &v1alpha1.Reference{Name: "web", UID: string(s.web.Scope.Project.UID)}
	broken := errors.New("broken")
	err := s.badges.Create(t.Context(), b, func(context.Context, store.Unasked) error { return broken })
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(b), &v1alpha1.Badge{}); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("the badge is still there: %v", err)
	}
}

func TestStore_namesTheKindIn404(t *testing.T) {
	s := newShop(t, v1alpha1.RESTWritesAllow)
	for verb, want := range map[string]string{"update": `404 {"message":"404 Not found"}`, "delete": `404 {"message":"404 Badge Not Found"}`} {
		if err := s.write(t.Context(), verb, 50); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", verb, err, want)
		}
	}
}

func TestIdentified_listsObjectsWithIDsInOrder(t *testing.T) {
	s := newShop(t, v1alpha1.RESTWritesAllow)
	all, err := s.badges.List(t.Context(), s.web)
	if err != nil || len(all) != 2 || all[0].RESTID() != 30 || all[1].RESTID() != 31 {
		t.Errorf("got %v, %v", all, err)
	}
}

func TestVisible_omitsObjectsWithoutIDAndUnwantedOnes(t *testing.T) {
	all := func() []*v1alpha1.Badge {
		return []*v1alpha1.Badge{badge("b", "web", 31), badge("new", "web", 0), badge("a", "web", 30)}
	}
	for name, tt := range map[string]struct {
		wanted func(*v1alpha1.Badge) bool
		want   []string
	}{
		"all":  {want: []string{"a", "b"}},
		"some": {wanted: func(b *v1alpha1.Badge) bool { return b.Name != "b" }, want: []string{"a"}},
	} {
		var got []string
		for _, b := range store.InOrder(store.Visible(all(), tt.wanted)) {
			got = append(got, b.Name)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %v, want %v", name, got, tt.want)
		}
	}
}
