package remotemirrors_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	. "github.com/forgeplane/forgeplane/apiserver/v4/remotemirrors"
	"github.com/forgeplane/forgeplane/internal/credential"
)

func declared(project string, id int64) *v1alpha1.RemoteMirror {
	return &v1alpha1.RemoteMirror{
		ObjectMeta: metav1.ObjectMeta{Namespace: "acme", Name: fmt.Sprintf("mirror-%d", id)},
		Spec: v1alpha1.RemoteMirrorSpec{
			ID: id, ProjectRef: v1alpha1.Reference{Name: project}, URL: "https://example.com/web.git", Enabled: ptr.To(true),
		},
	}
}

// newForge returns a forge with the public project web, which has a repository and two mirrors, and the private project secret.
func newForge(t *testing.T, more ...client.Object) *familytest.Forge {
	t.Helper()
	web := familytest.Project("acme", "web", 20, "acme", v1alpha1.VisibilityPublic)
	web.Status.RefsChecksum = "c0ffee"
	f := familytest.New(t, append([]client.Object{
		familytest.User("root", 1, familytest.Admin), familytest.User("mary", 2), familytest.User("dora", 3), familytest.User("otto", 4),
		familytest.Group("acme", "acme", 10, "", v1alpha1.VisibilityPublic),
		web, familytest.Project("acme", "secret", 21, "acme", v1alpha1.VisibilityPrivate),
		familytest.InGroup("acme", "acme", "mary", v1alpha1.RoleMaintainer),
		familytest.InGroup("acme", "acme", "dora", v1alpha1.RoleDeveloper),
		declared("web", 30), declared("web", 31), declared("secret", 32),
	}, more...)...)
	return f.Serve(New(f.Kit).Table())
}

const base = "/projects/20/remote_mirrors"

func stored(t *testing.T, f *familytest.Forge, id int64) *v1alpha1.RemoteMirror {
	t.Helper()
	var all v1alpha1.RemoteMirrorList
	if err := f.Client.List(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	for i := range all.Items {
		if all.Items[i].Spec.ID == id {
			return &all.Items[i]
		}
	}
	t.Fatalf("there is no mirror %d", id)
	return nil
}

func TestMirrors_showStatusAndMaskCredentials(t *testing.T) {
	g := NewWithT(t)
	failed := declared("web", 33)
	at := func(second int) *metav1.Time {
		return &metav1.Time{Time: time.Date(2026, 6, 1, 12, 0, second, 0, time.UTC)}
	}
	failed.Spec.SecretRef = &v1alpha1.LocalSecretReference{Name: "s"}
	failed.Spec.BranchRegex, failed.Spec.KeepDivergentRefs = "main", true
	failed.Status = v1alpha1.RemoteMirrorStatus{
		UpdateStatus: v1alpha1.MirrorFailed, LastError: "no", LastUpdateStartedAt: at(1), LastUpdateAt: at(2), LastSuccessfulUpdateAt: at(0),
	}
	f := newForge(t, failed)
	g.Expect(f.As("mary", "GET "+base+"/33", "").Body).To(MatchJSON(`{"id":33,"enabled":true,"url":"https://*****:*****@example.com/web.git",
		"last_error":"no","last_successful_update_at":"2026-06-01T12:00:00.000Z","last_update_at":"2026-06-01T12:00:02.000Z",
		"last_update_started_at":"2026-06-01T12:00:01.000Z","only_protected_branches":false,"keep_divergent_refs":true,
		"mirror_branch_regex":"main","update_status":"failed","auth_method":"password","host_keys":[]}`))
	g.Expect(f.As("mary", "GET "+base+"/30", "").Body).To(And(ContainSubstring(`"last_error":null`), ContainSubstring(`"last_update_at":null`),
		ContainSubstring(`"update_status":"none"`), ContainSubstring(`"url":"https://example.com/web.git"`)))
	page := f.As("mary", "GET "+base+"?per_page=2", "")
	g.Expect(page.Header.Get("X-Total")).To(Equal("3"))
	g.Expect(f.As("mary", "GET "+base+"/32", "").String()).To(Equal(`404 {"message":"404 Not found"}`), "it is another project's")
}

func TestMirror_isDisabledWhenNoRepositoryWillExist(t *testing.T) {
	for _, test := range []struct {
		reason, checksum string
		enabled          bool
	}{
		{"", "", true},
		{v1alpha1.ReasonImporting, "", true},
		{v1alpha1.ReasonFailed, "", true},
		{v1alpha1.ReasonImportFailed, "", false},
		{v1alpha1.ReasonStorageUnavailable, "", false},
		{v1alpha1.ReasonReferenceNotFound, "", false},
		{v1alpha1.ReasonInvalid, "", false},
		{v1alpha1.ReasonStorageUnavailable, "c0ffee", true},
	} {
		p := familytest.Project("acme", "late", 22, "acme", v1alpha1.VisibilityPublic)
		p.Status.RefsChecksum = test.checksum
		if test.reason != "" {
			p.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: test.reason}}
		}
		f := newForge(t, p, declared("late", 33))
		want := fmt.Sprintf(`"enabled":%t`, test.enabled)
		made := f.As("mary", "POST /projects/22/remote_mirrors", `{"url":"https://example.com/x.git","enabled":true}`)
		if got := f.As("mary", "GET /projects/22/remote_mirrors/33", ""); !strings.Contains(got.Body, want) || !strings.Contains(made.Body, want) {
			t.Errorf("%q %q: made %s, got %s, want %s", test.reason, test.checksum, made, got, want)
		}
	}
}

