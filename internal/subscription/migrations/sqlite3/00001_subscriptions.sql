CREATE TABLE subscriptions (
    user_id      INTEGER   NOT NULL,
    user_uid     TEXT      NOT NULL,
    subject_kind TEXT      NOT NULL,
    subject_id   INTEGER   NOT NULL,
    subject_uid  TEXT      NOT NULL,
    created_at   TIMESTAMP NOT NULL,
    PRIMARY KEY (user_uid, subject_kind, subject_uid, user_id, subject_id)
) WITHOUT ROWID;
CREATE INDEX subscriptions_of_subject ON subscriptions (subject_kind, subject_id, subject_uid);
