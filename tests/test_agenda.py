"""The agenda over HTTP: what happens on a day that a screenshot names, once, with the line that says so."""

from datetime import datetime

import pytest

import agenda
import database
from app import create_app
from clock import to_epoch_ms
from database import db
from engines.embedded import LocalModel
from engines.lines import Line, Page
from models import AgendaItem
from tests.support.client import Client, detail
from tests.support.drawing import draw
from tests.support.fake_llm import FINDINGS

TAKEN = datetime(2026, 11, 20, 12)
FLIGHT = ("Boarding pass", "Flight CA1831 to Shanghai departs 2026-11-22 14:30")
BILL = ("Harbor Energy", "Your bill is due 2026-12-03")


def page(*lines):
    return Page(540, 960, [Line(text, 0.99, 40, 60 * n, 400, 60 * n + 40) for n, text in enumerate(lines, 1)])


class Eyes:
    """Reads what the test says, by the order of the pictures."""

    def __init__(self):
        self.pages = []

    def read(self, picture, *, patience=None):
        return self.pages.pop(0), "small"


@pytest.fixture
def eyes(monkeypatch):
    eyes = Eyes()
    monkeypatch.setattr(LocalModel, "read", lambda self, *args, **options: eyes.read(*args, **options))
    return eyes


@pytest.fixture
def stored(client, reading, eyes):
    """`stored(*lines)`: the id of a photo with these lines that was read and analysed."""

    def store(*lines, picture=None):
        eyes.pages.append(page(*lines))
        drawn = draw(picture or " ".join(lines))
        photo = client.upload(drawn, original_timestamp=str(to_epoch_ms(TAKEN))).json["id"]
        assert reading.work()
        return photo

    return store


def items(client, **query):
    return client.get("/api/agenda", query_string=query).json["items"]


def titles(client, **query):
    return [item["title"] for item in items(client, **query)]


def test_what_a_screenshot_names_is_listed_with_the_line_that_says_so(client, stored):
    photo = stored(*FLIGHT)
    answer = client.get("/api/agenda").json

    assert (answer["total"], answer["limit"]) == (1, 100)
    (item,) = answer["items"]
    assert (item["photo_id"], item["photo_ids"], item["kind"]) == (photo, [photo], "departure")
    assert (item["starts_at"], item["all_day"], item["dismissed"]) == ("2026-11-22T14:30", False, False)
    assert (item["quote"], item["line"]) == (FLIGHT[1], 1)
    assert client.get(f"/api/photos/{photo}/lines").json["lines"][item["line"]]["text"] == item["quote"]
    assert items(client, photo_id=photo) == [item]
    assert items(client, photo_id=photo + 1) == []


def test_the_list_is_bounded_by_days_and_times(client, stored):
    stored(*FLIGHT)
    stored(*BILL)
    flight, bill = ["2026-11-22T14:30"], ["2026-12-03"]

    def starts(**query):
        return [item["starts_at"] for item in items(client, **query)]

    assert starts() == flight + bill
    assert starts(order="latest") == bill + flight
    assert starts(limit=1) == flight
    assert client.get("/api/agenda?limit=1").json["total"] == 2
    assert starts(since="2026-11-22", until="2026-11-22") == flight
    assert starts(since="2026-11-22T14:31") == bill
    assert starts(until="2026-11-22T14:30") == []
    assert starts(since="2026-12-03T18:00") == bill  # the day has not ended
    assert starts(since="2026-12-04") == []
    assert starts(since="2027-01-01T00:00:00Z") == []


