package bottokens_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/v4/bottokens"
	. "github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/apiserver/v4/users"
	"github.com/forgeplane/forgeplane/internal/bottoken"
	"github.com/forgeplane/forgeplane/internal/credential"
)

// declared returns a token of the project web with a value in a Secret.
func declared(id int64, role v1alpha1.Role, change ...func(*v1alpha1.BotToken)) *v1alpha1.BotToken {
	t := &v1alpha1.BotToken{
		ObjectMeta: metav1.ObjectMeta{Namespace: "acme", Name: fmt.Sprintf("t-%d", id), UID: types.UID(fmt.Sprintf("t-%d", id))},
		Spec: v1alpha1.BotTokenSpec{
			ID: id, ProjectRef: &v1alpha1.Reference{Name: "web"}, Name: fmt.Sprintf("Robot %d", id), Role: role,
			Scopes: []v1alpha1.TokenScope{v1alpha1.ScopeAPI}, SecretRef: &v1alpha1.SecretKeyReference{Name: "s", Key: fmt.Sprint(id)},
		},
		Status: v1alpha1.BotTokenStatus{ID: id, Digest: credential.Digest(value(id))},
	}
	for _, c := range change {
		c(t)
	}
	return t
}

func value(id int64) string { return fmt.Sprintf("fpat-%d-is-the-value-of-a-token", id) }

// newForge returns a forge with the private project web in the group acme, whose Owner is olga and whose Maintainer is mary.
func newForge(t *testing.T, more ...client.Object) *Forge {
	t.Helper()
	f := New(t, append([]client.Object{
		User("root", 1, Admin), User("mary", 2), User("olga", 3),
		Group("acme", "acme", 10, "", v1alpha1.VisibilityPrivate), Project("acme", "web", 20, "acme", v1alpha1.VisibilityPrivate),
		Project("acme", "app", 21, "acme", v1alpha1.VisibilityPrivate),
		InGroup("acme", "acme", "mary", v1alpha1.RoleMaintainer), InGroup("acme", "acme", "olga", v1alpha1.RoleOwner),
	}, more...)...)
	return f.Serve(bottokens.New(f.Kit).Table(), users.New(f.Kit).Table())
}

// row has the fields of an answer that the tests check.
type row struct {
	ID          int64
	Name, Token string
	Active      bool
	Revoked     bool
	AccessLevel int    `json:"access_level"`
	ExpiresAt   string `json:"expires_at"`
	User        int64  `json:"user_id"`
}

func TestToken_isCreatedWithItsValueOnce(t *testing.T) {
	g := NewWithT(t)
	f := newForge(t)
	made := f.As("mary", "POST /projects/20/access_tokens", `{"name":"Robot","description":"For releases","scopes":["api","read_api","api"]}`)
	g.Expect(made.Code).To(Equal(http.StatusCreated))
	m := Decode[row](t, made)
	g.Expect(m.Token).To(HavePrefix("fpat-"))
	g.Expect(made.Body).To(And(
		ContainSubstring(`"name":"Robot","description":"For releases","revoked":false,"created_at":`),
		ContainSubstring(fmt.Sprintf(`"scopes":["api","read_api"],"user_id":%d,"last_used_at":null,"active":true,"expires_at":"2027-06-15","access_level":40`,
			1<<52+m.ID)),
	))
	at := fmt.Sprintf("/projects/20/access_tokens/%d", m.ID)
	g.Expect(f.As("mary", "GET "+at, "").Body).NotTo(ContainSubstring("fpat-"))
	g.Expect(f.As("mary", "GET /projects/20/access_tokens", "").Body).NotTo(ContainSubstring("fpat-"))

	var all v1alpha1.BotTokenList
	g.Expect(f.Client.List(t.Context(), &all)).To(Succeed())
	g.Expect(all.Items).To(HaveLen(1))
	g.Expect(all.Items[0].Spec.Digest).To(Equal(credential.Digest(m.Token)))
	g.Expect(all.Items[0].Labels).To(HaveKeyWithValue(v1alpha1.LabelCreator, "2"), "what the bot makes counts for her")

	g.Expect(f.With(m.Token, "GET /user", "").Body).To(And(ContainSubstring(`"name":"Robot"`), ContainSubstring(`"username":"project_20_bot_`),
		ContainSubstring(`"bot":true`), ContainSubstring(`"can_create_group":false`), Not(ContainSubstring("is_admin"))))
	g.Expect(f.As("mary", fmt.Sprintf("GET /users/%d", m.User), "").Body).To(ContainSubstring(`"name":"Robot"`))
	g.Expect(f.As("root", fmt.Sprintf("POST /users/%d/block", m.User), "").Code).To(Equal(http.StatusNotFound), "no User is declared")
}

