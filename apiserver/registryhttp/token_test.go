package registryhttp_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/ratelimit"
	"github.com/forgeplane/forgeplane/apiserver/registryhttp"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/audit/audittest"
	"github.com/forgeplane/forgeplane/internal/catalog/catalogtest/objects"
	"github.com/forgeplane/forgeplane/internal/fair"
	"github.com/forgeplane/forgeplane/internal/pipeline"
	"github.com/forgeplane/forgeplane/internal/registry/record"
	"github.com/forgeplane/forgeplane/internal/registry/token"
)

func TestToken_allowsWhatRoleAndAccessLevelAllow(t *testing.T) {
	service := familytest.Project("acme", "service", 24, "team", v1alpha1.VisibilityPrivate)
	service.Spec.Features.ContainerRegistry = v1alpha1.FeatureEnabled
	shared := project("shared", 25, v1alpha1.VisibilityPrivate, v1alpha1.FeatureEnabled)
	shared.Spec.SharedWith = []v1alpha1.Share{{GroupRef: v1alpha1.Reference{Path: "bolt"}, Role: v1alpha1.RoleReporter}}
	w := newWorld(t, familytest.Group("acme", "team", 11, "acme", v1alpha1.VisibilityPrivate), service,
		familytest.Group("bolt", "bolt", 30, "", v1alpha1.VisibilityPrivate), familytest.InGroup("bolt", "bolt", "sue", v1alpha1.RoleOwner), shared)
	for _, c := range []struct{ username, repository, asked, granted string }{
		{"root", "acme/app", "pull,push,delete,*", "pull,push,delete,*"},
		{"mary", "acme/app", "pull,push,delete,*", "pull,push,delete,*"},
		{"mary", "acme/app/a/b", "pull,push", "pull,push"},
		{"mary", "acme/app/a/b/c", "pull,push", ""},
		{"mary", "acme", "pull,push", ""},
		{"dan", "acme/team/service", "pull,push", "pull,push"},
		{"dan", "acme/team/service/a/b", "pull,push", "pull,push"},
		{"dan", "acme/team", "pull,push", ""},
		{"mary", "acme/none", "pull,push", ""},
		{"dan", "acme/app", "pull,push,delete,*", "pull,push"},
		{"dan", "acme/app", "push,pull,push", "push,pull"},
		{"rita", "acme/app", "pull,push,delete", "pull"},
		{"gus", "acme/app", "pull,push", "pull"},
		{"sue", "acme/app", "pull,push", ""},
		{"sue", "acme/open", "pull,push", "pull"},
		{"sue", "acme/shared", "pull,push,delete", "pull"},
		{"gus", "acme/members", "pull", ""},
		{"rita", "acme/members", "pull", "pull"},
		{"root", "acme/off", "pull,push,delete,*", ""},
		{"mary", "acme/off", "pull", ""},
	} {
		t.Run(c.username+" "+c.repository+":"+c.asked, func(t *testing.T) {
			g := NewWithT(t)
			_, claims := w.bearer(t, c.username, "repository:"+c.repository+":"+c.asked)
			g.Expect(claims.Subject).To(Equal(c.username))
			if c.granted == "" {
				g.Expect(claims.Access).To(BeEmpty())
				return
			}
			g.Expect(claims.Access).To(HaveLen(1))
			g.Expect(strings.Join(claims.Access[0].Actions, ",")).To(Equal(c.granted))
		})
	}
}

func TestToken_grantsEachOfSeveralScopes(t *testing.T) {
	for name, scopes := range map[string][]string{
		"in parameters":    {"repository:acme/app:pull,push", "repository:acme/none:pull", "repository:acme/open:pull", "nonsense", "repository:acme/app"},
		"in one parameter": {"repository:acme/app:pull,push repository:acme/none:pull repository:acme/open:pull"},
	} {
		t.Run(name, func(t *testing.T) {
			g, w := NewWithT(t), newWorld(t)
			_, claims := w.bearer(t, "rita", scopes...)
			g.Expect(claims.Access).To(HaveLen(2))
			g.Expect(claims.Access[0]).To(HaveField("Actions", []string{"pull"}))
			g.Expect(*claims.Access[0].Meta).To(Equal(token.Meta{ProjectPath: "acme/app", ProjectID: 20, ProjectUID: claims.Access[0].Meta.ProjectUID, RootNamespaceID: 10}))
			g.Expect(claims.Access[1].Name).To(Equal("acme/open"))
		})
	}
}

