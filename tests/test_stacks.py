"""Stacks: the same screen several times is one tile, and nothing else is."""

import hashlib
import io
import itertools
import random
from datetime import timedelta

import pytest
from PIL import Image

import database
import pictures
from analysis.pool import Worker
from app import create_app
from clock import utc_now
from curation import stacks
from database import db
from engines.lines import Line, Page
from models import Analysis, Photo, Stacked, Uncompared
from rules import likeness
from rules.embedded import LocalModel
from tests.support.client import Client
from tests.support.drawing import draw
from tests.support.fake_llm import FINDINGS

ROWS = (
    "Payment details", "Recipient Alice Moreau", "Amount 48.20 EUR", "Date 2026-11-20", "Reference INV-4711",
    "Method Credit card", "Status Completed", "Share receipt", "Report a problem",
)  # fmt: skip


def screen(*, time="9:41", rows=ROWS, scrolled=0, confidence=0.99, bar=True):
    """What is read on a screen with these rows, of which `scrolled` pixels are out of view."""
    status = [Line(time, 0.99, 40, 30, 150, 75), Line("87%", 0.99, 950, 30, 1040, 75)] if bar else []
    top = 190 if bar else 90
    lines = [
        Line(row, confidence, 60, place, 60 + 26 * len(row), place + 50)
        for number, row in enumerate(rows)
        for place in (top + 110 * number - scrolled,)
        if 80 <= place <= 2300
    ]
    return Page(1080, 2400, status + lines)


class Eyes:
    """Stands for the OCR process: it reads on each picture what the test says."""

    def __init__(self):
        self.pages = {}

    def read(self, picture, *, patience=None):
        return self.pages[hashlib.sha256(picture.read()).digest()], "small"


@pytest.fixture
def eyes(monkeypatch):
    eyes = Eyes()
    monkeypatch.setattr(LocalModel, "read", lambda self, *args, **options: eyes.read(*args, **options))
    return eyes


@pytest.fixture
def add(client, eyes):
    """`add("text", page, …)`: upload a picture on which `page` is read; returns its id."""

    def add(text, page, *, device="phone_1", minutes=0, data=None, **fields):
        data = data or draw(text)
        eyes.pages[hashlib.sha256(data).digest()] = page
        taken = int((utc_now() + timedelta(minutes=minutes)).timestamp() * 1000)
        fields |= {"device_id": device, "original_timestamp": str(taken)}
        return client.upload(data, **fields).json["id"]

    return add


@pytest.fixture
def stack(client, reading):
    """The stacks after everything was analysed, as lists of ids."""

    def stack():
        while reading.work() or reading.backlog.place_next():
            pass
        found = {tuple(tile["stack"]["photo_ids"]) for tile in tiles(client) if tile["stack"]}
        return sorted(sorted(ids) for ids in found)

    return stack


def tiles(client, query=""):
    answer = client.get(f"/api/photos?stacks=true&page_size=100{query}").json
    assert answer["total"] == len(answer["items"])
    return answer["items"]


def ids(items):
    return [item["id"] for item in items]


# ------------------------------------------------------------------------------------------ which are a stack


def test_the_same_screen_at_another_time_is_one_tile_with_the_newest_shown(client, add, stack):
    first = add("one", screen())
    second = add("one!", screen(time="9:52"), minutes=10)
    other = add("two", screen(rows=("Settings", "Wi-Fi", "Bluetooth", "Display")), minutes=20)

    assert stack() == [[first, second]]
    shown, tile = tiles(client)
    assert (shown["id"], shown["stack"]) == (other, None)
    assert (tile["id"], tile["stack"]) == (second, {"count": 2, "photo_ids": [second, first], "best": first})
    assert client.get(f"/api/photos/{first}").json["stack"] == tile["stack"]
    assert client.get(f"/api/photos/{other}").json["stack"] is None


def test_without_the_parameter_a_list_is_as_before(client, add, stack):
    photos = [add("one", screen()), add("one!", screen())]
    stack()

    answer = client.get("/api/photos").json
    assert (answer["total"], ids(answer["items"])) == (2, photos[::-1])
    assert all("stack" not in item for item in answer["items"])


