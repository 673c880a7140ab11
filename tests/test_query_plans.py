"""No list reads more than its page: the plans of the statements that SQLite was really given, for each
request in all its forms.

Without statistics, which are never gathered, a plan is the same for ten rows and for a million, so a small
folder tells.
"""

import itertools
import json
import re
from datetime import timedelta

import pytest

import database
import photos
import readings
import records
import threads
from app import create_app
from assistant import conversations, tools
from benchmarks import seed
from clock import utc_now
from curation import stacks, trash, words
from database import db
from engines.records import Field, Record
from models import Analysis, Conversation, Dynamic, Memory, Message, PushDevice, Uncompared
from settings import Settings
from tests.support.client import Client
from upkeep import cleanup

# Tables that may be read whole: rows for each device, combination of values or thing that a person has set
# up. Every other one grows.
FEW = {
    "push_devices",
    "sync_states",
    "tallies",
    "skills",
    "mcp_servers",
    "settings",
    "spend_ledger",
    "schema_migration",
    "saved_searches",
}
# Of these, those that are also sorted. The ledger is asked for a month.
SORTED = {"tallies", "sync_states", "skills", "mcp_servers", "spend_ledger", "saved_searches"}

PHOTO_FILTERS = (
    "status=done",
    "device_id=phone_1",
    "category=chat",
    "intent=note",
    "since=2020-01-01",
    "until=2090-01-01",
)


def combined(path, filters, also=("",)):
    """`path` with every combination of `filters`, and each of `also` behind it."""
    for number in range(len(filters) + 1):
        for chosen in itertools.combinations(filters, number):
            for more in also:
                query = "&".join(filter(None, (*chosen, more)))
                yield f"{path}{'&' if '?' in path else '?'}{query}" if query else path


def combinations(filters):
    """Every combination of the entries of a dict, as a dict."""
    for number in range(len(filters) + 1):
        yield from map(dict, itertools.combinations(filters.items(), number))


