package pipeline_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/internal/pipeline"
)

func TestCancelRedundant_followsOnNewCommit(t *testing.T) {
	// Both pipelines have a job that can be interrupted and one that cannot. The names are the jobs that have started.
	for name, tt := range map[string]struct {
		mode    string
		started []string
		want    []pipeline.Status
	}{
		"nothing has started":                {"", nil, []pipeline.Status{pipeline.Canceled, pipeline.Canceled, pipeline.Canceled}},
		"only what can be interrupted":       {"", []string{"soft"}, []pipeline.Status{pipeline.Canceled, pipeline.Canceled, pipeline.Canceled}},
		"conservative keeps what has begun":  {"conservative", []string{"hard"}, []pipeline.Status{pipeline.Running, pipeline.Pending, pipeline.Running}},
		"interruptible cancels what it can":  {"interruptible", []string{"soft", "hard"}, []pipeline.Status{pipeline.Running, pipeline.Canceled, pipeline.Running}},
		"interruptible keeps what cannot be": {"interruptible", nil, []pipeline.Status{pipeline.Running, pipeline.Canceled, pipeline.Pending}},
		"none keeps everything":              {"none", nil, []pipeline.Status{pipeline.Pending, pipeline.Pending, pipeline.Pending}},
	} {
		t.Run(name, func(t *testing.T) {
			onEachEngine(t, func(s site) {
				former := s.create(pipeline.Pipeline{Ref: "main", SHA: "1", OnNewCommit: tt.mode},
					&pipeline.Job{Name: "soft", Interruptible: true}, &pipeline.Job{Name: "hard"})
				for _, j := range s.jobs(former) {
					for _, name := range tt.started {
						if j.Name == name {
							_, err := s.Take(t.Context(), j, 1, pipeline.NewToken())
							s.Expect(err).NotTo(HaveOccurred())
						}
					}
				}
				same := s.create(pipeline.Pipeline{Ref: "main", SHA: "2"}, &pipeline.Job{Name: "soft"})
				other := s.create(pipeline.Pipeline{Ref: "other", SHA: "1"}, &pipeline.Job{Name: "soft"})
				latest := s.create(pipeline.Pipeline{Ref: "main", SHA: "2"}, &pipeline.Job{Name: "soft"})
				_, err := s.CancelRedundant(t.Context(), latest)
				s.Expect(err).NotTo(HaveOccurred())
				s.Expect(s.statuses(former)).To(Equal(tt.want))
				for _, p := range []pipeline.Pipeline{same, other, latest} {
					s.Expect(s.statuses(p)).To(HaveEach(pipeline.Pending))
				}
			})
		})
	}
}
