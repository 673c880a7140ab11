"""What is shown of a photo, as a view: 0031 makes it as it is now."""


def up(migrator, db):
    pass
