package accesstokens_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/v4/accesstokens"
	. "github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/credential"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/tokenuse"
)

func token(id int64, of, name string, change ...func(*v1alpha1.AccessTokenSpec)) *v1alpha1.AccessToken {
	t := &v1alpha1.AccessToken{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("t-%d", id), UID: types.UID(fmt.Sprintf("t-%d", id))},
		Spec: v1alpha1.AccessTokenSpec{
			ID: id, UserRef: v1alpha1.Reference{Path: of}, Description: name, Scopes: []v1alpha1.TokenScope{v1alpha1.ScopeReadUser},
			SecretRef: &v1alpha1.SecretKeyReference{Name: fmt.Sprintf("t-%d", id), Key: "token"},
		},
		Status: v1alpha1.AccessTokenStatus{ID: id, Digest: credential.Digest(value(id))},
	}
	for _, c := range change {
		c(&t.Spec)
	}
	return t
}

func value(id int64) string { return fmt.Sprintf("fpat-the-value-of-token-%d", id) }

func revoked(s *v1alpha1.AccessTokenSpec) { s.Revoked = true }

func until(month time.Month, day int) func(*v1alpha1.AccessTokenSpec) {
	return func(s *v1alpha1.AccessTokenSpec) {
		s.ExpiresAt = &metav1.Time{Time: time.Date(2026, month, day, 0, 0, 0, 0, time.UTC)}
	}
}

// newForge returns a forge with root, ann and bob, whose tokens are 1001 to 1003. Ann has four more tokens, and one token belongs to a user
// who does not exist.
func newForge(t *testing.T, more ...client.Object) *Forge {
	t.Helper()
	f := New(t, append([]client.Object{
		User("root", 1, Admin), User("ann", 2), User("bob", 3),
		token(10, "ann", "Deploy", until(time.July, 1)), token(11, "ann", "old", until(time.June, 15)),
		token(12, "ann", "build", revoked), token(13, "ann", "backup"), token(14, "nobody", "lost"),
	}, more...)...)
	return f.Serve(accesstokens.New(f.Kit).Table())
}

func TestReadUserToken_onlyReadsAndRevokesItself(t *testing.T) {
	f := newForge(t)
	for request, want := range map[string]int{
		"GET /personal_access_tokens/self": 200, "GET /personal_access_tokens": 403, "GET /personal_access_tokens/13": 403,
		"POST /personal_access_tokens/self/rotate": 403, "DELETE /personal_access_tokens/10": 403,
		"POST /users/2/personal_access_tokens": 403,
	} {
		if got := f.With(value(13), request, ""); got.Code != want {
			t.Errorf("%s: got %s, want %d", request, got, want)
		}
	}
	NewWithT(t).Expect(f.With(value(13), "DELETE /personal_access_tokens/self", "").Code).To(Equal(204))
	NewWithT(t).Expect(f.With(value(13), "GET /personal_access_tokens/self", "").Body).To(ContainSubstring("Token was revoked"))
}

// row has the fields of an answer that the tests check.
type row struct {
	ID        int64    `json:"id"`
	Name      string   `json:"name"`
	Scopes    []string `json:"scopes"`
	UserID    int64    `json:"user_id"`
	ExpiresAt *string  `json:"expires_at"`
	Active    bool     `json:"active"`
	Revoked   bool     `json:"revoked"`
	Token     string   `json:"token"`
}

