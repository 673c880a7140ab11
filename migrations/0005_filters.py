"""The disk space of stored files, and each picture's time in its analysis.

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
