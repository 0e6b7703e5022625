package pipelines_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/launch"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/apiserver/v4/pipelines"
	"github.com/forgeplane/forgeplane/apiserver/v4/variables"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/change"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/internal/git/update"
	"github.com/forgeplane/forgeplane/internal/job"
	"github.com/forgeplane/forgeplane/internal/mergerequest"
	"github.com/forgeplane/forgeplane/internal/pipeline"
)

// configuration has a job in each of three stages: build, test, which only pipelines with the variable FULL have, and the manual deploy.
const configuration = `
workflow: {name: "Build of $CI_COMMIT_REF_NAME"}
build: {stage: build, script: make, tags: [linux]}
test: {script: make test, rules: [{if: $FULL}]}
deploy: {stage: deploy, script: make deploy, when: manual, allow_failure: false}
`

// world is a forge with the private project web, and the repository of that. Dora is a Developer, mary a Maintainer, olga an Owner, rita a Reporter and
// otto a Guest. The branch main is protected from Developers, the branch topic is not, and bare has no configuration.
type world struct {
	*familytest.Forge
	t   *testing.T
	g   *WithT
	web *gittest.Client
}

func newWorld(t *testing.T, more ...client.Object) world {
	t.Helper()
	web := familytest.Project("acme", "web", 20, "acme", v1alpha1.VisibilityPrivate)
	f := familytest.New(t, append([]client.Object{
		familytest.User("mary", 2), familytest.User("dora", 3), familytest.User("rita", 4), familytest.User("olga", 5), familytest.User("otto", 6),
		familytest.User("dave", 7), familytest.Group("acme", "acme", 10, "", v1alpha1.VisibilityPrivate),
		familytest.InGroup("acme", "acme", "mary", v1alpha1.RoleMaintainer), familytest.InGroup("acme", "acme", "dora", v1alpha1.RoleDeveloper),
		familytest.InGroup("acme", "acme", "dave", v1alpha1.RoleDeveloper), familytest.InGroup("acme", "acme", "rita", v1alpha1.RoleReporter),
		familytest.InGroup("acme", "acme", "olga", v1alpha1.RoleOwner), familytest.InGroup("acme", "acme", "otto", v1alpha1.RoleGuest),
		familytest.Shard(t, web), web, &v1alpha1.ProtectedBranch{
			ObjectMeta: metav1.ObjectMeta{Namespace: "acme", Name: "main"},
			Spec: v1alpha1.ProtectedBranchSpec{
				ID: 30, ProjectRef: &v1alpha1.Reference{Name: "web"}, Branch: "main",
				Push: []v1alpha1.AccessLevel{{Role: v1alpha1.AccessMaintainer}}, Merge: []v1alpha1.AccessLevel{{Role: v1alpha1.AccessMaintainer}},
			},
		},
	}, more...)...)
	repos := familytest.Repositories(t, f.Catalog)
	f.Activity = familytest.Activity(t, f.Clock)
	f.Keep(repos)
	c := gittest.New(t, "sha1")
	c.Commit(t, "README.md", "hello\n")
	c.Git(t, "branch", "bare")
	c.Commit(t, ".gitlab-ci.yml", configuration)
	c.Git(t, "branch", "topic")
	c.Git(t, "tag", "-a", "-m", "One", "v1")
	w := world{f, t, NewWithT(t), &gittest.Client{Dir: familytest.Push(t, repos, web, c).Dir()}}
	w.Serve(pipelines.New(w.Kit).Table())
	return w
}

// Expect begins an assertion.
func (w world) Expect(actual any, extra ...any) Assertion {
	w.t.Helper()
	return w.g.Expect(actual, extra...)
}

// create creates a pipeline as dora and returns it.
func (w world) create(body string) pipelines.Detailed {
	w.t.Helper()
	a := w.As("dora", "POST /projects/20/pipeline", body)
	w.Expect(a.Code).To(Equal(201), a.Body)
	return familytest.Decode[pipelines.Detailed](w.t, a)
}

// named returns the id of the job of a pipeline with a name that was not retried.
func (w world) named(p pipelines.Detailed, name string) int64 {
	w.t.Helper()
	for _, j := range familytest.Decode[[]pipelines.Job](w.t, w.As("rita", fmt.Sprintf("GET /projects/20/pipelines/%d/jobs", p.ID), "")) {
		if j.Name == name {
			return j.ID
		}
	}
	w.t.Fatalf("pipeline %d has no job %q", p.ID, name)
	return 0
}

