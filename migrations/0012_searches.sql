-- What a search can filter by, beside the columns of an analysis: whether a person has opened a photo, and
-- what its text holds. And the searches that a person has saved.
--
-- Photos that were stored before count as opened: otherwise thousands of them would be unread. What they hold
-- is told by the entities of their analyses; SQLite reads the table of analyses once, some seconds for
-- 100,000 photos.

-- Not columns of `analyses`: its rows are long, and to change one writes all of it.
CREATE TABLE marks (
    photo_id INTEGER PRIMARY KEY REFERENCES photos (id) ON DELETE CASCADE,
    opened INTEGER NOT NULL,
    holds INTEGER NOT NULL
) STRICT;

-- The bits are those of `rules.holdings`. A quote inside of a value is escaped, so no value looks so.
INSERT INTO marks SELECT photo_id, 1,
    (instr(entities, '"type":"code"') > 0)
    + 2 * (instr(entities, '"type":"link"') > 0)
    + 4 * (instr(entities, '"type":"date"') > 0)
FROM analyses;

INSERT INTO marks SELECT photo_id, 1, 0 FROM trash;

-- AUTOINCREMENT: the id of a deleted search is not given again.
CREATE TABLE saved_searches (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL,
    folded TEXT NOT NULL UNIQUE,
    query TEXT NOT NULL,
    created_at TEXT NOT NULL,
    opened_at TEXT NOT NULL
) STRICT;
