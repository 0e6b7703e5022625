package catalog_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/catalog/catalogtest"
	"github.com/forgeplane/forgeplane/internal/informer"
)

// revisions are set by hand.
type revisions struct {
	now   string
	known bool
}

func (r *revisions) Revision() (informer.Revision, bool) { return informer.Revision{r.now}, r.known }

func TestAnAnswerIsRememberedUntilAnythingChangesOrItsTimeIsUp(t *testing.T) {
	g := NewWithT(t)
	c := catalog.New(nil)
	asked := 0
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	ask := func(key string, now time.Time) int {
		found, err := catalog.Recall(c, key, now, func() (int, time.Time, error) {
			asked++
			return asked, noon, nil
		})
		g.Expect(err).NotTo(HaveOccurred())
		return found
	}
	before := noon.Add(-time.Minute)
	g.Expect([]int{ask("a", before), ask("a", before)}).To(Equal([]int{1, 2}), "nothing says what has changed")
	r := &revisions{now: "1"}
	c.Remember(r)
	g.Expect([]int{ask("a", before), ask("a", before)}).To(Equal([]int{3, 4}), "it is not known")
	r.known = true
	g.Expect([]int{ask("a", before), ask("a", before), ask("b", before), ask("a", before)}).To(Equal([]int{5, 5, 6, 5}))
	r.now = "2"
	g.Expect([]int{ask("a", before), ask("a", before)}).To(Equal([]int{7, 7}))
	g.Expect([]int{ask("a", noon), ask("a", noon)}).To(Equal([]int{8, 9}), "it is true until then")
	_, err := catalog.Recall(c, "c", noon, func() (int, time.Time, error) { return 0, noon, errors.New("broken") })
	g.Expect(err).To(HaveOccurred())
	g.Expect(ask("c", before)).To(Equal(10), "no error is remembered")
}

// TestWhatIsRememberedIsWhatIsTrue changes objects at random, and compares a catalog that remembers with one that does not.
func TestWhatIsRememberedIsWhatIsTrue(t *testing.T) {
	const seed, changes = 7, 400
	random := rand.New(rand.NewPCG(seed, seed)) //nolint:gosec // it decides what to try, and can be repeated
	w := catalogtest.New(t)
	remembers, looksUp := w.Catalog(), catalog.New(w.Reader())
	now := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	var there []client.Object
	compared := 0
	for n := range changes {
		switch random.IntN(4) {
		case 0:
			if len(there) > 0 {
				i := random.IntN(len(there))
				w.Remove(there[i])
				there = append(there[:i], there[i+1:]...)
			}
		default:
			o := anything(random, now)
			w.Put(o)
			there = append(there, o)
		}
		now = now.Add(time.Duration(random.IntN(40)) * time.Minute)
		compared += expectSame(t, fmt.Sprintf("seed %d, change %d", seed, n), remembers, looksUp, now)
	}
	NewWithT(t).Expect(compared).To(BeNumerically(">", changes))
}

// anything is one of a few objects with few names, so that they meet.
func anything(random *rand.Rand, now time.Time) client.Object {
	name := func(of string) string { return fmt.Sprintf("%s%d", of, random.IntN(3)) }
	namespace := name("n")
	switch random.IntN(4) {
	case 0:
		return user(name("u"), int64(1+random.IntN(3)))
	case 1:
		if random.IntN(2) == 0 {
			return group(namespace, name("g"), pinned(int64(1+random.IntN(4))))
		}
		return group(namespace, name("g"), below(byName(name("g"))))
	case 2:
		return project(namespace, name("p"), byName(name("g")), known(int64(1+random.IntN(4))))
	default:
		m := &v1alpha1.Membership{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name("m")},
			Spec: v1alpha1.MembershipSpec{
				UserRef: byName(name("u")), Role: []v1alpha1.Role{v1alpha1.RoleGuest, v1alpha1.RoleDeveloper, v1alpha1.RoleOwner}[random.IntN(3)],
			},
		}
		target := byName(name("g"))
		m.Spec.GroupRef = &target
		if random.IntN(2) == 0 {
			target := byName(name("p"))
			m.Spec.GroupRef, m.Spec.ProjectRef = nil, &target
		}
		if random.IntN(2) == 0 {
			end := metav1.NewTime(now.Add(time.Duration(random.IntN(120)) * time.Minute))
			m.Spec.ExpiresAt = &end
		}
		return m
	}
}

func expectSame(t *testing.T, when string, remembers, looksUp *catalog.Catalog, now time.Time) (compared int) {
	t.Helper()
	g := NewWithT(t)
	users, err := looksUp.Users(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	for _, u := range users {
		tree, err := looksUp.Tree(u, now).Projects(t.Context())
		g.Expect(err).NotTo(HaveOccurred())
		for _, s := range tree {
			want, err := looksUp.ProjectRole(t.Context(), u, s.Project, now)
			g.Expect(err).NotTo(HaveOccurred(), when)
			g.Expect(s.Highest()).To(Equal(want), "%s: the role of %s in %s, in a tree", when, u.Name, s.Path())
			g.Expect(remembers.RolesIn(t.Context(), u, s.Scope, now)).To(Equal(s.Roles), "%s: the roles of %s in %s", when, u.Name, s.Path())
			compared++
		}
	}
	return compared
}
