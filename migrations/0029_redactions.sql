-- What may be searched of sensitive screenshots for those who must not learn what is sensitive on them.
--
-- `redactions` has their texts without that, and `redacted_index` is the index of these. `hidden` counts the
-- photos that have a term only in what was cut out. Every stored photo is judged again, in the background,
-- from the text that was read on it; until then, its words find it for its owner only. SQLite writes each row
-- of the analyses once: some seconds for 100,000 photos.

CREATE TABLE redactions (
    photo_id INTEGER PRIMARY KEY REFERENCES photos (id) ON DELETE CASCADE,
    texts TEXT NOT NULL
) STRICT;

CREATE VIRTUAL TABLE redacted_index USING fts5(
    tokens, content='', contentless_delete=1, detail=full,
    tokenize="unicode61 remove_diacritics 0 categories 'L* M* N* P* S* C*'"
);

ALTER TABLE vocabulary ADD COLUMN hidden INTEGER NOT NULL DEFAULT 0;
UPDATE analyses SET judged = 0;