PAGED = (
    *combined("/api/photos", PHOTO_FILTERS, also=("", "page=2&page_size=1", "page=17&page_size=1")),
    *combined(
        "/api/photos",
        ("app=Mail", "order=taken", *PHOTO_FILTERS[:4]),
        also=("page_size=5", "page=17&page_size=1"),
    ),
    *combined("/api/photos?app=Mail", PHOTO_FILTERS[2:]),
    *combined(
        "/api/photos?kept=true",
        ("app=Mail", "order=taken", *PHOTO_FILTERS[2:5]),
        also=("", "page=17&page_size=1"),
    ),
    *combined(
        "/api/photos?stacks=true",
        ("kept=true", *PHOTO_FILTERS[:3], "since=2020-01-01"),
        also=("page=2&page_size=1", "page=17&page_size=1"),
    ),
    *combined("/api/photos?stacks=true&order=taken", ("app=Mail", *PHOTO_FILTERS[:2])),
    *combined(
        "/api/analysis",
        ("status=done", "intent=note"),
        also=("", "page=2&page_size=1", "page=17&page_size=1"),
    ),
)
LISTS = (
    *PAGED,
    *combined("/api/chat/conversations", ("device_id=phone_1",), also=("", "page=2&page_size=1")),
    "/api/chat/conversations/cafe",
    "/api/chat/conversations/cafe/messages",
    "/api/chat/conversations/cafe/messages?after_id=1",
    *combined(
        "/api/dynamics",
        ("category=note", "device_id=phone_1"),
        also=("", "limit=1", "limit=1&cursor=2", "limit=1&cursor=3"),
    ),
    *combined(
        "/api/memories",
        ("memory_type=long_term", "category=fact", "device_id=phone_1"),
        also=("", "page=2&page_size=1"),
    ),
    "/api/push/devices",
    "/api/photos/devices",
    "/api/photos/apps",
    *combined("/api/photos?tag=work&stacks=true", ("order=taken",)),
    *combined("/api/photos?tag=work", ("order=taken", "since=2020-01-01"), also=("", "page=12&page_size=1")),
    *combined("/api/photos?trash=true", (), also=("", "page=2&page_size=1")),
    "/api/photos/tags",
    "/api/photos/expiring",
    "/api/photos/duplicates",
    # A tag's photos are looked up one by one for further filters.
    *combined("/api/photos?tag=work", ("app=Mail", "kept=true", *PHOTO_FILTERS[:4]), also=("",)),
    *combined("/api/photos/timeline", ("app=Mail", *PHOTO_FILTERS[:4])),
    *combined("/api/photos/timeline?stacks=true", ("app=Mail", *PHOTO_FILTERS[:2])),
    "/api/skills",
    "/api/mcp-servers",
    "/api/usage",
)
OTHERS = (
    *(f"/api/photos/1{part}" for part in ("", "/lines", "/image", "/thumbnail")),
    "/api/photos/sync-state?device_id=phone_1",
    *("/api/stats", "/api/dynamics/stats", "/api/memories/stats", "/api/dynamics/1"),
    *combined(
        "/api/search",
        ("intent=note", "category=chat", "device_id=phone_1", "since=2020-01-01", "app=Mail"),
        also=("q=the+mail", "q=%22mail%22", "q=nothing"),
    ),
    *(
        f"/api/search?q={operator}"
        for operator in ("app:mail", "category:chat+before:2090", "device:phone_1")
    ),
    "/api/searches",
)
# Searches without words that no list has: they walk through one index, and look up the rest in others.
WALKS = (
    "is:unread",
    "-mail",
    "has:link+-has:code",
    "type:receipt",
    "seller:rewe+amount:>20+-type:invoice",
    "is:kept",
    "is:sensitive",
    "tag:soup",
    "app:mail+app:maps",
    "-app:mail+is:kept",
)


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    """A client of a folder with a few rows of everything."""
    settings = Settings(data_dir=tmp_path_factory.mktemp("plans") / "data", language="en")
    now = utc_now()
    seed.fill(settings, 20, now=now)
    app = create_app(settings)
    with database.scope():
        words.keep([*range(1, 13)], kept=True)
        words.tag([*range(1, 13)], "Work")
        trash.put([18, 19], now=now)
        for number in range(3):
            device_id, moment = f"phone_{number}", now + timedelta(seconds=number)
            about = {"device_id": device_id, "created_at": moment}
            Conversation.create(id=f"cafe{number or ''}", title="Soup", updated_at=moment, **about)
            Message.create(
                conversation=f"cafe{number or ''}", role="user", content="Which soup?", created_at=moment
            )
            Dynamic.create(title="Soup", category="note", is_pinned=number == 1, **about)
            Memory.create(content="Likes soup", memory_type="long_term", **about)
            PushDevice.create(token="token", last_seen=moment, **about)
    yield Client(app)
    database.close_connections()


class Trace:
    """The statements that SQLite runs for this thread while the context lasts, values filled in; without
    those of triggers.
    """

    def __init__(self):
        self.statements = []

    def __enter__(self):
        self._listen(lambda sql: self.statements.append(sql) if not sql.startswith("--") else None)
        return self

    def __exit__(self, *_):
        self._listen(None)

    def _listen(self, callback):
        with database.scope():
            db.connection().set_trace_callback(callback)

    def reading(self):
        """Those that look for rows. `0 = 1` is peewee's "in none of them", which looks for nothing."""
        return [
            sql
            for sql in self.statements
            if sql.lstrip().startswith(("SELECT", "UPDATE", "DELETE")) and "(0 = 1)" not in sql
        ]


def plan(sql):
    with database.scope():
        return [step for *_, step in db.execute_sql(f"EXPLAIN QUERY PLAN {sql}").fetchall()]


def tables_of(sql):
    """The tables that a statement names, by the names that its plan has for them. After a point or a bracket
    a name is a column's: `sum(photos)`.
    """
    with database.scope():
        names = {name for (name,) in db.execute_sql("SELECT name FROM sqlite_master WHERE type = 'table'")}
    found = {}
    for name in names:
        for match in re.finditer(rf'(?<![.(])(?<!\.")\b{name}\b"?(?:\s+(?:AS\s+)?"?(\w+))?', sql):
            found |= {name: name, match[1]: name}
    return found


