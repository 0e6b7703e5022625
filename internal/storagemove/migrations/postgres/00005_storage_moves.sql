-- The moves of repositories, which outlive their objects and their projects. The project is as it was last seen.
CREATE TABLE storage_moves (
    id          BIGINT      NOT NULL PRIMARY KEY,
    uid         TEXT        NOT NULL,
    created_at  TIMESTAMPTZ NOT NULL,
    state       TEXT        NOT NULL,
    source      TEXT        NOT NULL,
    destination TEXT        NOT NULL,
    project_uid TEXT        NOT NULL,
    project     TEXT        NOT NULL
);
CREATE INDEX storage_moves_by_time ON storage_moves (created_at, id);
CREATE INDEX storage_moves_of_project ON storage_moves (project_uid, created_at, id);
