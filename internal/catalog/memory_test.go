package catalog_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/catalog/catalogtest"
	. "github.com/forgeplane/forgeplane/internal/catalog/catalogtest/objects"
)

// revisions has the revision of each kind, which the test sets.
type revisions struct {
	now   map[string]string
	known bool
}

func (r *revisions) Revision(kinds []string) (now catalog.Revision, ok bool) {
	for i, kind := range kinds {
		now[i] = r.now[kind]
	}
	return now, r.known
}

func (r *revisions) Reached(kind string) (version int64, ok bool) {
	version, err := strconv.ParseInt(r.now[kind], 10, 64)
	return version, err == nil && r.known
}

func TestReached_needsKnownRevision(t *testing.T) {
	g := NewWithT(t)
	c, kind := catalog.New(nil), &v1alpha1.ProtectedBranch{}
	g.Expect(c.Reached(kind, "7")).To(BeTrue(), "it reads no cache")
	r := &revisions{now: map[string]string{"*v1alpha1.ProtectedBranch": "7"}}
	c.Remember(r)
	g.Expect(c.Reached(kind, "7")).To(BeFalse(), "the revision is not known")
	r.known = true
	g.Expect([]bool{c.Reached(kind, ""), c.Reached(kind, "7"), c.Reached(kind, "8"), c.Reached(kind, "10"), c.Reached(kind, "x")}).
		To(Equal([]bool{true, true, false, false, false}))
}

func TestMemory_keepsAnswersUntilChangeOrExpiry(t *testing.T) {
	g := NewWithT(t)
	c := catalog.New(nil)
	memory := catalog.NewMemory[string, int](c, 10, &v1alpha1.Group{}, &v1alpha1.User{})
	asked := 0
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	ask := func(key string, now time.Time) int {
		found, err := memory.Recall(key, now, func(*catalog.Catalog) (int, time.Time, error) {
			asked++
			return asked, noon, nil
		})
		g.Expect(err).NotTo(HaveOccurred())
		return found
	}
	before := noon.Add(-time.Minute)
	g.Expect([]int{ask("a", before), ask("a", before)}).To(Equal([]int{1, 2}), "nothing says what has changed")
	r := &revisions{now: map[string]string{"*v1alpha1.Group": "1"}}
	c.Remember(r)
	g.Expect([]int{ask("a", before), ask("a", before)}).To(Equal([]int{3, 4}), "it is not known")
	r.known = true
	g.Expect([]int{ask("a", before), ask("a", before), ask("b", before), ask("a", before)}).To(Equal([]int{5, 5, 6, 5}))
	r.now["*v1alpha1.User"] = "1"
	g.Expect([]int{ask("a", before), ask("a", before)}).To(Equal([]int{7, 7}))
	r.now["*v1alpha1.Project"] = "1"
	g.Expect(ask("a", before)).To(Equal(7), "it is not made of projects")
	g.Expect([]int{ask("a", noon), ask("a", noon)}).To(Equal([]int{8, 9}), "it is true until then")
	_, err := memory.Recall("c", noon, func(*catalog.Catalog) (int, time.Time, error) { return 0, noon, errors.New("broken") })
	g.Expect(err).To(HaveOccurred())
	g.Expect(ask("c", before)).To(Equal(10), "no error is remembered")
}

func TestMemory_refusesAnswersFromOtherKinds(t *testing.T) {
	g := NewWithT(t)
	w := catalogtest.New(t, User("max", 1), Group("acme", "acme", Pinned(1)))
	memory := catalog.NewMemory[string, int](w.Catalog(), 10, &v1alpha1.Group{})
	ask := func(read func(*catalog.Catalog) error) error {
		_, err := memory.Recall("a", time.Time{}, func(c *catalog.Catalog) (int, time.Time, error) { return 0, time.Time{}, read(c) })
		return err
	}
	g.Expect(ask(func(c *catalog.Catalog) error {
		_, err := c.User(t.Context(), ByName("max"))
		return err
	})).To(MatchError(ContainSubstring("*v1alpha1.User is read")))
	g.Expect(ask(func(c *catalog.Catalog) error {
		_, err := catalog.All[*v1alpha1.User](t.Context(), c)
		return err
	})).To(MatchError(ContainSubstring("*v1alpha1.UserList is read")))
	g.Expect(ask(func(c *catalog.Catalog) error {
		_, err := c.Group(t.Context(), "acme", ByName("acme"))
		return err
	})).To(Succeed())
}