func TestListTokens_filtersAndSorts(t *testing.T) {
	f := newForge(t)
	used := func(uid types.UID, month time.Month) {
		f.Uses.Note(database.Subject{Kind: tokenuse.KindAccessToken, UID: uid}, time.Date(2026, month, 1, 0, 0, 0, 0, time.UTC))
	}
	used("t-10", time.March)
	used("t-12", time.June)
	tests := []struct{ who, query, want string }{
		{"ann", "", "10 11 12 13 1002"},
		{"bob", "", "1003"},
		{"root", "", "10 11 12 13 1001 1002 1003"},
		{"root", "?user_id=2", "10 11 12 13 1002"},
		{"root", "?user_id=1", "1001"},
		{"root", "?user_id=99", ""},
		{"ann", "?state=active", "10 13 1002"},
		{"ann", "?state=inactive", "11 12"},
		{"ann", "?revoked=true", "12"},
		{"ann", "?revoked=false", "10 11 13 1002"},
		{"ann", "?search=B", "12 13"},
		{"ann", "?expires_before=2026-06-20", "11"},
		{"ann", "?expires_after=2026-06-20", "10"},
		{"ann", "?created_after=2026-01-01T00:00:05Z", "12 13 1002"},
		{"ann", "?created_before=2026-01-01T00:00:05Z", "10"},
		{"ann", "?last_used_after=2026-01-01", "10 12 1002"},
		{"ann", "?last_used_before=2026-05-01", "10"},
		{"ann", "?sort=last_used_asc", "10 12 1002 11 13"},
		{"ann", "?sort=last_used_desc&per_page=3", "13 11 1002"},
		{"ann", "?sort=name_asc", "13 12 10 11 1002"},
		{"ann", "?sort=name_desc", "1002 11 10 12 13"},
		{"ann", "?sort=created_desc&per_page=2", "1002 13"},
		{"ann", "?sort=expires_asc", "11 10 12 13 1002"},
	}
	for _, tt := range tests {
		t.Run(tt.who+tt.query, func(t *testing.T) {
			var got []string
			for _, r := range Decode[[]row](t, f.As(tt.who, "GET /personal_access_tokens"+tt.query, "")) {
				got = append(got, fmt.Sprint(r.ID))
			}
			if strings.Join(got, " ") != tt.want {
				t.Errorf("got  %s\nwant %s", strings.Join(got, " "), tt.want)
			}
		})
	}
	NewWithT(t).Expect(f.As("ann", "GET /personal_access_tokens/11", "").Body).To(MatchJSON(`{"id":11,"name":"old","description":null,
		"revoked":false,"created_at":"2026-01-01T00:00:05.000Z","scopes":["read_user"],"user_id":2,"last_used_at":null,
		"active":false,"expires_at":"2026-06-15"}`))
	NewWithT(t).Expect(f.Uses.Asked).To(Equal([]types.UID{"t-11"}), "no more is looked up than is shown")
	NewWithT(t).Expect(f.As("ann", "GET /personal_access_tokens/1002", "").Body).To(ContainSubstring(`"last_used_at":"2026-06-15T12:00:00.000Z"`))
}

func TestBot_readsRotatesAndRevokesItsOwnToken(t *testing.T) {
	g := NewWithT(t)
	const first = "fpat-the-first-value-of-the-robot"
	robot := &v1alpha1.BotToken{
		ObjectMeta: metav1.ObjectMeta{Namespace: "acme", Name: "robot", UID: "robot"},
		Spec: v1alpha1.BotTokenSpec{
			ID: 30, ProjectRef: &v1alpha1.Reference{Name: "web"}, Name: "Robot", Role: v1alpha1.RoleGuest,
			Scopes: []v1alpha1.TokenScope{v1alpha1.ScopeAPI}, Digest: credential.Digest(first),
		},
		Status: v1alpha1.BotTokenStatus{ID: 30},
	}
	f := newForge(t, Group("acme", "acme", 40, "", v1alpha1.VisibilityPrivate), Project("acme", "web", 41, "acme", v1alpha1.VisibilityPrivate), robot)
	self := f.With(first, "GET /personal_access_tokens/self", "")
	g.Expect(self.Body).To(And(ContainSubstring(`"id":30,"name":"Robot","description":null,"revoked":false`),
		ContainSubstring(`"user_id":4503599627370526,"last_used_at":"2026-06-15T12:00:00.000Z"`)))
	answer := f.With(first, "POST /personal_access_tokens/self/rotate", `{"expires_at":"2026-07-01"}`)
	g.Expect(answer.Code).To(Equal(200))
	rotated := Decode[row](t, answer)
	g.Expect(rotated).To(And(HaveField("ID", int64(30)), HaveField("ExpiresAt", HaveValue(Equal("2026-07-01"))), HaveField("Token", HavePrefix("fpat-"))))
	g.Expect(f.With(first, "GET /personal_access_tokens/self", "").Code).To(Equal(401))
	g.Expect(f.With(rotated.Token, "DELETE /personal_access_tokens/self", "").String()).To(Equal("204"))
	g.Expect(f.With(rotated.Token, "GET /personal_access_tokens/self", "").Body).To(ContainSubstring("Token was revoked"))
}

