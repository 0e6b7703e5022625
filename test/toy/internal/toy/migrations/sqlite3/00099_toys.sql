CREATE TABLE toys (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    namespace   TEXT    NOT NULL,
    project_uid TEXT    NOT NULL,
    state       TEXT    NOT NULL,
    created     INTEGER NOT NULL,
    changed     INTEGER NOT NULL
);
CREATE INDEX toys_of_project ON toys (project_uid, id);
CREATE TABLE toy_revision (last INTEGER NOT NULL);
INSERT INTO toy_revision VALUES (1);
