package triggertokens_test

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	. "github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/apiserver/v4/triggertokens"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/credential"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/tokenuse"
	"github.com/forgeplane/forgeplane/internal/triggertoken"
)

// value returns the value of the token with an id.
func value(id int64) string { return fmt.Sprintf("glptt-%04d-is-the-value-of-a-token", id) }

// declared returns a token of a project that was accepted with its value, and its Secret. If owner is empty, the token has no owner.
func declared(namespace, project string, id int64, owner string) []client.Object {
	t := &v1alpha1.TriggerToken{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("t-%d", id), UID: types.UID(fmt.Sprintf("t-%d", id))},
		Spec: v1alpha1.TriggerTokenSpec{
			ID: id, ProjectRef: v1alpha1.Reference{Name: project}, Description: fmt.Sprintf("token %d", id),
		},
		Status: v1alpha1.TriggerTokenStatus{ID: id, Digest: credential.Digest(value(id)), SecretRef: v1alpha1.LocalSecretReference{Name: fmt.Sprintf("trigger-token-%d", id)}},
	}
	if owner != "" {
		t.Spec.OwnerRef = &v1alpha1.Reference{Path: owner}
	}
	return []client.Object{t, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: Namespace, Name: t.Status.SecretRef.Name, Labels: map[string]string{v1alpha1.LabelSecret: v1alpha1.SecretOfTriggerToken},
			Annotations: map[string]string{v1alpha1.AnnotationHolder: namespace + "/" + t.Name},
		},
		Data: map[string][]byte{"token": []byte(value(id))},
	}}
}

// newForge returns a forge with the public project web and the private project secret. Web has a token of mary, a token of mike, and a token
// without an owner.
func newForge(t *testing.T, more ...client.Object) *Forge {
	t.Helper()
	objects := []client.Object{
		User("root", 1, Admin), User("mary", 2), User("mike", 3), User("dora", 4), User("otto", 5),
		Group("acme", "acme", 10, "", v1alpha1.VisibilityPublic),
		Project("acme", "web", 20, "acme", v1alpha1.VisibilityPublic),
		Project("acme", "secret", 21, "acme", v1alpha1.VisibilityPrivate),
		InGroup("acme", "acme", "mary", v1alpha1.RoleMaintainer), InGroup("acme", "acme", "mike", v1alpha1.RoleMaintainer),
		InGroup("acme", "acme", "dora", v1alpha1.RoleDeveloper),
	}
	objects = append(objects, declared("acme", "web", 30, "mary")...)
	objects = append(objects, declared("acme", "web", 31, "mike")...)
	objects = append(objects, declared("acme", "web", 32, "")...)
	objects = append(objects, declared("acme", "secret", 33, "mary")...)
	f := New(t, append(objects, more...)...)
	f.Uses.Note(database.Subject{Kind: tokenuse.KindTriggerToken, UID: "t-30"}, time.Date(2026, 6, 15, 11, 0, 0, 0, time.UTC))
	return f.Serve(triggertokens.New(f.Kit).Table())
}

// row has the fields of an answer that the tests check.
type row struct {
	ID          int64
	Description string
	Token       string
	Owner       *struct{ Username string }
}

func TestTokenValue_isShownToItsOwnerOnly(t *testing.T) {
	g := NewWithT(t)
	f := newForge(t)
	g.Expect(f.As("mary", "GET /projects/20/triggers/30", "").Body).To(MatchJSON(`{"id":30,"description":"token 30",
		"created_at":"2026-01-01T00:00:12.000Z","updated_at":"2026-01-01T00:00:12.000Z","last_used":"2026-06-15T11:00:00.000Z",
		"token":"` + value(30) + `","owner":{"id":2,"username":"mary","name":"mary","state":"active","avatar_url":null,"web_url":"https://forge.example/mary"}}`))
	for who, want := range map[string][]string{
		"mary": {value(30), "0031", "0032"}, "mike": {"0030", value(31), "0032"}, "root": {"0030", "0031", "0032"},
	} {
		answer := f.As(who, "GET /projects/20/triggers", "")
		g.Expect(answer.Body).To(ContainSubstring(`"owner":null`))
		var shown []string
		for _, r := range Decode[[]row](t, answer) {
			shown = append(shown, r.Token)
			g.Expect(Decode[row](t, f.As(who, fmt.Sprintf("GET /projects/20/triggers/%d", r.ID), "")).Token).To(Equal(r.Token))
		}
		g.Expect(shown).To(Equal(want), who)
	}
}