func TestToken_ofJobAllowsWhatItsProjectAndJobTokenScopesAllow(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t, project("lib", 24, v1alpha1.VisibilityPrivate, v1alpha1.FeatureEnabled), project("closed", 25, v1alpha1.VisibilityPrivate, v1alpha1.FeatureEnabled),
		objects.JobTokenScope("acme", "lib", v1alpha1.Reference{Name: "lib"}, v1alpha1.Reference{Name: "app"}))
	const running, ended = pipeline.TokenPrefix + "running", pipeline.TokenPrefix + "ended"
	job := pipeline.Job{In: w.ProjectRow(20), User: w.UserRow("mary"), Status: pipeline.Running}
	w.jobs[running] = job
	job.Status = pipeline.Success
	w.jobs[ended] = job
	ask := func(value, repository string) (int, string) {
		return w.ask(t, "gitlab-ci-token", value, url.Values{"service": {token.Service}, "scope": {"repository:" + repository + ":pull,push,delete"}})
	}
	for repository, granted := range map[string]string{
		"acme/app": "pull,push,delete", "acme/lib": "pull", "acme/open": "pull", "acme/closed": "", "acme/none": "",
	} {
		status, body := ask(running, repository)
		g.Expect(status).To(Equal(http.StatusOK), body)
		var said struct{ Token string }
		g.Expect(json.Unmarshal([]byte(body), &said)).To(Succeed())
		claims, err := w.keys.Verify(said.Token)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(claims).To(And(HaveField("Type", "build"), HaveField("Subject", "mary")))
		var actions []string
		for _, a := range claims.Access {
			actions = a.Actions
		}
		g.Expect(strings.Join(actions, ",")).To(Equal(granted), repository)
	}
	for _, value := range []string{ended, pipeline.TokenPrefix + "unknown"} {
		status, body := ask(value, "acme/app")
		g.Expect(status).To(Equal(http.StatusUnauthorized), body)
	}

	_, body := ask(running, "acme/app")
	var said struct{ Token string }
	g.Expect(json.Unmarshal([]byte(body), &said)).To(Succeed())
	status, _, _ := w.do(t, said.Token, http.MethodGet, "/v2/acme/app/tags/list", nil, nil)
	g.Expect(status).To(Equal(http.StatusOK), "the grant of push has made the record")
	w.jobs[running] = job
	status, _, _ = w.do(t, said.Token, http.MethodGet, "/v2/acme/app/tags/list", nil, nil)
	g.Expect(status).To(Equal(http.StatusUnauthorized), "the job has ended")
}

func TestToken_ofJobIsAuditedIfItsScopeRefuses(t *testing.T) {
	w := newWorld(t, project("lib", 24, v1alpha1.VisibilityPrivate, v1alpha1.FeatureEnabled), project("closed", 25, v1alpha1.VisibilityPrivate, v1alpha1.FeatureEnabled),
		objects.JobTokenScope("acme", "lib", v1alpha1.Reference{Name: "lib"}, v1alpha1.Reference{Name: "app"}))
	const value = pipeline.TokenPrefix + "running"
	w.jobs[value] = pipeline.Job{ID: 7, In: w.ProjectRow(20), User: w.UserRow("dan"), Status: pipeline.Running}
	at := audit.At{Door: audit.Registry, Address: func(*http.Request) string { return "203.0.113.7" }, Writes: registryhttp.Writes, Reads: func(r *http.Request) bool {
		return auth.SignsInAsJob(r) || registryhttp.IsOfJob(r)
	}}
	serve := func(t *testing.T, h http.Handler, r *http.Request) (body string, lines []audit.Event) {
		t.Helper()
		log, answer := audittest.Open(t), httptest.NewRecorder()
		log.Handler(at, h).ServeHTTP(answer, r)
		return answer.Body.String(), log.Events()
	}
	ask := func(t *testing.T, scopes ...string) (body string, lines []audit.Event) {
		t.Helper()
		query := url.Values{"service": {token.Service}, "scope": scopes}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, registryhttp.TokenPath+"?"+query.Encode(), http.NoBody)
		r.SetBasicAuth("gitlab-ci-token", value)
		return serve(t, w.tokens, r)
	}
	refused := func(action, path string) gomegatypes.GomegaMatcher {
		return HaveExactElements(And(HaveField("Action", action), HaveField("Result", audit.Refused), HaveField("Job", int64(7)), HaveField("User.Username", "dan"),
			HaveField("About.Path", path), HaveField("Reason", "the job token scope of the project does not allow the project of the job")))
	}
	for name, tt := range map[string]struct {
		scopes []string
		about  string
	}{
		"its own project":                {[]string{"repository:acme/app:pull,push"}, ""},
		"its own project, beyond a role": {[]string{"repository:acme/app:delete"}, ""},
		"an allowed project":             {[]string{"repository:acme/lib:pull"}, ""},
		"a public project":               {[]string{"repository:acme/open:pull"}, ""},
		"no project":                     {[]string{"repository:acme/none:pull"}, ""},
		"another project":                {[]string{"repository:acme/app:pull", "repository:acme/closed:pull", "repository:acme/lib:pull"}, "acme/closed"},
		"a push to a public project":     {[]string{"repository:acme/open:pull,push"}, "acme/open"},
	} {
		t.Run(name, func(t *testing.T) {
			_, lines := ask(t, tt.scopes...)
			if tt.about == "" {
				NewWithT(t).Expect(lines).To(BeEmpty())
				return
			}
			NewWithT(t).Expect(lines).To(refused("issue token", tt.about))
		})
	}

	t.Run("after the token was issued", func(t *testing.T) {
		g := NewWithT(t)
		body, _ := ask(t, "repository:acme/lib:pull")
		var said struct{ Token string }
		g.Expect(json.Unmarshal([]byte(body), &said)).To(Succeed())
		var declared v1alpha1.JobTokenScope
		g.Expect(w.Client.Get(t.Context(), clientKey("acme", "lib"), &declared)).To(Succeed())
		g.Expect(w.Client.Delete(t.Context(), &declared)).To(Succeed())
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v2/acme/lib/tags/list", http.NoBody)
		r.Header.Set("Authorization", "Bearer "+said.Token)
		_, lines := serve(t, w.images, r)
		g.Expect(lines).To(refused("get image", "acme/lib"))
	})
}

