"""Notes about threads: the states of a thread that a note has told of, with blanks between.

What is there when the service is updated is told already.
"""


def up(migrator, db):
    db.execute_sql("ALTER TABLE threads ADD COLUMN told TEXT NOT NULL DEFAULT ''")
    db.execute_sql("UPDATE threads SET told = state")
