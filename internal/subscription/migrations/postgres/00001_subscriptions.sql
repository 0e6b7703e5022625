CREATE TABLE subscriptions (
    user_id      BIGINT      NOT NULL,
    subject_kind TEXT        NOT NULL,
    subject_id   BIGINT      NOT NULL,
    created_at   TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (user_id, subject_kind, subject_id)
);
CREATE INDEX subscriptions_of_subject ON subscriptions (subject_kind, subject_id);
