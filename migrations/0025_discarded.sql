-- The names of files whose rows were deleted or got other files: they are to go, and any other file without a
-- row is suspect. No row is rewritten, so this takes a moment.

CREATE TABLE discarded (path TEXT NOT NULL PRIMARY KEY) STRICT, WITHOUT ROWID;

CREATE TRIGGER discarded_original_path_delete AFTER DELETE ON photos
WHEN OLD.original_path IS NOT NULL BEGIN
    INSERT OR IGNORE INTO discarded VALUES (OLD.original_path);
END;
CREATE TRIGGER discarded_original_path_update AFTER UPDATE OF original_path ON photos
WHEN OLD.original_path IS NOT NULL AND NEW.original_path IS NOT OLD.original_path BEGIN
    INSERT OR IGNORE INTO discarded VALUES (OLD.original_path);
END;

CREATE TRIGGER discarded_thumbnail_path_delete AFTER DELETE ON photos
WHEN OLD.thumbnail_path IS NOT NULL BEGIN
    INSERT OR IGNORE INTO discarded VALUES (OLD.thumbnail_path);
END;
CREATE TRIGGER discarded_thumbnail_path_update AFTER UPDATE OF thumbnail_path ON photos
WHEN OLD.thumbnail_path IS NOT NULL AND NEW.thumbnail_path IS NOT OLD.thumbnail_path BEGIN
    INSERT OR IGNORE INTO discarded VALUES (OLD.thumbnail_path);
END;

CREATE TRIGGER discarded_attachment_path_delete AFTER DELETE ON messages
WHEN OLD.attachment_path IS NOT NULL BEGIN
    INSERT OR IGNORE INTO discarded VALUES (OLD.attachment_path);
END;
CREATE TRIGGER discarded_attachment_path_update AFTER UPDATE OF attachment_path ON messages
WHEN OLD.attachment_path IS NOT NULL AND NEW.attachment_path IS NOT OLD.attachment_path BEGIN
    INSERT OR IGNORE INTO discarded VALUES (OLD.attachment_path);
END;
