CREATE TABLE uses (
    subject_kind TEXT        NOT NULL,
    subject_id   BIGINT      NOT NULL,
    last_used    TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (subject_kind, subject_id)
);
