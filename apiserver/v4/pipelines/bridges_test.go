package pipelines_test

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/launch"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/apiserver/v4/pipelines"
	"github.com/forgeplane/forgeplane/internal/credential"
	"github.com/forgeplane/forgeplane/internal/git/update"
	"github.com/forgeplane/forgeplane/internal/job"
	"github.com/forgeplane/forgeplane/internal/mergerequest"
	"github.com/forgeplane/forgeplane/internal/pipeline"
)

// bridged creates a pipeline of a branch with a configuration, as dora.
func (w world) bridged(configuration string) pipelines.Detailed {
	w.t.Helper()
	w.web.Git(w.t, "update-ref", "refs/heads/bridge", w.commit("bridge", configuration))
	return w.create(`{"ref":"bridge"}`)
}

// bridge returns the only job of a pipeline that triggers another one.
func (w world) bridge(p pipelines.Detailed) pipelines.Bridge {
	w.t.Helper()
	all := familytest.Decode[[]pipelines.Bridge](w.t, w.As("rita", fmt.Sprintf("GET /projects/20/pipelines/%d/bridges", p.ID), ""))
	w.Expect(all).To(HaveLen(1))
	return all[0]
}

// cross runs the task of the job that triggers a pipeline, twice, because a task can run again although its work was done.
func (w world) cross(p pipelines.Detailed) pipelines.Bridge {
	w.t.Helper()
	l := launch.New(w.Kit)
	for range 2 {
		w.Expect(l.Bridge(w.t.Context(), job.Attempt{Task: job.Task{Key: fmt.Sprint(w.bridge(p).ID)}}, nil)).To(Succeed())
	}
	return w.bridge(p)
}

func TestBridge_triggersPipelineOfAnotherBranch(t *testing.T) {
	w := newWorld(t)
	p := w.bridged(`next: {trigger: {project: acme/web, branch: topic}, variables: {TARGET: "$CI_COMMIT_REF_NAME to all"}}`)
	b := w.cross(p)
	w.Expect(b).To(And(HaveField("Status", pipeline.Success), HaveField("Downstream", HaveValue(And(HaveField("Ref", "topic"), HaveField("Source", "pipeline"))))))
	w.Expect(w.get(p).Status).To(Equal(pipeline.Success))
	w.Expect(w.As("dora", fmt.Sprintf("GET /projects/20/pipelines/%d/variables", b.Downstream.ID), "").Body).To(ContainSubstring(`"value":"bridge to all"`))
	w.Expect(familytest.Decode[[]pipelines.Pipeline](t, w.As("rita", "GET /projects/20/pipelines?ref=topic", ""))).To(HaveLen(1))
}

func TestBridge_expandsVariablesThatItHandsOn(t *testing.T) {
	declared := &v1alpha1.Variable{
		ObjectMeta: metav1.ObjectMeta{Namespace: "acme", Name: "password", UID: "password"},
		Spec:       v1alpha1.VariableSpec{Key: "PASSWORD", EnvironmentScope: v1alpha1.AnyEnvironment, ProjectRef: &v1alpha1.Reference{Name: "web"}},
	}
	value := credential.NewStore(nil, familytest.Namespace).New(v1alpha1.SecretOfVariable, declared, map[string][]byte{credential.ValueKey: []byte("top secret")})
	declared.Status.SecretRef.Name = value.Name
	w := newWorld(t, declared, value)
	p := w.bridged(`
stages: [build, next]
variables: {VERSION: "1.2"}
build: {stage: build, script: make, artifacts: {reports: {dotenv: a.env}}}
next: {stage: next, trigger: {project: acme/web, branch: topic, forward: {yaml_variables: true}}, variables: {IMAGE: "app:$VERSION", TAG: $BUILT, LOGIN: "max:$PASSWORD", NONE: "-$NONE_OF_THESE-"}}
`)
	w.Expect(w.Activity.Pipelines.SetOutputs(t.Context(), w.named(p, "build"), []pipeline.Output{{Key: "BUILT", Value: "v3"}})).To(Succeed())
	w.run(p, "build", pipeline.Success)
	below := w.cross(p).Downstream
	var all []pipelines.Variable
	w.Expect(json.Unmarshal([]byte(w.As("dora", fmt.Sprintf("GET /projects/20/pipelines/%d/variables", below.ID), "").Body), &all)).To(Succeed())
	values := map[string]string{}
	for _, v := range all {
		values[v.Key] = v.Value
	}
	w.Expect(values).To(Equal(map[string]string{"VERSION": "1.2", "IMAGE": "app:1.2", "TAG": "v3", "LOGIN": "max:${PASSWORD}", "NONE": "--"}))
}

