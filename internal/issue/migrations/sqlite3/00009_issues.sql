-- The issues of projects, which are the subjects. text is what a search looks through: the title and the description, folded. The times are in
-- seconds.
CREATE TABLE issues (
    id                INTEGER   NOT NULL PRIMARY KEY AUTOINCREMENT,
    subject_kind TEXT NOT NULL,
    subject_id   INTEGER NOT NULL,
    subject_uid  TEXT NOT NULL,
    iid               INTEGER NOT NULL,
    title             TEXT NOT NULL,
    description       TEXT NOT NULL,
    text              TEXT NOT NULL,
    state             TEXT NOT NULL,
    issue_type        TEXT NOT NULL,
    confidential      BOOLEAN NOT NULL,
    discussion_locked BOOLEAN NOT NULL,
    author_id         INTEGER NOT NULL,
    author_uid        TEXT NOT NULL,
    milestone_id      INTEGER NOT NULL DEFAULT 0,
    epic_id           INTEGER NOT NULL DEFAULT 0,
    weight            INTEGER,
    due_date          TEXT NOT NULL DEFAULT '',
    time_estimate     INTEGER NOT NULL DEFAULT 0,
    time_spent        INTEGER NOT NULL DEFAULT 0,
    closer_id         INTEGER NOT NULL DEFAULT 0,
    closer_uid        TEXT NOT NULL DEFAULT '',
    closed_at         TIMESTAMP,
    created_at        TIMESTAMP NOT NULL,
    updated_at        TIMESTAMP NOT NULL,
    UNIQUE (subject_uid, iid)
);
CREATE INDEX issues_by_creation ON issues (subject_uid, created_at, id);
CREATE INDEX issues_by_update ON issues (subject_uid, updated_at, id);
CREATE INDEX issues_of_milestone ON issues (milestone_id);
CREATE INDEX issues_of_epic ON issues (epic_id);
CREATE INDEX issues_of_author ON issues (author_uid);
-- The labels of issues. The title is not here, because labels can be renamed.
CREATE TABLE issue_labels (
    issue_id  INTEGER NOT NULL REFERENCES issues (id) ON DELETE CASCADE,
    label_id  INTEGER NOT NULL,
    label_uid TEXT NOT NULL,
    PRIMARY KEY (issue_id, label_uid)
);
CREATE INDEX issue_labels_of_label ON issue_labels (label_uid, issue_id);
CREATE INDEX issue_labels_in_order ON issue_labels (label_id, label_uid);
-- The assignees of issues, in the order of position.
CREATE TABLE issue_assignees (
    issue_id INTEGER NOT NULL REFERENCES issues (id) ON DELETE CASCADE,
    user_id  INTEGER NOT NULL,
    user_uid TEXT NOT NULL,
    position INTEGER NOT NULL,
    PRIMARY KEY (issue_id, user_uid)
);
CREATE INDEX issue_assignees_of_user ON issue_assignees (user_uid, issue_id);
-- The users who have subscribed to an issue, or unsubscribed from one in which they take part.
CREATE TABLE issue_subscriptions (
    issue_id   INTEGER NOT NULL REFERENCES issues (id) ON DELETE CASCADE,
    user_id    INTEGER NOT NULL,
    user_uid   TEXT NOT NULL,
    subscribed BOOLEAN NOT NULL,
    PRIMARY KEY (issue_id, user_uid)
);
-- The index of text by trigrams. It keeps no text of its own.
CREATE VIRTUAL TABLE issue_texts USING fts5 (text, content = 'issues', content_rowid = 'id', tokenize = 'trigram case_sensitive 1');
CREATE TRIGGER issue_text_is_added AFTER INSERT ON issues BEGIN
    INSERT INTO issue_texts (rowid, text) VALUES (new.id, new.text);
END;
CREATE TRIGGER issue_text_is_removed AFTER DELETE ON issues BEGIN
    INSERT INTO issue_texts (issue_texts, rowid, text) VALUES ('delete', old.id, old.text);
END;
CREATE TRIGGER issue_text_changes AFTER UPDATE OF text ON issues WHEN old.text <> new.text BEGIN
    INSERT INTO issue_texts (issue_texts, rowid, text) VALUES ('delete', old.id, old.text);
    INSERT INTO issue_texts (rowid, text) VALUES (new.id, new.text);
END;
