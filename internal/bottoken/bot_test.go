package bottoken_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/bottoken"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/catalog/catalogtest"
	. "github.com/forgeplane/forgeplane/internal/catalog/catalogtest/objects"
	"github.com/forgeplane/forgeplane/internal/credential"
	"github.com/forgeplane/forgeplane/internal/role"
)

// token returns a token of the project web in the namespace a.
func token(name string, id int64, change ...func(*v1alpha1.BotToken)) *v1alpha1.BotToken {
	web := ByName("web")
	t := &v1alpha1.BotToken{ObjectMeta: Meta("bottoken", "a", name), Spec: v1alpha1.BotTokenSpec{
		ID: id, ProjectRef: &web, Name: "Robot", Role: v1alpha1.RoleMaintainer, Digest: credential.Digest(name),
	}}
	for _, c := range change {
		c(t)
	}
	return t
}

func of(group string) func(*v1alpha1.BotToken) {
	return func(t *v1alpha1.BotToken) {
		ref := ByName(group)
		t.Spec.ProjectRef, t.Spec.GroupRef = nil, &ref
	}
}

// newWorld returns a world with the projects acme/sub/web and acme/other.
func newWorld(t *testing.T, more ...client.Object) *catalog.Catalog {
	t.Helper()
	w := catalogtest.New(t, Group("a", "acme", Pinned(10)), Group("a", "sub", Pinned(11), Below(ByName("acme"))), Group("a", "beside", Below(ByName("acme"))),
		Project("a", "web", ByName("sub"), Known(100)), Project("a", "other", ByName("acme")))
	w.Put(more...)
	return w.Catalog()
}

func TestBot_hasItsRoleInItsProjectOrGroupOnly(t *testing.T) {
	for name, tt := range map[string]struct {
		token *v1alpha1.BotToken
		want  map[string]role.Role
	}{
		"of a project": {token("one", 5), map[string]role.Role{"acme/sub/web": role.Maintainer}},
		"of a group":   {token("one", 5, of("sub")), map[string]role.Role{"acme/sub": role.Maintainer, "acme/sub/web": role.Maintainer}},
		"of a root group": {token("one", 5, of("acme")), map[string]role.Role{
			"acme": role.Maintainer, "acme/sub": role.Maintainer, "acme/beside": role.Maintainer, "acme/sub/web": role.Maintainer, "acme/other": role.Maintainer,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			// A membership that means the bot as if it were a user gives it nothing.
			c := newWorld(t, tt.token, InGroup("a", "m", ByName("acme"), ByID(bottoken.UserID(tt.token)), v1alpha1.RoleOwner))
			b, err := bottoken.Of(t.Context(), c, tt.token)
			g.Expect(err).NotTo(HaveOccurred())
			view := c.ViewOf(b.Bot)
			projects, err := view.Projects(t.Context())
			g.Expect(err).NotTo(HaveOccurred())
			groups, err := view.Groups(t.Context())
			g.Expect(err).NotTo(HaveOccurred())
			got := map[string]role.Role{}
			for _, s := range append(projects, groups...) {
				g.Expect(b.RolesIn(s.Scope)).To(Equal(s.Roles), s.Path())
				if r := s.Highest(); r > role.None {
					got[s.Path()] = r
				}
			}
			g.Expect(got).To(Equal(tt.want))
			g.Expect(c.RolesIn(t.Context(), b.User, b.Of, time.Now())).To(Equal(catalog.Roles{}), "as a user it has no roles")
		})
	}
}

func TestBot_isDescribedAsAUser(t *testing.T) {
	g := NewWithT(t)
	one, all := token("one", 5), token("all", 6, of("sub"))
	c := newWorld(t, one, all)
	b, err := bottoken.ByUserID(t.Context(), c, 1<<52+5)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(b.Token.Name).To(Equal("one"))
	g.Expect(b.User.RESTID()).To(BeEquivalentTo(1<<52 + 5))
	g.Expect(b.User.Spec).To(And(HaveField("Name", "Robot"), HaveField("External", true), HaveField("Admin", false), HaveField("Auditor", false),
		HaveField("Username", MatchRegexp("^project_100_bot_[0-9a-f]{32}$")), HaveField("Type", v1alpha1.UserBot)))
	b, err = bottoken.ByUserID(t.Context(), c, 1<<52+6)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(b.User.Spec.Username).To(HavePrefix("group_11_bot_"))
	for _, id := range []int64{0, 5, 1 << 52, 1<<52 + 7} {
		_, err := bottoken.ByUserID(t.Context(), c, id)
		g.Expect(err).To(MatchError(catalog.ErrNotFound), "%d", id)
	}
}

