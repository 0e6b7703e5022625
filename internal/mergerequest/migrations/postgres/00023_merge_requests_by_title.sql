-- The lists of a project in the order of search.TitleOf.
CREATE INDEX merge_requests_by_title ON merge_requests (subject_uid, (split_part(text, chr(10), 1) COLLATE "C"), id);
