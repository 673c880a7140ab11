"""Operators of a query, through the verb of the search, on a real encrypted store."""

import time
from datetime import datetime

import pytest
from hypothesis import HealthCheck, given, strategies
from hypothesis import settings as examples

import database
import lexicon
import records
import search
from curation import opened
from database import db
from engines.findings import CATEGORIES, INTENTS
from engines.records import Field, Record
from models import Analysis, Photo, PhotoTag, SyncState
from queries import candidates
from queries.operators import MOST, NAMES, split
from tests.support.library import NOW, Library
from tests.support.properties import REPEATED, at_least
from web import page_texts


@pytest.fixture
def zone(monkeypatch):
    """Sets the time zone of this machine."""

    def set_zone(name):
        monkeypatch.setenv("TZ", name)
        time.tzset()

    yield set_zone
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def library(tmp_path, zone):
    zone("UTC")
    yield Library(tmp_path / "data")
    database.close_connections()


@pytest.fixture
def shelf(stocked, zone):
    """`stocked`, opened again if a test with a library of its own has opened that."""
    zone("UTC")
    if database.store().folder != stocked.settings.data_dir:
        database.open_store(stocked.settings)
    yield stocked
    database.close_connections()


@pytest.fixture(scope="module")
def stocked(tmp_path_factory):
    """A library that no test changes: a few photos that differ in everything that an operator asks for."""
    library = Library(tmp_path_factory.mktemp("operators") / "data")
    photos = {
        "map": library.add(
            "Route to the harbour https://maps.example.org/abc", app_name="Google Maps", category="webpage",
            intent="reference", device_id="pixel_1", taken=datetime(2026, 11, 20, 12),
        ),
        "code": library.add(
            "Your verification code: 482913", app_name="Messages", category="notification",
            intent="reminder", device_id="pixel_1", taken=datetime(2026, 11, 21, 12),
        ),
        "chat": library.add(
            "Harbour tour on 2026-12-24 with Mia", app_name="微信", category="chat", intent="note",
            device_id="tablet", taken=datetime(2025, 7, 1, 12),
        ),
        "plain": library.add(
            "A harbour in the mist", app_name="messages", category="other", intent="ignore",
            device_id="tablet", taken=datetime(2024, 1, 31, 12),
        ),
        "bare": library.add("", category="", intent="", device_id="tablet", taken=datetime(2023, 1, 1, 12)),
    }  # fmt: skip
    with database.scope(), db.atomic():
        for device_id, name in (("pixel_1", "Pixel 9"), ("tablet", "")):
            SyncState.create(device_id=device_id, device_name=name, last_sync_time=NOW)
        for name, tag in (("map", "Trip"), ("chat", "Trip"), ("chat", "Été 2026")):
            photo = Photo.get_by_id(photos[name])
            folded = "trip" if tag == "Trip" else "ete 2026"
            PhotoTag.create(photo=photo, folded=folded, tag=tag, taken_at=photo.original_timestamp)
        Analysis.update(kept=True).where(Analysis.photo.in_([photos["code"], photos["plain"]])).execute()
        for name, kinds in (("code", "one_time_code"), ("chat", "card password")):
            Analysis.update(sensitive=kinds).where(Analysis.photo == photos[name]).execute()
        for name in ("map", "plain"):
            opened.open_photo(photos[name])
        euros = [{"value": value, "currency": "EUR"} for value in ("23.80", "5")]
        said = {
            "map": [_receipt("REWE Markt", euros[0]), _receipt("Aldi", euros[1])],
            "chat": [
                Record("FlightReservation", [Field("number", "NW482"), Field("departureTime", "2026-12-24")])
            ],
            "plain": [_receipt("上海咖啡", {"value": "-40", "currency": "CNY"})],
        }
        for name, found in said.items():
            Analysis.update(records=records.encoded(found)).where(Analysis.photo == photos[name]).execute()
        records.file(photos.values())
    library.names = {photo_id: name for name, photo_id in photos.items()}
    database.close_connections()
    return library


def _receipt(seller, total):
    return Record("Receipt", [Field("seller", seller), Field("total", total)])


def names(library, query, **options):
    return [library.names[hit.photo_id] for hit in library.find(query, **options).items]


