package catalog_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/catalog/catalogtest"
)

func triggerToken(namespace, name string, of v1alpha1.Reference, value string) *v1alpha1.TriggerToken {
	t := &v1alpha1.TriggerToken{
		ObjectMeta: meta("triggertoken", namespace, name), Spec: v1alpha1.TriggerTokenSpec{ProjectRef: of},
	}
	if value != "" {
		t.Status.Digest = catalog.Digest(value)
	}
	return t
}

func secretWith(namespace, name, value string) *corev1.Secret {
	s := &corev1.Secret{ObjectMeta: meta("secret", namespace, name), Data: map[string][]byte{"token": []byte(value)}}
	s.Labels = map[string]string{v1alpha1.LabelSecret: v1alpha1.SecretOfTriggerToken}
	return s
}

func ownedBy(t *v1alpha1.TriggerToken, u v1alpha1.Reference) *v1alpha1.TriggerToken {
	t.Spec.OwnerRef = &u
	return t
}

func TestATriggerTokenIsFoundByItsValueInItsOwnProjectAlone(t *testing.T) {
	g := NewWithT(t)
	web, other := project("a", "web", byName("acme"), known(100)), project("a", "other", byName("acme"), known(101))
	app := project("b", "app", byName("bolt"), known(200))
	going := triggerToken("a", "going", byName("web"), "value-of-going")
	going.DeletionTimestamp = &metav1.Time{Time: time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC)}
	now := time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC)
	admin := func(s *v1alpha1.UserSpec) { s.Admin = true }
	root := user("root", 3, admin)
	issued := func(t *v1alpha1.TriggerToken, to *v1alpha1.User) *v1alpha1.TriggerToken {
		t.Status.IssuedTo = string(to.UID)
		return t
	}
	w := catalogtest.New(t, group("a", "acme"), group("b", "bolt"), web, other, app, user("max", 1), root, user("dora", 4), user("otto", 5),
		user("late", 6), inGroup("a", "max-in-acme", byName("acme"), byPath("max"), v1alpha1.RoleMaintainer),
		inGroup("a", "bad-in-acme", byName("acme"), byPath("bad"), v1alpha1.RoleOwner),
		inGroup("a", "root-in-acme", byName("acme"), byPath("root"), v1alpha1.RoleOwner),
		inProject("a", "dora-in-web", byName("web"), byPath("dora"), v1alpha1.RoleDeveloper),
		inProject("b", "otto-in-web", byID(100), byPath("otto"), v1alpha1.RoleOwner),
		until(inProject("a", "late-in-web", byName("web"), byPath("late"), v1alpha1.RoleOwner), now),
		// Nobody has asked these whether they want to own anything.
		ownedBy(triggerToken("a", "of-root", byName("web"), "value-of-root"), byPath("root")),
		issued(ownedBy(triggerToken("a", "of-dora", byName("web"), "value-of-dora"), byPath("dora")), user("dora", 4)),
		ownedBy(triggerToken("a", "of-otto", byName("web"), "value-of-otto"), byPath("otto")),
		ownedBy(triggerToken("a", "of-late", byName("web"), "value-of-late"), byPath("late")),
		issued(ownedBy(triggerToken("a", "of-another", byName("web"), "value-of-another"), byPath("root")), user("max", 1)),
		issued(ownedBy(triggerToken("a", "by-root", byName("web"), "value-by-root"), byPath("root")), root),
		user("bad", 2, func(s *v1alpha1.UserSpec) { s.State = v1alpha1.UserBlocked }),
		triggerToken("a", "t1", byName("web"), "value-1"), triggerToken("a", "t2", byID(100), "value-2"),
		triggerToken("a", "t3", byPath("acme/web"), "value-3"), ownedBy(triggerToken("a", "t4", byName("web"), "value-4"), byPath("max")),
		ownedBy(triggerToken("a", "blocked", byName("web"), "value-of-blocked"), byID(2)),
		ownedBy(triggerToken("a", "lost", byName("web"), "value-of-lost"), byName("nobody")),
		triggerToken("a", "new", byName("web"), ""), going,
		// Whoever has another namespace copies a value, a digest and a reference.
		triggerToken("b", "copy", byName("app"), "value-1"), triggerToken("b", "reaching", byID(100), "value-of-b"),
		triggerToken("b", "path", byPath("acme/web"), "value-of-b-2"))
	c := w.Catalog()
	found := func(p *v1alpha1.Project, value string) string {
		t.Helper()
		token, err := c.TriggerTokenByValue(t.Context(), p, value, now)
		if token == nil {
			g.Expect(err).To(MatchError(catalog.ErrNotFound))
			return ""
		}
		g.Expect(err).NotTo(HaveOccurred())
		return token.Name
	}
	for value, want := range map[string]string{
		"value-1": "t1", "value-2": "t2", "value-3": "t3", "value-4": "t4", "": "", "value": "", catalog.Digest("value-1"): "",
		"value-by-root": "by-root", "value-of-root": "", "value-of-another": "", "value-of-dora": "", "value-of-otto": "", "value-of-late": "",
		"value-of-blocked": "", "value-of-lost": "", "value-of-going": "", "value-of-b": "", "value-of-b-2": "",
	} {
		g.Expect(found(web, value)).To(Equal(want), value)
		g.Expect(found(other, value)).To(BeEmpty(), value)
	}
	g.Expect(found(app, "value-1")).To(Equal("copy"), "it is good for the project of whoever has made it, and no other")
	g.Expect(found(app, "value-2")).To(BeEmpty())
	w.Remove(triggerToken("a", "t1", byName("web"), "value-1"))
	g.Expect(found(web, "value-1")).To(BeEmpty())
}

