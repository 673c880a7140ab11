-- Links to single pictures, for people who have no key.

-- AUTOINCREMENT: the id of a link that has ended is not given again. A link ends with the token that made it,
-- and with the photo.
CREATE TABLE shares (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    photo_id INTEGER NOT NULL REFERENCES photos (id) ON DELETE CASCADE,
    token_id INTEGER REFERENCES tokens (id) ON DELETE CASCADE,
    digest BLOB NOT NULL UNIQUE,
    boxes TEXT NOT NULL,
    created_at TEXT NOT NULL,
    expires_at TEXT NOT NULL,
    max_views INTEGER,
    views INTEGER NOT NULL,
    last_viewed_at TEXT
) STRICT;

CREATE INDEX shares_photo ON shares (photo_id);
CREATE INDEX shares_token ON shares (token_id);
CREATE INDEX shares_expires ON shares (expires_at);
