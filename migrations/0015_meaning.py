"""What each screenshot means, as a vector, and which ones still need one.

A change of an analysis or a reading makes its photo due. Every photo that was analysed before is due at once;
the service works them off in the background, the newest first.
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

_DUE = """
    INSERT INTO meanings_due (photo_id) VALUES (NEW.photo_id)
    ON CONFLICT (photo_id) DO UPDATE SET changes = changes + 1, failures = 0;
"""
_CHANGED = " OR ".join(
    f"OLD.{name} IS NOT NEW.{name}" for name in ("status", "title", "summary", "visible_text")
)
_ANALYSED = "EXISTS (SELECT 1 FROM analyses WHERE photo_id = NEW.photo_id AND status = 'done')"

TRIGGERS = (
    f"""
    CREATE TRIGGER meanings_due_after_analysis
    AFTER UPDATE OF status, title, summary, visible_text ON analyses
    WHEN NEW.status = 'done' AND ({_CHANGED}) BEGIN {_DUE} END
    """,
    f"""
    CREATE TRIGGER meanings_due_after_restore AFTER INSERT ON analyses
    WHEN NEW.status = 'done' BEGIN {_DUE} END
    """,
    f"""
    CREATE TRIGGER meanings_due_after_own_words AFTER INSERT ON own_words
    WHEN {_ANALYSED} BEGIN {_DUE} END
    """,
    f"""
    CREATE TRIGGER meanings_due_without_own_words AFTER DELETE ON own_words
    WHEN {_ANALYSED.replace("NEW", "OLD")} BEGIN {_DUE.replace("NEW", "OLD")} END
    """,
    f"""
    CREATE TRIGGER meanings_due_after_reading AFTER INSERT ON readings
    WHEN {_ANALYSED} BEGIN {_DUE} END
    """,
)


def up(migrator, db):
    for statement in STATEMENTS + TRIGGERS:
        db.execute_sql(statement)
