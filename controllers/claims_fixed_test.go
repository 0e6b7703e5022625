package controllers_test

import (
	"cmp"
	"crypto/ed25519"
	"fmt"
	"slices"
	"strings"

	. "github.com/onsi/gomega"
	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/accesstoken"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/claim"
	"github.com/forgeplane/forgeplane/internal/credential"
	"github.com/forgeplane/forgeplane/internal/deploykey"
	"github.com/forgeplane/forgeplane/internal/jobtoken"
)

// platform is the namespace of the Secrets of access tokens.
const platform = "platform"

// secrets are the Secrets that access tokens name, and values are their values, some of which are equal.
var (
	secrets = []string{"s", "t", "u"}
	values  = []string{"the-first-value-of-a-token", "the-second-value-of-a-token", "the-third-value-of-a-token"}
)

const secretKey = "token"

func (f *forge) createSecrets() {
	for i, name := range secrets {
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: platform, Name: name}, Data: map[string][]byte{secretKey: []byte(values[i])}}
		f.Expect(f.cluster.Create(f.t.Context(), s)).To(Succeed())
	}
}

func (f *forge) secret(name string) *corev1.Secret { return f.secretIn(platform, name) }

func (f *forge) secretIn(namespace, name string) *corev1.Secret {
	s := &corev1.Secret{}
	f.Expect(f.cluster.Get(f.t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, s)).To(Succeed())
	return s
}

// fillSecret writes a value to a Secret. This counts as a change of all tokens that name it.
func (f *forge) fillSecret() {
	s := f.secret(one(f, secrets)).DeepCopy()
	s.Data[secretKey] = []byte(one(f, values))
	f.Expect(f.cluster.Update(f.t.Context(), s)).To(Succeed())
	for _, t := range f.accessTokens() {
		if t.Spec.SecretRef != nil && t.Spec.SecretRef.Name == s.Name {
			f.done[t.UID] = true
		}
	}
	f.log = append(f.log, "fill Secret "+s.Name)
}

func (f *forge) deployKeys() []*v1alpha1.DeployKey {
	var l v1alpha1.DeployKeyList
	return all(f, &l, func() []v1alpha1.DeployKey { return l.Items })
}

func (f *forge) jobTokenScopes() []*v1alpha1.JobTokenScope {
	var l v1alpha1.JobTokenScopeList
	return all(f, &l, func() []v1alpha1.JobTokenScope { return l.Items })
}

func (f *forge) accessTokens() []*v1alpha1.AccessToken {
	var l v1alpha1.AccessTokenList
	return all(f, &l, func() []v1alpha1.AccessToken { return l.Items })
}

// publicKey returns one of two keys.
func (f *forge) publicKey() ssh.PublicKey {
	seed := make([]byte, ed25519.SeedSize)
	seed[0] = byte(f.random.IntN(2))
	key, err := ssh.NewPublicKey(ed25519.NewKeyFromSeed(seed).Public())
	f.Expect(err).NotTo(HaveOccurred())
	return key
}

// specOfFixed makes an object with a mostly immutable spec claim something. It does not change the immutable fields of an existing spec.
func (f *forge) specOfFixed(o v1alpha1.Object, project, user func() v1alpha1.Reference) {
	isNew := o.GetResourceVersion() == ""
	place := func() v1alpha1.Reference {
		if f.random.IntN(3) == 0 {
			return v1alpha1.Reference{Path: f.word() + "/" + f.word()}
		}
		return project()
	}
	switch o := o.(type) {
	case *v1alpha1.DeployKey:
		o.Spec.Title = f.word()
		if isNew {
			o.Spec.ProjectRef, o.Spec.PublicKey = place(), strings.TrimSpace(string(ssh.MarshalAuthorizedKey(f.publicKey())))
		}
	case *v1alpha1.JobTokenScope:
		if isNew {
			o.Spec.ProjectRef = place()
		}
	case *v1alpha1.AccessToken:
		if isNew {
			o.Spec.UserRef, o.Spec.Scopes = user(), []v1alpha1.TokenScope{v1alpha1.ScopeAPI}
		}
		switch digest := f.random.IntN(3) == 0; {
		case isNew && digest:
			o.Spec.Digest = credential.Digest(one(f, values))
		case o.Spec.Digest == "":
			o.Spec.SecretRef = &v1alpha1.SecretKeyReference{Name: one(f, secrets), Key: secretKey}
		}
	}
}

// declaredByFixed returns the claims that such an object declares.
func (f *forge) declaredByFixed(o v1alpha1.Object) ([]claim.Claim, error) {
	ctx := f.t.Context()
	switch o := o.(type) {
	case *v1alpha1.DeployKey:
		return deploykey.Claims(ctx, f.catalog, o, fingerprint(f, o))
	case *v1alpha1.JobTokenScope:
		return jobtoken.Claims(ctx, f.catalog, o)
	default:
		t := o.(*v1alpha1.AccessToken)
		if t.Spec.SecretRef == nil {
			return []claim.Claim{claim.TokenValue(t.Spec.Digest)}, nil
		}
		value := credential.Digest(string(f.secret(t.Spec.SecretRef.Name).Data[secretKey]))
		return []claim.Claim{claim.TokenSecret("", t.Spec.SecretRef.Name, secretKey), claim.TokenValue(value)}, nil
	}
}

