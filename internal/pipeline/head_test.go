package pipeline_test

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/internal/job"
	"github.com/forgeplane/forgeplane/internal/pipeline"
)

func TestHeads_areTheNewestOfBranchAndCommit(t *testing.T) {
	onEachEngine(t, func(s site) {
		s.create(pipeline.Pipeline{Ref: "main", SHA: "1"}, &pipeline.Job{Name: "a"})
		newest := s.create(pipeline.Pipeline{Ref: "main", SHA: "1"}, &pipeline.Job{Name: "a"})
		s.create(pipeline.Pipeline{Ref: "main", SHA: "1", Tag: true}, &pipeline.Job{Name: "a"})
		s.create(pipeline.Pipeline{Ref: "main", SHA: "1", Source: pipeline.SourceParent}, &pipeline.Job{Name: "a"})
		other := s.create(pipeline.Pipeline{Ref: "topic", SHA: "2"}, &pipeline.Job{Name: "a"})
		s.create(pipeline.Pipeline{Ref: "topic", SHA: "1"}, &pipeline.Job{Name: "a"})
		about := s.create(pipeline.Pipeline{Ref: "refs/merge-requests/1/head", SourceBranch: "main", MergeRequest: 7, SHA: "1"}, &pipeline.Job{Name: "a"})
		head := func(branch, sha string) pipeline.Head {
			return pipeline.Head{Project: web.UID, Branch: branch, SHA: sha}
		}
		ofRequest, ofOther := head("main", "1"), head("main", "1")
		ofRequest.MergeRequest, ofOther.MergeRequest = 7, 8
		found, err := s.Heads(t.Context(), head("main", "1"), head("topic", "2"), head("main", "2"), ofRequest, ofOther)
		s.Expect(err).NotTo(HaveOccurred())
		s.Expect(found).To(And(HaveLen(4), HaveKeyWithValue(ofRequest, HaveField("ID", about.ID)), HaveKeyWithValue(ofOther, HaveField("ID", newest.ID)),
			HaveKeyWithValue(head("main", "1"), HaveField("ID", newest.ID)), HaveKeyWithValue(head("topic", "2"), HaveField("ID", other.ID))))
		s.Expect(s.Heads(t.Context())).To(BeEmpty())
	})
}

func TestAwait_addsTaskEachTimeThePipelineEnds(t *testing.T) {
	onEachEngine(t, func(s site) {
		tasks := job.NewQueue(s.db, job.QueueOptions{Name: pipeline.AwaitQueue})
		waits := func(p pipeline.Pipeline) bool {
			state, err := tasks.Look(t.Context(), fmt.Sprint(p.ID))
			s.Expect(err).NotTo(HaveOccurred())
			return state.Phase != job.Idle
		}
		ignored := s.create(pipeline.Pipeline{Ref: "main", SHA: "1"}, &pipeline.Job{Name: "a"})
		s.run(ignored, 0, pipeline.Success)
		s.Expect(s.Await(t.Context(), ignored.ID)).To(MatchError(pipeline.ErrEnded))
		s.Expect(waits(ignored)).To(BeFalse())

		p := s.create(pipeline.Pipeline{Ref: "main", SHA: "1"}, &pipeline.Job{Name: "a"})
		s.Expect(s.Await(t.Context(), p.ID)).To(Succeed())
		s.Expect(waits(p)).To(BeFalse())
		s.run(p, 0, pipeline.Failed)
		s.Expect(waits(p)).To(BeTrue())
		s.Expect(tasks.Forget(t.Context(), fmt.Sprint(p.ID))).To(Succeed())
		_, err := s.Retry(t.Context(), p.ID, mary)
		s.Expect(err).NotTo(HaveOccurred())
		s.run(p, 0, pipeline.Success)
		s.Expect(waits(p)).To(BeTrue(), "it has ended again")
	})
}
