-- The last change of each merge request, issue, pipeline and job, also of deleted ones, for clients that watch them. A revision counts the changes of all items.
-- created is the revision of the first change. The triggers below write the table, so no change of an item can be missing.
CREATE TABLE item_revision (last INTEGER NOT NULL);
INSERT INTO item_revision VALUES (1);
CREATE TABLE item_changes (
    kind        TEXT    NOT NULL,
    subject_uid TEXT    NOT NULL,
    iid         INTEGER NOT NULL,
    item_id     INTEGER NOT NULL,
    state       TEXT    NOT NULL,
    created     INTEGER NOT NULL,
    changed     INTEGER NOT NULL,
    deleted     BOOLEAN NOT NULL,
    PRIMARY KEY (kind, subject_uid, iid)
);
INSERT INTO item_changes SELECT 'merge_request', subject_uid, iid, id, state, 1, 1, FALSE FROM merge_requests;
INSERT INTO item_changes SELECT 'issue', subject_uid, iid, id, state, 1, 1, FALSE FROM issues;
CREATE INDEX item_changes_in_order ON item_changes (kind, changed);
CREATE INDEX item_changes_of_subject ON item_changes (kind, subject_uid, changed);
CREATE INDEX item_changes_by_state ON item_changes (kind, state, subject_uid, iid) WHERE NOT deleted;
CREATE INDEX item_changes_of_deleted ON item_changes (changed) WHERE deleted;
-- What is inserted here is recorded as a change. Deleted items are forgotten after 100000 changes. Numbers are negative while they are reassigned.
CREATE VIEW item_writes AS SELECT kind, subject_uid, iid, item_id, state, deleted FROM item_changes;
CREATE TRIGGER item_is_written INSTEAD OF INSERT ON item_writes WHEN new.iid > 0 BEGIN
    UPDATE item_revision SET last = last + 1;
    INSERT INTO item_changes SELECT new.kind, new.subject_uid, new.iid, new.item_id, new.state, last, last, new.deleted FROM item_revision WHERE TRUE
        ON CONFLICT (kind, subject_uid, iid) DO UPDATE SET item_id = excluded.item_id, state = excluded.state, changed = excluded.changed,
            created = CASE WHEN item_changes.deleted THEN excluded.created ELSE item_changes.created END, deleted = excluded.deleted;
    DELETE FROM item_changes WHERE deleted AND changed < (SELECT last FROM item_revision) - 100000;
END;
-- Statements that only lock a row write it as it was. They are no changes: who writes a draft note must not be seen. The columns are all columns of the
-- tables, also those that later migrations add.
CREATE TRIGGER merge_request_is_added AFTER INSERT ON merge_requests BEGIN
    INSERT INTO item_writes VALUES ('merge_request', new.subject_uid, new.iid, new.id, new.state, FALSE);
END;
CREATE TRIGGER merge_request_is_changed AFTER UPDATE ON merge_requests
    WHEN (
        old.id, old.subject_kind, old.subject_id, old.subject_uid, old.iid, old.source_kind, old.source_id, old.source_uid, old.source_branch,
        old.target_branch, old.title, old.description, old.text, old.state, old.draft, old.discussion_locked, old.squash, old.remove_source_branch,
        old.allow_collaboration, old.approvals_required, old.author_id, old.author_uid, old.milestone_id, old.head_sha, old.base_sha, old.start_sha,
        old.changes_count, old.merge_status, old.checked_target, old.merge_error, old.planned_commit, old.planned_squash, old.merge_commit_sha,
        old.squash_commit_sha, old.should_remove_source, old.merger_id, old.merger_uid, old.merged_at, old.auto_merge,
        old.auto_merge_pipeline, old.closer_id, old.closer_uid, old.closed_at,
        old.prepared_at, old.time_estimate, old.time_spent, old.created_at, old.updated_at
    ) IS NOT (
        new.id, new.subject_kind, new.subject_id, new.subject_uid, new.iid, new.source_kind, new.source_id, new.source_uid, new.source_branch,
        new.target_branch, new.title, new.description, new.text, new.state, new.draft, new.discussion_locked, new.squash, new.remove_source_branch,
        new.allow_collaboration, new.approvals_required, new.author_id, new.author_uid, new.milestone_id, new.head_sha, new.base_sha, new.start_sha,
        new.changes_count, new.merge_status, new.checked_target, new.merge_error, new.planned_commit, new.planned_squash, new.merge_commit_sha,
        new.squash_commit_sha, new.should_remove_source, new.merger_id, new.merger_uid, new.merged_at, new.auto_merge,
        new.auto_merge_pipeline, new.closer_id, new.closer_uid, new.closed_at,
        new.prepared_at, new.time_estimate, new.time_spent, new.created_at, new.updated_at
    ) BEGIN
    INSERT INTO item_writes SELECT 'merge_request', old.subject_uid, old.iid, old.id, old.state, TRUE
        WHERE (old.subject_uid, old.iid) <> (new.subject_uid, new.iid);
    INSERT INTO item_writes VALUES ('merge_request', new.subject_uid, new.iid, new.id, new.state, FALSE);
END;
CREATE TRIGGER merge_request_is_removed AFTER DELETE ON merge_requests BEGIN
    INSERT INTO item_writes VALUES ('merge_request', old.subject_uid, old.iid, old.id, old.state, TRUE);
END;
CREATE TRIGGER issue_is_added AFTER INSERT ON issues BEGIN
    INSERT INTO item_writes VALUES ('issue', new.subject_uid, new.iid, new.id, new.state, FALSE);
