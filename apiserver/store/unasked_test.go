package store_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/store"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/declare"
)

var badges = schema.GroupResource{Group: v1alpha1.GroupVersion.Group, Resource: "badges"}

// stored returns the declared state of the badge with a name.
func (s *shop) stored(t *testing.T, name string) *v1alpha1.Badge {
	t.Helper()
	b := &v1alpha1.Badge{}
	if err := s.Client.Get(t.Context(), client.ObjectKey{Namespace: "acme", Name: name}, b); err != nil {
		t.Fatal(err)
	}
	return b
}

func TestUnasked_skipsObjectsThatCannotBeChanged(t *testing.T) {
	invalid := apierrors.NewInvalid(schema.GroupKind{Kind: "Badge"}, "a", nil)
	for name, tt := range map[string]struct {
		policy v1alpha1.RESTWrites
		answer error
		status int
		writes int
	}{
		"it is written":               {policy: v1alpha1.RESTWritesAllow, writes: 1},
		"its project refuses changes": {policy: v1alpha1.RESTWritesRefuse},
		"it has gone":                 {policy: v1alpha1.RESTWritesAllow, answer: apierrors.NewNotFound(badges, "a"), writes: 1},
		"the write is not valid":      {policy: v1alpha1.RESTWritesAllow, answer: invalid, status: 422, writes: 1},
	} {
		for verb, write := range map[string]func(s *shop, b *v1alpha1.Badge) error{
			"update": func(s *shop, b *v1alpha1.Badge) error {
				got, err := s.badges.UpdateUnasked(t.Context(), b, func(b *v1alpha1.Badge) error {
					b.Spec.Name = "renamed"
					return nil
				})
				if is := s.stored(t, "a"); got.Spec.Name != is.Spec.Name {
					t.Errorf("%s: returned %q, which is %q", name, got.Spec.Name, is.Spec.Name)
				}
				return err
			},
			"delete": func(s *shop, b *v1alpha1.Badge) error { return s.badges.DeleteUnasked(t.Context(), b) },
		} {
			s := newShop(t, tt.policy)
			writes := 0
			s.Before = func(string, client.Object) error { writes++; return tt.answer }
			if err := write(s, s.stored(t, "a")); status(err) != tt.status || writes != tt.writes {
				t.Errorf("%s, %s: %d writes, %v, want %d and %d", name, verb, writes, err, tt.writes, tt.status)
			}
		}
	}
}

func TestCheck_refusesBeforeTheFirstWrite(t *testing.T) {
	for policy, want := range map[v1alpha1.RESTWrites]int{v1alpha1.RESTWritesAllow: 0, v1alpha1.RESTWritesRefuse: 403} {
		s := newShop(t, policy)
		s.Before = func(verb string, o client.Object) error { return fmt.Errorf("%s of %s", verb, o.GetName()) }
		if err := s.badges.Check(t.Context(), s.web, 30); status(err) != want {
			t.Errorf("%s: got %v", policy, err)
		}
		if err := s.badges.CheckUnasked(t.Context(), s.stored(t, "a")); status(err) != want {
			t.Errorf("%s, unasked: got %v", policy, err)
		}
	}
	s := newShop(t, v1alpha1.RESTWritesAllow)
	if err := s.badges.Check(t.Context(), s.web, 50); status(err) != 404 {
		t.Errorf("of nothing: got %v", err)
	}
}

func TestCreateUnique_refusesDuplicates(t *testing.T) {
	s := newShop(t, v1alpha1.RESTWritesAllow)
	unique := func(link string) error {
		b := badge("", "web", 0)
		b.Spec.LinkURL, b.Spec.ProjectRef.UID = link, string(s.web.Scope.Project.UID)
		return s.badges.CreateUnique(t.Context(), b, func(holder *v1alpha1.Badge) bool { return holder.Spec.LinkURL == link }, []string{link})
	}
	if first, second := unique("https://b.example"), unique("https://b.example"); first != nil || !errors.Is(second, store.ErrExists) {
		t.Errorf("got %v, then %v", first, second)
	}
	s = newShop(t, v1alpha1.RESTWritesRefuse)
	if err := unique("https://c.example"); status(err) != 403 {
		t.Errorf("where changes are refused: got %v", err)
	}
}

func TestEnsureUnasked_completesExistingObject(t *testing.T) {
	s := newShop(t, v1alpha1.RESTWritesAllow)
	for _, name := range []string{"a", "made", "made"} {
		b, completed := badge(name, "web", 0), false
		b.Spec.ProjectRef.UID = string(s.web.Scope.Project.UID)
		err := s.badges.EnsureUnasked(t.Context(), b, func(context.Context, store.Unasked) error {
			completed = true
			return nil
		})
		if err != nil || !completed || b.UID != s.stored(t, name).UID {
			t.Errorf("%s: completed %t, %v", name, completed, err)
		}
	}
}

func TestReplace_createsSuccessorUnlessUpdateFails(t *testing.T) {
	s := newShop(t, v1alpha1.RESTWritesAllow)
	over := errors.New("it is over already")
	for _, tt := range []struct {
		name string
		end  error
	}{{"first", nil}, {"second", over}} {
		b := badge(tt.name, "web", 0)
		b.Spec.ProjectRef.UID = string(s.web.Scope.Project.UID)
		err := s.badges.Replace(t.Context(), s.web, 30, func(old *v1alpha1.Badge) error {
			old.Spec.Name = "over"
			return tt.end
		}, b)
		there := s.Client.Get(t.Context(), client.ObjectKeyFromObject(b), &v1alpha1.Badge{}) == nil
		if !errors.Is(err, tt.end) || there != (tt.end == nil) || s.stored(t, "a").Spec.Name != "over" {
			t.Errorf("%s: %v, there %t", tt.name, err, there)
		}
	}
}

// notes returns objects that look as if a GitOps tool had created them, except the object made, which looks as if it was created over REST.
type notes struct {
	client.Reader
	made string
}

func (n notes) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	manager := "gitops"
	if key.Name == n.made {
		manager = string(declare.FieldOwner)
	}
	err := n.Reader.Get(ctx, key, o, opts...)
	o.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: manager, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:title":{}}}`)}})
	return err
}

func TestSweepUnasked_deletesOnlyObjectsCreatedOverREST(t *testing.T) {
	s := newShop(t, v1alpha1.RESTWritesAllow)
	all := store.ByID(s.WriterReading(notes{s.Client, "b"}), s.Catalog, catalog.ListInScope[*v1alpha1.Badge])
	for name, want := range map[string]bool{"a": false, "b": true} {
		if gone, err := all.SweepUnasked(t.Context(), s.stored(t, name)); gone != want || err != nil {
			t.Errorf("%s: gone %t, %v", name, gone, err)
		}
	}
}