// run makes a job of a pipeline run for a minute.
func (w world) run(p pipelines.Detailed, name string, result pipeline.Status) {
	w.t.Helper()
	j, err := w.Activity.Pipelines.GetJob(w.t.Context(), w.project().UID, w.named(p, name))
	w.Expect(err).NotTo(HaveOccurred())
	_, err = w.Activity.Pipelines.Take(w.t.Context(), j, 1, pipeline.NewToken())
	w.Expect(err).NotTo(HaveOccurred())
	w.Clock.SetTime(w.Clock.Now().Add(time.Minute))
	if result == pipeline.Success {
		_, err = w.Activity.Pipelines.Succeed(w.t.Context(), j)
	} else {
		_, err = w.Activity.Pipelines.Fail(w.t.Context(), j, pipeline.Failure{Reason: "script_failure"})
	}
	w.Expect(err).NotTo(HaveOccurred())
}

func (w world) project() *v1alpha1.Project {
	w.t.Helper()
	p, err := catalog.ByID[*v1alpha1.Project](w.t.Context(), w.Catalog, 20)
	w.Expect(err).NotTo(HaveOccurred())
	return p
}

func (w world) get(p pipelines.Detailed) pipelines.Detailed {
	w.t.Helper()
	return familytest.Decode[pipelines.Detailed](w.t, w.As("rita", fmt.Sprintf("GET /projects/20/pipelines/%d", p.ID), ""))
}

func TestCreate_makesPipelineOfBranch(t *testing.T) {
	w := newWorld(t)
	a := w.As("dora", "POST /projects/20/pipeline", `{"ref":"topic"}`)
	head := w.web.Git(t, "rev-parse", "topic")
	w.Expect(a.Code).To(Equal(201), a.Body)
	w.Expect(a.Body).To(MatchJSON(`{"id":1,"iid":1,"project_id":20,"sha":"` + head + `","ref":"topic","status":"created","source":"api",
		"created_at":"2026-06-15T12:00:00.000Z","updated_at":"2026-06-15T12:00:00.000Z","web_url":"https://forge.example/acme/web/-/pipelines/1",
		"name":"Build of topic","before_sha":"0000000000000000000000000000000000000000","tag":false,"yaml_errors":null,
		"user":{"id":3,"username":"dora","name":"dora","state":"active","avatar_url":null,"web_url":"https://forge.example/dora"},
		"started_at":null,"finished_at":null,"committed_at":null,"duration":null,"queued_duration":null,"coverage":null,
		"detailed_status":{"icon":"status_created","text":"created","label":"created","group":"created","tooltip":"created","has_details":true,
		"details_path":"/acme/web/-/pipelines/1","illustration":null,"favicon":"/assets/ci_favicons/favicon_status_created.png"}}`))
	p := familytest.Decode[pipelines.Detailed](t, a)
	w.Expect(w.get(p).Status).To(Equal(pipeline.Pending))
	jobs := familytest.Decode[[]pipelines.Job](t, w.As("rita", "GET /projects/20/pipelines/1/jobs", ""))
	w.Expect(jobs).To(HaveExactElements(
		And(HaveField("Name", "deploy"), HaveField("Status", pipeline.Created), HaveField("Stage", "deploy")),
		And(HaveField("Name", "build"), HaveField("Status", pipeline.Pending), HaveField("TagList", []string{"linux"}), HaveField("Pipeline.ID", p.ID),
			HaveField("Commit.ID", head), HaveField("User.Username", "dora"), HaveField("Ref", "topic"))))

	w.run(p, "build", pipeline.Success)
	w.Expect(w.get(p)).To(And(HaveField("Status", pipeline.Manual), HaveField("DetailedStatus.Text", "blocked"), HaveField("QueuedDuration", HaveValue(BeEquivalentTo(0)))))
}

func TestCreate_makesPipelineOfTag(t *testing.T) {
	w := newWorld(t)
	p := w.create(`{"ref":"v1"}`)
	w.Expect(p).To(And(HaveField("Tag", true), HaveField("SHA", w.web.Git(t, "rev-parse", "v1^{commit}"))))
}

