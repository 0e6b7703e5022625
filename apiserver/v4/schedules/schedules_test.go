package schedules_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/launch"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/apiserver/v4/pipelines"
	"github.com/forgeplane/forgeplane/apiserver/v4/schedules"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/internal/job"
	"github.com/forgeplane/forgeplane/internal/pipeline"
)

const path = "/projects/20/pipeline_schedules"

// world is a forge with the private project web. Mary is a Maintainer, dora and dave are Developers, and rita is a Reporter.
type world struct {
	*familytest.Forge
	t        *testing.T
	g        *WithT
	launcher *launch.Launcher
}

func newWorld(t *testing.T) world {
	t.Helper()
	web := familytest.Project("acme", "web", 20, "acme", v1alpha1.VisibilityPrivate)
	f := familytest.New(t,
		familytest.User("mary", 2), familytest.User("dora", 3), familytest.User("dave", 4), familytest.User("rita", 5),
		familytest.Group("acme", "acme", 10, "", v1alpha1.VisibilityPrivate), familytest.InGroup("acme", "acme", "mary", v1alpha1.RoleMaintainer),
		familytest.InGroup("acme", "acme", "dora", v1alpha1.RoleDeveloper), familytest.InGroup("acme", "acme", "dave", v1alpha1.RoleDeveloper),
		familytest.InGroup("acme", "acme", "rita", v1alpha1.RoleReporter), familytest.Shard(t, web), web,
	)
	repos := familytest.Repositories(t, f.Catalog)
	f.Activity = familytest.Activity(t, f.Clock)
	f.Keep(repos)
	c := gittest.New(t, "sha1")
	c.Commit(t, "README.md", "hello\n")
	c.Git(t, "branch", "bare")
	c.Commit(t, ".gitlab-ci.yml", "build: {script: make $TARGET}\n")
	familytest.Push(t, repos, web, c)
	w := world{f, t, NewWithT(t), launch.New(f.Kit)}
	w.Serve(schedules.New(w.Kit).Table(), pipelines.New(w.Kit).Table())
	return w
}

func (w world) Expect(actual any, extra ...any) Assertion {
	w.t.Helper()
	return w.g.Expect(actual, extra...)
}

// create creates a schedule as dora, and returns its path.
func (w world) create() string {
	w.t.Helper()
	a := w.As("dora", "POST "+path, `{"description":"Every night","ref":"main","cron":"0 3 * * *","cron_timezone":"Europe/Berlin"}`)
	w.Expect(a.Code).To(Equal(201), a.Body)
	made := familytest.Decode[schedules.Detailed](w.t, a)
	w.Expect(made).To(And(HaveField("Active", true), HaveField("Owner.Username", "dora"), HaveField("LastPipeline", BeNil()), HaveField("Variables", BeEmpty())))
	return fmt.Sprintf("%s/%d", path, made.ID)
}

// created returns the pipelines of a schedule.
func (w world) created(one string) []pipelines.Pipeline {
	w.t.Helper()
	return familytest.Decode[[]pipelines.Pipeline](w.t, w.As("rita", "GET "+one+"/pipelines", ""))
}

// pass runs the task of a schedule when it is due.
func (w world) pass(one string) {
	w.t.Helper()
	w.Clock.SetTime(w.Clock.Now().Add(24 * time.Hour))
	for range 2 { // a task can run again although its work was done
		key := one[strings.LastIndex(one, "/")+1:]
		w.Expect(w.launcher.Scheduled(w.t.Context(), job.Attempt{Task: job.Task{Key: key}}, nil)).To(Succeed())
	}
}

func TestSchedule_createsPipelinesAsItsOwner(t *testing.T) {
	w := newWorld(t)
	one := w.create()
	w.Expect(w.As("dora", "POST "+one+"/variables", `{"key":"TARGET","value":"all"}`).String()).To(Equal(`201 {"variable_type":"env_var","key":"TARGET","value":"all"}`))
	w.pass(one)
	made := w.created(one)
	w.Expect(made).To(HaveExactElements(And(HaveField("Source", "schedule"), HaveField("Ref", "main"))))
	w.Expect(w.As("mary", fmt.Sprintf("GET /projects/20/pipelines/%d/variables", made[0].ID), "").Body).To(ContainSubstring(`"key":"TARGET"`))
	w.Expect(w.As("rita", fmt.Sprintf("GET /projects/20/pipelines/%d", made[0].ID), "").Body).To(ContainSubstring(`"username":"dora"`))
	shown := familytest.Decode[schedules.Detailed](t, w.As("rita", "GET "+one, ""))
	w.Expect(shown.LastPipeline).To(HaveValue(HaveField("ID", made[0].ID)))
	w.Expect(shown.Variables).To(BeEmpty(), "she is neither the owner nor a Maintainer")
	w.Expect(familytest.Decode[schedules.Detailed](t, w.As("mary", "GET "+one, "")).Variables).To(HaveLen(1))

	w.pass(one)
	w.Expect(w.created(one)).To(HaveLen(2))
	w.Expect(w.As("dora", "PUT "+one, `{"active":false}`).Code).To(Equal(200))
	w.pass(one)
	w.Expect(w.created(one)).To(HaveLen(2))
}