def complaints(sql):
    """What a plan reads or sorts too much."""
    tables, steps = tables_of(sql), plan(sql)
    for step in steps:
        scanned = re.match(r"SCAN (\w+)(?! VIRTUAL TABLE)", step)
        table = tables.get(scanned[1]) if scanned else None
        if table is not None and table not in FEW:
            # In the order of the list, up to the end of the page; a filter would have it walk on.
            walks = " LIMIT " in sql and " = " not in sql and not any("TEMP B-TREE" in step for step in steps)
            counts = "COVERING INDEX" in step and "count(" in sql.lower()
            # It has only the photos that are kept or sensitive, and every column that a list filters by.
            among_few = re.search(r"COVERING INDEX analyses_(kept|sensitive)(_taken)?$", step)
            if not walks and not counts and not among_few:
                yield step
        # The rows of one page, named by their ids, may be sorted, and so may a count of each group.
        sorted_few = " IN (" in sql or ("count(" in sql and "GROUP BY" in sql)
        if "TEMP B-TREE" in step and not sorted_few and not set(tables.values()) <= SORTED:
            yield step


@pytest.mark.parametrize("path", [*LISTS, *OTHERS])
def test_no_request_reads_or_sorts_more_than_it_shows(client, path):
    with Trace() as trace:
        assert client.get(path).status_code == 200

    assert trace.reading()
    for sql in trace.reading():
        assert not list(complaints(sql)), f"{sql}\n{plan(sql)}"


@pytest.mark.parametrize("path", PAGED)
def test_which_photos_a_page_shows_is_told_by_an_index_alone(client, path):
    """The rows are long: whatever a list is filtered by, none is read before it is known to be shown."""
    with Trace() as trace:
        client.get(path)
    paging = [
        sql for sql in trace.reading() if "analyses" in sql and "ORDER BY" in sql and " IN (" not in sql
    ]

    for sql in paging:
        for step in plan(sql):
            assert "COVERING INDEX" in step, f"{sql}\n{step}"
    assert paging or client.get(path).json["items"] == []


@pytest.mark.parametrize(
    "path",
    [
        *combined("/api/records", ("since=2020-01-01", "until=2090-01-01"), also=("", "page=2&page_size=1")),
        *combined("/api/records?type=Receipt", ("since=2020-01-01",), also=("", "page=2&page_size=1")),
        "/api/records?type=Receipt&type=Invoice",
    ],
)
def test_records_are_counted_summed_and_paged_by_an_index_alone(client, path):
    with Trace() as trace:
        assert client.get(path).status_code == 200
    walking = [sql for sql in trace.reading() if "FROM records" in sql and " IN (SELECT" not in sql]

    assert len(walking) == 2
    for sql in walking:
        for step in plan(sql):
            # Of equal amounts, one row is read: they are grouped.
            assert "COVERING INDEX" in step or step == "USE TEMP B-TREE FOR GROUP BY", f"{sql}\n{step}"


@pytest.mark.parametrize("path", ["/api/records", "/api/records?type=Receipt"])
def test_the_amounts_of_all_records_and_of_a_type_are_summed_in_the_order_of_an_index(client, path):
    with Trace() as trace:
        assert client.get(path).status_code == 200
    (sums,) = [sql for sql in trace.reading() if "FROM records" in sql and "GROUP BY" in sql]

    assert [step for step in plan(sums) if "TEMP B-TREE" in step] == []


@pytest.mark.parametrize("query", WALKS)
def test_a_search_without_words_reads_no_row_of_a_photo_that_it_does_not_show(client, query):
    with Trace() as trace:
        assert client.get(f"/api/search?limit=5&q={query}").status_code == 200

    walking = [sql for sql in trace.reading() if " INDEXED BY " in sql and " AS a" in sql]
    assert walking
    for sql in walking:
        for step in plan(sql):
            row = re.search(r"(SCAN|SEARCH) (a|photos)\b(?!.* COVERING INDEX)", step)
            assert not row, f"{sql}\n{step}"
            assert "TEMP B-TREE" not in step, f"{sql}\n{step}"


