-- The texts of photos that may be the names of their apps: photos that have the same one make it sure. The
-- background judges the photos of before anew, which fills it.

CREATE TABLE wordmarks (
    photo_id INTEGER NOT NULL REFERENCES photos(id) ON DELETE CASCADE,
    folded TEXT NOT NULL,
    name TEXT NOT NULL,
    chance REAL NOT NULL,
    PRIMARY KEY (photo_id, folded)
) WITHOUT ROWID;

CREATE INDEX wordmarks_folded ON wordmarks (folded, chance, photo_id);
