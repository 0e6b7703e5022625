package frame_test

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/catalog/catalogtest"
	"github.com/forgeplane/forgeplane/internal/frame"
)

// shop is an API server in memory with the projects web and other in the group acme, the group late, which does not hold its path, and a badge.
type shop struct {
	*WithT
	frame  *frame.Frame[*v1alpha1.Badge]
	client client.Client
	badge  *v1alpha1.Badge
	world  *catalogtest.World
	events *events
	writes int
}

func newShop(t *testing.T, change ...func(*v1alpha1.Badge)) *shop {
	t.Helper()
	of := func(name, uid string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "acme", Name: name, UID: types.UID(uid)}
	}
	world := catalogtest.New(t,
		&v1alpha1.Group{ObjectMeta: of("acme", "1"), Spec: v1alpha1.GroupSpec{Path: "acme"}},
		&v1alpha1.Project{ObjectMeta: of("web", "2"), Spec: v1alpha1.ProjectSpec{Path: "web", GroupRef: v1alpha1.Reference{Name: "acme"}}},
		&v1alpha1.Group{ObjectMeta: of("late", "3"), Spec: v1alpha1.GroupSpec{Path: "acme"}},
		&v1alpha1.Project{ObjectMeta: of("other", "5"), Spec: v1alpha1.ProjectSpec{Path: "other", GroupRef: v1alpha1.Reference{Name: "acme"}}},
	)
	scheme := runtime.NewScheme()
	s := &shop{WithT: NewWithT(t), world: world, events: &events{}, badge: &v1alpha1.Badge{
		ObjectMeta: of("b", "4"), Spec: v1alpha1.BadgeSpec{ProjectRef: &v1alpha1.Reference{Name: "web"}},
	}}
	s.Expect(v1alpha1.AddToScheme(scheme)).To(Succeed())
	for _, c := range change {
		c(s.badge)
	}
	s.client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(s.badge).WithStatusSubresource(s.badge).WithReturnManagedFields().
		WithInterceptorFuncs(interceptor.Funcs{
			Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, options ...client.PatchOption) error {
				s.writes++
				return c.Patch(ctx, o, p, options...)
			},
		}).Build()
	s.frame = frame.New[*v1alpha1.Badge](frame.Base{Client: s.client, Events: s.events, Catalog: world.Catalog()})
	return s
}

func (s *shop) run(steps ...frame.Step[*v1alpha1.Badge]) reconcile.Result {
	s.read()
	result, err := s.frame.Run(context.Background(), s.badge, steps...)
	s.Expect(err).NotTo(HaveOccurred())
	s.read()
	return result
}

func (s *shop) read() {
	s.Expect(s.client.Get(context.Background(), client.ObjectKeyFromObject(s.badge), s.badge)).To(Succeed())
}

func (s *shop) owners() (uids []string) {
	for _, o := range s.badge.OwnerReferences {
		uids = append(uids, string(o.UID))
	}
	return uids
}

// manages makes a field manager say something in the spec of a badge.
func manages(manager string, b *v1alpha1.Badge) {
	b.ManagedFields = append(b.ManagedFields, metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: v1alpha1.GroupVersion.String(),
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:linkURL":{}}}`),
	})
}

func TestFrame_setsOwnerOfObjectsCreatedOverREST(t *testing.T) {
	other := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "other", UID: "9"}
	tests := map[string]struct {
		change func(*v1alpha1.Badge)
		want   []string
	}{
		"a project":           {func(*v1alpha1.Badge) {}, []string{"2"}},
		"a group":             {func(b *v1alpha1.Badge) { b.Spec.ProjectRef, b.Spec.GroupRef = nil, &v1alpha1.Reference{Name: "acme"} }, []string{"1"}},
		"beside other owners": {func(b *v1alpha1.Badge) { b.OwnerReferences = []metav1.OwnerReference{other} }, []string{"9", "2"}},
		"a missing project":   {func(b *v1alpha1.Badge) { b.Spec.ProjectRef.Name = "nobody" }, nil},
	}
	for title, tt := range tests {
		t.Run(title, func(t *testing.T) {
			s := newShop(t, tt.change, func(b *v1alpha1.Badge) { manages("forgeplane-rest", b) })
			s.run()
			s.Expect(s.owners()).To(Equal(tt.want))
			s.writes = 0
			s.run()
			s.Expect(s.writes).To(BeZero(), "writes of a second run")
		})
	}
}

