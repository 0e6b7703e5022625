-- An id may come again; a UID does not. Rows that were written without one get it from a sweep.
CREATE TABLE subscriptions_with_uids (
    user_id      INTEGER   NOT NULL,
    user_uid     TEXT      NOT NULL DEFAULT '',
    subject_kind TEXT      NOT NULL,
    subject_id   INTEGER   NOT NULL,
    subject_uid  TEXT      NOT NULL DEFAULT '',
    created_at   TIMESTAMP NOT NULL,
    PRIMARY KEY (user_uid, subject_kind, subject_uid, user_id, subject_id)
) WITHOUT ROWID;
INSERT INTO subscriptions_with_uids (user_id, subject_kind, subject_id, created_at)
    SELECT user_id, subject_kind, subject_id, created_at FROM subscriptions;
DROP TABLE subscriptions;
ALTER TABLE subscriptions_with_uids RENAME TO subscriptions;
CREATE INDEX subscriptions_of_subject ON subscriptions (subject_kind, subject_id, subject_uid);
