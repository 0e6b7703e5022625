package deploykeys_test

import (
	"crypto/ed25519"
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"golang.org/x/crypto/ssh"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	. "github.com/forgeplane/forgeplane/apiserver/v4/deploykeys"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/internal/deploykey"
)

// publicKey returns the public key that belongs to a seed.
func publicKey(seed byte) ssh.PublicKey {
	private := ed25519.NewKeyFromSeed([]byte(strings.Repeat(string(rune(seed)), ed25519.SeedSize)))
	key, err := ssh.NewPublicKey(private.Public())
	if err != nil {
		panic(err)
	}
	return key
}

func line(seed byte) string {
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(publicKey(seed))))
}

func declared(project string, id int64, seed byte, access v1alpha1.DeployKeyAccess) *v1alpha1.DeployKey {
	return &v1alpha1.DeployKey{
		ObjectMeta: metav1.ObjectMeta{Namespace: "acme", Name: fmt.Sprintf("key-%d", id)},
		Spec: v1alpha1.DeployKeySpec{
			ID: id, ProjectRef: v1alpha1.Reference{Name: project}, Title: fmt.Sprintf("key %d", id), PublicKey: line(seed), Access: access,
		},
	}
}

// foreign returns the deploy key of a project that only root can manage.
func foreign() *v1alpha1.DeployKey {
	k := declared("tool", 50, 'e', v1alpha1.DeployKeyReadWrite)
	k.Namespace = "other"
	return k
}

// newForge returns a forge with the public project web, which has two keys, and the private project secret.
func newForge(t *testing.T, more ...client.Object) *familytest.Forge {
	t.Helper()
	f := familytest.New(t, append([]client.Object{
		familytest.User("root", 1, familytest.Admin), familytest.User("mary", 2), familytest.User("dora", 3), familytest.User("otto", 4),
		familytest.Group("acme", "acme", 10, "", v1alpha1.VisibilityPublic),
		familytest.Project("acme", "web", 20, "acme", v1alpha1.VisibilityPublic),
		familytest.Project("acme", "secret", 21, "acme", v1alpha1.VisibilityPrivate),
		familytest.InGroup("acme", "acme", "mary", v1alpha1.RoleMaintainer),
		familytest.InGroup("acme", "acme", "dora", v1alpha1.RoleDeveloper),
		declared("web", 30, 'a', v1alpha1.DeployKeyReadOnly), declared("web", 31, 'b', v1alpha1.DeployKeyReadWrite),
		declared("secret", 32, 'a', v1alpha1.DeployKeyReadWrite),
		familytest.Group("other", "other", 11, "", v1alpha1.VisibilityPublic),
		familytest.Project("other", "tool", 23, "other", v1alpha1.VisibilityPublic),
		foreign(),
	}, more...)...)
	return f.Serve(New(f.Kit).Table())
}

func TestListDeployKeys_coversProjectAndInstance(t *testing.T) {
	g := NewWithT(t)
	f := newForge(t)
	got := f.As("mary", "GET /projects/acme%2Fweb/deploy_keys?per_page=1", "")
	g.Expect(got.Header.Get("X-Total")).To(Equal("2"))
	g.Expect(got.Body).To(MatchJSON(`[{"id":30,"title":"key 30","key":"` + line('a') + `",
		"fingerprint":"` + ssh.FingerprintLegacyMD5(publicKey('a')) + `","fingerprint_sha256":"` + ssh.FingerprintSHA256(publicKey('a')) + `",
		"created_at":"2026-01-01T00:00:10.000Z","expires_at":null,"can_push":false}]`))

	all := familytest.Decode[[]InstanceKey](t, withoutTimes(f.As("root", "GET /deploy_keys", "")))
	g.Expect(all).To(HaveLen(4))
	g.Expect(all[0].ProjectsWithReadonlyAccess).To(ConsistOf(HaveField("PathWithNamespace", "acme/web")))
	g.Expect(all[0].ProjectsWithWriteAccess).To(BeEmpty())
	g.Expect(all[2].ProjectsWithWriteAccess).To(ConsistOf(HaveField("NameWithNamespace", "acme / secret")))
	g.Expect(f.As("root", "GET /deploy_keys?public=true", "").Body).To(Equal("[]"))
}