func TestCreate_passesVariables(t *testing.T) {
	w := newWorld(t)
	p := w.create(`{"ref":"topic","variables":[{"key":"FULL","value":"yes"},{"key":"NOTES","value":"x","variable_type":"file"}]}`)
	w.named(p, "test")
	const want = `200 [{"variable_type":"env_var","key":"FULL","value":"yes"},{"variable_type":"file","key":"NOTES","value":"x"}]`
	for who, want := range map[string]string{
		"dora": want, "mary": want, "dave": `403 {"message":"403 Forbidden"}`, "rita": `403 {"message":"403 Forbidden"}`, "": `401 {"message":"401 Unauthorized"`,
	} {
		w.Expect(w.As(who, "GET /projects/20/pipelines/1/variables", "").String()).To(HavePrefix(want), who)
	}
}

func TestCreate_givesDeclaredVariablesToRules(t *testing.T) {
	for name, tt := range map[string]struct {
		path, body, ref string
		want            bool
	}{
		"of the project":             {"/projects/20/variables", `{"key":"FULL","value":"yes"}`, "topic", true},
		"of the group":               {"/groups/10/variables", `{"key":"FULL","value":"yes"}`, "topic", true},
		"masked":                     {"/projects/20/variables", `{"key":"FULL","value":"long-enough","masked":true}`, "topic", true},
		"for protected branches":     {"/projects/20/variables", `{"key":"FULL","value":"yes","protected":true}`, "main", true},
		"not for other branches":     {"/projects/20/variables", `{"key":"FULL","value":"yes","protected":true}`, "topic", false},
		"not for tags":               {"/projects/20/variables", `{"key":"FULL","value":"yes","protected":true}`, "v1", false},
		"not of another environment": {"/projects/20/variables", `{"key":"FULL","value":"yes","environment_scope":"production"}`, "topic", false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.Serve(pipelines.New(w.Kit).Table(), variables.New(w.Kit).Table())
			made := w.As("olga", "POST "+tt.path, tt.body)
			w.Expect(made.Code).To(Equal(201), made.Body)
			a := w.As("olga", "POST /projects/20/pipeline", `{"ref":"`+tt.ref+`"}`)
			w.Expect(a.Code).To(Equal(201), a.Body)
			jobs := familytest.Decode[[]pipelines.Job](t, w.As("olga", "GET /projects/20/pipelines/1/jobs", ""))
			w.Expect(slices.ContainsFunc(jobs, func(j pipelines.Job) bool { return j.Name == "test" })).To(Equal(tt.want))
			w.Expect(w.As("olga", "GET /projects/20/pipelines/1/variables", "").Body).To(MatchJSON("[]"))
		})
	}
}

func TestCreate_putsVariablesOfRequestFirst(t *testing.T) {
	w := newWorld(t)
	w.Serve(pipelines.New(w.Kit).Table(), variables.New(w.Kit).Table())
	for _, masked := range []string{"true", "false"} {
		made := w.As("olga", "POST /projects/20/variables", `{"key":"FULL","value":"long-enough","masked":`+masked+`}`)
		w.Expect(made.Code).To(Equal(201), made.Body)
		p := w.create(`{"ref":"topic","variables":[{"key":"FULL","value":""}]}`)
		jobs := familytest.Decode[[]pipelines.Job](t, w.As("olga", fmt.Sprintf("GET /projects/20/pipelines/%d/jobs", p.ID), ""))
		w.Expect(jobs).NotTo(ContainElement(HaveField("Name", "test")))
		w.Expect(w.As("olga", "DELETE /projects/20/variables/FULL", "").Code).To(Equal(204))
	}
}

