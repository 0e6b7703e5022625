package pipelines_test

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/apiserver/v4/pipelines"
	"github.com/forgeplane/forgeplane/internal/catalog/catalogtest/objects"
	"github.com/forgeplane/forgeplane/internal/pipeline"
)

// newTriggers is newWorld with trigger tokens: mary has one of web and one of the project other, dora, who may own none, has one of web, and one
// has no owner. The value of a token is "value of" and its name.
func newTriggers(t *testing.T) world {
	t.Helper()
	token := func(name, project, owner string) *v1alpha1.TriggerToken {
		t := objects.TriggerToken("acme", name, v1alpha1.Reference{Name: project}, "value of "+name)
		if owner != "" {
			t.Spec.OwnerRef = &v1alpha1.Reference{Path: owner}
		}
		return t
	}
	w := newWorld(t, familytest.Project("acme", "other", 21, "acme", v1alpha1.VisibilityPublic), token("good", "web", "mary"),
		token("other", "other", "mary"), token("dora", "web", "dora"), token("unowned", "web", ""), &v1alpha1.ProtectedBranch{
			ObjectMeta: metav1.ObjectMeta{Namespace: "acme", Name: "closed"},
			Spec: v1alpha1.ProtectedBranchSpec{
				ID: 31, ProjectRef: &v1alpha1.Reference{Name: "web"}, Branch: "closed",
				Push: []v1alpha1.AccessLevel{{Role: v1alpha1.AccessNoOne}}, Merge: []v1alpha1.AccessLevel{{Role: v1alpha1.AccessNoOne}},
			},
		})
	w.web.Git(t, "update-ref", "refs/heads/closed", "topic")
	w.web.Git(t, "update-ref", "refs/heads/quiet", w.commit("Change nothing [ci skip]", "build: {script: make, only: [triggers]}\nother: {script: x, rules: [{if: '$CI_PIPELINE_TRIGGERED == \"true\"'}]}"))
	return w
}

func TestTrigger_createsPipelineAsOwnerOfToken(t *testing.T) {
	w := newTriggers(t)
	a := w.As("", "POST /projects/20/trigger/pipeline", `{"token":"value of good","ref":"topic","variables":{"FULL":"yes","A":""},"event":{"of":[1,"x"]}}`)
	w.Expect(a.Code).To(Equal(201), a.Body)
	p := familytest.Decode[pipelines.Detailed](t, a)
	w.Expect(a.Body).To(And(ContainSubstring(`"source":"trigger"`), ContainSubstring(`"status":"created"`), ContainSubstring(`"username":"mary"`)))
	w.Expect(w.named(p, "test")).NotTo(BeZero(), "the rules get the variables")
	w.Expect(w.As("mary", fmt.Sprintf("GET /projects/20/pipelines/%d/variables", p.ID), "").Body).To(MatchJSON(`[
		{"key":"A","value":"","variable_type":"env_var"}, {"key":"FULL","value":"yes","variable_type":"env_var"},
		{"key":"TRIGGER_PAYLOAD","value":"{\"event\":{\"of\":[1,\"x\"]},\"ref\":\"topic\",\"variables\":{\"A\":\"\",\"FULL\":\"yes\"}}","variable_type":"file"}]`))
}

func TestTrigger_takesRefAndTokenWhereClientsSendThem(t *testing.T) {
	w := newTriggers(t)
	for _, target := range []string{
		"/projects/20/trigger/pipeline?token=value+of+good&ref=quiet&variables[A]=1", "/projects/acme%2Fweb/ref/quiet/trigger/pipeline?token=value+of+good",
		"/projects/20/ref/quiet/trigger/pipeline?token=value+of+good&ref=main",
	} {
		a := w.As("rita", "POST "+target, "")
		w.Expect(a.Code).To(Equal(201), "%s: %s", target, a.Body)
		w.Expect(a.Body).To(And(ContainSubstring(`"ref":"quiet"`), ContainSubstring(`"username":"mary"`)))
		p := familytest.Decode[pipelines.Detailed](t, a)
		w.Expect(w.named(p, "build")).NotTo(BeZero(), "a trigger is not skipped")
		w.Expect(w.named(p, "other")).NotTo(BeZero())
	}
}

