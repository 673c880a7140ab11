"""The vectors that a configured provider makes of screenshots: 0028 makes the tables."""


def up(migrator, db):
    pass
