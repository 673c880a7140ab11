-- Tokens, pairing codes, and which token uploaded a photo.

-- AUTOINCREMENT: the id of a revoked token is not given again, or its photos would belong to the next one.
CREATE TABLE tokens (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL,
    scope TEXT NOT NULL,
    digest BLOB NOT NULL UNIQUE,
    device_id TEXT NOT NULL DEFAULT '',
    created_at TEXT NOT NULL,
    last_used_at TEXT
);
CREATE TABLE pairings (
    id INTEGER NOT NULL PRIMARY KEY,
    digest BLOB NOT NULL UNIQUE,
    name TEXT NOT NULL DEFAULT '',
    scope TEXT NOT NULL,
    expires_at TEXT NOT NULL
);
ALTER TABLE photos ADD COLUMN token_id INTEGER;
