-- The layers, configurations and manifests that a repository has in the storage, and the unfinished uploads to it. The column stored of the
-- repository is the number of their bytes together.
CREATE TABLE container_contents (
    repository_id BIGINT NOT NULL REFERENCES container_repositories (id) ON DELETE CASCADE,
    name          TEXT   NOT NULL,
    size          BIGINT NOT NULL,
    PRIMARY KEY (repository_id, name)
);
ALTER TABLE container_repositories ADD COLUMN stored BIGINT NOT NULL DEFAULT 0;
-- The bytes of repositories that were deleted. Their contents stay in the storage until a garbage collection.
CREATE TABLE container_releases (
    project_uid TEXT NOT NULL,
    size        BIGINT NOT NULL,
    released_at TIMESTAMPTZ NOT NULL
);
CREATE INDEX container_releases_of_project ON container_releases (project_uid);
