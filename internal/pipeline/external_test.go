package pipeline_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/internal/pipeline"
)

func TestReport_staysApartFromTheJobsOfRunners(t *testing.T) {
	onEachEngine(t, func(s site) {
		deploy := when("deploy", 1, "on_success")
		deploy.HasNeeds, deploy.Needs = true, []pipeline.Need{{Job: "build"}}
		p := s.create(pipeline.Pipeline{}, when("build", 0, "on_success"), deploy)
		report := func(name string, status pipeline.Status) pipeline.Job {
			t.Helper()
			j, err := s.Report(t.Context(), &p, pipeline.Report{Name: name, Status: status, By: dora})
			s.Expect(err).NotTo(HaveOccurred())
			return j
		}
		report("build", pipeline.Success)
		s.Expect(s.statuses(p)).To(Equal([]pipeline.Status{pipeline.Running, pipeline.Pending, pipeline.Created}), "deploy needs the job, and not the report")
		report("scan", pipeline.Skipped)
		s.run(p, 0, pipeline.Failed)
		_, err := s.Retry(t.Context(), p.ID, mary)
		s.Expect(err).NotTo(HaveOccurred())
		s.run(p, 0, pipeline.Success)
		s.run(p, 1, pipeline.Success)
		s.Expect(s.statuses(p)).To(HaveEach(pipeline.Success))
		first, second := report("scan", pipeline.Failed), report("scan", pipeline.Success)
		s.Expect(second.ID).NotTo(Equal(first.ID))
		coverage := 98.5
		third, err := s.Report(t.Context(), &p, pipeline.Report{Name: "coverage", Status: pipeline.Running, Coverage: &coverage, By: dora})
		s.Expect(err).NotTo(HaveOccurred())
		s.Expect(s.statuses(p)[0]).To(Equal(pipeline.Running))
		all, err := s.ListStatuses(t.Context(), pipeline.StatusQuery{Project: web.UID, SHA: p.SHA, Name: "coverage"}, 0, 10)
		s.Expect(err).NotTo(HaveOccurred())
		s.Expect(all).To(HaveExactElements(And(HaveField("ID", third.ID), HaveField("Coverage", HaveValue(Equal(98.5))))))
	})
}
