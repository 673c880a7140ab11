"""Feeds: what programs read without a key, at an address that is the secret."""

import dataclasses
import time
import types
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import atoma
import feedparser
import icalendar
import pytest
import vobject

import database
import dynamics
from app import create_app
from clock import utc_now
from database import db
from engines.articles import Article
from models import AgendaItem, Analysis, CalendarEntry, Feed
from outlets import feeds, ics
from tests.support.client import Client, detail
from tests.support.library import Library
from tests.support.service import Service, eventually

CARD = "4532 0151 1283 0366"


@pytest.fixture
def library(app, settings):
    """The store of `client`, for rows without files."""
    return Library(settings.data_dir)


def analysed(library, text, **columns):
    """A photo with `text` that was analysed now."""
    photo_id = library.add(text, **columns)
    with database.scope():
        Analysis.update(completed_at=utc_now()).where(Analysis.photo == photo_id).execute()
    return photo_id


def make(client, kind, **fields):
    """A new feed's path, and its id."""
    answer = client.post("/api/feeds", json={"kind": kind, **fields})
    assert answer.status_code == 200, answer.json
    assert answer.json["url"].startswith("http://localhost/feed/")
    return answer.json["url"].removeprefix("http://localhost"), answer.json["id"]


def note(title, *photo_ids, content="At length.", now=None):
    with database.scope():
        article = Article(title, content, summary=f"{title}, in short.", photo_ids=list(photo_ids))
        return dynamics.add(article, dict.fromkeys(photo_ids, "phone"), now=now or utc_now()).id


def read(client, path, **headers):
    """A feed as two libraries read it, without a key."""
    answer = client.open.get(path, headers=headers)
    assert answer.status_code == 200, answer.get_data(as_text=True)
    parsed, strict = feedparser.parse(answer.data), atoma.parse_atom_bytes(answer.data)
    assert not parsed.bozo, parsed.get("bozo_exception")
    assert [entry.id for entry in parsed.entries] == [entry.id_ for entry in strict.entries]
    assert [entry.title for entry in parsed.entries] == [entry.title.value for entry in strict.entries]
    return parsed


def titles(client, path):
    return [entry.title for entry in read(client, path).entries]


def test_notes_are_read_by_two_libraries_with_what_they_say(client, library):
    photo_id = library.add("A harbour")
    hostile = (
        "# Plan\n- **bold** & <script>alert(1)</script>\n- [x](javascript:alert(1))\x00\x1b\n\nEnd ]]> 😀"
    )
    note_id = note("Trip <b>&amp; 行程", photo_id, content=hostile)
    path, _ = make(client, "notes")

    parsed = read(client, path)
    (entry,) = parsed.entries
    assert entry.title == "Trip <b>&amp; 行程"
    assert entry.link == f"http://localhost/#/notes/{note_id}"
    assert (
        entry.content[0].value
        == "<h2>Plan</h2><ul><li><b>bold</b> &amp; &lt;script&gt;alert(1)&lt;/script&gt;</li>"
        "<li>[x](javascript:alert(1))</li></ul><p>End ]]&gt; 😀</p>"
    )
    assert entry.id.startswith("tag:")
    assert entry.id.endswith(f".invalid,2026:note/{note_id}")
    assert path.split("/")[2] not in client.open.get(path).text


def test_a_continued_note_keeps_its_id_and_is_newer(client):
    first, _ = (
        note("First", now=utc_now() - timedelta(hours=2)),
        note("Second", now=utc_now() - timedelta(1 / 24)),
    )
    path, _ = make(client, "notes")
    before = read(client, path)
    assert titles(client, path) == ["Second", "First"]

    with database.scope():
        earlier = dynamics.recent(None, now=utc_now())[-1]
        assert earlier.id == first
        dynamics.extend(earlier, Article("First again", "More."), {}, now=utc_now())
    after = read(client, path)
    assert [entry.title for entry in after.entries] == ["First again", "Second"]
    assert after.entries[0].id == before.entries[1].id
    assert after.entries[0].updated > before.entries[1].updated
    assert after.entries[0].published == before.entries[1].published


def test_a_search_has_its_newest_photos_and_follows_them(client, library):
    path, _ = make(client, "search", query="harbour app:maps")
    assert titles(client, path) == []
    analysed(library, "An old harbour", app_name="Maps")
    analysed(library, "A harbour elsewhere", app_name="Mail")
    new = analysed(library, "The new harbour", app_name="Maps")
    client.post(f"/api/photos/{library.add('A harbour that waits', app_name='Maps')}/reprocess")

    parsed = read(client, path)
    assert parsed.feed.title == "Snaplore: harbour app:maps"
    assert parsed.entries[0].link == f"http://localhost/#/photo/{new}"
    assert len(parsed.entries) == 2
    client.post(f"/api/photos/{new}/trash")
    assert len(read(client, path).entries) == 1


