// Package pipeline stores the pipelines of projects with their jobs, and moves them from status to status: tables of the activity database.
package pipeline

import (
	"cmp"
	"embed"
	"errors"
	"io/fs"
	"time"

	"github.com/uptrace/bun"
	"k8s.io/utils/clock"

	"github.com/forgeplane/forgeplane/internal/ci/config"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/job"
	"github.com/forgeplane/forgeplane/internal/sweep"
)

// SourceParent is the source of child pipelines.
const SourceParent = "parent_pipeline"

// Kind is the kind of items that are pipelines, and JobKind that of jobs.
const (
	Kind    = "pipeline"
	JobKind = "job"
)

//go:embed migrations
var migrations embed.FS

// Migrations returns the migrations of the tables, for database.Open.
func Migrations() fs.FS { return migrations }

var (
	// ErrNotFound says that a project has no such pipeline or job.
	ErrNotFound = errors.New("there is no such pipeline or job")
	// ErrExists says that a pipeline was already created for an event.
	ErrExists = errors.New("a pipeline was already created for this event")
)

// Pipeline is a pipeline of a project.
type Pipeline struct {
	bun.BaseModel `bun:"table:pipelines"`

	ID int64 `bun:"id,pk,autoincrement"`
	// In is the project.
	In  database.Subject `bun:"embed:subject_"`
	IID int64            `bun:"iid"`
	// Name is the value of workflow:name; empty without one.
	Name string `bun:"name"`
	// Ref is the name of the branch, or of the tag if Tag is set, or the full ref of the head if MergeRequest is set.
	Ref string `bun:"ref"`
	Tag bool   `bun:"tag"`
	SHA string `bun:"sha"`
	// Protected says that the branch was protected when the pipeline was created.
	Protected bool `bun:"protected"`
	// Before is the former commit of the ref; empty if the pipeline is not about a push to an existing branch.
	Before string `bun:"before_sha"`
	// Source is the value of CI_PIPELINE_SOURCE.
	Source string `bun:"source"`
	Status Status `bun:"status"`
	// Errors are the mistakes in the configuration. A pipeline with errors has failed and has no jobs.
	Errors string `bun:"yaml_errors"`
	// OnNewCommit and OnJobFailure are the values of workflow:auto_cancel; empty for the defaults.
	OnNewCommit  string `bun:"on_new_commit"`
	OnJobFailure string `bun:"on_job_failure"`
	// UpstreamJob is the id of the job of another pipeline that triggered this one; 0 without one.
	UpstreamJob int64 `bun:"upstream_job_id"`
	// Root is the id of the pipeline from which all upstream pipelines come; 0 without an upstream pipeline.
	Root int64 `bun:"root_id"`
	// Schedule is the id of the schedule that created this one; 0 without one.
	Schedule int64 `bun:"schedule_id"`
	// MergeRequest is the id of the merge request that the pipeline is about, and SourceBranch the branch that Branch returns then; zero without one.
	MergeRequest int64  `bun:"merge_request_id"`
	SourceBranch string `bun:"source_branch"`
	// Awaited says that a merge waits for the end of the pipeline. Await sets it.
	Awaited bool `bun:"awaited"`
	// Origin identifies the event that the pipeline was created for, so that there is only one for it; empty if that does not matter.
	Origin   string        `bun:"origin,nullzero"`
	User     database.User `bun:"embed:user_"`
	Created  time.Time     `bun:"created_at"`
	Updated  time.Time     `bun:"updated_at"`
	Started  time.Time     `bun:"started_at,nullzero"`
	Finished time.Time     `bun:"finished_at,nullzero"`
}

// Branch returns the name of the branch of a pipeline that is not about a tag.
func (p *Pipeline) Branch() string { return cmp.Or(p.SourceBranch, p.Ref) }

