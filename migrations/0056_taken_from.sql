-- What says when a photo was taken; null for those that are stored. A correction of the time takes the copies
-- of it along, which indexes need.

ALTER TABLE photos ADD COLUMN taken_from TEXT;

CREATE TRIGGER photos_taken AFTER UPDATE OF original_timestamp ON photos
WHEN NEW.original_timestamp <> OLD.original_timestamp BEGIN
    UPDATE analyses SET taken_at = NEW.original_timestamp WHERE photo_id = NEW.id;
    UPDATE photo_tags SET taken_at = NEW.original_timestamp WHERE photo_id = NEW.id;
END;
