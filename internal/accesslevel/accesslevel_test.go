package accesslevel_test

import (
	"context"
	"testing"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/accesslevel"
)

// counter counts up from 1.
type counter struct{ last int64 }

func (c *counter) Next(context.Context, string) (int64, error) {
	c.last++
	return c.last, nil
}

var (
	maintainer = v1alpha1.AccessLevel{Role: v1alpha1.AccessMaintainer}
	developer  = v1alpha1.AccessLevel{Role: v1alpha1.AccessDeveloper}
	dana       = v1alpha1.AccessLevel{UserRef: &v1alpha1.Reference{Path: "dana"}}
)

func assign(t *testing.T, c *counter, b *v1alpha1.ProtectedBranch) (ids accesslevel.IDs, changed bool) {
	t.Helper()
	changed, err := accesslevel.Assign(context.Background(), c, b)
	if err != nil {
		t.Fatal(err)
	}
	return accesslevel.Of(b), changed
}

func TestIDs_stayForUnchangedLevels(t *testing.T) {
	c := &counter{}
	b := &v1alpha1.ProtectedBranch{}
	b.Spec.Push = []v1alpha1.AccessLevel{maintainer, dana}
	b.Spec.Merge = []v1alpha1.AccessLevel{maintainer}

	ids, changed := assign(t, c, b)
	if push, merge := ids.Get(accesslevel.Push, "", maintainer), ids.Get(accesslevel.Merge, "", maintainer); !changed || push != 1 || merge != 3 {
		t.Fatalf("changed %v, push %d, merge %d", changed, push, merge)
	}
	if _, changed := assign(t, c, b); changed || c.last != 3 {
		t.Errorf("an unchanged protection: changed %v, %d ids", changed, c.last)
	}

	b.Spec.Push = []v1alpha1.AccessLevel{dana, developer}
	ids, changed = assign(t, c, b)
	if got := ids.Get(accesslevel.Push, "", dana); !changed || got != 2 {
		t.Errorf("the level that stays has id %d", got)
	}
	if got := ids.Get(accesslevel.Push, "", developer); got != 4 {
		t.Errorf("the new level has id %d", got)
	}
	if got := ids.Get(accesslevel.Push, "", maintainer); got != 0 {
		t.Errorf("the level that is gone has id %d", got)
	}
}

func TestIDs_areRestoredFromStatus(t *testing.T) {
	c := &counter{last: 100}
	b := &v1alpha1.ProtectedBranch{}
	b.Spec.Push = []v1alpha1.AccessLevel{maintainer, dana}
	b.Status.Push = []v1alpha1.ResolvedAccessLevel{{ID: 7, Role: v1alpha1.AccessMaintainer}, {ID: 8, UserID: 5}}
	ids, _ := assign(t, c, b)
	if ids.Get(accesslevel.Push, "", maintainer) != 7 || ids.Get(accesslevel.Push, "", dana) != 8 || c.last != 100 {
		t.Errorf("got %v", ids)
	}
}

func TestAnnotation_isReplacedIfMalformed(t *testing.T) {
	b := &v1alpha1.ProtectedBranch{}
	b.Annotations = map[string]string{v1alpha1.AnnotationAccessLevelIDs: "{"}
	b.Spec.Push = []v1alpha1.AccessLevel{maintainer}
	if ids, changed := assign(t, &counter{}, b); !changed || ids.Get(accesslevel.Push, "", maintainer) != 1 {
		t.Errorf("changed %v, got %v", changed, ids)
	}
}

func TestStandIn_hasNoID(t *testing.T) {
	c := &counter{}
	nobody := v1alpha1.AccessLevel{Role: v1alpha1.AccessNoOne}
	b := &v1alpha1.ProtectedBranch{}
	b.Spec.Push = []v1alpha1.AccessLevel{nobody}
	ids := accesslevel.IDs{}
	ids.StandIn(accesslevel.Push, "", nobody)
	if changed, err := ids.Write(context.Background(), c, b); !changed || err != nil {
		t.Fatalf("changed %v, %v", changed, err)
	}
	ids, changed := assign(t, c, b)
	if changed || c.last != 0 || !ids.StandsIn(accesslevel.Push, "", nobody) || ids.Get(accesslevel.Push, "", nobody) != 0 {
		t.Errorf("changed %v, %d ids, got %v", changed, c.last, ids)
	}
	if !ids.DropStandIn(accesslevel.Push, "", nobody) || ids.DropStandIn(accesslevel.Push, "", nobody) {
		t.Error("it was not dropped once")
	}
}