func TestSchedule_createsNothingWithoutRights(t *testing.T) {
	w := newWorld(t)
	one := w.create()
	var dora v1alpha1.Membership
	w.Expect(w.Client.Get(t.Context(), client.ObjectKeyFromObject(familytest.InGroup("acme", "acme", "dora", v1alpha1.RoleDeveloper)), &dora)).To(Succeed())
	dora.Spec.Role = v1alpha1.RoleReporter
	w.Expect(w.Client.Update(t.Context(), &dora)).To(Succeed())
	w.pass(one)
	w.Expect(w.created(one)).To(BeEmpty())
	w.Expect(w.As("dave", "POST "+one+"/take_ownership", "").Code).To(Equal(201))
	w.pass(one)
	w.Expect(w.created(one)).To(HaveLen(1))
	var dave v1alpha1.User
	w.Expect(w.Client.Get(t.Context(), client.ObjectKey{Name: "dave"}, &dave)).To(Succeed())
	dave.Spec.State = v1alpha1.UserBlocked
	w.Expect(w.Client.Update(t.Context(), &dave)).To(Succeed())
	w.pass(one)
	w.Expect(w.created(one)).To(HaveLen(1))
}

func TestPlay_createsPipelineAsCaller(t *testing.T) {
	w := newWorld(t)
	one := w.create()
	w.Expect(w.As("dave", "POST "+one+"/play", "").String()).To(Equal(`201 {"message":"201 Created"}`))
	made := w.created(one)
	w.Expect(made).To(HaveExactElements(HaveField("Source", "schedule")))
	w.Expect(w.As("rita", fmt.Sprintf("GET /projects/20/pipelines/%d", made[0].ID), "").Body).To(ContainSubstring(`"username":"dave"`))
	w.Expect(w.As("rita", "POST "+one+"/play", "").Code).To(Equal(403))
	w.Expect(w.As("dora", "PUT "+one, `{"ref":"bare"}`).Code).To(Equal(200))
	w.Expect(w.As("dora", "POST "+one+"/play", "").String()).To(HavePrefix(`400 {"message":{"base":["Missing CI config file"]}`))
}

func TestSchedules_areForThoseWhoOwnThem(t *testing.T) {
	w := newWorld(t)
	one := w.create()
	w.Expect(w.As("dora", "POST "+one+"/variables", `{"key":"A","value":"b"}`).Code).To(Equal(201))
	for _, tt := range []struct {
		name, request, body, answer string
	}{
		{"rita", "POST " + path, `{"description":"x","ref":"main","cron":"0 3 * * *"}`, "403"},
		{"dave", "PUT " + one, `{"description":"x"}`, "403"},
		{"dave", "DELETE " + one, "", "403"},
		{"dave", "POST " + one + "/variables", `{"key":"B","value":"b"}`, "403"},
		{"dave", "PUT " + one + "/variables/A", `{"value":"c"}`, "403"},
		{"dave", "DELETE " + one + "/variables/A", "", "403"},
		{"rita", "POST " + one + "/take_ownership", "", "403"},
		{"", "GET " + path, "", "404"},
		{"rita", "GET " + path + "/999", "", `404 {"message":"404 Pipeline Schedule Not Found"`},
		{"dora", "PUT " + one + "/variables/B", `{"value":"c"}`, `404 {"message":"404 Variable Not Found"`},
		{"dora", "POST " + one + "/variables", `{"key":"A","value":"b"}`, `400 {"message":{"key":["has already been taken"]}`},
		{"dora", "POST " + one + "/variables", `{"key":"A B","value":"b"}`, `400 {"message":{"base":["Invalid variable name`},
		{"dora", "POST " + path, `{"description":"x","ref":"main","cron":"soon"}`, `400 {"message":{"cron":["syntax is invalid"]}`},
		{"dora", "POST " + path, `{"description":"x","ref":"main","cron":"0 3 * * *","cron_timezone":"Mars"}`, `400 {"message":{"cron_timezone":["syntax is invalid"]}`},
		{"dora", "POST " + path, `{"description":"x","ref":"missing","cron":"0 3 * * *"}`, `400 {"message":{"ref":["does not exist"]}`},
		{"dora", "POST " + path, `{"ref":"main","cron":"0 3 * * *"}`, `400 {"error":"description is missing"`},
		{"dora", "PUT " + one + "/variables/A", `{"value":"c","variable_type":"file"}`, `200 {"variable_type":"file","key":"A","value":"c"}`},
		{"dora", "DELETE " + one + "/variables/A", "", `202 {"variable_type":"file","key":"A","value":"c"}`},
		{"mary", "PUT " + one, `{"cron":"30 3 * * *"}`, "200"},
		{"rita", "GET " + path + "?scope=inactive", "", "200 []"},
		{"mary", "DELETE " + one, "", "204"},
		{"rita", "GET " + path, "", "200 []"},
	} {
		w.Expect(w.As(tt.name, tt.request, tt.body).String()).To(HavePrefix(tt.answer), tt.name+" "+tt.request)
	}
}

func TestSchedule_recordsMistakesOfConfiguration(t *testing.T) {
	w := newWorld(t)
	one := w.create()
	w.Expect(w.As("dora", "PUT "+one, `{"ref":"bare"}`).Code).To(Equal(200))
	w.pass(one)
	w.Expect(w.created(one)).To(BeEmpty(), "there is no configuration")
	w.Expect(w.Activity.Pipelines.Count(t.Context(), pipeline.Query{Project: w.ProjectRow(20).UID}, 10)).To(BeZero())
}
