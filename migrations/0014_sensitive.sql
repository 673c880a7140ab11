-- What is sensitive on photos: the kinds that were recognised, whether the person says that it is not, and
-- whether the rules have judged the text.
--
-- Photos stored before are judged in the background, 50 at a time, from the text that was read on them. The
-- indexes have the sensitive photos only, in the orders of the lists, with the columns of the other filters,
-- and the photos that are not judged. SQLite reads the table of analyses once for each: some seconds for
-- 100,000 photos.

-- The kinds in their order, with a blank between them.
ALTER TABLE analyses ADD COLUMN sensitive TEXT NOT NULL DEFAULT '';
ALTER TABLE analyses ADD COLUMN cleared INTEGER NOT NULL DEFAULT 0;
ALTER TABLE analyses ADD COLUMN judged INTEGER NOT NULL DEFAULT 0;

CREATE INDEX analyses_sensitive ON analyses
    (photo_id, device_id, status, intent, content_category, app_name, sensitive) WHERE sensitive <> '';

CREATE INDEX analyses_sensitive_taken ON analyses
    (taken_at, photo_id, device_id, status, intent, content_category, app_name, sensitive)
    WHERE sensitive <> '';

CREATE INDEX analyses_unjudged ON analyses (photo_id) WHERE judged = 0;
