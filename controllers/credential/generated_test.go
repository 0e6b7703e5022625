package credential

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/credential"
)

// newShared returns a safe whose Secret belongs to an administrator, with one of their values and one that was generated for the token a.
func newShared(t *testing.T, tokens ...client.Object) *safe {
	t.Helper()
	s := newSafe(t, tokens...)
	s.secret.Labels, s.secret.Annotations = nil, nil
	s.secret.Data = map[string][]byte{"own": []byte("theirs")}
	credential.Generate(s.secret, "laptop", "a", "generated")
	s.Expect(s.client.Update(t.Context(), s.secret)).To(Succeed())
	return s
}

// token returns an access token that has its value under the key.
func token(uid types.UID) *v1alpha1.AccessToken {
	t := &v1alpha1.AccessToken{}
	t.Name, t.UID = "token-"+string(uid), uid
	t.Spec.SecretRef = &v1alpha1.SecretKeyReference{Name: "trigger-token-1", Key: "laptop"}
	return t
}

// keys returns the keys of the Secret.
func (s *safe) keys() (all []string) {
	var now corev1.Secret
	s.Expect(s.client.Get(s.t.Context(), client.ObjectKeyFromObject(s.secret), &now)).To(Succeed())
	for key := range now.Data {
		all = append(all, key)
	}
	return all
}

func TestReconcile_removesAGeneratedValueFromASharedSecret(t *testing.T) {
	tests := map[string]struct {
		tokens   []client.Object
		released types.UID
		after    time.Duration
		next     time.Duration
		gone     bool
	}{
		"not while its token exists":                              {[]client.Object{token("a")}, "", time.Hour, 0, false},
		"when its token was deleted":                              {nil, "a", time.Second, 0, true},
		"not when its token was deleted, and another one has it":  {[]client.Object{token("b")}, "a", time.Second, 0, false},
		"not when its token exists again":                         {[]client.Object{token("a")}, "a", time.Second, 0, false},
		"not when another token was deleted":                      {[]client.Object{token("a")}, "b", time.Second, 0, false},
		"not at once when another token was deleted":              {nil, "b", time.Minute, 9 * time.Minute, false},
		"not before a restore can create its token":               {nil, "", time.Minute, 9 * time.Minute, false},
		"not when a restore has created its token with a new UID": {[]client.Object{token("b")}, "", time.Hour, 0, false},
		"when no token was created in time":                       {nil, "", 10 * time.Minute, 0, true},
	}
	for title, tt := range tests {
		t.Run(title, func(t *testing.T) {
			s := newShared(t, tt.tokens...)
			if tt.released != "" {
				s.controller.release(client.ObjectKeyFromObject(s.secret), tt.released)
			}
			s.Expect(s.reconcile(tt.after)).To(Equal(tt.next))
			want := []string{"own", "laptop"}
			if tt.gone {
				want = want[:1]
			}
			s.Expect(s.keys()).To(ConsistOf(want))
		})
	}
}
