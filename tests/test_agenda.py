"""The agenda over HTTP: what happens on a day that a screenshot names, once, with the line that says so."""

import io
import json
import time
import zipfile
from datetime import datetime, timedelta

import pytest

import agenda
import database
import push
from app import create_app
from assistant import tools
from clock import from_epoch_ms, local_day, to_epoch_ms, utc_now
from database import db
from engines.lines import Line, Page
from models import AgendaItem
from rules import questions
from rules.embedded import LocalModel
from tests.support.client import Client, detail
from tests.support.drawing import draw
from tests.support.fake_llm import FINDINGS

TAKEN = datetime(2026, 11, 20, 12)
CARD = ("Harbor Bank", "Card number 4532 0151 1283 0366", "Your bill is due 2026-11-22 16:00")
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
    """The items without their threads, which `test_threads.py` tests."""
    listed = client.get("/api/agenda", query_string=query).json["items"]
    return [{name: value for name, value in item.items() if name != "thread"} for item in listed]


def kinds(client, **query):
    return [item["kind"] for item in items(client, **query)]


def test_what_a_screenshot_names_is_listed_with_the_line_that_says_so(client, stored):
    photo = stored(*FLIGHT)
    answer = client.get("/api/agenda").json

    assert (answer["total"], answer["limit"]) == (1, 100)
    (item,) = answer["items"]
    assert (item["photo_id"], item["photo_ids"], item["kind"]) == (photo, [photo], "departure")
    assert (item["starts_at"], item["all_day"], item["dismissed"]) == ("2026-11-22T14:30", False, False)
    assert (item["quote"], item["line"]) == (FLIGHT[1], 1)
    assert client.get(f"/api/photos/{photo}/lines").json["lines"][item["line"]]["text"] == item["quote"]
    assert client.get(f"/api/agenda?photo_id={photo}").json["items"] == [item]
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


def test_what_lasts_several_days_is_listed_until_it_ends(client, stored):
    stored("Book fair", "Conference 2026-11-25 - 2026-11-27")
    (item,) = items(client)
    assert (item["starts_at"], item["ends_at"], item["all_day"]) == ("2026-11-25", "2026-11-27", True)
    assert items(client, since="2026-11-27T20:00") == [item]
    assert items(client, since="2026-11-28") == []
    assert items(client, since="2026-11-26", until="2026-11-26") == [item]
    assert items(client, until="2026-11-24") == []


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


def test_a_corrected_record_changes_its_entry_and_what_was_read_comes_back(client, stored):
    lines = (
        "Invoice",
        "Harbor Energy",
        "Amount due: $48.20",
        "Due date: 2026-12-03",
        "Account number: 81170",
    )
    photo = stored(*lines)
    (before,) = items(client)
    assert (before["starts_at"], before["title"]) == ("2026-12-03", "Harbor Energy bill $48.20 due")

    (record,) = client.get(f"/api/photos/{photo}").json["records"]
    for field in record["fields"]:
        if field["name"] == "paymentDueDate":
            field["value"] = "2026-12-08"
        if field["name"] == "provider":
            field["value"] = "Harbour Energy"
    own = {"type": record["type"], "fields": record["fields"]}
    client.patch(f"/api/photos/{photo}", json={"records": [own]})
    (after,) = items(client)
    assert (after["id"], after["starts_at"]) == (before["id"], "2026-12-08")
    assert after["title"] == "Harbour Energy bill $48.20 due"
    assert after["quote"] == "Due date: 2026-12-03"

    client.post(f"/api/photos/{photo}/trash")
    client.post(f"/api/photos/{photo}/restore")
    assert [item["starts_at"] for item in items(client)] == ["2026-12-08"]

    # What a person has typed is on no line.
    typed = [
        {**field, "text": "", "lines": []} for field in own["fields"] if field["name"] == "paymentDueDate"
    ]
    rest = [field for field in own["fields"] if field["name"] != "paymentDueDate"]
    client.patch(f"/api/photos/{photo}", json={"records": [{**own, "fields": [*rest, *typed]}]})
    assert "2026-12-08" in [item["starts_at"] for item in items(client)]

    client.patch(f"/api/photos/{photo}", json={"records": None})
    assert [item["starts_at"] for item in items(client)] == ["2026-12-03"]


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
        for name in ("trashed", "restored"):
            db.execute_sql(f"DROP TRIGGER agenda_items_{name}")
        db.execute_sql("DROP TABLE agenda_items")
        db.execute_sql("DELETE FROM schema_migration WHERE name LIKE '0019%'")
    database.close_store()

    migrated = Client(create_app(settings))
    assert items(migrated) == []
    while reading.backlog.look_for_dates():
        pass
    assert kinds(migrated) == ["departure"]
    migrated.post(f"/api/photos/{trashed}/restore")
    assert kinds(migrated) == ["departure", "deadline"]
    with database.scope():
        before = AgendaItem.select().count()
        assert not agenda.renew_older(now=TAKEN)
        assert AgendaItem.select().count() == before


