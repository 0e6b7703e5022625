-- An id may come again; a UID does not. Rows that were written without one get it from a sweep.
ALTER TABLE uses ADD COLUMN subject_uid TEXT NOT NULL DEFAULT '';
ALTER TABLE uses
    DROP CONSTRAINT uses_pkey,
    ADD PRIMARY KEY (subject_kind, subject_id, subject_uid);
CREATE INDEX uses_of_uid ON uses (subject_kind, subject_uid);