func TestCreateToken_returnsUsableToken(t *testing.T) {
	g := NewWithT(t)
	f := newForge(t)
	made := Decode[row](t, f.As("root", "POST /users/2/personal_access_tokens",
		`{"name":"CI","scopes":["read_api","read_user","read_api"],"expires_at":"2026-08-01"}`))
	g.Expect(made).To(And(
		HaveField("Name", "CI"), HaveField("UserID", int64(2)), HaveField("Active", true),
		HaveField("Scopes", Equal([]string{"read_api", "read_user"})), HaveField("ExpiresAt", HaveValue(Equal("2026-08-01"))),
		HaveField("Token", HavePrefix("fpat-"))))
	got := f.With(made.Token, "GET /personal_access_tokens/self", "")
	g.Expect(got.Code).To(Equal(200))
	g.Expect(got.Body).NotTo(ContainSubstring(made.Token), "the value is shown once")

	object := stored(t, f, made.ID)
	g.Expect(object.Spec.UserRef).To(Equal(f.Refer(&v1alpha1.User{}, "ann")))
	g.Expect(object.Spec.ExpiresAt.UTC()).To(Equal(time.Date(2026, 8, 1, 0, 0, 0, 0, time.UTC)))
	g.Expect(object.Spec.Digest).To(Equal(credential.Digest(made.Token)))
	g.Expect(object.Status.Digest).To(Equal(object.Spec.Digest))
	g.Expect(fmt.Sprint(object)).NotTo(ContainSubstring(made.Token))
	g.Expect(secrets(t, f)).To(BeEmpty(), "nobody else has the value")

	year := Decode[row](t, f.As("root", "POST /users/2/personal_access_tokens", `{"name":"CI","scopes":"api"}`))
	g.Expect(year.ExpiresAt).To(HaveValue(Equal("2027-06-15")))
}

func TestRotateToken_revokesTheOldToken(t *testing.T) {
	g := NewWithT(t)
	f := newForge(t)
	next := Decode[row](t, f.As("ann", "POST /personal_access_tokens/10/rotate", ""))
	g.Expect(next).To(And(HaveField("Name", "Deploy"), HaveField("Scopes", Equal([]string{"read_user"})),
		HaveField("ExpiresAt", HaveValue(Equal("2026-06-22"))), HaveField("UserID", int64(2)), HaveField("ID", BeNumerically(">", 99))))
	g.Expect(f.With(next.Token, "GET /personal_access_tokens/self", "").Code).To(Equal(200))
	g.Expect(f.With(value(10), "GET /personal_access_tokens/self", "").Code).To(Equal(401))
	g.Expect(stored(t, f, 10).Spec.Revoked).To(BeTrue())
	g.Expect(f.As("ann", "POST /personal_access_tokens/10/rotate", "").String()).
		To(Equal(`400 {"message":"400 Bad request - token already revoked"}`))

	g.Expect(secrets(t, f)).To(BeEmpty())

	own := Decode[row](t, f.As("bob", "POST /personal_access_tokens/self/rotate", `{"expires_at":"2026-09-01"}`))
	g.Expect(own.ExpiresAt).To(HaveValue(Equal("2026-09-01")))
	g.Expect(f.As("bob", "GET /personal_access_tokens/self", "").Code).To(Equal(401), "the old one")
	g.Expect(f.With(own.Token, "GET /personal_access_tokens/self", "").Code).To(Equal(200))
}

