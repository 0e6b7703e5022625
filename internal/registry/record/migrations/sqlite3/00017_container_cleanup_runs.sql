-- When the runs of cleanups have begun in repositories, and what they have recorded for a process that takes over.
CREATE TABLE container_cleanups (
    run           TEXT NOT NULL,
    repository_id INTEGER NOT NULL REFERENCES container_repositories (id) ON DELETE CASCADE,
    began_at      TIMESTAMP NOT NULL,
    progress      TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (run, repository_id)
);
CREATE INDEX container_cleanups_of_repository ON container_cleanups (repository_id);
ALTER TABLE container_repositories DROP COLUMN cleanup_run;
ALTER TABLE container_repositories DROP COLUMN cleanup_progress;
-- The number of bytes of the images of a repository, and the count of changes at which it was measured.
ALTER TABLE container_repositories ADD COLUMN size INTEGER NOT NULL DEFAULT 0;
ALTER TABLE container_repositories ADD COLUMN sized INTEGER NOT NULL DEFAULT -1;