func TestToken_allowsWhatScopeOfAccessTokenAllows(t *testing.T) {
	for scope, granted := range map[v1alpha1.TokenScope]string{
		v1alpha1.ScopeAPI: "pull,push,delete", v1alpha1.ScopeReadRegistry: "pull", v1alpha1.ScopeWriteRegistry: "pull,push,delete", v1alpha1.ScopeReadAPI: "",
	} {
		t.Run(string(scope), func(t *testing.T) {
			g, w := NewWithT(t), newWorld(t)
			w.scopes(t, "mary", scope)
			query := url.Values{"service": {token.Service}, "scope": {"repository:acme/app:pull,push,delete"}}
			status, body := w.ask(t, "mary", familytest.Value("mary"), query)
			if granted == "" {
				g.Expect(status).To(Equal(http.StatusForbidden), body)
				return
			}
			_, claims := w.bearer(t, "mary", query["scope"]...)
			g.Expect(strings.Join(claims.Access[0].Actions, ",")).To(Equal(granted))
		})
	}
}

// scopes changes the scopes of the token of a user.
func (w *world) scopes(t *testing.T, username string, scopes ...v1alpha1.TokenScope) {
	t.Helper()
	var all v1alpha1.AccessTokenList
	if err := w.Client.List(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	for i := range all.Items {
		if item := &all.Items[i]; strings.Contains(item.Name, username) {
			item.Spec.Scopes = scopes
			if err := w.Client.Update(t.Context(), item); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatalf("%s has no token", username)
}

func TestToken_givesCatalogToAdministratorsWhoAskExactly(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	w.push(t, "acme/open/b:1")
	w.push(t, "acme/app:1")
	w.push(t, "acme/open/a:1")
	for _, asked := range []struct{ username, scope string }{{"mary", "registry:catalog:*"}, {"root", "registry:catalog:pull"}, {"root", "registry:other:*"}, {"root", "registry:catalog:*,pull"}} {
		_, claims := w.bearer(t, asked.username, asked.scope)
		g.Expect(claims.Access).To(BeEmpty(), asked.scope)
	}
	bearer, _ := w.bearer(t, "root", "registry:catalog:*")
	_, _, body := w.do(t, bearer, http.MethodGet, "/v2/_catalog", nil, nil)
	g.Expect(body).To(MatchJSON(`{"repositories":["acme/app","acme/open/a","acme/open/b"]}`))
	_, header, body := w.do(t, bearer, http.MethodGet, "/v2/_catalog?n=2", nil, nil)
	g.Expect(body).To(MatchJSON(`{"repositories":["acme/app","acme/open/a"]}`))
	g.Expect(header.Get("Link")).To(Equal(`</v2/_catalog?last=acme%2Fopen%2Fa&n=2>; rel="next"`))
	_, header, body = w.do(t, bearer, http.MethodGet, "/v2/_catalog?n=2&last=acme%2Fopen%2Fa", nil, nil)
	g.Expect(body).To(MatchJSON(`{"repositories":["acme/open/b"]}`))
	g.Expect(header.Get("Link")).To(BeEmpty())
	status, header, _ := w.do(t, "", http.MethodGet, "/v2/_catalog", nil, nil)
	g.Expect(status).To(Equal(http.StatusUnauthorized))
	g.Expect(header.Get("Www-Authenticate")).To(ContainSubstring(`scope="registry:catalog:*"`))
}

func TestToken_refusesWithBodiesOfReference(t *testing.T) {
	w := newWorld(t)
	query := func(service string, scopes ...string) url.Values {
		return url.Values{"service": {service}, "scope": scopes}
	}
	const denied = `{"errors":[{"code":"DENIED","message":"access forbidden"}],"http_status":403}`
	for name, c := range map[string]struct {
		username, password string
		query              url.Values
		status             int
		body               string
	}{
		"unknown service":         {"mary", familytest.Value("mary"), query("other"), http.StatusNotFound, ""},
		"no service":              {"mary", familytest.Value("mary"), url.Values{}, http.StatusNotFound, ""},
		"wrong password":          {"mary", "wrong", query(token.Service), http.StatusUnauthorized, `{"errors":[{"code":"UNAUTHORIZED","message":"HTTP Basic: Access denied. Sign in with your username, and as password an access token with the scope read_registry, write_registry or api."}]}`},
		"blocked user":            {"bill", familytest.Value("bill"), query(token.Service), http.StatusForbidden, denied},
		"anonymous without scope": {"", "", query(token.Service), http.StatusForbidden, denied},
		"anonymous, all denied":   {"", "", query(token.Service, "repository:acme/app:pull"), http.StatusForbidden, denied},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			status, body := w.ask(t, c.username, c.password, c.query)
			g.Expect(status).To(Equal(c.status), body)
			if c.body == "" {
				g.Expect(body).To(BeEmpty())
				return
			}
			g.Expect(body).To(MatchJSON(c.body))
		})
	}
}

func TestToken_countsTowardLimitsOfGit(t *testing.T) {
	for name, c := range map[string]struct {
		username, password string
		allowed, status    int
	}{
		"user":           {"mary", familytest.Value("mary"), 3, http.StatusOK},
		"anonymous":      {"", "", 2, http.StatusOK},
		"wrong password": {"mary", "wrong", 1, http.StatusUnauthorized},
	} {
		t.Run(name, func(t *testing.T) {
			g, w := NewWithT(t), newWorld(t)
			limits := ratelimit.Options{GitAuthenticated: 3, GitUnauthenticated: 2, FailedSignIns: 1, Clock: w.clock}
			w.server.Config.Handler = ratelimit.New(limits).Handler(w.server.Config.Handler)
			query := url.Values{"service": {token.Service}, "scope": {"repository:acme/open:pull"}}
			for range c.allowed {
				status, body := w.ask(t, c.username, c.password, query)
				g.Expect(status).To(Equal(c.status), body)
			}
			status, body := w.ask(t, c.username, c.password, query)
			g.Expect(status).To(Equal(http.StatusTooManyRequests))
			g.Expect(body).To(ContainSubstring(`"TOOMANYREQUESTS"`))
		})
	}
}

func TestSlots_refuseCallerWhoUsesFullShare(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	query := url.Values{"service": {token.Service}, "scope": {"repository:acme/app:pull"}}
	status := func(who string) int {
		status, _ := w.ask(t, who, familytest.Value(who), query)
		return status
	}
	mary, _ := w.bearer(t, "mary", "repository:acme/app:pull")
	for _, s := range []*fair.Slots{w.tokens.Slots(), w.images.Slots()} {
		held := s.Try(fair.With(t.Context(), fair.User(2)), registryhttp.DefaultSlots().Share)
		g.Expect(held).NotTo(BeNil())
		t.Cleanup(held.Leave)
	}
	g.Expect(status("mary")).To(Equal(http.StatusTooManyRequests))
	g.Expect(status("dan")).To(Equal(http.StatusOK), "others have their own")
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.server.URL+"/v2/acme/app/tags/list", http.NoBody)
	g.Expect(err).NotTo(HaveOccurred())
	r.Header.Set("Authorization", "Bearer "+mary)
	answer, err := http.DefaultClient.Do(r)
	g.Expect(err).NotTo(HaveOccurred())
	defer answer.Body.Close()
	g.Expect(answer).To(HaveHTTPStatus(http.StatusTooManyRequests))
	g.Expect(answer.Header.Get("Retry-After")).NotTo(BeEmpty())
}

func TestToken_recordsRepositoryOfGrantedPush(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	find := func(image string) error {
		var p v1alpha1.Project
		g.Expect(w.Client.Get(t.Context(), clientKey("acme", "app"), &p)).To(Succeed())
		_, err := w.records.Find(t.Context(), p.UID, image)
		return err
	}
	w.bearer(t, "rita", "repository:acme/app/web:pull,push")
	g.Expect(find("web")).To(MatchError(record.ErrNotFound))
	w.bearer(t, "dan", "repository:acme/app/web:pull,push")
	g.Expect(find("web")).To(Succeed())
}