END;
CREATE TRIGGER issue_is_changed AFTER UPDATE ON issues
    WHEN (
        old.id, old.subject_kind, old.subject_id, old.subject_uid, old.iid, old.title, old.description, old.text, old.state, old.issue_type,
        old.confidential, old.discussion_locked, old.author_id, old.author_uid, old.milestone_id, old.epic_id, old.weight, old.due_date,
        old.closer_id, old.closer_uid, old.closed_at, old.created_at, old.updated_at, old.time_estimate, old.time_spent
    ) IS NOT (
        new.id, new.subject_kind, new.subject_id, new.subject_uid, new.iid, new.title, new.description, new.text, new.state, new.issue_type,
        new.confidential, new.discussion_locked, new.author_id, new.author_uid, new.milestone_id, new.epic_id, new.weight, new.due_date,
        new.closer_id, new.closer_uid, new.closed_at, new.created_at, new.updated_at, new.time_estimate, new.time_spent
    ) BEGIN
    INSERT INTO item_writes SELECT 'issue', old.subject_uid, old.iid, old.id, old.state, TRUE
        WHERE (old.subject_uid, old.iid) <> (new.subject_uid, new.iid);
    INSERT INTO item_writes VALUES ('issue', new.subject_uid, new.iid, new.id, new.state, FALSE);
END;
CREATE TRIGGER issue_is_removed AFTER DELETE ON issues BEGIN
    INSERT INTO item_writes VALUES ('issue', old.subject_uid, old.iid, old.id, old.state, TRUE);
END;
-- Labels are removed and replaced in rows of their own.
CREATE TRIGGER merge_request_label_is_added AFTER INSERT ON merge_request_labels BEGIN
    INSERT INTO item_writes SELECT 'merge_request', subject_uid, iid, id, state, FALSE FROM merge_requests WHERE id = new.merge_request_id;
END;
CREATE TRIGGER merge_request_label_is_removed AFTER DELETE ON merge_request_labels BEGIN
    INSERT INTO item_writes SELECT 'merge_request', subject_uid, iid, id, state, FALSE FROM merge_requests WHERE id = old.merge_request_id;
END;
CREATE TRIGGER issue_label_is_added AFTER INSERT ON issue_labels BEGIN
    INSERT INTO item_writes SELECT 'issue', subject_uid, iid, id, state, FALSE FROM issues WHERE id = new.issue_id;
END;
CREATE TRIGGER issue_label_is_removed AFTER DELETE ON issue_labels BEGIN
    INSERT INTO item_writes SELECT 'issue', subject_uid, iid, id, state, FALSE FROM issues WHERE id = old.issue_id;
END;
-- The number of a job is its id.
INSERT INTO item_changes SELECT 'pipeline', subject_uid, iid, id, status, 1, 1, FALSE FROM pipelines;
INSERT INTO item_changes SELECT 'job', subject_uid, id, id, status, 1, 1, FALSE FROM pipeline_jobs;
CREATE TRIGGER pipeline_is_added AFTER INSERT ON pipelines BEGIN
    INSERT INTO item_writes VALUES ('pipeline', new.subject_uid, new.iid, new.id, new.status, FALSE);
END;
-- The other columns are not shown: each part of a log writes the row of its job.
CREATE TRIGGER pipeline_is_changed AFTER UPDATE ON pipelines
    WHEN (
        old.subject_uid, old.iid, old.name, old.ref, old.sha, old.source, old.status, old.user_id, old.user_uid, old.updated_at, old.started_at, old.finished_at
    ) IS NOT (
        new.subject_uid, new.iid, new.name, new.ref, new.sha, new.source, new.status, new.user_id, new.user_uid, new.updated_at, new.started_at, new.finished_at
    ) BEGIN
    INSERT INTO item_writes SELECT 'pipeline', old.subject_uid, old.iid, old.id, old.status, TRUE
        WHERE (old.subject_uid, old.iid) <> (new.subject_uid, new.iid);
    INSERT INTO item_writes VALUES ('pipeline', new.subject_uid, new.iid, new.id, new.status, FALSE);
END;
CREATE TRIGGER pipeline_is_removed AFTER DELETE ON pipelines BEGIN
    INSERT INTO item_writes VALUES ('pipeline', old.subject_uid, old.iid, old.id, old.status, TRUE);
END;
CREATE TRIGGER job_is_added AFTER INSERT ON pipeline_jobs BEGIN
    INSERT INTO item_writes VALUES ('job', new.subject_uid, new.id, new.id, new.status, FALSE);
END;
CREATE TRIGGER job_is_changed AFTER UPDATE ON pipeline_jobs
    WHEN (
        old.subject_uid, old.status, old.failure_reason, old.allow_failure, old.retried, old.user_id, old.user_uid, old.started_at, old.finished_at
    ) IS NOT (
        new.subject_uid, new.status, new.failure_reason, new.allow_failure, new.retried, new.user_id, new.user_uid, new.started_at, new.finished_at
    ) BEGIN
    INSERT INTO item_writes SELECT 'job', old.subject_uid, old.id, old.id, old.status, TRUE WHERE old.subject_uid <> new.subject_uid;
    INSERT INTO item_writes VALUES ('job', new.subject_uid, new.id, new.id, new.status, FALSE);
END;
CREATE TRIGGER job_is_removed AFTER DELETE ON pipeline_jobs BEGIN
    INSERT INTO item_writes VALUES ('job', old.subject_uid, old.id, old.id, old.status, TRUE);
END;
