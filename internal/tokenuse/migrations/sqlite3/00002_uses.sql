CREATE TABLE uses (
    subject_kind TEXT      NOT NULL,
    subject_id   INTEGER   NOT NULL,
    subject_uid  TEXT      NOT NULL,
    last_used    TIMESTAMP NOT NULL,
    PRIMARY KEY (subject_kind, subject_id, subject_uid)
) WITHOUT ROWID;
CREATE INDEX uses_of_uid ON uses (subject_kind, subject_uid);
