"""Stacks: the same screen several times, shown as one; and the perceptual hash by which they are found.

`covered` is about a photo of a stack: 0, it is shown for the stack; 1, another one of the same device is
shown; 2, only one of another device is. Triggers keep it, whatever is kept, deleted or moved to the trash.
It is the last column of every index of the lists, which are made anew: some seconds for 100,000 photos. Each
filter has an index in the order of uploads and one in that of the times of pictures, with the other filters'
columns, so that no row is read before it is known to be shown.

Every photo that was stored before is due to be compared with the others.
"""

LISTS = (
    ("analyses_status", "status, photo_id"),
    ("analyses_intent", "intent, photo_id"),
    ("analyses_intent_status", "intent, status, photo_id"),
    ("analyses_device", "device_id, photo_id"),
    ("analyses_device_status", "device_id, status, photo_id"),
    ("analyses_category", "content_category, photo_id, device_id, status"),
    ("analyses_category_intent", "content_category, intent, photo_id, device_id, status"),
    ("analyses_device_intent", "device_id, intent, photo_id, status"),
    ("analyses_taken", "taken_at, photo_id, device_id, status, intent, content_category, app_name"),
    ("analyses_app", "app_name, photo_id, device_id, status, intent, content_category"),
    ("analyses_app_taken", "app_name, taken_at, photo_id, device_id, status, intent, content_category"),
    ("analyses_category_taken", "content_category, taken_at, photo_id, device_id, status, intent, app_name"),
    ("analyses_device_taken", "device_id, taken_at, photo_id, status, intent, content_category, app_name"),
    ("analyses_intent_taken", "intent, taken_at, photo_id, device_id, status, content_category, app_name"),
    ("analyses_status_taken", "status, taken_at, photo_id, device_id, intent, content_category, app_name"),
)
KEPT = (
    ("analyses_kept", "photo_id, device_id, status, intent, content_category, app_name, kept"),
    (
        "analyses_kept_taken",
        "taken_at, photo_id, device_id, status, intent, content_category, app_name, kept",
    ),
)

# A photo leaves its stack when its analysis goes: it is deleted, or in the trash.
TABLES = (
    "ALTER TABLE photos ADD COLUMN perceptual_hash BLOB",
    "ALTER TABLE analyses ADD COLUMN covered INTEGER NOT NULL DEFAULT 0",
    """
    CREATE TABLE stacked (
        photo_id INTEGER PRIMARY KEY REFERENCES analyses (photo_id) ON DELETE CASCADE,
        stack_id INTEGER NOT NULL
    ) STRICT
    """,
    "CREATE INDEX stacked_stack ON stacked (stack_id, photo_id)",
    """
    CREATE TABLE uncompared (
        photo_id INTEGER PRIMARY KEY REFERENCES analyses (photo_id) ON DELETE CASCADE
    ) STRICT
    """,
    "INSERT INTO uncompared SELECT photo_id FROM analyses",
    """
    CREATE TRIGGER uncompared_read AFTER INSERT ON readings
    WHEN EXISTS (SELECT 1 FROM analyses WHERE photo_id = NEW.photo_id) BEGIN
        INSERT OR IGNORE INTO uncompared VALUES (NEW.photo_id);
    END
    """,
    "CREATE INDEX analyses_shown ON analyses (photo_id, covered) WHERE NOT covered",
)

_BEST = "ORDER BY kept DESC, taken_at DESC, photo_id DESC"
_COVER = """
    UPDATE analyses SET covered = ranked.covered FROM (
        SELECT photo_id, CASE
            WHEN row_number() OVER ({best}) = 1 THEN 0
            WHEN row_number() OVER (PARTITION BY device_id {best}) = 1 THEN 2
            ELSE 1 END AS covered
        FROM analyses WHERE photo_id IN (SELECT photo_id FROM stacked WHERE stack_id = {stack})
    ) AS ranked
    WHERE analyses.photo_id = ranked.photo_id AND analyses.covered <> ranked.covered
"""


def cover(stack):
    """The statement that decides which photos of a stack are covered. The kept or newest one is shown."""
    return _COVER.format(best=_BEST, stack=stack)


def triggers():
    """The triggers that keep `covered`. A photo that leaves its stack is covered by none."""
    alone = "UPDATE analyses SET covered = 0 WHERE photo_id = OLD.photo_id AND covered <> 0"
    of_photo = "(SELECT stack_id FROM stacked WHERE photo_id = NEW.photo_id)"
    yield f"CREATE TRIGGER stacked_insert AFTER INSERT ON stacked BEGIN {cover('NEW.stack_id')}; END"
    yield f"CREATE TRIGGER stacked_delete AFTER DELETE ON stacked BEGIN {alone}; {cover('OLD.stack_id')}; END"
    yield (
        "CREATE TRIGGER stacked_update AFTER UPDATE OF stack_id ON stacked BEGIN "
        f"{cover('OLD.stack_id')}; {cover('NEW.stack_id')}; END"
    )
    yield (
        "CREATE TRIGGER stacked_photo AFTER UPDATE OF kept, taken_at, device_id ON analyses "
        f"WHEN EXISTS (SELECT 1 FROM stacked WHERE photo_id = NEW.photo_id) BEGIN {cover(of_photo)}; END"
    )


def up(migrator, db):
    for statement in TABLES:
        db.execute_sql(statement)
    for name, columns in LISTS:
        db.execute_sql(f"DROP INDEX IF EXISTS {name}")
        db.execute_sql(f"CREATE INDEX {name} ON analyses ({columns}, covered)")
    for name, columns in KEPT:
        db.execute_sql(f"DROP INDEX {name}")
        db.execute_sql(f"CREATE INDEX {name} ON analyses ({columns}, covered) WHERE kept = 1")
    for statement in triggers():
        db.execute_sql(statement)