def test_the_export_has_the_agenda_of_each_photo(client, stored):
    photo = stored(*FLIGHT)
    archive = zipfile.ZipFile(io.BytesIO(client.get("/api/data/export").data))
    (exported,) = json.loads(archive.read("photos.json"))
    assert exported["agenda"] == items(client, photo_id=photo)


# --------------------------------------------------------------------------------------------- announcements


@pytest.fixture
def shanghai(monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Shanghai")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def local(*moment):
    """A local time as UTC."""
    return from_epoch_ms(round(datetime(*moment).timestamp() * 1000))


@pytest.fixture
def pushed(client, monkeypatch):
    """The notifications that reached the only device; `pushed.reaches` is to how many it was sent."""
    client.post("/api/push/register", json={"device_id": "pixel", "token": "t"})

    class Pushed(list):
        reaches = 1

    pushed = Pushed()

    def deliver(settings, targets, notification):
        pushed.append((notification.title, notification.body))
        return pushed.reaches

    monkeypatch.setattr(push, "_deliver", deliver)
    return pushed


def test_what_is_due_is_announced_the_evening_before_and_in_the_morning_once_each(
    client, settings, shanghai, stored, pushed
):
    def remind(*moment):
        return [item.kind for item in agenda.remind(settings, now=local(*moment))]

    stored(*FLIGHT)
    stored("Water", "The water bill is due 2026-11-22")
    stored("Gone", "The parcel: pick up until 2026-11-22")
    dismissed = next(item for item in items(client) if item["kind"] == "pickup")
    client.post(f"/api/agenda/{dismissed['id']}/dismiss")
    both = ["deadline", "departure"]
    body = "{title}; 14:30 {}".format(*(item["title"] for item in items(client)[1:]), **items(client)[0])

    for quiet in ((2026, 11, 20, 18), (2026, 11, 21, 17, 59), (2026, 11, 22, 7, 59), (2026, 11, 22, 12)):
        assert remind(*quiet) == []
    heard = []
    receiver = heard.append
    agenda.reminded.connect(receiver)
    pushed.reaches = 0
    assert remind(2026, 11, 21, 18) == []  # no device was reached
    pushed.reaches = 1
    assert remind(2026, 11, 21, 19) == both
    assert remind(2026, 11, 21, 20) == []
    stored("Again", FLIGHT[1])  # another screenshot of the same
    assert remind(2026, 11, 21, 21) == []
    assert remind(2026, 11, 22, 8) == both
    assert remind(2026, 11, 22, 9) == []
    assert [[item.kind for item in sent] for sent in heard] == [both, both]
    assert pushed == [("Snaplore: tomorrow", body)] * 2 + [("Snaplore: today", body)]


def test_nothing_about_a_sensitive_screenshot_is_announced_or_told_a_remote_model(
    client, settings, stored, pushed
):
    stored(*CARD)
    stored(*FLIGHT)
    assert [item["sensitive"] for item in items(client)] == [[], ["card"]]

    reminded = agenda.remind(settings, now=local(2026, 11, 21, 18))
    assert [item.kind for item in reminded] == ["departure"]
    for gated, expected in ((True, ["departure"]), (False, ["departure", "deadline"])):
        box = tools.Toolbox(
            settings, device_id="", own_words=[], recalled=[], clock=lambda: TAKEN, gated=gated
        )
        with box:
            answer = box.run("agenda", "{}")
        assert [result["kind"] for result in answer["results"]] == expected
        assert answer["total"] == len(expected)


def test_a_kill_after_the_record_makes_no_second_announcement(settings, stored, pushed, monkeypatch):
    class Killed(BaseException):
        pass

    def die(*_):
        raise Killed

    stored(*FLIGHT)
    monkeypatch.setattr(push, "_deliver", die)
    with pytest.raises(Killed):
        agenda.remind(settings, now=local(2026, 11, 21, 18))
    assert agenda.remind(settings, now=local(2026, 11, 21, 19)) == []


# --------------------------------------------------------------------------------------------------- the chat


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("today", ("2026-11-28", "2026-11-28")),
        ("tomorrow", ("2026-11-29", "2026-11-29")),
        ("this_week", ("2026-11-28", "2026-11-29")),
        ("next_week", ("2026-11-30", "2026-12-06")),
        ("this_month", ("2026-11-28", "2026-11-30")),
    ],
)
def test_a_period_has_its_first_and_last_day(name, expected):
    assert agenda.period(name, datetime(2026, 11, 28).date()) == expected


