"""What each screenshot means, as a vector, and which ones still need one: 0028 makes the tables."""


def up(migrator, db):
    pass
