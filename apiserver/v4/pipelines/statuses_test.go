package pipelines_test

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/apiserver/v4/pipelines"
	"github.com/forgeplane/forgeplane/internal/pipeline"
)

// report reports the status of the head of topic as dora.
func (w world) report(body string) familytest.Answer {
	w.t.Helper()
	return w.As("dora", "POST /projects/20/statuses/"+w.web.Git(w.t, "rev-parse", "topic"), body)
}

func TestStatus_isReportedAndListed(t *testing.T) {
	w := newWorld(t)
	sha := w.web.Git(t, "rev-parse", "topic")
	a := w.report(`{"state":"running","context":"build/external","ref":"topic","target_url":"https://ci.example/1","description":"Building"}`)
	w.Expect(a.Code).To(Equal(201), a.Body)
	first := familytest.Decode[pipelines.CommitStatus](t, a)
	w.Expect(first).To(And(HaveField("SHA", sha), HaveField("Ref", "topic"), HaveField("Status", pipeline.Running), HaveField("Name", "build/external"),
		HaveField("TargetURL", HaveValue(Equal("https://ci.example/1"))), HaveField("Description", HaveValue(Equal("Building"))), HaveField("Author.Username", "dora"), HaveField("Coverage", BeNil())))
	show := func() pipelines.Detailed {
		t.Helper()
		return familytest.Decode[pipelines.Detailed](t, w.As("rita", fmt.Sprintf("GET /projects/20/pipelines/%d", first.PipelineID), ""))
	}
	w.Expect(show()).To(And(HaveField("Source", "external"), HaveField("Ref", "topic"), HaveField("Status", pipeline.Running)))

	second := familytest.Decode[pipelines.CommitStatus](t, w.report(`{"state":"success","name":"build/external","coverage":98.5}`))
	w.Expect(second).To(And(HaveField("ID", first.ID), HaveField("PipelineID", first.PipelineID), HaveField("Coverage", HaveValue(Equal(98.5)))))
	w.Expect(show().Status).To(Equal(pipeline.Success))
	w.Expect(w.report(`{"state":"failed"}`).Code).To(Equal(201))
	w.Expect(show().Status).To(Equal(pipeline.Failed))
	again := familytest.Decode[pipelines.CommitStatus](t, w.report(`{"state":"pending","name":"build/external"}`))
	w.Expect(again.ID).NotTo(Equal(first.ID), "the former one has ended")

	list := func(query string) (all []string) {
		t.Helper()
		for _, c := range familytest.Decode[[]pipelines.CommitStatus](t, w.As("rita", "GET /projects/20/repository/commits/topic/statuses?"+query, "")) {
			all = append(all, fmt.Sprintf("%s %s", c.Name, c.Status))
		}
		return all
	}
	w.Expect(list("")).To(Equal([]string{"default failed", "build/external pending"}))
	w.Expect(list("all=true&sort=desc")).To(Equal([]string{"build/external pending", "default failed", "build/external success"}))
	w.Expect(list("name=default&ref=topic&stage=external")).To(Equal([]string{"default failed"}))
	w.Expect(list("ref=main")).To(BeEmpty())
	w.Expect(familytest.Decode[[]pipelines.Job](t, w.As("rita", "GET /projects/20/jobs", ""))).To(BeEmpty(), "no runner executes them")
	w.Expect(w.Activity.Pipelines.Pending(t.Context(), nil, 0, 10)).To(BeEmpty())
	w.Expect(w.As("rita", fmt.Sprintf("GET /projects/20/jobs/%d", first.ID), "").Code).To(Equal(404))
}

func TestStatus_joinsPipelineOfTheCommit(t *testing.T) {
	w := newWorld(t)
	p := w.create(`{"ref":"topic"}`)
	reported := familytest.Decode[pipelines.CommitStatus](t, w.report(`{"state":"failed","name":"scan"}`))
	w.Expect(reported.PipelineID).To(Equal(p.ID))
	w.Expect(w.As("dora", fmt.Sprintf("POST /projects/20/pipelines/%d/retry", p.ID), "").Code).To(Equal(201))
	w.Expect(familytest.Decode[[]pipelines.CommitStatus](t, w.As("rita", "GET /projects/20/repository/commits/topic/statuses?name=scan", ""))).
		To(HaveExactElements(HaveField("ID", reported.ID)), "a retry does not concern it")
}

func TestStatus_isRefused(t *testing.T) {
	w := newWorld(t)
	for name, a := range map[string]familytest.Answer{
		"400 no state":       w.report(`{}`),
		"400 null":           w.report(`{"state":null}`),
		"403 main":           w.report(`{"state":"success","ref":"main"}`),
		"400 another state":  w.report(`{"state":"waiting"}`),
		"400 address":        w.report(`{"state":"success","target_url":"javascript:alert(1)"}`),
		"400 long":           w.report(fmt.Sprintf(`{"state":"success","description":"%0300d"}`, 0)),
		"403 a Guest":        w.As("otto", "GET /projects/20/repository/commits/topic/statuses", ""),
		"403 a Reporter":     w.As("rita", "POST /projects/20/statuses/topic", `{"state":"success"}`),
		"404 unknown commit": w.As("dora", "POST /projects/20/statuses/0000000000000000000000000000000000000000", `{"state":"success"}`),
		"404 unknown ref":    w.report(`{"state":"success","ref":"nothing"}`),
		"404 pipeline":       w.report(`{"state":"success","pipeline_id":99}`),
	} {
		w.Expect(fmt.Sprint(a.Code)).To(Equal(name[:3]), name+a.Body)
	}
}
