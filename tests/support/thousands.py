"""One stored photo as thousands of them, made in the database of a running service."""

import json
import os

import database
from database import db
from settings import Settings


def multiply(data, photo, moments):
    """Make the one photo of the data folder one for each of these moments, each with an analysis of its own,
    and its files under names of their own.
    """

    def change(execute):
        [paths] = execute("SELECT original_path, thumbnail_path FROM photos WHERE id = ?", (photo,))
        texts = [f"{moment:%Y-%m-%dT%H:%M:%S.%f}"[:23] for moment in moments]
        execute("UPDATE photos SET original_timestamp = ? WHERE id = ?", (texts[0], photo))
        execute("UPDATE analyses SET taken_at = ? WHERE photo_id = ?", (texts[0], photo))
        for number in range(1, len(moments)):
            for path in paths:
                os.link(data / path, data / f"{path}-{number}")
        own = {
            "id": "?1 + key",
            "photo_id": "?1 + key",
            "original_path": "original_path || '-' || key",
            "thumbnail_path": "thumbnail_path || '-' || key",
            "original_timestamp": "value",
            "taken_at": "value",
            "sha256": "randomblob(32)",  # with the same bytes they would be one stack
        }
        for table, column in (("photos", "id"), ("analyses", "photo_id")):
            columns = [found.name for found in db.get_columns(table)]
            chosen = ", ".join(own.get(name, f"{table}.{name}") for name in columns)
            execute(
                f"INSERT INTO {table} ({', '.join(columns)}) SELECT {chosen} FROM {table}, json_each(?2)"
                f" WHERE {table}.{column} = ?1 AND key > 0",
                (photo, json.dumps(texts)),
            )

    in_database(data, change)


def in_database(data, change):
    """Call `change(execute)` within a transaction on the database of a running service."""
    database.open_store(Settings(data_dir=data))
    try:
        with database.scope(), db.atomic():
            change(db.execute_sql)
    finally:
        database.close_connections()