@pytest.mark.parametrize(
    "arguments",
    list(combinations({"category": "chat", "intent": "note", "device_id": "phone_1", "since": "2020-01-01"})),
)
def test_the_assistant_finds_the_newest_screenshots_without_reading_the_others(client, arguments):
    with (
        tools.Toolbox(client.app.settings, device_id="", own_words=(), recalled=(), clock=utc_now) as box,
        Trace() as trace,
    ):
        assert "error" not in box.run("search_knowledge_base", json.dumps(arguments))

    assert trace.reading()
    for sql in trace.reading():
        assert not list(complaints(sql)), f"{sql}\n{plan(sql)}"


def test_a_screenshot_joins_its_thread_by_indexes_alone(client):
    """By keys, and by party and amount; and leaves it again."""
    amount = {"value": "48.10", "currency": "EUR"}
    bill = Record("Invoice", [Field("provider", "City Water"), Field("totalPaymentDue", amount)])
    paid = Record("MoneyTransfer", [Field("beneficiary", "City Water"), Field("amount", amount)])
    bill = Record(bill.type, [*bill.fields, Field("confirmationNumber", "R-22017")])
    with Trace() as trace, database.scope():
        for photo_id, found in ((3, bill), (4, bill), (5, paid)):
            columns = {"records": records.encoded([found])}
            Analysis.update(columns).where(Analysis.photo == photo_id).execute()
            records.file([photo_id])
        assert len(set(threads.of([3, 4, 5]).values())) == 1
        threads.take_out(threads.of([4])[4], 4)
        records.file([4, 5])

    joining = [sql for sql in trace.reading() if "thread" in sql]
    assert any("amount = " in sql for sql in joining)
    assert any("FROM thread_keys" in sql for sql in joining)
    for sql in joining:
        assert not list(complaints(sql)), f"{sql}\n{plan(sql)}"


def test_the_next_photo_to_read_is_found_by_an_index(client):
    """Both where all photos are read and where none is: the rows before it are not walked through."""
    with Trace() as trace, database.scope():
        read = readings.next_unread(), readings.count_unread()
        Analysis.update(reads_left=1).where(Analysis.photo == 5).execute()
        unread = readings.next_unread(), readings.count_unread()

    assert (read, unread) == ((None, 0), (5, 1))
    asked = [sql for sql in trace.reading() if "SELECT" in sql]
    assert len(asked) == 4
    for sql in asked:
        assert all("analyses_unread" in step for step in plan(sql)), plan(sql)


def test_a_photo_is_compared_with_others_that_are_found_by_an_index(client):
    with Trace() as trace, database.scope():
        for photo_id in (5, 6):
            Uncompared.create(photo=photo_id)
        assert stacks.place_next() is True
        assert stacks.place_next() is True
        assert stacks.same_words(5, readings.page(5), "any") == (None, False)

    assert len(trace.reading()) > 10
    for sql in trace.reading():
        assert not list(complaints(sql)), f"{sql}\n{plan(sql)}"


def test_a_clean_up_finds_what_is_old_by_an_index(client):
    ages_ago = utc_now() - timedelta(days=10_000)
    with Trace() as trace:
        cleanup.clean(client.app.settings, now=utc_now() + timedelta(days=100), dry_run=True)
        with database.scope():
            assert photos.purge(ages_ago, most=50) + conversations.purge(ages_ago, most=50) == 0

    assert len(trace.reading()) > 8
    for sql in trace.reading():
        assert not list(complaints(sql)), f"{sql}\n{plan(sql)}"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM photos WHERE filename = 'a' LIMIT 1",
        'SELECT * FROM "photos" AS "t1" ORDER BY "t1"."filename" LIMIT 20',
        "SELECT * FROM analyses a ORDER BY photo_id DESC",
        "SELECT id FROM conversations ORDER BY created_at",
        "SELECT COUNT(*) FROM memories WHERE content = 'a'",
    ],
)
def test_a_plan_that_reads_too_much_is_found(client, sql):
    assert list(complaints(sql)), plan(sql)
