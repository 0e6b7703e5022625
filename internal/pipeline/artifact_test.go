package pipeline_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/internal/pipeline"
)

// store adds an artifact of a job, as a runner does.
func (s site) store(j pipeline.Job, kind string, expires time.Time) pipeline.Artifact {
	s.t.Helper()
	a := pipeline.Artifact{JobID: j.ID, Type: kind, Format: "zip", Name: kind + ".zip", Access: "all", Key: "artifacts/x", Size: 10, Expires: expires}
	s.Expect(s.AddArtifact(s.t.Context(), &a)).To(Succeed())
	s.Expect(s.StoreArtifact(s.t.Context(), &a)).To(Succeed())
	return a
}

// succeeded creates a pipeline of a branch with one job, build, that has succeeded.
func (s site) succeeded(branch string) (pipeline.Pipeline, pipeline.Job) {
	s.t.Helper()
	p := s.create(pipeline.Pipeline{Ref: branch}, &pipeline.Job{Name: "build"})
	j, err := s.Take(s.t.Context(), s.jobs(p)[0], 1, pipeline.NewToken())
	s.Expect(err).NotTo(HaveOccurred())
	j, err = s.Succeed(s.t.Context(), j)
	s.Expect(err).NotTo(HaveOccurred())
	return p, j
}

// stored returns the artifacts of a job.
func (s site) stored(j pipeline.Job) []pipeline.Artifact {
	s.t.Helper()
	all, err := s.Artifacts(s.t.Context(), j.ID)
	s.Expect(err).NotTo(HaveOccurred())
	return all[j.ID]
}

// disposable returns the ids of the artifacts whose content can go.
func (s site) disposable() (ids []int64) {
	s.t.Helper()
	some, err := s.Disposable(s.t.Context(), 0, 100)
	s.Expect(err).NotTo(HaveOccurred())
	for _, a := range some {
		ids = append(ids, a.ID)
	}
	return ids
}

func TestStoreArtifact_acceptsOneOfEachType(t *testing.T) {
	onEachEngine(t, func(s site) {
		_, j := s.succeeded("main")
		archive := s.store(j, pipeline.Archive, time.Time{})
		s.store(j, "junit", time.Time{})
		again := pipeline.Artifact{JobID: j.ID, Type: pipeline.Archive, Format: "zip", Key: "artifacts/y"}
		s.Expect(s.AddArtifact(t.Context(), &again)).To(Succeed())
		s.Expect(s.StoreArtifact(t.Context(), &again)).To(MatchError(pipeline.ErrArtifactExists))
		s.Expect(s.stored(j)).To(HaveExactElements(
			And(HaveField("ID", archive.ID), HaveField("Type", pipeline.Archive), HaveField("Size", int64(10)), HaveField("ProjectID", web.ID)), HaveField("Type", "junit")))
		size, err := s.ArtifactsSize(t.Context(), web.UID)
		s.Expect(err).NotTo(HaveOccurred())
		s.Expect(size).To(BeEquivalentTo(20))

		s.Expect(s.disposable()).To(BeEmpty())
		s.clock.SetTime(noon.Add(25 * time.Hour))
		s.Expect(s.disposable()).To(ConsistOf(again.ID), "it was never complete")
		s.Expect(s.ForgetArtifact(t.Context(), again.ID)).To(Succeed())
		s.Expect(s.disposable()).To(BeEmpty())
	})
}

func TestStoreArtifact_failsIfTheJobIsGone(t *testing.T) {
	onEachEngine(t, func(s site) {
		p, j := s.succeeded("main")
		kept := s.store(j, "junit", time.Time{})
		late := pipeline.Artifact{JobID: j.ID, Type: pipeline.Archive, Format: "zip", Key: "artifacts/y"}
		s.Expect(s.AddArtifact(t.Context(), &late)).To(Succeed())
		s.Expect(s.Delete(t.Context(), p.ID)).To(Succeed())
		s.Expect(s.StoreArtifact(t.Context(), &late)).To(MatchError(pipeline.ErrNotFound))
		s.Expect(s.disposable()).To(ConsistOf(kept.ID), "the other one may still be uploading")
	})
}

func TestArtifacts_goWithAnErasure(t *testing.T) {
	onEachEngine(t, func(s site) {
		_, j := s.succeeded("main")
		a := s.store(j, pipeline.Archive, time.Time{})
		_, err := s.Erase(t.Context(), j, mary)
		s.Expect(err).NotTo(HaveOccurred())
		s.Expect(s.stored(j)).To(BeEmpty())
		s.Expect(s.disposable()).To(ConsistOf(a.ID))
	})
}

func TestExpireArtifacts_sparesTheLatestSuccessfulPipelines(t *testing.T) {
	onEachEngine(t, func(s site) {
		soon := noon.Add(time.Hour)
		_, first := s.succeeded("main")
		_, second := s.succeeded("main")
		_, other := s.succeeded("other")
		s.create(pipeline.Pipeline{Ref: "main"}, &pipeline.Job{Name: "build"})
		for _, j := range []pipeline.Job{first, second, other} {
			s.store(j, pipeline.Archive, soon)
		}
		expired := func(keep bool) (all []bool) {
			for _, j := range []pipeline.Job{first, second, other} {
				all = append(all, s.stored(j)[0].Expired(s.clock.Now(), keep))
			}
			return all
		}
		s.Expect(expired(true)).To(Equal([]bool{false, false, false}))
		s.Expect(s.ExpireArtifacts(t.Context(), web.UID, true)).To(Succeed())
		s.Expect(expired(false)).To(Equal([]bool{true, false, false}))
		s.clock.SetTime(soon)
		s.Expect(expired(true)).To(Equal([]bool{true, false, false}))
		s.Expect(expired(false)).To(Equal([]bool{true, true, true}))

		s.Expect(s.KeepArtifacts(t.Context(), first.ID)).To(Succeed())
		s.Expect(expired(false)).To(Equal([]bool{false, true, true}))
		s.Expect(s.ExpireArtifacts(t.Context(), web.UID, false)).To(Succeed())
		s.Expect(expired(false)).To(Equal([]bool{true, true, true}))
		s.Expect(s.disposable()).To(HaveLen(3))
	})
}

func TestLatestJob_isOfTheLatestSuccessfulPipeline(t *testing.T) {
	onEachEngine(t, func(s site) {
		_, err := s.LatestJob(t.Context(), web.UID, "main", "build")
		s.Expect(err).To(MatchError(pipeline.ErrNotFound))
		_, first := s.succeeded("main")
		_, second := s.succeeded("main")
		s.create(pipeline.Pipeline{Ref: "main"}, &pipeline.Job{Name: "build"})
		s.store(first, pipeline.Archive, time.Time{})
		_, err = s.LatestJob(t.Context(), web.UID, "main", "build")
		s.Expect(err).To(MatchError(pipeline.ErrNotFound), "the latest one has no archive")
		s.store(second, pipeline.Archive, time.Time{})
		s.Expect(s.LatestJob(t.Context(), web.UID, "main", "build")).To(HaveField("ID", second.ID))
		for _, name := range []string{"other", ""} {
			_, err = s.LatestJob(t.Context(), web.UID, "main", name)
			s.Expect(err).To(MatchError(pipeline.ErrNotFound), name)
		}
	})
}
