-- The merge requests of projects, which are the subjects: each asks to merge a branch of the source project into one of the subject.
-- text is what a search looks through: the title and the description, folded. head_sha, base_sha and start_sha are those of the latest version.
CREATE TABLE merge_requests (
    id                    INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    subject_kind          TEXT NOT NULL,
    subject_id            INTEGER NOT NULL,
    subject_uid           TEXT NOT NULL,
    iid                   INTEGER NOT NULL,
    source_kind           TEXT NOT NULL,
    source_id             INTEGER NOT NULL,
    source_uid            TEXT NOT NULL,
    source_branch         TEXT NOT NULL,
    target_branch         TEXT NOT NULL,
    title                 TEXT NOT NULL,
    description           TEXT NOT NULL,
    text                  TEXT NOT NULL,
    state                 TEXT NOT NULL,
    draft                 BOOLEAN NOT NULL,
    discussion_locked     BOOLEAN,
    squash                BOOLEAN NOT NULL,
    remove_source_branch  BOOLEAN NOT NULL,
    allow_collaboration   BOOLEAN NOT NULL,
    approvals_required    INTEGER NOT NULL DEFAULT 0,
    author_id             INTEGER NOT NULL,
    author_uid            TEXT NOT NULL,
    milestone_id          INTEGER NOT NULL DEFAULT 0,
    head_sha              TEXT NOT NULL DEFAULT '',
    base_sha              TEXT NOT NULL DEFAULT '',
    start_sha             TEXT NOT NULL DEFAULT '',
    changes_count         TEXT NOT NULL DEFAULT '',
    merge_status          TEXT NOT NULL,
    checked_target        TEXT NOT NULL DEFAULT '',
    merge_error           TEXT NOT NULL DEFAULT '',
    planned_commit        TEXT NOT NULL DEFAULT '',
    planned_squash        TEXT NOT NULL DEFAULT '',
    merge_commit_sha      TEXT NOT NULL DEFAULT '',
    squash_commit_sha     TEXT NOT NULL DEFAULT '',
    should_remove_source  BOOLEAN,
    merger_id             INTEGER NOT NULL DEFAULT 0,
    merger_uid            TEXT NOT NULL DEFAULT '',
    auto_merge            TEXT,
    auto_merge_pipeline   INTEGER NOT NULL DEFAULT 0,
    merged_at             TIMESTAMP,
    closer_id             INTEGER NOT NULL DEFAULT 0,
    closer_uid            TEXT NOT NULL DEFAULT '',
    closed_at             TIMESTAMP,
    prepared_at           TIMESTAMP,
    time_estimate         INTEGER NOT NULL DEFAULT 0,
    time_spent            INTEGER NOT NULL DEFAULT 0,
    created_at            TIMESTAMP NOT NULL,
    updated_at            TIMESTAMP NOT NULL,
    UNIQUE (subject_uid, iid)
);
CREATE INDEX merge_requests_by_creation ON merge_requests (subject_uid, created_at, id);
CREATE INDEX merge_requests_by_update ON merge_requests (subject_uid, updated_at, id);
CREATE INDEX merge_requests_by_state ON merge_requests (subject_uid, state, created_at, id);
CREATE INDEX merge_requests_of_milestone ON merge_requests (milestone_id);
CREATE INDEX merge_requests_of_author ON merge_requests (author_uid);
CREATE INDEX merge_requests_of_source ON merge_requests (source_uid, source_branch);
CREATE INDEX merge_requests_into_target ON merge_requests (subject_uid, target_branch);
CREATE INDEX merge_requests_with_head ON merge_requests (subject_uid, head_sha);
CREATE INDEX merge_requests_awaiting ON merge_requests (auto_merge_pipeline) WHERE auto_merge_pipeline <> 0;
CREATE INDEX merge_requests_with_merge_commit ON merge_requests (subject_uid, merge_commit_sha);
CREATE INDEX merge_requests_with_squash_commit ON merge_requests (subject_uid, squash_commit_sha);
-- A branch has at most one open merge request into a branch.
CREATE UNIQUE INDEX merge_requests_open ON merge_requests (source_uid, source_branch, subject_uid, target_branch) WHERE state IN ('opened', 'locked');
-- The labels of merge requests. The title is not here, because labels can be renamed.
CREATE TABLE merge_request_labels (
    merge_request_id INTEGER NOT NULL REFERENCES merge_requests (id) ON DELETE CASCADE,
    label_id         INTEGER NOT NULL,
    label_uid        TEXT NOT NULL,
    PRIMARY KEY (merge_request_id, label_uid)
);
CREATE INDEX merge_request_labels_of_label ON merge_request_labels (label_uid, merge_request_id);
CREATE INDEX merge_request_labels_in_order ON merge_request_labels (label_id, label_uid);
-- The assignees and reviewers of merge requests, in the order of position.
CREATE TABLE merge_request_assignees (
    merge_request_id INTEGER NOT NULL REFERENCES merge_requests (id) ON DELETE CASCADE,
    user_id          INTEGER NOT NULL,
    user_uid         TEXT NOT NULL,
    position         INTEGER NOT NULL,
    PRIMARY KEY (merge_request_id, user_uid)
);
CREATE INDEX merge_request_assignees_of_user ON merge_request_assignees (user_uid, merge_request_id);
CREATE TABLE merge_request_reviewers (
    merge_request_id INTEGER NOT NULL REFERENCES merge_requests (id) ON DELETE CASCADE,
    user_id          INTEGER NOT NULL,
    user_uid         TEXT NOT NULL,
    position         INTEGER NOT NULL,
    PRIMARY KEY (merge_request_id, user_uid)
);
CREATE INDEX merge_request_reviewers_of_user ON merge_request_reviewers (user_uid, merge_request_id);
-- The deployments that have brought a merged merge request to an environment. job_id is the job that has deployed.
CREATE TABLE merge_request_deployments (
    merge_request_id INTEGER NOT NULL REFERENCES merge_requests (id) ON DELETE CASCADE,
    job_id           INTEGER NOT NULL,
    environment      TEXT NOT NULL,
    tier             TEXT NOT NULL,
    deployed_at      TIMESTAMP NOT NULL,
    PRIMARY KEY (merge_request_id, job_id)
);
-- The approvals of merge requests. A push to the source branch removes them.
CREATE TABLE merge_request_approvals (
    merge_request_id INTEGER NOT NULL REFERENCES merge_requests (id) ON DELETE CASCADE,
    user_id          INTEGER NOT NULL,
    user_uid         TEXT NOT NULL,
    approved_at      TIMESTAMP NOT NULL,
    PRIMARY KEY (merge_request_id, user_uid)
);
CREATE INDEX merge_request_approvals_of_user ON merge_request_approvals (user_uid, merge_request_id);
-- The users who have subscribed to a merge request, or unsubscribed from one in which they take part.
CREATE TABLE merge_request_subscriptions (
    merge_request_id INTEGER NOT NULL REFERENCES merge_requests (id) ON DELETE CASCADE,
    user_id          INTEGER NOT NULL,
    user_uid         TEXT NOT NULL,
    subscribed       BOOLEAN NOT NULL,
    PRIMARY KEY (merge_request_id, user_uid)
);
-- The issues of the project that the descriptions of merge requests mention.
CREATE TABLE merge_request_issues (
    merge_request_id INTEGER NOT NULL REFERENCES merge_requests (id) ON DELETE CASCADE,
    issue_iid        INTEGER NOT NULL,
    closes           BOOLEAN NOT NULL,
    PRIMARY KEY (merge_request_id, issue_iid)
);
CREATE INDEX merge_request_issues_of_issue ON merge_request_issues (issue_iid, merge_request_id);
-- The versions of merge requests: one for each push to the source branch.
CREATE TABLE merge_request_versions (
    id               INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    merge_request_id INTEGER NOT NULL REFERENCES merge_requests (id) ON DELETE CASCADE,
    head_sha         TEXT NOT NULL,
    base_sha         TEXT NOT NULL,
    start_sha        TEXT NOT NULL,
    changes_count    TEXT NOT NULL,
    created_at       TIMESTAMP NOT NULL
);
CREATE INDEX merge_request_versions_in_order ON merge_request_versions (merge_request_id, id);
-- The index of text by trigrams. It keeps no text of its own.
CREATE VIRTUAL TABLE merge_request_texts USING fts5 (text, content = 'merge_requests', content_rowid = 'id', tokenize = 'trigram case_sensitive 1');
CREATE TRIGGER merge_request_text_is_added AFTER INSERT ON merge_requests BEGIN
    INSERT INTO merge_request_texts (rowid, text) VALUES (new.id, new.text);
