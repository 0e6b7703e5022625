-- The number of the last attempt of each queue. It outlives the tasks, so no attempt has the number of an earlier one.
CREATE TABLE job_numbers (
    queue  TEXT   NOT NULL PRIMARY KEY,
    number INTEGER NOT NULL
);
INSERT INTO job_numbers (queue, number) SELECT queue, MAX(number) FROM jobs GROUP BY queue;