func TestTokenValue_isHiddenUnlessAccepted(t *testing.T) {
	g := NewWithT(t)
	refused := declared("acme", "web", 40, "mary")
	refused[0].(*v1alpha1.TriggerToken).Status.Digest = ""
	other := declared("acme", "web", 41, "mary")
	other[1].(*corev1.Secret).Data["token"] = []byte("the password of a database")
	missing := declared("acme", "web", 42, "mary")[0]
	gone := declared("acme", "web", 43, "nobody")
	var f *Forge
	// A status that was restored from a backup can name any Secret. The value of another token must not be shown.
	stolen := declared("acme", "web", 44, "mary")[0]
	stolen.(*v1alpha1.TriggerToken).Status = declared("acme", "web", 31, "mike")[0].(*v1alpha1.TriggerToken).Status
	f = newForge(t, append(append(append(refused, other...), missing, stolen), gone...)...)
	for _, id := range []int{40, 41, 42, 44} {
		for _, who := range []string{"mary", "mike"} {
			g.Expect(Decode[row](t, f.As(who, fmt.Sprintf("GET /projects/20/triggers/%d", id), ""))).To(HaveField("Token", ""), "%d", id)
		}
	}
	g.Expect(Decode[row](t, f.As("mary", "GET /projects/20/triggers/43", ""))).To(And(HaveField("Token", "0043"), HaveField("Owner", BeNil())))
}

func TestListTriggerTokens_looksUpOnePageOnly(t *testing.T) {
	g := NewWithT(t)
	f := newForge(t)
	got := f.As("mary", "GET /projects/20/triggers?per_page=2&page=2", "")
	g.Expect(got.Header.Get("X-Total")).To(Equal("3"))
	g.Expect(Decode[[]row](t, got)).To(ConsistOf(HaveField("ID", int64(32))))
	g.Expect(f.Uses.Asked).To(Equal([]types.UID{"t-32"}), "no more is looked up than is shown")
	f.Uses.Broken = errors.New("the database is away")
	g.Expect(f.As("mary", "GET /projects/20/triggers?per_page=2&page=2", "").Body).To(ContainSubstring(`"last_used":null`))
}