// Job is a job of a pipeline.
type Job struct {
	bun.BaseModel `bun:"table:pipeline_jobs"`

	ID int64 `bun:"id,pk,autoincrement"`
	// In is the project of the pipeline.
	In         database.Subject `bun:"embed:subject_"`
	PipelineID int64            `bun:"pipeline_id"`
	// Position counts the jobs of the pipeline. A retry has the position of the former job.
	Position   int    `bun:"position"`
	Name       string `bun:"name"`
	Stage      string `bun:"stage"`
	StageIndex int    `bun:"stage_index"`
	// Bridge says that the job triggers a pipeline. No runner executes it.
	Bridge bool   `bun:"bridge"`
	Status Status `bun:"status"`
	// External says that another system reports the status of the job, with a Description, the TargetURL of a page about it, and the Coverage in percent;
	// nil without one. No runner executes it.
	External    bool     `bun:"external"`
	Description string   `bun:"description"`
	TargetURL   string   `bun:"target_url"`
	Coverage    *float64 `bun:"coverage"`
	// FailureReason is a word for the reason why the job failed, such as script_failure.
	FailureReason string `bun:"failure_reason"`
	// When is on_success, on_failure, always, manual or delayed. A delayed job waits for StartIn.
	When    string        `bun:"run_when"`
	StartIn time.Duration `bun:"start_in"`
	// AllowFailure says that the pipeline can succeed although the job fails, and Excused that it can because of the exit code of the job.
	AllowFailure  bool `bun:"allow_failure"`
	Excused       bool `bun:"excused"`
	Interruptible bool `bun:"interruptible"`
	// ResourceGroup is the name of the group whose resource the job holds from Pending until it ends; empty without one.
	ResourceGroup string `bun:"resource_group"`
	// Environment is the environment to which the job deploys, and Tier its tier; empty without one.
	Environment string `bun:"environment"`
	Tier        string `bun:"environment_tier"`
	// Needs are the jobs that the job waits for, if HasNeeds. Otherwise it waits for the earlier stages.
	HasNeeds bool     `bun:"has_needs"`
	Needs    []Need   `bun:"needs,type:text"`
	Tags     []string `bun:"tags,type:text"`
	// Spec has the keywords of the job. Only WithSpec and Create have it.
	Spec *config.Job `bun:"spec,type:text"`
	// Retried says that the job was replaced by a retry.
	Retried bool `bun:"retried"`
	// RunnerID is the id of the runner that got the job, and TokenDigest the digest of the job token. Contacted is the time at which the runner last
	// sent something about the job. They are zero before.
	RunnerID    int64     `bun:"runner_id"`
	TokenDigest string    `bun:"token_digest,nullzero"`
	Contacted   time.Time `bun:"contacted_at,nullzero"`
	// User is the user with whose rights the job runs, and Eraser the one who erased it.
	User      database.User `bun:"embed:user_"`
	Eraser    database.User `bun:"embed:eraser_"`
	Created   time.Time     `bun:"created_at"`
	Queued    time.Time     `bun:"queued_at,nullzero"`
	Started   time.Time     `bun:"started_at,nullzero"`
	Finished  time.Time     `bun:"finished_at,nullzero"`
	Erased    time.Time     `bun:"erased_at,nullzero"`
	Scheduled time.Time     `bun:"scheduled_at,nullzero"`
}

// Need is a job that another one waits for.
type Need struct {
	Job       string `json:"job"`
	Artifacts bool   `json:"artifacts"`
}

// VariableType says whether jobs get the value of a variable or the path of a file that has it.
type VariableType string

// The types of variables.
const (
	EnvVar VariableType = "env_var"
	File   VariableType = "file"
)

// Variable is a variable that a request gave to a pipeline, or to one of its jobs.
type Variable struct {
	bun.BaseModel `bun:"table:pipeline_variables"`

	PipelineID int64 `bun:"pipeline_id,pk"`
	// JobID is 0 for a variable of all jobs.
	JobID int64        `bun:"job_id,pk"`
	Key   string       `bun:"key,pk"`
	Value string       `bun:"value"`
	Type  VariableType `bun:"type"`
}

// Store is the pipelines in a database. It is safe for concurrent use.
type Store struct {
	db     *database.DB
	clock  clock.PassiveClock
	counts database.Counts
	// tasks is the queue that runs Advance, bridges the queue of jobs that trigger pipelines, ends that of AwaitQueue, and deployments
	// that of DeployQueue.
	tasks, bridges, ends, deployments *job.Queue
}

const (
	// QueueName is the name of the queue whose tasks run Store.Run.
	QueueName = "pipelines"
	// BridgeQueue is the name of the queue of the jobs that trigger pipelines. The key of a task is the id of the job.
	BridgeQueue = "pipeline-bridges"
	// AwaitQueue is the name of the queue of awaited pipelines that have ended. The key of a task is the id of the pipeline.
	AwaitQueue = "pipeline-ends"
)

// New returns the pipelines of a database. The database must have been opened with Migrations, iid.Migrations and job.Migrations.
func New(db *database.DB, c clock.PassiveClock) *Store {
	queue := func(name string) *job.Queue { return job.NewQueue(db, job.QueueOptions{Name: name}) }
	return &Store{db, c, database.NewCounts(), queue(QueueName), queue(BridgeQueue), queue(AwaitQueue), queue(DeployQueue)}
}

// Subjects are the pipelines by their projects, for a sweep.Sweeper. The JobSubjects must come first: a pipeline can have many jobs.
func (s *Store) Subjects() sweep.Inherited { return sweep.Table(s.db, (*Pipeline)(nil)) }

// JobSubjects are the jobs by their projects, for a sweep.Sweeper.
func (s *Store) JobSubjects() sweep.Inherited { return sweep.Table(s.db, (*Job)(nil)) }