def test_an_unchanged_feed_is_304_and_a_changed_one_is_not(client):
    note_id = note("First")
    path, _ = make(client, "notes")
    answer = client.open.get(path)
    assert answer.headers["Cache-Control"] == "private, no-cache"
    tag, since = answer.headers["ETag"], answer.headers["Last-Modified"]

    for headers in ({"If-None-Match": tag}, {"If-Modified-Since": since}):
        again = client.open.get(path, headers=headers)
        assert (again.status_code, again.data) == (304, b"")
    client.delete(f"/api/dynamics/{note_id}")  # nothing is newer, but something is gone
    for headers in ({"If-None-Match": tag}, {"If-Modified-Since": since}):
        changed = client.open.get(path, headers=headers)
        assert changed.status_code == 200
        assert changed.headers["ETag"] != tag


def test_an_address_is_shown_once_stored_as_a_digest_and_revoked_at_once(client):
    path, feed_id = make(client, "notes")
    secret = path.split("/")[2]
    assert len(secret) == 43

    listed = client.get("/api/feeds")
    assert secret not in listed.text
    assert [(feed["id"], feed["kind"], feed["last_used_at"]) for feed in listed.json["feeds"]] == [
        (feed_id, "notes", None)
    ]
    with database.scope():
        assert secret.encode() not in b"".join(map(bytes, Feed.select(Feed.digest).tuples().get()))
    assert client.open.get(path).status_code == 200
    assert client.get("/api/feeds").json["feeds"][0]["last_used_at"] is not None
    assert client.delete(f"/api/feeds/{feed_id}").status_code == 200
    detail(client.delete(f"/api/feeds/{feed_id}"), 404)
    detail(client.open.get(path), 404)


def test_every_wrong_address_is_the_same_404(client):
    path, _ = make(client, "notes")
    secret = path.split("/")[2]
    wrong = [f"/feed/{secret}/search.atom", "/feed/x/notes.atom", f"/feed/{secret[:-1]}/notes.atom"]
    wrong += [f"/feed/{'A' * 43}/notes.atom", "/feed/%ED%A0%80%00/notes.atom"]

    answers = {detail(client.open.get(address), 404) for address in wrong}
    answers.add(detail(client.get(wrong[0]), 404))  # the key opens no feed either
    assert len(answers) == 1


def test_a_feed_is_limited_by_address(client):
    for _ in range(60):
        detail(client.open.get("/feed/x/notes.atom"), 404)
    assert "to feeds: 60 a minute" in detail(client.open.get("/feed/x/notes.atom"), 429)
    assert client.get("/api/photos").status_code == 200


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"kind": "search"}, "query: is missing"),
        ({"kind": "search", "query": " \0"}, "query"),
        ({"kind": "notes", "query": "x"}, "query: is only for a feed of a search"),
        ({"kind": "photos"}, "kind: must be one of agenda, notes, search"),
        ({"kind": "notes", "address": "http://evil/path/"}, "address: must be"),
        ({}, "kind: is missing"),
    ],
)
def test_what_makes_no_feed_is_refused_with_the_reason(client, body, message):
    assert message in detail(client.post("/api/feeds", json=body), 400)
    assert client.get("/api/feeds").json["feeds"] == []


def test_a_feed_ends_with_the_token_that_made_it(client, app):
    token = client.post("/api/tokens", json={"name": "phone", "scope": "full"}).json
    phone = Client(app)
    phone.headers = {"Authorization": f"Bearer {token['token']}"}
    path, _ = make(phone, "notes")
    own, _ = make(client, "notes")
    assert client.open.get(path).status_code == 200

    client.delete(f"/api/tokens/{token['id']}")
    detail(client.open.get(path), 404)
    assert client.open.get(own).status_code == 200
    for scope in ("read", "upload", "feed"):
        less = client.post("/api/tokens", json={"name": "less", "scope": scope}).json["token"]
        phone.headers = {"Authorization": f"Bearer {less}"}
        detail(phone.get("/api/feeds"), 403)


def test_nothing_sensitive_is_in_a_feed(client, library, settings):
    plain, secret = analysed(library, "A harbour bill"), analysed(library, "A harbour bank")
    with database.scope():
        Analysis.update(sensitive="card").where(Analysis.photo == secret).execute()
    note("About the plain one", plain)
    note("About the bank", secret)
    note("A number", plain, content=f"Card number {CARD}")
    notes_path, _ = make(client, "notes")
    search_path, _ = make(client, "search", query="harbour")
    assert titles(client, notes_path) == ["About the plain one"]
    assert [entry.link for entry in read(client, search_path).entries] == [
        f"http://localhost/#/photo/{plain}"
    ]

    client.patch(f"/api/photos/{plain}", json={"note": f"Card number {CARD}"})
    assert read(client, search_path).entries == []
    opened = Client(create_app(dataclasses.replace(settings, sensitive="off")))
    assert len(read(opened, notes_path).entries) == 3
    assert len(read(opened, search_path).entries) == 2