# ------------------------------------------------------------------------------------------------ what passes


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ('app:"Google Maps"', "map"),
        ("app:“google maps”", "map"),
        ("APP:messages", "code plain"),
        ("app：微信", "chat"),
        ("app:Telegram", ""),
        ("app:微信 app:messages", "code chat plain"),
        ("tag:trip", "map chat"),
        ("tag:TRIP tag:“été 2026”", "chat"),
        ("tag:other", ""),
        ("device:tablet", "chat plain bare"),
        ('device:"pixel 9"', "code map"),
        ("device:PIXEL_1", "code map"),
        ("device:unknown", ""),
        ("category:chat category:webpage", "map chat"),
        ("category:Social-Media", ""),
        ("intent:reminder", "code"),
        ("is:kept", "code plain"),
        ("is:unread", "code chat bare"),
        ("is:kept is:unread", "code"),
        ("is:sensitive", "code chat"),
        ("is:sensitive is:kept", "code"),
        ("is:sensitive tag:trip", "chat"),
        ("has:link", "map"),
        ("has:code", "code"),
        ("has:date", "chat"),
        ("has:date has:link", ""),
        ("type:receipt", "map plain"),
        ("TYPE:Flight", "chat"),
        ("type:flightreservation type:receipt", "map chat plain"),
        ("type:chat", "chat"),
        ("type:wifi", ""),
        ("type:聊天", "chat"),
        ("type:收据", "map plain"),
        ('type:"web page"', "map"),
        ("intent:提醒", "code"),
        ("has:amount", "map plain"),
        ("amount:>20", "map plain"),
        ("amount:>=23,80 amount:<24", "map"),
        ("amount:>23.8 amount:<24", ""),
        ("amount:30..40", "plain"),
        ("amount:40CNY", "plain"),
        ("amount:>1EUR", "map"),
        ("amount:5", "map"),
        ("seller:rewe", "map"),
        ("seller:markt", "map"),
        ("seller:ewe", ""),
        ("seller:咖啡", "plain"),
        ("seller:rewe amount:>20", "map"),
        ("seller:rewe amount:<20", ""),  # of another record
        ("seller:rewe -amount:<20", "map"),
        ("-type:receipt", "code chat bare"),
        ("-has:amount", "code chat bare"),
        ("on:2026-11-20", "map"),
        ("on:2026-11", "code map"),
        ("on:2026", "code map"),
        ("before:2026", "chat plain bare"),
        ("before:2024-01-31", "bare"),
        ("after:2025", "code map"),
        ("after:2025-07-01", "code map"),
        ("after:2025-06 before:2026-11-21", "map chat"),
        ("on:today", "code"),
        ("on:昨天", "map"),
        ("before:yesterday after:2024", "chat"),
        ("on:2026-11-20 on:2026-11-21", ""),
        # Excluded.
        ("-app:messages", "map chat bare"),
        ("-app:messages -app:“google maps” -app:微信", "bare"),
        ("-tag:trip", "code plain bare"),
        ("-device:tablet", "code map"),
        ("-category:chat -intent:ignore", "code map bare"),
        ("-is:kept", "map chat bare"),
        ("-is:sensitive", "map plain bare"),
        ("-is:unread", "map plain"),
        ("-has:link -has:code", "chat plain bare"),
        ("-on:2026-11-20", "code chat plain bare"),
        ("-before:2026", "code map"),
        ("-after:2024", "plain bare"),
        ("-harbour", "code bare"),
        ('-"harbour tour"', "code map plain bare"),
        ("－harbour", "code bare"),
        ("-app:nothing", "code map chat plain bare"),
    ],
)
def test_a_query_of_operators_alone_lists_what_passes_the_latest_picture_first(shelf, query, expected):
    found = shelf.find(query)

    assert [shelf.names[hit.photo_id] for hit in found.items] == expected.split()
    assert found.total == len(expected.split())
    assert not any(hit.boxes or hit.matched for hit in found.items)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("harbour app:messages", "plain"),
        ("app:微信 harbour", "chat"),
        ("harbour tag:trip", "map chat"),
        ("harbour -tag:trip", "plain"),
        ("harbour device:tablet", "chat plain"),
        ("harbour -device:tablet", "map"),
        ("harbour category:chat category:other", "chat plain"),
        ("harbour -category:chat", "map plain"),
        ("harbour is:kept", "plain"),
        ("harbour is:sensitive", "chat"),
        ("harbour -is:sensitive", "map plain"),
        ("harbour -is:kept", "map chat"),
        ("harbour is:unread", "chat"),
        ("harbour has:link", "map"),
        ("harbour -has:link", "chat plain"),
        ("harbour type:receipt", "map plain"),
        ("harbour seller:aldi amount:5", "map"),
        ("harbour -has:amount", "chat"),
        ("harbour before:2025", "plain"),
        ("harbour -before:2025", "map chat"),
        ("harbour -on:2025-07-01", "map plain"),
        ("harbour after:2026-11-20", ""),
        ("harbour on:1999", ""),
        ("harbour -mist", "map chat"),
        ("harbour -mist -tour", "map"),
        ('-"harbour tour" harbour', "map plain"),
        ("harbur -mist", "map chat"),
        ("harbour route mia -app:messages", "map chat"),
        ("harbour app:nothing", ""),
        ("harbour -app:nothing", "map chat plain"),
    ],
)
def test_operators_narrow_what_words_find(shelf, query, expected):
    assert sorted(names(shelf, query)) == sorted(expected.split())


