-- The repositories of images. The place of the images is random, so that it is never used again, not even by a database that was restored.
-- size is the number of bytes of the images, and sized the count of changes at which it was measured. stored is the number of bytes of the
-- contents.
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
    size        INTEGER   NOT NULL DEFAULT 0,
    sized       INTEGER   NOT NULL DEFAULT -1,
    stored      INTEGER   NOT NULL DEFAULT 0,
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
-- What the tags mean, and when their images were made, which is the order of the tags: the storage has neither at hand. change is the count of changes
-- at the last change of a tag. The digest is empty if nobody knows what the tag means, and made if the image has no time.
CREATE TABLE container_tags (
    repository_id INTEGER   NOT NULL REFERENCES container_repositories (id) ON DELETE CASCADE,
    name          TEXT      NOT NULL,
    change        INTEGER   NOT NULL,
    changed_at    TIMESTAMP NOT NULL,
    digest        TEXT      NOT NULL,
    made          TEXT      NOT NULL,
    PRIMARY KEY (repository_id, name)
);
-- When blobs and manifests were last needed by a client, and until when a garbage collection may remove one, in milliseconds since 1970 by the clock
-- of the database. An upload has a row while a request may write to it.
CREATE TABLE container_blobs (
    digest         TEXT NOT NULL PRIMARY KEY,
    touched_at     TIMESTAMP NOT NULL,
    sweeping_until INTEGER
);
-- When the runs of cleanups have begun in repositories, and what they have recorded for a process that takes over.
CREATE TABLE container_cleanups (
    run           TEXT NOT NULL,
    repository_id INTEGER NOT NULL REFERENCES container_repositories (id) ON DELETE CASCADE,
    began_at      TIMESTAMP NOT NULL,
    progress      TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (run, repository_id)
);
CREATE INDEX container_cleanups_of_repository ON container_cleanups (repository_id);
-- The layers, configurations and manifests that a repository has in the storage, and the unfinished uploads to it.
CREATE TABLE container_contents (
    repository_id INTEGER NOT NULL REFERENCES container_repositories (id) ON DELETE CASCADE,
    name          TEXT    NOT NULL,
    size          INTEGER NOT NULL,
    PRIMARY KEY (repository_id, name)
);
-- The bytes of repositories that were deleted. Their contents stay in the storage until a garbage collection.
CREATE TABLE container_releases (
    project_uid TEXT NOT NULL,
    size        INTEGER NOT NULL,
    released_at TIMESTAMP NOT NULL
);
CREATE INDEX container_releases_of_project ON container_releases (project_uid);
