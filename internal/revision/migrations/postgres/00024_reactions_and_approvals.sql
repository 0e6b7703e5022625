-- Reactions and approvals are rows of their own. Lists filter by them, and remember how many items they have until one of these changes.
CREATE FUNCTION reaction_is_written() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    PERFORM record_item('merge_request', subject_uid, iid, id, state, FALSE) FROM merge_requests
        WHERE 'merge_request' IN (OLD.item_kind, NEW.item_kind) AND id IN (OLD.item_id, NEW.item_id);
    PERFORM record_item('issue', subject_uid, iid, id, state, FALSE) FROM issues
        WHERE 'issue' IN (OLD.item_kind, NEW.item_kind) AND id IN (OLD.item_id, NEW.item_id);
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER reaction_is_written AFTER INSERT OR DELETE ON reactions
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION reaction_is_written();
-- The rows name their merge request as those of labels do.
CREATE CONSTRAINT TRIGGER merge_request_approval_is_written AFTER INSERT OR DELETE ON merge_request_approvals
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION merge_request_label_is_written();
