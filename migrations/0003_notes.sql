-- Notes: what the reasoner has read, and when a note was pinned.

ALTER TABLE analyses ADD COLUMN noted INTEGER NOT NULL DEFAULT 0;

CREATE INDEX analyses_to_note ON analyses
    (photo_id) WHERE status = 'done' AND noted = 0 AND intent <> 'ignore';

ALTER TABLE conversations ADD COLUMN noted_message_id INTEGER NOT NULL DEFAULT 0;
ALTER TABLE dynamics ADD COLUMN pinned_at TEXT;
