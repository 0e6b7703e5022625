package triggertoken_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/catalog/catalogtest"
	. "github.com/forgeplane/forgeplane/internal/catalog/catalogtest/objects"
	"github.com/forgeplane/forgeplane/internal/credential"
	"github.com/forgeplane/forgeplane/internal/triggertoken"
)

func secretWith(namespace, name, value string) *corev1.Secret {
	s := &corev1.Secret{ObjectMeta: Meta("secret", namespace, name), Data: map[string][]byte{"token": []byte(value)}}
	s.Labels = map[string]string{v1alpha1.LabelSecret: v1alpha1.SecretOfTriggerToken}
	return s
}

func ownedBy(t *v1alpha1.TriggerToken, u v1alpha1.Reference) *v1alpha1.TriggerToken {
	t.Spec.OwnerRef = &u
	return t
}

func TestByValue_findsTokenOnlyInItsProject(t *testing.T) {
	g := NewWithT(t)
	web, other := Project("a", "web", ByName("acme"), Known(100)), Project("a", "other", ByName("acme"), Known(101))
	app := Project("b", "app", ByName("bolt"), Known(200))
	going := TriggerToken("a", "going", ByName("web"), "value-of-going")
	going.DeletionTimestamp = &metav1.Time{Time: time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC)}
	now := time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC)
	admin := func(s *v1alpha1.UserSpec) { s.Admin = true }
	root := User("root", 3, admin)
	issued := func(t *v1alpha1.TriggerToken, to *v1alpha1.User) *v1alpha1.TriggerToken {
		t.Status.IssuedTo = string(to.UID)
		return t
	}
	w := catalogtest.New(t, Group("a", "acme"), Group("b", "bolt"), web, other, app, User("max", 1), root, User("dora", 4), User("otto", 5),
		User("late", 6), InGroup("a", "max-in-acme", ByName("acme"), ByPath("max"), v1alpha1.RoleMaintainer),
		InGroup("a", "bad-in-acme", ByName("acme"), ByPath("bad"), v1alpha1.RoleOwner),
		InGroup("a", "root-in-acme", ByName("acme"), ByPath("root"), v1alpha1.RoleOwner),
		InProject("a", "dora-in-web", ByName("web"), ByPath("dora"), v1alpha1.RoleDeveloper),
		InProject("b", "otto-in-web", ByID(100), ByPath("otto"), v1alpha1.RoleOwner),
		Until(InProject("a", "late-in-web", ByName("web"), ByPath("late"), v1alpha1.RoleOwner), now),
		// Some of these tokens name an owner who did not create them, or who does not have the required role.
		ownedBy(TriggerToken("a", "of-root", ByName("web"), "value-of-root"), ByPath("root")),
		issued(ownedBy(TriggerToken("a", "of-dora", ByName("web"), "value-of-dora"), ByPath("dora")), User("dora", 4)),
		ownedBy(TriggerToken("a", "of-otto", ByName("web"), "value-of-otto"), ByPath("otto")),
		ownedBy(TriggerToken("a", "of-late", ByName("web"), "value-of-late"), ByPath("late")),
		issued(ownedBy(TriggerToken("a", "of-another", ByName("web"), "value-of-another"), ByPath("root")), User("max", 1)),
		issued(ownedBy(TriggerToken("a", "by-root", ByName("web"), "value-by-root"), ByPath("root")), root),
		User("bad", 2, func(s *v1alpha1.UserSpec) { s.State = v1alpha1.UserBlocked }),
		TriggerToken("a", "t1", ByName("web"), "value-1"), TriggerToken("a", "t2", ByID(100), "value-2"),
		TriggerToken("a", "t3", ByPath("acme/web"), "value-3"), ownedBy(TriggerToken("a", "t4", ByName("web"), "value-4"), ByPath("max")),
		ownedBy(TriggerToken("a", "blocked", ByName("web"), "value-of-blocked"), ByID(2)),
		ownedBy(TriggerToken("a", "lost", ByName("web"), "value-of-lost"), ByName("nobody")),
		TriggerToken("a", "new", ByName("web"), ""), going,
		// The owner of another namespace can copy a value, a digest and a reference.
		TriggerToken("b", "copy", ByName("app"), "value-1"), TriggerToken("b", "reaching", ByID(100), "value-of-b"),
		TriggerToken("b", "path", ByPath("acme/web"), "value-of-b-2"))
	c := w.Catalog()
	found := func(p *v1alpha1.Project, value string) string {
		t.Helper()
		token, err := triggertoken.ByValue(t.Context(), c, p, value, now)
		if token == nil {
			g.Expect(err).To(MatchError(catalog.ErrNotFound))
			return ""
		}
		g.Expect(err).NotTo(HaveOccurred())
		return token.Name
	}
	for value, want := range map[string]string{
		"value-1": "t1", "value-2": "t2", "value-3": "t3", "value-4": "t4", "": "", "value": "", credential.Digest("value-1"): "",
		"value-by-root": "by-root", "value-of-root": "", "value-of-another": "", "value-of-dora": "", "value-of-otto": "", "value-of-late": "",
		"value-of-blocked": "", "value-of-lost": "", "value-of-going": "", "value-of-b": "", "value-of-b-2": "",
	} {
		g.Expect(found(web, value)).To(Equal(want), value)
		g.Expect(found(other, value)).To(BeEmpty(), value)
	}
	g.Expect(found(app, "value-1")).To(Equal("copy"), "it is good for the project of whoever has made it, and no other")
	g.Expect(found(app, "value-2")).To(BeEmpty())
	w.Remove(TriggerToken("a", "t1", ByName("web"), "value-1"))
	g.Expect(found(web, "value-1")).To(BeEmpty())
}