func TestCredentials_areKeptInAPlatformSecret(t *testing.T) {
	for _, test := range []struct {
		url, masked string
		data        map[string][]byte
	}{
		{"ssh://git@example.com/x.git", "ssh://git@example.com/x.git", map[string][]byte{"username": []byte("git")}},
		{"ssh://ann@example.com/x.git", "ssh://*****@example.com/x.git", map[string][]byte{"username": []byte("ann")}},
		{"ssh://git:s3cr%40t@example.com/x.git", "ssh://*****:*****@example.com/x.git", map[string][]byte{"username": []byte("git"), "password": []byte("s3cr@t")}},
		{"https://ann:s3cr%40t@example.com/x.git", "https://*****:*****@example.com/x.git", map[string][]byte{"username": []byte("ann"), "password": []byte("s3cr@t")}},
		{"https://ann@example.com/x.git", "https://*****@example.com/x.git", map[string][]byte{"username": []byte("ann")}},
		{"https://:s3cr%40t@example.com/x.git", "https://*****:*****@example.com/x.git", map[string][]byte{"username": []byte(""), "password": []byte("s3cr@t")}},
	} {
		g := NewWithT(t)
		f := newForge(t)
		answer := f.As("mary", "POST "+base, `{"url":"`+test.url+`","enabled":true}`)
		g.Expect(answer.Code).To(Equal(201), answer.Body)
		g.Expect(answer.Body).NotTo(ContainSubstring("s3cr"))
		made := familytest.Decode[map[string]any](t, answer)
		g.Expect(made).To(And(HaveKeyWithValue("url", test.masked), HaveKeyWithValue("enabled", true)))
		m := stored(t, f, int64(made["id"].(float64)))
		g.Expect(m.Spec.URL).To(HaveSuffix("://example.com/x.git"))
		g.Expect(m.Spec.IsEnabled()).To(BeTrue())
		g.Expect(fmt.Sprint(m)).NotTo(ContainSubstring("s3cr"))
		g.Expect(m.Spec.SecretRef).To(BeNil(), "what tenants can write leads to no credential that REST received")
		var secret corev1.Secret
		g.Expect(f.Client.Get(t.Context(), client.ObjectKey{Namespace: familytest.Namespace, Name: m.Status.SecretRef.Name}, &secret)).To(Succeed())
		g.Expect(secret.Data).To(Equal(test.data))
		g.Expect(credential.Held(&secret, v1alpha1.SecretOfRemoteMirror, m)).To(BeTrue())
		var elsewhere corev1.SecretList
		g.Expect(f.Client.List(t.Context(), &elsewhere, client.InNamespace("acme"))).To(Succeed())
		g.Expect(elsewhere.Items).To(BeEmpty())
	}
}

// hostKey is a public key of a host.
const hostKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIE1PpB+KGusIoz8/UE8m1sWbgH6pSCGQjXdCWsyU0VQe"

func TestHostKeys_arePinned(t *testing.T) {
	for url, known := range map[string]string{
		"ssh://example.com/x.git":          "example.com " + hostKey + "\n",
		"ssh://git@example.com:2222/x.git": "[example.com]:2222 " + hostKey + "\n",
	} {
		g := NewWithT(t)
		f := newForge(t)
		made := familytest.Decode[map[string]any](t, f.As("mary", "POST "+base, `{"url":"`+url+`","enabled":true,"host_keys":["`+hostKey+` a comment"]}`))
		g.Expect(made).To(And(HaveKeyWithValue("url", url), HaveKeyWithValue("enabled", true)))
		m := stored(t, f, int64(made["id"].(float64)))
		var secret corev1.Secret
		g.Expect(f.Client.Get(t.Context(), client.ObjectKey{Namespace: familytest.Namespace, Name: m.Status.SecretRef.Name}, &secret)).To(Succeed())
		g.Expect(string(secret.Data["known_hosts"])).To(Equal(known))
	}
}

