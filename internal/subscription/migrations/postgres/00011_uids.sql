-- An id may come again; a UID does not. Rows that were written without one get it from a sweep.
ALTER TABLE subscriptions
    ADD COLUMN user_uid    TEXT NOT NULL DEFAULT '',
    ADD COLUMN subject_uid TEXT NOT NULL DEFAULT '';
ALTER TABLE subscriptions
    DROP CONSTRAINT subscriptions_pkey,
    ADD PRIMARY KEY (user_uid, subject_kind, subject_uid, user_id, subject_id);
DROP INDEX subscriptions_of_subject;
CREATE INDEX subscriptions_of_subject ON subscriptions (subject_kind, subject_id, subject_uid);
