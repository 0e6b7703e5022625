package runnerjobs_test

import (
	"encoding/json"
	"fmt"
	"hash/crc32"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/item"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/apiserver/v4/pipelines"
	"github.com/forgeplane/forgeplane/apiserver/v4/runnerjobs"
	"github.com/forgeplane/forgeplane/apiserver/v4/runners"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/internal/pipeline"
	"github.com/forgeplane/forgeplane/internal/runner"
)

const configuration = `
default: {image: alpine, before_script: [prepare]}
variables: {LEVEL: global, PLAIN: {value: $HOME, expand: false}}
build:
  stage: build
  tags: [linux]
  script: [make, make install]
  after_script: [clean]
  variables: {LEVEL: job}
  timeout: 10m
  services: [{name: postgres, alias: db, variables: {A: b}}]
  cache: {key: deps, paths: [vendor]}
  hooks: {pre_get_sources_script: [first]}
flaky: {stage: build, script: x, retry: {max: 1, when: script_failure}, allow_failure: {exit_codes: 7}}
test: {script: make test}
`

// world is a forge with the private project web in the group acme. Dora is a Developer.
type world struct {
	*familytest.Forge
	t   *testing.T
	g   *WithT
	sha string
}

func newWorld(t *testing.T) world {
	t.Helper()
	return newWorldWith(t, configuration)
}

// newWorldWith returns a world whose project has a CI configuration.
func newWorldWith(t *testing.T, configuration string) world {
	t.Helper()
	web := familytest.Project("acme", "web", 20, "acme", v1alpha1.VisibilityPrivate)
	f := familytest.New(t,
		familytest.User("root", 1, familytest.Admin), familytest.User("mary", 2), familytest.User("dora", 3),
		familytest.Group("acme", "acme", 10, "", v1alpha1.VisibilityPrivate), familytest.Group("acme", "other", 11, "", v1alpha1.VisibilityPrivate),
		familytest.InGroup("acme", "acme", "mary", v1alpha1.RoleMaintainer), familytest.InGroup("acme", "acme", "dora", v1alpha1.RoleDeveloper),
		familytest.Shard(t, web), web, familytest.Project("acme", "app", 21, "acme", v1alpha1.VisibilityPrivate),
	)
	repos := familytest.Repositories(t, f.Catalog)
	f.Activity = familytest.Activity(t, f.Clock)
	f.Keep(repos)
	c := gittest.New(t, "sha1")
	c.Commit(t, ".gitlab-ci.yml", configuration)
	familytest.Push(t, repos, web, c)
	f.Authenticator.Executing(f.Activity.Runners, f.Activity.Pipelines)
	w := world{f, t, NewWithT(t), c.Git(t, "rev-parse", "HEAD")}
	w.serve()
	return w
}

func (w world) serve() {
	w.Serve(pipelines.New(w.Kit).Table(), runnerjobs.New(w.Kit).Table(), runners.New(w.Kit).Table())
}

func (w world) Expect(actual any, extra ...any) Assertion {
	w.t.Helper()
	return w.g.Expect(actual, extra...)
}

// create creates a pipeline as dora, and returns its id.
func (w world) create() int64 {
	w.t.Helper()
	a := w.As("dora", "POST /projects/20/pipeline", `{"ref":"main","variables":[{"key":"GIVEN","value":"yes"}]}`)
	w.Expect(a.Code).To(Equal(201), a.Body)
	return familytest.Decode[pipelines.Detailed](w.t, a).ID
}

// runner creates a runner and returns its token.
func (w world) runner(r runner.Runner, places ...database.Subject) string {
	w.t.Helper()
	if r.Tags == nil {
		r.Tags = []string{}
	}
	token := runner.NewToken()
	w.Expect(w.Activity.Runners.Create(w.t.Context(), &r, token, places...)).To(Succeed())
	return token
}

// ask requests a job with the token of a runner. It returns nil if no job is available.
func (w world) ask(token string) *runnerjobs.Job {
	w.t.Helper()
	a := w.As("", "POST /jobs/request", fmt.Sprintf(`{"token":%q,"info":{"name":"gitlab-runner","version":"18.0","features":{"variables":true}}}`, token))
	if a.Code == http.StatusNoContent {
		return nil
	}
	w.Expect(a.Code).To(Equal(201), a.Body)
	j := familytest.Decode[runnerjobs.Job](w.t, a)
	return &j
}

