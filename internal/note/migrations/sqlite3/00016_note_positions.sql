-- The position of a note in the diff of a merge request, as JSON.
ALTER TABLE notes ADD COLUMN position TEXT;