@pytest.mark.parametrize(
    "page",
    [
        screen(time="23:59"),
        screen(bar=False),
        screen(scrolled=110),
        screen(scrolled=-110, rows=("Back to the list", *ROWS)),
        screen(rows=[row.replace("card", "catd") for row in ROWS], confidence=0.9),
    ],
    ids=["another time", "no status bar", "scrolled", "scrolled back", "misread"],
)
def test_near_duplicates_are_a_stack(add, stack, page):
    photos = [add("one", screen()), add("one!", page, minutes=5)]

    assert stack() == [photos]


def changed(row, text):
    return screen(rows=[text if number == row else before for number, before in enumerate(ROWS)])


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [
        changed(2, "Amount 48.70 EUR"),
        changed(2, "Amount 4820 EUR"),
        changed(2, "Amount -48.20 EUR"),
        changed(1, "Recipient Alan Moreau"),
        changed(3, "Date 2026-11-21"),
        changed(6, "Status Failed"),
        screen(rows=ROWS[:5] + ROWS[6:]),
        screen(rows=(*ROWS[:7], "Fee 2.00 EUR", *ROWS[7:])),
        screen(rows=("Payment", "9", "8")),
        Page(1080, 2400, []),
    ],
)
def test_another_amount_name_date_or_line_makes_another_screen(add, stack, page):
    add("one", screen())
    add("one!", page, minutes=5)

    assert stack() == []


def test_another_device_another_day_or_another_picture_is_no_near_duplicate(add, stack):
    add("one", screen())
    add("one!", screen(), device="phone_2")
    add("one?", screen(), minutes=25 * 60)
    add("", screen(), minutes=1, data=striped())

    assert stack() == []


def striped():
    return draw("\n".join("#" * (number * 11 % 40) for number in range(28)), background="yellow")


def test_the_same_bytes_are_a_stack_whatever_device_and_time(client, add, stack):
    data = draw("ticket")
    first = add("", screen(), data=data, device="phone_1")
    second = add("", screen(), data=data, device="phone_2", minutes=60 * 24 * 40)

    assert stack() == [[first, second]]
    assert ids(tiles(client)) == [second]
    assert ids(tiles(client, "&device_id=phone_1")) == [first]
    assert ids(tiles(client, "&device_id=phone_2")) == [second]


@pytest.mark.slow
def test_a_stack_stays_around_its_first_photo(add, stack):
    """Each screen is scrolled a little further than the one before: no chain leads to the last."""
    rows = [f"Line number {number} of a long article" for number in range(40)]
    photos = [
        add(f"one{'!' * step}", screen(rows=rows, scrolled=200 * step, time=f"9:1{step}"), minutes=step)
        for step in range(5)
    ]

    found = stack()
    assert found
    assert all(len(members) <= 2 for members in found), found
    assert photos not in found


# ---------------------------------------------------------------------------------------- what happens to it


def test_a_kept_photo_is_shown_for_its_stack(client, add, stack):
    photos = [add(f"one{'!' * number}", screen(), minutes=number) for number in range(3)]
    stack()
    client.patch(f"/api/photos/{photos[0]}", json={"kept": True})

    shown = tiles(client)[0]["stack"]
    assert (shown["photo_ids"], shown["best"]) == ([photos[0], photos[2], photos[1]], photos[0])
    assert ids(tiles(client, "&kept=true")) == [photos[0]]

    client.patch(f"/api/photos/{photos[0]}", json={"kept": False})
    assert ids(tiles(client)) == [photos[2]]
    assert tiles(client, "&kept=true") == []