@pytest.mark.parametrize(
    "query",
    [
        *("12:30", "https://maps.example.org/abc", "note:", "app:", 'app:""', "app: maps", "is:foo", "has:"),
        *("has:everything", "category:food", "before:soon", "on:2026-13", "on:2026-02-30", "on:26-11-22"),
        *("after:1969", "on:3000", "on:2026-11-22-01", "harbour:mist", "Total:12", "re:app:messages"),
        *("type:xy", "type:re", "amount:", "amount:many", "amount:>5..6", "amount:>-5", "seller:"),
        *("x-app:messages", '"app:messages"', "“tag:trip is:kept”", "- harbour", "-5", "-12.50", "--harbour"),
        *('app:"Maps"x', 'APP:“0"APP:0', '-"mist"y', 'app:"Maps"-mist'),
        *("well-known", "a -", "-!", "ａｐｐ:messages", "::", "-:", "appé:messages", "in:app:messages"),
    ],
)
def test_what_is_no_operator_is_text(query):
    assert split(query, now=NOW) == (query, [])


def test_a_day_is_that_of_this_machine(library, zone):
    late, early = (library.add("x", taken=datetime(2026, 11, 21, hour)) for hour in (15, 17))
    assert library.ids("on:2026-11-21") == [early, late]

    zone("Asia/Shanghai")  # where the 22nd begins at 16:00 UTC
    assert (library.ids("on:2026-11-21"), library.ids("on:2026-11-22")) == ([late], [early])
    assert (library.ids("before:2026-11-22"), library.ids("after:2026-11-21")) == ([late], [early])
    with database.scope():
        assert search.find("on:today", now=datetime(2026, 11, 21, 16, 30)).total == 1


def test_what_a_photo_holds_follows_its_analysis_also_where_the_words_stay(library):
    photo = library.add("Platform 4", entities=["platform"])
    assert (library.ids("has:code"), library.ids("has:link")) == ([photo], [])

    with database.scope(), db.atomic(), lexicon.changing([photo]):
        entities = '[{"type": "link", "value": "platform"}]'
        Analysis.update(entities=entities).where(Analysis.photo == photo).execute()

    assert (library.ids("has:code"), library.ids("has:link")) == ([], [photo])


def test_an_old_photo_is_found_behind_thousands_with_the_same_word(library, monkeypatch):
    monkeypatch.setattr(candidates, "NEWEST", 20)
    monkeypatch.setattr(candidates, "RERANKED", 10)
    old = library.add("harbour https://a.example.org", app_name="Maps", device_id="old")
    with database.scope(), db.atomic():
        Analysis.update(kept=True).where(Analysis.photo == old).execute()
        PhotoTag.create(photo=old, folded="trip", tag="trip", taken_at=NOW)
    for _ in range(40):
        library.add("harbour mist")

    operators = ("app:maps", "device:old", "tag:trip", "is:kept", "has:link", "-mist")
    with database.scope(), db.atomic():
        SyncState.create(device_id="old", last_sync_time=NOW)
    assert [library.ids(f"harbour {operator}") for operator in operators] == [[old]] * len(operators)
    assert library.find("harbour").total == 20


