"""Indexes and counts for the order in which pictures were taken: 0013 and 0026 make them as they are now."""


def up(migrator, db):
    pass
