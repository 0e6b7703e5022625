-- The emoji reactions to items, such as issues and notes. The subject is the project or group of the item.
CREATE TABLE reactions (
    id           INTEGER   NOT NULL PRIMARY KEY AUTOINCREMENT,
    subject_kind TEXT NOT NULL,
    subject_id   INTEGER NOT NULL,
    subject_uid  TEXT NOT NULL,
    item_kind    TEXT NOT NULL,
    item_id      INTEGER NOT NULL,
    name         TEXT NOT NULL,
    user_id      INTEGER NOT NULL,
    user_uid     TEXT NOT NULL,
    created_at   TIMESTAMP NOT NULL,
    UNIQUE (item_kind, item_id, user_uid, name)
);
CREATE INDEX reactions_of_subject ON reactions (subject_kind, subject_id, subject_uid);
CREATE INDEX reactions_of_user ON reactions (user_uid, item_kind, name);