def test_the_best_of_a_stack_has_the_most_text_and_the_rest_goes_to_the_trash(client, add, stack):
    rows = [f"Line number {number} of a long article" for number in range(12)]
    whole = add("one", screen(rows=rows))
    cut = add("one!", screen(rows=rows, scrolled=200), minutes=1)
    assert stack() == [[whole, cut]]
    found = client.get(f"/api/photos/{cut}").json["stack"]
    assert (found["photo_ids"], found["best"]) == ([cut, whole], whole)

    client.post("/api/photos/batch", json={"ids": [whole], "action": "keep"})
    client.post("/api/photos/batch", json={"ids": [cut], "action": "trash"})
    assert [(tile["id"], tile["stack"]) for tile in tiles(client)] == [(whole, None)]


def test_all_duplicates_are_listed_with_their_sizes_the_newest_stack_first(client, add, stack, monkeypatch):
    first = [add("one", screen()), add("one!", screen(time="9:52"), minutes=10)]
    add("alone", screen(rows=("Settings", "Wi-Fi", "Bluetooth", "Display")), minutes=15)
    later = [add("two", screen(rows=ROWS[:6])), add("two!", screen(rows=ROWS[:6], time="9:52"), minutes=5)]
    stack()
    found = client.get("/api/photos/duplicates").json
    assert found["total"] == 2
    assert [sorted(ids(one["photos"])) for one in found["stacks"]] == [later, first]
    assert all(one["best"] in ids(one["photos"]) for one in found["stacks"])
    assert all(photo["file_size"] > 0 for one in found["stacks"] for photo in one["photos"])
    monkeypatch.setattr(stacks, "MOST_LISTED", 3)  # whole stacks only
    found = client.get("/api/photos/duplicates").json
    assert found["total"] == 2
    assert [sorted(ids(one["photos"])) for one in found["stacks"]] == [later]


def test_a_deleted_or_trashed_photo_leaves_its_stack_and_comes_back_to_it(client, add, stack, reading):
    first, second, third = (add(f"one{'!' * number}", screen(), minutes=number) for number in range(3))
    stack()

    client.post(f"/api/photos/{third}/trash")
    assert tiles(client)[0]["stack"]["photo_ids"] == [second, first]
    client.delete(f"/api/photos/{second}")
    assert (ids(tiles(client)), tiles(client)[0]["stack"]) == ([first], None)

    client.post(f"/api/photos/{third}/restore")
    assert ids(tiles(client)) == [third, first]
    assert stack() == [[first, third]]
    assert ids(tiles(client)) == [third]


def test_a_photo_that_is_read_again_and_says_something_else_leaves_its_stack(client, add, stack, eyes):
    first, second = add("one", screen()), add("one!", screen())
    assert stack() == [[first, second]]
    eyes.pages[hashlib.sha256(draw("one!")).digest()] = changed(2, "Amount 99.99 EUR")
    client.post(f"/api/analysis/{second}/reprocess")

    assert stack() == []
    assert ids(tiles(client)) == [second, first]


def test_what_was_interrupted_is_compared_later(client, add, reading, stack, monkeypatch):
    photos = [add("one", screen()), add("one!", screen())]
    monkeypatch.setattr(stacks, "_move", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    for _ in photos:
        with pytest.raises(KeyboardInterrupt):
            reading.work()
    monkeypatch.undo()
    with database.scope():
        assert Uncompared.select().count() == 2
        assert Stacked.select().count() == 0


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2, 3))])
def test_lists_totals_and_months_agree_in_every_history(client, remote, clock, seed):
    """Photos of the same bytes are stored, kept, thrown away, brought back and deleted at random. Then every
    list is compared with one that is made of the rows.
    """
    chance = random.Random(seed)
    worker = Worker(remote, clock=clock)
    known = []
    for _ in range(16):
        taken = int((utc_now() - timedelta(days=chance.randint(0, 90))).timestamp() * 1000)
        device = f"phone_{chance.randint(1, 4)}"  # equal bytes of a phone are one photo
        data = draw(f"number {chance.randint(1, 4)}")
        known.append(client.upload(data, device_id=device, original_timestamp=str(taken)).json["id"])
        for step in chance.choices(("keep", "unkeep", "trash", "restore", "delete"), k=2):
            client.post("/api/photos/batch", json={"ids": chance.sample(known, 1), "action": step})
        while worker.work() or worker.backlog.place_next():
            pass
    worker.close()

    filters = {"device_id": "phone_1", "kept": "true", "status": "done", "app": "Mail", "since": "2020-01-01"}
    for number in range(len(filters) + 1):
        for chosen in itertools.combinations(filters.items(), number):
            query = "".join(f"&{name}={value}" for name, value in chosen)
            expected = expected_tiles(dict(chosen))
            assert ids(tiles(client, f"{query}&order=taken")) == expected, query
            assert sorted(ids(tiles(client, query))) == sorted(expected), query
            names = {name for name, _ in chosen}
            if not names & {"kept", "since"}:
                months = client.get(f"/api/photos/timeline?stacks=true{query}").json["months"]
                assert sum(month["photos"] for month in months) == len(expected), query
    assert any(item["stack"] for item in tiles(client))


