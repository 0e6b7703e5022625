-- Times are milliseconds since 1970 by the clock of the database.
CREATE TABLE jobs (
    queue     TEXT    NOT NULL,
    key       TEXT    NOT NULL,
    tenant    TEXT    NOT NULL,
    payload   BYTEA   NOT NULL,
    due       BIGINT  NOT NULL,
    again     BIGINT,
    attempts  INTEGER NOT NULL DEFAULT 0,
    failure   TEXT    NOT NULL DEFAULT '',
    progress  TEXT    NOT NULL DEFAULT '',
    owner     TEXT    NOT NULL DEFAULT '',
    number    BIGINT  NOT NULL DEFAULT 0,
    cancelled BOOLEAN NOT NULL DEFAULT FALSE,
    PRIMARY KEY (queue, key)
);
CREATE INDEX jobs_of_tenant ON jobs (queue, tenant, due);
-- The number of the last attempt of each queue. It outlives the tasks, so no attempt has the number of an earlier one.
CREATE TABLE job_numbers (
    queue  TEXT   NOT NULL PRIMARY KEY,
    number BIGINT NOT NULL
);
