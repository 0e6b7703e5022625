package registryhttp_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/internal/credential"
	"github.com/forgeplane/forgeplane/internal/registry"
	"github.com/forgeplane/forgeplane/internal/registry/record"
	"github.com/forgeplane/forgeplane/internal/registry/token"
	"github.com/forgeplane/forgeplane/internal/watermark"
)

const manifestList = "application/vnd.docker.distribution.manifest.list.v2+json"

// record returns the record of a repository.
func (w *world) record(t *testing.T, name string) record.Repository {
	t.Helper()
	means, err := w.registry.Names.Resolve(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	r, err := w.records.Find(t.Context(), means.Project.UID, means.Image)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestManifest_mustMeanOneThing(t *testing.T) {
	r := newRepository(t, "acme/app")
	config := r.blob("{}")
	own := fmt.Sprintf(`{"mediaType":"application/vnd.oci.image.config.v1+json","digest":%q,"size":2}`, config.Digest)
	many := strings.Repeat(own+",", 2000) + own
	long := strings.Repeat("a", 65<<10)
	subject := fmt.Sprintf(`"subject":{"mediaType":"x","digest":%q,"size":1}`, config.Digest)
	for name, c := range map[string]struct{ mediaType, body, want string }{
		"a key twice":                    {v1.MediaTypeImageManifest, `{"schemaVersion":2,"config":` + own + `,"layers":[],"manifests":"x","manifests":null}`, `key \"manifests\" twice`},
		"a key twice in another case":    {v1.MediaTypeImageManifest, `{"schemaVersion":2,"config":` + own + `,"layers":[],"Manifests":null,"manifests":null}`, `key \"manifests\" twice`},
		"a key twice further in":         {v1.MediaTypeImageManifest, `{"schemaVersion":2,"config":` + own + `,"layers":[{"size":2,"size":1}]}`, `key \"size\" twice`},
		"a list with a configuration":    {manifestList, `{"schemaVersion":2,"mediaType":"` + manifestList + `","manifests":[],"config":{"size":1}}`, "must not have the fields config and layers"},
		"an index without manifests":     {v1.MediaTypeImageIndex, `{"schemaVersion":2}`, "must have the field manifests"},
		"too many layers":                {v1.MediaTypeImageManifest, `{"schemaVersion":2,"config":` + own + `,"layers":[` + many + `]}`, "2000 are the limit"},
		"a digest of another kind":       {v1.MediaTypeImageManifest, `{"schemaVersion":2,"config":` + own + `,"layers":[{"digest":"sha384:` + strings.Repeat("a", 96) + `"}]}`, "must be one of SHA-256 or SHA-512"},
		"a URL of another kind":          {v1.MediaTypeImageManifest, `{"schemaVersion":2,"config":` + own + `,"layers":[{"digest":"` + config.Digest.String() + `","size":2,"urls":["file:///etc/passwd"]}]}`, "must be one of http or https"},
		"a negative size":                {v1.MediaTypeImageManifest, `{"schemaVersion":2,"config":` + own + `,"layers":[{"digest":"` + config.Digest.String() + `","size":-1}]}`, "must not be negative"},
		"a subject and long annotations": {v1.MediaTypeImageManifest, `{"schemaVersion":2,"config":` + own + `,"layers":[],"annotations":{"a":"` + long + `"},` + subject + `}`, "must not be longer"},
	} {
		t.Run(name, func(t *testing.T) {
			_, body := r.must(http.StatusBadRequest, http.MethodPut, "/manifests/1", c.mediaType, c.body)
			NewWithT(t).Expect(body).To(And(ContainSubstring("MANIFEST_INVALID"), ContainSubstring(c.want)))
		})
	}
}

func TestManifest_leavesNothingIfRefused(t *testing.T) {
	r := newRepository(t, "acme/app")
	missing, subject := digest.FromString("missing"), digest.FromString("subject")
	body := fmt.Sprintf(`{"schemaVersion":2,"config":{"mediaType":"x","digest":%q,"size":7},"layers":[],"subject":{"mediaType":"x","digest":%q,"size":1}}`, missing, subject)
	r.must(http.StatusBadRequest, http.MethodPut, "/manifests/1", v1.MediaTypeImageManifest, body)
	r.g.Expect(r.records.ReferrersAfter(t.Context(), r.record(t, "acme/app").ID, "", 10)).To(BeEmpty())
}

func TestBlob_hasDigestOfSHA256OrSHA512(t *testing.T) {
	r := newRepository(t, "acme/app")
	started, _ := r.must(http.StatusAccepted, http.MethodPost, "/blobs/uploads/", "", "")
	d := digest.SHA384.FromString("content")
	_, body := r.must(http.StatusBadRequest, http.MethodPut, with(started.Get("Location"), "digest="+d.String()), binary, "content")
	r.g.Expect(body).To(And(ContainSubstring("DIGEST_INVALID"), ContainSubstring("must be one of SHA-256 or SHA-512")))
}

func TestRequest_mustNotBeAForm(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	var form bytes.Buffer
	parts := multipart.NewWriter(&form)
	file, err := parts.CreateFormFile("file", "f")
	g.Expect(err).NotTo(HaveOccurred())
	_, err = file.Write(make([]byte, 40<<20))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(parts.Close()).To(Succeed())
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+w.host+"/v2/acme/open/blobs/uploads/", &form)
	g.Expect(err).NotTo(HaveOccurred())
	r.Header.Set("Content-Type", parts.FormDataContentType())
	// The server need not read the body before it answers.
	if answer, err := http.DefaultClient.Do(r); err == nil {
		g.Expect(answer).To(HaveHTTPStatus(http.StatusUnsupportedMediaType))
		g.Expect(answer.Body.Close()).To(Succeed())
	}
	g.Expect(filepath.Glob(filepath.Join(temporary, "multipart*"))).To(BeEmpty())

	// curl sends this type with --data-binary.
	bearer, _ := w.bearer(t, "dan", "repository:acme/app:pull,push")
	_, started, _ := w.do(t, bearer, http.MethodPost, "/v2/acme/app/blobs/uploads/", nil, nil)
	target := with(started.Get("Location"), "digest="+digest.FromString("hello").String())
	status, _, body := w.do(t, bearer, http.MethodPut, target, strings.NewReader("hello"), http.Header{"Content-Type": {"application/x-www-form-urlencoded"}})
	g.Expect(status).To(Equal(http.StatusCreated), body)
	g.Expect(os.ReadDir(temporary)).To(BeEmpty())
}

func TestRegistry_servesClientThatAcceptsEverything(t *testing.T) {
	r := newRepository(t, "acme/app")
	config := r.blob("{}")
	r.must(http.StatusCreated, http.MethodPut, "/manifests/1", v1.MediaTypeImageManifest, fmt.Sprintf(`{"schemaVersion":2,"config":{"mediaType":"x","digest":%q,"size":2},"layers":[]}`, config.Digest))
	r.must(http.StatusOK, http.MethodGet, "/manifests/1", "", "", "Accept", "*/*")
	r.must(http.StatusOK, http.MethodGet, "/manifests/1", "", "")
	r.must(http.StatusNotFound, http.MethodGet, "/manifests/1", "", "", "Accept", manifestList)
}

func TestToken_createsNoRepositoryThatClientsCannotName(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	for _, name := range []string{"acme/app/../x", "acme/app/<script>", "acme/app/Ünï", "acme/app/" + strings.Repeat("a", 300), "acme/app/a:b", "acme/app//x", "acme/app/\x00"} {
		_, claims := w.bearer(t, "dan", "repository:"+name+":pull,push")
		g.Expect(claims.Access).To(BeEmpty(), name)
	}
	g.Expect(w.records.After(t.Context(), 0, 10)).To(BeEmpty())
}

func TestRegistry_saysWhyRepositoryTakesNoChanges(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	pushed := w.push(t, "acme/app:1")
	d, err := pushed.Digest()
	g.Expect(err).NotTo(HaveOccurred())
	bearer, _ := w.bearer(t, "mary", "repository:acme/app:pull,push,delete")
	refused := func(message string) {
		t.Helper()
		for _, request := range []string{"POST /blobs/uploads/", "DELETE /manifests/1", "DELETE /manifests/" + d.String(), "DELETE /tags/reference/1", "DELETE /blobs/" + d.String()} {
			method, path, _ := strings.Cut(request, " ")
			status, _, body := w.do(t, bearer, method, "/v2/acme/app"+path, nil, nil)
			g.Expect(status).To(Equal(http.StatusForbidden), "%s: %s", request, body)
			g.Expect(body).To(And(ContainSubstring("DENIED"), ContainSubstring(message)), request)
		}
	}
	g.Expect(retry.RetryOnConflict(retry.DefaultRetry, func() error {
		p := &v1alpha1.Project{}
		if err := w.Client.Get(t.Context(), clientKey("acme", "app"), p); err != nil {
			return err
		}
		p.Spec.Archived = true
		return w.Client.Update(t.Context(), p)
	})).To(Succeed())
	refused("the project is archived")
	g.Expect(w.records.Removing(t.Context(), w.record(t, "acme/app").ID, record.DeleteScheduled)).To(Succeed())
	refused("is being deleted")
}

func TestRegistry_refusesTokenOfEndedCredential(t *testing.T) {
	user := func(change func(*v1alpha1.User)) func(t *testing.T, w *world) error {
		return func(t *testing.T, w *world) error {
			t.Helper()
			u := &v1alpha1.User{}
			if err := w.Client.Get(t.Context(), clientKey("", "dan"), u); err != nil || change == nil {
				return cmp.Or(err, w.Client.Delete(t.Context(), u))
			}
			change(u)
			return w.Client.Update(t.Context(), u)
		}
	}
	accessToken := func(change func(*v1alpha1.AccessToken)) func(t *testing.T, w *world) error {
		return func(t *testing.T, w *world) error {
			t.Helper()
			return w.changeToken(t, "dan", change)
		}
	}
	for name, end := range map[string]func(t *testing.T, w *world) error{
		"blocked user":                user(func(u *v1alpha1.User) { u.Spec.State = v1alpha1.UserBlocked }),
		"deleted user":                user(nil),
		"revoked access token":        accessToken(func(a *v1alpha1.AccessToken) { a.Spec.Revoked = true }),
		"deleted access token":        accessToken(nil),
		"access token with new value": accessToken(func(a *v1alpha1.AccessToken) { a.Status.Digest = credential.Digest("another value") }),
		"access token of that name":   accessToken(func(a *v1alpha1.AccessToken) { a.UID = "another" }),
		"expired access token": accessToken(func(a *v1alpha1.AccessToken) {
			a.Spec.ExpiresAt = &metav1.Time{Time: time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC)}
		}),
	} {
		t.Run(name, func(t *testing.T) {
			g, w := NewWithT(t), newWorld(t)
			w.push(t, "acme/app:1")
			bearer, _ := w.bearer(t, "dan", "repository:acme/app:pull,push")
			status, _, body := w.do(t, bearer, http.MethodGet, "/v2/acme/app/tags/list", nil, nil)
			g.Expect(status).To(Equal(http.StatusOK), body)
			g.Expect(end(t, w)).To(Succeed())
			for _, path := range []string{"/v2/", "/v2/acme/app/tags/list", "/v2/acme/app/referrers/" + digest.FromString("x").String()} {
				status, header, body := w.do(t, bearer, http.MethodGet, path, nil, nil)
				g.Expect(status).To(Equal(http.StatusUnauthorized), body)
				g.Expect(header.Get("WWW-Authenticate")).To(ContainSubstring(`error="invalid_token"`))
			}
		})
	}
}

