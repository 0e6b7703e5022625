-- The times that are estimated for issues and spent on them, in seconds.
ALTER TABLE issues ADD COLUMN time_estimate INTEGER NOT NULL DEFAULT 0;
ALTER TABLE issues ADD COLUMN time_spent INTEGER NOT NULL DEFAULT 0;
-- The users who have subscribed to an issue, or unsubscribed from one in which they take part.
CREATE TABLE issue_subscriptions (
    issue_id   INTEGER NOT NULL REFERENCES issues (id) ON DELETE CASCADE,
    user_id    INTEGER NOT NULL,
    user_uid   TEXT NOT NULL,
    subscribed BOOLEAN NOT NULL,
    PRIMARY KEY (issue_id, user_uid)
);
