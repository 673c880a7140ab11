"""What each screenshot means, as a vector, and which ones still need one.

Every photo that was analysed before is due at once; the service works them off in the background, the newest
first. 0028 has the triggers by which a change of an analysis or a reading makes its photo due.
"""

STATEMENTS = (
    """
    CREATE TABLE meanings (
        photo_id INTEGER PRIMARY KEY REFERENCES photos (id) ON DELETE CASCADE,
        vector BLOB NOT NULL,
        model TEXT NOT NULL
    ) STRICT
    """,
    # Beside the vectors, which are eight times as large: all signs are read when a search begins. A replaced
    # row gets a new id, so that what has changed since an id can be read. AUTOINCREMENT: no id comes back.
    """
    CREATE TABLE meaning_signs (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        photo_id INTEGER NOT NULL UNIQUE REFERENCES photos (id) ON DELETE CASCADE,
        signs BLOB NOT NULL
    ) STRICT
    """,
    # `changes` counts, so that a change during the work on a photo is not lost.
    """
    CREATE TABLE meanings_due (
        photo_id INTEGER PRIMARY KEY REFERENCES photos (id) ON DELETE CASCADE,
        changes INTEGER NOT NULL DEFAULT 1,
        failures INTEGER NOT NULL DEFAULT 0
    ) STRICT
    """,
    "CREATE INDEX meanings_due_failures ON meanings_due (failures, photo_id DESC)",
    "INSERT INTO meanings_due (photo_id) SELECT photo_id FROM analyses WHERE status = 'done'",
)


def up(migrator, db):
    for statement in STATEMENTS:
        db.execute_sql(statement)
