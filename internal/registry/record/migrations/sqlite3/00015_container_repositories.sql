-- The repositories of images. The place of the images is random, so that it is never used again, not even by a database that was restored.
CREATE TABLE container_repositories (
    id          INTEGER   NOT NULL PRIMARY KEY AUTOINCREMENT,
    project_id  INTEGER   NOT NULL,
    project_uid TEXT      NOT NULL,
    name        TEXT      NOT NULL,
    place       TEXT      NOT NULL UNIQUE,
    created_at  TIMESTAMP NOT NULL,
    status      TEXT      NOT NULL DEFAULT '',
    cleanup_at  TIMESTAMP,
    changes     INTEGER   NOT NULL DEFAULT 0,
    UNIQUE (project_uid, name)
);
-- The manifests that refer to another manifest as their subject.
CREATE TABLE container_referrers (
    repository_id INTEGER NOT NULL REFERENCES container_repositories (id) ON DELETE CASCADE,
    subject       TEXT    NOT NULL,
    digest        TEXT    NOT NULL,
    artifact_type TEXT    NOT NULL,
    descriptor    TEXT    NOT NULL,
    PRIMARY KEY (repository_id, subject, digest)
);
-- When blobs and manifests were last needed by a client, and until when a garbage collection may remove one.
CREATE TABLE container_blobs (
    digest         TEXT NOT NULL PRIMARY KEY,
    touched_at     TIMESTAMP NOT NULL,
    sweeping_until TIMESTAMP
);