func TestInvalidTokens_areRefusedWithAReason(t *testing.T) {
	f := newForge(t)
	for body, want := range map[string]string{
		`{}`:                             `400 {"error":"name is missing, scopes is missing"}`,
		`{"name":"x","scopes":["sudo"]}`: `400 {"error":"scopes does not have a valid value"}`,
		`{"name":"x","scopes":[]}`:       `400 {"message":{"scopes":["can't be blank"]}}`,
		`{"name":" ","scopes":["api"]}`:  `400 {"message":{"name":["can't be blank"]}}`,
		`{"name":"x","scopes":["api"],"access_level":15}`:         `400 {"error":"access_level does not have a valid value"}`,
		`{"name":"x","scopes":["api"],"access_level":50}`:         `400 {"message":"400 Bad request - Access level of the token can't be greater the access level of the user who created the token"}`,
		`{"name":"x","scopes":["api"],"expires_at":"2026-06-15"}`: `400 {"message":"400 Bad request - expires_at must be a date in the future"}`,
	} {
		if got := f.As("mary", "POST /projects/20/access_tokens", body).String(); got != want {
			t.Errorf("%s: got  %s\nwant %s", body, got, want)
		}
	}
	g := NewWithT(t)
	g.Expect(f.As("olga", "POST /projects/20/access_tokens", `{"name":"x","scopes":["api"],"access_level":50}`).Code).To(Equal(http.StatusCreated))
	g.Expect(f.As("mary", "GET /projects/20/access_tokens/99", "").String()).
		To(Equal(`404 {"message":"404 Could not find project access token with token_id: 99 Not Found"}`))
	g.Expect(f.As("olga", "DELETE /groups/10/access_tokens/99", "").String()).
		To(Equal(`404 {"message":"404 Could not find group access token with token_id: 99 Not Found"}`))
}

func TestToken_showsWhenItWasLastUsed(t *testing.T) {
	g := NewWithT(t)
	f := newForge(t, declared(30, v1alpha1.RoleGuest), declared(31, v1alpha1.RoleGuest))
	used := func() any { return f.As("mary", "GET /projects/20/access_tokens/30", "").Body }
	g.Expect(used()).To(ContainSubstring(`"last_used_at":null`))
	g.Expect(f.With(value(30), "GET /user", "").Code).To(Equal(http.StatusOK))
	g.Expect(used()).To(ContainSubstring(`"last_used_at":"2026-06-15T12:00:00.000Z"`))
	g.Expect(f.As("mary", "GET /projects/20/access_tokens", "").Body).
		To(And(ContainSubstring(`"last_used_at":"2026-06-15T12:00:00.000Z"`), ContainSubstring(`"last_used_at":null`)))
	g.Expect(f.As("mary", "GET /projects/20/access_tokens?per_page=1&page=2", "").Code).To(Equal(http.StatusOK))
	g.Expect(f.Uses.Asked).To(Equal([]types.UID{"t-31"}), "no more is looked up than is shown")
}

func TestListTokens_filtersByState(t *testing.T) {
	ended := func(t *v1alpha1.BotToken) { t.Spec.Revoked = true }
	expired := func(t *v1alpha1.BotToken) {
		t.Spec.ExpiresAt = &metav1.Time{Time: time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC)}
	}
	ofApp := func(t *v1alpha1.BotToken) { t.Spec.ProjectRef.Name = "app" }
	f := newForge(t, declared(30, v1alpha1.RoleGuest), declared(31, v1alpha1.RoleGuest, ended), declared(32, v1alpha1.RoleGuest, expired), declared(33, v1alpha1.RoleGuest, ofApp))
	for query, want := range map[string][]int64{"": {30, 31, 32}, "?state=active": {30}, "?state=inactive": {31, 32}, "?per_page=2&page=2": {32}} {
		var got []int64
		for _, r := range Decode[[]row](t, f.As("mary", "GET /projects/20/access_tokens"+query, "")) {
			got = append(got, r.ID)
		}
		NewWithT(t).Expect(got).To(Equal(want), query)
	}
}

func TestRotation_keepsTokenAndBot(t *testing.T) {
	g := NewWithT(t)
	f := newForge(t, declared(30, v1alpha1.RoleOwner))
	made := Decode[row](t, f.As("mary", "POST /projects/20/access_tokens", `{"name":"Robot","scopes":["api"]}`))
	at := fmt.Sprintf("/projects/20/access_tokens/%d", made.ID)
	answer := f.As("mary", "POST "+at+"/rotate", "")
	g.Expect(answer.Code).To(Equal(http.StatusOK))
	rotated := Decode[row](t, answer)
	g.Expect(rotated).To(And(HaveField("ID", made.ID), HaveField("User", made.User), HaveField("ExpiresAt", "2026-06-22"), HaveField("Token", Not(Equal(made.Token)))))
	g.Expect(f.With(made.Token, "GET /user", "").Code).To(Equal(http.StatusUnauthorized))
	g.Expect(f.With(rotated.Token, "GET /user", "").Code).To(Equal(http.StatusOK))

	self := Decode[row](t, f.With(rotated.Token, "POST /projects/20/access_tokens/self/rotate", `{"expires_at":"2026-07-01"}`))
	g.Expect(self).To(And(HaveField("ID", made.ID), HaveField("ExpiresAt", "2026-07-01")))
	g.Expect(f.As("mary", "POST /projects/20/access_tokens/self/rotate", "").Code).To(Equal(http.StatusMethodNotAllowed))

	g.Expect(f.As("mary", "DELETE "+at, "").String()).To(Equal("204"))
	g.Expect(f.As("mary", "DELETE "+at, "").String()).To(Equal("204"), "once more changes nothing")
	g.Expect(Decode[row](t, f.As("mary", "GET "+at, ""))).To(And(HaveField("Revoked", true), HaveField("Active", false)))
	g.Expect(f.With(self.Token, "GET /user", "").Body).To(ContainSubstring("Token was revoked"))
	g.Expect(f.As("mary", "POST "+at+"/rotate", "").String()).To(Equal(`400 {"message":"400 Bad request - token already revoked"}`))

	g.Expect(f.As("mary", "POST /projects/20/access_tokens/30/rotate", "").String()).
		To(Equal(`403 {"message":"403 Forbidden - The role of the token is higher than yours"}`))
	g.Expect(f.As("olga", "POST /projects/20/access_tokens/30/rotate", "").String()).
		To(Equal(`403 {"message":"403 Forbidden - The value of this token is in a Kubernetes Secret: rotate it there"}`))
}

