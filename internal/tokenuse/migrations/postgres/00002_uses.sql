CREATE TABLE uses (
    subject_kind TEXT        NOT NULL,
    subject_id   BIGINT      NOT NULL,
    subject_uid  TEXT        NOT NULL,
    last_used    TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (subject_kind, subject_id, subject_uid)
);
CREATE INDEX uses_of_uid ON uses (subject_kind, subject_uid);
