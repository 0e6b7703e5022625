package frame_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/catalog/catalogtest"
	"github.com/forgeplane/forgeplane/internal/claim"
	"github.com/forgeplane/forgeplane/internal/frame"
)

type noEvents struct{}

func (noEvents) Eventf(_, _ runtime.Object, _, _, _, _ string, _ ...any) {}

// shown returns the conditions, other than Ready, that an outcome sets on an object, as "type reason: message".
func shown(t *testing.T, outcome error) (conditions []string, err error) {
	t.Helper()
	g := NewWithT(t)
	scheme := runtime.NewScheme()
	g.Expect(v1alpha1.AddToScheme(scheme)).To(Succeed())
	user := &v1alpha1.User{ObjectMeta: metav1.ObjectMeta{Name: "ada"}}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(user).WithStatusSubresource(user).Build()
	f := frame.New[*v1alpha1.User](frame.Base{Client: c, Events: noEvents{}, Catalog: catalogtest.New(t).Catalog()})
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
		"nothing is wrong":       {nil, nil, false},
		"not found":              {fmt.Errorf("group acme: %w", catalog.ErrNotFound), []string{"Reconciling ReferenceNotFound: groupRef: group acme: not found"}, false},
		"not admitted":           {catalog.ErrParentNotAllowed, []string{"Reconciling ReferenceNotAllowed: groupRef: " + catalog.ErrParentNotAllowed.Error()}, false},
		"root group not allowed": {catalog.ErrRootNotAllowed, []string{"Stalled NamespaceNotAllowed: groupRef: " + catalog.ErrRootNotAllowed.Error()}, false},
		"its own ancestor":       {fmt.Errorf("looking: %w", catalog.ErrCycle), []string{"Stalled ReferenceCycle: groupRef: looking: " + catalog.ErrCycle.Error()}, false},
		"anything else happens":  {other, []string{"Reconciling Failed: the cache is not there"}, true},
	}
	for title, tt := range tests {
		t.Run(title, func(t *testing.T) {
			g := NewWithT(t)
			conditions, err := shown(t, frame.Unresolved("groupRef", tt.err))
			g.Expect(conditions).To(Equal(tt.want))
			g.Expect(err != nil).To(Equal(tt.fails))
		})
	}
	NewWithT(t).Expect(frame.Unresolved("groupRef", other)).To(BeIdenticalTo(other))
}

func group(namespace, name, path string, parent ...string) *v1alpha1.Group {
	g := &v1alpha1.Group{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: v1alpha1.GroupSpec{Path: path}}
	for _, p := range parent {
		g.Spec.ParentRef = &v1alpha1.Reference{Name: p}
	}
	return g
}

func takePath(t *testing.T, c *catalog.Catalog, g *v1alpha1.Group, s catalog.Scope) error {
	t.Helper()
	return frame.New[*v1alpha1.Group](frame.Base{Catalog: c}).TakePath(t.Context(), g, s)
}

func TestClaimsAndReachability(t *testing.T) {
	holder := group("one", "acme", "acme")
	rival, below := group("two", "acme", "Acme"), group("two", "web", "web", "acme")
	sibling := group("one", "acme-too", "acme")
	// The path of the group below the rival leads to a group below the holder.
	world := catalogtest.New(t, holder, rival, below, sibling, group("one", "web", "web", "acme"))

	claims := map[string]struct {
		of   *v1alpha1.Group
		path string
		want []string
	}{
		"held":                       {holder, "acme", nil},
		"held by another namespace":  {rival, "Acme", []string{"Stalled AlreadyExists: full path Acme is held by Group one/acme"}},
		"held in the same namespace": {sibling, "acme", []string{"Stalled AlreadyExists: full path acme is held by Group acme"}},
		"below a group that does not hold its path": {below, "Acme/web", []string{"Reconciling ReferenceNotReady: a parent group does not hold its own full path, so nothing in it can be reached"}},
	}
	for title, tt := range claims {
		t.Run("a claim "+title, func(t *testing.T) {
			g, c := NewWithT(t), world.Catalog()
			chain, err := c.Ancestors(t.Context(), tt.of)
			g.Expect(err).NotTo(HaveOccurred())
			scope := catalog.Scope{Groups: chain}
			g.Expect(scope.Path()).To(Equal(tt.path))
			of := tt.of.DeepCopy()
			conditions, err := shown(t, takePath(t, c, of, scope))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(conditions).To(Equal(tt.want))
			g.Expect(of.Status.Claims).To(HaveLen(1-len(tt.want)), "the claim is in the status of the holder alone")
		})
	}

	targets := map[string]struct {
		of   *v1alpha1.Group
		want []string
	}{
		"holds its path":                 {holder, nil},
		"does not hold its path":         {rival, []string{"Reconciling ReferenceNotReady: groupRef: the Group acme does not hold its full path Acme"}},
		"is below a group that does not": {below, []string{"Reconciling ReferenceNotReady: groupRef: the Group web does not hold its full path Acme/web"}},
	}
	for title, tt := range targets {
		t.Run("a target that "+title, func(t *testing.T) {
			c := world.Catalog()
			chain, err := c.Ancestors(t.Context(), tt.of)
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
			reachable := frame.Reachable(frame.New[*v1alpha1.Badge](frame.Base{Catalog: c}))
			b := &v1alpha1.Badge{Spec: v1alpha1.BadgeSpec{GroupRef: &v1alpha1.Reference{Name: tt.of.Name}}}
			conditions, err := shown(t, reachable(t.Context(), b, catalog.Scope{Groups: chain}))
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
			NewWithT(t).Expect(conditions).To(Equal(tt.want))
		})
	}
}

