-- The agenda: what happens on a day that a screenshot names.
--
-- Rows of the same event on several screenshots have the same `event_id`, the id of the first of them, which
-- stays when that row goes. All of them have the same kind and start, and are dismissed and announced
-- together. The rows of a photo in the trash stay, and triggers keep `trashed`, so that lists need not look
-- at analyses. For photos that were stored before, the rows are made in the background, from the lines that
-- were read on them.

-- AUTOINCREMENT: the id of a row that is gone is not given to another event. `starts_at` and `ends_at` are
-- local times without a zone, like 2026-11-22 or 2026-11-22T14:30. `last_at` is the end for comparisons, and
-- of a whole day it is like 2026-11-22T24.
CREATE TABLE agenda_items (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    event_id INTEGER NOT NULL,
    photo_id INTEGER NOT NULL REFERENCES photos (id) ON DELETE CASCADE,
    kind TEXT NOT NULL
        CHECK (kind IN ('event', 'deadline', 'departure', 'pickup', 'appointment', 'expiry')),
    title TEXT NOT NULL,
    starts_at TEXT NOT NULL,
    ends_at TEXT,
    last_at TEXT NOT NULL,
    all_day INTEGER NOT NULL,
    quote TEXT NOT NULL,
    line INTEGER NOT NULL,
    dismissed_at TEXT,
    evening_at TEXT,
    morning_at TEXT,
    created_at TEXT NOT NULL,
    changed_at TEXT NOT NULL,
    revision INTEGER NOT NULL,
    trashed INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE INDEX agenda_items_photo ON agenda_items (photo_id, starts_at, event_id);
CREATE INDEX agenda_items_event ON agenda_items (event_id);

CREATE INDEX agenda_items_start ON agenda_items
    (starts_at, event_id, last_at, dismissed_at, trashed, photo_id);

-- What may have begun before a day and last: the rest ends on the day on which it starts.
CREATE INDEX agenda_items_lasting ON agenda_items (last_at, starts_at) WHERE ends_at IS NOT NULL;

-- A photo in the trash has no row in `analyses`.
CREATE TRIGGER agenda_items_new AFTER INSERT ON agenda_items
WHEN NOT EXISTS (SELECT 1 FROM analyses WHERE photo_id = NEW.photo_id) BEGIN
    UPDATE agenda_items SET trashed = 1 WHERE id = NEW.id;
END;

CREATE TRIGGER agenda_items_trashed AFTER DELETE ON analyses BEGIN
    UPDATE agenda_items SET trashed = 1 WHERE photo_id = OLD.photo_id;
END;

CREATE TRIGGER agenda_items_restored AFTER INSERT ON analyses BEGIN
    UPDATE agenda_items SET trashed = 0 WHERE photo_id = NEW.photo_id AND trashed = 1;
END;
