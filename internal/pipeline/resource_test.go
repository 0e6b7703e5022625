package pipeline_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/internal/pipeline"
)

func deploy(name, group string) *pipeline.Job {
	return &pipeline.Job{Name: name, When: "on_success", ResourceGroup: group}
}

// advance runs the tasks of pipelines.
func (s site) advance(all ...pipeline.Pipeline) {
	s.t.Helper()
	for _, p := range all {
		_, err := s.Advance(s.t.Context(), p.ID)
		s.Expect(err).NotTo(HaveOccurred())
	}
}

func TestResourceGroup_runsJobsOneAfterTheOther(t *testing.T) {
	for name, end := range map[string]func(s site, p pipeline.Pipeline){
		"success":  func(s site, p pipeline.Pipeline) { s.run(p, 0, pipeline.Success) },
		"failure":  func(s site, p pipeline.Pipeline) { s.run(p, 0, pipeline.Failed) },
		"deletion": func(s site, p pipeline.Pipeline) { s.Expect(s.Delete(s.t.Context(), p.ID)).To(Succeed()) },
		"cancel": func(s site, p pipeline.Pipeline) {
			_, err := s.Cancel(s.t.Context(), p.ID)
			s.Expect(err).NotTo(HaveOccurred())
		},
	} {
		t.Run(name, func(t *testing.T) {
			onEachEngine(t, func(s site) {
				first := s.create(pipeline.Pipeline{}, deploy("a", "production"), deploy("b", "staging"))
				second := s.create(pipeline.Pipeline{}, deploy("a", "production"))
				third := s.create(pipeline.Pipeline{}, deploy("a", "production"), deploy("b", "production"))
				s.Expect(s.statuses(first)).To(Equal([]pipeline.Status{pipeline.Pending, pipeline.Pending, pipeline.Pending}))
				s.Expect(s.statuses(second)).To(Equal([]pipeline.Status{pipeline.WaitingForResource, pipeline.WaitingForResource}))
				end(s, first)
				s.advance(third, second)
				s.Expect(s.statuses(second)).To(ConsistOf(pipeline.Pending, pipeline.Pending), "it has waited longest")
				s.run(second, 0, pipeline.Success)
				s.advance(third)
				s.Expect(s.jobs(third)).To(HaveExactElements(HaveField("Status", pipeline.Pending), HaveField("Status", pipeline.WaitingForResource)))
				s.run(third, 0, pipeline.Success)
				s.Expect(s.jobs(third)).To(HaveExactElements(HaveField("Status", pipeline.Success), HaveField("Status", pipeline.Pending)))
			})
		})
	}
}

func TestResourceGroup_isWaitedForByRetries(t *testing.T) {
	onEachEngine(t, func(s site) {
		first := s.create(pipeline.Pipeline{}, deploy("a", "production"))
		s.run(first, 0, pipeline.Failed)
		second := s.create(pipeline.Pipeline{}, deploy("a", "production"))
		_, err := s.RetryJob(t.Context(), s.jobs(first)[0], mary)
		s.Expect(err).NotTo(HaveOccurred())
		s.Expect(s.jobs(first)).To(HaveExactElements(HaveField("Status", pipeline.WaitingForResource)))
		s.run(second, 0, pipeline.Success)
		s.advance(first)
		s.Expect(s.jobs(first)).To(HaveExactElements(HaveField("Status", pipeline.Pending)))
	})
}