func TestCreate_isRefused(t *testing.T) {
	w := newWorld(t)
	w.web.Git(t, "update-ref", "refs/heads/broken", w.commit("broken", "build: {script: make, colour: red}"))
	w.web.Git(t, "update-ref", "refs/heads/filtered", w.commit("filtered", "build: {script: make, only: [tags]}"))
	w.web.Git(t, "update-ref", "refs/heads/vast", w.commit("vast", "build: {parallel: 200, script: ["+strings.Repeat("x,", 30_000)+"]}"))
	base := func(text string) string { return `400 {"message":{"base":["` + text }
	for body, want := range map[string]string{
		`{}`:                 `400 {"error":"ref is missing"}`,
		`{"ref":""}`:         `400 {"error":"ref is empty"}`,
		`{"ref":"none"}`:     base("Reference not found"),
		`{"ref":"a..b"}`:     base("Reference not found"),
		`{"ref":"bare"}`:     base("Missing CI config file"),
		`{"ref":"broken"}`:   base(".gitlab-ci.yml:1: build:colour: unknown keyword"),
		`{"ref":"filtered"}`: base("Pipeline will not run for the selected trigger."),
		`{"ref":"vast"}`:     base(".gitlab-ci.yml:1: build: the jobs of the pipeline are larger than 8388608 bytes"),
		`{"ref":"main"}`:     base("You do not have sufficient permission to run a pipeline on 'main'."),
		`{"ref":"topic","variables":[{"value":"x"}]}`:                                                   `400 {"error":"variables[0][key] is missing"}`,
		`{"ref":"topic","variables":[{"key":"a-b"}]}`:                                                   base("Invalid variable name"),
		`{"ref":"topic","variables":[{"key":"A"},{"key":"A"}]}`:                                         base("Duplicate variable name: A"),
		`{"ref":"topic","variables":[{"key":"A","value":` + quoted(strings.Repeat("x", 65<<10)) + `}]}`: base("The value of the variable A is larger than 65536 bytes"),
	} {
		w.Expect(w.As("dora", "POST /projects/20/pipeline", body).String()).To(HavePrefix(want), "%.100s", body)
	}
	w.Expect(w.As("mary", "POST /projects/20/pipeline", `{"ref":"main"}`).Code).To(Equal(201))
	w.Expect(w.As("rita", "POST /projects/20/pipeline", `{"ref":"topic"}`).String()).To(Equal(`403 {"message":"403 Forbidden"}`))
	w.Expect(w.As("rita", "GET /projects/20/pipelines", "").Body).To(ContainSubstring(`"ref":"main"`))
	w.archive()
	w.Expect(w.As("dora", "POST /projects/20/pipeline", `{"ref":"topic"}`).String()).To(Equal(`403 {"message":"403 Forbidden"}`))
}

// commit writes a commit with a configuration, after bare.
func (w world) commit(message, content string) string {
	w.t.Helper()
	tree := w.web.Write(w.t, "tree", "100644 .gitlab-ci.yml\x00"+raw(w.web.Write(w.t, "blob", content)))
	return w.web.Git(w.t, "commit-tree", "-p", "bare", "-m", message, tree)
}

// raw returns the bytes of an object id.
func raw(id string) string {
	var bytes []byte
	_, _ = fmt.Sscanf(id, "%x", &bytes)
	return string(bytes)
}

func quoted(text string) string {
	all, _ := json.Marshal(text)
	return string(all)
}

func (w world) archive() {
	w.t.Helper()
	var p v1alpha1.Project
	w.Expect(w.Client.Get(w.t.Context(), client.ObjectKey{Namespace: "acme", Name: "web"}, &p)).To(Succeed())
	p.Spec.Archived = true
	w.Expect(w.Client.Update(w.t.Context(), &p)).To(Succeed())
}

func TestList_filters(t *testing.T) {
	w := newWorld(t)
	first := w.create(`{"ref":"topic"}`)
	w.Clock.SetTime(w.Clock.Now().Add(time.Hour))
	second := w.create(`{"ref":"v1"}`)
	w.run(first, "build", pipeline.Failed)
	for query, want := range map[string][]int64{
		"": {second.ID, first.ID}, "sort=asc": {first.ID, second.ID}, "order_by=ref&sort=asc": {first.ID, second.ID}, "scope=running": nil,
		"scope=pending": {second.ID}, "scope=finished": {first.ID}, "scope=branches": {first.ID}, "scope=tags": {second.ID}, "status=failed": {first.ID},
		"ref=v1": {second.ID}, "sha=" + first.SHA: {second.ID, first.ID}, "sha=none": nil, "source=api": {second.ID, first.ID}, "source=push": nil,
		"name=Build+of+v1": {second.ID}, "username=dora": {second.ID, first.ID}, "username=mary": nil, "username=nobody": nil, "yaml_errors=true": nil,
		"yaml_errors=false": {second.ID, first.ID}, "created_after=2026-06-15T12:30:00Z": {second.ID}, "updated_before=2026-06-15T13:00:30Z": {second.ID},
	} {
		var ids []int64
		for _, p := range familytest.Decode[[]pipelines.Pipeline](t, w.As("rita", "GET /projects/20/pipelines?"+query, "")) {
			ids = append(ids, p.ID)
		}
		w.Expect(ids).To(Equal(want), query)
	}
	w.Expect(w.As("rita", "GET /projects/20/pipelines?status=odd", "").String()).To(Equal(`400 {"error":"status does not have a valid value"}`))
	w.Expect(w.As("otto", "GET /projects/20/pipelines", "").Code).To(Equal(200), "pipelines are for all members")
	w.Expect(w.As("", "GET /projects/20/pipelines", "").String()).To(Equal(`404 {"message":"404 Project Not Found"}`))
}

