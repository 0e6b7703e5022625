-- The changes of the states of items, such as issues. The subject is the project or group of the item.
CREATE TABLE state_events (
    id           INTEGER   NOT NULL PRIMARY KEY AUTOINCREMENT,
    subject_kind TEXT NOT NULL,
    subject_id   INTEGER NOT NULL,
    subject_uid  TEXT NOT NULL,
    item_kind    TEXT NOT NULL,
    item_id      INTEGER NOT NULL,
    state        TEXT NOT NULL,
    user_id      INTEGER NOT NULL,
    user_uid     TEXT NOT NULL,
    created_at   TIMESTAMP NOT NULL
);
CREATE INDEX state_events_of_item ON state_events (item_kind, item_id, id);
CREATE INDEX state_events_of_subject ON state_events (subject_kind, subject_id, subject_uid);
