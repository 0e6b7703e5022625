-- The commit that a published draft note is about.
ALTER TABLE notes ADD COLUMN commit_id TEXT NOT NULL DEFAULT '';
