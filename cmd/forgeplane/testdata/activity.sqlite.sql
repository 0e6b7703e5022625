-- What an earlier version has left, as ".dump" of sqlite3 shows it.
CREATE TABLE goose_db_version (
		id INTEGER PRIMARY KEY AUTOINCREMENT,
		version_id INTEGER NOT NULL,
		is_applied INTEGER NOT NULL,
		tstamp TIMESTAMP DEFAULT (datetime('now'))
	);
INSERT INTO goose_db_version VALUES(1,0,1,'2026-11-23 02:50:41');
INSERT INTO goose_db_version VALUES(2,1,1,'2026-11-23 02:50:41');
INSERT INTO goose_db_version VALUES(3,2,1,'2026-11-23 02:50:41');
INSERT INTO goose_db_version VALUES(4,10,1,'2026-11-23 02:50:41');
INSERT INTO goose_db_version VALUES(5,11,1,'2026-11-23 02:50:41');
CREATE TABLE written (
    server     TEXT      NOT NULL,
    kind       TEXT      NOT NULL,
    revision   INTEGER   NOT NULL,
    written_at TIMESTAMP NOT NULL,
    PRIMARY KEY (server, kind)
) WITHOUT ROWID;
INSERT INTO written VALUES('a','Project',3,'2026-11-23 02:50:41.841893+00:00');
CREATE TABLE IF NOT EXISTS "subscriptions" (
    user_id      INTEGER   NOT NULL,
    user_uid     TEXT      NOT NULL DEFAULT '',
    subject_kind TEXT      NOT NULL,
    subject_id   INTEGER   NOT NULL,
    subject_uid  TEXT      NOT NULL DEFAULT '',
    created_at   TIMESTAMP NOT NULL,
    PRIMARY KEY (user_uid, subject_kind, subject_uid, user_id, subject_id)
) WITHOUT ROWID;
INSERT INTO subscriptions VALUES(7,'uid-7','label',1,'uid-1','2026-11-23 02:50:41.841535+00:00');
CREATE TABLE IF NOT EXISTS "uses" (
    subject_kind TEXT      NOT NULL,
    subject_id   INTEGER   NOT NULL,
    subject_uid  TEXT      NOT NULL DEFAULT '',
    last_used    TIMESTAMP NOT NULL,
    PRIMARY KEY (subject_kind, subject_id, subject_uid)
) WITHOUT ROWID;
INSERT INTO uses VALUES('trigger_token',1,'uid-1','2026-05-04 12:00:00+00:00');
CREATE INDEX subscriptions_of_subject ON subscriptions (subject_kind, subject_id, subject_uid);
CREATE INDEX uses_of_uid ON uses (subject_kind, subject_uid);