func TestRegistry_refusesWhatCallerCanNoLongerDo(t *testing.T) {
	const pull, push, list = "GET /v2/acme/app/tags/list", "POST /v2/acme/app/blobs/uploads/", "GET /v2/_catalog"
	project := func(change func(*v1alpha1.ProjectSpec)) func(t *testing.T, w *world) error {
		return func(t *testing.T, w *world) error {
			t.Helper()
			p := &v1alpha1.Project{}
			if err := w.Client.Get(t.Context(), clientKey("acme", "app"), p); err != nil {
				return err
			}
			change(&p.Spec)
			return w.Client.Update(t.Context(), p)
		}
	}
	for name, c := range map[string]struct {
		username       string
		end            func(t *testing.T, w *world) error
		still, refused string
	}{
		"membership": {"dan", func(t *testing.T, w *world) error {
			t.Helper()
			return w.Client.Delete(t.Context(), familytest.InGroup("acme", "acme", "dan", v1alpha1.RoleDeveloper))
		}, "", pull},
		"role": {"dan", func(t *testing.T, w *world) error {
			t.Helper()
			m := &v1alpha1.Membership{}
			if err := w.Client.Get(t.Context(), clientKey("acme", "in-acme-dan"), m); err != nil {
				return err
			}
			m.Spec.Role = v1alpha1.RoleReporter
			return w.Client.Update(t.Context(), m)
		}, pull, push},
		"registry of the project": {"dan", project(func(p *v1alpha1.ProjectSpec) { p.Features.ContainerRegistry = v1alpha1.FeatureDisabled }), "", pull},
		"scope for pushes": {"dan", func(t *testing.T, w *world) error {
			t.Helper()
			w.scopes(t, "dan", v1alpha1.ScopeReadRegistry)
			return nil
		}, pull, push},
		"scope for the registry": {"dan", func(t *testing.T, w *world) error {
			t.Helper()
			w.scopes(t, "dan", v1alpha1.ScopeReadAPI)
			return nil
		}, "", pull},
		"administrator": {"root", func(t *testing.T, w *world) error {
			t.Helper()
			u := &v1alpha1.User{}
			if err := w.Client.Get(t.Context(), clientKey("", "root"), u); err != nil {
				return err
			}
			u.Spec.Admin = false
			return w.Client.Update(t.Context(), u)
		}, "", list},
		"public project": {"", project(func(p *v1alpha1.ProjectSpec) { p.Visibility = v1alpha1.VisibilityPrivate }), "", pull},
	} {
		t.Run(name, func(t *testing.T) {
			g, w := NewWithT(t), newWorld(t)
			w.push(t, "acme/app:1")
			if c.username == "" {
				g.Expect(project(func(p *v1alpha1.ProjectSpec) { p.Visibility = v1alpha1.VisibilityPublic })(t, w)).To(Succeed())
			}
			bearer, _ := w.bearer(t, c.username, "repository:acme/app:pull,push", "registry:catalog:*")
			send := func(request string) (status int, challenge string) {
				method, path, _ := strings.Cut(request, " ")
				status, header, _ := w.do(t, bearer, method, path, nil, nil)
				return status, header.Get("WWW-Authenticate")
			}
			status, _ := send(c.refused)
			g.Expect(status).To(BeNumerically("<", 300))
			g.Expect(c.end(t, w)).To(Succeed())
			status, challenge := send(c.refused)
			g.Expect(status).To(Equal(http.StatusUnauthorized))
			g.Expect(challenge).To(ContainSubstring(`error="insufficient_scope"`))
			if c.still != "" {
				status, _ := send(c.still)
				g.Expect(status).To(Equal(http.StatusOK))
			}
		})
	}
}