func TestFrame_removesOwnerOfDeclaredObjects(t *testing.T) {
	owner := func(kind, name, uid string) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: kind, Name: name, UID: types.UID(uid)}
	}
	other := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "other", UID: "9"}
	tests := map[string]struct {
		owners []metav1.OwnerReference
		want   []string
	}{
		"none":                 {nil, nil},
		"its project":          {[]metav1.OwnerReference{owner("Project", "web", "2")}, nil},
		"a deleted project":    {[]metav1.OwnerReference{owner("Project", "web", "former")}, nil},
		"a group":              {[]metav1.OwnerReference{owner("Group", "acme", "1")}, nil},
		"another owner beside": {[]metav1.OwnerReference{owner("Project", "web", "2"), other}, []string{"9"}},
	}
	for title, tt := range tests {
		t.Run(title, func(t *testing.T) {
			s := newShop(t, func(b *v1alpha1.Badge) {
				b.OwnerReferences = tt.owners
				manages("forgeplane-rest", b)
				manages("argocd-controller", b)
			})
			s.run()
			s.Expect(s.owners()).To(Equal(tt.want))
			s.Expect(frame.InForce(s.badge)).To(BeTrue())
			s.writes = 0
			s.run()
			s.Expect(s.writes).To(BeZero(), "writes of a second run")
		})
	}
}

func TestFrame_doesNotAdoptObjectsOfDeletedOwner(t *testing.T) {
	s := newShop(t, func(b *v1alpha1.Badge) {
		b.OwnerReferences = []metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Project", Name: "web", UID: "former"}}
	})
	stepped := false
	step := func(context.Context, *v1alpha1.Badge) error { stepped = true; return nil }
	s.run(step)
	s.Expect(s.owners()).To(Equal([]string{"former"}))
	s.Expect(stepped).To(BeFalse(), "nothing of it is in force any more")
	s.Expect(*meta.FindStatusCondition(s.badge.Status.Conditions, v1alpha1.ConditionReady)).To(And(
		HaveField("Status", metav1.ConditionFalse), HaveField("Reason", v1alpha1.ReasonReferenceNotFound),
		HaveField("Message", ContainSubstring("web was deleted and created again; this object belonged to the deleted one"))))
	s.writes = 0
	s.run(step)
	s.Expect(s.writes).To(BeZero(), "writes of a second run")
}

