package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/apiserver/v4/pipelines"
	"github.com/forgeplane/forgeplane/test/rest"
)

// factory is a team whose project "app" has a runner.
type factory struct {
	team
	max rest.Client
}

// newFactory declares a team, and starts the runner of its project.
func newFactory(ctx context.Context, name string) factory {
	GinkgoHelper()
	checkout.Runner(ctx)
	f := factory{team: newTeam(name)}
	f.max = f.rest("max")
	id := f.show("project/app", "{.spec.id}")
	made := rest.Must[struct{ Token string }](f.max, http.StatusCreated, "POST /user/runners", `{"runner_type":"project_type","project_id":`+id+`}`)
	credentials[made.Token] = true
	checkout.StartRunner(admin.Getenv("FORGEPLANE_URL"), made.Token)
	return f
}

// path returns a path of the project in the REST API.
func (f factory) path(of string) string { return "/projects/" + f.name + "%2Fapp" + of }

// create creates a pipeline of main with variables, such as {"key":"A","value":"b"}, as Max.
func (f factory) create(variables ...string) pipelines.Detailed {
	GinkgoHelper()
	return rest.Must[pipelines.Detailed](f.max, http.StatusCreated, "POST "+f.path("/pipeline"), `{"ref":"main","variables":[`+strings.Join(variables, ",")+`]}`)
}

// job returns the latest job of the project with a name, once it has a status.
func (f factory) job(name, status string) pipelines.Job {
	GinkgoHelper()
	var found pipelines.Job
	Eventually(func(g Gomega) {
		found = pipelines.Job{}
		for _, j := range rest.Must[[]pipelines.Job](f.max, http.StatusOK, "GET "+f.path("/jobs?per_page=100"), "") {
			if j.Name == name && j.ID > found.ID {
				found = j
			}
		}
		g.Expect(string(found.Status)).To(Equal(status), func() string { return name + ": " + f.trace(found) })
	}).WithPolling(polling).Should(Succeed())
	return found
}

// trace returns the log of a job.
func (f factory) trace(j pipelines.Job) string {
	GinkgoHelper()
	return f.max.Call(fmt.Sprintf("GET %s/jobs/%d/trace", f.path(""), j.ID), "").Body
}

var _ = Describe("Pipelines", Ordered, func() {
	var mill factory
	var quarry team

	BeforeAll(func(ctx context.Context) {
		mill, quarry = newFactory(ctx, "mill"), newTeam("quarry")
	})

	It("run after a push, in the order of needs, with artifacts", func() {
		clone := mill.start()
		clone.Commit(".gitlab-ci.yml", `
stages: [build, test, publish]
workflow: {rules: [{if: $CI_COMMIT_BRANCH}]}
.push: {rules: [{if: '$CI_PIPELINE_SOURCE == "push"'}]}
make: {extends: .push, stage: build, script: [mkdir out, echo made by $CI_JOB_NAME > out/app.txt], artifacts: {paths: [out]}}
lint: {extends: .push, stage: build, script: test -e README.md}
check: {extends: .push, stage: test, needs: [make], script: grep "made by make" out/app.txt}
publish: {extends: .push, stage: publish, needs: [check, lint], script: test ! -e out}
greet:
  rules: [{if: '$CI_PIPELINE_SOURCE == "trigger"'}]
  script: [echo "Hello $TARGET from $CI_COMMIT_REF_NAME", grep TARGET "$TRIGGER_PAYLOAD"]
cross:
  rules: [{if: '$CI_PIPELINE_SOURCE == "api"'}]
  script:
  - code=$(curl --silent --output answer --write-out "%{http_code}" --form token=$CI_JOB_TOKEN --form ref=main $CI_API_V4_URL/projects/quarry%2Fapp/trigger/pipeline)
  - echo "The answer is $code"
  - test $code = 201
`)
		begun := time.Now()
		clone.MustPush("main")
		published := mill.job("publish", "success")
		report("pipeline of four jobs successful after", time.Since(begun))
		after := func(later pipelines.Job, earlier ...string) {
			GinkgoHelper()
			for _, name := range earlier {
				Expect(time.Time(later.StartedAt)).NotTo(BeTemporally("<", time.Time(mill.job(name, "success").FinishedAt)), "%s after %s", later.Name, name)
			}
		}
		after(published, "lint", "check")
		after(mill.job("check", "success"), "make")
		Expect(mill.max.Call("GET "+mill.path("/jobs/artifacts/main/raw/out/app.txt?job=make"), "").Body).To(Equal("made by make\n"))
	})

	It("have the variables of the request that triggers them", func() {
		token := rest.Must[trigger](mill.max, http.StatusCreated, "POST "+mill.path("/triggers"), `{"description":"Greetings"}`).Token
		credentials[token] = true
		anyone := rest.WithToken(admin.Getenv("FORGEPLANE_URL"), "")
		made := rest.Must[pipelines.Detailed](anyone, http.StatusCreated, "POST "+mill.path("/trigger/pipeline"),
			`{"token":"`+token+`","ref":"main","variables":{"TARGET":"quarry"}}`)
		Expect(made.Source).To(Equal("trigger"))
		Expect(mill.trace(mill.job("greet", "success"))).To(ContainSubstring("Hello quarry from main"))
	})

	It("can be triggered by a job of another project once their JobTokenScope allows it", func() {
		quarry.apply(`
apiVersion: forgeplane.dev/v1alpha1
kind: Membership
metadata: {name: miller, namespace: TEAM}
spec: {groupRef: {name: TEAM}, userRef: {name: mill-max}, role: Maintainer}
`)
		quarry.waitReady("membership/miller")
		clone := quarry.start()
		clone.Commit(".gitlab-ci.yml", `build: {script: make, rules: [{if: '$CI_PIPELINE_SOURCE == "pipeline"'}]}`)
		clone.MustPush("main")
		mill.create()
		refused := mill.job("cross", "failed")
		Expect(mill.trace(refused)).To(ContainSubstring("The answer is 404"))

		begun := time.Now()
		quarry.apply(`
apiVersion: forgeplane.dev/v1alpha1
kind: JobTokenScope
metadata: {name: app, namespace: TEAM}
spec: {projectRef: {name: app}, allowlist: [{projectRef: {path: mill/app}}]}
`)
		quarry.waitReady("jobtokenscope/app")
		rest.Must[pipelines.Job](mill.max, http.StatusCreated, fmt.Sprintf("POST %s/jobs/%d/retry", mill.path(""), refused.ID), "")
		allowed := mill.job("cross", "success")
		report("job allowed in another project, and run, after", time.Since(begun))
		Expect(mill.trace(allowed)).To(ContainSubstring("The answer is 201"))
		made := rest.Must[[]pipelines.Pipeline](mill.max, http.StatusOK, "GET /projects/quarry%2Fapp/pipelines", "")
		Expect(made).To(HaveExactElements(And(HaveField("Source", "pipeline"), HaveField("Ref", "main"))))
	})
})
