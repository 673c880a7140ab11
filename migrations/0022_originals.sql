-- Originals of older pictures may lie in a bucket: where each is, and which objects are to be deleted there.
-- No photo is rewritten, so this takes a moment.

-- 0: here. 1: on its way, here and perhaps there. 2: there, verified.
ALTER TABLE photos ADD COLUMN away INTEGER NOT NULL DEFAULT 0;

-- The size of the object; 0: here.
ALTER TABLE photos ADD COLUMN away_bytes INTEGER NOT NULL DEFAULT 0;
CREATE INDEX photos_here ON photos (created_at) WHERE away < 2;
CREATE TABLE forgotten_originals (path TEXT NOT NULL PRIMARY KEY) STRICT, WITHOUT ROWID;

-- Whoever deletes a photo, gives its original another name, or brings it back, leaves an object that is to
-- go.
CREATE TRIGGER forgotten_originals_delete AFTER DELETE ON photos WHEN OLD.away > 0 BEGIN
    INSERT OR IGNORE INTO forgotten_originals VALUES (OLD.original_path);
END;

CREATE TRIGGER forgotten_originals_back AFTER UPDATE OF away ON photos
WHEN OLD.away > 0 AND NEW.away = 0 BEGIN
    INSERT OR IGNORE INTO forgotten_originals VALUES (OLD.original_path);
END;

CREATE TRIGGER forgotten_originals_update AFTER UPDATE OF original_path ON photos
WHEN OLD.away > 0 AND NEW.original_path <> OLD.original_path BEGIN
    INSERT OR IGNORE INTO forgotten_originals VALUES (OLD.original_path);
END;