func fingerprint(f *forge, k *v1alpha1.DeployKey) string {
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(k.Spec.PublicKey))
	f.Expect(err).NotTo(HaveOccurred())
	return ssh.FingerprintSHA256(key)
}

// foundByFixed returns the holder of a claim of such an object as other components look it up. It returns nil if they do not look it up.
func (f *forge) foundByFixed(c *catalog.Catalog, o v1alpha1.Object, k claim.Claim) (client.Object, error) {
	ctx := f.t.Context()
	switch o := o.(type) {
	case *v1alpha1.DeployKey:
		p, err := c.Project(ctx, o.Namespace, o.Spec.ProjectRef)
		if err != nil {
			return nil, err
		}
		keys, err := catalog.ListForProject[*v1alpha1.DeployKey](ctx, c, p)
		same := slices.DeleteFunc(keys, func(s *v1alpha1.DeployKey) bool { return fingerprint(f, s) != fingerprint(f, o) })
		return claim.Holder(same, k), err
	case *v1alpha1.JobTokenScope:
		p, err := c.Project(ctx, o.Namespace, o.Spec.ProjectRef)
		if err != nil {
			return nil, err
		}
		s, err := c.ProjectScope(ctx, p)
		if catalog.Misplaced(err) {
			return nil, nil // the project cannot be reached
		}
		if err != nil {
			return nil, err
		}
		return jobtoken.ScopeOf(ctx, c, s)
	default:
		t := o.(*v1alpha1.AccessToken)
		if ref := t.Spec.SecretRef; ref != nil && k == claim.TokenSecret("", ref.Name, ref.Key) {
			sharing, err := accesstoken.OfSecret(ctx, c, *ref)
			return claim.Holder(sharing, k), err
		}
		digest := t.Spec.Digest
		if digest == "" {
			digest = credential.Digest(string(f.secret(t.Spec.SecretRef.Name).Data[secretKey]))
		}
		return accesstoken.ByDigest(ctx, c, digest)
	}
}

// pin sets an arbitrary id on an object, as users with the verb pin can do, or drops its id, as a replace does.
func (f *forge) pin(o v1alpha1.Object) {
	identified, ok := o.(v1alpha1.Identified)
	if !ok {
		return
	}
	spec, status := identified.IDs()
	switch n := f.random.IntN(6); {
	case n < 2 && *spec == 0 && *status == 0:
		*spec = 1 + f.random.Int64N(9)
	case n == 2:
		*spec = 0
	}
}

// The claim to a REST id is not in status.claims. These keys have the same form.
func idKey(o v1alpha1.Object, id int64) string { return fmt.Sprintf("id/%s/%d", kindOf(o), id) }

func isID(key string) bool { return strings.HasPrefix(key, "id/") }

// idInForce returns the claim to the id in the status, if there is one.
func idInForce(o v1alpha1.Object) []string {
	if identified, ok := o.(v1alpha1.Identified); ok {
		if _, status := identified.IDs(); *status != 0 {
			return []string{idKey(o, *status)}
		}
	}
	return nil
}

// declaredID returns the claim to the id in the spec, or to the id that the object keeps after a replace has dropped it from the spec.
func declaredID(o v1alpha1.Object) []string {
	if identified, ok := o.(v1alpha1.Identified); ok {
		if spec, status := identified.IDs(); cmp.Or(*spec, *status) != 0 {
			return []string{idKey(o, cmp.Or(*spec, *status))}
		}
	}
	return nil
}

// agreesOnID checks that looking up the id of an object finds its holder.
func (f *forge) agreesOnID(c *catalog.Catalog, o v1alpha1.Object, holders map[string]v1alpha1.Object) {
	ctx, claimed := f.t.Context(), declaredID(o)
	if len(claimed) == 0 || holders[claimed[0]] == nil {
		return
	}
	holder := holders[claimed[0]]
	id := o.(v1alpha1.Identified).RESTID()
	var found client.Object
	var err error
	switch o.(type) {
	case *v1alpha1.Group:
		found, err = catalog.ByID[*v1alpha1.Group](ctx, c, id)
	case *v1alpha1.Project:
		found, err = catalog.ByID[*v1alpha1.Project](ctx, c, id)
	case *v1alpha1.User:
		found, err = c.User(ctx, v1alpha1.Reference{ID: id})
	case *v1alpha1.AccessToken:
		found, err = catalog.ByID[*v1alpha1.AccessToken](ctx, c, id)
	case *v1alpha1.DeployKey:
		found, err = catalog.ByID[*v1alpha1.DeployKey](ctx, c, id)
	case *v1alpha1.BotToken:
		found, err = catalog.ByID[*v1alpha1.BotToken](ctx, c, id)
	}
	if found != nil || err != nil {
		f.Expect(err).NotTo(HaveOccurred())
		f.Expect(found.GetUID()).To(Equal(holder.GetUID()), "who is found by %s: %s", claimed[0], f.story())
	}
	holds, err := c.HoldsID(ctx, o.(v1alpha1.Identified))
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(holds).To(Equal(holder.GetUID() == o.GetUID()), "whether %s holds %s: %s", o.GetName(), claimed[0], f.story())
}
