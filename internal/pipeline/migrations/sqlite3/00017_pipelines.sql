-- The pipelines of projects, which are the subjects. origin names the event that a pipeline was created for, so that a task that runs again
-- creates no second one.
CREATE TABLE pipelines (
    id             INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    subject_kind   TEXT NOT NULL,
    subject_id     INTEGER NOT NULL,
    subject_uid    TEXT NOT NULL,
    iid            INTEGER NOT NULL,
    name           TEXT NOT NULL,
    ref            TEXT NOT NULL,
    tag            BOOLEAN NOT NULL,
    sha            TEXT NOT NULL,
    protected      BOOLEAN NOT NULL,
    before_sha     TEXT NOT NULL,
    source         TEXT NOT NULL,
    status         TEXT NOT NULL,
    yaml_errors    TEXT NOT NULL,
    on_new_commit  TEXT NOT NULL,
    on_job_failure TEXT NOT NULL,
    upstream_job_id INTEGER NOT NULL DEFAULT 0,
    root_id        INTEGER NOT NULL DEFAULT 0,
    schedule_id    INTEGER NOT NULL DEFAULT 0,
    merge_request_id INTEGER NOT NULL DEFAULT 0,
    source_branch  TEXT NOT NULL DEFAULT '',
    awaited        BOOLEAN NOT NULL DEFAULT FALSE,
    origin         TEXT UNIQUE,
    user_id        INTEGER NOT NULL,
    user_uid       TEXT NOT NULL,
    created_at     TIMESTAMP NOT NULL,
    updated_at     TIMESTAMP NOT NULL,
    started_at     TIMESTAMP,
    finished_at    TIMESTAMP,
    UNIQUE (subject_uid, iid)
);
CREATE INDEX pipelines_in_order ON pipelines (subject_uid, id);
CREATE INDEX pipelines_by_update ON pipelines (subject_uid, updated_at, id);
CREATE INDEX pipelines_by_status ON pipelines (subject_uid, status, id);
CREATE INDEX pipelines_of_ref ON pipelines (subject_uid, ref, id);
CREATE INDEX pipelines_newest ON pipelines (subject_uid, tag, ref, id) WHERE merge_request_id = 0 AND source <> 'parent_pipeline';
CREATE INDEX pipelines_of_commit ON pipelines (subject_uid, sha, id);
CREATE INDEX pipelines_of_user ON pipelines (subject_uid, user_uid, id);
CREATE INDEX pipelines_of_schedule ON pipelines (schedule_id, id);
CREATE INDEX pipelines_of_merge_request ON pipelines (merge_request_id, id);
CREATE INDEX pipelines_of_job ON pipelines (upstream_job_id, id);
CREATE INDEX pipelines_of_root ON pipelines (root_id, id);
-- The jobs of pipelines. Those with bridge trigger a pipeline. A retry of a job is another row, and marks the former as retried. needs and tags
-- are JSON, and spec has the other keywords of the job, also as JSON. position counts the jobs of a pipeline in the order of the configuration.
CREATE TABLE pipeline_jobs (
    id             INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    subject_kind   TEXT NOT NULL,
    subject_id     INTEGER NOT NULL,
    subject_uid    TEXT NOT NULL,
    pipeline_id    INTEGER NOT NULL REFERENCES pipelines (id) ON DELETE CASCADE,
    position       INTEGER NOT NULL,
    name           TEXT NOT NULL,
    stage          TEXT NOT NULL,
    stage_index    INTEGER NOT NULL,
    bridge         BOOLEAN NOT NULL,
    external       BOOLEAN NOT NULL DEFAULT FALSE,
    description    TEXT NOT NULL DEFAULT '',
    target_url     TEXT NOT NULL DEFAULT '',
    coverage       REAL,
    status         TEXT NOT NULL,
    failure_reason TEXT NOT NULL DEFAULT '',
    run_when       TEXT NOT NULL,
    start_in       INTEGER NOT NULL,
    allow_failure  BOOLEAN NOT NULL,
    excused        BOOLEAN NOT NULL DEFAULT FALSE,
    interruptible  BOOLEAN NOT NULL,
    resource_group TEXT NOT NULL DEFAULT '',
    environment    TEXT NOT NULL DEFAULT '',
    environment_tier TEXT NOT NULL DEFAULT '',
    has_needs      BOOLEAN NOT NULL,
    needs          TEXT NOT NULL,
    tags           TEXT NOT NULL,
    spec           TEXT NOT NULL,
    retried        BOOLEAN NOT NULL,
    runner_id      INTEGER NOT NULL DEFAULT 0,
    token_digest   TEXT UNIQUE,
    contacted_at   TIMESTAMP,
    user_id        INTEGER NOT NULL,
    user_uid       TEXT NOT NULL,
    eraser_id      INTEGER NOT NULL DEFAULT 0,
    eraser_uid     TEXT NOT NULL DEFAULT '',
    created_at     TIMESTAMP NOT NULL,
    queued_at      TIMESTAMP,
    started_at     TIMESTAMP,
    finished_at    TIMESTAMP,
    erased_at      TIMESTAMP,
    scheduled_at   TIMESTAMP
);
-- Without subject_uid, SQLite would read all jobs of a project to find those of a pipeline in it.
CREATE INDEX pipeline_jobs_of_pipeline ON pipeline_jobs (pipeline_id, subject_uid, id);
CREATE INDEX pipeline_jobs_in_order ON pipeline_jobs (subject_uid, id);
CREATE INDEX pipeline_jobs_by_status ON pipeline_jobs (status, id);
CREATE INDEX pipeline_jobs_of_resource ON pipeline_jobs (subject_uid, resource_group, id) WHERE resource_group <> '';
-- The resources of resource groups that jobs hold. A resource without a row is free.
CREATE TABLE pipeline_resources (
    id           INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    subject_kind TEXT NOT NULL,
    subject_id   INTEGER NOT NULL,
    subject_uid  TEXT NOT NULL,
    name         TEXT NOT NULL,
    job_id       INTEGER NOT NULL REFERENCES pipeline_jobs (id) ON DELETE CASCADE,
    UNIQUE (subject_uid, name)
);
CREATE INDEX pipeline_resources_of_job ON pipeline_resources (job_id);
-- The deployments to environments, which jobs have made. job_id remains when the job is deleted.
CREATE TABLE deployments (
    id           INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    subject_kind TEXT NOT NULL,
    subject_id   INTEGER NOT NULL,
    subject_uid  TEXT NOT NULL,
    environment  TEXT NOT NULL,
    tier         TEXT NOT NULL,
    sha          TEXT NOT NULL,
    job_id       INTEGER NOT NULL UNIQUE,
    deployed_at  TIMESTAMP NOT NULL
);
CREATE INDEX deployments_to_environment ON deployments (subject_uid, environment, id);
-- The variables of pipelines that a request gave, and those of jobs, for which job_id is not 0.
CREATE TABLE pipeline_variables (
    pipeline_id INTEGER NOT NULL REFERENCES pipelines (id) ON DELETE CASCADE,
    job_id      INTEGER NOT NULL DEFAULT 0,
    key         TEXT NOT NULL,
    value       TEXT NOT NULL,
    type        TEXT NOT NULL,
    PRIMARY KEY (pipeline_id, job_id, key)
);
-- The variables that jobs hand to later jobs, of their dotenv reports.
CREATE TABLE pipeline_outputs (
    job_id INTEGER NOT NULL REFERENCES pipeline_jobs (id) ON DELETE CASCADE,
    key    TEXT NOT NULL,
    value  TEXT NOT NULL,
    PRIMARY KEY (job_id, key)
);
-- The logs of jobs, as runners send them. start is the position of the first byte.
CREATE TABLE pipeline_logs (
    job_id  INTEGER NOT NULL REFERENCES pipeline_jobs (id) ON DELETE CASCADE,
    start   INTEGER NOT NULL,
    content BLOB NOT NULL,
    PRIMARY KEY (job_id, start)
);
-- The artifacts of jobs. Their content is in the blob store, under key. stored_at is NULL until the content is complete. A removed artifact, such as
-- one of a deleted job, has no job: its row stays until the content is removed.
CREATE TABLE pipeline_artifacts (
    id         INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    job_id     INTEGER REFERENCES pipeline_jobs (id) ON DELETE SET NULL,
    type       TEXT NOT NULL,
    format     TEXT NOT NULL,
    name       TEXT NOT NULL,
    access     TEXT NOT NULL,
    key        TEXT NOT NULL,
    size       INTEGER NOT NULL,
    created_at TIMESTAMP NOT NULL,
    stored_at  TIMESTAMP,
    expires_at TIMESTAMP
);
CREATE UNIQUE INDEX pipeline_artifacts_of_job ON pipeline_artifacts (job_id, type) WHERE stored_at IS NOT NULL;
CREATE INDEX pipeline_artifacts_all_of_job ON pipeline_artifacts (job_id);
CREATE INDEX pipeline_artifacts_by_expiry ON pipeline_artifacts (expires_at);