def expected_tiles(filters):
    with database.scope():
        stack_ids = {row.photo_id: row.stack_id for row in Stacked.select()}
        best = (Analysis.kept.desc(), Analysis.taken_at.desc(), Analysis.photo.desc())
        rows = list(Analysis.select().order_by(*best))
    seen, shown = set(), []
    for row in rows:
        stack = stack_ids.get(row.photo_id, -row.photo_id), row.device_id if "device_id" in filters else ""
        if stack not in seen:
            shown.append(row)
        seen.add(stack)
    shown.sort(key=lambda row: (row.taken_at, row.photo_id), reverse=True)
    return [
        row.photo_id
        for row in shown
        if row.device_id == filters.get("device_id", row.device_id)
        and (row.kept or "kept" not in filters)
        and row.status == filters.get("status", row.status)
        and row.app_name == filters.get("app", row.app_name)
    ]


@pytest.mark.slow
def test_pages_of_tiles_have_each_stack_once(client, add, stack):
    for number in range(4):
        rows = (f"Chapter {number}", *(f"Verse {number}.{verse} of a long poem" for verse in range(8)))
        for copy in range(2):
            add(f"one{'!' * (2 * number + copy)}", screen(rows=rows), minutes=2 * number + copy)
    assert len(stack()) == 4

    pages = [client.get(f"/api/photos?stacks=true&page_size=2&page={page}").json for page in (1, 2, 3)]
    assert [page["total"] for page in pages] == [4] * 3
    assert [len(page["items"]) for page in pages] == [2, 2, 0]
    shown = [item["id"] for page in pages for item in page["items"]]
    assert shown == sorted(set(shown), reverse=True)


# ------------------------------------------------------------------------------------------- a remote model


def test_a_remote_model_is_asked_once_for_screens_with_the_same_words(client, add, stack, fake_llm):
    fake_llm.answer({**FINDINGS, "title": "A payment"})
    photos = [add("one", screen()), add("one!", screen(time="9:52")), add("one!!", screen(bar=False))]
    stack()

    assert len(fake_llm.requests) == 1
    for photo in photos:
        assert client.get(f"/api/photos/{photo}").json["title"] == "A payment"
    with database.scope():
        analysers = [Analysis.get(Analysis.photo == photo).analyser for photo in photos]
    assert analysers[1:] == [f"{analysers[0]}, of the near-duplicate {photos[0]}"] * 2


@pytest.mark.parametrize("page", [changed(2, "Amount 48.70 EUR"), screen(scrolled=220)])
def test_a_remote_model_is_asked_for_a_screen_with_other_words(add, stack, fake_llm, page):
    add("one", screen())
    add("one!", page)
    stack()

    assert len(fake_llm.requests) == 2


def test_a_person_who_asks_for_another_analysis_gets_a_new_one(client, add, stack, fake_llm):
    add("one", screen())
    second = add("one!", screen())
    stack()
    client.post(f"/api/analysis/{second}/reprocess")
    stack()

    assert len(fake_llm.requests) == 2