def test_what_a_photo_holds_follows_its_text(library):
    photo_id = library.add("Nothing to see")
    assert library.ids("has:link") == []

    library.analyse_again(photo_id, "See https://example.org/a and the code: 123456 verification code 123456")
    assert library.ids("has:link") == library.ids("has:code") == [photo_id]

    library.analyse_again(photo_id, "")
    assert library.ids("has:link") == library.ids("has:code") == []


def test_the_filters_of_the_call_and_operators_hold_together(shelf):
    assert names(shelf, "tag:trip", category="chat") == ["chat"]
    assert names(shelf, "harbour", app="messages") == names(shelf, "harbour is:kept") == ["plain"]
    assert names(shelf, "is:unread", since=datetime(2025, 1, 1), until=datetime(2026, 1, 1)) == ["chat"]
    assert names(shelf, "is:kept", limit=1) == ["code"]
    assert shelf.find("is:kept", limit=1).total == 2


def test_a_list_shows_the_beginning_of_the_text(shelf):
    (hit,) = shelf.find("app:微信").items
    assert (hit.snippet, hit.score) == ("Harbour tour on 2026-12-24 with Mia", 0.0)


def test_words_that_are_near_are_counted_within_the_operators(shelf):
    found = shelf.find("harb0ur1 device:pixel_1 -app:messages")
    assert not found.items
    assert all(near.photos == 1 for near in found.nearest)


# ------------------------------------------------------------------------------------------------- properties

pieces = strategies.one_of(
    strategies.text(max_size=8),
    strategies.sampled_from([*(f"{name}:" for name in NAMES), "-", '"', "：", " ", "\0", "\ud800", "“"]),
    strategies.sampled_from([*REPEATED, "kept", "link", "2026-11", "today", "harbour", "chat", "trip"]),
)
SOME = (
    *("app:messages", "tag:trip", "is:kept", "is:unread", "has:link", "category:chat", "before:2026"),
    *("device:tablet", "on:2026-11", "type:receipt", "amount:>20", "seller:aldi", "has:amount"),
)
queries = strategies.lists(pieces, max_size=30).map("".join)


@examples(max_examples=at_least(400), suppress_health_check=list(HealthCheck))
@given(query=queries)
def test_any_text_is_a_query(shelf, query):
    with database.scope():
        found = search.find(query, now=NOW)
        counted = search.count_new(query, 1, most=3, now=NOW)
    assert len({hit.photo_id for hit in found.items}) == len(found.items) <= found.total
    assert 0 <= counted <= 3


@examples(max_examples=at_least(400), suppress_health_check=list(HealthCheck))
@given(query=queries)
def test_the_text_without_its_operators_has_none_and_means_the_same_as_ever(shelf, query):
    """A query without operators reaches the index letter by letter."""
    words, operators = split(query, now=NOW)
    if not operators:
        assert words == query
    elif len(operators) < MOST:
        assert split(words, now=NOW).operators == []


@examples(max_examples=at_least(200), suppress_health_check=list(HealthCheck))
@given(wanted=strategies.lists(strategies.sampled_from(SOME), min_size=1, max_size=3, unique=True))
def test_an_operator_and_its_exclusion_are_all_photos_once(shelf, wanted):
    *others, last = wanted
    rest = " ".join(others)
    without = names(shelf, f"{rest} -{last}")
    every = names(shelf, rest) if rest else ["code", "map", "chat", "plain", "bare"]
    assert sorted(names(shelf, f"{rest} {last}") + without) == sorted(every)
    if rest:
        assert shelf.find(f"{rest} {last}").total + len(without) == len(every)


def test_the_operators_of_a_query_are_limited(shelf):
    """Those past the limit are words."""
    query = " ".join(["-x"] * (MOST + 2))
    words, operators = split(query, now=NOW)
    assert (words.split(), len(operators)) == (["-x", "-x"], MOST)


@pytest.mark.parametrize("code", page_texts.LANGUAGES)
def test_what_the_filters_offer_works_as_an_operator_in_each_language(code):
    texts = page_texts.language(code).texts
    for value in CATEGORIES:
        [operator] = split(f'type:"{texts["category"][value]}"', now=NOW).operators
        assert (operator.name, operator.value) == ("category", value)
    for value in INTENTS:
        [operator] = split(f'intent:"{texts["intent"][value]}"', now=NOW).operators
        assert (operator.name, operator.value) == ("intent", value)
