"""Lists in the order in which pictures were taken, lists of one app, and their counts, which triggers keep.

Each filter gets an index in that order. As in the order of uploads, it also contains the other filters'
columns, so that no row is read before it is known to be shown.
"""

INDEXES = (
    "DROP INDEX analyses_taken",
    "CREATE INDEX analyses_taken ON analyses "
    "(taken_at, photo_id, device_id, status, intent, content_category, app_name)",
    "CREATE INDEX analyses_app ON analyses (app_name, photo_id, device_id, status, intent, content_category)",
    "CREATE INDEX analyses_app_taken ON analyses "
    "(app_name, taken_at, photo_id, device_id, status, intent, content_category)",
    "CREATE INDEX analyses_category_taken ON analyses "
    "(content_category, taken_at, photo_id, device_id, status, intent, app_name)",
    "CREATE INDEX analyses_device_taken ON analyses "
    "(device_id, taken_at, photo_id, status, intent, content_category, app_name)",
    "CREATE INDEX analyses_intent_taken ON analyses "
    "(intent, taken_at, photo_id, device_id, status, content_category, app_name)",
    "CREATE INDEX analyses_status_taken ON analyses "
    "(status, taken_at, photo_id, device_id, intent, content_category, app_name)",
)

# The counts by month have few rows. Those by app may have many, because a model may answer with any name:
# their key begins with the app, so that a filter reads only its rows, and each app's total has a table of its
# own.
TALLIES = (
    """
    CREATE TABLE month_tallies (
        month TEXT NOT NULL,
        device_id TEXT NOT NULL,
        status TEXT NOT NULL,
        intent TEXT NOT NULL,
        content_category TEXT NOT NULL,
        photos INTEGER NOT NULL,
        PRIMARY KEY (month, device_id, status, intent, content_category)
    ) STRICT, WITHOUT ROWID
    """,
    """
    INSERT INTO month_tallies
    SELECT substr(taken_at, 1, 7), device_id, status, intent, content_category, COUNT(*)
    FROM analyses GROUP BY 1, 2, 3, 4, 5
    """,
    """
    CREATE TRIGGER month_tallies_delete AFTER DELETE ON analyses BEGIN
        UPDATE month_tallies SET photos = photos - 1
            WHERE month = substr(OLD.taken_at, 1, 7) AND device_id = OLD.device_id
            AND status = OLD.status AND intent = OLD.intent AND content_category = OLD.content_category;
        DELETE FROM month_tallies
            WHERE month = substr(OLD.taken_at, 1, 7) AND device_id = OLD.device_id
            AND status = OLD.status AND intent = OLD.intent AND content_category = OLD.content_category
            AND photos = 0;
    END
    """,
    """
    CREATE TRIGGER month_tallies_update
    AFTER UPDATE OF taken_at, device_id, status, intent, content_category ON analyses BEGIN
        INSERT INTO month_tallies VALUES (
            substr(NEW.taken_at, 1, 7), NEW.device_id, NEW.status, NEW.intent, NEW.content_category, 1
        ) ON CONFLICT DO UPDATE SET photos = photos + 1;
        UPDATE month_tallies SET photos = photos - 1
            WHERE month = substr(OLD.taken_at, 1, 7) AND device_id = OLD.device_id
            AND status = OLD.status AND intent = OLD.intent AND content_category = OLD.content_category;
        DELETE FROM month_tallies
            WHERE month = substr(OLD.taken_at, 1, 7) AND device_id = OLD.device_id
            AND status = OLD.status AND intent = OLD.intent AND content_category = OLD.content_category
            AND photos = 0;
    END
    """,
    """
    CREATE TABLE app_tallies (
        app_name TEXT NOT NULL,
        month TEXT NOT NULL,
        device_id TEXT NOT NULL,
        status TEXT NOT NULL,
        intent TEXT NOT NULL,
        content_category TEXT NOT NULL,
        photos INTEGER NOT NULL,
        PRIMARY KEY (app_name, month, device_id, status, intent, content_category)
    ) STRICT, WITHOUT ROWID
    """,
    """
    INSERT INTO app_tallies
    SELECT app_name, substr(taken_at, 1, 7), device_id, status, intent, content_category, COUNT(*)
    FROM analyses GROUP BY 1, 2, 3, 4, 5, 6
    """,
    """
    CREATE TRIGGER app_tallies_delete AFTER DELETE ON analyses BEGIN
        UPDATE app_tallies SET photos = photos - 1
            WHERE app_name = OLD.app_name AND month = substr(OLD.taken_at, 1, 7)
            AND device_id = OLD.device_id AND status = OLD.status AND intent = OLD.intent
            AND content_category = OLD.content_category;
        DELETE FROM app_tallies
            WHERE app_name = OLD.app_name AND month = substr(OLD.taken_at, 1, 7)
            AND device_id = OLD.device_id AND status = OLD.status AND intent = OLD.intent
            AND content_category = OLD.content_category
            AND photos = 0;
    END
    """,
    """
    CREATE TRIGGER app_tallies_update
    AFTER UPDATE OF app_name, taken_at, device_id, status, intent, content_category ON analyses BEGIN
        INSERT INTO app_tallies VALUES (
            NEW.app_name, substr(NEW.taken_at, 1, 7), NEW.device_id, NEW.status, NEW.intent,
            NEW.content_category, 1
        ) ON CONFLICT DO UPDATE SET photos = photos + 1;
        UPDATE app_tallies SET photos = photos - 1
            WHERE app_name = OLD.app_name AND month = substr(OLD.taken_at, 1, 7)
            AND device_id = OLD.device_id AND status = OLD.status AND intent = OLD.intent
            AND content_category = OLD.content_category;
        DELETE FROM app_tallies
            WHERE app_name = OLD.app_name AND month = substr(OLD.taken_at, 1, 7)
            AND device_id = OLD.device_id AND status = OLD.status AND intent = OLD.intent
            AND content_category = OLD.content_category
            AND photos = 0;
    END
    """,
    """
    CREATE TABLE apps (
        app_name TEXT NOT NULL PRIMARY KEY,
        photos INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID
    """,
    "INSERT INTO apps SELECT app_name, SUM(photos) FROM app_tallies WHERE app_name <> '' GROUP BY app_name",
    "CREATE INDEX apps_photos ON apps (photos DESC, app_name)",
    """
    CREATE TRIGGER apps_insert AFTER INSERT ON analyses WHEN NEW.app_name <> '' BEGIN
        INSERT INTO apps VALUES (NEW.app_name, 1) ON CONFLICT DO UPDATE SET photos = photos + 1;
    END
    """,
    """
    CREATE TRIGGER apps_delete AFTER DELETE ON analyses WHEN OLD.app_name <> '' BEGIN
        UPDATE apps SET photos = photos - 1 WHERE app_name = OLD.app_name;
        DELETE FROM apps WHERE app_name = OLD.app_name AND photos = 0;
    END
    """,
    """
    CREATE TRIGGER apps_update AFTER UPDATE OF app_name ON analyses WHEN NEW.app_name <> OLD.app_name BEGIN
        INSERT INTO apps SELECT NEW.app_name, 1 WHERE NEW.app_name <> ''
        ON CONFLICT DO UPDATE SET photos = photos + 1;
        UPDATE apps SET photos = photos - 1 WHERE app_name = OLD.app_name;
        DELETE FROM apps WHERE app_name = OLD.app_name AND photos = 0;
    END
    """,
    # The counts are added in the same trigger as the time, because the order of triggers is undefined: as the
    # time is set, they move to its month.
    "DROP TRIGGER analyses_taken_at",
    """
    CREATE TRIGGER analyses_taken_at AFTER INSERT ON analyses BEGIN
        INSERT INTO month_tallies VALUES (
            substr(NEW.taken_at, 1, 7), NEW.device_id, NEW.status, NEW.intent, NEW.content_category, 1
        ) ON CONFLICT DO UPDATE SET photos = photos + 1;
        INSERT INTO app_tallies VALUES (
            NEW.app_name, substr(NEW.taken_at, 1, 7), NEW.device_id, NEW.status, NEW.intent,
            NEW.content_category, 1
        ) ON CONFLICT DO UPDATE SET photos = photos + 1;
        UPDATE analyses SET taken_at = (SELECT original_timestamp FROM photos WHERE photos.id = NEW.photo_id)
            WHERE id = NEW.id;
    END
    """,
)


def up(migrator, db):
    for statement in (*INDEXES, *TALLIES):
        db.execute_sql(statement)
