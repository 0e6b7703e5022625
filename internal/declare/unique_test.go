package declare_test

import (
	"context"
	"errors"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/declare"
)

// unique creates a protected branch whose name is derived from the branch.
func unique(t *testing.T, w *declare.Writer, branch string) (*v1alpha1.ProtectedBranch, error) {
	b := protection()
	b.UID, b.Spec = "", v1alpha1.ProtectedBranchSpec{ID: 1, Branch: branch}
	same := func(holder *v1alpha1.ProtectedBranch) bool { return holder.Spec.Branch == branch }
	return b, declare.CreateUnique(t.Context(), w, b, same, branch)
}

func TestCreateUnique_refusesDuplicates(t *testing.T) {
	w, _ := newWriter(t, protection(), nil)
	first, err := unique(t, w, "trunk")
	if err != nil || first.Name == "main" {
		t.Fatalf("%s: %v", first.Name, err)
	}
	if _, err := unique(t, w, "trunk"); !errors.Is(err, declare.ErrExists) {
		t.Errorf("got %v", err)
	}
}

func TestCreateUnique_avoidsNamesInUse(t *testing.T) {
	w, c := newWriter(t, protection(), nil)
	names := map[string]bool{}
	for range 20 {
		b, err := unique(t, w, "trunk")
		if err != nil || names[b.Name] {
			t.Fatalf("%s: %v", b.Name, err)
		}
		names[b.Name] = true
		b.Spec.Branch = "former"
		if err := c.Update(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
}

func TestCreateUnique_succeedsOnRetryAfterDeletion(t *testing.T) {
	_, c := newWriter(t, protection(), nil)
	former, err := unique(t, declare.NewWriter(c, c, nil), "trunk")
	if err != nil {
		t.Fatal(err)
	}
	live := interceptor.NewClient(c.(client.WithWatch), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			return errors.Join(c.Delete(ctx, former), c.Get(ctx, key, o, opts...))
		},
	})
	if _, err := unique(t, declare.NewWriter(c, live, nil), "trunk"); !errors.Is(err, declare.ErrExists) {
		t.Errorf("got %v", err)
	}
	if _, err := unique(t, declare.NewWriter(c, live, nil), "trunk"); err != nil {
		t.Error(err)
	}
}
