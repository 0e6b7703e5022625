-- The lists of a project in the order of search.TitleOf.
CREATE INDEX merge_requests_by_title ON merge_requests (subject_uid, substr(text, 1, instr(text, char(10)) - 1), id);
