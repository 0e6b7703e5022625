-- The run that began the last cleanup of a repository, and what it has recorded for a process that takes over.
ALTER TABLE container_repositories ADD COLUMN cleanup_run TEXT NOT NULL DEFAULT '';
ALTER TABLE container_repositories ADD COLUMN cleanup_progress TEXT NOT NULL DEFAULT '';
