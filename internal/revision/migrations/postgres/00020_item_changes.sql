-- The last change of each merge request, issue, pipeline and job, also of deleted ones, for clients that watch them. A revision counts the changes of all items.
-- created is the revision of the first change. The triggers below write the table, so no change of an item can be missing.
CREATE TABLE item_revision (last BIGINT NOT NULL);
INSERT INTO item_revision VALUES (1);
CREATE TABLE item_changes (
    kind        TEXT    NOT NULL,
    subject_uid TEXT    NOT NULL COLLATE "C",
    iid         BIGINT  NOT NULL,
    item_id     BIGINT  NOT NULL,
    state       TEXT    NOT NULL,
    created     BIGINT  NOT NULL,
    changed     BIGINT  NOT NULL,
    deleted     BOOLEAN NOT NULL,
    PRIMARY KEY (kind, subject_uid, iid)
);
INSERT INTO item_changes SELECT 'merge_request', subject_uid, iid, id, state, 1, 1, FALSE FROM merge_requests;
INSERT INTO item_changes SELECT 'issue', subject_uid, iid, id, state, 1, 1, FALSE FROM issues;
CREATE INDEX item_changes_in_order ON item_changes (kind, changed);
CREATE INDEX item_changes_of_subject ON item_changes (kind, subject_uid, changed);
CREATE INDEX item_changes_by_state ON item_changes (kind, state, subject_uid, iid) WHERE NOT deleted;
CREATE INDEX item_changes_of_deleted ON item_changes (changed) WHERE deleted;
-- Records a change. Other changes wait until the transaction ends, so revisions become visible in their order. Deleted items are forgotten after
-- 100000 changes. Numbers are negative while they are reassigned. A transaction reserves one revision, then as many more as it has had so far: each
-- update of the row leaves a version that the next one has to pass. It remembers its first and its last revision in settings.
CREATE FUNCTION record_item(item_kind TEXT, uid TEXT, number BIGINT, id BIGINT, item_state TEXT, gone BOOLEAN) RETURNS VOID LANGUAGE plpgsql AS $$
DECLARE
    first BIGINT := NULLIF(current_setting('forgeplane.first_revision', TRUE), '');
    revision BIGINT := NULLIF(current_setting('forgeplane.last_revision', TRUE), '');
BEGIN
    IF number < 0 THEN
        RETURN;
    END IF;
    revision := revision + 1;
    IF revision IS NULL THEN
        UPDATE item_revision SET last = last + 1 RETURNING last INTO revision;
        PERFORM set_config('forgeplane.first_revision', revision::TEXT, TRUE);
        DELETE FROM item_changes WHERE deleted AND changed < revision - 100000;
    ELSIF revision > (SELECT last FROM item_revision) THEN
        UPDATE item_revision SET last = last + revision - first;
    END IF;
    PERFORM set_config('forgeplane.last_revision', revision::TEXT, TRUE);
    INSERT INTO item_changes AS c VALUES (item_kind, uid, number, id, item_state, revision, revision, gone)
        ON CONFLICT (kind, subject_uid, iid) DO UPDATE SET item_id = EXCLUDED.item_id, state = EXCLUDED.state, changed = EXCLUDED.changed,
            created = CASE WHEN c.deleted THEN EXCLUDED.created ELSE c.created END, deleted = EXCLUDED.deleted;
END $$;
CREATE FUNCTION item_is_written() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' OR TG_OP = 'UPDATE' AND (OLD.subject_uid, OLD.iid) <> (NEW.subject_uid, NEW.iid) THEN
        PERFORM record_item(TG_ARGV[0], OLD.subject_uid, OLD.iid, OLD.id, OLD.state, TRUE);
    END IF;
    IF TG_OP <> 'DELETE' THEN
        PERFORM record_item(TG_ARGV[0], NEW.subject_uid, NEW.iid, NEW.id, NEW.state, FALSE);
    END IF;
    RETURN NULL;
END $$;
-- Labels are removed and replaced in rows of their own.
CREATE FUNCTION merge_request_label_is_written() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    PERFORM record_item('merge_request', subject_uid, iid, id, state, FALSE) FROM merge_requests WHERE id IN (OLD.merge_request_id, NEW.merge_request_id);
    RETURN NULL;