// send sends a request with a job token in a header.
func (w world) send(token, method, target, body string, header ...string) *httptest.ResponseRecorder {
	w.t.Helper()
	r := httptest.NewRequestWithContext(w.t.Context(), method, target, strings.NewReader(body))
	r.Header.Set("JOB-TOKEN", token)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	answer := httptest.NewRecorder()
	w.ServeHTTP(answer, r)
	return answer
}

// write adds to the log of a job.
func (w world) write(j *runnerjobs.Job, at int, text string) *httptest.ResponseRecorder {
	w.t.Helper()
	return w.send(j.Token, "PATCH", fmt.Sprintf("/jobs/%d/trace", j.ID), text, "Content-Type", "text/plain", "Content-Range", fmt.Sprintf("%d-%d", at, at+len(text)-1))
}

// end reports the result of a job.
func (w world) end(j *runnerjobs.Job, state, more string) *httptest.ResponseRecorder {
	w.t.Helper()
	return w.send(j.Token, "PUT", fmt.Sprintf("/jobs/%d", j.ID), fmt.Sprintf(`{"token":%q,"state":%q%s}`, j.Token, state, more), "Content-Type", "application/json")
}

// statuses returns the names and statuses of the jobs of a pipeline that were not retried.
func (w world) statuses(id int64) map[string]pipeline.Status {
	w.t.Helper()
	all := map[string]pipeline.Status{}
	for _, j := range familytest.Decode[[]pipelines.Job](w.t, w.As("dora", fmt.Sprintf("GET /projects/20/pipelines/%d/jobs", id), "")) {
		all[j.Name] = j.Status
	}
	return all
}

func TestRequest_describesJob(t *testing.T) {
	w := newWorld(t)
	id := w.create()
	token := w.runner(runner.Runner{Type: runner.OfInstance, Description: "Builder", Tags: []string{"arm", "linux"}, MaximumTimeout: time.Hour})
	j := w.ask(token)
	w.Expect(j.Info).To(Equal(runnerjobs.JobInfo{ID: j.ID, Name: "build", Stage: "build", ProjectID: 20, ProjectName: "web"}))
	w.Expect(j.Git).To(Equal(runnerjobs.GitInfo{
		RepoURL: strings.Replace(w.WebURL, "://", "://gitlab-ci-token:"+j.Token+"@", 1) + "/acme/web.git", Ref: "main", SHA: w.sha, BeforeSHA: strings.Repeat("0", 40),
		RefType: "branch", Depth: 20, Format: "sha1", Refspecs: []string{fmt.Sprintf("+%s:refs/pipelines/%d", w.sha, id), "+refs/heads/main:refs/remotes/origin/main"},
	}))
	w.Expect(j.Runner.Timeout).To(BeEquivalentTo(600))
	w.Expect(j.Steps).To(Equal([]runnerjobs.Step{
		{Name: "script", Script: []string{"prepare", "make", "make install"}, Timeout: 600, When: "on_success"},
		{Name: "after_script", Script: []string{"clean"}, Timeout: 600, When: "always", AllowFailure: true},
	}))
	w.Expect(j.Hooks).To(Equal([]runnerjobs.Hook{{Name: "pre_get_sources_script", Script: []string{"first"}}}))
	w.Expect(j.Image).To(HaveField("Name", "alpine"))
	w.Expect(j.Services).To(HaveExactElements(And(HaveField("Name", "postgres"), HaveField("Alias", "db"))))
	w.Expect(j.Cache).To(HaveExactElements(And(HaveField("Key", "deps-non_protected"), HaveField("Paths", []string{"vendor"}), HaveField("Policy", "pull-push"))))
	variables := map[string]string{}
	for _, v := range j.Variables {
		variables[v.Key] = fmt.Sprint(v.Value, " ", v.Public, v.Masked, v.Raw)
	}
	w.Expect(variables).To(And(
		HaveKeyWithValue("LEVEL", "job true false false"), HaveKeyWithValue("PLAIN", "$HOME true false true"), HaveKeyWithValue("GIVEN", "yes false false false"),
		HaveKeyWithValue("CI_JOB_TOKEN", j.Token+" false true true"), HaveKeyWithValue("CI_JOB_ID", fmt.Sprint(j.ID, " true false true")),
		HaveKeyWithValue("CI_PROJECT_PATH", "acme/web true false true"), HaveKeyWithValue("CI_COMMIT_SHA", w.sha+" true false true"),
		HaveKeyWithValue("GITLAB_USER_LOGIN", "dora true false true"), HaveKeyWithValue("CI_RUNNER_TAGS", `["arm" "linux"] true false true`)))
	w.Expect(variables).To(HaveLen(len(j.Variables)), "each key comes once")
	w.Expect(w.As("dora", fmt.Sprintf("GET /projects/20/jobs/%d", j.ID), "").Body).To(And(
		ContainSubstring(`"status":"running"`), ContainSubstring(`"description":"Builder"`), Not(ContainSubstring(j.Token))))
}