func TestMirrorURL_mustNotHideCredentials(t *testing.T) {
	for _, url := range []string{
		"https://glpat/secret@example.com/x.git", "https://ann:1/secret@example.com/x.git", "https://ann:1#secret@example.com/x.git",
		"https://ann:1?secret@example.com/x.git", "https://token?secret@example.com/x.git", "https://token#secret",
		"https://example.com/x.git?private_token=secret", "https://example.com/x.git#secret", "https://ann:secret@example.com/x.git?",
		"https://ann:secret@example.com/x.git#", "https://ann:x@example.com/secret@x.git", "https://https://ann:secret@example.com/x.git",
	} {
		f := newForge(t)
		got := f.As("mary", "POST "+base, `{"url":"`+url+`","enabled":true}`)
		if want := `400 {"message":{"url":["is blocked: URI is invalid"]}}`; got.String() != want {
			t.Errorf("%s: got %s, want %s", url, got, want)
		}
		var all v1alpha1.RemoteMirrorList
		NewWithT(t).Expect(f.Client.List(t.Context(), &all)).To(Succeed())
		NewWithT(t).Expect(all.Items).To(HaveLen(3), "nothing is made")
	}
	f := newForge(t)
	got := f.As("mary", "POST "+base, `{"url":"https://ann:s3cr%40t@example.com/%40team/x.git"}`)
	NewWithT(t).Expect(got.Body).To(ContainSubstring(`"url":"https://*****:*****@example.com/%40team/x.git"`))
}

func TestCreateMirror_leavesNothingBehindOnFailure(t *testing.T) {
	for _, fails := range []string{"create Secret", "patch status RemoteMirror", "patch RemoteMirror"} {
		t.Run(fails, func(t *testing.T) {
			g := NewWithT(t)
			f := newForge(t)
			var enabled []bool
			f.Before = func(verb string, o client.Object) error {
				if m, ok := o.(*v1alpha1.RemoteMirror); ok && verb == "create" {
					enabled = append(enabled, m.Spec.IsEnabled())
				}
				if fails == verb+" "+reflect.TypeOf(o).Elem().Name() {
					return fmt.Errorf("there is no room")
				}
				return nil
			}
			g.Expect(f.As("mary", "POST "+base, `{"url":"https://ann:secret@example.com/x.git","enabled":true}`).Code).To(Equal(500))
			g.Expect(enabled).To(Equal([]bool{false}))
			var all v1alpha1.RemoteMirrorList
			g.Expect(f.Client.List(t.Context(), &all)).To(Succeed())
			g.Expect(all.Items).To(HaveLen(3), "a mirror without its Secret is no use")
			var secrets corev1.SecretList
			g.Expect(f.Client.List(t.Context(), &secrets)).To(Succeed())
			g.Expect(secrets.Items).To(BeEmpty())
		})
	}
}

func TestMirror_isUpdatedSyncedAndDeleted(t *testing.T) {
	g := NewWithT(t)
	f := newForge(t)
	g.Expect(f.As("mary", "POST "+base, `{"url":"https://example.com/x.git"}`).Body).To(ContainSubstring(`"enabled":false`))
	got := f.As("mary", "PUT "+base+"/30", `{"enabled":false,"only_protected_branches":true,"keep_divergent_refs":true,"url":"https://example.com/other.git"}`)
	g.Expect(got.Code).To(Equal(200), got.Body)
	g.Expect(stored(t, f, 30).Spec).To(Equal(v1alpha1.RemoteMirrorSpec{
		ID: 30, ProjectRef: v1alpha1.Reference{Name: "web"}, URL: "https://example.com/web.git", Enabled: ptr.To(false),
		OnlyProtectedBranches: true, KeepDivergentRefs: true,
	}))
	g.Expect(f.As("mary", "PUT "+base+"/30", `{"only_protected_branches":false,"mirror_branch_regex":"^main$"}`).Code).To(Equal(200))
	g.Expect(stored(t, f, 30).Spec).To(And(HaveField("BranchRegex", "^main$"), HaveField("KeepDivergentRefs", true)))
	g.Expect(f.As("mary", "POST "+base+"/30/sync", "").String()).To(HavePrefix("400 "), "it is not enabled")
	g.Expect(f.As("mary", "POST "+base+"/31/sync", "").String()).To(Equal("204"))
	g.Expect(stored(t, f, 31).Annotations).To(HaveKeyWithValue(v1alpha1.AnnotationSync, "2026-06-15T12:00:00Z"))
	g.Expect(f.As("mary", "DELETE "+base+"/31", "").String()).To(Equal("204"))
	g.Expect(f.As("mary", "GET "+base+"/31", "").Code).To(Equal(404))
}

