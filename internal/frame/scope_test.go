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

// shop has the project web in the group acme, the group late, which does not hold its path, and a badge.
type shop struct {
	*WithT
	frame  *frame.Frame[*v1alpha1.Badge]
	client client.Client
	badge  *v1alpha1.Badge
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
	)
	scheme := runtime.NewScheme()
	s := &shop{WithT: NewWithT(t), badge: &v1alpha1.Badge{
		ObjectMeta: of("b", "4"), Spec: v1alpha1.BadgeSpec{ProjectRef: &v1alpha1.Reference{Name: "web"}},
	}}
	s.Expect(v1alpha1.AddToScheme(scheme)).To(Succeed())
	for _, c := range change {
		c(s.badge)
	}
	s.client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(s.badge).WithStatusSubresource(s.badge).
		WithInterceptorFuncs(interceptor.Funcs{
			Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, options ...client.PatchOption) error {
				s.writes++
				return c.Patch(ctx, o, p, options...)
			},
		}).Build()
	s.frame = frame.New[*v1alpha1.Badge](frame.Base{Client: s.client, Events: &events{}, Catalog: world.Catalog()})
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

func TestFrame_makesObjectsGoWithWhatTheyAreDeclaredFor(t *testing.T) {
	other := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "other", UID: "9"}
	tests := map[string]struct {
		change func(*v1alpha1.Badge)
		want   []string
	}{
		"a project":           {func(*v1alpha1.Badge) {}, []string{"2"}},
		"a group":             {func(b *v1alpha1.Badge) { b.Spec.ProjectRef, b.Spec.GroupRef = nil, &v1alpha1.Reference{Name: "acme"} }, []string{"1"}},
		"beside other owners": {func(b *v1alpha1.Badge) { b.OwnerReferences = []metav1.OwnerReference{other} }, []string{"9", "2"}},
		"what is not there":   {func(b *v1alpha1.Badge) { b.Spec.ProjectRef.Name = "nobody" }, nil},
	}
	for title, tt := range tests {
		t.Run(title, func(t *testing.T) {
			s := newShop(t, tt.change)
			s.run()
			s.Expect(s.owners()).To(Equal(tt.want))
			s.writes = 0
			s.run()
			s.Expect(s.writes).To(BeZero(), "writes of a second run")
		})
	}
}

func TestFrame_doesNotGiveWhatBelongedToADeletedOwnerToTheNextOfItsName(t *testing.T) {
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
		HaveField("Message", ContainSubstring("web is not the owner that this object belonged to"))))
	s.writes = 0
	s.run(step)
	s.Expect(s.writes).To(BeZero(), "writes of a second run")
}

func TestInScope_givesStepsWhatTheObjectIsDeclaredFor(t *testing.T) {
	group := func(name string) func(*v1alpha1.Badge) {
		return func(b *v1alpha1.Badge) { b.Spec.ProjectRef, b.Spec.GroupRef = nil, &v1alpha1.Reference{Name: name} }
	}
	tests := map[string]struct {
		change  func(*v1alpha1.Badge)
		path    string
		message string
	}{
		"a project":                       {func(*v1alpha1.Badge) {}, "acme/web", ""},
		"a group":                         {group("acme"), "acme", ""},
		"a project that is not there":     {func(b *v1alpha1.Badge) { b.Spec.ProjectRef.Name = "nobody" }, "", "projectRef: project nobody: not found"},
		"a group that is not there":       {group("nobody"), "", "groupRef: group nobody: not found"},
		"a group that does not hold path": {group("late"), "acme", "groupRef: the Group late does not hold its full path acme"},
	}
	for title, tt := range tests {
		t.Run(title, func(t *testing.T) {
			s := newShop(t, tt.change)
			path := ""
			see := func(_ context.Context, _ *v1alpha1.Badge, in catalog.Scope) error {
				path = in.Path()
				return frame.Again(time.Hour)
			}
			result := s.run(frame.InScope(s.frame, see, frame.Reachable(s.frame)))
			ready := meta.FindStatusCondition(s.badge.Status.Conditions, v1alpha1.ConditionReady)
			s.Expect(path).To(Equal(tt.path))
			s.Expect(ready.Message).To(Equal(tt.message))
			if tt.message == "" {
				s.Expect(result.RequeueAfter).To(Equal(time.Hour))
			}
		})
	}
}
