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