func TestTriggerTokensOf(t *testing.T) {
	g := NewWithT(t)
	web := project("a", "web", byName("acme"), known(100))
	w := catalogtest.New(t, group("a", "acme"), web, triggerToken("a", "t1", byName("web"), ""), triggerToken("a", "t2", byPath("acme/web"), ""),
		triggerToken("a", "t3", byID(100), ""), triggerToken("a", "t4", byName("other"), ""), triggerToken("b", "t5", byID(100), ""))
	tokens, err := w.Catalog().TriggerTokensOf(t.Context(), web)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(tokens).To(ConsistOf(HaveField("Name", "t1"), HaveField("Name", "t2"), HaveField("Name", "t3")))
}

func TestSecretsOfDigest_areThoseLabelledForTriggerTokens(t *testing.T) {
	g := NewWithT(t)
	w := catalogtest.New(t, secretWith("a", "accepted", "value"), secretWith("a", "other", "another value"), secretWith("b", "elsewhere", "value"))
	c := w.Catalog()
	g.Expect(c.SecretsOfDigest(t.Context(), catalog.Digest("value"))).To(ConsistOf(
		catalog.SecretKey("a", "accepted"), catalog.SecretKey("b", "elsewhere")))
	g.Expect(c.SecretsOfDigest(t.Context(), "")).To(BeEmpty())
}

func TestHoldersOfSecret_areThoseWhoseStatusNamesIt(t *testing.T) {
	g := NewWithT(t)
	token, declared := triggerToken("a", "token", byName("web"), "value"), triggerToken("a", "declared", byName("web"), "")
	token.Status.SecretRef.Name = "platform"
	declared.Status.SecretRef.Name = "platform"
	declared.Spec.SecretRef = &v1alpha1.SecretKeyReference{Name: "platform", Key: "token"}
	mirror := &v1alpha1.RemoteMirror{Status: v1alpha1.RemoteMirrorStatus{SecretRef: v1alpha1.LocalSecretReference{Name: "platform"}}}
	mirror.Namespace, mirror.Name = "a", "mirror"
	w := catalogtest.New(t, token, declared, mirror, triggerToken("a", "other", byName("web"), ""))
	holders, err := w.Catalog().HoldersOfSecret(t.Context(), "platform")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(holders).To(ConsistOf(HaveField("Name", "token"), HaveField("Name", "mirror")))
}
