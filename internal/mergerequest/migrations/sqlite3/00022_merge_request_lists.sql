-- The lists of a project by the columns that select few merge requests, or about as many as others: in the order of the list.
DROP INDEX merge_requests_into_target;
CREATE INDEX merge_requests_into_target ON merge_requests (subject_uid, target_branch, created_at, id);
CREATE INDEX merge_requests_from_branch ON merge_requests (subject_uid, source_branch, created_at, id);
CREATE INDEX merge_requests_by_author ON merge_requests (subject_uid, author_uid, created_at, id);
CREATE INDEX merge_requests_by_milestone ON merge_requests (subject_uid, milestone_id, created_at, id);
