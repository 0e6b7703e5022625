package entity_test

import (
	"encoding/json"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/entity"
)

func TestTokens_haveOneShape(t *testing.T) {
	g := NewWithT(t)
	made := metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 5, 0, time.UTC))}
	now, ends := time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC), metav1.NewTime(time.Date(2026, 6, 15, 0, 0, 0, 0, time.UTC))
	scopes := []v1alpha1.TokenScope{v1alpha1.ScopeAPI}
	personal := entity.ShowToken(&v1alpha1.AccessToken{ObjectMeta: made, Spec: v1alpha1.AccessTokenSpec{
		ID: 7, Description: "Robot", Scopes: scopes, ExpiresAt: &ends,
	}}, &v1alpha1.User{Spec: v1alpha1.UserSpec{ID: 1<<52 + 7}}, time.Time{}, now)
	bot := v1alpha1.BotToken{ObjectMeta: made, Spec: v1alpha1.BotTokenSpec{ID: 7, Name: "Robot", Scopes: scopes, ExpiresAt: &ends}}
	g.Expect(entity.ShowBotToken(&bot, time.Time{}, now)).To(Equal(personal))
	shown, err := json.Marshal(personal)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(shown).To(MatchJSON(`{"id":7,"name":"Robot","description":null,"revoked":false,"created_at":"2026-01-01T00:00:05.000Z","scopes":["api"],
		"user_id":4503599627370503,"last_used_at":null,"active":false,"expires_at":"2026-06-15"}`))
	bot.Spec.Description = "For releases"
	g.Expect(entity.ShowBotToken(&bot, now, now)).To(And(
		HaveField("Description", HaveValue(Equal("For releases"))), HaveField("LastUsedAt", Equal(endpoint.Time(now)))))
}
