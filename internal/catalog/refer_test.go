package catalog_test

import (
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/accesstoken"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/catalog/catalogtest"
	. "github.com/forgeplane/forgeplane/internal/catalog/catalogtest/objects"
	"github.com/forgeplane/forgeplane/internal/deploykey"
	"github.com/forgeplane/forgeplane/internal/jobtoken"
	"github.com/forgeplane/forgeplane/internal/protection"
	"github.com/forgeplane/forgeplane/internal/role"
)

// recreated returns an object with the name, path and id of a deleted one.
func recreated[T client.Object](o T) T {
	again := o.DeepCopyObject().(T)
	again.SetUID("another " + o.GetUID())
	again.SetCreationTimestamp(metav1.Time{})
	return again
}

func TestRefer_doesNotMeanRecreatedObject(t *testing.T) {
	g := NewWithT(t)
	ada, acme := User("ada", 2), Group("a", "acme", Pinned(10))
	web, app := Project("a", "web", ByName("acme"), Known(100)), Project("a", "app", ByName("acme"), Known(101))
	ci := DeployKey("a", "ci", 1000, ByName("web"))
	w := catalogtest.New(t, ada, acme, web, app, ci)
	levels := []v1alpha1.AccessLevel{ToUser(catalog.Refer(ada)), ToGroup(catalog.Refer(acme)), ToDeployKey(catalog.Refer(ci))}
	scope := &v1alpha1.JobTokenScope{ObjectMeta: Meta("scope", "a", "web"), Spec: v1alpha1.JobTokenScopeSpec{
		ProjectRef: ByName("web"), Allowlist: []v1alpha1.AllowlistEntry{{ProjectRef: catalog.Refer(app)}},
	}}
	token := &v1alpha1.AccessToken{ObjectMeta: Meta("token", "", "t"), Spec: v1alpha1.AccessTokenSpec{ID: 3, UserRef: catalog.Refer(ada)}}
	w.Put(InProject("a", "m", ByName("web"), catalog.Refer(ada), v1alpha1.RoleOwner), scope, token)
	c := w.Catalog()

	// have reports for each reader whether it returns anything.
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
		_, err = deploykey.Named(t.Context(), c, "a", catalog.Refer(ci))
		found("deploy key", err)

		now, err := c.UserByUsername(t.Context(), "ada")
		g.Expect(err).NotTo(HaveOccurred())
		at, err := catalog.ByID[*v1alpha1.Project](t.Context(), c, 100)
		g.Expect(err).NotTo(HaveOccurred())
		in, err := c.ProjectScope(t.Context(), at)
		g.Expect(err).NotTo(HaveOccurred())
		has, err := c.ProjectRole(t.Context(), now, at, metav1.Now().Time)
		g.Expect(err).NotTo(HaveOccurred())
		all["role"] = has == role.Owner
		g.Expect(has).To(BeElementOf(role.Owner, role.None))
		tree, err := c.View(now, metav1.Now().Time).Projects(t.Context())
		g.Expect(err).NotTo(HaveOccurred())
		all["role in lists"] = slices.ContainsFunc(tree, func(s catalog.Seen) bool { return s.Highest() != role.None })
		below, err := c.GivenBelow(t.Context(), now, in.Groups[0])
		g.Expect(err).NotTo(HaveOccurred())
		all["given below"] = len(below) == 1
		members, err := c.MembersOf(t.Context(), in, metav1.Now().Time)
		g.Expect(err).NotTo(HaveOccurred())
		all["members"] = len(members) == 1
		tokens, err := accesstoken.Of(t.Context(), c, now)
		g.Expect(err).NotTo(HaveOccurred())
		all["tokens"] = len(tokens) == 1
		for i, l := range levels {
			_, err := protection.Resolve(t.Context(), c, in, "a", l, metav1.Now().Time)
			found([]string{"user level", "group level", "deploy key level"}[i], err)
		}
		source, err := catalog.ByID[*v1alpha1.Project](t.Context(), c, 101)
		g.Expect(err).NotTo(HaveOccurred())
		all["let in"], err = jobtoken.Allows(t.Context(), c, scope, source)
		g.Expect(err).NotTo(HaveOccurred())
		return all
	}
	g.Expect(have()).To(HaveEach(BeTrue()))
	w.Put(recreated(ada), recreated(acme), recreated(app), recreated(ci))
	g.Expect(have()).To(HaveEach(BeFalse()))
}

func TestRefer_findsNothingIfUIDDiffers(t *testing.T) {
	g := NewWithT(t)
	ada, eve := User("ada", 2), User("eve", 3)
	c := catalogtest.New(t, ada, eve).Catalog()
	for _, ref := range []v1alpha1.Reference{
		{ID: 2, UID: "nobody"}, {ID: 2, UID: string(eve.UID)}, {Name: "ada", UID: string(eve.UID)}, {Path: "ada", UID: string(eve.UID)},
	} {
		_, err := c.User(t.Context(), ref)
		g.Expect(err).To(MatchError(catalog.ErrNotFound), "%+v", ref)
	}
}

func TestRefer_staysInNamespace(t *testing.T) {
	c := twoTenants(t).Catalog()
	g := NewWithT(t)
	of := func(kind, name string) v1alpha1.Reference {
		return v1alpha1.Reference{Name: name, UID: kind + " a/" + name}
	}
	_, err := c.Group(t.Context(), "b", of("group", "acme"))
	g.Expect(err).To(MatchError(catalog.ErrNotFound))
	_, err = c.Project(t.Context(), "b", of("project", "web"))
	g.Expect(err).To(MatchError(catalog.ErrNotFound))
	_, err = deploykey.Named(t.Context(), c, "b", of("deploykey", "ci"))
	g.Expect(err).To(MatchError(catalog.ErrNotFound))
}