@pytest.mark.parametrize(
    "query",
    [
        *("since=tomorrow", "until=2026-13-01", "since=2026-11-2", "since=0001-01-01T00:00%2B14:00"),
        *("since=2026-11-23&until=2026-11-22", "limit=0", "limit=101", "order=best", "photo_id=x"),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_fields_name(client, query):
    fields = ("since:", "until:", "limit:", "order:", "photo_id:")
    assert detail(client.get(f"/api/agenda?{query}"), 400).startswith(fields)


def test_one_event_on_three_screenshots_is_one_item(client, stored):
    photos = [
        stored("Boarding pass", f"{word}CA1831 to Shanghai departs 2026-11-22 14:30")
        for word in ("Flight ", "", "Your flight ")
    ]
    other = stored("Flight CA1835 to Shanghai departs 2026-11-22 14:30")

    event, another = items(client)
    assert sorted(event["photo_ids"]) == photos
    assert event["photo_ids"][0] == event["photo_id"]
    assert another["photo_ids"] == [other]

    client.delete(f"/api/photos/{photos[0]}")  # the id of the event is that of its first row
    assert items(client)[0]["id"] == event["id"]
    assert sorted(items(client)[0]["photo_ids"]) == photos[1:]


def test_what_was_dismissed_stays_away_when_it_is_analysed_again_and_on_other_screenshots(
    client, reading, eyes, stored
):
    photo = stored(*FLIGHT)
    (item,) = items(client)
    assert client.post(f"/api/agenda/{item['id']}/dismiss").json == {**item, "dismissed": True}
    assert client.post(f"/api/agenda/{item['id']}/dismiss").json["dismissed"] is True
    assert items(client) == []

    for lines in (["Hardly anything"], FLIGHT):
        eyes.pages.append(page(*lines))
        client.post(f"/api/analysis/{photo}/reprocess")
        assert reading.work()
    stored("On the way", FLIGHT[1])
    assert items(client) == []
    (dismissed,) = items(client, dismissed="true")
    assert (dismissed["id"], dismissed["dismissed"], len(dismissed["photo_ids"])) == (item["id"], True, 2)

    assert client.delete(f"/api/agenda/{item['id']}/dismiss").json["dismissed"] is False
    assert [found["id"] for found in items(client)] == [item["id"]]
    for call in (client.post, client.delete):
        assert detail(call("/api/agenda/999/dismiss"), 404) == "There is nothing with this id in the agenda"


def test_a_photo_in_the_trash_has_no_items_and_brings_them_back_as_they_were(client, stored):
    flight, bill = stored(*FLIGHT), stored(*BILL)
    first, second = items(client)
    client.post(f"/api/agenda/{first['id']}/dismiss")
    for photo in (flight, bill):
        client.post(f"/api/photos/{photo}/trash")

    assert items(client, dismissed="true") == []
    assert client.get("/api/agenda").json["total"] == 0
    assert client.post(f"/api/agenda/{second['id']}/dismiss").status_code == 404

    for photo in (flight, bill):
        client.post(f"/api/photos/{photo}/restore")
    assert items(client, dismissed="true") == [{**first, "dismissed": True}, second]
    client.delete(f"/api/photos/{bill}")
    assert items(client) == []


def test_a_remote_models_date_counts_only_where_it_stands_on_the_screen(client, fake_llm, reading, stored):
    dates = [{"type": "date", "value": value} for value in ("2026-11-22 14:30", "2027-05-05")]
    fake_llm.answer({**FINDINGS, "entities": dates})
    stored(*FLIGHT)
    assert [item["starts_at"] for item in items(client)] == ["2026-11-22T14:30"]


def test_a_folder_of_the_version_before_gets_its_agenda_in_the_background(client, settings, reading, stored):
    stored(*FLIGHT)
    stored("Nothing to see")
    trashed = stored(*BILL)
    client.post(f"/api/photos/{trashed}/trash")
    with database.scope():
        db.execute_sql("DROP TABLE agenda_items")
        db.execute_sql("DELETE FROM schema_migration WHERE name LIKE '0019%'")
    database.close_store()

    migrated = Client(create_app(settings))
    assert items(migrated) == []
    while reading.look_for_dates():
        pass
    assert titles(migrated) == [FLIGHT[1]]
    migrated.post(f"/api/photos/{trashed}/restore")
    assert titles(migrated) == [FLIGHT[1], BILL[1]]
    with database.scope():
        before = AgendaItem.select().count()
        assert not agenda.renew_older(now=TAKEN)
        assert AgendaItem.select().count() == before
