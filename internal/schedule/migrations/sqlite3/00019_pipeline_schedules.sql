-- The schedules that create pipelines, by their projects, which are the subjects. cron is in the syntax of cron, and zone in the IANA database.
CREATE TABLE pipeline_schedules (
    id           INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    subject_kind TEXT NOT NULL,
    subject_id   INTEGER NOT NULL,
    subject_uid  TEXT NOT NULL,
    description  TEXT NOT NULL,
    ref          TEXT NOT NULL,
    cron         TEXT NOT NULL,
    zone         TEXT NOT NULL,
    active       BOOLEAN NOT NULL,
    owner_id     INTEGER NOT NULL,
    owner_uid    TEXT NOT NULL,
    next_run_at  TIMESTAMP NOT NULL,
    created_at   TIMESTAMP NOT NULL,
    updated_at   TIMESTAMP NOT NULL
);
CREATE INDEX pipeline_schedules_in_order ON pipeline_schedules (subject_uid, id);
-- The variables that the pipelines of a schedule get.
CREATE TABLE pipeline_schedule_variables (
    schedule_id INTEGER NOT NULL REFERENCES pipeline_schedules (id) ON DELETE CASCADE,
    key         TEXT NOT NULL,
    value       TEXT NOT NULL,
    type        TEXT NOT NULL,
    PRIMARY KEY (schedule_id, key)
);
