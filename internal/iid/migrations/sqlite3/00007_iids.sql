-- The last internal id (iid) of each kind of item in a project or group, which is the subject. An iid is never used again.
CREATE TABLE iids (
    subject_kind TEXT NOT NULL,
    subject_id   INTEGER NOT NULL,
    subject_uid  TEXT NOT NULL,
    kind         TEXT NOT NULL,
    last         INTEGER NOT NULL,
    PRIMARY KEY (subject_uid, kind, subject_kind, subject_id)
);