@pytest.mark.parametrize(
    ("question", "period"),
    [
        ("What is due this week?", "this_week"),
        ("what do I have tomorrow", "tomorrow"),
        ("Anything coming up?", ""),
        ("明天有什么安排？", "tomorrow"),
        ("有什么快到期了？", ""),
        ("When is the library book due?", None),
        ("What did I save today?", None),
        ("明天去北京的火车几点", None),
    ],
)
def test_a_question_about_the_agenda_is_told_from_one_about_a_screenshot(question, period):
    assert questions.agenda_period(question) == period


def test_the_embedded_model_answers_what_is_due_from_the_agenda(client, stored):
    day = local_day(utc_now()) + timedelta(days=2)
    photo = stored("Boarding pass", f"Flight CA1831 to Shanghai departs {day} 14:30")
    client.put("/api/config/llm", json={"provider": "local"})
    answer = client.post("/api/chat/send", json={"message": "What is coming up?"}).json["message"]
    (item,) = items(client)
    assert f"{day:%a} {day.day} {day:%b} 14:30: #{photo} **{item['title']}**" in answer["content"]
    assert [call["function"]["name"] for call in answer["tool_calls"]] == ["agenda"]


def test_a_title_that_a_template_made_is_in_the_language_that_is_asked_for(client, stored):
    stored(
        "Parcelwise", "Your parcel is on its way", "Tracking number 1Z999AA10123456784", "Expected 2026-11-22"
    )
    stored(*FLIGHT)

    def titles(language=""):
        listed = client.get("/api/agenda", headers={"Accept-Language": language}).json["items"]
        return sorted(item["title"] for item in listed)

    words, parcel = titles()
    assert (words, parcel) == ("Flight CA1831 to Shanghai departs", "Parcel 1Z999AA10123456784")
    assert titles("en-GB") == titles("*") == [words, parcel]
    assert titles("zh-CN") == [words, "包裹 1Z999AA10123456784"]
    [item] = [one for one in client.get("/api/agenda").json["items"] if one["title"] == parcel]
    with database.scope():
        AgendaItem.update(title="包裹 1Z999AA10123456784").where(AgendaItem.id == item["id"]).execute()
    assert titles("en") == [words, parcel]


def test_a_list_makes_the_same_few_queries_however_long_it_is(client, stored):
    def queries():
        made = []
        db.query_hooks.append(made.append)
        try:
            with database.scope():
                agenda.listed("2026-11-21", "2027-01-01")
        finally:
            db.query_hooks.remove(made.append)
        return len([event for event in made if "agenda_items" in event.sql])

    stored(*FLIGHT)
    one = queries()
    stored(*BILL)
    stored("Again", FLIGHT[1])
    assert queries() == one == 4


@pytest.mark.parametrize(
    ("one", "other", "at_time", "alike"),
    [
        ("Boarding pass Flight CA1831 to Shanghai", "On the way: CA1831", False, True),
        ("Flight CA1831 to Shanghai departs", "Flight CA1835 to Shanghai departs", True, False),
        ("Dr. Miller, appointment", "Appointment at Dr. Miller, come early", True, True),
        ("Dentist", "Parents' evening", True, False),
        ("Electricity bill due", "Electricity bil due", False, True),
        ("Harbor Energy: electricity bill", "Harbor Energy: gas bill", False, False),
        ("国家电网 电费缴费截止", "国家电网 水费缴费截止", False, False),
        ("", "Due", True, False),
    ],
)
def test_titles_of_the_same_event_are_told_from_those_of_another(one, other, at_time, alike):
    assert agenda.is_alike(one, other, at_time=at_time) is alike
    assert agenda.is_alike(other, one, at_time=at_time) is alike
