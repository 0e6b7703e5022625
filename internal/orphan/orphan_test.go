package orphan_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/audit/audittest"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/catalog/catalogtest"
	"github.com/forgeplane/forgeplane/internal/frame"
	"github.com/forgeplane/forgeplane/internal/orphan"
)

// live returns an API server in memory that has the objects, and selects users by spec.id like a real one.
func live(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithReturnManagedFields().WithObjects(objects...).WithStatusSubresource(&v1alpha1.Membership{}).
		WithIndex(&v1alpha1.User{}, catalog.IndexID, func(o client.Object) []string {
			if id := o.(*v1alpha1.User).Spec.ID; id != 0 {
				return []string{fmt.Sprint(id)}
			}
			return []string{""}
		}).Build()
}

func user(uid types.UID, spec, status int64) *v1alpha1.User {
	u := &v1alpha1.User{ObjectMeta: metav1.ObjectMeta{Name: "u-" + string(uid), UID: uid}}
	u.Spec.ID, u.Status.ID = spec, status
	return u
}

var noon = time.Date(2020, 6, 15, 12, 0, 0, 0, time.UTC)

// membership returns a membership that was created two days before noon, and in whose spec the managers own fields.
func membership(managers ...string) *v1alpha1.Membership {
	m := &v1alpha1.Membership{ObjectMeta: metav1.ObjectMeta{
		Namespace: "acme", Name: "m", UID: "m", Generation: 1, CreationTimestamp: metav1.NewTime(noon.Add(-48 * time.Hour)),
	}}
	for _, name := range managers {
		m.ManagedFields = append(m.ManagedFields, metav1.ManagedFieldsEntry{
			Manager: name, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: v1alpha1.GroupVersion.String(),
			FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:role":{}}}`),
		})
	}
	return m
}

func TestUnresolved_removesObjectsOfDeletedUsers(t *testing.T) {
	gone := v1alpha1.Reference{ID: 7, UID: "ada"}
	tests := map[string]struct {
		ref      v1alpha1.Reference
		managers []string
		users    []client.Object
		removed  bool
	}{
		"gone":                    {gone, []string{"forgeplane-rest"}, nil, true},
		"gone, and reconciled":    {gone, []string{"forgeplane-rest", "forgeplane"}, nil, true},
		"another user has the id": {gone, []string{"forgeplane-rest"}, []client.Object{user("eve", 7, 7)}, true},
		"another user had the id, which a replace removed": {gone, []string{"forgeplane-rest"}, []client.Object{user("eve", 0, 7)}, true},
		"gone, without a UID":                              {v1alpha1.Reference{ID: 7}, []string{"forgeplane-rest"}, []client.Object{user("eve", 8, 8)}, true},
		"exists, and the cache is behind":                  {gone, []string{"forgeplane-rest"}, []client.Object{user("ada", 7, 7)}, false},
		"exists, and a replace removed the id":             {gone, []string{"forgeplane-rest"}, []client.Object{user("ada", 0, 7)}, false},
		"exists, without a UID":                            {v1alpha1.Reference{ID: 7}, []string{"forgeplane-rest"}, []client.Object{user("eve", 7, 0)}, false},
		"declared by another manager":                      {gone, []string{"gitops"}, nil, false},
		"declared by another manager as well":              {gone, []string{"forgeplane-rest", "gitops"}, nil, false},
		"declared by a manager with a similar name":        {gone, []string{"forgeplane-rest", "forgeplane-apps"}, nil, false},
		"declared by an unknown manager":                   {gone, nil, nil, false},
		"named by path":                                    {v1alpha1.Reference{Path: "ada"}, []string{"forgeplane-rest"}, nil, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			m := membership(tt.managers...)
			c := live(t, append(tt.users, m)...)
			cached := m.DeepCopy()
			cached.ManagedFields = nil
			notFound := fmt.Errorf("user 7: %w", catalog.ErrNotFound)
			lines := audittest.Open(t)
			err := orphan.NewCollector(lines.Client(c), c, clocktesting.NewFakePassiveClock(noon)).Unresolved(audit.For(t.Context(), cached), cached, "userRef", tt.ref, notFound)
			g.Expect(frame.IsWaiting(err)).To(BeTrue(), "%v", err)
			err = c.Get(t.Context(), client.ObjectKeyFromObject(m), m)
			g.Expect(apierrors.IsNotFound(err)).To(Equal(tt.removed), "%v", err)
			if !tt.removed {
				g.Expect(lines.Events()).To(BeEmpty())
				return
			}
			g.Expect(lines.Events()).To(ConsistOf(And(
				HaveField("Door", audit.Controller), HaveField("Controller", "Membership"), HaveField("Action", "remove"), HaveField("Result", audit.Done),
				HaveField("Reason", "was created over REST for user 7, who no longer exists"),
				HaveField("Objects", ConsistOf(And(
					HaveField("Verb", "delete"), HaveField("Kind", "Membership"), HaveField("Namespace", "acme"), HaveField("Name", "m"), HaveField("UID", "m"),
				))),
			)))
		})
	}
}

// A tool that restores a backup can create an object before its user, with its managed fields and even with its status.
func TestUnresolved_waitsForUserAfterRestore(t *testing.T) {
	ready := func(status metav1.ConditionStatus, generation int64, since time.Time) *metav1.Condition {
		return &metav1.Condition{
			Type: v1alpha1.ConditionReady, Status: status, ObservedGeneration: generation, LastTransitionTime: metav1.NewTime(since),
		}
	}
	made := noon.Add(-time.Hour)
	tests := map[string]struct {
		made  time.Time
		ready *metav1.Condition
		wait  time.Duration
	}{
		"created an hour ago, and never in force": {made, nil, 23 * time.Hour},
		"created a day ago, and never in force":   {noon.Add(-24 * time.Hour), nil, 0},
		"in force since its creation":             {made, ready(metav1.ConditionTrue, 1, made), 0},
		"not ready since its creation":            {made, ready(metav1.ConditionFalse, 1, made), 23 * time.Hour},
		"the status is older than the object":     {made, ready(metav1.ConditionTrue, 1, made.Add(-time.Second)), 23 * time.Hour},
		"in force before its spec changed":        {made, ready(metav1.ConditionTrue, 0, made), 23 * time.Hour},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			m := membership("forgeplane-rest")
			m.CreationTimestamp = metav1.NewTime(tt.made)
			if tt.ready != nil {
				m.Status.Conditions = []metav1.Condition{*tt.ready}
			}
			c := live(t, m)
			collector := orphan.NewCollector(c, c, clocktesting.NewFakePassiveClock(noon))
			f := frame.New[*v1alpha1.Membership](frame.Base{Client: c, Events: events.NewFakeRecorder(9), Catalog: catalogtest.New(t).Catalog()})
			g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(m), m)).To(Succeed())
			result, err := f.Run(t.Context(), m.DeepCopy(), func(ctx context.Context, m *v1alpha1.Membership) error {
				return collector.Unresolved(ctx, m, "userRef", v1alpha1.Reference{ID: 7, UID: "ada"}, fmt.Errorf("user 7: %w", catalog.ErrNotFound))
			})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(result.RequeueAfter).To(Equal(tt.wait))
			err = c.Get(t.Context(), client.ObjectKeyFromObject(m), m)
			g.Expect(apierrors.IsNotFound(err)).To(Equal(tt.wait == 0), "%v", err)
		})
	}
}