func TestCreateToken_leavesNothingBehindOnFailure(t *testing.T) {
	for _, fails := range []string{"create AccessToken", "patch status AccessToken"} {
		t.Run(fails, func(t *testing.T) {
			g := NewWithT(t)
			f := newForge(t)
			f.Before = func(verb string, o client.Object) error {
				if verb+" "+reflect.TypeOf(o).Elem().Name() == fails {
					return errors.New("the API server is not there")
				}
				return nil
			}
			g.Expect(f.As("root", "POST /users/2/personal_access_tokens", `{"name":"x","scopes":["api"]}`).Code).To(Equal(500))
			f.Before = nil
			g.Expect(leftovers(t, f)).To(BeEmpty())
		})
	}
}

func TestRotateToken_succeedsForOneOfTwoCallers(t *testing.T) {
	g := NewWithT(t)
	f := newForge(t)
	f.Before = func(verb string, o client.Object) error {
		if _, ok := o.(*v1alpha1.AccessToken); !ok || verb != "create" {
			return nil
		}
		f.Before = nil // Another request is faster, once.
		g.Expect(f.As("ann", "POST /personal_access_tokens/10/rotate", "").Code).To(Equal(200))
		return nil
	}
	g.Expect(f.As("ann", "POST /personal_access_tokens/10/rotate", "").String()).
		To(Equal(`400 {"message":"400 Bad request - token already revoked"}`))
	g.Expect(leftovers(t, f)).To(HaveLen(1), "the token of the one who was faster")
}

// secrets returns all Secrets.
func secrets(t *testing.T, f *Forge) []corev1.Secret {
	t.Helper()
	var l corev1.SecretList
	if err := f.Client.List(t.Context(), &l); err != nil {
		t.Fatal(err)
	}
	return l.Items
}

// leftovers returns the names of the tokens that did not exist when the test began, and of all Secrets.
func leftovers(t *testing.T, f *Forge) []string {
	t.Helper()
	tokens, err := catalog.All[*v1alpha1.AccessToken](t.Context(), f.Catalog)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, found := range tokens {
		if found.Spec.ID >= 100 && found.Spec.ID < 1000 {
			all = append(all, found.Name)
		}
	}
	for _, s := range secrets(t, f) {
		all = append(all, "Secret "+s.Name)
	}
	return all
}

func TestRevokeToken_takesEffectImmediately(t *testing.T) {
	g := NewWithT(t)
	f := newForge(t)
	g.Expect(f.With(value(13), "GET /personal_access_tokens/self", "").Code).To(Equal(200))
	g.Expect(f.As("ann", "DELETE /personal_access_tokens/13", "").String()).To(Equal("204"))
	g.Expect(f.With(value(13), "GET /personal_access_tokens/self", "").Body).To(ContainSubstring("Token was revoked"))
	g.Expect(stored(t, f, 13).Spec.Revoked).To(BeTrue())
	g.Expect(f.As("ann", "DELETE /personal_access_tokens/13", "").Code).To(Equal(204), "once more changes nothing")
}

func TestSudo_revokesOnlyThePresentedToken(t *testing.T) {
	f := newForge(t, token(15, "root", "sudo", func(s *v1alpha1.AccessTokenSpec) {
		s.Scopes = []v1alpha1.TokenScope{v1alpha1.ScopeAPI, v1alpha1.ScopeSudo}
	}))
	if got := f.With(value(15), "DELETE /personal_access_tokens/1001?sudo=ann", ""); got.Code != 404 {
		t.Errorf("another one of the administrator: got %s", got)
	}
	if got := f.With(value(15), "DELETE /personal_access_tokens/self?sudo=ann", ""); got.Code != 204 {
		t.Errorf("the one that is shown: got %s", got)
	}
}

