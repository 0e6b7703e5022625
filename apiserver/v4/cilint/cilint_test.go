package cilint_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/ratelimit"
	. "github.com/forgeplane/forgeplane/apiserver/v4/cilint"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
)

// newForge returns a forge with the projects web, shared and hidden, each with files for CI, and empty and the public open, without a commit.
// Dora is a Developer of the group acme, and rita a Reporter.
func newForge(t *testing.T) (f *familytest.Forge, head string) {
	t.Helper()
	project := func(name string, id int64) *v1alpha1.Project {
		return familytest.Project("acme", name, id, "acme", v1alpha1.VisibilityPrivate)
	}
	web, shared, empty := project("web", 20), project("shared", 21), project("empty", 23)
	open := familytest.Project("acme", "open", 24, "acme", v1alpha1.VisibilityPublic)
	hidden := familytest.Project("other", "hidden", 22, "other", v1alpha1.VisibilityPrivate)
	f = familytest.New(t,
		familytest.User("dora", 2), familytest.User("rita", 3), familytest.User("otto", 4),
		familytest.Group("acme", "acme", 10, "", v1alpha1.VisibilityPublic), familytest.Group("other", "other", 11, "", v1alpha1.VisibilityPrivate),
		familytest.InGroup("acme", "acme", "dora", v1alpha1.RoleDeveloper), familytest.InGroup("acme", "acme", "rita", v1alpha1.RoleReporter),
		familytest.Shard(t, web, shared, hidden, empty, open), web, shared, hidden, empty, open)
	repos := familytest.Repositories(t, f.Catalog)
	c := gittest.New(t, "sha1")
	c.Commit(t, "ci/build.yml", ".base: {script: make}\n")
	c.Git(t, "branch", "bare")
	c.Commit(t, ".gitlab-ci.yml", "include: ci/build.yml\nold: {extends: .base}\n")
	c.Git(t, "branch", "old")
	c.Commit(t, ".forgeplane-ci.yml", "include: /ci/build.yml\nbuild: {extends: .base, stage: build}\nrelease:\n  script: make release\n"+
		"  rules: [{if: $CI_COMMIT_TAG}]\n  needs: [build]\n")
	c.Git(t, "tag", "v1")
	head = c.Git(t, "rev-parse", "HEAD")
	familytest.Push(t, repos, web, c)
	familytest.Push(t, repos, shared, c)
	familytest.Push(t, repos, hidden, c)
	familytest.Init(t, repos, empty, "sha1")
	f.Repositories = repos
	f.Serve(New(f.Kit).Table())
	return f, head
}

// posted is a body with a configuration.
func posted(content, more string) string {
	text, _ := json.Marshal(content)
	return fmt.Sprintf(`{"content":%s%s}`, text, more)
}

func names(r Result) (all []string) {
	if r.Jobs != nil {
		for _, j := range *r.Jobs {
			all = append(all, j.Name)
		}
	}
	return all
}

func TestProject_isChecked(t *testing.T) {
	f, _ := newForge(t)
	for query, want := range map[string]string{
		"":                                      "",
		"include_jobs=true":                     "build release",
		"include_jobs=true&dry_run=true":        "build",
		"include_jobs=true&dry_run=true&ref=v1": "build release",
		"include_jobs=true&content_ref=old":     "old",
		"include_jobs=true&sha=old":             "old",
	} {
		answer := f.As("rita", "GET /projects/20/ci/lint?"+query, "")
		r := familytest.Decode[Result](t, answer)
		if got := strings.Join(names(r), " "); answer.Code != 200 || !r.Valid || got != want || len(r.Includes) != 1 {
			t.Errorf("%s: got %s, want the jobs %q", query, answer, want)
		}
	}
	for query, want := range map[string]string{
		"content_ref=none":          `404 {"message":"404 Commit Not Found"}`,
		"content_ref=main&sha=main": `400 {"error":"content_ref, sha are mutually exclusive"}`,
		"dry_run_ref=main&ref=main": `400 {"error":"dry_run_ref, ref are mutually exclusive"}`,
		"dry_run=true&ref=none":     `200 {"valid":false,"errors":["Reference not found"],"warnings":[],"merged_yaml":null,"includes":[]}`,
		"content_ref=bare":          `200 {"valid":false,"errors":["The project has no CI configuration: there is no file .forgeplane-ci.yml or .gitlab-ci.yml"],"warnings":[],"merged_yaml":null,"includes":[]}`,
	} {
		if got := f.As("rita", "GET /projects/20/ci/lint?"+query, "").String(); got != want {
			t.Errorf("%s: got %s, want %s", query, got, want)
		}
	}
	if got := f.As("rita", "GET /projects/23/ci/lint", "").String(); got != `404 {"message":"404 Repository Not Found"}` {
		t.Errorf("without a commit: got %s", got)
	}
}

func TestProject_needsUser(t *testing.T) {
	f, _ := newForge(t)
	for id, want := range map[int]string{20: `404 {"message":"404 Project Not Found"}`, 24: `401 {"message":"401 Unauthorized"}`} {
		if got := f.As("", fmt.Sprintf("GET /projects/%d/ci/lint", id), "").String(); got != want {
			t.Errorf("%d: got %s, want %s", id, got, want)
		}
	}
}

