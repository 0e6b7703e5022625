package reference_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/catalog/catalogtest"
	"github.com/forgeplane/forgeplane/internal/frame"
	"github.com/forgeplane/forgeplane/internal/reference"
)

type noEvents struct{}

func (noEvents) Eventf(_, _ runtime.Object, _, _, _, _ string, _ ...any) {}

// shown is the conditions that an outcome gives to an object, beside Ready, as "type reason: message".
func shown(t *testing.T, outcome error) (conditions []string, err error) {
	t.Helper()
	g := NewWithT(t)
	scheme := runtime.NewScheme()
	g.Expect(v1alpha1.AddToScheme(scheme)).To(Succeed())
	user := &v1alpha1.User{ObjectMeta: metav1.ObjectMeta{Name: "ada"}}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(user).WithStatusSubresource(user).Build()
	f := frame.New[*v1alpha1.User](c, noEvents{})
	_, err = f.Run(t.Context(), user, func(context.Context, *v1alpha1.User) error { return outcome })
	for _, name := range []string{"Reconciling", "Stalled"} {
		if is := meta.FindStatusCondition(user.Status.Conditions, name); is != nil {
			conditions = append(conditions, fmt.Sprintf("%s %s: %s", is.Type, is.Reason, is.Message))
		}
	}
	return conditions, err
}

func TestUnresolved(t *testing.T) {
	other := errors.New("the cache is not there")
	tests := map[string]struct {
		err   error
		want  []string
		fails bool
	}{
		"nothing is wrong":      {nil, nil, false},
		"not found":             {fmt.Errorf("group acme: %w", catalog.ErrNotFound), []string{"Reconciling ReferenceNotFound: groupRef: group acme: not found"}, false},
		"not admitted":          {catalog.ErrParentNotAllowed, []string{"Reconciling ReferenceNotAllowed: groupRef: " + catalog.ErrParentNotAllowed.Error()}, false},
		"no root group there":   {catalog.ErrRootNotAllowed, []string{"Stalled NamespaceNotAllowed: groupRef: " + catalog.ErrRootNotAllowed.Error()}, false},
		"its own ancestor":      {fmt.Errorf("looking: %w", catalog.ErrCycle), []string{"Stalled ReferenceCycle: groupRef: looking: " + catalog.ErrCycle.Error()}, false},
		"anything else happens": {other, []string{"Reconciling Failed: the cache is not there"}, true},
	}
	for title, tt := range tests {
		t.Run(title, func(t *testing.T) {
			g := NewWithT(t)
			conditions, err := shown(t, reference.Unresolved("groupRef", tt.err))
			g.Expect(conditions).To(Equal(tt.want))
			g.Expect(err != nil).To(Equal(tt.fails))
		})
	}
	NewWithT(t).Expect(reference.Unresolved("groupRef", other)).To(BeIdenticalTo(other))
}

func group(namespace, name, path string, parent ...string) *v1alpha1.Group {
	g := &v1alpha1.Group{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: v1alpha1.GroupSpec{Path: path}}
	for _, p := range parent {
		g.Spec.ParentRef = &v1alpha1.Reference{Name: p}
	}
	return g
}

func TestClaimsAndReachability(t *testing.T) {
	holder := group("one", "acme", "acme")
	rival, below := group("two", "acme", "Acme"), group("two", "web", "web", "acme")
	sibling := group("one", "acme-too", "acme")
	world := catalogtest.New(t, holder, rival, below, sibling)

	claims := map[string]struct {
		of   *v1alpha1.Group
		path string
		want []string
	}{
		"held":                            {holder, "acme", nil},
		"held by another namespace":       {rival, "Acme", []string{"Stalled AlreadyExists: full path Acme is held by the older Group one/acme"}},
		"held in the own namespace":       {sibling, "acme", []string{"Stalled AlreadyExists: full path acme is held by the older Group acme"}},
		"below one that does not hold it": {below, "Acme/web", []string{"Reconciling ReferenceNotReady: a group above does not hold its own full path, so nothing below it can be reached"}},
	}
	for title, tt := range claims {
		t.Run("a claim "+title, func(t *testing.T) {
			conditions, err := shown(t, reference.Claim(t.Context(), world.Catalog(), tt.of, tt.path))
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
			NewWithT(t).Expect(conditions).To(Equal(tt.want))
		})
	}

	targets := map[string]struct {
		of   *v1alpha1.Group
		path string
		want []string
	}{
		"holds its path":                {holder, "acme", nil},
		"does not hold its path":        {rival, "Acme", []string{"Reconciling ReferenceNotReady: groupRef: the Group acme does not hold its full path Acme"}},
		"is below one that does not":    {below, "Acme/web", []string{"Reconciling ReferenceNotReady: groupRef: the Group web does not hold its full path Acme/web"}},
		"is where nothing is to be had": {below, "nowhere", []string{"Reconciling ReferenceNotReady: groupRef: the Group web does not hold its full path nowhere"}},
	}
	for title, tt := range targets {
		t.Run("a target that "+title, func(t *testing.T) {
			conditions, err := shown(t, reference.Reachable(t.Context(), world.Catalog(), "groupRef", tt.of, tt.path))
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
			NewWithT(t).Expect(conditions).To(Equal(tt.want))
		})
	}
}

func TestAlreadyExistsNamesTheHolder(t *testing.T) {
	tests := map[string]struct {
		err  error
		want string
	}{
		"of the own namespace": {reference.AlreadyExists(group("one", "b", "b"), group("one", "a", "a"), "the %s %d", "thing", 7), "the thing 7 is held by the older Group a"},
		"of another namespace": {reference.AlreadyExists(group("one", "b", "b"), group("two", "a", "a"), "it"), "it is held by the older Group two/a"},
		"of the cluster": {reference.AlreadyExists(&v1alpha1.User{}, &v1alpha1.User{ObjectMeta: metav1.ObjectMeta{Name: "ada"}}, "username %s", "ada"),
			"username ada is held by the older User ada"},
	}
	for title, tt := range tests {
		t.Run(title, func(t *testing.T) {
			conditions, err := shown(t, tt.err)
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
			NewWithT(t).Expect(conditions).To(Equal([]string{"Stalled AlreadyExists: " + tt.want}))
		})
	}
}
