-- The epics of groups, which are the subjects. text is what a search looks through: the title and the description, folded.
CREATE TABLE epics (
    id           INTEGER   NOT NULL PRIMARY KEY AUTOINCREMENT,
    subject_kind TEXT NOT NULL,
    subject_id   INTEGER NOT NULL,
    subject_uid  TEXT NOT NULL,
    iid          INTEGER NOT NULL,
    title        TEXT NOT NULL,
    description  TEXT NOT NULL,
    text         TEXT NOT NULL,
    state        TEXT NOT NULL,
    confidential BOOLEAN NOT NULL,
    author_id    INTEGER NOT NULL,
    author_uid   TEXT NOT NULL,
    start_date   TEXT NOT NULL DEFAULT '',
    due_date     TEXT NOT NULL DEFAULT '',
    closer_id    INTEGER NOT NULL DEFAULT 0,
    closer_uid   TEXT NOT NULL DEFAULT '',
    closed_at    TIMESTAMP,
    created_at   TIMESTAMP NOT NULL,
    updated_at   TIMESTAMP NOT NULL,
    UNIQUE (subject_uid, iid)
);
-- The labels of epics.
CREATE TABLE epic_labels (
    epic_id   INTEGER NOT NULL REFERENCES epics (id) ON DELETE CASCADE,
    label_id  INTEGER NOT NULL,
    label_uid TEXT NOT NULL,
    PRIMARY KEY (epic_id, label_uid)
);
CREATE INDEX epic_labels_in_order ON epic_labels (label_id, label_uid);
