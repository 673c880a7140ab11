"""The names of files whose rows were deleted or got other files: they are to go, and any other file without a
row is suspect. No row is rewritten, so this takes a moment.
"""

OWNERS = {"photos": ("original_path", "thumbnail_path"), "messages": ("attachment_path",)}


def statements():
    yield "CREATE TABLE discarded (path TEXT NOT NULL PRIMARY KEY) STRICT, WITHOUT ROWID"
    for table, columns in OWNERS.items():
        for column in columns:
            insert = f"INSERT OR IGNORE INTO discarded VALUES (OLD.{column})"
            yield (
                f"CREATE TRIGGER discarded_{column}_delete AFTER DELETE ON {table} "
                f"WHEN OLD.{column} IS NOT NULL BEGIN {insert}; END"
            )
            yield (
                f"CREATE TRIGGER discarded_{column}_update AFTER UPDATE OF {column} ON {table} "
                f"WHEN OLD.{column} IS NOT NULL AND NEW.{column} IS NOT OLD.{column} BEGIN {insert}; END"
            )


def up(migrator, db):
    for statement in statements():
        db.execute_sql(statement)
