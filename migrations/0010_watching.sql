-- The files of watched folders that were stored or refused.

CREATE TABLE watched_files (
    key BLOB NOT NULL PRIMARY KEY,
    folder TEXT NOT NULL,
    content BLOB,
    outcome TEXT NOT NULL,
    name TEXT NOT NULL,
    problem TEXT NOT NULL,
    seen_at TEXT NOT NULL
);

CREATE INDEX watched_files_content ON watched_files (folder, content);
CREATE INDEX watched_files_outcome ON watched_files (folder, outcome, seen_at);
