"""The vectors that a configured provider makes of screenshots, beside those that are made here, and which
photos still need one.

Every photo that was analysed before is due; nothing is sent unless `SNAPLORE_EMBEDDINGS` names a model. 0028
has the triggers by which a change makes its photo due again.
"""

STATEMENTS = (
    # `model` marks what made a row: only rows of the same model are compared.
    """
    CREATE TABLE provider_meanings (
        photo_id INTEGER PRIMARY KEY REFERENCES photos (id) ON DELETE CASCADE,
        vector BLOB NOT NULL,
        model TEXT NOT NULL
    ) STRICT
    """,
    """
    CREATE TABLE provider_signs (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        photo_id INTEGER NOT NULL UNIQUE REFERENCES photos (id) ON DELETE CASCADE,
        signs BLOB NOT NULL,
        model TEXT NOT NULL
    ) STRICT
    """,
    # `leased_until`, in seconds since 1970: no other worker sends the same text until then.
    """
    CREATE TABLE provider_due (
        photo_id INTEGER PRIMARY KEY REFERENCES photos (id) ON DELETE CASCADE,
        changes INTEGER NOT NULL DEFAULT 1,
        failures INTEGER NOT NULL DEFAULT 0,
        leased_until INTEGER NOT NULL DEFAULT 0
    ) STRICT
    """,
    "CREATE INDEX provider_due_failures ON provider_due (failures, photo_id DESC)",
    "INSERT INTO provider_due (photo_id) SELECT photo_id FROM analyses WHERE status = 'done'",
)


def up(migrator, db):
    for statement in STATEMENTS:
        db.execute_sql(statement)