func TestTake_waitsUntilClaimIsReleased(t *testing.T) {
	k := claim.Username("ada")
	user := func(name string, claims ...string) *v1alpha1.User {
		u := &v1alpha1.User{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}, Spec: v1alpha1.UserSpec{Username: name}}
		u.Status.Claims = claims
		return u
	}
	take := func(c *catalog.Catalog, of, holder *v1alpha1.User) error {
		return frame.New[*v1alpha1.User](frame.Base{Catalog: c}).Take(t.Context(), of, holder, k, "username %s", "ada")
	}
	g := NewWithT(t)
	renamed := user("renamed", k.String())
	world := catalogtest.New(t, renamed)
	c, taker := world.Catalog(), user("taker")
	conditions, err := shown(t, take(c, taker, nil))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(conditions).To(Equal([]string{"Reconciling AlreadyExists: username ada is still held by User renamed, which has not released it yet"}))
	g.Expect(taker.Status.Claims).To(BeEmpty())
	g.Expect(c.Waiting(&v1alpha1.Group{})(k.String())).To(BeEmpty())
	g.Expect(c.Waiting(&v1alpha1.User{})(k.String())).To(ConsistOf(types.NamespacedName{Name: "taker"}))
	g.Expect(c.Waiting(&v1alpha1.User{})(k.String())).To(BeEmpty(), "who was told of it waits no more")

	world.Put(user("renamed"))
	g.Expect(take(c, taker, taker)).To(Succeed())
	g.Expect(taker.Status.Claims).To(Equal([]string{k.String()}))
	g.Expect(take(c, taker, taker)).To(Succeed())
	g.Expect(taker.Status.Claims).To(HaveLen(1))

	second := user("second")
	g.Expect(take(c, second, second)).To(Satisfy(apierrors.IsConflict), "the cache does not show yet who takes it")
	g.Expect(second.Status.Claims).To(BeEmpty())
	c.Register().End("taker")
	g.Expect(take(c, second, second)).To(Succeed())

	conditions, err = shown(t, take(c, second, taker))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(conditions).To(Equal([]string{"Stalled AlreadyExists: username ada is held by User taker"}))
	g.Expect(second.Status.Claims).To(BeEmpty(), "of two that show it the one that does not hold it lets go")
}

func TestClaim_isRefusedBelowGroupBeingDeleted(t *testing.T) {
	g := NewWithT(t)
	acme := group("one", "acme", "acme")
	acme.UID, acme.DeletionTimestamp, acme.Finalizers = "acme", &metav1.Time{Time: time.Now()}, []string{"example.com/wait"}
	acme.Status.Claims = []string{claim.Path("", "acme").String()}
	held, fresh := group("one", "web", "web", "acme"), group("one", "api", "api", "acme")
	held.Status.Claims = []string{claim.Path("acme", "web").String()}
	c := catalogtest.New(t, acme, held, fresh).Catalog()
	claimed := func(of *v1alpha1.Group) []string {
		conditions, err := shown(t, takePath(t, c, of.DeepCopy(), catalog.Scope{Groups: []*v1alpha1.Group{of, acme}}))
		g.Expect(err).NotTo(HaveOccurred())
		return conditions
	}
	g.Expect(claimed(held)).To(BeEmpty())
	g.Expect(claimed(fresh)).To(Equal([]string{"Reconciling ReferenceNotReady: the group acme is being deleted and accepts nothing new"}))
	_, err := c.ByPath(t.Context(), "acme/api")
	g.Expect(err).To(MatchError(catalog.ErrNotFound))
	g.Expect(c.ByPath(t.Context(), "acme/web")).To(HaveField("Name", "web"))
}

func TestAlreadyExists_namesHolder(t *testing.T) {
	tests := map[string]struct {
		err  error
		want string
	}{
		"in the same namespace": {frame.AlreadyExists(group("one", "b", "b"), group("one", "a", "a"), "the %s %d", "thing", 7), "the thing 7 is held by Group a"},
		"in another namespace":  {frame.AlreadyExists(group("one", "b", "b"), group("two", "a", "a"), "it"), "it is held by Group two/a"},
		"without a namespace": {frame.AlreadyExists(&v1alpha1.User{}, &v1alpha1.User{ObjectMeta: metav1.ObjectMeta{Name: "ada"}}, "username %s", "ada"),
			"username ada is held by User ada"},
	}
	for title, tt := range tests {
		t.Run(title, func(t *testing.T) {
			conditions, err := shown(t, tt.err)
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
			NewWithT(t).Expect(conditions).To(Equal([]string{"Stalled AlreadyExists: " + tt.want}))
		})
	}
}
