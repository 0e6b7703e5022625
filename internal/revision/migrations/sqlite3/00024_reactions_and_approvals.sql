-- Reactions and approvals are rows of their own. Lists filter by them, and remember how many items they have until one of these changes.
CREATE TRIGGER reaction_is_added AFTER INSERT ON reactions BEGIN
    INSERT INTO item_writes SELECT 'merge_request', subject_uid, iid, id, state, FALSE FROM merge_requests WHERE new.item_kind = 'merge_request' AND id = new.item_id;
    INSERT INTO item_writes SELECT 'issue', subject_uid, iid, id, state, FALSE FROM issues WHERE new.item_kind = 'issue' AND id = new.item_id;
END;
CREATE TRIGGER reaction_is_removed AFTER DELETE ON reactions BEGIN
    INSERT INTO item_writes SELECT 'merge_request', subject_uid, iid, id, state, FALSE FROM merge_requests WHERE old.item_kind = 'merge_request' AND id = old.item_id;
    INSERT INTO item_writes SELECT 'issue', subject_uid, iid, id, state, FALSE FROM issues WHERE old.item_kind = 'issue' AND id = old.item_id;
END;
CREATE TRIGGER merge_request_approval_is_added AFTER INSERT ON merge_request_approvals BEGIN
    INSERT INTO item_writes SELECT 'merge_request', subject_uid, iid, id, state, FALSE FROM merge_requests WHERE id = new.merge_request_id;
END;
CREATE TRIGGER merge_request_approval_is_removed AFTER DELETE ON merge_request_approvals BEGIN
    INSERT INTO item_writes SELECT 'merge_request', subject_uid, iid, id, state, FALSE FROM merge_requests WHERE id = old.merge_request_id;
END;
