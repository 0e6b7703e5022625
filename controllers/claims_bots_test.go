package controllers_test

import (
	"context"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/bottoken"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/claim"
	"github.com/forgeplane/forgeplane/internal/credential"
)

// botValues are the values in the Secrets of bot tokens. No access token has them: it would end the bot token.
var botValues = []string{"the-first-value-of-a-robot", "the-second-value-of-a-robot", "the-third-value-of-a-robot"}

func (f *forge) botTokens() []*v1alpha1.BotToken {
	var l v1alpha1.BotTokenList
	return all(f, &l, func() []v1alpha1.BotToken { return l.Items })
}

// homeOfBots is the name of a group in each namespace that no tenant changes.
const homeOfBots = "home-of-bots"

// createForBots creates a group and Secrets for bot tokens in each namespace.
func (f *forge) createForBots() {
	for _, namespace := range namespaces {
		home := &v1alpha1.Group{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: homeOfBots, UID: types.UID(homeOfBots + namespace), Generation: 1},
			Spec:       v1alpha1.GroupSpec{Path: homeOfBots + "-of-" + namespace},
		}
		f.Expect(f.cluster.Create(f.t.Context(), home)).To(Succeed())
		f.reconcile(home)
		for i, name := range secrets {
			s := &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{v1alpha1.LabelSecret: v1alpha1.SecretOfBotToken}},
				Type:       corev1.SecretTypeOpaque,
				Data:       map[string][]byte{secretKey: []byte(botValues[i])},
			}
			f.Expect(f.cluster.Create(f.t.Context(), s)).To(Succeed())
		}
	}
}

// fillBotSecret writes a value to a Secret of a tenant. This counts as a change of all tokens that name it.
func (f *forge) fillBotSecret() {
	s := f.secretIn(one(f, namespaces), one(f, secrets)).DeepCopy()
	s.Data[secretKey] = []byte(one(f, botValues))
	f.Expect(f.cluster.Update(f.t.Context(), s)).To(Succeed())
	for _, t := range f.botTokens() {
		if t.Namespace == s.Namespace && t.Spec.SecretRef != nil && t.Spec.SecretRef.Name == s.Name {
			f.done[t.UID] = true
		}
	}
	f.log = append(f.log, "fill Secret "+s.Namespace+"/"+s.Name)
}

// specOfBot makes a bot token claim something. It keeps its project or group, and whether its value is in a Secret.
func (f *forge) specOfBot(t *v1alpha1.BotToken, target func(project, group **v1alpha1.Reference)) {
	if t.ResourceVersion == "" {
		target(&t.Spec.ProjectRef, &t.Spec.GroupRef)
		// A token has no value while its project or group has no place, and few of the random ones have one.
		if f.random.IntN(3) > 0 {
			t.Spec.ProjectRef, t.Spec.GroupRef = nil, &v1alpha1.Reference{Name: homeOfBots}
		}
		t.Spec.Name, t.Spec.Scopes = f.word(), []v1alpha1.TokenScope{v1alpha1.ScopeAPI}
		if f.random.IntN(3) == 0 {
			t.Spec.Digest = credential.Digest(one(f, botValues))
		}
	}
	if t.Spec.Digest != "" {
		t.Spec.Digest = credential.Digest(one(f, botValues))
	} else {
		t.Spec.SecretRef = &v1alpha1.SecretKeyReference{Name: one(f, secrets), Key: secretKey}
	}
}

// botDigest returns the digest of the value that a bot token has in its Secret, or declares.
func (f *forge) botDigest(t *v1alpha1.BotToken) string {
	if t.Spec.SecretRef == nil {
		return t.Spec.Digest
	}
	return credential.Digest(string(f.secretIn(t.Namespace, t.Spec.SecretRef.Name).Data[secretKey]))
}

// declaredByBot returns the claims that a bot token declares.
func (f *forge) declaredByBot(ctx context.Context, t *v1alpha1.BotToken) ([]claim.Claim, error) {
	if _, err := f.catalog.Target(ctx, t); err != nil {
		return nil, catalog.IgnoreNotFound(err)
	}
	value := claim.BotTokenValue(f.botDigest(t))
	if ref := t.Spec.SecretRef; ref != nil {
		return []claim.Claim{claim.TokenSecret(t.Namespace, ref.Name, ref.Key), value}, nil
	}
	return []claim.Claim{value}, nil
}

// foundByBot returns the holder of a claim of a bot token as other components look it up.
func (f *forge) foundByBot(ctx context.Context, c *catalog.Catalog, t *v1alpha1.BotToken, k claim.Claim) (client.Object, error) {
	if ref := t.Spec.SecretRef; ref != nil && k == claim.TokenSecret(t.Namespace, ref.Name, ref.Key) {
		sharing, err := bottoken.OfSecret(ctx, c, t.Namespace, *ref)
		return claim.Holder(sharing, k), err
	}
	return bottoken.ByDigest(ctx, c, f.botDigest(t))
}
