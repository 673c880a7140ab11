-- Which device a token owns, and duplicates by their bytes.
--
-- A token that was bound to a device before owns it. `unknown` is the name of no device.

ALTER TABLE tokens ADD COLUMN owns_device INTEGER NOT NULL DEFAULT 0;
ALTER TABLE tokens ADD COLUMN is_paired INTEGER NOT NULL DEFAULT 0;
UPDATE tokens SET device_id = '' WHERE device_id = 'unknown';
UPDATE tokens SET owns_device = 1 WHERE device_id <> '';
ALTER TABLE pairings ADD COLUMN device_id TEXT NOT NULL DEFAULT '';

-- The same id with other bytes is another photo, and the same bytes may have been stored twice before.
DROP INDEX photos_once_per_device;
CREATE INDEX photos_of_device ON photos (device_id, sha256);