func TestBot_changesNoOtherToken(t *testing.T) {
	g := NewWithT(t)
	f := newForge(t, declared(30, v1alpha1.RoleOwner), declared(31, v1alpha1.RoleGuest))
	g.Expect(f.With(value(30), "GET /projects/20/access_tokens/31", "").Code).To(Equal(http.StatusOK))
	for _, request := range []string{
		"POST /projects/20/access_tokens", "POST /projects/20/access_tokens/31/rotate", "DELETE /projects/20/access_tokens/31",
	} {
		g.Expect(f.With(value(30), request, `{"name":"x","scopes":["api"]}`).String()).To(HavePrefix(`403 {"message":"403 Forbidden - The bot of`), request)
	}
	g.Expect(f.With(value(30), "GET /projects/21/access_tokens", "").Code).To(Equal(http.StatusNotFound), "it has no role there")
	g.Expect(f.With(value(30), "GET /groups/10/access_tokens", "").Code).To(Equal(http.StatusNotFound))
	g.Expect(f.With(value(30), "DELETE /projects/20/access_tokens/30", "").String()).To(Equal("204"), "its own")
}

func TestBot_isNotAcceptedIfAUserHasItsID(t *testing.T) {
	g := NewWithT(t)
	f := newForge(t, declared(30, v1alpha1.RoleOwner), declared(31, v1alpha1.RoleOwner), User("taken", 1<<52+31))
	g.Expect(f.With(value(30), "GET /user", "").Code).To(Equal(http.StatusOK))
	g.Expect(f.With(value(31), "GET /user", "").Code).To(Equal(http.StatusUnauthorized))
}

func TestTokens_areShownWithoutTheirLastUse(t *testing.T) {
	f := newForge(t, declared(50, v1alpha1.RoleDeveloper))
	id := Decode[row](t, f.As("mary", "POST /projects/20/access_tokens", `{"name":"Robot","scopes":["api"]}`)).ID
	f.Uses.Broken = errors.New("the database is away")
	for _, request := range []string{
		"GET /projects/20/access_tokens", "GET /projects/20/access_tokens/50", fmt.Sprintf("POST /projects/20/access_tokens/%d/rotate", id),
	} {
		if a := f.As("mary", request, ""); a.Code != http.StatusOK || !strings.Contains(a.Body, `"last_used_at":null`) {
			t.Errorf("%s: got %s", request, a)
		}
	}
}

func TestBot_isShownToThoseWhoSeeItsProject(t *testing.T) {
	f := newForge(t, declared(50, v1alpha1.RoleDeveloper), User("dora", 4), User("ann", 5, func(s *v1alpha1.UserSpec) { s.Auditor = true }))
	var token v1alpha1.BotToken
	if err := f.Client.Get(t.Context(), client.ObjectKey{Namespace: "acme", Name: "t-50"}, &token); err != nil {
		t.Fatal(err)
	}
	byID := fmt.Sprintf("GET /users/%d", bottoken.UserID(&token))
	username := Decode[struct{ Username string }](t, f.As("mary", byID, "")).Username
	for who, sees := range map[string]bool{"mary": true, "root": true, "ann": true, "dora": false} {
		one, listed := f.As(who, byID, ""), f.As(who, "GET /users?username="+strings.ToUpper(username), "")
		if sees != strings.Contains(one.Body, `"name":"Robot 50"`) || sees != strings.Contains(listed.Body, `"name":"Robot 50"`) || listed.Code != http.StatusOK {
			t.Errorf("%s: got %s, and %s", who, one, listed)
		}
		if !sees && (one.String() != `404 {"message":"404 User Not Found"}` || listed.String() != "200 []") {
			t.Errorf("%s: got %s, and %s", who, one, listed)
		}
	}
	if got := f.As("mary", "GET /users", "").Body; strings.Contains(got, "Robot") {
		t.Errorf("got %s", got)
	}
	if got := f.As("mary", "GET /users?humans=true&username="+username, "").String(); got != "200 []" {
		t.Errorf("got %s", got)
	}
}
