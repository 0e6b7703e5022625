package fieldmanager_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/fieldmanager"
)

var noon = time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC)

// Fields that managers own.
const (
	spec     = `{"f:spec":{"f:title":{}}}`
	labelled = `{"f:metadata":{"f:labels":{".":{},"f:spec":{},"f:ownerReferences":{}}}}`
	applied  = `{"f:metadata":{"f:annotations":{".":{},"f:kubectl.kubernetes.io/last-applied-configuration":{}}}}`
	owning   = `{"f:metadata":{"f:ownerReferences":{".":{},"k:{\"uid\":\"7\"}":{}}},"f:spec":{"f:title":{}}}`
	status   = `{"f:status":{"f:color":{}}}`
)

// by returns the entry of the API server for a manager that wrote fields at noon.
func by(manager, fields string) metav1.ManagedFieldsEntry {
	m := metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, Time: &metav1.Time{Time: noon}, FieldsV1: metav1.NewFieldsV1(fields),
	}
	if fields == status {
		m.Subresource = "status"
	}
	return m
}

func label(notes ...metav1.ManagedFieldsEntry) *v1alpha1.Label {
	return &v1alpha1.Label{ObjectMeta: metav1.ObjectMeta{Name: "bug", ManagedFields: notes, CreationTimestamp: metav1.Time{Time: noon.Add(-time.Hour)}}}
}

func annotated(l *v1alpha1.Label) *v1alpha1.Label {
	l.Annotations = map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "{}"}
	return l
}

func ownedBy(kind string, l *v1alpha1.Label) *v1alpha1.Label {
	l.OwnerReferences = append(l.OwnerReferences, metav1.OwnerReference{APIVersion: "forgeplane.dev/v1beta7", Kind: kind, Name: "web", UID: "7"})
	return l
}

func TestDeclarer_isAnyManagerButForgeplane(t *testing.T) {
	const none = ""
	tests := map[string]struct {
		label *v1alpha1.Label
		want  string
		made  bool
	}{
		"created over REST":                         {label(by("forgeplane-rest", spec), by("forgeplane", status)), none, true},
		"created over REST, with an id added later": {label(by("forgeplane-rest", spec), by("forgeplane", spec)), none, true},
		"created by a controller":                   {label(by("forgeplane", spec)), none, false},
		"declared":                                  {label(by("kubectl-create", spec), by("forgeplane", spec)), "kubectl-create", false},
		"declared, and changed over REST":           {label(by("forgeplane-rest", spec), by("kustomize-controller", spec)), "kustomize-controller", false},
		"declared by a manager with a similar name": {label(by("forgeplane-rest", spec), by("forgeplane-apps", spec)), "forgeplane-apps", false},
		"declared by a manager without a name":      {label(by("", spec)), "an unnamed field manager", false},
		"created over REST, and applied unchanged":  {annotated(label(by("forgeplane-rest", spec), by("argocd-controller", applied))), "argocd-controller", false},
		"applied, and restored without managers":    {annotated(label()), "an unnamed field manager", false},
		"created over REST, and labelled":           {label(by("forgeplane-rest", spec), by("kubectl", labelled)), none, true},
		"created over REST, and somebody's status":  {label(by("forgeplane-rest", spec), by("tenant", status)), none, true},
		"without managers, as in a cache":           {label(), none, false},
		"without fields":                            {label(metav1.ManagedFieldsEntry{Manager: "forgeplane-rest"}), none, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			manager, declared := fieldmanager.Declarer(tt.label)
			g.Expect(manager).To(Equal(tt.want))
			g.Expect(declared).To(Equal(tt.want != none))
			g.Expect(fieldmanager.MadeHere(tt.label)).To(Equal(tt.made))
		})
	}
}

func TestOwner_isRightOrNot(t *testing.T) {
	tests := map[string]struct {
		label        *v1alpha1.Label
		lacks, keeps bool
	}{
		"created over REST":                         {ownedBy("Project", label(by("forgeplane-rest", spec))), false, false},
		"created over REST, for a group":            {ownedBy("Group", label(by("forgeplane-rest", spec))), false, false},
		"created over REST, without an owner":       {label(by("forgeplane-rest", spec)), true, false},
		"created over REST, with another owner":     {ownedBy("User", label(by("forgeplane-rest", spec))), true, false},
		"created by a controller, without an owner": {label(by("forgeplane", spec)), false, false},
		"declared":                                      {label(by("kubectl", spec)), false, false},
		"declared, with an owner":                       {ownedBy("Project", label(by("kubectl", spec))), false, true},
		"declared, with a group as an owner":            {ownedBy("Group", label(by("kubectl", spec))), false, true},
		"declared, with another owner":                  {ownedBy("User", label(by("kubectl", spec))), false, false},
		"declared with an owner":                        {ownedBy("Project", label(by("operator", owning))), false, false},
		"declared, with an owner by a controller":       {ownedBy("Project", label(by("kubectl", spec), by("forgeplane", owning))), false, true},
		"declared, with an owner by REST":               {ownedBy("Project", label(by("kubectl", spec), by("forgeplane-rest", owning))), false, true},
		"declared, with an owner and a misleading name": {ownedBy("Project", label(by("kubectl", spec), by("kubectl", labelled))), false, true},
		"applied, with an owner":                        {ownedBy("Project", annotated(label(by("forgeplane-rest", spec), by("argocd-controller", applied)))), false, true},
		"applied with an owner":                         {ownedBy("Project", annotated(label(by("forgeplane-rest", spec), by("operator", owning)))), false, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			expect := func(o v1alpha1.Targeted) {
				t.Helper()
				g.Expect(fieldmanager.LacksOwner(o)).To(Equal(tt.lacks), "it lacks an owner")
				g.Expect(fieldmanager.KeepsOwner(o)).To(Equal(tt.keeps), "it keeps an owner")
			}
			expect(tt.label)
			for _, changes := range []bool{false, true} {
				kept := tt.label.DeepCopy()
				for range 2 { // an informer strips an object more than once
					fieldmanager.Keep(kept, changes)
					expect(kept)
				}
				want := 0
				if tt.lacks || tt.keeps || changes {
					want = 1
				}
				g.Expect(kept.ManagedFields).To(HaveLen(want))
				if changes {
					g.Expect(fieldmanager.Changed(kept)).To(Equal(noon))
				}
				kept.ManagedFields = nil
				expected := tt.label.DeepCopy()
				expected.ManagedFields = nil
				g.Expect(kept).To(Equal(expected), "nothing else changes")
			}
		})
	}
}

func TestChanged_returnsLastChangeOfSpec(t *testing.T) {
	g := NewWithT(t)
	at := func(m metav1.ManagedFieldsEntry, hours time.Duration) metav1.ManagedFieldsEntry {
		m.Time = &metav1.Time{Time: noon.Add(hours * time.Hour)}
		return m
	}
	l := label(at(by("a", spec), 1), at(by("b", spec), 2), at(by("c", labelled), 3), at(by("forgeplane", status), 4), metav1.ManagedFieldsEntry{Manager: "d", FieldsV1: metav1.NewFieldsV1(spec)})
	g.Expect(fieldmanager.Changed(l)).To(Equal(noon.Add(2 * time.Hour)))
	l.CreationTimestamp = metav1.Time{Time: noon.Add(5 * time.Hour)}
	g.Expect(fieldmanager.Changed(l)).To(Equal(noon.Add(5 * time.Hour)))
	fieldmanager.Keep(l, true)
	g.Expect(l.ManagedFields).To(BeEmpty())
	g.Expect(fieldmanager.Changed(label())).To(Equal(noon.Add(-time.Hour)))
}
