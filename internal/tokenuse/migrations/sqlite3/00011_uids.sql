-- An id may come again; a UID does not. Rows that were written without one get it from a sweep.
CREATE TABLE uses_with_uids (
    subject_kind TEXT      NOT NULL,
    subject_id   INTEGER   NOT NULL,
    subject_uid  TEXT      NOT NULL DEFAULT '',
    last_used    TIMESTAMP NOT NULL,
    PRIMARY KEY (subject_kind, subject_id, subject_uid)
) WITHOUT ROWID;
INSERT INTO uses_with_uids (subject_kind, subject_id, last_used) SELECT subject_kind, subject_id, last_used FROM uses;
DROP TABLE uses;
ALTER TABLE uses_with_uids RENAME TO uses;
CREATE INDEX uses_of_uid ON uses (subject_kind, subject_uid);
