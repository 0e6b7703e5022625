-- The notes on items, such as issues. The subject is the project or group of the item. Notes of one discussion have the same discussion; a note
-- that nobody can reply to is individual. position is the place in the diff of a merge request, as JSON, and commit_id the commit that a published
-- draft note is about.
CREATE TABLE notes (
    id           INTEGER   NOT NULL PRIMARY KEY AUTOINCREMENT,
    subject_kind TEXT NOT NULL,
    subject_id   INTEGER NOT NULL,
    subject_uid  TEXT NOT NULL,
    item_kind    TEXT NOT NULL,
    item_id      INTEGER NOT NULL,
    discussion   TEXT NOT NULL,
    individual   BOOLEAN NOT NULL,
    resolvable   BOOLEAN NOT NULL,
    system       BOOLEAN NOT NULL,
    internal     BOOLEAN NOT NULL,
    body         TEXT NOT NULL,
    position     TEXT,
    commit_id    TEXT NOT NULL DEFAULT '',
    author_id    INTEGER NOT NULL,
    author_uid   TEXT NOT NULL,
    resolver_id  INTEGER NOT NULL DEFAULT 0,
    resolver_uid TEXT NOT NULL DEFAULT '',
    resolved_at  TIMESTAMP,
    created_at   TIMESTAMP NOT NULL,
    updated_at   TIMESTAMP NOT NULL
);
CREATE INDEX notes_of_item ON notes (item_kind, item_id, created_at, id);
CREATE INDEX notes_of_discussion ON notes (discussion, id);
CREATE INDEX notes_of_subject ON notes (subject_kind, subject_id, subject_uid);
