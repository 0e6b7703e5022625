package pipeline

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/uptrace/bun"
	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/internal/database"
)

// Archive is the type of the artifact with the files of artifacts:paths.
const Archive = "archive"

// ErrArtifactExists says that a job has an artifact of the type.
var ErrArtifactExists = errors.New("the job has an artifact of this type")

// Artifact is a file that a job keeps. Its content is in the blob store.
type Artifact struct {
	bun.BaseModel `bun:"table:pipeline_artifacts,alias:artifact"`

	ID int64 `bun:"id,pk,autoincrement"`
	// JobID is 0 for an artifact that was removed.
	JobID int64 `bun:"job_id,nullzero"`
	// Type is Archive, metadata, or the type of a report.
	Type string `bun:"type"`
	// Format is zip, gzip or raw.
	Format string `bun:"format"`
	// Name is the file name.
	Name string `bun:"name"`
	// Access is the value of artifacts:access: all, developer, maintainer or none.
	Access string `bun:"access"`
	// Key is the key of the blob, and Size its length in bytes.
	Key  string `bun:"key"`
	Size int64  `bun:"size"`
	// Stored is zero until the content is complete, and Expires for an artifact that does not expire.
	Created time.Time `bun:"created_at"`
	Stored  time.Time `bun:"stored_at,nullzero"`
	Expires time.Time `bun:"expires_at,nullzero"`
	// ProjectID is the id of the project, and Latest says that the pipeline of the job is the latest successful one of its branch or tag. Only reads set
	// them, for an artifact that has a job.
	ProjectID int64 `bun:"project_id,scanonly"`
	Latest    bool  `bun:"latest,scanonly"`
}

// Expired reports whether an artifact has expired. keepLatest says that the project keeps the artifacts of the latest successful pipelines.
func (a *Artifact) Expired(now time.Time, keepLatest bool) bool {
	return !a.Expires.IsZero() && !a.Expires.After(now) && (!keepLatest || !a.Latest)
}

// AddArtifact adds an artifact whose content is not stored yet, and completes it.
func (s *Store) AddArtifact(ctx context.Context, a *Artifact) error {
	a.Created = s.clock.Now().UTC()
	return s.db.Write(ctx, fmt.Sprintf("adding an artifact of job %d", a.JobID), func(ctx context.Context, db bun.IDB) error {
		_, err := db.NewInsert().Model(a).Returning("id").Exec(ctx)
		return err
	})
}

// StoreArtifact records that the content of an artifact is stored, and that the runner has sent something. The error is ErrArtifactExists if the job
// has another artifact of the type, or ErrNotFound if the job is gone.
func (s *Store) StoreArtifact(ctx context.Context, a *Artifact) error {
	a.Stored = s.clock.Now().UTC()
	return s.db.Atomically(ctx, fmt.Sprintf("storing an artifact of job %d", a.JobID), func(ctx context.Context, db bun.IDB) error {
		// Two requests must not find the same artifacts: the first statement locks the row.
		if err := s.contacted(ctx, db, a.JobID); err != nil {
			return err
		}
		others, err := db.NewSelect().Model((*Artifact)(nil)).Where("job_id = ?", a.JobID).Where("type = ?", a.Type).Where("stored_at IS NOT NULL").Count(ctx)
		if err != nil {
			return err
		}
		if others > 0 {
			return ErrArtifactExists
		}
		return found(db.NewUpdate().Model(a).Column("stored_at", "size").WherePK().Where("job_id IS NOT NULL").Exec(ctx))
	})
}

// Artifacts returns the stored artifacts of jobs by the ids of the jobs, in the order in which they were added. Expired ones are included.
func (s *Store) Artifacts(ctx context.Context, jobs ...int64) (map[int64][]Artifact, error) {
	var all []Artifact
	err := s.db.Read(ctx, "reading the artifacts of jobs", func(ctx context.Context, db bun.IDB) error {
		q := withPipeline(db.NewSelect().Model(&all)).Where("artifact.stored_at IS NOT NULL")
		return database.Select(db, q, []Condition{database.Among("artifact.job_id", jobs)}).Order("artifact.id").Scan(ctx)
	})
	byJob := map[int64][]Artifact{}
	for _, a := range all {
		byJob[a.JobID] = append(byJob[a.JobID], a)
	}
	return byJob, err
}

// latest is true of the latest successful pipeline of a branch or tag.
const latest = `pipeline.status = 'success' AND pipeline.source <> 'external' AND NOT EXISTS (SELECT 1 FROM pipelines AS newer WHERE newer.subject_uid = pipeline.subject_uid
	AND newer.ref = pipeline.ref AND newer.tag = pipeline.tag AND newer.status = 'success' AND newer.source NOT IN ('parent_pipeline', 'external') AND newer.id > pipeline.id)`

// withPipeline selects artifacts with what their pipelines say of them, if they have a job.
func withPipeline(q *bun.SelectQuery) *bun.SelectQuery {
	return q.ColumnExpr("artifact.*").ColumnExpr("coalesce(pipeline.subject_id, 0) AS project_id, coalesce(" + latest + ", FALSE) AS latest").
		Join("LEFT JOIN pipeline_jobs AS job ON job.id = artifact.job_id").Join("LEFT JOIN pipelines AS pipeline ON pipeline.id = job.pipeline_id")
}