func TestRequest_givesJobsOnlyToRunnersThatSuit(t *testing.T) {
	w := newWorld(t)
	w.create()
	web, app := w.ProjectRow(20), w.ProjectRow(21)
	group := func(name string, id int64) database.Subject {
		found, err := w.Guard.Group(t.Context(), fmt.Sprint(id))
		w.Expect(err).NotTo(HaveOccurred(), name)
		return item.Place(found)
	}
	for name, token := range map[string]string{
		"without the tag":    w.runner(runner.Runner{Type: runner.OfInstance, Tags: []string{"arm"}}),
		"paused":             w.runner(runner.Runner{Type: runner.OfInstance, RunUntagged: true, Paused: true}),
		"protected":          w.runner(runner.Runner{Type: runner.OfInstance, RunUntagged: true, Protected: true}),
		"of another project": w.runner(runner.Runner{Type: runner.OfProject, RunUntagged: true}, app),
		"of no project":      w.runner(runner.Runner{Type: runner.OfProject, RunUntagged: true}),
		"of another group":   w.runner(runner.Runner{Type: runner.OfGroup, RunUntagged: true}, group("other", 11)),
	} {
		w.Expect(w.ask(token)).To(BeNil(), name)
	}
	w.Expect(w.ask(w.runner(runner.Runner{Type: runner.OfProject, RunUntagged: true}, app, web)).Info.Name).To(Equal("flaky"), "build has a tag")
	w.Expect(w.ask(w.runner(runner.Runner{Type: runner.OfGroup, Tags: []string{"linux"}}, group("acme", 10))).Info.Name).To(Equal("build"))
	w.Expect(w.As("", "POST /jobs/request", `{"token":"unknown"}`).String()).To(HavePrefix(`403 {"message":"403 Forbidden"`))
	w.Expect(w.As("root", "POST /jobs/request", `{}`).String()).To(HavePrefix(`400 {"error":"token is missing"`))
}

func TestRequest_waitsIfTheRunnerKnowsTheQueue(t *testing.T) {
	w := newWorld(t)
	token := w.runner(runner.Runner{Type: runner.OfInstance, RunUntagged: true})
	a := w.As("", "POST /jobs/request", fmt.Sprintf(`{"token":%q}`, token))
	w.Expect(a.Code).To(Equal(204))
	known := a.Header.Get("X-Gitlab-Last-Update")
	w.Expect(known).To(And(Not(BeEmpty()), Equal(strings.TrimSpace(known))), "a header loses spaces around its value")
	got := make(chan familytest.Answer, 1)
	go func() {
		got <- w.As("", "POST /jobs/request", fmt.Sprintf(`{"token":%q,"last_update":%q}`, token, known))
	}()
	w.g.Consistently(got, "200ms").ShouldNot(Receive())
	w.create()
	w.Clock.SetTime(w.Clock.Now().Add(time.Minute))
	var answer familytest.Answer
	w.g.Eventually(got).Should(Receive(&answer))
	w.Expect(answer.Code).To(Equal(201), answer.Body)
}

func TestRequest_seesChangesOfTheRunner(t *testing.T) {
	w := newWorld(t)
	w.create()
	r := runner.Runner{Type: runner.OfProject, Tags: []string{"linux"}, Paused: true}
	token := runner.NewToken()
	w.Expect(w.Activity.Runners.Create(t.Context(), &r, token, w.ProjectRow(21))).To(Succeed())
	known := ""
	ask := func() int {
		t.Helper()
		w.Clock.SetTime(w.Clock.Now().Add(time.Minute))
		a := w.As("", "POST /jobs/request", fmt.Sprintf(`{"token":%q,"last_update":%q}`, token, known))
		known = a.Header.Get("X-Gitlab-Last-Update")
		return a.Code
	}
	w.Expect(ask()).To(Equal(204))
	w.Expect(w.As("mary", "PUT /runners/1", `{"paused":false}`).Code).To(Equal(200))
	w.Expect(ask()).To(Equal(204), "it is a runner of another project")
	w.Expect(w.As("mary", "POST /projects/20/runners", `{"runner_id":1}`).Code).To(Equal(201))
	w.Expect(ask()).To(Equal(201))
}

