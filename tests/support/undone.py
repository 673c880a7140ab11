"""The schema without later migrations, for tests of what an update makes of a folder."""

from database import db

# The last step first; each undoes one migration.
STEPS = {
    "0031_records": (
        "DROP VIEW shown",
        "DROP TABLE records",
        "ALTER TABLE analyses DROP COLUMN records",
        "ALTER TABLE own_words DROP COLUMN records",
    ),
    "0030_shown": (),
}


def undo_shown() -> None:
    """The schema without the view `shown`, and without what later migrations add to it."""
    for name, statements in STEPS.items():
        for statement in statements:
            db.execute_sql(statement)
        db.execute_sql("DELETE FROM schema_migration WHERE name = ?", (name,))
