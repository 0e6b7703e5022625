package token

import (
	"context"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/go-logr/logr/testr"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/forgeplane/forgeplane/test/patience"
)

var noon = time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC)

// processes returns the keys of n processes that share a Secret.
func processes(t *testing.T, n int) ([]*Keys, client.Client, *clocktesting.FakeClock) {
	t.Helper()
	c, shared := clocktesting.NewFakeClock(noon), fake.NewClientBuilder().Build()
	keys := make([]*Keys, n)
	for i := range keys {
		keys[i] = NewKeys(Options{Client: shared, Namespace: "platform", Clock: c, Log: testr.New(t)})
	}
	return keys, shared, c
}

func load(t *testing.T, all ...*Keys) {
	t.Helper()
	for _, k := range all {
		if err := k.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func issue(t *testing.T, k *Keys) string {
	t.Helper()
	text, err := k.Issue(Claims{Subject: "mary", Access: []Access{{Type: TypeRepository, Name: "acme/app", Actions: []string{Pull}}}}, Service, 5*time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestKeys_verifyTokensOfOtherProcesses(t *testing.T) {
	g := NewWithT(t)
	keys, _, c := processes(t, 2)
	load(t, keys...)
	text := issue(t, keys[0])
	claims, err := keys[1].Verify(text)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(claims.Subject).To(Equal("mary"))
	_, ok := claims.Allows(TypeRepository, "acme/app", Pull)
	g.Expect(ok).To(BeTrue())
	for _, other := range [][3]string{{TypeRepository, "acme/app", Push}, {TypeRepository, "acme/other", Pull}, {TypeRegistry, "acme/app", Pull}} {
		_, ok := claims.Allows(other[0], other[1], other[2])
		g.Expect(ok).To(BeFalse())
	}
	c.Step(5*time.Minute + 10*time.Second)
	_, err = keys[1].Verify(text)
	g.Expect(err).To(MatchError(ErrInvalid))
	first, err := keys[0].UploadSecret()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(keys[1].UploadSecret()).To(Equal(first))
	g.Expect(len(first)).To(BeNumerically(">=", 32))
}

func TestIssue_hasClaimsOfReference(t *testing.T) {
	g := NewWithT(t)
	keys, _, _ := processes(t, 1)
	load(t, keys...)
	meta := &Meta{ProjectPath: "acme/app", ProjectID: 20, ProjectUID: "uid", RootNamespaceID: 10}
	text, err := keys[0].Issue(Claims{
		Subject: "mary", Type: "personal_access_token", Credential: &Credential{UID: "token", Digest: "abc"}, Access: []Access{{Type: TypeRepository, Name: "acme/app/web", Actions: []string{Pull, Push}, Meta: meta}},
	}, Service, 5*time.Minute)
	g.Expect(err).NotTo(HaveOccurred())
	parsed, err := jwt.ParseSigned(text, []jose.SignatureAlgorithm{jose.RS256})
	g.Expect(err).NotTo(HaveOccurred())
	var claims map[string]any
	g.Expect(parsed.UnsafeClaimsWithoutVerification(&claims)).To(Succeed())
	at := float64(noon.Unix())
	g.Expect(claims).To(HaveKeyWithValue("jti", Not(BeEmpty())))
	delete(claims, "jti")
	g.Expect(claims).To(Equal(map[string]any{
		"iss": "forgeplane", "aud": "container_registry", "sub": "mary", "iat": at, "nbf": at - 5, "exp": at + 300, "auth_type": "personal_access_token",
		"credential": map[string]any{"uid": "token", "digest": "abc"},
		"access": []any{map[string]any{"type": "repository", "name": "acme/app/web", "actions": []any{"pull", "push"}, "meta": map[string]any{
			"project_path": "acme/app", "project_id": 20.0, "project_uid": "uid", "root_namespace_id": 10.0,
		}}},
	}))
}

func TestKeys_refuseForgedTokens(t *testing.T) {
	g := NewWithT(t)
	keys, _, _ := processes(t, 1)
	load(t, keys...)
	others, _, _ := processes(t, 1)
	load(t, others...)
	for name, text := range map[string]string{
		"empty": "", "garbage": "a.b.c", "signed by another key with the same id": issue(t, others[0]),
		"no signature":  "eyJhbGciOiJub25lIn0.eyJpc3MiOiJmb3JnZXBsYW5lIn0.",
		"for another":   func() string { text, _ := keys[0].Issue(Claims{}, "another", time.Minute); return text }(),
		"from tomorrow": forged(t, keys[0], jwt.Claims{Issuer: issuer, Audience: jwt.Audience{Service}, NotBefore: jwt.NewNumericDate(noon.Add(24 * time.Hour)), Expiry: jwt.NewNumericDate(noon.Add(25 * time.Hour))}),
		"of another":    forged(t, keys[0], jwt.Claims{Issuer: "another", Audience: jwt.Audience{Service}, Expiry: jwt.NewNumericDate(noon.Add(time.Hour))}),
		"for ever":      forged(t, keys[0], jwt.Claims{Issuer: issuer, Audience: jwt.Audience{Service}}),
		"HMAC with the public key": signed(t, keys[0], jose.HS256, func(k *rsa.PrivateKey) any {
			public, _ := x509.MarshalPKIXPublicKey(&k.PublicKey)
			return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})
		}),
		"RS512 with the private key": signed(t, keys[0], jose.RS512, func(k *rsa.PrivateKey) any { return k }),
	} {
		_, err := keys[0].Verify(text)
		g.Expect(err).To(MatchError(ErrInvalid), name)
	}
}

// forged signs claims with a key.
func forged(t *testing.T, k *Keys, c jwt.Claims) string {
	t.Helper()
	signer, err := k.signer()
	if err != nil {
		t.Fatal(err)
	}
	text, err := jwt.Signed(signer).Claims(c).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// signed signs valid claims with another algorithm and something made of the signing key, whose id the token has.
func signed(t *testing.T, k *Keys, a jose.SignatureAlgorithm, with func(*rsa.PrivateKey) any) string {
	t.Helper()
	var secret corev1.Secret
	if err := k.o.Client.Get(t.Context(), client.ObjectKey{Namespace: "platform", Name: SecretName}, &secret); err != nil {
		t.Fatal(err)
	}
	id := keysIn(secret.Data)[0]
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: a, Key: with(parseKey(secret.Data[id]))}, (&jose.SignerOptions{}).WithHeader("kid", id))
	if err != nil {
		t.Fatal(err)
	}
	text, err := jwt.Signed(signer).Claims(jwt.Claims{Issuer: issuer, Audience: jwt.Audience{Service}, Expiry: jwt.NewNumericDate(noon.Add(time.Hour))}).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestKeys_rotateWithoutRefusingAnybody(t *testing.T) {
	g := NewWithT(t)
	keys, shared, c := processes(t, 2)
	load(t, keys...)
	signers := map[string]bool{}
	for range 200 {
		c.Step(24 * time.Hour)
		load(t, keys[0]) // the other process is slower
		text := issue(t, keys[0])
		parsed, err := jwt.ParseSigned(text, []jose.SignatureAlgorithm{algorithm})
		g.Expect(err).NotTo(HaveOccurred())
		signers[parsed.Headers[0].KeyID] = true
		_, err = keys[1].Verify(text)
		g.Expect(err).NotTo(HaveOccurred())
		load(t, keys[1])
	}
	g.Expect(signers).To(HaveLen(3))
	var secret corev1.Secret
	g.Expect(shared.Get(context.Background(), client.ObjectKey{Namespace: "platform", Name: SecretName}, &secret)).To(Succeed())
	g.Expect(keysIn(secret.Data)).To(HaveLen(1), "former keys go")
	g.Expect(madeAt(keysIn(secret.Data)[0])).To(BeTemporally(">", noon.Add(2*rotation-24*time.Hour)))
}

func TestKeys_newKeySignsOnlyWhenItIsKnown(t *testing.T) {
	g := NewWithT(t)
	keys, _, c := processes(t, 2)
	load(t, keys...)
	c.Step(rotation)
	load(t, keys[0])
	_, err := keys[1].Verify(issue(t, keys[0]))
	g.Expect(err).NotTo(HaveOccurred(), "the former key still signs")
	c.Step(notice)
	load(t, keys[0])
	g.Expect(keys[0].current.public).To(HaveLen(2))
	_, err = keys[1].Verify(issue(t, keys[0]))
	g.Expect(err).NotTo(HaveOccurred(), "an unknown key is looked up")
}

func TestKeys_deletedSecretInvalidatesTokens(t *testing.T) {
	g := NewWithT(t)
	keys, shared, c := processes(t, 1)
	load(t, keys...)
	text := issue(t, keys[0])
	var secret corev1.Secret
	g.Expect(shared.Get(t.Context(), client.ObjectKey{Namespace: "platform", Name: SecretName}, &secret)).To(Succeed())
	g.Expect(shared.Delete(t.Context(), &secret)).To(Succeed())
	c.Step(time.Minute)
	load(t, keys...)
	_, err := keys[0].Verify(text)
	g.Expect(err).To(MatchError(ErrInvalid))
	_, err = keys[0].Verify(issue(t, keys[0]))
	g.Expect(err).NotTo(HaveOccurred())
}

func TestKeys_areReplacedWhileTheyRun(t *testing.T) {
	g := NewWithT(t)
	keys, shared, c := processes(t, 1)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		keys[0].Run(ctx)
	}()
	t.Cleanup(func() {
		stop()
		<-ended
	})
	known := func() ([]string, error) {
		var secret corev1.Secret
		err := shared.Get(t.Context(), client.ObjectKey{Namespace: "platform", Name: SecretName}, &secret)
		return keysIn(secret.Data), err
	}
	g.Eventually(func() error {
		_, err := keys[0].UploadSecret()
		return err
	}).WithTimeout(patience.Wait).Should(Succeed())
	g.Expect(known()).To(HaveLen(1))
	text := issue(t, keys[0])
	c.Step(rotation)
	g.Eventually(known).WithTimeout(patience.Wait).Should(HaveLen(2))
	g.Expect(keys[0].Verify(text)).Error().To(MatchError(ErrInvalid), "it has expired")
}

func TestParseScope(t *testing.T) {
	for text, want := range map[string]Scope{
		"repository:acme/app:pull":                       {"repository", "acme/app", []string{"pull"}},
		"repository:acme/app:pull,push":                  {"repository", "acme/app", []string{"pull", "push"}},
		"repository(plugin):acme/app:pull":               {"repository", "acme/app", []string{"pull"}},
		"repository:registry.example:5000/acme/app:pull": {"repository", "registry.example:5000/acme/app", []string{"pull"}},
		"registry:catalog:*":                             {"registry", "catalog", []string{"*"}},
	} {
		if got, ok := ParseScope(text); !ok || got.Type != want.Type || got.Name != want.Name || len(got.Actions) != len(want.Actions) {
			t.Errorf("%s: got %+v", text, got)
		}
	}
	for _, text := range []string{"", "repository", "repository:", "repository:acme/app", "repository::pull", "repository:acme/app:", "repository:acme/app:,"} {
		if got, ok := ParseScope(text); ok {
			t.Errorf("%q: got %+v", text, got)
		}
	}
}