func TestCreateTriggerToken_returnsUsableToken(t *testing.T) {
	g := NewWithT(t)
	f := newForge(t)
	made := Decode[row](t, f.As("mike", "POST /projects/20/triggers", `{"description":"Nightly"}`))
	g.Expect(made.Token).To(MatchRegexp("^glptt-[0-9a-f]{40}$"))
	g.Expect(made).To(And(HaveField("Description", "Nightly"), HaveField("Owner.Username", "mike"), HaveField("ID", BeNumerically(">=", 100))))

	object := stored(t, f, made.ID)
	g.Expect(object.Namespace).To(Equal("acme"))
	g.Expect(object.Spec).To(Equal(v1alpha1.TriggerTokenSpec{
		ID: made.ID, ProjectRef: f.Named(&v1alpha1.Project{}, "acme/web"), OwnerRef: ptr.To(f.Refer(&v1alpha1.User{}, "mike")), Description: "Nightly",
	}))
	g.Expect(fmt.Sprint(object)).NotTo(ContainSubstring(made.Token[10:]))
	web, err := catalog.ByID[*v1alpha1.Project](t.Context(), f.Catalog, 20)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(triggertoken.ByValue(t.Context(), f.Catalog, web, made.Token, time.Now())).To(HaveField("Name", object.Name))
	// An administrator needs no role in the project, because they have created the token themselves.
	byRoot := Decode[row](t, f.As("root", "POST /projects/20/triggers", `{"description":"Yearly"}`))
	g.Expect(triggertoken.ByValue(t.Context(), f.Catalog, web, byRoot.Token, time.Now())).To(HaveField("Spec.ID", byRoot.ID))
	secret := secretOf(t, f, object)
	g.Expect(credential.Held(secret, v1alpha1.SecretOfTriggerToken, object)).To(BeTrue(), "the Secret goes with the token")
	var elsewhere corev1.SecretList
	g.Expect(f.Client.List(t.Context(), &elsewhere, client.InNamespace("acme"))).To(Succeed())
	g.Expect(elsewhere.Items).To(BeEmpty(), "no tenant reads it")

	again := Decode[row](t, f.As("mike", "POST /projects/20/triggers", `{"description":"Nightly"}`))
	g.Expect(again.ID).NotTo(Equal(made.ID))
	g.Expect(again.Token).NotTo(Equal(made.Token))

	at := fmt.Sprintf("/projects/20/triggers/%d", made.ID)
	g.Expect(Decode[row](t, f.As("mike", "PUT "+at, `{"description":"Weekly"}`))).To(And(
		HaveField("Description", "Weekly"), HaveField("Token", made.Token)))
	g.Expect(Decode[row](t, f.As("mike", "PUT "+at, ``)).Description).To(Equal("Weekly"))
	g.Expect(Decode[row](t, f.As("mike", "PUT "+at, `{"description":null}`)).Description).To(BeEmpty())
	g.Expect(f.As("mary", "DELETE "+at, "").String()).To(Equal("204"))
	g.Expect(f.As("mike", "GET "+at, "").Code).To(Equal(404))
}

func TestCreateTriggerToken_returnsTheControllersValue(t *testing.T) {
	g := NewWithT(t)
	f := newForge(t)
	// The controller has seen the token, and has just created the Secret.
	f.Before = func(verb string, o client.Object) error {
		if s, ok := o.(*corev1.Secret); ok && verb == "create" && string(s.Data["token"]) != value(1) {
			faster := s.DeepCopy()
			faster.Data["token"] = []byte(value(1))
			return f.Client.Create(t.Context(), faster)
		}
		return nil
	}
	made := Decode[row](t, f.As("mary", "POST /projects/20/triggers", `{"description":"x"}`))
	g.Expect(made.Token).To(Equal(value(1)))
	g.Expect(stored(t, f, made.ID).Status.Digest).To(Equal(credential.Digest(value(1))))
}

func TestCreateTriggerToken_leavesNothingBehindOnFailure(t *testing.T) {
	for _, fails := range []string{"create TriggerToken", "create Secret", "patch status TriggerToken"} {
		t.Run(fails, func(t *testing.T) {
			g := NewWithT(t)
			f := newForge(t)
			f.Before = func(verb string, o client.Object) error {
				if fails == verb+" "+reflect.TypeOf(o).Elem().Name() {
					return errors.New("it cannot be done")
				}
				return nil
			}
			g.Expect(f.As("mary", "POST /projects/20/triggers", `{"description":"x"}`).Code).To(Equal(http.StatusInternalServerError))
			var all v1alpha1.TriggerTokenList
			g.Expect(f.Client.List(t.Context(), &all)).To(Succeed())
			g.Expect(all.Items).To(HaveLen(4))
		})
	}
}

