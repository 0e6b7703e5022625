package store_test

import (
	"errors"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/store"
)

func TestTree_removesAllOrNothing(t *testing.T) {
	broken := errors.New("broken")
	for name, tt := range map[string]struct {
		policy v1alpha1.RESTWrites
		answer error
		want   int
		writes int
	}{
		"a group with its projects":      {policy: v1alpha1.RESTWritesAllow, writes: 3},
		"a project that refuses changes": {policy: v1alpha1.RESTWritesRefuse, want: 403},
		"a write that fails":             {policy: v1alpha1.RESTWritesAllow, answer: broken, want: -1, writes: 1},
	} {
		s := newShop(t, tt.policy)
		tree := s.Catalog.View(nil, s.Clock.Now())
		projects, err := tree.Projects(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		groups, err := tree.Groups(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		writes := 0
		s.Before = func(string, client.Object) error { writes++; return tt.answer }
		if err := store.NewRemover(s.Writer).Remove(t.Context(), projects, groups); status(err) != tt.want || writes != tt.writes {
			t.Errorf("%s: %d writes, %v, want %d and %d", name, writes, err, tt.writes, tt.want)
		}
	}
}