func TestInvalidRequests_areRefusedWithAReason(t *testing.T) {
	const create = "POST /users/2/personal_access_tokens"
	tests := []struct{ request, body, want string }{
		{create, ``, `400 {"error":"name is missing, scopes is missing"}`},
		{create, `{"name":"x","scopes":["fly"]}`, `400 {"error":"scopes does not have a valid value"}`},
		{create, `{"name":"x","scopes":[]}`, `422 {"message":"Scopes can't be blank"}`},
		{create, `{"name":" ","scopes":["api"]}`, `422 {"message":"Name can't be blank"}`},
		{create, `{"name":"x","scopes":["api"],"expires_at":"2026-06-15"}`,
			`400 {"message":"400 Bad request - expires_at must be a date in the future"}`},
		{create, `{"name":"x","scopes":["api"],"expires_at":"soon"}`, `400 {"error":"expires_at is invalid"}`},
		{"POST /users/99/personal_access_tokens", `{"name":"x","scopes":["api"]}`, `404 {"message":"404 User Not Found"}`},
		{"GET /personal_access_tokens/99", ``, `404 {"message":"404 Not Found"}`},
		{"DELETE /personal_access_tokens/99", ``, `404 {"message":"404 Not found"}`},
		{"GET /personal_access_tokens/x", ``, `400 {"error":"id is invalid"}`},
		{"GET /personal_access_tokens?state=x", ``, `400 {"error":"state does not have a valid value"}`},
		{"POST /personal_access_tokens/12/rotate", ``, `400 {"message":"400 Bad request - token already revoked"}`},
		{"POST /personal_access_tokens/10/rotate", `{"expires_at":"2020-01-01"}`,
			`400 {"message":"400 Bad request - expires_at must be a date in the future"}`},
	}
	for _, tt := range tests {
		t.Run(tt.request+" "+tt.body, func(t *testing.T) {
			f := newForge(t)
			if got := f.As("root", tt.request, tt.body).String(); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			if left := leftovers(t, f); len(left) > 0 {
				t.Errorf("%v were left", left)
			}
		})
	}
}

func stored(t *testing.T, f *Forge, id int64) *v1alpha1.AccessToken {
	t.Helper()
	found, err := catalog.ByID[*v1alpha1.AccessToken](t.Context(), f.Catalog, id)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestToken_isRejectedAfterItsUserIsRecreated(t *testing.T) {
	g := NewWithT(t)
	f := newForge(t)
	made := Decode[row](t, f.As("root", "POST /users/2/personal_access_tokens", `{"name":"CI","scopes":"api"}`))
	g.Expect(f.With(made.Token, "GET /personal_access_tokens/self", "").Code).To(Equal(200))
	f.Recreate(&v1alpha1.User{}, "ann")
	g.Expect(f.With(made.Token, "GET /personal_access_tokens/self", "").Code).To(Equal(401))
	g.Expect(f.As("root", "GET /personal_access_tokens?user_id=2", "").Body).NotTo(ContainSubstring(`"CI"`))
}

func TestTokens_areShownWithoutTheirLastUse(t *testing.T) {
	f := newForge(t)
	f.Uses.Broken = errors.New("the database is away")
	for _, request := range []string{
		"GET /personal_access_tokens", "GET /personal_access_tokens?sort=name_asc", "GET /personal_access_tokens/13", "GET /personal_access_tokens/self",
	} {
		if a := f.As("ann", request, ""); a.Code != 200 || !strings.Contains(a.Body, `"last_used_at":null`) {
			t.Errorf("%s: got %s", request, a)
		}
	}
	for _, filter := range []string{"?sort=last_used_asc", "?last_used_before=2026-06-01T00:00:00Z"} {
		if a := f.As("ann", "GET /personal_access_tokens"+filter, ""); a.Code != 500 {
			t.Errorf("%s: got %s", filter, a)
		}
	}
}