func TestInvalidRequests_areRefusedWithAReason(t *testing.T) {
	blocked := func(what string) string { return `400 {"message":{"url":["is blocked: ` + what + `"]}}` }
	const fullName = `400 {"message":{"mirror_branch_regex":["is matched against names without refs/heads/: write ^release/, not ^refs/heads/release/"]}}`
	const exclusive = `400 {"error":"only_protected_branches, mirror_branch_regex are mutually exclusive"}`
	for _, test := range []struct{ request, body, want string }{
		{"POST " + base, ``, `400 {"error":"url is missing"}`},
		{"POST " + base, `{"url":""}`, `400 {"message":{"url":["can't be blank"]}}`},
		{"POST " + base, `{"url":"ftp://example.com/x"}`, blocked("Only allowed schemes are http, https, ssh, git")},
		{"POST " + base, `{"url":"example"}`, blocked("Only allowed schemes are http, https, ssh, git")},
		{"POST " + base, `{"url":"ssh://git@localhost/x"}`, blocked("Requests to localhost are not allowed")},
		{"POST " + base, `{"url":"git://10.0.0.1/x"}`, blocked("Requests to the local network are not allowed")},
		{"POST " + base, `{"url":"ssh://git@example.com/x","host_keys":["x"]}`, `400 {"message":{"host_keys":["is invalid"]}}`},
		{"POST " + base, `{"url":"https://example.com/x","host_keys":["` + hostKey + `"]}`, `400 {"message":{"host_keys":["is invalid"]}}`},
		{"POST " + base, `{"url":"ssh://example.com/x","host_keys":["` + strings.Repeat(hostKey+`","`, 10) + hostKey + `"]}`, `400 {"message":{"host_keys":["is too long (maximum is 10 entries)"]}}`},
		{"POST " + base, `{"url":"http://localhost:3000/x"}`, blocked("Requests to localhost are not allowed")},
		{"POST " + base, `{"url":"http://ann:secret@127.1/x"}`, blocked("Requests to localhost are not allowed")},
		{"POST " + base, `{"url":"http://192.168.1.1/x"}`, blocked("Requests to the local network are not allowed")},
		{"POST " + base, `{"url":"http://169.254.169.254/x"}`, blocked("Requests to the local network are not allowed")},
		{"POST " + base, `{"url":"https://-x:secret@example.com/x"}`, blocked("Username needs to start with an alphanumeric character")},
		{"POST " + base, `{"url":"https://ann:secret@exa mple.com/x"}`, blocked("URI is invalid")},
		{"POST " + base, `{"url":"https:///x"}`, blocked("URI is invalid")},
		{"POST " + base, `{"url":"https://example.com/` + strings.Repeat("x", 2048) + `"}`, `400 {"message":{"url":["is too long (maximum is 2048 characters)"]}}`},
		{"POST " + base, `{"url":"https://example.com/x","only_protected_branches":null}`, `400 {"message":{"only_protected_branches":["can't be blank"]}}`},
		{"POST " + base, `{"url":"https://example.com/x","only_protected_branches":true,"mirror_branch_regex":"x"}`, exclusive},
		{"POST " + base, `{"url":"https://example.com/x","mirror_branch_regex":"^refs/.*"}`, fullName},
		{"PUT " + base + "/30", `{"only_protected_branches":false,"mirror_branch_regex":"refs/heads/main"}`, fullName},
		{"POST " + base, `{"url":"https://example.com/x","mirror_branch_regex":"*"}`, `400 {"message":{"mirror_branch_regex":["not valid RE2 syntax: missing argument to repetition operator: *"]}}`},
		{"POST " + base, `{"url":"https://example.com/x","mirror_branch_regex":"` + strings.Repeat("x", 256) + `"}`, `400 {"message":{"mirror_branch_regex":["is too long (maximum is 255 characters)"]}}`},
		{"POST " + base, `{"url":"https://example.com/x","enabled":"maybe"}`, `400 {"error":"enabled is invalid"}`},
		{"PUT " + base + "/30", `{"only_protected_branches":null}`, `400 {"message":{"only_protected_branches":["can't be blank"]}}`},
		{"PUT " + base + "/30", `{"only_protected_branches":true,"mirror_branch_regex":"x"}`, exclusive},
		{"PUT " + base + "/99", `{"enabled":true}`, `404 {"message":"404 Not found"}`},
		{"PUT " + base + "/x", `{"enabled":true}`, `400 {"error":"mirror_id is invalid"}`},
		{"DELETE " + base + "/99", ``, `404 {"message":"404 Not found"}`},
		{"POST " + base + "/99/sync", ``, `404 {"message":"404 Not found"}`},
	} {
		if got := newForge(t).As("mary", test.request, test.body); got.String() != test.want {
			t.Errorf("%s %s: got %s, want %s", test.request, test.body, got, test.want)
		}
	}
}