// withoutTimes hides the times from Decode, because their type can only be marshaled.
func withoutTimes(a familytest.Answer) familytest.Answer {
	a.Body = strings.NewReplacer(`"created_at"`, `"_c"`, `"expires_at"`, `"_e"`).Replace(a.Body)
	return a
}

func TestDeployKey_isStoredAsAnObject(t *testing.T) {
	g := NewWithT(t)
	f := newForge(t)
	made := familytest.Decode[Key](t, withoutTimes(f.As("mary", "POST /projects/20/deploy_keys",
		`{"title":"build","key":" `+line('c')+` ci@build\n","can_push":true}`)))
	g.Expect(made.ID).To(BeNumerically(">=", 100))
	g.Expect(made.CanPush).To(BeTrue())
	g.Expect(made.Key).To(Equal(line('c') + " ci@build"))
	k := stored(t, f, made.ID)
	g.Expect(k.Namespace).To(Equal("acme"))
	g.Expect(k.Spec).To(Equal(v1alpha1.DeployKeySpec{
		ID: made.ID, ProjectRef: f.Named(&v1alpha1.Project{}, "acme/web"), Title: "build", PublicKey: line('c') + " ci@build",
		Access: v1alpha1.DeployKeyReadWrite,
	}))

	at := fmt.Sprintf("/projects/20/deploy_keys/%d", made.ID)
	g.Expect(f.As("mary", "PUT "+at, `{"title":"other"}`).Code).To(Equal(200))
	g.Expect(stored(t, f, made.ID).Spec).To(And(HaveField("Title", "other"), HaveField("Access", v1alpha1.DeployKeyReadWrite)))
	g.Expect(f.As("mary", "PUT "+at, `{"can_push":false}`).Code).To(Equal(200))
	g.Expect(stored(t, f, made.ID).Spec).To(And(HaveField("Title", "other"), HaveField("Access", v1alpha1.DeployKeyReadOnly)))

	g.Expect(f.As("mary", "DELETE "+at, "").String()).To(Equal("204"))
	g.Expect(f.As("mary", "GET "+at, "").Code).To(Equal(404))
}

func TestCreateDeployKey_returnsAnExistingKey(t *testing.T) {
	g := NewWithT(t)
	f := newForge(t)
	got := f.As("mary", "POST /projects/20/deploy_keys", `{"title":"again","key":"`+line('a')+` with a comment"}`)
	g.Expect(got.Code).To(Equal(201))
	g.Expect(familytest.Decode[Key](t, withoutTimes(got))).To(And(HaveField("ID", int64(30)), HaveField("Title", "key 30")))

	other := familytest.Decode[Key](t, withoutTimes(f.As("mary", "POST /projects/21/deploy_keys", `{"title":"x","key":"`+line('b')+`"}`)))
	g.Expect(other.ID).NotTo(BeEquivalentTo(31), "the key of another project is another object")
}

func TestEnableDeployKey_copiesFromAnotherProject(t *testing.T) {
	g := NewWithT(t)
	f := newForge(t)
	made := familytest.Decode[Key](t, withoutTimes(f.As("root", "POST /projects/20/deploy_keys/50/enable", "")))
	g.Expect(made).To(And(HaveField("Title", "key 50"), HaveField("Key", line('e')), HaveField("CanPush", false), HaveField("ID", Not(Equal(int64(50))))))
	g.Expect(stored(t, f, made.ID).Spec.ProjectRef.Name).To(Equal("web"))
	own := familytest.Decode[Key](t, withoutTimes(f.As("mary", "POST /projects/20/deploy_keys/31/enable", "")))
	g.Expect(own.ID).To(BeEquivalentTo(31), "it is the project's own")
}