func TestBridge_followsPipelineWithStrategy(t *testing.T) {
	for result, want := range map[pipeline.Status]pipeline.Status{pipeline.Success: pipeline.Success, pipeline.Failed: pipeline.Failed} {
		t.Run(string(result), func(t *testing.T) {
			w := newWorld(t)
			w.web.Git(w.t, "update-ref", "refs/heads/one", w.commit("one", "only: {script: make}"))
			p := w.bridged(`next: {trigger: {project: acme/web, branch: one, strategy: depend}}`)
			b := w.cross(p)
			w.Expect(b.Status).To(Equal(pipeline.Running))
			w.Expect(w.get(p).Status).To(Equal(pipeline.Running))
			below := familytest.Decode[pipelines.Detailed](t, w.As("rita", fmt.Sprintf("GET /projects/20/pipelines/%d", b.Downstream.ID), ""))
			w.run(below, "only", result)
			w.Expect(w.cross(p).Status).To(Equal(want))
			w.Expect(w.get(p).Status).To(Equal(want))

			retry := fmt.Sprintf("POST /projects/20/jobs/%d/retry", w.named(below, "only"))
			w.Expect(w.As("dora", retry, "").Code).To(Equal(201))
			w.Expect(w.cross(p).Status).To(Equal(pipeline.Running), "the pipeline below runs again")
			w.Expect(w.get(p).Status).To(Equal(pipeline.Running))
			w.run(below, "only", pipeline.Success)
			w.Expect(w.cross(p).Status).To(Equal(pipeline.Success))
			w.Expect(w.get(p).Status).To(Equal(pipeline.Success))
		})
	}
}

func TestBridge_showsMistakesOfDownstreamPipeline(t *testing.T) {
	w := newWorld(t)
	w.web.Git(w.t, "update-ref", "refs/heads/one", w.commit("one", "build: {script: make, colour: red}"))
	b := w.cross(w.bridged(`next: {trigger: {project: acme/web, branch: one}}`))
	w.Expect(b).To(And(HaveField("Status", pipeline.Failed), HaveField("FailureReason", HaveValue(Equal(pipeline.NoDownstream)))))
	below := familytest.Decode[pipelines.Detailed](t, w.As("rita", fmt.Sprintf("GET /projects/20/pipelines/%d", b.Downstream.ID), ""))
	w.Expect(below.Status).To(Equal(pipeline.Failed))
	w.Expect(*below.YAMLErrors).To(HavePrefix(".gitlab-ci.yml:1: build:colour: unknown keyword"))
}

func TestBridge_tellsChildPipelineOfTheMergeRequest(t *testing.T) {
	w := newWorld(t)
	blob := func(content string) string { return raw(w.web.Write(t, "blob", content)) }
	tree := w.web.Write(t, "tree", "100644 .gitlab-ci.yml\x00"+blob("next: {trigger: {include: child.yml}, rules: [{if: $CI_MERGE_REQUEST_IID}]}")+
		"100644 child.yml\x00"+blob("inner: {script: make, rules: [{if: $CI_MERGE_REQUEST_IID}]}"))
	work := w.web.Git(t, "commit-tree", "-p", "bare", "-m", "work", tree)
	m := mergerequest.MergeRequest{In: w.ProjectRow(20), Source: w.ProjectRow(20), SourceBranch: "work", TargetBranch: "main", Title: "Work", Author: w.UserRow("dora")}
	w.Expect(w.Activity.MergeRequests.Create(t.Context(), &m)).To(Succeed())
	w.web.Git(t, "update-ref", "refs/heads/work", work)
	w.pushes(update.Ref{Name: "refs/heads/work", New: work})
	all := familytest.Decode[[]pipelines.Detailed](t, w.As("rita", "GET /projects/20/pipelines", ""))
	w.Expect(all).To(HaveLen(1))
	w.Expect(w.cross(all[0])).To(And(HaveField("Status", pipeline.Success), HaveField("Downstream", HaveValue(HaveField("Ref", "refs/merge-requests/1/head")))))
}