func TestRegistry_refusesTokenOfRevokedBot(t *testing.T) {
	g := NewWithT(t)
	bot := &v1alpha1.BotToken{
		ObjectMeta: metav1.ObjectMeta{Namespace: "acme", Name: "ci"},
		Spec: v1alpha1.BotTokenSpec{
			ID: 50, Name: "ci", ProjectRef: &v1alpha1.Reference{Name: "app"}, Role: v1alpha1.RoleDeveloper, Scopes: []v1alpha1.TokenScope{v1alpha1.ScopeWriteRegistry},
			Digest: credential.Digest("value of the bot"),
		},
		Status: v1alpha1.BotTokenStatus{ID: 50, Digest: credential.Digest("value of the bot")},
	}
	w := newWorld(t, bot)
	status, body := w.ask(t, "ci", "value of the bot", url.Values{"service": {token.Service}, "scope": {"repository:acme/app:pull,push"}})
	g.Expect(status).To(Equal(http.StatusOK), body)
	var said struct{ Token string }
	g.Expect(json.Unmarshal([]byte(body), &said)).To(Succeed())
	status, _, body = w.do(t, said.Token, http.MethodPost, "/v2/acme/app/blobs/uploads/", nil, nil)
	g.Expect(status).To(Equal(http.StatusAccepted), body)
	g.Expect(w.Client.Get(t.Context(), clientKey("acme", "ci"), bot)).To(Succeed())
	bot.Spec.Revoked = true
	g.Expect(w.Client.Update(t.Context(), bot)).To(Succeed())
	status, _, body = w.do(t, said.Token, http.MethodPost, "/v2/acme/app/blobs/uploads/", nil, nil)
	g.Expect(status).To(Equal(http.StatusUnauthorized), body)
}

