package accesstokens_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/v4/accesstokens"
	. "github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/credential"
	"github.com/forgeplane/forgeplane/internal/declare"
)

// noting returns a reader that adds the managed fields with which the API server records who wrote an object.
func noting(c client.Client, manager func(o client.Object) string) client.Reader {
	return interceptor.NewClient(c.(client.WithWatch), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			err := c.Get(ctx, key, o, opts...)
			o.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: manager(o), FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:scopes":{}}}`)}})
			return err
		},
	})
}

func TestEndedTokens_areLimitedPerUser(t *testing.T) {
	const kept = 200
	g := NewWithT(t)
	digest := func(id int64) func(*v1alpha1.AccessTokenSpec) {
		return func(s *v1alpha1.AccessTokenSpec) { s.SecretRef, s.Digest = nil, credential.Digest(value(id)) }
	}
	// The oldest of ann's tokens is declared elsewhere, and the next one has not ended.
	more := []client.Object{token(2000, "ann", "declared", digest(2000), revoked), token(2001, "ann", "live", digest(2001))}
	for id := int64(2002); id < 2002+kept; id++ {
		end := revoked
		if id%2 == 0 {
			end = until(time.June, 1)
		}
		more = append(more, token(id, "ann", "ended", digest(id), end))
	}
	more = append(more, token(3000, "bob", "bob's", digest(3000), revoked))
	f := newForge(t, more...)
	live := noting(f.Client, func(o client.Object) string {
		if o.GetName() == "t-2000" {
			return "gitops"
		}
		return string(declare.FieldOwner)
	})
	f.Writer = f.WriterReading(live)
	f.Serve(accesstokens.New(f.Kit).Table())
	ended := func() (ids []int64) {
		g.THelper()
		tokens, err := catalog.All[*v1alpha1.AccessToken](t.Context(), f.Catalog)
		g.Expect(err).NotTo(HaveOccurred())
		for _, k := range tokens {
			over := k.Spec.Revoked || k.Spec.ExpiresAt != nil && !f.Clock.Now().Before(k.Spec.ExpiresAt.Time)
			if over && k.Spec.Digest != "" && k.Spec.UserRef.Path != "bob" {
				ids = append(ids, k.Spec.ID)
			}
		}
		slices.Sort(ids)
		return ids
	}
	g.Expect(ended()).To(HaveLen(kept + 1))

	next := Decode[row](t, f.As("ann", "POST /personal_access_tokens/2001/rotate", ""))
	g.Expect(ended()).To(And(HaveLen(kept), ContainElements(int64(2000), int64(2001), int64(2004)), Not(ContainElement(int64(2002))), Not(ContainElement(int64(2003)))))
	g.Expect(f.With(value(2001), "GET /personal_access_tokens/self", "").Body).To(ContainSubstring("Token was revoked"))
	for range 3 {
		next = Decode[row](t, f.As("ann", fmt.Sprintf("POST /personal_access_tokens/%d/rotate", next.ID), ""))
		g.Expect(len(ended())).To(BeNumerically("<=", kept))
	}
	g.Expect(f.As("root", "GET /personal_access_tokens?user_id=3&state=inactive", "").Body).To(ContainSubstring("bob's"))
}
