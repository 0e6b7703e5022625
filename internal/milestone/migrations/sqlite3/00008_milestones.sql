-- The milestones of projects and groups, which are the subjects. text is what a search looks through: the title and the description, folded.
CREATE TABLE milestones (
    id           INTEGER   NOT NULL PRIMARY KEY AUTOINCREMENT,
    subject_kind TEXT NOT NULL,
    subject_id   INTEGER NOT NULL,
    subject_uid  TEXT NOT NULL,
    iid          INTEGER NOT NULL,
    title        TEXT NOT NULL,
    description  TEXT NOT NULL,
    text         TEXT NOT NULL,
    state        TEXT NOT NULL,
    start_date   TEXT NOT NULL DEFAULT '',
    due_date     TEXT NOT NULL DEFAULT '',
    created_at   TIMESTAMP NOT NULL,
    updated_at   TIMESTAMP NOT NULL,
    UNIQUE (subject_uid, iid),
    UNIQUE (subject_uid, title)
);