func TestTrigger_saysWhatIsWrong(t *testing.T) {
	w := newTriggers(t)
	const hidden = `404 {"message":"404 Not Found"}`
	base := func(text string) string { return `400 {"message":{"base":["` + text }
	for body, want := range map[string]string{
		`{"ref":"topic"}`:                                                 `400 {"error":"token is missing"}`,
		`{"token":" ","ref":"topic"}`:                                     `400 {"error":"token is empty"}`,
		`{"token":["x"],"ref":"topic"}`:                                   `400 {"error":"token is invalid"}`,
		`{"token":"value of good"}`:                                       `400 {"error":"ref is missing"}`,
		`{"token":"value of good","ref":""}`:                              `400 {"error":"ref is empty"}`,
		`{"token":"value of bad","ref":"topic"}`:                          hidden,
		`{"token":"value of other","ref":"topic"}`:                        hidden,
		`{"token":"value of dora","ref":"topic"}`:                         hidden,
		`{"token":` + quoted(familytest.Value("mary")) + `,"ref":"main"}`: hidden,
		`{"token":"value of unowned","ref":"topic"}`:                      `400 {"message":"400 Bad request - the trigger token has no owner`,
		`{"token":"value of good","ref":"topic","variables":"A=1"}`:       `400 {"error":"variables is invalid"`,
		`{"token":"value of good","ref":"topic","variables":{"A":1}}`:     `400 {"message":"variables needs to be a map of key-valued strings"}`,
		`{"token":"value of good","ref":"topic","variables":{"a-b":""}}`:  base("Invalid variable name"),
		`{"token":"value of good","ref":"none"}`:                          base("Reference not found"),
		`{"token":"value of good","ref":"bare"}`:                          base("Missing CI config file"),
		`{"token":"value of good","ref":"closed"}`:                        base("You do not have sufficient permission to run a pipeline on 'closed'."),
	} {
		w.Expect(w.As("mary", "POST /projects/20/trigger/pipeline", body).String()).To(HavePrefix(want), body)
	}
	good := `{"token":"value of good","ref":"topic"}`
	w.Expect(w.As("", "POST /projects/404/trigger/pipeline", good).String()).To(Equal(hidden))
	r := httptest.NewRequestWithContext(t.Context(), "POST", "/projects/20/trigger/pipeline", strings.NewReader(good))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Gitlab-Event", "Pipeline Hook")
	answer := httptest.NewRecorder()
	w.ServeHTTP(answer, r)
	w.Expect(answer.Code).To(Equal(403), "a webhook would trigger pipelines forever")
	w.archive()
	w.Expect(w.As("", "POST /projects/20/trigger/pipeline", good).String()).To(Equal(`403 {"message":"403 Forbidden"}`))
}

func TestTrigger_takesTokenOfRunningJob(t *testing.T) {
	w := newTriggers(t)
	w.Authenticator.Executing(w.Activity.Runners, w.Activity.Pipelines)
	p, token := w.create(`{"ref":"topic"}`), pipeline.NewToken()
	j, err := w.Activity.Pipelines.GetJob(t.Context(), w.project().UID, w.named(p, "build"))
	w.Expect(err).NotTo(HaveOccurred())
	_, err = w.Activity.Pipelines.Take(t.Context(), j, 1, token)
	w.Expect(err).NotTo(HaveOccurred())
	ask := func(project int, ref string) familytest.Answer {
		return w.As("", fmt.Sprintf("POST /projects/%d/trigger/pipeline", project), fmt.Sprintf(`{"token":%q,"ref":%q}`, token, ref))
	}
	a := ask(20, "topic")
	w.Expect(a.Code).To(Equal(201), a.Body)
	w.Expect(a.Body).To(And(ContainSubstring(`"source":"pipeline"`), ContainSubstring(`"username":"dora"`)))
	w.Expect(ask(20, "main").String()).To(ContainSubstring("You do not have sufficient permission to run a pipeline on 'main'."))
	w.Expect(ask(21, "main").String()).To(Equal(`404 {"message":"404 Not Found"}`), "no scope allows it")
	for header, want := range map[string]string{
		token: "201 ", pipeline.TokenPrefix + "unknown": `404 {"message":"404 Not Found"}`, "": `400 {"error":"token is missing"}`,
		"value of good": `400 {"error":"token is missing"}`,
	} {
		w.Header = map[string][]string{"Job-Token": {header}}
		w.Expect(w.As("", "POST /projects/20/trigger/pipeline", `{"ref":"topic"}`).String()).To(HavePrefix(want), header)
		w.Expect(w.As("", "POST /projects/20/ref/topic/trigger/pipeline", "").String()).To(HavePrefix(want), header)
	}
	w.Expect(w.As("", "POST /projects/20/trigger/pipeline", `{"token":"value of good","ref":"topic"}`).String()).To(ContainSubstring(`"source":"trigger"`),
		"the parameter precedes the header")
	w.Expect(w.As("", "POST /projects/20/trigger/pipeline", `{"token":"","ref":"topic"}`).String()).To(Equal(`400 {"error":"token is empty"}`))
	w.Header = nil
	_, err = w.Activity.Pipelines.Succeed(t.Context(), j)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(ask(20, "topic").String()).To(HavePrefix(`401 {"error":"invalid_token"`))
}