func TestContent_showsNoLargeResults(t *testing.T) {
	f, _ := newForge(t)
	for body, want := range map[string]string{
		posted(".a: "+strings.Repeat("[", 45)+strings.Repeat("x,", 90_000)+strings.Repeat("]", 45)+"\na: {script: x}", ""): `{"valid":true,"errors":[],"warnings":[".forgeplane-ci.yml: the merged configuration is larger than 8388608 bytes, so it is not shown"],"merged_yaml":null`,
		posted("a: {parallel: 200, script: ["+strings.Repeat("x,", 20_000)+"]}", `,"include_jobs":true,"dry_run":true`):    `"jobs":[]`,
	} {
		if got := f.As("dora", "POST /projects/20/ci/lint", body).String(); !strings.Contains(got, want) {
			t.Errorf("%.100s: got %.1000s, want %s", body, got, want)
		}
	}
}

func TestChecks_areRateLimited(t *testing.T) {
	f, _ := newForge(t)
	limited := ratelimit.New(ratelimit.Options{Endpoints: true, Costly: map[string]int{"ci_lint": 2}, Clock: f.Clock}).Handler(f)
	for _, ask := range []struct {
		user, request string
		want          int
	}{
		{"dora", "GET /projects/20/ci/lint", 200}, {"dora", "POST /projects/20/ci/lint", 200}, {"dora", "GET /projects/20/ci/lint", 429},
		{"dora", "POST /projects/20/ci/lint", 429}, {"rita", "GET /projects/20/ci/lint", 200}, {"dora", "GET /projects/21/ci/lint", 200},
	} {
		method, target, _ := strings.Cut(ask.request, " ")
		r := httptest.NewRequestWithContext(t.Context(), method, target, strings.NewReader(posted("test: {script: make}", "")))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("PRIVATE-TOKEN", familytest.Value(ask.user))
		w := httptest.NewRecorder()
		if limited.ServeHTTP(w, r); w.Code != ask.want {
			t.Errorf("%s as %s: got %d %s, want %d", ask.request, ask.user, w.Code, w.Body, ask.want)
		}
	}
}

func TestContent_isChecked(t *testing.T) {
	f, head := newForge(t)
	answer := f.As("dora", "POST /projects/20/ci/lint", posted("include: {local: ci/build.yml}\ntest:\n  extends: .base\n  when: manual\n  tags: [x]\n", `,"include_jobs":true`))
	want := `200 {"valid":true,"errors":[],"warnings":[],"merged_yaml":"---\n.base:\n    script: make\ntest:\n    script: make\n    when: manual\n    tags:\n        - x\n",` +
		`"includes":[{"type":"local","location":"ci/build.yml","blob":"` + f.WebURL + `/acme/web/-/blob/` + head + `/ci/build.yml","raw":"` + f.WebURL +
		`/acme/web/-/raw/` + head + `/ci/build.yml","extra":{},"context_project":"acme/web","context_sha":"` + head + `"}],` +
		`"jobs":[{"name":"test","stage":"test","before_script":[],"script":["make"],"after_script":[],"tag_list":["x"],"only":{"refs":["branches","tags"]},` +
		`"except":null,"environment":null,"when":"manual","allow_failure":true,"needs":null}]}`
	if got := answer.String(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for body, want := range map[string]string{
		`{}`: `400 {"error":"content is missing"}`,
		posted("test: {script: make, colour: red}", `,"include_jobs":true`):                         `.forgeplane-ci.yml:1: test:colour: unknown keyword`,
		posted("b: {script: make, stage: deploy}\na: {script: make}", `,"include_jobs":true`):       `"jobs":[{"name":"a","stage":"test"`,
		posted("a: {script: make, rules: [{if: $CI}, {when: always}]}", ""):                         `"warnings":[".forgeplane-ci.yml:1: a:rules: `,
		posted("test: {script: make, only: [tags]}", `,"dry_run":true`):                             `Pipeline will not run for the selected trigger. The rules configuration prevented any jobs from being added to the pipeline.`,
		posted("test: {script: make}", `,"dry_run":true,"ref":"none"`):                              `"errors":["Reference not found"]`,
		posted("a: {script: make, needs: [b]}\nb: {script: make, only: [tags]}", `,"dry_run":true`): `"errors":[".forgeplane-ci.yml:1: a:needs: the job needs \"b\", which is not in this pipeline; it could be optional"]`,
	} {
		if got := f.As("dora", "POST /projects/20/ci/lint", body).String(); !strings.Contains(got, want) {
			t.Errorf("%s: got %s, want %s", body, got, want)
		}
	}
	if got := f.As("dora", "POST /projects/23/ci/lint", posted("test: {script: make}", "")).String(); !strings.Contains(got, `"valid":true`) {
		t.Errorf("without a commit: got %s", got)
	}
}

func TestContent_includesOnlyReadableProjects(t *testing.T) {
	f, _ := newForge(t)
	body := func(project, ref string) string {
		return posted(fmt.Sprintf("include: {project: %s, file: ci/build.yml%s}\ntest: {extends: .base}", project, ref), "")
	}
	r := familytest.Decode[Result](t, f.As("dora", "POST /projects/20/ci/lint", body("acme/shared", ", ref: bare")))
	if !r.Valid || len(r.Includes) != 1 || r.Includes[0].Type != "file" || r.Includes[0].Extra != (IncludeExtra{"acme/shared", "bare"}) {
		t.Errorf("got %+v", r)
	}
	for _, missing := range []string{"other/hidden", "other/none"} {
		want := `there is no project \"` + missing + `\" with the ref \"HEAD\", or you cannot read its code`
		if got := f.As("dora", "POST /projects/20/ci/lint", body(missing, "")).String(); !strings.Contains(got, want) {
			t.Errorf("%s: got %s", missing, got)
		}
	}
}