func TestFrame_keepsTargetOfChangedReference(t *testing.T) {
	s := newShop(t)
	steps := 0
	step := func(context.Context, *v1alpha1.Badge) error { steps++; return nil }
	look := func(ref v1alpha1.Reference) {
		t.Helper()
		s.badge.Spec.ProjectRef = &ref
		s.Expect(s.client.Update(t.Context(), s.badge)).To(Succeed())
		s.run(step)
		written := s.badge.ResourceVersion
		s.run(step)
		s.Expect(s.badge.ResourceVersion).To(Equal(written), "a second run writes nothing")
		s.Expect(s.badge.Status.TargetPath).To(Equal("acme/web"))
	}
	look(v1alpha1.Reference{Name: "web"})
	s.Expect(s.badge.Status.TargetRef).To(HaveValue(Equal(v1alpha1.Reference{Name: "web", UID: "2"})))
	look(v1alpha1.Reference{Path: "Acme/Web"})
	s.Expect(s.badge.Status.TargetRef).To(HaveValue(Equal(v1alpha1.Reference{Path: "Acme/Web", UID: "2"})))
	s.Expect(frame.InForce(s.badge)).To(BeTrue())
	s.Expect(steps).To(Equal(4))
	for _, ref := range []v1alpha1.Reference{{Name: "other"}, {Name: "other", UID: "5"}, {Name: "nobody"}, {Path: "Acme/Web", UID: "4"}} {
		look(ref)
		s.Expect(*meta.FindStatusCondition(s.badge.Status.Conditions, v1alpha1.ConditionStalled)).To(And(
			HaveField("Reason", v1alpha1.ReasonInvalid),
			HaveField("Message", ContainSubstring("projectRef was changed and does not lead to the Project acme/web any more"))))
		s.Expect(s.badge.Status.TargetRef).To(HaveValue(HaveField("Path", "Acme/Web")))
		s.Expect(steps).To(Equal(4), "no step sees another project")
	}
	look(v1alpha1.Reference{Name: "web"})
	s.Expect(frame.InForce(s.badge)).To(BeTrue())
}

func TestFrame_goesOnWithTargetOfChangedReference(t *testing.T) {
	s := newShop(t)
	s.run()
	goesOn, steps := true, 0
	s.frame = frame.New(s.frame.Base, frame.WithUnfinished(func(context.Context, *v1alpha1.Badge) bool { return goesOn }))
	run := func() {
		t.Helper()
		s.run(func(context.Context, *v1alpha1.Badge) error { steps++; return nil })
		s.Expect(s.badge.Status.TargetPath).To(Equal("acme/web"))
		s.Expect(*meta.FindStatusCondition(s.badge.Status.Conditions, v1alpha1.ConditionStalled)).To(HaveField("Reason", v1alpha1.ReasonInvalid))
	}
	s.badge.Spec.ProjectRef = &v1alpha1.Reference{Name: "other"}
	s.Expect(s.client.Update(t.Context(), s.badge)).To(Succeed())
	run()
	s.Expect(steps).To(Equal(1))
	goesOn = false
	run()
	s.Expect(steps).To(Equal(1), "it has ended")
}

func TestInScope_passesScopeToSteps(t *testing.T) {
	group := func(name string) func(*v1alpha1.Badge) {
		return func(b *v1alpha1.Badge) { b.Spec.ProjectRef, b.Spec.GroupRef = nil, &v1alpha1.Reference{Name: name} }
	}
	tests := map[string]struct {
		change  func(*v1alpha1.Badge)
		path    string
		message string
	}{
		"a project":                           {func(*v1alpha1.Badge) {}, "acme/web", ""},
		"a group":                             {group("acme"), "acme", ""},
		"a missing project":                   {func(b *v1alpha1.Badge) { b.Spec.ProjectRef.Name = "nobody" }, "", "projectRef: project nobody: not found"},
		"a missing group":                     {group("nobody"), "", "groupRef: group nobody: not found"},
		"a group that does not hold its path": {group("late"), "acme", "groupRef: the Group late does not hold its full path acme"},
	}
	for title, tt := range tests {
		t.Run(title, func(t *testing.T) {
			s := newShop(t, tt.change)
			path := ""
			see := func(_ context.Context, _ *v1alpha1.Badge, in catalog.Scope) error {
				path = in.Path()
				return frame.RequeueAfter(time.Hour)
			}
			result := s.run(frame.InScope(s.frame, see, frame.Reachable(s.frame)))
			ready := meta.FindStatusCondition(s.badge.Status.Conditions, v1alpha1.ConditionReady)
			s.Expect(path).To(Equal(tt.path))
			s.Expect(ready.Message).To(Equal(tt.message))
			if tt.path != "" {
				s.Expect(result.RequeueAfter).To(Equal(time.Hour), "whatever a later step says")
			}
		})
	}
}
