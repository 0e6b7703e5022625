CREATE TABLE written (
    server     TEXT        NOT NULL,
    kind       TEXT        NOT NULL,
    revision   BIGINT      NOT NULL,
    written_at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (server, kind)
);
