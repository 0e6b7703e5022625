package auth_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/internal/credential"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/tokenuse"
)

// notes are the uses that an authenticator tells of.
type notes []database.Subject

func (n *notes) Note(token database.Subject, _ time.Time) { *n = append(*n, token) }

func TestUse_isRecordedForAcceptedTokens(t *testing.T) {
	g := NewWithT(t)
	const value = "fpat-this-is-the-value-of-a-token"
	bot := &v1alpha1.BotToken{
		ObjectMeta: metav1.ObjectMeta{Namespace: "acme", Name: "robot", UID: "robot"},
		Spec:       v1alpha1.BotTokenSpec{ID: 30, ProjectRef: &v1alpha1.Reference{Name: "web"}, Role: v1alpha1.RoleGuest, Digest: credential.Digest(value)},
		Status:     v1alpha1.BotTokenStatus{ID: 30},
	}
	f := familytest.New(t, familytest.User("mary", 2), familytest.User("bart", 3, func(s *v1alpha1.UserSpec) { s.State = v1alpha1.UserBlocked }),
		familytest.Group("acme", "acme", 10, "", v1alpha1.VisibilityPrivate), familytest.Project("acme", "web", 20, "acme", v1alpha1.VisibilityPrivate), bot)
	var used notes
	a := auth.NewAuthenticator(f.Catalog, f.Clock, nil).Noting(&used)
	for _, token := range []string{"unknown", familytest.Value("bart"), familytest.Value("mary"), value} {
		c, err := a.Token(t.Context(), token)
		if err == nil {
			_, err = a.Again(t.Context(), c)
			g.Expect(err).NotTo(HaveOccurred())
		}
	}
	g.Expect(used).To(HaveExactElements(
		And(HaveField("Kind", tokenuse.KindAccessToken), HaveField("ID", int64(1002)), HaveField("UID", Not(BeEmpty()))),
		database.Subject{Kind: tokenuse.KindBotToken, ID: 30, UID: "robot"},
	), "a later look at the token is no use of it")
}
