-- The runners that execute jobs. The places of a runner are its projects, or its group; a runner of the installation has none. tags is JSON, and
-- digest that of the authentication token.
CREATE TABLE runners (
    id               INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    type             TEXT NOT NULL,
    description      TEXT NOT NULL,
    digest           TEXT NOT NULL UNIQUE,
    paused           BOOLEAN NOT NULL,
    locked           BOOLEAN NOT NULL,
    run_untagged     BOOLEAN NOT NULL,
    protected        BOOLEAN NOT NULL,
    tags             TEXT NOT NULL,
    maximum_timeout  INTEGER NOT NULL,
    maintenance_note TEXT NOT NULL,
    user_id          INTEGER NOT NULL,
    user_uid         TEXT NOT NULL,
    created_at       TIMESTAMP NOT NULL,
    changed_at       TIMESTAMP NOT NULL,
    contacted_at     TIMESTAMP,
    name             TEXT NOT NULL DEFAULT '',
    version          TEXT NOT NULL DEFAULT '',
    revision         TEXT NOT NULL DEFAULT '',
    platform         TEXT NOT NULL DEFAULT '',
    architecture     TEXT NOT NULL DEFAULT '',
    executor         TEXT NOT NULL DEFAULT '',
    address          TEXT NOT NULL DEFAULT ''
);
CREATE TABLE runner_places (
    id           INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    runner_id    INTEGER NOT NULL REFERENCES runners (id) ON DELETE CASCADE,
    subject_kind TEXT NOT NULL,
    subject_id   INTEGER NOT NULL,
    subject_uid  TEXT NOT NULL,
    UNIQUE (runner_id, subject_uid)
);
CREATE INDEX runner_places_of_subject ON runner_places (subject_uid, runner_id);
-- The digests of the tokens with which runners register themselves. That of the installation has an empty subject.
CREATE TABLE runner_registrations (
    id           INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    subject_kind TEXT NOT NULL,
    subject_id   INTEGER NOT NULL,
    subject_uid  TEXT NOT NULL UNIQUE,
    digest       TEXT NOT NULL UNIQUE
);
