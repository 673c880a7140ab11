-- Records: what screenshots say, as types with fields.
--
-- An analysis keeps the records that it found, and a person's own words keep a correction of them; null is
-- "not looked for yet" in the first, and "no correction" in the second. The table has what is shown of both
-- in columns by which it is listed, summed and searched. The records of stored photos are found in the
-- background, from the text that was read on them.

ALTER TABLE analyses ADD COLUMN records TEXT;
ALTER TABLE own_words ADD COLUMN records TEXT;

CREATE TABLE records (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    photo_id INTEGER NOT NULL REFERENCES photos (id) ON DELETE CASCADE,
    place INTEGER NOT NULL,
    type TEXT NOT NULL,
    day TEXT NOT NULL,
    amount TEXT,
    currency TEXT,
    party TEXT NOT NULL,
    words TEXT NOT NULL,
    plain TEXT,
    UNIQUE (photo_id, place)
) STRICT;

CREATE INDEX records_day ON records (day, id, type, currency, amount);
CREATE INDEX records_type_day ON records (type, day, id, currency, amount);
DROP VIEW IF EXISTS shown;

-- What is shown of a photo: a person's own words where there are some, else those of the analysis; and
-- whether any of it is withheld from those who must not learn what is sensitive.
CREATE VIEW shown AS
SELECT
    a.photo_id, a.device_id, a.taken_at, a.status, a.app_name, a.content_category, a.intent, a.entities,
    a.visible_text, a.kept, a.sensitive, a.cleared,
    EXISTS (SELECT 1 FROM redactions WHERE photo_id = a.photo_id)
        OR (a.judged = 0 AND own.photo_id IS NOT NULL) AS withheld,
    coalesce(nullif(own.title, ''), a.title) AS title,
    coalesce(nullif(own.summary, ''), a.summary) AS summary,
    coalesce(nullif(own.text, ''), a.visible_text) AS text,
    coalesce(own.records, a.records, '[]') AS records,
    coalesce(own.note, '') AS note,
    coalesce(own.title, '') AS own_title,
    coalesce(own.summary, '') AS own_summary,
    coalesce(own.text, '') AS own_text,
    coalesce(own.records, '') AS own_records,
    (SELECT json_group_array(tag) FROM
        (SELECT tag FROM photo_tags WHERE photo_id = a.photo_id ORDER BY folded)) AS tags
FROM analyses AS a LEFT JOIN own_words AS own ON own.photo_id = a.photo_id;
