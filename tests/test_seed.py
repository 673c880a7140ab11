"""The seed of the benchmarks writes in bulk what the service's own verbs write one by one."""

import pytest

import database
import disk
from benchmarks import seed
from clock import utc_now
from database import db
from models import Photo
from settings import Settings

SIZE = 37
# What is another one each time: places, keys and sizes of files; ids that an upsert uses up; how the index is
# cut into pieces.
OTHERS = {
    "original_path",
    "thumbnail_path",
    "file_key",
    "thumbnail_key",
    "disk_bytes",
    "vocabulary.id",
    "photo_index_docsize.origin",
    "redacted_index_docsize.origin",
}
NOT_COMPARED = {
    *("sqlite_sequence", "schema_migration", "photo_index_data", "photo_index_idx"),
    *("redacted_index_data", "redacted_index_idx"),
    "agenda_items",  # of those in bulk, the days are not looked for
}


@pytest.fixture
def filled(tmp_path):
    """`filled("name", alike)`: the content of every table of a data folder with `SIZE` photos."""
    now = utc_now()

    def make(name, alike):
        seed.fill(Settings(data_dir=tmp_path / name, language="en"), SIZE, now=now, alike=alike)
        with database.scope():
            return contents()

    yield make
    database.close_connections()


def contents():
    """The rows of each table without the columns that are not compared, and every word of the index with its
    place.
    """
    tables = [name for (name,) in db.execute_sql("SELECT name FROM sqlite_master WHERE type = 'table'")]
    found = {}
    for table in set(tables) - NOT_COMPARED:
        cursor = db.execute_sql(f'SELECT * FROM "{table}"')
        names = [column[0] for column in cursor.description]
        kept = [place for place, name in enumerate(names) if not OTHERS & {name, f"{table}.{name}"}]
        found[table] = sorted(tuple(row[place] for place in kept) for row in cursor)
    db.execute_sql("CREATE VIRTUAL TABLE temp.words USING fts5vocab(main, photo_index, instance)")
    found["words"] = db.execute_sql(
        "SELECT term, doc, offset FROM temp.words ORDER BY term, doc, offset"
    ).fetchall()
    return found


@pytest.mark.slow
def test_photos_written_in_bulk_are_the_rows_that_the_verbs_write(filled):
    by_verbs, in_bulk = filled("verbs", 1), filled("bulk", 16)

    assert len(by_verbs["photos"]) == len(by_verbs["analyses"]) == SIZE
    assert len(by_verbs["words"]) > 100 * SIZE
    assert {"vocabulary", "tallies", "settings", "sync_states", "photo_index_docsize"} <= by_verbs.keys()
    assert by_verbs.keys() == in_bulk.keys()
    for table, rows in by_verbs.items():
        assert rows == in_bulk[table], table


@pytest.mark.slow
def test_every_photo_written_in_bulk_has_its_files(filled):
    filled("bulk", 16)
    folder = database.store().folder
    with database.scope():
        for photo in Photo.select():
            for path, key in (
                (photo.original_path, photo.file_key),
                (photo.thumbnail_path, photo.thumbnail_key),
            ):
                with disk.open_sealed(folder / path, key) as picture:
                    content = picture.read()
            assert content.startswith(b"\xff\xd8")
    assert len(list((folder / "photos").glob("*/*"))) == 2 * SIZE
    assert len({path.stat().st_ino for path in (folder / "photos").glob("*/*")}) == 6
