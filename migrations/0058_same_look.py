"""Photos that may have the same pixels in another file are found by their perceptual hash."""

STATEMENTS = ("CREATE INDEX photos_look ON photos (perceptual_hash)",)


def up(migrator, db):
    for statement in STATEMENTS:
        db.execute_sql(statement)