func TestBot_isNilWithoutProjectOrID(t *testing.T) {
	gone := func(t *v1alpha1.BotToken) { t.Spec.ProjectRef.Name = "gone" }
	elsewhere := func(t *v1alpha1.BotToken) { t.Namespace = "b" }
	former := func(t *v1alpha1.BotToken) { t.Spec.ProjectRef.UID = "of an earlier project" }
	for name, it := range map[string]*v1alpha1.BotToken{
		"its project does not exist":          token("one", 5, gone),
		"its project is in another namespace": token("one", 5, elsewhere),
		"its project was created anew":        token("one", 5, former),
		"it has no id":                        token("one", 0),
		"its id leads to no id of a user":     token("one", 1<<52),
		"a user has the id":                   token("one", 7),
		"an older token has the id":           token("two", 8),
	} {
		t.Run(name, func(t *testing.T) {
			c := newWorld(t, User("taken", 1<<52+7), token("older", 8), it)
			_, err := bottoken.Of(t.Context(), c, it)
			NewWithT(t).Expect(err).To(MatchError(catalog.ErrNotFound))
		})
	}
}

func TestToken_isFoundByDigestAndSecret(t *testing.T) {
	g := NewWithT(t)
	ref := v1alpha1.SecretKeyReference{Name: "s", Key: "token"}
	inSecret := func(value string) func(*v1alpha1.BotToken) {
		return func(t *v1alpha1.BotToken) {
			t.Spec.Digest, t.Spec.SecretRef, t.Status.Digest = "", &ref, credential.Digest(value)
		}
	}
	rotated := token("rotated", 6)
	rotated.Status.Digest = credential.Digest("before")
	c := newWorld(t, token("one", 5, inSecret("value")), rotated)
	found, err := bottoken.ByDigest(t.Context(), c, credential.Digest("value"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found.Name).To(Equal("one"))
	found, err = bottoken.ByDigest(t.Context(), c, credential.Digest("rotated"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found.Name).To(Equal("rotated"))
	for _, value := range []string{"", "before", credential.Digest("value")} {
		_, err := bottoken.ByDigest(t.Context(), c, credential.Digest(value))
		g.Expect(err).To(MatchError(catalog.ErrNotFound), "the declared digest counts, and not that of an earlier value: %q", value)
	}
	for namespace, number := range map[string]int{"a": 1, "b": 0} {
		sharing, err := bottoken.OfSecret(t.Context(), c, namespace, ref)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(sharing).To(HaveLen(number))
	}
}

func TestBot_isFoundByUsername(t *testing.T) {
	one, all := token("one", 5), token("all", 6, of("sub"))
	c := newWorld(t, one, all)
	for _, want := range []*v1alpha1.BotToken{one, all} {
		b, err := bottoken.Of(t.Context(), c, want)
		if err != nil {
			t.Fatal(err)
		}
		for _, username := range []string{b.User.Spec.Username, strings.ToUpper(b.User.Spec.Username)} {
			if named, err := bottoken.ByUsername(t.Context(), c, username); err != nil || !named.Is(want.UID) {
				t.Errorf("%s: got %v, %v", username, named.User, err)
			}
		}
		_, digest, _ := strings.Cut(b.User.Spec.Username, "_bot_")
		for _, username := range []string{
			"project_11_bot_" + digest, "group_100_bot_" + digest, "user_100_bot_" + digest, "project_100_" + digest, "project_100_bot_", "project__bot_" + digest, "",
		} {
			if _, err := bottoken.ByUsername(t.Context(), c, username); !errors.Is(err, catalog.ErrNotFound) {
				t.Errorf("%s: got %v", username, err)
			}
		}
	}
}