func TestInvalidRequests_areRefusedWithAReason(t *testing.T) {
	const wrong = `-----BEGIN OPENSSH PRIVATE KEY-----`
	tests := []struct{ request, body, want string }{
		{"POST /projects/20/deploy_keys", ``, `400 {"error":"title is missing, key is missing"}`},
		{"POST /projects/20/deploy_keys", `{"title":"x","key":"ssh-rsa x"}`, `400 {"message":{"deploy_key.key":["is invalid"]}}`},
		{"POST /projects/20/deploy_keys", `{"title":"x","key":"` + wrong + `"}`, `400 {"message":{"deploy_key.key":["is invalid"]}}`},
		{"POST /projects/20/deploy_keys", `{"title":"x","key":"no-pty ` + line('c') + `"}`, `400 {"message":{"deploy_key.key":["is invalid"]}}`},
		{"POST /projects/20/deploy_keys", `{"title":"  ","key":"` + line('c') + `"}`, `400 {"message":{"deploy_key.title":["can't be blank"]}}`},
		{"POST /projects/20/deploy_keys", `{"title":"x","key":"` + line('c') + `","expires_at":"2030-01-01"}`,
			`400 {"message":{"deploy_key.expires_at":["is not supported"]}}`},
		{"POST /projects/20/deploy_keys", `{"title":"x","key":"` + line('c') + `","can_push":"x"}`, `400 {"error":"can_push is invalid"}`},
		{"PUT /projects/20/deploy_keys/30", `{}`, `400 {"error":"title, can_push are missing, at least one parameter must be provided"}`},
		{"PUT /projects/20/deploy_keys/30", `{"title":""}`, `400 {"message":{"deploy_key.title":["can't be blank"]}}`},
		{"GET /projects/20/deploy_keys/x", ``, `400 {"error":"key_id is invalid"}`},
		{"GET /projects/20/deploy_keys/99", ``, `404 {"message":"404 Not found"}`},
		{"GET /projects/20/deploy_keys/32", ``, `404 {"message":"404 Not found"}`},
		{"PUT /projects/20/deploy_keys/32", `{"title":"x"}`, `404 {"message":"404 Not found"}`},
		{"DELETE /projects/20/deploy_keys/32", ``, `404 {"message":"404 Deploy Key Not Found"}`},
		{"POST /projects/20/deploy_keys/99/enable", ``, `404 {"message":"404 Deploy Key Not Found"}`},
		{"GET /projects/99/deploy_keys", ``, `404 {"message":"404 Project Not Found"}`},
	}
	for _, tt := range tests {
		t.Run(tt.request+" "+tt.body, func(t *testing.T) {
			if got := newForge(t).As("mary", tt.request, tt.body).String(); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestRESTWrites_canBeRefusedByAProject(t *testing.T) {
	p := familytest.Project("acme", "fixed", 22, "acme", v1alpha1.VisibilityPublic)
	p.Spec.RESTWrites = v1alpha1.RESTWritesRefuse
	f := newForge(t, p, declared("fixed", 40, 'd', v1alpha1.DeployKeyReadOnly))
	for request, body := range map[string]string{
		"POST /projects/22/deploy_keys":      `{"title":"x","key":"` + line('c') + `"}`,
		"PUT /projects/22/deploy_keys/40":    `{"title":"x"}`,
		"DELETE /projects/22/deploy_keys/40": ``,
	} {
		if got := f.As("mary", request, body); got.Code != 403 {
			t.Errorf("%s: got %s", request, got)
		}
	}
}

// stored returns the object with an id.
func stored(t *testing.T, f *familytest.Forge, id int64) *v1alpha1.DeployKey {
	t.Helper()
	k, err := deploykey.Named(t.Context(), f.Catalog, "acme", v1alpha1.Reference{ID: id})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestListDeployKeys_omitsKeysWithoutID(t *testing.T) {
	f := newForge(t, declared("web", 0, 'f', v1alpha1.DeployKeyReadOnly))
	for _, path := range []string{"/deploy_keys", "/projects/20/deploy_keys"} {
		if got := f.As("root", "GET "+path, ""); got.Code != 200 || strings.Contains(got.Body, `"key 0"`) {
			t.Errorf("got %s", got)
		}
	}
}

func TestDeployKeyWithoutID_isNotFound(t *testing.T) {
	f := newForge(t, declared("web", 0, 'f', v1alpha1.DeployKeyReadOnly))
	for request, want := range map[string]string{
		"GET /projects/20/deploy_keys/0":    `404 {"message":"404 Not found"}`,
		"DELETE /projects/20/deploy_keys/0": `404 {"message":"404 Deploy Key Not Found"}`,
	} {
		if got := f.As("mary", request, ""); got.String() != want {
			t.Errorf("%s: got %s, want %s", request, got, want)
		}
	}
}
