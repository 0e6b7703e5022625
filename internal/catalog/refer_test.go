package catalog_test

import (
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/catalog/catalogtest"
	"github.com/forgeplane/forgeplane/internal/role"
)

// anew is an object made under the name, path and id of a deleted one.
func anew[T client.Object](o T) T {
	again := o.DeepCopyObject().(T)
	again.SetUID("another " + o.GetUID())
	again.SetCreationTimestamp(metav1.Time{})
	return again
}

func TestRefer_meansTheObjectAndNoneThatIsMadeAnew(t *testing.T) {
	g := NewWithT(t)
	ada, acme := user("ada", 2), group("a", "acme", pinned(10))
	web, app := project("a", "web", byName("acme"), known(100)), project("a", "app", byName("acme"), known(101))
	ci := deployKey("a", "ci", 1000, byName("web"))
	w := catalogtest.New(t, ada, acme, web, app, ci)
	levels := []v1alpha1.AccessLevel{toUser(catalog.Refer(ada)), toGroup(catalog.Refer(acme)), toDeployKey(catalog.Refer(ci))}
	scope := &v1alpha1.JobTokenScope{ObjectMeta: meta("scope", "a", "web"), Spec: v1alpha1.JobTokenScopeSpec{
		ProjectRef: byName("web"), Allowlist: []v1alpha1.AllowlistEntry{{ProjectRef: catalog.Refer(app)}},
	}}
	token := &v1alpha1.AccessToken{ObjectMeta: meta("token", "", "t"), Spec: v1alpha1.AccessTokenSpec{ID: 3, UserRef: catalog.Refer(ada)}}
	w.Put(inProject("a", "m", byName("web"), catalog.Refer(ada), v1alpha1.RoleOwner), scope, token)
	c := w.Catalog()

	// have is what each reader gives, and none when there is nothing of it.
	have := func() map[string]bool {
		all := map[string]bool{}
		found := func(what string, err error) {
			if err != nil {
				g.Expect(err).To(MatchError(catalog.ErrNotFound), what)
			}
			all[what] = err == nil
		}
		for _, ref := range []v1alpha1.Reference{catalog.Refer(ada), {Name: "ada", UID: string(ada.UID)}, {Path: "ada", UID: string(ada.UID)}} {
			_, err := c.User(t.Context(), ref)
			found("user "+catalog.Show(ref), err)
		}
		_, err := c.Group(t.Context(), "a", catalog.Refer(acme))
		found("group", err)
		_, err = c.Project(t.Context(), "a", catalog.Refer(app))
		found("project", err)
		_, err = c.DeployKey(t.Context(), "a", catalog.Refer(ci))
		found("deploy key", err)

		now, err := c.UserByUsername(t.Context(), "ada")
		g.Expect(err).NotTo(HaveOccurred())
		at, err := c.ProjectByID(t.Context(), 100)
		g.Expect(err).NotTo(HaveOccurred())
		in, err := c.ProjectScope(t.Context(), at)
		g.Expect(err).NotTo(HaveOccurred())
		has, err := c.ProjectRole(t.Context(), now, at, metav1.Now().Time)
		g.Expect(err).NotTo(HaveOccurred())
		all["role"] = has == role.Owner
		g.Expect(has).To(BeElementOf(role.Owner, role.None))
		tree, err := c.Tree(now, metav1.Now().Time).Projects(t.Context())
		g.Expect(err).NotTo(HaveOccurred())
		all["role in lists"] = slices.ContainsFunc(tree, func(s catalog.Seen) bool { return s.Highest() != role.None })
		below, err := c.GivenBelow(t.Context(), now, in.Groups[0])
		g.Expect(err).NotTo(HaveOccurred())
		all["given below"] = len(below) == 1
		members, err := c.MembersOf(t.Context(), in, metav1.Now().Time)
		g.Expect(err).NotTo(HaveOccurred())
		all["members"] = len(members) == 1
		tokens, err := c.TokensOf(t.Context(), now)
		g.Expect(err).NotTo(HaveOccurred())
		all["tokens"] = len(tokens) == 1
		for i, l := range levels {
			_, err := c.ResolveLevel(t.Context(), in, "a", l)
			found([]string{"user level", "group level", "deploy key level"}[i], err)
		}
		source, err := c.ProjectByID(t.Context(), 101)
		g.Expect(err).NotTo(HaveOccurred())
		all["let in"], err = c.Allows(t.Context(), scope, source)
		g.Expect(err).NotTo(HaveOccurred())
		return all
	}
	g.Expect(have()).To(HaveEach(BeTrue()))
	w.Put(anew(ada), anew(acme), anew(app), anew(ci))
	g.Expect(have()).To(HaveEach(BeFalse()))
}

func TestRefer_meansNobodyWhereTheRestNamesAnother(t *testing.T) {
	g := NewWithT(t)
	ada, eve := user("ada", 2), user("eve", 3)
	c := catalogtest.New(t, ada, eve).Catalog()
	for _, ref := range []v1alpha1.Reference{
		{ID: 2, UID: "nobody"}, {ID: 2, UID: string(eve.UID)}, {Name: "ada", UID: string(eve.UID)}, {Path: "ada", UID: string(eve.UID)},
	} {
		_, err := c.User(t.Context(), ref)
		g.Expect(err).To(MatchError(catalog.ErrNotFound), "%+v", ref)
	}
}

func TestRefer_reachesNoOtherNamespace(t *testing.T) {
	c := twoTenants(t).Catalog()
	g := NewWithT(t)
	of := func(kind, name string) v1alpha1.Reference {
		return v1alpha1.Reference{Name: name, UID: kind + " a/" + name}
	}
	_, err := c.Group(t.Context(), "b", of("group", "acme"))
	g.Expect(err).To(MatchError(catalog.ErrNotFound))
	_, err = c.Project(t.Context(), "b", of("project", "web"))
	g.Expect(err).To(MatchError(catalog.ErrNotFound))
	_, err = c.DeployKey(t.Context(), "b", of("deploykey", "ci"))
	g.Expect(err).To(MatchError(catalog.ErrNotFound))
}