func TestLatest_isForNewestCommit(t *testing.T) {
	w := newWorld(t)
	const none = `404 {"message":"404 Pipeline Not Found"}`
	w.Expect(w.As("rita", "GET /projects/20/pipelines/latest?ref=topic", "").String()).To(Equal(none))
	w.create(`{"ref":"topic"}`)
	newest := w.create(`{"ref":"topic"}`)
	w.Expect(familytest.Decode[pipelines.Detailed](t, w.As("rita", "GET /projects/20/pipelines/latest?ref=topic", "")).ID).To(Equal(newest.ID))
	for _, query := range []string{"", "?ref=none", "?ref=bare"} {
		w.Expect(w.As("rita", "GET /projects/20/pipelines/latest"+query, "").String()).To(Equal(none), query)
	}
	w.web.Git(t, "update-ref", "refs/heads/topic", "bare")
	w.Expect(w.As("rita", "GET /projects/20/pipelines/latest?ref=topic", "").String()).To(Equal(none))
}

func TestPipeline_isRetriedCanceledAndDeleted(t *testing.T) {
	w := newWorld(t)
	p := w.create(`{"ref":"topic"}`)
	w.run(p, "build", pipeline.Failed)
	d := w.get(p)
	w.Expect(d).To(And(HaveField("Status", pipeline.Failed), HaveField("Duration", HaveValue(BeEquivalentTo(60))), HaveField("DetailedStatus.Icon", "status_failed")))
	a := w.As("dora", "POST /projects/20/pipelines/1/retry", "")
	w.Expect(a.Code).To(Equal(201), a.Body)
	w.Expect(familytest.Decode[pipelines.Detailed](t, a)).To(And(HaveField("Status", pipeline.Pending), HaveField("Duration", BeNil())))
	all := familytest.Decode[[]pipelines.Job](t, w.As("rita", "GET /projects/20/pipelines/1/jobs?include_retried=true&scope[]=failed&scope[]=pending", ""))
	w.Expect(all).To(HaveExactElements(HaveField("Status", pipeline.Pending), And(HaveField("Status", pipeline.Failed), HaveField("FailureReason", HaveValue(Equal("script_failure"))))))
	a = w.As("dora", "POST /projects/20/pipelines/1/cancel", "")
	w.Expect(a.Code).To(Equal(200), a.Body)
	w.Expect(familytest.Decode[pipelines.Detailed](t, a).Status).To(Equal(pipeline.Canceled))

	w.Expect(w.As("mary", "DELETE /projects/20/pipelines/1", "").String()).To(Equal(`403 {"message":"403 Forbidden"}`))
	w.Expect(w.As("olga", "DELETE /projects/20/pipelines/1", "").String()).To(Equal("204"))
	for _, request := range []string{"GET /projects/20/pipelines/1", "POST /projects/20/pipelines/1/retry", "DELETE /projects/20/pipelines/1", fmt.Sprintf("GET /projects/20/jobs/%d", all[0].ID)} {
		w.Expect(w.As("olga", request, "").String()).To(Equal(`404 {"message":"404 Not found"}`), request)
	}
}

func TestPipeline_ofProtectedBranchIsForThoseWhoCanPush(t *testing.T) {
	w := newWorld(t)
	w.Expect(w.As("mary", "POST /projects/20/pipeline", `{"ref":"main"}`).Code).To(Equal(201))
	for _, request := range []string{"pipelines/1/retry", "pipelines/1/cancel", "jobs/1/cancel", "jobs/1/retry", "jobs/1/play"} {
		w.Expect(w.As("dora", "POST /projects/20/"+request, "").String()).To(Equal(`403 {"message":"403 Forbidden"}`), request)
	}
	w.Expect(w.As("mary", "POST /projects/20/jobs/1/cancel", "").Code).To(Equal(201))
}