def test_a_photo_waits_while_the_same_words_are_being_analysed(client, add, reading, fake_llm, clock):
    first = add("one", screen())
    reading.work()
    second = add("one!", screen())
    with database.scope():
        Analysis.update(status="processing").where(Analysis.photo == first).execute()
    reading.work()
    assert len(fake_llm.requests) == 1
    assert client.get(f"/api/photos/{second}").json["analysis"]["status"] == "pending"

    with database.scope():
        Analysis.update(status="done").where(Analysis.photo == first).execute()
    clock.move(seconds=5)
    reading.work()
    assert len(fake_llm.requests) == 1
    assert client.get(f"/api/photos/{second}").json["analysis"]["status"] == "done"


# ---------------------------------------------------------------------------------------------- older photos


def test_photos_of_an_earlier_version_are_stacked_in_the_background(app, client, add, stack, reading):
    photos = [add("one", screen()), add("one!", screen()), add("two", screen(rows=ROWS[:3]))]
    assert stack() == [photos[:2]]
    with database.scope():
        undo_stacks()
    database.close_store()
    later = Client(create_app(app.settings))

    assert ids(tiles(later)) == photos[::-1]
    with database.scope():
        assert Photo.select().where(Photo.perceptual_hash.is_null()).count() == 3
    while reading.backlog.place_next():
        pass
    assert ids(tiles(later)) == [photos[2], photos[1]]
    assert tiles(later)[1]["stack"]["photo_ids"] == [photos[1], photos[0]]


def undo_stacks():
    """The schema as it was before 0013_stacks."""
    triggers = db.execute_sql("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
    for name, sql in triggers:
        if any(word in sql for word in ("covered", "stacked", "uncompared")):
            db.execute_sql(f"DROP TRIGGER {name}")
    indexes = db.execute_sql("SELECT name, sql FROM sqlite_master WHERE type = 'index'").fetchall()
    for name, sql in indexes:
        if sql and "covered" in sql:
            db.execute_sql(f"DROP INDEX {name}")
            if name != "analyses_shown":
                db.execute_sql(sql.replace(", covered)", ")"))
    for table in ("stacked", "uncompared"):
        db.execute_sql(f"DROP TABLE {table}")
    db.execute_sql("ALTER TABLE analyses DROP COLUMN covered")
    db.execute_sql("DROP INDEX photos_look")
    db.execute_sql("ALTER TABLE photos DROP COLUMN perceptual_hash")
    later = "('0013_stacks', '0026_tallies', '0058_same_look')"
    db.execute_sql(f"DELETE FROM schema_migration WHERE name IN {later}")


def test_a_photo_whose_files_are_lost_is_compared_by_its_bytes_only(app, client, add, stack, reading):
    photo = add("one", screen())
    stack()
    with database.scope():
        row = Photo.get_by_id(photo)
        for path in (row.original_path, row.thumbnail_path):
            (app.settings.data_dir / path).unlink()
        Photo.update(perceptual_hash=None).where(Photo.id == photo).execute()
        Uncompared.create(photo=photo)

    assert reading.backlog.place_next() is True
    assert reading.backlog.place_next() is False


# -------------------------------------------------------------------------------------------------- the hash


def test_a_hash_is_nearly_the_same_for_a_smaller_copy_and_without_the_status_bar():
    whole = blocks(1)
    smaller = whole.resize((540, 1200))
    without_bar = whole.crop((0, 90, *whole.size))
    copies = [hashed(image, format="JPEG", quality=60) for image in (whole, smaller, without_bar)]

    assert len(copies[0]) == 40
    for other in copies:
        assert likeness.near(hashed(whole), other)
    for other in (b"", hashed(blocks(2)), hashed(whole.rotate(90, expand=True))):
        assert not likeness.near(hashed(whole), other)


def blocks(seed):
    """A picture of a phone's size with grey blocks."""
    chance = random.Random(seed)
    return Image.frombytes("L", (9, 20), chance.randbytes(180)).resize((1080, 2400), Image.Resampling.NEAREST)


def hashed(image, format="PNG", **save_options):
    out = io.BytesIO()
    image.save(out, format, **save_options)
    return pictures.examine(out).perceptual_hash
