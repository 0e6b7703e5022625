package declaredid

import (
	"context"
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/ids"
	"github.com/forgeplane/forgeplane/internal/index"
)

type indexer struct{ builder *fake.ClientBuilder }

func (i indexer) IndexField(_ context.Context, obj client.Object, field string, values client.IndexerFunc) error {
	i.builder.WithIndex(obj, field, values)
	return nil
}

// group returns a group of the namespace team that has an id, and is declared with it.
func group(name string, id int64) *v1alpha1.Group {
	return &v1alpha1.Group{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "team", Name: name, Annotations: map[string]string{corev1.LastAppliedConfigAnnotation: `{"spec":{"id":1}}`},
		},
		Spec: v1alpha1.GroupSpec{ID: id}, Status: v1alpha1.GroupStatus{ID: id},
	}
}

func undeclared(g *v1alpha1.Group) *v1alpha1.Group {
	g.Annotations = nil
	return g
}

func waiting(g *v1alpha1.Group) *v1alpha1.Group {
	g.Status.ID = 0
	return g
}

func TestKinds_haveIDsThatTenantsDeclare(t *testing.T) {
	g := NewWithT(t)
	want := []v1alpha1.Object{&v1alpha1.AccessToken{}, &v1alpha1.StorageMove{}, &v1alpha1.User{}} // the others
	for _, kind := range kinds() {
		want = append(want, kind)
	}
	var identified []v1alpha1.Object
	for _, kind := range v1alpha1.Kinds() {
		if _, ok := kind.(v1alpha1.Identified); ok {
			identified = append(identified, kind)
		}
	}
	g.Expect(identified).To(ConsistOf(want))
}

func TestReconcile_recordsDeclaredIDs(t *testing.T) {
	elsewhere := undeclared(group("other", 7))
	elsewhere.Namespace = "others"
	var full, filled []string
	for i := range maxRecorded {
		full = append(full, fmt.Sprintf("group.gone-%04d.%d", i, i+1))
	}
	filled = append(append(filled, "group.acme.5000"), full[:maxRecorded-1]...)
	for title, tt := range map[string]struct {
		// uid is the UID of the namespace for which there was a record; the namespace has the UID "1".
		uid     string
		was     []string
		objects []client.Object
		want    []string
	}{
		"an object that is declared with its id":         {"1", nil, []client.Object{group("acme", 7)}, []string{"group.acme.7"}},
		"one with dots in its name":                      {"1", []string{"group.a.1.b.2"}, []client.Object{group("a.1.b", 2)}, []string{"group.a.1.b.2"}},
		"not one whose id nobody declares":               {"1", nil, []client.Object{undeclared(group("acme", 7))}, nil},
		"not one whose id is not in force":               {"1", nil, []client.Object{waiting(group("acme", 7))}, nil},
		"not one whose name is too long":                 {"1", nil, []client.Object{group(strings.Repeat("a", 250), 7), group("b", 8)}, []string{"group.b.8"}},
		"one that is gone":                               {"1", []string{"group.acme.7"}, nil, []string{"group.acme.7"}},
		"one that exists again, and has no id yet":       {"1", []string{"group.acme.7"}, []client.Object{waiting(group("acme", 7))}, []string{"group.acme.7"}},
		"one whose id is no longer declared":             {"1", []string{"group.acme.7"}, []client.Object{undeclared(group("acme", 7))}, []string{"group.acme.7"}},
		"not the former id of one that has another":      {"1", []string{"group.acme.7"}, []client.Object{undeclared(group("acme", 8))}, nil},
		"not one whose id another object has":            {"1", []string{"group.acme.7", "group.b.8"}, []client.Object{elsewhere}, []string{"group.b.8"}},
		"not one whose id another object waits for":      {"1", []string{"group.acme.7"}, []client.Object{waiting(group("b", 7))}, nil},
		"one whose id an object of another kind has":     {"1", []string{"label.acme.7"}, []client.Object{elsewhere}, []string{"label.acme.7"}},
		"nothing of an earlier namespace of this name":   {"0", []string{"group.acme.7"}, nil, nil},
		"nothing that cannot be read":                    {"1", []string{"group", "group.acme", "group.acme.x"}, nil, nil},
		"existing objects before those that are gone":    {"1", full, []client.Object{group("acme", 5000)}, filled},
		"nothing else, if nobody ever declared anything": {"1", nil, nil, nil},
	} {
		t.Run(title, func(t *testing.T) {
			g := NewWithT(t)
			scheme := runtime.NewScheme()
			for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, rbacv1.AddToScheme, v1alpha1.AddToScheme} {
				g.Expect(add(scheme)).To(Succeed())
			}
			b := fake.NewClientBuilder().WithScheme(scheme).WithObjects(tt.objects...).
				WithObjects(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team", UID: "1"}})
			g.Expect(index.Add(t.Context(), indexer{b})).To(Succeed())
			g.Expect(index.AddForManagers(t.Context(), indexer{b})).To(Succeed())
			record := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "platform", Name: "forgeplane-declared-ids.team"}}
			for _, name := range tt.was {
				record.Subjects = append(record.Subjects, rbacv1.Subject{Kind: "ServiceAccount", Namespace: tt.uid, Name: name})
			}
			if tt.was != nil {
				b.WithObjects(record)
			}
			c := b.Build()
			reconciler := New(c, ids.New(c, c, c, "platform", ids.Range{}), 0)
			for range 2 {
				_, err := reconciler.Reconcile(t.Context(), ofNamespace("team"))
				g.Expect(err).NotTo(HaveOccurred())
			}
			err := c.Get(t.Context(), client.ObjectKeyFromObject(record), record)
			if len(tt.want) == 0 {
				g.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v", record.Subjects)
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			var names []string
			for _, s := range record.Subjects {
				names = append(names, s.Name)
				g.Expect(s.Namespace).To(Equal("1"))
			}
			g.Expect(names).To(Equal(tt.want))
		})
	}
}
