-- What was read on each photo, with the places of the lines, and a title for each analysis.
--
-- Every photo that was stored before is due to be read: the index `analyses_unread` has those that are not
-- read yet. SQLite reads the whole table of analyses three times for this: some seconds for 100,000 photos.

ALTER TABLE analyses ADD COLUMN title TEXT NOT NULL DEFAULT '';
ALTER TABLE analyses ADD COLUMN reads_left INTEGER NOT NULL DEFAULT 3;
CREATE INDEX analyses_unread ON analyses (photo_id) WHERE reads_left > 0;

CREATE TABLE readings (
    photo_id INTEGER PRIMARY KEY REFERENCES photos (id) ON DELETE CASCADE,
    width INTEGER NOT NULL,
    height INTEGER NOT NULL,
    lines BLOB NOT NULL,
    reader TEXT NOT NULL
) STRICT;
