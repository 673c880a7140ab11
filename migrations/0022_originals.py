"""Originals of older pictures may lie in a bucket: where each is, how many are there, and which objects are
to be deleted there. No photo is rewritten, so this takes a moment.
"""

STATEMENTS = (
    # 0: here. 1: on its way, here and perhaps there. 2: there, verified.
    "ALTER TABLE photos ADD COLUMN away INTEGER NOT NULL DEFAULT 0",
    # The size of the object; 0: here.
    "ALTER TABLE photos ADD COLUMN away_bytes INTEGER NOT NULL DEFAULT 0",
    "CREATE INDEX photos_here ON photos (created_at) WHERE away < 2",
    # One row.
    "CREATE TABLE away_tally (items INTEGER NOT NULL, bytes INTEGER NOT NULL) STRICT",
    "INSERT INTO away_tally VALUES (0, 0)",
    "CREATE TABLE forgotten_originals (path TEXT NOT NULL PRIMARY KEY) STRICT, WITHOUT ROWID",
    """
    CREATE TRIGGER away_tally_update AFTER UPDATE OF away_bytes ON photos
    WHEN NEW.away_bytes <> OLD.away_bytes BEGIN
        UPDATE away_tally SET items = items + (NEW.away_bytes > 0) - (OLD.away_bytes > 0),
            bytes = bytes + NEW.away_bytes - OLD.away_bytes;
    END
    """,
    """
    CREATE TRIGGER away_tally_delete AFTER DELETE ON photos WHEN OLD.away_bytes > 0 BEGIN
        UPDATE away_tally SET items = items - 1, bytes = bytes - OLD.away_bytes;
    END
    """,
    # Whoever deletes a photo, gives its original another name, or brings it back, leaves an object that is to
    # go.
    """
    CREATE TRIGGER forgotten_originals_delete AFTER DELETE ON photos WHEN OLD.away > 0 BEGIN
        INSERT OR IGNORE INTO forgotten_originals VALUES (OLD.original_path);
    END
    """,
    """
    CREATE TRIGGER forgotten_originals_back AFTER UPDATE OF away ON photos
    WHEN OLD.away > 0 AND NEW.away = 0 BEGIN
        INSERT OR IGNORE INTO forgotten_originals VALUES (OLD.original_path);
    END
    """,
    """
    CREATE TRIGGER forgotten_originals_update AFTER UPDATE OF original_path ON photos
    WHEN OLD.away > 0 AND NEW.original_path <> OLD.original_path BEGIN
        INSERT OR IGNORE INTO forgotten_originals VALUES (OLD.original_path);
    END
    """,
)


def up(migrator, db):
    for statement in STATEMENTS:
        db.execute_sql(statement)