// ArtifactsSize returns the size of the artifacts of a project in bytes.
func (s *Store) ArtifactsSize(ctx context.Context, project types.UID) (size int64, err error) {
	err = s.db.Read(ctx, "summing the artifacts of a project", func(ctx context.Context, db bun.IDB) error {
		return db.NewSelect().Model((*Artifact)(nil)).ColumnExpr("coalesce(sum(artifact.size), 0)").
			Join("JOIN pipeline_jobs AS job ON job.id = artifact.job_id").Where("job.subject_uid = ?", project).Where("artifact.stored_at IS NOT NULL").Scan(ctx, &size)
	})
	return size, err
}

// KeepArtifacts keeps the artifacts of a job until they are removed.
func (s *Store) KeepArtifacts(ctx context.Context, jobID int64) error {
	return s.db.Write(ctx, fmt.Sprintf("keeping the artifacts of job %d", jobID), func(ctx context.Context, db bun.IDB) error {
		_, err := db.NewUpdate().Model((*Artifact)(nil)).Set("expires_at = NULL").Where("job_id = ?", jobID).Exec(ctx)
		return err
	})
}

// RemoveArtifacts removes the artifacts of a job. Their content goes later.
func (s *Store) RemoveArtifacts(ctx context.Context, jobID int64) error {
	return s.db.Write(ctx, fmt.Sprintf("removing the artifacts of job %d", jobID), func(ctx context.Context, db bun.IDB) error {
		return removeArtifacts(ctx, db, jobID)
	})
}

func removeArtifacts(ctx context.Context, db bun.IDB, jobID int64) error {
	_, err := db.NewUpdate().Model((*Artifact)(nil)).Set("job_id = NULL").Where("job_id = ?", jobID).Exec(ctx)
	return err
}

// ExpireArtifacts makes all artifacts of a project expire now. If keepLatest is set, those of the latest successful pipeline of each branch and tag
// stay as they are.
func (s *Store) ExpireArtifacts(ctx context.Context, project types.UID, keepLatest bool) error {
	now := s.clock.Now().UTC()
	return s.db.Write(ctx, "expiring the artifacts of a project", func(ctx context.Context, db bun.IDB) error {
		jobs := db.NewSelect().TableExpr("pipeline_jobs AS job").ColumnExpr("job.id").Where("job.subject_uid = ?", project)
		if keepLatest {
			jobs = jobs.Join("JOIN pipelines AS pipeline ON pipeline.id = job.pipeline_id").Where("NOT (" + latest + ")")
		}
		_, err := db.NewUpdate().Model((*Artifact)(nil)).Set("expires_at = ?", now).Where("job_id IN (?)", jobs).
			Where("expires_at IS NULL OR expires_at > ?", now).Exec(ctx)
		return err
	})
}

// uploadLimit is the longest time that an upload takes.
const uploadLimit = 24 * time.Hour

// Disposable returns artifacts that have expired, were removed, or were never stored completely, with ids greater than after and at most so many.
// The artifacts of latest successful pipelines are included.
func (s *Store) Disposable(ctx context.Context, after int64, most int) (some []Artifact, err error) {
	now := s.clock.Now()
	err = s.db.Read(ctx, "finding expired artifacts", func(ctx context.Context, db bun.IDB) error {
		return withPipeline(db.NewSelect().Model(&some)).Where("artifact.id > ?", after).
			Where("artifact.stored_at IS NOT NULL AND (artifact.job_id IS NULL OR artifact.expires_at <= ?) OR artifact.stored_at IS NULL AND artifact.created_at < ?",
				database.Time(now), database.Time(now.Add(-uploadLimit))).
			Order("artifact.id").Limit(int64(most)).Scan(ctx)
	})
	return some, err
}

// ForgetArtifact removes the row of an artifact, after its content.
func (s *Store) ForgetArtifact(ctx context.Context, id int64) error {
	return s.db.Write(ctx, fmt.Sprintf("removing artifact %d", id), func(ctx context.Context, db bun.IDB) error {
		_, err := db.NewDelete().Model((*Artifact)(nil)).Where("id = ?", id).Exec(ctx)
		return err
	})
}

// LatestJob returns the job with a name and an archive in the latest successful pipeline of a branch or tag. A job of that pipeline takes precedence over
// one of its child pipelines. If no such job exists, the error is ErrNotFound.
func (s *Store) LatestJob(ctx context.Context, project types.UID, ref, name string) (j Job, err error) {
	var some []Job
	err = s.db.Read(ctx, "finding the latest job with artifacts", func(ctx context.Context, db bun.IDB) error {
		last := db.NewSelect().TableExpr("pipelines").ColumnExpr("max(id)").Where("subject_uid = ?", project).Where("ref = ?", ref).Where("status = ?", Success).
			Where("source NOT IN (?, ?)", SourceParent, SourceExternal)
		family := db.NewSelect().TableExpr("pipelines AS member").ColumnExpr("member.id").
			Join("JOIN pipelines AS parent ON parent.id = (?)", last).Where("member.subject_uid = ?", project).
			Where("member.id = parent.id OR member.source = ? AND member.sha = parent.sha AND "+
				"member.root_id = CASE WHEN parent.root_id <> 0 THEN parent.root_id ELSE parent.id END", SourceParent)
		archives := db.NewSelect().Model((*Artifact)(nil)).ColumnExpr("1").Where("artifact.job_id = job.id").Where("type = ?", Archive).Where("stored_at IS NOT NULL")
		return light(db.NewSelect().Model(&some)).Where("job.pipeline_id IN (?)", family).Where("job.name = ?", name).Where("NOT job.retried").
			Where("EXISTS (?)", archives).Order("job.pipeline_id").Limit(1).Scan(ctx)
	})
	if err == nil && len(some) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return Job{}, err
	}
	return some[0], nil
}