func TestRegistry_refusesTokenWithoutCredential(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	text, err := w.keys.Issue(token.Claims{Subject: "dan"}, token.Service, time.Minute)
	g.Expect(err).NotTo(HaveOccurred())
	status, _, body := w.do(t, text, http.MethodGet, "/v2/", nil, nil)
	g.Expect(status).To(Equal(http.StatusUnauthorized), body)
}

func TestRegistry_isUnavailableWhileTheServerIsBehind(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	bearer, _ := w.bearer(t, "sue", "repository:acme/open:pull")
	ended, _ := w.bearer(t, "dan", "repository:acme/app:pull")
	g.Expect(w.changeToken(t, "dan", func(a *v1alpha1.AccessToken) { a.Spec.Revoked = true })).To(Succeed())
	p := &v1alpha1.Project{}
	g.Expect(w.Client.Get(t.Context(), clientKey("acme", "open"), p)).To(Succeed())
	p.Spec.Visibility = v1alpha1.VisibilityPrivate
	g.Expect(w.Client.Update(t.Context(), p)).To(Succeed())
	w.outdated = func() (bool, error) { return false, watermark.ErrBehind }
	for name, request := range map[string]struct{ bearer, path string }{
		"an access token that is not known":       {ended, "/v2/acme/app/tags/list"},
		"a project that is hidden":                {bearer, "/v2/acme/open/tags/list"},
		"the referrers of one":                    {bearer, "/v2/acme/open/referrers/" + digest.FromString("x").String()},
		"a token for a project that is not known": {"", "/jwt/auth?service=container_registry&scope=repository:acme/none:pull"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			status, header, body := w.do(t, request.bearer, http.MethodGet, request.path, nil, nil)
			g.Expect(status).To(Equal(http.StatusServiceUnavailable), body)
			g.Expect(header.Get("Retry-After")).To(Equal("10"))
			g.Expect(body).To(And(ContainSubstring("UNAVAILABLE"), ContainSubstring(watermark.Behind)))
		})
	}
}

