package avatar_test

import (
	"errors"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	_ "gocloud.dev/blob/memblob" // the driver of mem:// URLs
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/avatar"
	"github.com/forgeplane/forgeplane/internal/blob"
	"github.com/forgeplane/forgeplane/internal/catalog/catalogtest"
)

func group(name string, uid types.UID) *v1alpha1.Group {
	return &v1alpha1.Group{ObjectMeta: metav1.ObjectMeta{Namespace: "acme", Name: name, UID: uid}, Spec: v1alpha1.GroupSpec{Path: name}}
}

func TestSweeper_removesAvatarsThatNoObjectHas(t *testing.T) {
	blobs, err := blob.Open(t.Context(), "mem://")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = blobs.Close() })
	s := avatar.NewStore(blobs)
	add := func(of v1alpha1.Pictured) string {
		t.Helper()
		name, err := s.Add(t.Context(), of, []byte("picture"))
		if err != nil {
			t.Fatal(err)
		}
		return name
	}
	kept, gone := group("kept", "kept-uid"), group("gone", "gone-uid")
	replaced := add(kept)
	kept.Status.Avatar, gone.Status.Avatar = add(kept), add(gone)
	world := catalogtest.New(t, kept)
	cat := world.Catalog()
	clock := clocktesting.NewFakeClock(time.Now())
	sweeper := avatar.NewSweeper(s, cat, clock, testr.New(t))
	has := func(of *v1alpha1.Group, name string) bool {
		t.Helper()
		of = of.DeepCopy()
		of.Status.Avatar = name
		_, err := s.Get(t.Context(), of)
		if err != nil && !errors.Is(err, blob.ErrNotFound) {
			t.Fatal(err)
		}
		return err == nil
	}
	for _, c := range []struct {
		after   time.Duration
		orphans bool
	}{{time.Hour, true}, {25 * time.Hour, false}} {
		clock.Step(c.after)
		if err := sweeper.Look(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !has(kept, kept.Status.Avatar) {
			t.Errorf("after %s, the avatar of an object is gone", c.after)
		}
		if has(kept, replaced) != c.orphans || has(gone, gone.Status.Avatar) != c.orphans {
			t.Errorf("after %s, avatars without an object are kept: want %t", c.after, c.orphans)
		}
	}
}
