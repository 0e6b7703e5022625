CREATE TABLE uses (
    subject_kind TEXT      NOT NULL,
    subject_id   INTEGER   NOT NULL,
    last_used    TIMESTAMP NOT NULL,
    PRIMARY KEY (subject_kind, subject_id)
) WITHOUT ROWID;
