package e2e

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/random"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/apiserver/v4/pipelines"
	"github.com/forgeplane/forgeplane/internal/pipeline"
	"github.com/forgeplane/forgeplane/test/rest"
	"github.com/forgeplane/forgeplane/test/soak"
)

// The real runner executes the jobs of all kinds. Each pipeline has the jobs of one CASE.
var _ = Describe("Jobs", Ordered, func() {
	var press factory

	BeforeAll(func(ctx context.Context) {
		soak.Only(GinkgoTB())
		press = newFactory(ctx, "press")
		clone := press.start()
		clone.Commit("child.yml", "inner: {script: echo child of $CI_PIPELINE_SOURCE}\n")
		clone.Commit(".gitlab-ci.yml", `
stages: [build, test]
workflow: {rules: [{if: $CASE}]}
matrix:
  rules: [{if: $CASE == "matrix"}]
  parallel: {matrix: [{OS: [linux, plan9], ARCH: [arm64]}]}
  script: echo $OS on $ARCH
fill:
  stage: build
  rules: [{if: $CASE == "cache"}]
  cache: {key: tools, paths: [tools]}
  script: [mkdir -p tools, echo cached > tools/hammer]
use:
  rules: [{if: $CASE == "cache"}]
  cache: {key: tools, paths: [tools], policy: pull}
  script: cat tools/hammer
flaky:
  rules: [{if: $CASE == "retry"}]
  retry: {max: 1, when: script_failure}
  script: [mkdir -p ../counted, touch ../counted/$CI_JOB_ID, "[ $(ls ../counted | wc -l) -gt 1 ]"]
broken:
  rules: [{if: $CASE == "allowed", allow_failure: true}, {if: $CASE == "failure"}]
  script: exit 3
slow:
  rules: [{if: $CASE == "cancel"}]
  script: [echo begun, sleep 300]
careful:
  rules: [{if: $CASE == "manual", when: manual, allow_failure: false}]
  script: echo played by $GITLAB_USER_LOGIN with $LEVEL
parent:
  rules: [{if: $CASE == "child"}]
  trigger: {include: child.yml, strategy: depend}
version:
  stage: build
  rules: [{if: $CASE == "dotenv"}]
  script: echo VERSION=1.2 > build.env
  artifacts: {reports: {dotenv: build.env}}
release:
  rules: [{if: $CASE == "dotenv"}]
  script: echo Releasing $VERSION
ship:
  rules: [{if: $CASE == "ship"}]
  script:
  - skopeo login --tls-verify=false --authfile auth.json --username "$CI_REGISTRY_USER" --password "$CI_REGISTRY_PASSWORD" "$CI_REGISTRY"
  - skopeo copy --authfile auth.json --dest-tls-verify=false "oci:$LAYOUT" "docker://$CI_REGISTRY_IMAGE:ci"
long:
  rules: [{if: $CASE == "long"}]
  script: [echo begun, for i in $(seq 20); do echo $i; sleep 1; done, echo finished]
`)
		clone.MustPush("main")
	})

	// run creates the pipeline of a case.
	run := func(of string) pipelines.Detailed {
		GinkgoHelper()
		return press.create(`{"key":"CASE","value":"` + of + `"}`)
	}
	// ended waits until a pipeline has a status.
	ended := func(p pipelines.Detailed, status pipeline.Status) {
		GinkgoHelper()
		Eventually(func() pipeline.Status {
			return rest.Must[pipelines.Detailed](press.max, http.StatusOK, fmt.Sprintf("GET %s/pipelines/%d", press.path(""), p.ID), "").Status
		}).WithPolling(polling).Should(Equal(status))
	}
	post := func(of pipelines.Job, verb, body string) {
		GinkgoHelper()
		Expect(press.max.Call(fmt.Sprintf("POST %s/jobs/%d/%s", press.path(""), of.ID, verb), body).Status).To(BeElementOf(200, 201))
	}

	It("run for each combination of a matrix", func() {
		ended(run("matrix"), pipeline.Success)
		Expect(press.trace(press.job("matrix: [linux, arm64]", "success"))).To(ContainSubstring("linux on arm64"))
		Expect(press.trace(press.job("matrix: [plan9, arm64]", "success"))).To(ContainSubstring("plan9 on arm64"))
	})

	It("share a cache", func() {
		ended(run("cache"), pipeline.Success)
		Expect(press.trace(press.job("use", "success"))).To(ContainSubstring("cached"))
	})

	It("run again as retry says", func() {
		p := run("retry")
		ended(p, pipeline.Success)
		all := rest.Must[[]pipelines.Job](press.max, http.StatusOK, fmt.Sprintf("GET %s/pipelines/%d/jobs?include_retried=true", press.path(""), p.ID), "")
		Expect(all).To(ConsistOf(HaveField("Status", pipeline.Success), And(HaveField("Status", pipeline.Failed), HaveField("FailureReason", HaveValue(Equal("script_failure"))))))
	})

	It("fail their pipelines, unless they are allowed to fail", func() {
		ended(run("allowed"), pipeline.Success)
		ended(run("failure"), pipeline.Failed)
	})

	It("stop when they are canceled", func() {
		p := run("cancel")
		j := press.job("slow", "running")
		Eventually(press.trace).WithArguments(j).WithPolling(polling).Should(ContainSubstring("begun"))
		post(j, "cancel", "")
		ended(p, pipeline.Canceled)
		ended(run("matrix"), pipeline.Success) // the runner takes other jobs
	})

	It("wait until they are played", func() {
		p := run("manual")
		ended(p, pipeline.Manual)
		post(press.job("careful", "manual"), "play", `{"job_variables_attributes":[{"key":"LEVEL","value":"care"}]}`)
		ended(p, pipeline.Success)
		Expect(press.trace(press.job("careful", "success"))).To(ContainSubstring("played by press-max with care"))
	})

	It("trigger child pipelines", func() {
		ended(run("child"), pipeline.Success)
		Expect(press.trace(press.job("inner", "success"))).To(ContainSubstring("child of parent_pipeline"))
	})

	It("hand variables to later jobs", func() {
		ended(run("dotenv"), pipeline.Success)
		Expect(press.trace(press.job("release", "success"))).To(ContainSubstring("Releasing 1.2"))
	})

	It("push images with their token", func() {
		directory := GinkgoT().TempDir()
		image, err := random.Image(1<<10, 1)
		Expect(err).NotTo(HaveOccurred())
		l, err := layout.Write(directory, empty.Index)
		Expect(err).NotTo(HaveOccurred())
		Expect(l.AppendImage(image)).To(Succeed())
		ended(press.create(`{"key":"CASE","value":"ship"}`, `{"key":"LAYOUT","value":"`+directory+`"}`), pipeline.Success)
		pushed := rest.Must[[]struct{ Tags []struct{ Name string } }](press.max, http.StatusOK, "GET "+press.path("/registry/repositories?tags=true"), "")
		Expect(pushed).To(HaveExactElements(HaveField("Tags", HaveExactElements(HaveField("Name", "ci")))))
	})

	It("end well although Forgeplane is killed meanwhile", func() {
		p := run("long")
		j := press.job("long", "running")
		Eventually(press.trace).WithArguments(j).WithPolling(polling).Should(ContainSubstring("begun"))
		running.Kill()
		Eventually(func() []string {
			return slices.DeleteFunc(checkout.Processes(), func(line string) bool { return strings.Contains(line, "gitlab-runner") })
		}).WithPolling(polling).Should(BeEmpty())
		start()
		ended(p, pipeline.Success)
		Expect(press.trace(j)).To(MatchRegexp(`(?s)begun.*1\n.*20\n.*finished`))
	})
})
