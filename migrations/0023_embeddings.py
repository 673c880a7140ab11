"""The vectors that a configured provider makes of screenshots, beside those that are made here, and which
photos still need one.

Every photo that was analysed before is due; nothing is sent unless `SNAPLORE_EMBEDDINGS` names a model. A
change of a text, and of what is sensitive on it, makes its photo due again.
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

_DUE = """
    INSERT INTO provider_due (photo_id) VALUES (NEW.photo_id)
    ON CONFLICT (photo_id) DO UPDATE SET changes = changes + 1, failures = 0, leased_until = 0;
"""
_COLUMNS = ("status", "title", "summary", "visible_text", "sensitive", "cleared")
_CHANGED = " OR ".join(f"OLD.{name} IS NOT NEW.{name}" for name in _COLUMNS)
_ANALYSED = "EXISTS (SELECT 1 FROM analyses WHERE photo_id = NEW.photo_id AND status = 'done')"

TRIGGERS = (
    f"""
    CREATE TRIGGER meanings_due_at_provider_after_analysis
    AFTER UPDATE OF {", ".join(_COLUMNS)} ON analyses
    WHEN NEW.status = 'done' AND ({_CHANGED}) BEGIN {_DUE} END
    """,
    f"""
    CREATE TRIGGER meanings_due_at_provider_after_restore AFTER INSERT ON analyses
    WHEN NEW.status = 'done' BEGIN {_DUE} END
    """,
    f"""
    CREATE TRIGGER meanings_due_at_provider_after_own_words AFTER INSERT ON own_words
    WHEN {_ANALYSED} BEGIN {_DUE} END
    """,
    f"""
    CREATE TRIGGER meanings_due_at_provider_without_own_words AFTER DELETE ON own_words
    WHEN {_ANALYSED.replace("NEW", "OLD")} BEGIN {_DUE.replace("NEW", "OLD")} END
    """,
    f"""
    CREATE TRIGGER meanings_due_at_provider_after_reading AFTER INSERT ON readings
    WHEN {_ANALYSED} BEGIN {_DUE} END
    """,
)


def up(migrator, db):
    for statement in STATEMENTS + TRIGGERS:
        db.execute_sql(statement)