END;
CREATE TRIGGER merge_request_text_is_removed AFTER DELETE ON merge_requests BEGIN
    INSERT INTO merge_request_texts (merge_request_texts, rowid, text) VALUES ('delete', old.id, old.text);
END;
CREATE TRIGGER merge_request_text_changes AFTER UPDATE OF text ON merge_requests WHEN old.text <> new.text BEGIN
    INSERT INTO merge_request_texts (merge_request_texts, rowid, text) VALUES ('delete', old.id, old.text);
    INSERT INTO merge_request_texts (rowid, text) VALUES (new.id, new.text);
END;
-- The approval rules of merge requests: each asks for a number of approvals by its approvers, or by anybody if it has none.
CREATE TABLE merge_request_approval_rules (
    id                 INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    merge_request_id   INTEGER NOT NULL REFERENCES merge_requests (id) ON DELETE CASCADE,
    name               TEXT NOT NULL,
    approvals_required INTEGER NOT NULL,
    UNIQUE (merge_request_id, name)
);
-- The approvers of rules: users and groups, which stand for their members.
CREATE TABLE merge_request_approvers (
    rule_id       INTEGER NOT NULL REFERENCES merge_request_approval_rules (id) ON DELETE CASCADE,
    approver_kind TEXT NOT NULL,
    approver_id   INTEGER NOT NULL,
    approver_uid  TEXT NOT NULL,
    PRIMARY KEY (rule_id, approver_uid)
);
