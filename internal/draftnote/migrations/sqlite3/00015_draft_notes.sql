-- The draft notes on merge requests, which only their authors see. The subject is the project of the merge request, and the position is in JSON.
CREATE TABLE draft_notes (
    id           INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    subject_kind TEXT NOT NULL,
    subject_id   INTEGER NOT NULL,
    subject_uid  TEXT NOT NULL,
    item_kind    TEXT NOT NULL,
    item_id      INTEGER NOT NULL,
    author_id    INTEGER NOT NULL,
    author_uid   TEXT NOT NULL,
    body         TEXT NOT NULL,
    commit_id    TEXT NOT NULL,
    discussion   TEXT NOT NULL,
    resolves     BOOLEAN NOT NULL,
    position     TEXT
);
CREATE INDEX draft_notes_of_author ON draft_notes (item_kind, item_id, author_uid, id);
CREATE INDEX draft_notes_of_subject ON draft_notes (subject_kind, subject_id, subject_uid);
