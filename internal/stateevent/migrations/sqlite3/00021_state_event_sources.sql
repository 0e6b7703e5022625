-- The merge request whose merge has closed the issue, or 0.
ALTER TABLE state_events ADD COLUMN merge_request_id INTEGER NOT NULL DEFAULT 0;