func TestRequest_asksAgainAfterAFailure(t *testing.T) {
	w := newWorld(t)
	w.create()
	token := w.runner(runner.Runner{Type: runner.OfInstance, Tags: []string{"linux"}})
	ask := func(known string) familytest.Answer {
		t.Helper()
		return w.As("", "POST /jobs/request", fmt.Sprintf(`{"token":%q,"last_update":%q}`, token, known))
	}
	var shard v1alpha1.RepositoryStorage
	w.Expect(w.Client.Get(t.Context(), client.ObjectKey{Name: "shard"}, &shard)).To(Succeed())
	path := shard.Spec.Path
	w.Expect(os.Rename(path, path+".away")).To(Succeed())
	failed := ask("")
	w.Expect(failed.Code).To(Equal(204))
	w.Expect(os.Rename(path+".away", path)).To(Succeed())
	w.Expect(ask(failed.Header.Get("X-Gitlab-Last-Update")).Code).To(Equal(201))
}

func TestRequest_doesNotWaitAfterAJob(t *testing.T) {
	w := newWorldWith(t, "test: {parallel: 3, script: x}\n")
	w.create()
	token, known := w.runner(runner.Runner{Type: runner.OfInstance, RunUntagged: true}), ""
	for range 3 {
		a := w.As("", "POST /jobs/request", fmt.Sprintf(`{"token":%q,"last_update":%q}`, token, known))
		w.Expect(a.Code).To(Equal(201), a.Body)
		known = a.Header.Get("X-Gitlab-Last-Update")
		w.Expect(known).To(BeEmpty(), "runners send it back, and the queue has not changed for a second")
	}
}

func TestRequest_givesEachJobToOneOfManyRunners(t *testing.T) {
	w := newWorldWith(t, "test: {parallel: 20, script: x}\n")
	w.create()
	answers := make(chan familytest.Answer)
	for range 30 {
		token := w.runner(runner.Runner{Type: runner.OfInstance, RunUntagged: true})
		go func() { answers <- w.As("", "POST /jobs/request", fmt.Sprintf(`{"token":%q}`, token)) }()
	}
	given := map[int64]bool{}
	for range 30 {
		if a := <-answers; a.Code == http.StatusCreated {
			given[familytest.Decode[runnerjobs.Job](w.t, a).ID] = true
		} else {
			w.Expect(a.Code).To(Equal(204), a.Body)
		}
	}
	w.Expect(given).To(HaveLen(20))
}

func TestTrace_isStoredPieceByPiece(t *testing.T) {
	w := newWorld(t)
	w.create()
	j := w.ask(w.runner(runner.Runner{Type: runner.OfInstance, Tags: []string{"linux"}}))
	first := w.write(j, 0, "Hello, ")
	w.Expect(first.Code).To(Equal(202), first.Body.String())
	w.Expect(first.Header()).To(And(HaveKeyWithValue("Range", []string{"0-7"}), HaveKeyWithValue("Job-Status", []string{"running"}), HaveKey("X-Gitlab-Trace-Update-Interval")))
	again := w.write(j, 0, "Hello, ")
	w.Expect(again.Code).To(Equal(416), "the runner sends what the server has")
	w.Expect(again.Header()).To(HaveKeyWithValue("Range", []string{"0-7"}))
	w.Expect(w.write(j, 7, "world\n").Code).To(Equal(202))
	read := w.As("dora", fmt.Sprintf("GET /projects/20/jobs/%d/trace", j.ID), "")
	w.Expect(read.Body).To(Equal("Hello, world\n"))
	w.Expect(read.Header.Get("Content-Type")).To(Equal("text/plain; charset=utf-8"))

	result := fmt.Sprintf(`,"output":{"checksum":"crc32:%08x","bytesize":14}`, crc32.ChecksumIEEE([]byte("Hello, world\n!")))
	w.Expect(w.end(j, "success", result).Code).To(Equal(412), "a byte is missing")
	w.Expect(w.write(j, 13, "?").Code).To(Equal(202))
	w.Expect(w.end(j, "success", result).Code).To(Equal(412), "a byte is wrong")
	w.Expect(w.write(j, 0, "Hello, world\n!").Code).To(Equal(202), "the runner sends everything again")
	w.Expect(w.end(j, "success", result).Code).To(Equal(200))
	late := w.write(j, 14, "late")
	w.Expect(late.Code).To(Equal(403))
	w.Expect(late.Header()).To(HaveKeyWithValue("Job-Status", []string{"success"}))
	w.Expect(w.As("mary", fmt.Sprintf("POST /projects/20/jobs/%d/erase", j.ID), "").Code).To(Equal(201))
	w.Expect(w.As("dora", fmt.Sprintf("GET /projects/20/jobs/%d/trace", j.ID), "").String()).To(Equal("200"))
}

