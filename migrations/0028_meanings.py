"""One set of tables for the vectors of screenshots, whoever makes them, instead of two.

`maker` is `local` for the vectors that are made here and `provider` for those of a configured provider;
`model` marks what made a row: only rows of the same model are compared. The vectors are copied, which takes
some seconds for 100,000 photos.
"""

TABLES = (
    """
    CREATE TABLE made_meanings (
        photo_id INTEGER NOT NULL REFERENCES photos (id) ON DELETE CASCADE,
        maker TEXT NOT NULL CHECK (maker IN ('local', 'provider')),
        model TEXT NOT NULL,
        vector BLOB NOT NULL,
        PRIMARY KEY (photo_id, maker)
    ) STRICT
    """,
    # Beside the vectors, which are eight times as large: all signs are read when a search begins. A replaced
    # row gets a new id, so that what has changed since an id can be read. AUTOINCREMENT: no id comes back.
    """
    CREATE TABLE made_signs (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        photo_id INTEGER NOT NULL REFERENCES photos (id) ON DELETE CASCADE,
        maker TEXT NOT NULL CHECK (maker IN ('local', 'provider')),
        model TEXT NOT NULL,
        signs BLOB NOT NULL,
        UNIQUE (photo_id, maker)
    ) STRICT
    """,
    # `changes` counts, so that a change during the work on a photo is not lost. `leased_until`, in seconds
    # since 1970: no other worker takes the photo until then.
    """
    CREATE TABLE made_due (
        photo_id INTEGER NOT NULL REFERENCES photos (id) ON DELETE CASCADE,
        maker TEXT NOT NULL CHECK (maker IN ('local', 'provider')),
        changes INTEGER NOT NULL DEFAULT 1,
        failures INTEGER NOT NULL DEFAULT 0,
        leased_until INTEGER NOT NULL DEFAULT 0,
        PRIMARY KEY (photo_id, maker)
    ) STRICT
    """,
)

# The tables of earlier versions: what they hold, and how it is taken over.
EARLIER = {
    "local": (
        "INSERT INTO made_meanings SELECT photo_id, 'local', model, vector FROM meanings",
        """
        INSERT INTO made_signs SELECT id, signs.photo_id, 'local', model, signs
        FROM meaning_signs AS signs JOIN meanings ON meanings.photo_id = signs.photo_id ORDER BY id
        """,
        "INSERT INTO made_due SELECT photo_id, 'local', changes, failures, 0 FROM meanings_due",
        *(f"DROP TABLE {name}" for name in ("meanings", "meaning_signs", "meanings_due")),
    ),
    "provider": (
        "INSERT INTO made_meanings SELECT photo_id, 'provider', model, vector FROM provider_meanings",
        """
        INSERT INTO made_signs (photo_id, maker, model, signs)
        SELECT photo_id, 'provider', model, signs FROM provider_signs ORDER BY id
        """,
        "INSERT INTO made_due SELECT photo_id, 'provider', changes, failures, leased_until FROM provider_due",
        *(f"DROP TABLE {name}" for name in ("provider_meanings", "provider_signs", "provider_due")),
    ),
}
# Where there were none, every photo that was analysed before is due. Nothing is sent to a provider unless
# `SNAPLORE_EMBEDDINGS` names a model.
ALL_DUE = "INSERT INTO made_due (photo_id, maker) SELECT photo_id, '{}' FROM analyses WHERE status = 'done'"

NAMES = (
    "ALTER TABLE made_meanings RENAME TO meanings",
    "ALTER TABLE made_signs RENAME TO meaning_signs",
    "ALTER TABLE made_due RENAME TO meanings_due",
    "CREATE INDEX meaning_signs_maker ON meaning_signs (maker, id)",
    "CREATE INDEX meanings_due_failures ON meanings_due (maker, failures, photo_id DESC, leased_until)",
)

_COLUMNS = ("status", "title", "summary", "visible_text", "sensitive", "cleared")
_CHANGED = " OR ".join(f"OLD.{name} IS NOT NEW.{name}" for name in _COLUMNS)


def due(row):
    """The statement that makes the photo of `row` due for both makers."""
    return f"""
        INSERT INTO meanings_due (photo_id, maker)
        VALUES ({row}.photo_id, 'local'), ({row}.photo_id, 'provider')
        ON CONFLICT DO UPDATE SET changes = changes + 1, failures = 0, leased_until = 0
    """


def analysed(row):
    return f"EXISTS (SELECT 1 FROM analyses WHERE photo_id = {row}.photo_id AND status = 'done')"


TRIGGERS = (
    f"""
    CREATE TRIGGER meanings_due_after_analysis AFTER UPDATE OF {", ".join(_COLUMNS)} ON analyses
    WHEN NEW.status = 'done' AND ({_CHANGED}) BEGIN {due("NEW")}; END
    """,
    f"""
    CREATE TRIGGER meanings_due_after_restore AFTER INSERT ON analyses
    WHEN NEW.status = 'done' BEGIN {due("NEW")}; END
    """,
    f"""
    CREATE TRIGGER meanings_due_after_own_words AFTER INSERT ON own_words
    WHEN {analysed("NEW")} BEGIN {due("NEW")}; END
    """,
    f"""
    CREATE TRIGGER meanings_due_without_own_words AFTER DELETE ON own_words
    WHEN {analysed("OLD")} BEGIN {due("OLD")}; END
    """,
    f"""
    CREATE TRIGGER meanings_due_after_reading AFTER INSERT ON readings
    WHEN {analysed("NEW")} BEGIN {due("NEW")}; END
    """,
)


def up(migrator, db):
    before = "SELECT name FROM sqlite_master WHERE type = 'trigger' AND name LIKE 'meanings_due%'"
    for (name,) in db.execute_sql(before).fetchall():
        db.execute_sql(f"DROP TRIGGER {name}")
    for statement in TABLES:
        db.execute_sql(statement)
    for maker, first in (("local", "meanings"), ("provider", "provider_meanings")):
        for statement in EARLIER[maker] if db.table_exists(first) else (ALL_DUE.format(maker),):
            db.execute_sql(statement)
    for statement in NAMES + TRIGGERS:
        db.execute_sql(statement)