func TestJob_isCanceledRetriedPlayedAndErased(t *testing.T) {
	w := newWorld(t)
	p := w.create(`{"ref":"topic"}`)
	build, deploy := w.named(p, "build"), w.named(p, "deploy")
	do := func(who string, id int64, verb, body string) familytest.Answer {
		return w.As(who, fmt.Sprintf("POST /projects/20/jobs/%d/%s", id, verb), body)
	}
	w.Expect(do("dora", build, "retry", "").String()).To(Equal(`403 {"message":"403 Forbidden - Job is not retryable"}`))
	w.Expect(do("dora", build, "erase", "").String()).To(Equal(`403 {"message":"403 Forbidden - Job is not erasable!"}`))
	w.Expect(do("dora", deploy, "play", "").String()).To(Equal(`400 {"message":"400 Bad request - Unplayable Job"}`))
	a := do("dora", build, "cancel", "")
	w.Expect(a.Code).To(Equal(201), a.Body)
	w.Expect(familytest.Decode[pipelines.Job](t, a)).To(And(HaveField("Status", pipeline.Canceled), HaveField("QueuedDuration", BeNil()), HaveField("Duration", BeNil())))
	w.Expect(do("dora", build, "cancel", "").Code).To(Equal(201), "it stays canceled")
	a = do("dave", build, "retry", "")
	w.Expect(a.Code).To(Equal(201), a.Body)
	again := familytest.Decode[pipelines.Job](t, a)
	w.Expect(again).To(And(HaveField("ID", Not(Equal(build))), HaveField("Status", pipeline.Pending), HaveField("User.Username", "dave")))
	w.run(p, "build", pipeline.Success)
	a = do("dora", deploy, "play", `{"job_variables_attributes":[{"key":"TARGET","value":"x"}]}`)
	w.Expect(a.Code).To(Equal(200), a.Body)
	w.Expect(familytest.Decode[pipelines.Job](t, a).Status).To(Equal(pipeline.Pending))

	w.Expect(do("dora", again.ID, "erase", "").String()).To(Equal(`403 {"message":"403 Forbidden"}`), "it is the job of dave")
	a = do("dave", again.ID, "erase", "")
	w.Expect(a.Code).To(Equal(201), a.Body)
	got := familytest.Decode[pipelines.Job](t, w.As("rita", fmt.Sprintf("GET /projects/20/jobs/%d", again.ID), ""))
	w.Expect(time.Time(got.ErasedAt)).NotTo(BeZero())
	w.Expect(got.Duration).To(HaveValue(BeEquivalentTo(60)))
	w.Expect(do("mary", again.ID, "erase", "").String()).To(Equal(`403 {"message":"403 Forbidden - Job is not erasable!"}`))
	w.Expect(do("rita", deploy, "cancel", "").String()).To(Equal(`403 {"message":"403 Forbidden"}`))
	w.Expect(w.As("rita", "GET /projects/20/jobs/999", "").String()).To(Equal(`404 {"message":"404 Not found"}`))
}

func TestJobs_haveKeysetPages(t *testing.T) {
	w := newWorld(t)
	w.create(`{"ref":"topic"}`)
	w.create(`{"ref":"topic"}`)
	a := w.As("rita", "GET /projects/20/jobs?pagination=keyset&per_page=3", "")
	w.Expect(familytest.Decode[[]pipelines.Job](t, a)).To(HaveLen(3))
	_, after, _ := strings.Cut(a.Header.Get("Link"), "cursor=")
	cursor, _, _ := strings.Cut(after, "&")
	w.Expect(familytest.Decode[[]pipelines.Job](t, w.As("rita", "GET /projects/20/jobs?pagination=keyset&cursor="+cursor, ""))).To(HaveExactElements(HaveField("Name", "build")))
	w.Expect(familytest.Decode[[]pipelines.Job](t, w.As("rita", "GET /projects/20/jobs?scope=pending", ""))).To(HaveLen(2))
	w.Expect(w.As("rita", "GET /projects/20/jobs?scope=odd", "").String()).To(Equal(`400 {"error":"scope does not have a valid value"}`))
}

func TestBridges_areListedApart(t *testing.T) {
	w := newWorld(t)
	w.web.Git(t, "update-ref", "refs/heads/bridge", w.commit("bridge", "build: {script: make}\nother: {trigger: acme/app}"))
	p := w.create(`{"ref":"bridge"}`)
	all := familytest.Decode[[]pipelines.Bridge](t, w.As("rita", fmt.Sprintf("GET /projects/20/pipelines/%d/bridges", p.ID), ""))
	w.Expect(all).To(HaveExactElements(And(HaveField("Name", "other"), HaveField("Status", pipeline.Pending), HaveField("Downstream", BeNil()))))
	w.Expect(familytest.Decode[[]pipelines.Job](t, w.As("rita", fmt.Sprintf("GET /projects/20/pipelines/%d/jobs", p.ID), ""))).To(HaveExactElements(HaveField("Name", "build")))
}

