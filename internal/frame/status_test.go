package frame_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog/catalogtest"
	"github.com/forgeplane/forgeplane/internal/frame"
)

func TestEvents_areNotAboutWhatGoesWithItsOwnerOrNamespace(t *testing.T) {
	now := &metav1.Time{Time: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	ownedBy := func(uid types.UID) func(*v1alpha1.Badge) {
		return func(b *v1alpha1.Badge) {
			b.OwnerReferences = []metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Project", Name: "web", UID: uid}}
		}
	}
	declared := func(*v1alpha1.Badge) {}
	deleted := func(b *v1alpha1.Badge) {
		ownedBy("2")(b)
		b.DeletionTimestamp, b.Finalizers = now, []string{finalizer}
	}
	web := func() *v1alpha1.Project {
		return &v1alpha1.Project{
			ObjectMeta: metav1.ObjectMeta{Namespace: "acme", Name: "web", UID: "2"},
			Spec:       v1alpha1.ProjectSpec{Path: "web", GroupRef: v1alpha1.Reference{Name: "acme"}},
		}
	}
	nothing := func(*catalogtest.World) {}
	projectGone := func(w *catalogtest.World) { w.Remove(web()) }
	projectGoes := func(w *catalogtest.World) {
		p := web()
		p.DeletionTimestamp, p.Finalizers = now, []string{finalizer}
		w.Put(p)
	}
	namespaceGoes := func(w *catalogtest.World) {
		w.Put(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "acme", DeletionTimestamp: now, Finalizers: []string{finalizer}}})
	}
	namespaceStays := func(w *catalogtest.World) { w.Put(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "acme"}}) }
	for title, tt := range map[string]struct {
		badge  func(*v1alpha1.Badge)
		change func(*catalogtest.World)
		told   bool
	}{
		"owned":                             {ownedBy("2"), nothing, true},
		"owned, and the project is gone":    {ownedBy("2"), projectGone, false},
		"owned, and the project goes":       {ownedBy("2"), projectGoes, false},
		"owned by an earlier project":       {ownedBy("1"), nothing, false},
		"declared, and the project is gone": {declared, projectGone, true},
		"declared, and the project goes":    {declared, projectGoes, true},
		"declared, and the namespace stays": {declared, namespaceStays, true},
		"declared, and the namespace goes":  {declared, namespaceGoes, false},
		"blocked while it is deleted":       {deleted, projectGone, true},
		"blocked, and the namespace goes":   {deleted, namespaceGoes, false},
	} {
		t.Run(title, func(t *testing.T) {
			s := newShop(t, tt.badge)
			tt.change(s.world)
			waits := func(context.Context, *v1alpha1.Badge) error { return frame.Waiting("Absent", "who") }
			s.frame = frame.New(s.frame.Base, frame.WithFinalizer(finalizer, waits))
			s.run(waits)
			if tt.told {
				s.Expect(s.events.all).To(HaveLen(1))
			} else {
				s.Expect(s.events.all).To(BeEmpty())
			}
		})
	}
}
