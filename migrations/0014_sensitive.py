"""What is sensitive on photos: the kinds that were recognised, whether the person says that it is not, and
whether the rules have judged the text.

Photos stored before are judged in the background, 50 at a time, from the text that was read on them. The
indexes have the sensitive photos only, in the orders of the lists, with the columns of the other filters, and
the photos that are not judged. SQLite reads the table of analyses once for each: some seconds for 100,000
photos.
"""

STATEMENTS = (
    # The kinds in their order, with a blank between them.
    "ALTER TABLE analyses ADD COLUMN sensitive TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE analyses ADD COLUMN cleared INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE analyses ADD COLUMN judged INTEGER NOT NULL DEFAULT 0",
    "CREATE INDEX analyses_sensitive ON analyses "
    "(photo_id, device_id, status, intent, content_category, app_name, sensitive) WHERE sensitive <> ''",
    "CREATE INDEX analyses_sensitive_taken ON analyses "
    "(taken_at, photo_id, device_id, status, intent, content_category, app_name, sensitive) "
    "WHERE sensitive <> ''",
    "CREATE INDEX analyses_unjudged ON analyses (photo_id) WHERE judged = 0",
    # How many photos have the same kinds, so that no count reads photos. Those in the trash are not counted.
    """
    CREATE TABLE sensitive_tallies (
        kinds TEXT NOT NULL PRIMARY KEY,
        photos INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID
    """,
    """
    CREATE TRIGGER sensitive_tallies_insert AFTER INSERT ON analyses WHEN NEW.sensitive <> '' BEGIN
        INSERT INTO sensitive_tallies VALUES (NEW.sensitive, 1)
        ON CONFLICT DO UPDATE SET photos = photos + 1;
    END
    """,
    """
    CREATE TRIGGER sensitive_tallies_delete AFTER DELETE ON analyses WHEN OLD.sensitive <> '' BEGIN
        UPDATE sensitive_tallies SET photos = photos - 1 WHERE kinds = OLD.sensitive;
        DELETE FROM sensitive_tallies WHERE kinds = OLD.sensitive AND photos = 0;
    END
    """,
    """
    CREATE TRIGGER sensitive_tallies_update AFTER UPDATE OF sensitive ON analyses
    WHEN OLD.sensitive <> NEW.sensitive BEGIN
        INSERT INTO sensitive_tallies SELECT NEW.sensitive, 1 WHERE NEW.sensitive <> ''
        ON CONFLICT DO UPDATE SET photos = photos + 1;
        UPDATE sensitive_tallies SET photos = photos - 1 WHERE kinds = OLD.sensitive;
        DELETE FROM sensitive_tallies WHERE kinds = OLD.sensitive AND photos = 0;
    END
    """,
)


def up(migrator, db):
    for statement in STATEMENTS:
        db.execute_sql(statement)