// pushes makes the family create the pipelines of a push by dora, in the way of the server.
func (w world) pushes(updates ...update.Ref) {
	w.t.Helper()
	dora, err := w.Catalog.UserByUsername(w.t.Context(), "dora")
	w.Expect(err).NotTo(HaveOccurred())
	w.Tasks = nil
	p := launch.NewPushes(launch.New(w.Kit))
	w.Expect(p.Written(w.t.Context(), change.Event{
		Project: types.NamespacedName{Namespace: "acme", Name: "web"}, Updates: updates, By: database.User{ID: 3, UID: dora.UID},
	})).To(Succeed())
	for _, t := range w.Tasks {
		for range 2 { // a task can run again
			w.Expect(p.Create(w.t.Context(), job.Attempt{Task: t}, nil)).To(Succeed())
		}
	}
}

func TestPush_createsPipelines(t *testing.T) {
	w := newWorld(t)
	topic, bare := w.web.Git(t, "rev-parse", "topic"), w.web.Git(t, "rev-parse", "bare")
	broken, skipped := w.commit("broken", "build: {script: make, colour: red}"), w.commit("Fix [skip ci]", "build: {script: make}")
	filtered := w.commit("filtered", "build: {script: make, only: [api]}")
	tag := w.web.Git(t, "rev-parse", "v1")
	w.pushes(update.Ref{Name: "refs/heads/topic", Old: bare, New: topic}, update.Ref{Name: "refs/tags/v1", New: tag}, update.Ref{Name: "refs/heads/gone", Old: bare})
	w.pushes(update.Ref{Name: "refs/heads/broken", New: broken}, update.Ref{Name: "refs/heads/skipped", New: skipped},
		update.Ref{Name: "refs/heads/filtered", New: filtered}, update.Ref{Name: "refs/heads/bare", New: bare})
	all := familytest.Decode[[]pipelines.Pipeline](t, w.As("rita", "GET /projects/20/pipelines?sort=asc", ""))
	w.Expect(all).To(HaveExactElements(
		And(HaveField("Ref", "topic"), HaveField("Source", "push"), HaveField("Status", pipeline.Pending), HaveField("SHA", topic)),
		And(HaveField("Ref", "v1"), HaveField("SHA", topic)),
		And(HaveField("Ref", "broken"), HaveField("Status", pipeline.Failed)),
		And(HaveField("Ref", "skipped"), HaveField("Status", pipeline.Skipped))))
	first := familytest.Decode[pipelines.Detailed](t, w.As("rita", fmt.Sprintf("GET /projects/20/pipelines/%d", all[0].ID), ""))
	w.Expect(first).To(And(HaveField("BeforeSHA", bare), HaveField("User.Username", "dora")))
	failed := familytest.Decode[pipelines.Detailed](t, w.As("rita", fmt.Sprintf("GET /projects/20/pipelines/%d", all[2].ID), ""))
	w.Expect(*failed.YAMLErrors).To(HavePrefix(".gitlab-ci.yml:1: build:colour: unknown keyword"))
	w.Expect(w.As("dora", fmt.Sprintf("POST /projects/20/pipelines/%d/retry", failed.ID), "").Code).To(Equal(201), "a pipeline without failed jobs")
}