func TestInvalidRequests_areRefusedWithAReason(t *testing.T) {
	long := strings.Repeat("ä", 1025)
	tests := []struct{ request, body, want string }{
		{"POST /projects/20/triggers", ``, `400 {"error":"description is missing"}`},
		{"POST /projects/20/triggers", `{"description":{}}`, `400 {"error":"description is invalid"}`},
		{"POST /projects/20/triggers", `{"description":"` + long + `"}`, `400 {"message":{"description":["is too long (maximum is 1024 characters)"]}}`},
		{"PUT /projects/20/triggers/30", `{"description":"` + long + `"}`, `400 {"message":{"description":["is too long (maximum is 1024 characters)"]}}`},
		{"PUT /projects/20/triggers/31", `{"description":"x"}`, `403 {"message":"403 Forbidden"}`},
		{"GET /projects/20/triggers/x", ``, `400 {"error":"trigger_id is invalid"}`},
		{"GET /projects/20/triggers/99", ``, `404 {"message":"404 Not found"}`},
		{"GET /projects/20/triggers/0", ``, `404 {"message":"404 Not found"}`},
		{"GET /projects/20/triggers/33", ``, `404 {"message":"404 Not found"}`},
		{"PUT /projects/20/triggers/33", `{"description":"x"}`, `404 {"message":"404 Not found"}`},
		{"DELETE /projects/20/triggers/33", ``, `404 {"message":"404 Not found"}`},
		{"GET /projects/99/triggers", ``, `404 {"message":"404 Project Not Found"}`},
	}
	for _, tt := range tests {
		t.Run(tt.request+" "+tt.body, func(t *testing.T) {
			if got := newForge(t).As("mary", tt.request, tt.body).String(); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestDeleteTriggerToken_honorsIfUnmodifiedSince(t *testing.T) {
	f := newForge(t)
	f.Header = http.Header{"If-Unmodified-Since": {time.Date(2025, 12, 31, 0, 0, 0, 0, time.UTC).Format(http.TimeFormat)}}
	if got := f.As("mary", "DELETE /projects/20/triggers/30", "").String(); got != `412 {"message":"412 Precondition Failed"}` {
		t.Errorf("got %s", got)
	}
}

func TestRESTWrites_canBeRefusedByAProject(t *testing.T) {
	p := Project("acme", "fixed", 22, "acme", v1alpha1.VisibilityPublic)
	p.Spec.RESTWrites = v1alpha1.RESTWritesRefuse
	f := newForge(t, append(declared("acme", "fixed", 40, "mary"), p)...)
	for request, body := range map[string]string{
		"POST /projects/22/triggers":      `{"description":"x"}`,
		"PUT /projects/22/triggers/40":    `{"description":"x"}`,
		"DELETE /projects/22/triggers/40": ``,
	} {
		if got := f.As("mary", request, body); got.Code != 403 || !strings.Contains(got.Body, "does not accept changes over REST") {
			t.Errorf("%s: got %s", request, got)
		}
	}
}

func TestListTriggerTokens_omitsTokensWithoutID(t *testing.T) {
	f := newForge(t, declared("acme", "web", 0, "mary")...)
	if got := f.As("mary", "GET /projects/20/triggers", ""); got.Code != 200 || strings.Contains(got.Body, `"token 0"`) {
		t.Errorf("got %s", got)
	}
}

// stored returns the object with an id.
func stored(t *testing.T, f *Forge, id int64) *v1alpha1.TriggerToken {
	t.Helper()
	var all v1alpha1.TriggerTokenList
	if err := f.Client.List(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	for i := range all.Items {
		if all.Items[i].Spec.ID == id {
			return &all.Items[i]
		}
	}
	t.Fatalf("there is no token %d", id)
	return nil
}

func secretOf(t *testing.T, f *Forge, of *v1alpha1.TriggerToken) *corev1.Secret {
	t.Helper()
	var s corev1.Secret
	if err := f.Client.Get(t.Context(), client.ObjectKey{Namespace: Namespace, Name: of.Status.SecretRef.Name}, &s); err != nil {
		t.Fatal(err)
	}
	return &s
}