func TestBridge_triggersChildPipeline(t *testing.T) {
	w := newKeeper(t)
	p := w.bridged("stages: [build, next]\nmake: {stage: build, script: make, artifacts: {paths: [child.yml]}}\n" +
		"next: {stage: next, trigger: {include: [{artifact: child.yml, job: make}]}}")
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	into, err := z.Create("child.yml")
	w.Expect(err).NotTo(HaveOccurred())
	_, err = into.Write([]byte("inner: {script: make inner, artifacts: {paths: [x]}}"))
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(z.Close()).To(Succeed())
	a := pipeline.Artifact{JobID: w.named(p, "make"), Type: pipeline.Archive, Format: "zip", Name: "artifacts.zip", Access: "all", Size: int64(b.Len())}
	w.Expect(w.Artifacts.Add(t.Context(), &a, bytes.NewReader(b.Bytes()))).To(Succeed())
	w.run(p, "make", pipeline.Success)
	crossed := w.cross(p)
	w.Expect(crossed).To(And(HaveField("Status", pipeline.Success), HaveField("Downstream", HaveValue(And(HaveField("Source", "parent_pipeline"), HaveField("SHA", p.SHA))))))
	for _, filter := range []string{"ref=bridge", "scope=branches"} {
		all := familytest.Decode[[]pipelines.Pipeline](t, w.As("rita", "GET /projects/20/pipelines?"+filter, ""))
		w.Expect(all).To(HaveExactElements(HaveField("ID", p.ID)), filter)
	}
	w.Expect(familytest.Decode[[]pipelines.Pipeline](t, w.As("rita", "GET /projects/20/pipelines?source=parent_pipeline", ""))).To(HaveLen(1))

	child := familytest.Decode[pipelines.Detailed](t, w.As("rita", fmt.Sprintf("GET /projects/20/pipelines/%d", crossed.Downstream.ID), ""))
	inner := pipeline.Artifact{JobID: w.named(child, "inner"), Type: pipeline.Archive, Format: "zip", Name: "artifacts.zip", Access: "all", Size: int64(b.Len())}
	w.Expect(w.Artifacts.Add(t.Context(), &inner, bytes.NewReader(b.Bytes()))).To(Succeed())
	for _, name := range []string{"make", "inner"} {
		w.Expect(w.As("rita", "GET /projects/20/jobs/artifacts/bridge/download?job="+name, "").Code).To(Equal(200), name)
	}
}

func TestBridge_failsWithAReason(t *testing.T) {
	for configuration, reason := range map[string]string{
		"next: {trigger: acme/missing}":                                    pipeline.NoDownstreamProject,
		"next: {trigger: hidden/secret}":                                   pipeline.NoDownstreamProject,
		"next: {trigger: open/open}":                                       pipeline.ForbiddenDownstream,
		"next: {trigger: {project: acme/web, branch: main}}":               pipeline.ForbiddenDownstream,
		"next: {trigger: {project: acme/web, branch: missing}}":            pipeline.NoDownstream,
		"next: {trigger: {project: acme/web, branch: bare}}":               pipeline.NoDownstream,
		"next: {trigger: {include: missing.yml}}":                          pipeline.NoDownstream,
		"next: {trigger: {include: [{artifact: x.yml, job: next}]}}":       pipeline.NoDownstream,
		"next: {trigger: {project: acme/web, branch: bridge}}\n# a circle": "",
	} {
		t.Run(configuration, func(t *testing.T) {
			open := familytest.Project("open", "open", 31, "open", v1alpha1.VisibilityPublic)
			w := newWorld(t, familytest.Group("open", "open", 30, "", v1alpha1.VisibilityPublic), open,
				familytest.Group("hidden", "hidden", 32, "", v1alpha1.VisibilityPrivate), familytest.Project("hidden", "secret", 33, "hidden", v1alpha1.VisibilityPrivate))
			b := w.cross(w.bridged(configuration))
			if reason == "" {
				w.Expect(b.Status).To(Equal(pipeline.Success), "the next one goes on")
				return
			}
			w.Expect(b).To(And(HaveField("Status", pipeline.Failed), HaveField("FailureReason", HaveValue(Equal(reason)))))
		})
	}
}
