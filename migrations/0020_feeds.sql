-- Feeds, what calendars have been told of the agenda, and when a note was last changed.

-- AUTOINCREMENT: an id of a revoked feed is not given again. A token's feeds end with it.
CREATE TABLE feeds (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL CHECK (kind IN ('agenda', 'notes', 'search')),
    "query" TEXT NOT NULL,
    digest BLOB NOT NULL UNIQUE,
    token_id INTEGER REFERENCES tokens (id) ON DELETE CASCADE,
    created_at TEXT NOT NULL,
    last_used_at TEXT,
    fingerprint BLOB NOT NULL,
    changed_at TEXT NOT NULL
) STRICT;

CREATE INDEX feeds_token ON feeds (token_id);

-- Without the texts: a calendar keeps its own copy, and an event that has ended needs none.
CREATE TABLE calendar_entries (
    item TEXT NOT NULL PRIMARY KEY,
    fingerprint BLOB NOT NULL,
    "sequence" INTEGER NOT NULL,
    starts_at TEXT NOT NULL,
    all_day INTEGER NOT NULL,
    changed_at TEXT NOT NULL,
    cancelled_at TEXT
) STRICT;

CREATE INDEX calendar_entries_cancelled ON calendar_entries (cancelled_at);
ALTER TABLE dynamics ADD COLUMN changed_at TEXT NOT NULL DEFAULT '';
UPDATE dynamics SET changed_at = created_at;
CREATE INDEX dynamics_changed ON dynamics (changed_at);