func TestRegistry_learnsWhatOtherServersHaveWritten(t *testing.T) {
	for name, set := range map[string]func(t *testing.T, w *world, known bool) error{
		"access token": func(t *testing.T, w *world, known bool) error {
			t.Helper()
			return w.changeToken(t, "dan", func(a *v1alpha1.AccessToken) { a.Spec.Revoked = !known })
		},
		"role": func(t *testing.T, w *world, known bool) error {
			t.Helper()
			m := familytest.InGroup("acme", "acme", "dan", v1alpha1.RoleDeveloper)
			if known {
				return w.Client.Create(t.Context(), m)
			}
			return w.Client.Delete(t.Context(), m)
		},
	} {
		t.Run(name, func(t *testing.T) {
			g, w := NewWithT(t), newWorld(t)
			bearer, _ := w.bearer(t, "dan", "repository:acme/app:pull,push")
			g.Expect(set(t, w, false)).To(Succeed())
			w.outdated = func() (bool, error) { return true, set(t, w, true) }
			status, _, body := w.do(t, bearer, http.MethodPost, "/v2/acme/app/blobs/uploads/", nil, nil)
			g.Expect(status).To(Equal(http.StatusAccepted), body)
		})
	}
}

// changeToken changes the access token of a user, or deletes it without a change.
func (w *world) changeToken(t *testing.T, username string, change func(*v1alpha1.AccessToken)) error {
	t.Helper()
	var all v1alpha1.AccessTokenList
	if err := w.Client.List(t.Context(), &all); err != nil {
		return err
	}
	i := slices.IndexFunc(all.Items, func(a v1alpha1.AccessToken) bool { return strings.Contains(a.Name, username) })
	a := &all.Items[i]
	if change == nil {
		return w.Client.Delete(t.Context(), a)
	}
	change(a)
	accepted := a.Status.Digest
	if err := w.Client.Update(t.Context(), a); err != nil {
		return err
	}
	a.Status.Digest = accepted
	return w.Client.Status().Update(t.Context(), a)
}

