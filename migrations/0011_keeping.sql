-- What a person decides about photos: which are kept, their tags, own words about them, and the trash.
--
-- A photo in the trash has no row in `analyses`: the row waits in `trash`, as JSON, and so do its tags. So no
-- list and no count can include it, and nothing analyses it. A trigger refuses an analysis of such a photo.
--
-- The indexes `analyses_kept` and `analyses_kept_taken` have kept photos only, in the orders of the lists,
-- with the columns of the other filters. SQLite reads the table of analyses once for each: some seconds for
-- 100,000 photos.

ALTER TABLE analyses ADD COLUMN kept INTEGER NOT NULL DEFAULT 0;

CREATE INDEX analyses_kept ON analyses
    (photo_id, device_id, status, intent, content_category, app_name, kept) WHERE kept = 1;

CREATE INDEX analyses_kept_taken ON analyses
    (taken_at, photo_id, device_id, status, intent, content_category, app_name, kept) WHERE kept = 1;

-- Only of photos that are not in the trash. `folded` is the tag as it is compared; `taken_at` is the photo's,
-- so that one index has a tag's photos in that order. A tag's page is in one of two orders.
CREATE TABLE photo_tags (
    photo_id INTEGER NOT NULL REFERENCES photos (id) ON DELETE CASCADE,
    folded TEXT NOT NULL,
    tag TEXT NOT NULL,
    taken_at TEXT NOT NULL,
    PRIMARY KEY (photo_id, folded)
) STRICT, WITHOUT ROWID;

CREATE INDEX photo_tags_folded ON photo_tags (folded, photo_id);
CREATE INDEX photo_tags_taken ON photo_tags (folded, taken_at, photo_id);

-- A null is not the person's own. A row has at least one text.
CREATE TABLE own_words (
    photo_id INTEGER PRIMARY KEY REFERENCES photos (id) ON DELETE CASCADE,
    title TEXT,
    summary TEXT,
    note TEXT,
    text TEXT
) STRICT;

CREATE TABLE trash (
    photo_id INTEGER PRIMARY KEY REFERENCES photos (id) ON DELETE CASCADE,
    deleted_at TEXT NOT NULL,
    analysis TEXT NOT NULL,
    tags TEXT NOT NULL
) STRICT;

CREATE INDEX trash_deleted_at ON trash (deleted_at, photo_id);

CREATE TRIGGER analyses_not_in_trash BEFORE INSERT ON analyses
WHEN EXISTS (SELECT 1 FROM trash WHERE photo_id = NEW.photo_id) BEGIN
    SELECT RAISE(ABORT, 'a photo in the trash has no analysis');
END;