func TestUpdate_endsJobs(t *testing.T) {
	w := newWorld(t)
	id := w.create()
	token := w.runner(runner.Runner{Type: runner.OfInstance, RunUntagged: true, Tags: []string{"linux"}})
	build, flaky := w.ask(token), w.ask(token)
	w.Expect([]string{build.Info.Name, flaky.Info.Name}).To(Equal([]string{"build", "flaky"}))
	w.Expect(w.ask(token)).To(BeNil(), "test waits")
	w.Expect(w.end(build, "running", "").Code).To(Equal(200))
	w.Expect(w.end(build, "success", "").Code).To(Equal(200))
	w.Expect(w.end(build, "success", "").Code).To(Equal(403), "it has ended")
	w.Expect(w.send(build.Token, "PUT", fmt.Sprintf("/jobs/%d", flaky.ID), `{"state":"success"}`, "Content-Type", "application/json").Code).To(Equal(403), "the token of another job")

	w.Expect(w.end(flaky, "failed", `,"failure_reason":"script_failure","exit_code":1`).Code).To(Equal(200))
	w.Expect(w.statuses(id)).To(Equal(map[string]pipeline.Status{"build": pipeline.Success, "flaky": pipeline.Pending, "test": pipeline.Created}))
	retried := w.ask(token)
	w.Expect(retried.Info.Name).To(Equal("flaky"))
	w.Expect(w.end(retried, "failed", `,"failure_reason":"script_failure","exit_code":7`).Code).To(Equal(200))
	w.Expect(w.statuses(id)).To(Equal(map[string]pipeline.Status{"build": pipeline.Success, "flaky": pipeline.Failed, "test": pipeline.Pending}), "the exit code is allowed")
	test := w.ask(token)
	w.Expect(w.As("dora", fmt.Sprintf("POST /projects/20/pipelines/%d/cancel", id), "").Code).To(Equal(200))
	canceled := w.write(test, 0, "x")
	w.Expect(canceled.Code).To(Equal(403))
	w.Expect(canceled.Header()).To(HaveKeyWithValue("Job-Status", []string{"canceled"}), "the runner stops")
}

func TestUpdate_excusesOnlyTheAttemptWithTheExitCode(t *testing.T) {
	w := newWorldWith(t, "flaky: {script: x, retry: {max: 1, when: script_failure}, allow_failure: {exit_codes: 7}}\n")
	id := w.create()
	token := w.runner(runner.Runner{Type: runner.OfInstance, RunUntagged: true})
	w.Expect(w.end(w.ask(token), "failed", `,"failure_reason":"script_failure","exit_code":7`).Code).To(Equal(200))
	w.Expect(w.end(w.ask(token), "failed", `,"failure_reason":"script_failure","exit_code":1`).Code).To(Equal(200))
	shown := familytest.Decode[pipelines.Detailed](t, w.As("dora", fmt.Sprintf("GET /projects/20/pipelines/%d", id), ""))
	w.Expect(shown.Status).To(Equal(pipeline.Failed))
}

// block blocks a user.
func (w world) block(name string) {
	w.t.Helper()
	var u v1alpha1.User
	w.Expect(w.Client.Get(w.t.Context(), client.ObjectKey{Name: name}, &u)).To(Succeed())
	u.Spec.State = v1alpha1.UserBlocked
	w.Expect(w.Client.Update(w.t.Context(), &u)).To(Succeed())
}

func TestRequest_failsJobOfBlockedUser(t *testing.T) {
	w := newWorld(t)
	id := w.create()
	w.block("dora")
	w.Expect(w.ask(w.runner(runner.Runner{Type: runner.OfInstance, RunUntagged: true, Tags: []string{"linux"}}))).To(BeNil())
	var jobs []pipelines.Job
	w.Expect(json.Unmarshal([]byte(w.As("mary", fmt.Sprintf("GET /projects/20/pipelines/%d/jobs?scope[]=failed", id), "").Body), &jobs)).To(Succeed())
	w.Expect(jobs).To(And(HaveLen(2), HaveEach(HaveField("FailureReason", HaveValue(Equal("user_blocked"))))))
}
