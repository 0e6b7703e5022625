CREATE TABLE written (
    server     TEXT      NOT NULL,
    kind       TEXT      NOT NULL,
    revision   INTEGER   NOT NULL,
    written_at TIMESTAMP NOT NULL,
    PRIMARY KEY (server, kind)
) WITHOUT ROWID;