def test_deleting_everything_revokes_the_feeds(client):
    path, _ = make(client, "notes")
    assert client.post("/api/data/clear", json={"confirm": "delete everything"}).status_code == 200
    detail(client.open.get(path), 404)


# ----------------------------------------------------------------------------------------------- the calendar


@pytest.fixture
def moment(monkeypatch):
    """`moment.now` is the time of the feed, in the middle of a month."""
    fixed = types.SimpleNamespace(now=datetime(2026, 11, 15, 12))
    monkeypatch.setattr(feeds, "utc_now", lambda: fixed.now)
    return fixed


def event(library, starts_at, title="Dentist", *, ends_at=None, photo_id=None, kind="appointment"):
    """The id of an event on a photo."""
    photo_id = photo_id or library.add(title)
    with database.scope(), db.atomic():
        row = AgendaItem.create(
            event_id=0, photo=photo_id, kind=kind, title=title, starts_at=starts_at, ends_at=ends_at,
            last_at=ends_at or starts_at, all_day="T" not in starts_at, quote=f"{title} line", line=0,
            created_at=utc_now(), changed_at=utc_now(),
        )  # fmt: skip
        AgendaItem.update(event_id=row.id).where(AgendaItem.id == row.id).execute()
        return row.id


def calendar(client, path):
    """The events of a feed by their titles, as two libraries read them."""
    answer = client.open.get(path)
    assert (answer.status_code, answer.mimetype) == (200, "text/calendar")
    assert all(len(line) <= 75 for line in answer.data.split(b"\r\n"))
    assert b"\n" not in answer.data.replace(b"\r\n", b"")
    answer.data.decode()  # no character is cut
    strict = icalendar.Calendar.from_ical(answer.data)
    assert not [component.errors for component in strict.walk() if component.errors]
    events = {str(one["summary"]): one for one in strict.walk("VEVENT")}
    other = vobject.readOne(answer.data.decode())
    other.validate(raiseException=True)
    assert [one.summary.value for one in other.contents.get("vevent", [])] == list(events)
    assert len({one["uid"] for one in events.values()}) == len(events)
    return events


def test_events_are_in_the_calendar_with_their_times_and_texts(client, library, moment):
    hostile = "预约; 牙医, \\n “x” 😀\r\nEND:VEVENT\r\nATTENDEE:mailto:a@b " + "é" * 90
    photo = library.add("A photo")
    event(library, "2026-11-20T14:30", hostile, ends_at="2026-11-20T15:15", photo_id=photo)
    event(library, "2026-12-03", "Bill", kind="deadline")
    event(library, "2026-12-24", "Fair", ends_at="2026-12-26", kind="event")
    path, _ = make(client, "agenda")

    events = calendar(client, path)
    timed = events[hostile.replace("\r\n", "\n")]
    assert timed["dtstart"].dt.replace(tzinfo=None) == datetime(2026, 11, 20, 14, 30)
    assert timed["dtend"].dt.replace(tzinfo=None) == datetime(2026, 11, 20, 15, 15)
    assert timed["url"] == f"http://localhost/#/photo/{photo}"
    assert "attendee" not in timed
    assert events["Bill"]["dtstart"].dt == date(2026, 12, 3)
    assert events["Bill"]["dtstart"].params["VALUE"] == "DATE"
    assert "dtend" not in events["Bill"]
    assert events["Fair"]["dtend"].dt == date(2026, 12, 27)  # the first day that is free again
    assert (
        client.open.get(path, headers={"If-None-Match": client.open.get(path).headers["ETag"]}).status_code
        == 304
    )


@pytest.mark.slow
def test_a_moved_event_is_newer_and_a_dismissed_one_goes(client, library, moment):
    item = event(library, "2026-11-20T14:30")
    path, _ = make(client, "agenda")
    first = calendar(client, path)["Dentist"]
    tag = client.open.get(path).headers["ETag"]

    with database.scope():
        AgendaItem.update(starts_at="2026-11-21T09:00").where(AgendaItem.id == item).execute()
    moment.now += timedelta(hours=1)
    moved = calendar(client, path)["Dentist"]
    assert client.open.get(path).headers["ETag"] != tag
    assert moved["uid"] == first["uid"]
    assert (first["sequence"], moved["sequence"]) == (0, 1)
    assert moved["last-modified"].dt > first["last-modified"].dt
    assert moved["dtstart"].dt.replace(tzinfo=None) == datetime(2026, 11, 21, 9)

    client.post(f"/api/agenda/{item}/dismiss")
    moment.now += timedelta(hours=1)
    (gone,) = calendar(client, path).values()
    assert (gone["uid"], gone["sequence"], gone["status"]) == (first["uid"], 2, "CANCELLED")
    assert (gone["summary"], gone.get("description")) == ("Removed", None)
    client.delete(f"/api/agenda/{item}/dismiss")
    back = calendar(client, path)["Dentist"]
    assert (back["uid"], back["sequence"], back["status"]) == (first["uid"], 3, "CONFIRMED")

    client.post(f"/api/agenda/{item}/dismiss")
    assert len(calendar(client, path)) == 1
    moment.now += timedelta(days=15)
    assert calendar(client, path) == {}


