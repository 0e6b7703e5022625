package accesstoken_test

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/accesstoken"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/catalog/catalogtest"
	. "github.com/forgeplane/forgeplane/internal/catalog/catalogtest/objects"
	"github.com/forgeplane/forgeplane/internal/credential"
)

func token(name, value string, secret v1alpha1.SecretKeyReference) *v1alpha1.AccessToken {
	t := &v1alpha1.AccessToken{ObjectMeta: Meta("token", "", name), Spec: v1alpha1.AccessTokenSpec{UserRef: ByName("max"), SecretRef: &secret}}
	if value != "" {
		t.Status.Digest = credential.Digest(value)
	}
	return t
}

func TestTokens_areFoundByValueAndSecret(t *testing.T) {
	g := NewWithT(t)
	secret := v1alpha1.SecretKeyReference{Name: "s", Key: "token"}
	c := catalogtest.New(t,
		token("one", "value-1", secret), token("two", "value-1", secret), token("none", "", v1alpha1.SecretKeyReference{Name: "s", Key: "other"}),
	).Catalog()
	found, err := accesstoken.ByValue(t.Context(), c, "value-1")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(Title(found)).To(Equal("token /one"))
	for _, value := range []string{"", "value-2", "VALUE-1", credential.Digest("value-1")} {
		_, err = accesstoken.ByValue(t.Context(), c, value)
		g.Expect(err).To(MatchError(catalog.ErrNotFound), value)
	}
	sharing, err := accesstoken.OfSecret(t.Context(), c, secret)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(sharing).To(HaveLen(2))
	g.Expect(credential.Digest("abc")).To(Equal("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"), "SHA-256 in hexadecimal")
}

func BenchmarkTokenByValue(b *testing.B) {
	w := catalogtest.New(b)
	for i := range 10_000 {
		w.Put(token(fmt.Sprintf("t-%d", i), fmt.Sprintf("value-%d", i), v1alpha1.SecretKeyReference{Name: "s"}))
	}
	c := w.Catalog()
	for b.Loop() {
		if _, err := accesstoken.ByValue(b.Context(), c, "value-5000"); err != nil {
			b.Fatal(err)
		}
	}
}