func TestTriggerTokensOf(t *testing.T) {
	g := NewWithT(t)
	web := Project("a", "web", ByName("acme"), Known(100))
	w := catalogtest.New(t, Group("a", "acme"), web, TriggerToken("a", "t1", ByName("web"), ""), TriggerToken("a", "t2", ByPath("acme/web"), ""),
		TriggerToken("a", "t3", ByID(100), ""), TriggerToken("a", "t4", ByName("other"), ""), TriggerToken("b", "t5", ByID(100), ""))
	tokens, err := catalog.ListForProject[*v1alpha1.TriggerToken](t.Context(), w.Catalog(), web)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(tokens).To(ConsistOf(HaveField("Name", "t1"), HaveField("Name", "t2"), HaveField("Name", "t3")))
}

func TestSecretsOfDigest_findsLabelledSecrets(t *testing.T) {
	g := NewWithT(t)
	w := catalogtest.New(t, secretWith("a", "accepted", "value"), secretWith("a", "other", "another value"), secretWith("b", "elsewhere", "value"))
	c := w.Catalog()
	g.Expect(triggertoken.SecretsOfDigest(t.Context(), c, credential.Digest("value"))).To(ConsistOf(
		credential.Key("a", "accepted"), credential.Key("b", "elsewhere")))
	g.Expect(triggertoken.SecretsOfDigest(t.Context(), c, "")).To(BeEmpty())
}

func TestHolders_findsObjectsWhoseStatusNamesSecret(t *testing.T) {
	g := NewWithT(t)
	token, declared := TriggerToken("a", "token", ByName("web"), "value"), TriggerToken("a", "declared", ByName("web"), "")
	token.Status.SecretRef.Name = "platform"
	declared.Status.SecretRef.Name = "platform"
	declared.Spec.SecretRef = &v1alpha1.SecretKeyReference{Name: "platform", Key: "token"}
	mirror := &v1alpha1.RemoteMirror{Status: v1alpha1.RemoteMirrorStatus{SecretRef: v1alpha1.LocalSecretReference{Name: "platform"}}}
	mirror.Namespace, mirror.Name = "a", "mirror"
	w := catalogtest.New(t, token, declared, mirror, TriggerToken("a", "other", ByName("web"), ""))
	holders, err := credential.Holders(t.Context(), w.Catalog(), "platform")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(holders).To(ConsistOf(HaveField("Name", "token"), HaveField("Name", "mirror")))
}