def test_what_is_over_leaves_without_being_cancelled(client, library, moment):
    event(library, "2026-11-14")
    path, _ = make(client, "agenda")
    assert len(calendar(client, path)) == 1
    moment.now += timedelta(days=40)
    assert calendar(client, path) == {}
    with database.scope():
        assert CalendarEntry.select().count() == 0


def test_a_sensitive_event_is_in_no_calendar(client, library, moment):
    photo = library.add("Bank")
    event(library, "2026-11-20", "Bank", photo_id=photo)
    event(library, "2026-11-21", f"Card number {CARD}")
    path, _ = make(client, "agenda")
    assert list(calendar(client, path)) == ["Bank"]
    with database.scope():
        Analysis.update(sensitive="card").where(Analysis.photo == photo).execute()
    (gone,) = calendar(client, path).values()
    assert gone["status"] == "CANCELLED"
    assert "Bank" not in client.open.get(path).text


@pytest.mark.parametrize(
    ("zone", "name", "changes"),
    [
        ("America/New_York", "America/New_York", ("2026-11-01T06", "2027-03-14T07")),
        ("Europe/Berlin", "Local-CET-CEST", ("2026-10-25T01", "2027-03-28T01")),
        ("Australia/Lord_Howe", "Australia/Lord_Howe", ("2027-04-03T15", "2027-10-02T15:30")),
        ("Asia/Shanghai", "Asia/Shanghai", ("2026-12-31T23", "2027-06-30T23")),
    ],
)
def test_times_are_right_around_each_change_of_the_clock(
    client, library, moment, monkeypatch, tmp_path, zone, name, changes
):
    # Rules without a name, in the notation of POSIX, or a name.
    monkeypatch.setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3" if name.startswith("Local-") else zone)
    time.tzset()
    try:
        link = tmp_path / "localtime"
        link.symlink_to(f"/usr/share/zoneinfo/{name}")  # of the machine, which TZ overrides
        monkeypatch.setattr(ics, "LINKS", link)
        expected = {}
        photo = library.add("A photo")
        for change in changes:
            for minutes in range(-120, 121, 30):
                instant = datetime.fromisoformat(f"{change}+00:00") + timedelta(minutes=minutes)
                local = instant.astimezone(ZoneInfo(zone))
                if local.fold or local.replace(fold=1).utcoffset() != local.utcoffset():
                    continue  # the clock shows this time twice
                title = f"{local:%Y-%m-%dT%H:%M}"
                event(library, title, title, photo_id=photo)
                expected[title] = instant
        path, _ = make(client, "agenda")
        moment.now = datetime(2026, 10, 20)
        parsed = calendar(client, path)
        body = client.open.get(path).text
    finally:
        monkeypatch.undo()
        time.tzset()

    assert f"TZID:{name}\r\n" in body
    assert {title: one["dtstart"].dt.astimezone(UTC) for title, one in parsed.items()} == expected
    # The same by the rules in the document alone, as two libraries read them.
    found = vobject.readOne(body).contents["vevent"]
    assert {one.summary.value: one.dtstart.value.astimezone(UTC) for one in found} == expected
    (stated,) = icalendar.Calendar.from_ical(body).walk("VTIMEZONE")
    rules = stated.to_tz()
    assert {
        title: datetime.fromisoformat(title).replace(tzinfo=rules).astimezone(UTC) for title in expected
    } == expected


@pytest.mark.slow
def test_no_log_names_the_address_of_a_feed(tmp_path):
    with Service(tmp_path, "--access-logfile", "-", "--log-level", "debug") as service:
        address = service.call("POST", "/api/feeds", json={"kind": "notes"}).json()["url"]
        secret = address.split("/")[4]
        path = f"/feed/{secret}/notes.atom"
        assert service.knock("GET", path).status_code == 200
        assert service.knock("GET", f"//feed//{secret}").status_code in (308, 401, 404)
        eventually(lambda: "/feed/…" in service.output, "the access log")
    assert secret not in service.output