func TestMemory_ignoresChangesByPushes(t *testing.T) {
	g := NewWithT(t)
	web := Project("acme", "web", ByName("acme"), Known(7))
	web.Generation, web.CreationTimestamp = 1, metav1.Now()
	observed := func(p *v1alpha1.Project, head string) *v1alpha1.Project {
		p = p.DeepCopy()
		p.ResourceVersion, p.Status.DefaultBranch, p.Status.HeadCommit, p.Status.RefsChecksum = "", head, head, head
		return p
	}
	w := catalogtest.New(t, Group("acme", "acme", Pinned(1)), observed(web, "one"))
	c := w.Catalog()
	scopes := catalog.NewMemory[string, catalog.Scope](c, 10, &v1alpha1.Project{}, &v1alpha1.Group{}, &v1alpha1.User{})
	asked := 0
	ask := func() catalog.Scope {
		found, err := scopes.Recall("a", time.Time{}, func(c *catalog.Catalog) (catalog.Scope, time.Time, error) {
			asked++
			all, err := catalog.All[*v1alpha1.Project](t.Context(), c)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(all).To(HaveLen(1))
			got, err := catalog.Get[*v1alpha1.Project](t.Context(), c, "acme", "web")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got.Status).To(Equal(all[0].Status))
			s, err := c.ProjectScope(t.Context(), got)
			return s, time.Time{}, err
		})
		g.Expect(err).NotTo(HaveOccurred())
		return found
	}
	first := ask()
	g.Expect(first.Project.Status.DefaultBranch + first.Project.Status.HeadCommit + first.Project.Status.RefsChecksum).To(BeEmpty())
	in := catalog.NewMemory[string, string](c, 10, &v1alpha1.Project{})
	head := func(s catalog.Scope) string {
		found, err := catalog.RecallFor(in, s, time.Time{}, func(_ *catalog.Catalog, s catalog.Scope) (string, error) { return s.Project.Status.HeadCommit, nil })
		g.Expect(err).NotTo(HaveOccurred())
		return found
	}
	w.Put(observed(web, "two"))
	g.Expect(ask()).To(Equal(first))
	g.Expect(asked).To(Equal(1), "a push changes nothing that an answer is made of")
	now, err := c.Current(t.Context(), first.Project)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(now.Status.HeadCommit).To(Equal("two"))
	pushed := catalog.Scope{Project: now, Groups: first.Groups}
	g.Expect(pushed.Version()).To(Equal(first.Version()))
	g.Expect(head(pushed)).To(BeEmpty())
	web.Generation, web.Spec.Visibility = 2, v1alpha1.VisibilityPublic
	w.Put(observed(web, "two"))
	g.Expect(ask().Project.Spec.Visibility).To(Equal(v1alpha1.VisibilityPublic))
	g.Expect(ask().Version()).NotTo(Equal(first.Version()))
}

func TestRecallFor_asksAgainWhenAShareEnds(t *testing.T) {
	g := NewWithT(t)
	ends := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	web, acme := Project("acme", "web", ByName("acme"), Known(7)), Group("acme", "acme", Pinned(1))
	until := func(when time.Time) v1alpha1.Share {
		s := Sharing(ByPath("bolt"), v1alpha1.RoleGuest)
		s.ExpiresAt = &metav1.Time{Time: when}
		return s
	}
	web.Spec.SharedWith = []v1alpha1.Share{Sharing(ByPath("bolt"), v1alpha1.RoleGuest), until(ends.Add(-time.Hour)), until(ends.Add(time.Hour))}
	acme.Spec.SharedWith = []v1alpha1.Share{until(ends)}
	c := catalogtest.New(t, acme, web).Catalog()
	s, err := c.ProjectScope(t.Context(), web)
	g.Expect(err).NotTo(HaveOccurred())
	in := catalog.NewMemory[string, int](c, 10, &v1alpha1.Project{})
	var asked []int
	for _, after := range []time.Duration{-time.Minute, -1, 0, time.Hour - 1, time.Hour, 2 * time.Hour} {
		n, err := catalog.RecallFor(in, s, ends.Add(after), func(*catalog.Catalog, catalog.Scope) (int, error) { return len(asked), nil })
		g.Expect(err).NotTo(HaveOccurred())
		asked = append(asked, n)
	}
	g.Expect(asked).To(Equal([]int{0, 0, 2, 2, 4, 4}))
}

// TestCatalog_remembersTrueAnswers changes objects at random, and compares a catalog that remembers answers with a catalog that looks
// everything up.
func TestCatalog_remembersTrueAnswers(t *testing.T) {
	const seed, changes = 7, 400
	random := rand.New(rand.NewPCG(seed, seed)) //nolint:gosec // the test must be repeatable
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

// anything returns a random object. There are few names, so that objects collide.
func anything(random *rand.Rand, now time.Time) client.Object {
	name := func(of string) string { return fmt.Sprintf("%s%d", of, random.IntN(3)) }
	namespace := name("n")
	switch random.IntN(4) {
	case 0:
		return User(name("u"), int64(1+random.IntN(3)))
	case 1:
		if random.IntN(2) == 0 {
			return Group(namespace, name("g"), Pinned(int64(1+random.IntN(4))))
		}
		return Group(namespace, name("g"), Below(ByName(name("g"))))
	case 2:
		return Project(namespace, name("p"), ByName(name("g")), Known(int64(1+random.IntN(4))))
	default:
		m := &v1alpha1.Membership{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name("m")},
			Spec: v1alpha1.MembershipSpec{
				UserRef: ByName(name("u")), Role: []v1alpha1.Role{v1alpha1.RoleGuest, v1alpha1.RoleDeveloper, v1alpha1.RoleOwner}[random.IntN(3)],
			},
		}
		target := ByName(name("g"))
		m.Spec.GroupRef = &target
		if random.IntN(2) == 0 {
			target := ByName(name("p"))
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
	users, err := catalog.All[*v1alpha1.User](t.Context(), looksUp)
	g.Expect(err).NotTo(HaveOccurred())
	for _, u := range users {
		tree, err := looksUp.View(u, now).Projects(t.Context())
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