END $$;
CREATE FUNCTION issue_label_is_written() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    PERFORM record_item('issue', subject_uid, iid, id, state, FALSE) FROM issues WHERE id IN (OLD.issue_id, NEW.issue_id);
    RETURN NULL;
END $$;
-- The triggers run when the transaction ends: it then waits for no other row while it holds the revision, so there is no deadlock.
-- Statements that only lock a row write it as it was. They are no changes: who writes a draft note must not be seen.
CREATE CONSTRAINT TRIGGER merge_request_is_written AFTER INSERT OR DELETE ON merge_requests
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION item_is_written('merge_request');
CREATE CONSTRAINT TRIGGER merge_request_is_changed AFTER UPDATE ON merge_requests
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION item_is_written('merge_request');
CREATE CONSTRAINT TRIGGER issue_is_written AFTER INSERT OR DELETE ON issues
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION item_is_written('issue');
CREATE CONSTRAINT TRIGGER issue_is_changed AFTER UPDATE ON issues
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION item_is_written('issue');
CREATE CONSTRAINT TRIGGER merge_request_label_is_written AFTER INSERT OR DELETE ON merge_request_labels
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION merge_request_label_is_written();
CREATE CONSTRAINT TRIGGER issue_label_is_written AFTER INSERT OR DELETE ON issue_labels
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION issue_label_is_written();
-- The number of a job is its id.
INSERT INTO item_changes SELECT 'pipeline', subject_uid, iid, id, status, 1, 1, FALSE FROM pipelines;
INSERT INTO item_changes SELECT 'job', subject_uid, id, id, status, 1, 1, FALSE FROM pipeline_jobs;
CREATE FUNCTION pipeline_is_written() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' OR TG_OP = 'UPDATE' AND (OLD.subject_uid, OLD.iid) <> (NEW.subject_uid, NEW.iid) THEN
        PERFORM record_item('pipeline', OLD.subject_uid, OLD.iid, OLD.id, OLD.status, TRUE);
    END IF;
    IF TG_OP <> 'DELETE' THEN
        PERFORM record_item('pipeline', NEW.subject_uid, NEW.iid, NEW.id, NEW.status, FALSE);
    END IF;
    RETURN NULL;
END $$;
CREATE FUNCTION job_is_written() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' OR TG_OP = 'UPDATE' AND OLD.subject_uid <> NEW.subject_uid THEN
        PERFORM record_item('job', OLD.subject_uid, OLD.id, OLD.id, OLD.status, TRUE);
    END IF;
    IF TG_OP <> 'DELETE' THEN
        PERFORM record_item('job', NEW.subject_uid, NEW.id, NEW.id, NEW.status, FALSE);
    END IF;
    RETURN NULL;
END $$;
-- The other columns are not shown: each part of a log writes the row of its job.
CREATE CONSTRAINT TRIGGER pipeline_is_written AFTER INSERT OR DELETE ON pipelines
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION pipeline_is_written();
CREATE CONSTRAINT TRIGGER pipeline_is_changed AFTER UPDATE ON pipelines
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (
        (OLD.subject_uid, OLD.iid, OLD.name, OLD.ref, OLD.sha, OLD.source, OLD.status, OLD.user_id, OLD.user_uid, OLD.updated_at, OLD.started_at, OLD.finished_at)
        IS DISTINCT FROM
        (NEW.subject_uid, NEW.iid, NEW.name, NEW.ref, NEW.sha, NEW.source, NEW.status, NEW.user_id, NEW.user_uid, NEW.updated_at, NEW.started_at, NEW.finished_at)
    ) EXECUTE FUNCTION pipeline_is_written();
CREATE CONSTRAINT TRIGGER job_is_written AFTER INSERT OR DELETE ON pipeline_jobs
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION job_is_written();
CREATE CONSTRAINT TRIGGER job_is_changed AFTER UPDATE ON pipeline_jobs
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (
        (OLD.subject_uid, OLD.status, OLD.failure_reason, OLD.allow_failure, OLD.retried, OLD.user_id, OLD.user_uid, OLD.started_at, OLD.finished_at)
        IS DISTINCT FROM
        (NEW.subject_uid, NEW.status, NEW.failure_reason, NEW.allow_failure, NEW.retried, NEW.user_id, NEW.user_uid, NEW.started_at, NEW.finished_at)
    ) EXECUTE FUNCTION job_is_written();
