"""A count of the disk space of stored files that triggers maintain, and each picture's time in its analysis.

The time is copied, as the device is, so that one index serves a list's order and its filters.
"""

from pathlib import Path

COLUMNS = (
    "ALTER TABLE analyses ADD COLUMN taken_at TEXT NOT NULL DEFAULT ''",
    "UPDATE analyses SET taken_at = (SELECT original_timestamp FROM photos WHERE photos.id = photo_id)",
    "ALTER TABLE photos ADD COLUMN disk_bytes INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE messages ADD COLUMN attachment_bytes INTEGER NOT NULL DEFAULT 0",
)

# The sizes of existing files are measured once.
MEASURED = (
    ("SELECT original_path, thumbnail_path, id FROM photos", "UPDATE photos SET disk_bytes = ? WHERE id = ?"),
    (
        "SELECT attachment_path, id FROM messages WHERE attachment_path IS NOT NULL",
        "UPDATE messages SET attachment_bytes = ? WHERE id = ?",
    ),
)

HOLDINGS = (
    """
    CREATE TABLE holdings (
        kind TEXT NOT NULL CHECK (kind IN ('photo', 'attachment')),
        key_generation INTEGER NOT NULL,
        items INTEGER NOT NULL,
        bytes INTEGER NOT NULL,
        PRIMARY KEY (kind, key_generation)
    ) STRICT, WITHOUT ROWID
    """,
    "INSERT INTO holdings SELECT 'photo', key_generation, COUNT(*), SUM(disk_bytes) FROM photos "
    "GROUP BY key_generation",
    """
    INSERT INTO holdings
    SELECT 'attachment', attachment_generation, COUNT(*), SUM(attachment_bytes) FROM messages
    WHERE attachment_path IS NOT NULL GROUP BY attachment_generation
    """,
    """
    CREATE TRIGGER holdings_photos_insert AFTER INSERT ON photos BEGIN
        INSERT INTO holdings VALUES ('photo', NEW.key_generation, 1, NEW.disk_bytes)
        ON CONFLICT DO UPDATE SET items = items + 1, bytes = bytes + excluded.bytes;
    END
    """,
    """
    CREATE TRIGGER holdings_photos_delete AFTER DELETE ON photos BEGIN
        UPDATE holdings SET items = items - 1, bytes = bytes - OLD.disk_bytes
            WHERE kind = 'photo' AND key_generation = OLD.key_generation;
        DELETE FROM holdings WHERE kind = 'photo' AND key_generation = OLD.key_generation AND items = 0;
    END
    """,
    # A file was sealed again under a newer key.
    """
    CREATE TRIGGER holdings_photos_update AFTER UPDATE OF key_generation, disk_bytes ON photos BEGIN
        INSERT INTO holdings VALUES ('photo', NEW.key_generation, 1, NEW.disk_bytes)
        ON CONFLICT DO UPDATE SET items = items + 1, bytes = bytes + excluded.bytes;
        UPDATE holdings SET items = items - 1, bytes = bytes - OLD.disk_bytes
            WHERE kind = 'photo' AND key_generation = OLD.key_generation;
        DELETE FROM holdings WHERE kind = 'photo' AND key_generation = OLD.key_generation AND items = 0;
    END
    """,
    """
    CREATE TRIGGER holdings_messages_insert AFTER INSERT ON messages
    WHEN NEW.attachment_path IS NOT NULL BEGIN
        INSERT INTO holdings VALUES ('attachment', NEW.attachment_generation, 1, NEW.attachment_bytes)
        ON CONFLICT DO UPDATE SET items = items + 1, bytes = bytes + excluded.bytes;
    END
    """,
    """
    CREATE TRIGGER holdings_messages_delete AFTER DELETE ON messages
    WHEN OLD.attachment_path IS NOT NULL BEGIN
        UPDATE holdings SET items = items - 1, bytes = bytes - OLD.attachment_bytes
            WHERE kind = 'attachment' AND key_generation = OLD.attachment_generation;
        DELETE FROM holdings
            WHERE kind = 'attachment' AND key_generation = OLD.attachment_generation AND items = 0;
    END
    """,
    """
    CREATE TRIGGER holdings_messages_update
    AFTER UPDATE OF attachment_path, attachment_generation, attachment_bytes ON messages
    WHEN OLD.attachment_path IS NOT NULL BEGIN
        INSERT INTO holdings
            SELECT 'attachment', NEW.attachment_generation, 1, NEW.attachment_bytes
            WHERE NEW.attachment_path IS NOT NULL
        ON CONFLICT DO UPDATE SET items = items + 1, bytes = bytes + excluded.bytes;
        UPDATE holdings SET items = items - 1, bytes = bytes - OLD.attachment_bytes
            WHERE kind = 'attachment' AND key_generation = OLD.attachment_generation;
        DELETE FROM holdings
            WHERE kind = 'attachment' AND key_generation = OLD.attachment_generation AND items = 0;
    END
    """,
)


def up(migrator, db):
    for statement in COLUMNS:
        db.execute_sql(statement)
    # The database is in a subfolder of the data folder; during a restore it is beside the pictures.
    beside = Path(db.database).parent
    folder = beside if (beside / "photos").is_dir() else beside.parent
    for select, update in MEASURED:
        for *paths, row_id in db.execute_sql(select).fetchall():
            size = sum(path.stat().st_size for path in map(folder.joinpath, paths) if path.is_file())
            db.execute_sql(update, (size, row_id))
    for statement in HOLDINGS:
        db.execute_sql(statement)