func TestPush_createsPipelinesOfMergeRequests(t *testing.T) {
	w := newWorld(t)
	const configuration = `
build: {script: make, rules: [{if: $CI_MERGE_REQUEST_IID}]}
test: {script: make test, rules: [{if: $CI_COMMIT_BRANCH}]}
docs: {script: make docs, rules: [{if: $CI_MERGE_REQUEST_IID, changes: [docs/*]}]}
`
	m := mergerequest.MergeRequest{In: w.ProjectRow(20), Source: w.ProjectRow(20), SourceBranch: "work", TargetBranch: "main", Title: "Work", Author: w.UserRow("dora")}
	w.Expect(w.Activity.MergeRequests.Create(t.Context(), &m)).To(Succeed())
	first := w.commit("one", configuration)
	docs := "40000 docs\x00" + raw(w.web.Write(t, "tree", "100644 guide\x00"+raw(w.web.Write(t, "blob", "Read me"))))
	main := w.web.Git(t, "commit-tree", "-p", "bare", "-m", "docs", w.web.Write(t, "tree", docs))
	rebased := w.web.Write(t, "tree", "100644 .gitlab-ci.yml\x00"+raw(w.web.Write(t, "blob", configuration))+docs)
	second := w.web.Git(t, "commit-tree", "-p", main, "-m", "two", rebased)
	w.Expect(w.Activity.MergeRequests.AddVersion(t.Context(), &mergerequest.Version{MergeRequestID: m.ID, Head: first, Base: w.web.Git(t, "rev-parse", "bare")}, "1")).To(Succeed())
	w.web.Git(t, "update-ref", "refs/heads/work", first)
	w.pushes(update.Ref{Name: "refs/heads/work", New: first})
	w.web.Git(t, "update-ref", "refs/heads/main", main)
	w.web.Git(t, "update-ref", "refs/heads/work", second)
	w.pushes(update.Ref{Name: "refs/heads/work", Old: first, New: second})
	all := familytest.Decode[[]pipelines.Pipeline](t, w.As("rita", "GET /projects/20/pipelines?sort=asc", ""))
	about := func(sha string, s pipeline.Status) OmegaMatcher {
		return And(HaveField("Source", "merge_request_event"), HaveField("Ref", "refs/merge-requests/1/head"), HaveField("SHA", sha), HaveField("Status", s))
	}
	of := func(sha string, s pipeline.Status) OmegaMatcher {
		return And(HaveField("Source", "push"), HaveField("Ref", "work"), HaveField("SHA", sha), HaveField("Status", s))
	}
	w.Expect(all).To(HaveExactElements(of(first, pipeline.Canceled), about(first, pipeline.Canceled), of(second, pipeline.Pending), about(second, pipeline.Pending)))
	jobs := familytest.Decode[[]pipelines.Job](t, w.As("rita", fmt.Sprintf("GET /projects/20/pipelines/%d/jobs", all[3].ID), ""))
	w.Expect(jobs).To(HaveExactElements(And(HaveField("Name", "build"), HaveField("Ref", "refs/merge-requests/1/head"))), "only main has changed docs")
	w.Expect(w.As("dora", fmt.Sprintf("POST /projects/20/pipelines/%d/cancel", all[3].ID), "").Code).To(Equal(200))
}

func TestPush_createsFewPipelinesAtOnce(t *testing.T) {
	w := newWorld(t)
	var updates []update.Ref
	for i := range 6 {
		updates = append(updates, update.Ref{Name: fmt.Sprintf("refs/heads/b%d", i), New: w.web.Git(t, "rev-parse", "topic")})
	}
	w.pushes(updates...)
	w.Expect(familytest.Decode[[]pipelines.Pipeline](t, w.As("rita", "GET /projects/20/pipelines", ""))).To(HaveLen(4))
}

func TestRetry_keepsVariablesOfPlay(t *testing.T) {
	w := newWorld(t)
	p := w.create(`{"ref":"topic"}`)
	w.run(p, "build", pipeline.Success)
	// do plays or retries the latest deployment, and returns the variables that requests gave it.
	do := func(verb, body string) map[string]string {
		w.t.Helper()
		a := w.As("dora", fmt.Sprintf("POST /projects/20/jobs/%d/%s", w.named(p, "deploy"), verb), body)
		w.Expect(a.Code).To(BeElementOf(200, 201), a.Body)
		j, err := w.Activity.Pipelines.GetJob(t.Context(), w.project().UID, w.named(p, "deploy"))
		w.Expect(err).NotTo(HaveOccurred())
		all, err := w.Activity.Pipelines.VariablesOf(t.Context(), j)
		w.Expect(err).NotTo(HaveOccurred())
		values := map[string]string{}
		for _, v := range all {
			values[v.Key] = v.Value
		}
		w.run(p, "deploy", pipeline.Failed)
		return values
	}
	w.Expect(do("play", `{"job_variables_attributes":[{"key":"TARGET","value":"x"},{"key":"LEVEL","value":"1"}]}`)).To(Equal(map[string]string{"TARGET": "x", "LEVEL": "1"}))
	w.Expect(do("retry", "")).To(Equal(map[string]string{"TARGET": "x", "LEVEL": "1"}))
	w.Expect(do("play", `{"job_variables_attributes":[{"key":"TARGET","value":"y"}]}`)).To(Equal(map[string]string{"TARGET": "y"}))
}