func TestDetail_dependsOnOwnRepositoryAlone(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	w.push(t, "acme/open:1")
	source, err := w.imagesOf(t, "acme/open").Detail(t.Context(), "1")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(source.Size).NotTo(BeNil())
	r := &repository{world: w, t: t, g: g}
	r.bearer, _ = w.bearer(t, "mary", "repository:acme/app:pull,push,delete", "repository:acme/open:pull,push,delete")
	body := `{"created":"2026-05-04T12:00:00Z"}`
	image := fmt.Sprintf(`{"schemaVersion":2,"config":{"mediaType":"application/vnd.oci.image.config.v1+json","digest":%q,"size":%d},"layers":[]}`, digest.FromString(body), len(body))
	for _, base := range []string{"/v2/acme/app", "/v2/acme/open"} {
		r.base = base
		r.blob(body)
		r.must(http.StatusCreated, http.MethodPut, "/manifests/same", v1.MediaTypeImageManifest, image)
	}
	r.must(http.StatusAccepted, http.MethodDelete, "/v2/acme/app/blobs/"+digest.FromString(body).String(), "", "")
	// A process that has not seen the pushes knows nothing of the images.
	w.registry, err = registry.New(t.Context(), w.storage, w.records, w.registry.Names, w.clock)
	g.Expect(err).NotTo(HaveOccurred())
	partial, err := w.imagesOf(t, "acme/app").Detail(t.Context(), "same")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(partial.Created).To(BeNil())
	whole, err := w.imagesOf(t, "acme/open").Detail(t.Context(), "same")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(whole.Created).To(HaveValue(BeTemporally("==", time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC))))
}

// imagesOf returns the images of a repository.
func (w *world) imagesOf(t *testing.T, name string) *registry.Images {
	t.Helper()
	images, err := w.registry.Images(t.Context(), w.record(t, name))
	if err != nil {
		t.Fatal(err)
	}
	return images
}
