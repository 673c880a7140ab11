"""The reasoner: it looks at what is new once, keeps only what is cited, never runs twice at once; and its
notes over HTTP.
"""

import dataclasses
import itertools
import json
import threading
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as examples
from hypothesis import strategies as st

import agenda
import database
import memory
import models
import push
import readings
import reasoner
from analysis.pool import Worker
from app import create_app
from assistant import context, turns
from clock import iso, utc_now
from engines.findings import MemoryCandidate
from engines.lines import Line, Page
from errors import ModelFailure, Unavailable
from models import Dynamic, Message
from tests.support.client import Client, detail
from tests.support.drawing import draw
from tests.support.fake_llm import FINDINGS
from tests.support.properties import at_least

SEEN = {**FINDINGS, "memories": []}


@pytest.fixture
def phone(app, remote):
    """A client of a service whose model is the fake server."""
    return Client(create_app(remote))


@pytest.fixture
def analysed(phone, fake_llm, remote, clock):
    """`analysed("a", "b", device_id=…)`: upload pictures and analyse them; the summary of each says its name,
    and what is in `found` is found too. Returns their ids.
    """

    def analyse(*names, found=None, **fields):
        ids = []
        for name in names:
            ids.append(phone.upload(draw(name), f"{name}.png", **fields).json["id"])
            fake_llm.answer(
                {
                    **SEEN,
                    "summary": f"Seen {name}.",
                    **{key: fields[key] for key in ("intent",) if key in fields},
                    **(found or {}),
                }
            )
            assert Worker(remote, clock=clock).work()
        fake_llm.requests.clear()
        return ids

    return analyse


@pytest.fixture
def pushed(monkeypatch):
    """The notifications that would have gone out."""
    sent = []
    monkeypatch.setattr(push, "broadcast", lambda settings, notification: sent.append(notification) or 0)
    return sent


def article(title, *photo_ids, **fields):
    return {
        "title": title,
        "summary": f"{title}, in short.",
        "content": f"{title}, at length.",
        "photo_ids": photo_ids,
        **fields,
    }


def said(conversation_id, question, answer, clock, device_id=""):
    """One finished turn of a chat."""
    with database.scope():
        asked = turns.begin_turn(conversation_id, question, None, device_id=device_id, now=clock())
        if answer:
            following = [Message(role="assistant", content=answer, created_at=clock())]
            turns.end_turn(asked, following, recalled=[], now=clock())


def titles(client, query=""):
    return [item["title"] for item in client.get(f"/api/dynamics{query}").json["items"]]


def make(count, **fields):
    """Rows of notes, the first with the smallest id."""
    with database.scope():
        common = {"category": "note", "created_at": utc_now(), **fields}
        return [Dynamic.create(**{"title": f"Note {number}", **common}).id for number in range(count)]


# -------------------------------------------------------------------------------------------------- the cycle


def test_a_note_has_what_the_model_wrote_and_cites_what_it_rests_on(phone, analysed, fake_llm, clock, remote):
    first, second = analysed("soup", "bread", device_id="pixel")
    said("c0ffee", "What goes with leek?", "Potatoes.", clock, device_id="pixel")
    fake_llm.answer(
        {
            "articles": [
                article("Dinner", first, conversation_ids=["c0ffee"], category="insight", confidence=0.7)
            ]
        }
    )
    (saved,) = reasoner.cycle(remote, clock=clock)
    shown = phone.get(f"/api/dynamics/{saved.id}").json

    assert shown == {
        "id": saved.id,
        "title": "Dinner",
        "summary": "Dinner, in short.",
        "content": "Dinner, at length.",
        "category": "insight",
        "confidence": 0.7,
        "is_read": False,
        "is_pinned": False,
        "device_id": "pixel",
        "created_at": iso(clock()),
        "source_photo_ids": f"[{first}]",
        "source_conversation_ids": '["c0ffee"]',
        "sensitive": [],
    }
    assert second


def test_the_model_is_shown_what_is_new_with_what_is_remembered_and_noted(
    phone, analysed, fake_llm, clock, remote
):
    analysed("soup")
    with database.scope():
        memory.remember(MemoryCandidate("Lives in Bremen."), source_type="chat", now=clock())
        Dynamic.create(title="Bills in December", category="note", created_at=clock())
        Dynamic.create(title="Long ago", category="note", created_at=clock() - timedelta(days=8))
    said("c0ffee", "What goes with leek?", "Potatoes.", clock)
    fake_llm.answer({"articles": []})
    reasoner.cycle(remote, clock=clock)
    (request,) = fake_llm.requests

    for text in (
        "Seen soup.",
        "Library",
        "Lives in Bremen.",
        "Bills in December",
        "user: What goes with leek?",
        "assistant: Potatoes.",
    ):
        assert text in request.text
    assert "Long ago" not in request.text


def test_each_screenshot_and_each_message_is_looked_at_once(phone, analysed, fake_llm, clock, remote):
    fake_llm.default = lambda request: {"articles": []}
    analysed("soup")
    said("c0ffee", "What goes with leek?", "Potatoes.", clock)
    assert reasoner.cycle(remote, clock=clock) == []
    analysed("bread")
    said("c0ffee", "And with bread?", "Butter.", clock)
    reasoner.cycle(remote, clock=clock)
    (request,) = fake_llm.requests

    assert "Seen bread." in request.text
    assert "Butter" in request.text
    assert "soup" not in request.text
    assert "Potatoes" not in request.text


def test_nothing_new_is_no_request_and_no_note(phone, analysed, fake_llm, clock, remote):
    assert reasoner.cycle(remote, clock=clock) == []
    analysed("soup")
    fake_llm.answer({"articles": []})
    reasoner.cycle(remote, clock=clock)
    fake_llm.requests.clear()
    with database.scope():
        memory.remember(MemoryCandidate("Lives in Bremen."), source_type="chat", now=clock())

    assert reasoner.cycle(remote, clock=clock) == []
    assert phone.post("/api/dynamics/trigger").json == {"generated": 0, "articles": []}
    assert fake_llm.requests == []


def test_a_question_is_looked_at_together_with_its_answer(phone, fake_llm, clock, remote):
    fake_llm.default = lambda request: {"articles": []}
    said("c0ffee", "What goes with leek?", None, clock)
    reasoner.cycle(remote, clock=clock)
    assert fake_llm.requests == []
    said("c0ffee", "What goes with leek?", "Potatoes.", clock)
    reasoner.cycle(remote, clock=clock)

    assert "What goes with leek?" in fake_llm.requests[0].text


def test_what_is_not_worth_keeping_is_not_shown(phone, fake_llm, clock, remote):
    phone.upload(draw("keyboard"))
    fake_llm.answer({**SEEN, "intent": "ignore"})
    Worker(remote, clock=clock).work()
    fake_llm.requests.clear()

    assert reasoner.cycle(remote, clock=clock) == []
    assert fake_llm.requests == []


def test_a_result_that_a_person_asked_for_again_is_new(phone, analysed, fake_llm, clock, remote):
    fake_llm.default = lambda request: {"articles": []}
    (photo,) = analysed("soup")
    reasoner.cycle(remote, clock=clock)
    phone.post(f"/api/analysis/{photo}/reprocess")
    fake_llm.answer({**SEEN, "summary": "Seen with fresh eyes."})
    Worker(remote, clock=clock).work()
    fake_llm.requests.clear()
    reasoner.cycle(remote, clock=clock)

    assert "fresh eyes" in fake_llm.requests[0].text


def test_articles_without_a_source_that_was_shown_are_dropped(phone, analysed, fake_llm, clock, remote):
    (photo,) = analysed("soup")
    fake_llm.answer(
        {"articles": [article("Made up", 99), article("Nothing cited"), article("Soup", photo, 99)]}
    )

    assert [saved.title for saved in reasoner.cycle(remote, clock=clock)] == ["Soup"]
    with database.scope():
        assert Dynamic.get().source_photo_ids == f"[{photo}]"


def test_what_was_deleted_while_the_model_was_thinking_is_no_source(phone, analysed, fake_llm, clock, remote):
    kept, gone = analysed("soup", "bread")
    let_go, results = threading.Event(), []
    fake_llm.answer({"articles": [article("Bread", gone), article("Dinner", kept, gone)]}, after=let_go)
    thread = threading.Thread(target=lambda: results.extend(reasoner.cycle(remote, clock=clock)))
    thread.start()
    fake_llm.wait_for_requests(1)
    phone.delete(f"/api/photos/{gone}")
    let_go.set()
    thread.join()

    assert [(saved.title, saved.source_photo_ids) for saved in results] == [("Dinner", f"[{kept}]")]


def test_the_database_is_free_while_the_model_is_thinking(phone, analysed, fake_llm, clock, remote):
    analysed("soup")
    let_go = threading.Event()
    fake_llm.answer({"articles": []}, after=let_go)
    thread = threading.Thread(target=lambda: reasoner.cycle(remote, clock=clock))
    thread.start()
    fake_llm.wait_for_requests(1)
    try:
        with database.store().lock.exclusive(patience=5):
            pass
    finally:
        let_go.set()
        thread.join()


@pytest.mark.parametrize(
    "fail",
    [lambda fake: fake.fail(500), lambda fake: fake.fail(401), lambda fake: fake.answer("No, thank you.")],
)
def test_a_failing_model_costs_nothing_of_what_is_new(phone, analysed, fake_llm, clock, remote, fail, pushed):
    (photo,) = analysed("soup")
    fail(fake_llm)
    with pytest.raises(ModelFailure):
        reasoner.cycle(remote, clock=clock)
    fake_llm.answer({"articles": [article("Soup", photo)]})

    assert titles(phone) == []
    assert [saved.title for saved in reasoner.cycle(remote, clock=clock)] == ["Soup"]
    assert len(pushed) == 1


def test_what_a_cycle_costs_stands_in_the_ledger_also_when_it_failed(
    phone, analysed, fake_llm, clock, remote
):
    analysed("soup")
    fake_llm.answer("nonsense")
    with pytest.raises(ModelFailure):
        reasoner.cycle(remote, clock=clock)
    fake_llm.answer({"articles": []})
    reasoner.cycle(remote, clock=clock)

    with database.scope():
        (row,) = models.SpendLedger.select().where(models.SpendLedger.purpose == "reasoning").dicts()
    assert (row["calls"], row["prompt_tokens"], row["model"]) == (2, 2000, "custom/scripted")


def test_one_screenshot_on_which_the_model_always_fails_does_not_stop_the_notes_for_ever(
    phone, analysed, fake_llm, clock, remote, caplog
):
    ids = analysed("one", "two", "poison", "three", "four")
    shown = set()

    def judge(request):
        if "poison" in request.text:
            return "I would rather not."
        shown.update(photo for photo in ids if f'"id":{photo},' in request.text)
        return {"articles": []}

    fake_llm.default = judge
    for _ in range(20):
        try:
            reasoner.cycle(remote, clock=clock)
        except ModelFailure:
            continue

    assert shown == set(ids) - {ids[2]}
    assert f"the reasoner skips [{ids[2]}]" in caplog.text
    fake_llm.requests.clear()
    assert reasoner.cycle(remote, clock=clock) == []
    assert fake_llm.requests == []


def test_what_does_not_fit_waits_for_the_next_cycle_and_nothing_is_left_out(
    phone, analysed, fake_llm, clock, remote, monkeypatch
):
    monkeypatch.setattr(reasoner, "MOST_NEW", 2)
    ids = analysed(*"abcde")
    fake_llm.default = lambda request: {"articles": []}
    for _ in range(4):
        reasoner.cycle(remote, clock=clock)
    shown = [[photo for photo in ids if f'"id":{photo},' in request.text] for request in fake_llm.requests]

    assert shown == [ids[3:], ids[1:3], ids[:1]]


@pytest.mark.slow
def test_a_prompt_fits_the_models_context(phone, analysed, fake_llm, clock, remote, monkeypatch):
    monkeypatch.setattr(reasoner, "MOST_TOKENS", 1_000)
    analysed(*"abcdefgh")
    fake_llm.default = lambda request: {"articles": []}
    for _ in range(8):
        reasoner.cycle(remote, clock=clock)

    assert len(fake_llm.requests) > 1
    assert all(context.tokens(request.text) <= 1_000 for request in fake_llm.requests)
    assert sum(request.text.count("Seen ") for request in fake_llm.requests) == 8
    monkeypatch.setattr(reasoner, "MOST_TOKENS", 1)
    analysed("i")
    reasoner.cycle(remote, clock=clock)
    assert "Seen i." in fake_llm.requests[-1].text


def test_looking_for_what_is_new_does_not_walk_through_what_is_known(
    phone, analysed, fake_llm, clock, remote
):
    fake_llm.default = lambda request: {"articles": []}
    analysed("soup")
    said("c0ffee", "What goes with leek?", "Potatoes.", clock)
    statements = []
    database.db.query_hooks.append(statements.append)
    try:
        reasoner.cycle(remote, clock=clock)
    finally:
        database.db.query_hooks.clear()
    reading = [event for event in statements if event.sql.lstrip().startswith("SELECT")]
    tables = ("analyses", "messages", "shown")
    reading = [event for event in reading if any(table in event.sql for table in tables)]

    assert len(reading) == 6
    with database.scope():
        for event in reading:
            for *_, step in database.db.execute_sql(
                f"EXPLAIN QUERY PLAN {event.sql}", event.params
            ).fetchall():
                # Conversations, t1 of a CROSS JOIN, are few beside their messages: each is asked for its new
                # ones.
                allowed = "analyses_to_note" in step or ("SCAN t1" in step and "CROSS JOIN" in event.sql)
                allowed |= step.startswith("SCAN json_each ")  # ids that were given
                assert allowed or not step.startswith("SCAN"), f"{event.sql}\n{step}"
                assert "status=?" not in step, f"{event.sql}\n{step}"


# ----------------------------------------------------------------------------------- continuing earlier notes


@pytest.mark.parametrize("how", [{"updates": 1}, {"title": "the Flight, to Berlin"}])
def test_an_article_that_goes_on_where_a_note_ends_continues_it(
    phone, analysed, fake_llm, clock, remote, pushed, how
):
    (first,) = analysed("ticket")
    fake_llm.answer({"articles": [article("The flight to Berlin", first)]})
    (saved,) = reasoner.cycle(remote, clock=clock)
    phone.put(f"/api/dynamics/{saved.id}/read")
    phone.put(f"/api/dynamics/{saved.id}/pin")
    (second,) = analysed("gate")
    clock.move(hours=5)
    fake_llm.answer({"articles": [{**article("Gate 7 for Berlin", second), **how}]})

    assert reasoner.cycle(remote, clock=clock) == []
    shown = phone.get(f"/api/dynamics/{saved.id}").json
    assert len(titles(phone)) == 1
    assert (shown["is_read"], shown["is_pinned"]) == (False, True)
    assert shown["created_at"] == iso(saved.created_at)
    assert shown["content"].startswith("Gate 7 for Berlin, at length.")
    assert shown["content"].endswith("The flight to Berlin, at length.")
    assert shown["summary"] == "Gate 7 for Berlin, in short."
    assert json.loads(shown["source_photo_ids"]) == [first, second]
    assert len(pushed) == 1


def test_two_articles_of_one_answer_with_the_same_title_are_one_note(
    phone, analysed, fake_llm, clock, remote
):
    (photo,) = analysed("ticket")
    fake_llm.answer(
        {"articles": [article("The flight to Berlin", photo), article("The flight to Berlin!", photo)]}
    )

    assert len(reasoner.cycle(remote, clock=clock)) == 1
    assert len(titles(phone)) == 1


def test_a_title_that_differs_by_a_number_is_another_note(phone, analysed, fake_llm, clock, remote):
    (photo,) = analysed("ticket")
    fake_llm.answer({"articles": [article("Expenses of the household in week 47", photo)]})
    reasoner.cycle(remote, clock=clock)
    (photo,) = analysed("bill")
    fake_llm.answer({"articles": [article("Expenses of the household in week 48", photo)]})

    assert len(reasoner.cycle(remote, clock=clock)) == 1


def test_a_note_that_was_deleted_meanwhile_is_not_continued_but_new(phone, analysed, fake_llm, clock, remote):
    (photo,) = analysed("ticket")
    (note,) = make(1, title="Flight", created_at=clock())
    let_go, results = threading.Event(), []
    fake_llm.answer({"articles": [article("Gate 7", photo, updates=note)]}, after=let_go)
    thread = threading.Thread(target=lambda: results.extend(reasoner.cycle(remote, clock=clock)))
    thread.start()
    fake_llm.wait_for_requests(1)
    phone.delete(f"/api/dynamics/{note}")
    let_go.set()
    thread.join()

    assert titles(phone) == ["Gate 7"]
    assert len(results) == 1


# -------------------------------------------------------------------------------------------------- by device


def test_a_cycle_for_a_device_looks_at_that_device_only_and_takes_nothing_from_the_others(
    phone, analysed, fake_llm, clock, remote
):
    (mine,), (theirs,) = analysed("mine", device_id="pixel"), analysed("theirs", device_id="tablet")
    said("aa", "My question", "My answer", clock, device_id="pixel")
    said("bb", "Their question", "Their answer", clock, device_id="tablet")
    fake_llm.answer({"articles": [article("Mine", mine), article("Theirs", theirs)]})
    answer = phone.post("/api/dynamics/trigger?device_id=pixel").json
    fake_llm.answer({"articles": [article("All", theirs)]})
    reasoner.cycle(remote, clock=clock)
    by_device, by_all = fake_llm.requests

    assert answer == {"generated": 1, "articles": [{"title": "Mine", "category": "note"}]}
    assert "Seen mine." in by_device.text
    assert "My answer" in by_device.text
    assert "Seen theirs." not in by_device.text
    assert "Their answer" not in by_device.text
    assert "Seen theirs." in by_all.text
    assert "Their answer" in by_all.text
    assert "Seen mine." not in by_all.text
    assert titles(phone, "?device_id=pixel") == ["Mine"]
    assert titles(phone, "?device_id=tablet") == ["All"]


def test_a_note_from_several_devices_belongs_to_none(phone, analysed, fake_llm, clock, remote):
    ids = analysed("one", device_id="pixel") + analysed("two", device_id="tablet")
    fake_llm.answer({"articles": [article("Both", *ids)]})
    (saved,) = reasoner.cycle(remote, clock=clock)

    assert saved.device_id == ""


# --------------------------------------------------------------------------------------------- embedded model


@pytest.mark.parametrize(
    ("language", "title"),
    [("en", "Power bill: {day:%a} {day.day} {day:%b}"), ("zh", "Power bill：{day.month}月{day.day}日")],
)
def test_the_embedded_model_writes_of_what_is_due_in_both_languages(
    phone, analysed, settings, clock, language, title
):
    day = clock.now + timedelta(days=10)
    analysed("soup", found={"entities": [], "intent": "note"})
    (bill,) = analysed(
        "bill", found={"title": "Power bill", "entities": [{"type": "amount", "value": "$48.20"}]}
    )
    with database.scope():
        due = Line(f"Your bill is due {day:%Y-%m-%d}", 0.99, 40, 60, 400, 100)
        readings.save(bill, Page(540, 960, [due]), reader="small")
        agenda.renew(bill, readings.page(bill), now=clock.now)
    (saved,) = reasoner.cycle(dataclasses.replace(settings, language=language), clock=clock)

    assert (saved.title, saved.category) == (title.format(day=day), "reminder")
    assert json.loads(saved.source_photo_ids) == [bill]
    with database.scope():
        assert not models.SpendLedger.select().where(models.SpendLedger.purpose == "reasoning").exists()


def test_the_embedded_model_writes_no_note_without_a_reason(phone, analysed, settings, clock):
    analysed("soup", "bread", found={"title": "Leek soup", "entities": [], "intent": "reference"})

    assert reasoner.cycle(settings, clock=clock) == []
    assert reasoner.cycle(settings, clock=clock) == []


def test_the_embedded_model_compares_with_screenshots_of_earlier_cycles(phone, analysed, settings, clock):
    def taken():
        return str(int(clock.now.timestamp() * 1000))

    found = {"title": "Chat with Anna", "content_category": "chat", "entities": [], "intent": "note"}
    (first,) = analysed("monday", found=found, original_timestamp=taken())
    assert reasoner.cycle(settings, clock=clock) == []
    clock.move(hours=48)
    (second,) = analysed("wednesday", found=found, original_timestamp=taken())
    (saved,) = reasoner.cycle(settings, clock=clock)

    assert json.loads(saved.source_photo_ids) == [first, second]
    clock.move(hours=24 * 40)
    analysed("later", found=found, original_timestamp=taken())
    assert reasoner.cycle(settings, clock=clock) == []  # too long ago to belong together


# ------------------------------------------------------------------------------------------------------- push


def test_new_notes_are_pushed_once_for_all(phone, analysed, fake_llm, clock, remote, pushed):
    (photo,) = analysed("soup")
    fake_llm.answer({"articles": [article(title, photo) for title in ("Soup", "Bread", "Milk", "Salt")]})
    reasoner.cycle(remote, clock=clock)

    assert pushed == [push.new_notes(["Soup", "Bread", "Milk", "Salt"], "en")]


def test_a_push_that_fails_does_not_fail_the_cycle(
    phone, analysed, fake_llm, clock, remote, monkeypatch, caplog
):
    def fail(settings, notification):
        raise Unavailable("Busy.")

    monkeypatch.setattr(push, "broadcast", fail)
    (photo,) = analysed("soup")
    fake_llm.answer({"articles": [article("Soup", photo)]})

    assert len(reasoner.cycle(remote, clock=clock)) == 1
    assert "Busy" in caplog.text


# ----------------------------------------------------------------------------------------------------- limits


def test_when_the_days_tokens_are_used_up_what_is_new_waits_for_the_next_day(
    phone, analysed, fake_llm, clock, remote
):
    (photo,) = analysed("soup")
    limited = dataclasses.replace(remote, daily_token_limit=1)
    with pytest.raises(Unavailable) as caught:
        reasoner.cycle(limited, clock=clock)
    assert 0 < caught.value.retry_after <= 86_400
    assert fake_llm.requests == []
    clock.move(days=1)
    fake_llm.answer({"articles": [article("Soup", photo)]})

    assert len(reasoner.cycle(limited, clock=clock)) == 1


def test_nothing_new_needs_no_tokens(phone, clock, remote):
    assert reasoner.cycle(dataclasses.replace(remote, daily_token_limit=1), clock=clock) == []


def test_one_cycle_runs_one_waits_and_the_third_is_sent_away(phone, analysed, fake_llm, remote):
    (photo,) = analysed("soup")
    let_go, results = threading.Event(), []
    fake_llm.answer({"articles": [article("Soup", photo)]}, after=let_go)

    def run():
        try:
            results.append(len(reasoner.cycle(remote)))
        except Unavailable:
            results.append("sent away")

    first = threading.Thread(target=run)
    first.start()
    fake_llm.wait_for_requests(1)
    others = [threading.Thread(target=run) for _ in range(2)]
    for thread in others:
        thread.start()
    _until(lambda: results == ["sent away"])
    refused = phone.post("/api/dynamics/trigger")
    let_go.set()
    for thread in (first, *others):
        thread.join()

    assert "already waiting" in detail(refused, 503)
    assert int(refused.headers["Retry-After"]) > 0
    assert sorted(results, key=str) == [0, 1, "sent away"]
    assert len(fake_llm.requests) == 1
    assert titles(phone) == ["Soup"]


# --------------------------------------------------------------------------------------------------- counting


@pytest.fixture
def cycles(monkeypatch):
    """The cycles that were run; what one does is told elsewhere."""
    run = []
    monkeypatch.setattr(reasoner, "cycle", lambda settings, *, clock: run.append(clock()) or [])
    return run


def complete(count):
    with database.scope():
        for _ in range(count):
            reasoner.count_completed()


def run_all(settings, clock):
    while reasoner.run_if_due(settings, clock=clock):
        pass


def test_every_third_completed_analysis_makes_a_cycle(phone, analysed, fake_llm, remote, clock):
    ids = analysed("a", "b")
    assert reasoner.run_if_due(remote, clock=clock) is False
    ids += analysed("c")
    fake_llm.answer({"articles": [article("Three", *ids)]})
    assert reasoner.run_if_due(remote, clock=clock) is True
    assert reasoner.run_if_due(remote, clock=clock) is False

    assert titles(phone) == ["Three"]
    analysed("d", "e")
    assert reasoner.run_if_due(remote, clock=clock) is False
    analysed("f")
    assert reasoner.run_if_due(remote, clock=clock) is True


def test_copies_of_identical_pictures_count_as_completed_too(
    phone, fake_llm, remote, clock, cycles, work_queue
):
    for _ in range(3):
        phone.upload(draw("same"))
    work_queue(remote, clock=clock)

    assert len(fake_llm.requests) == 1
    assert reasoner.run_if_due(remote, clock=clock) is True


@pytest.mark.parametrize(("completed", "expected"), [(2, 0), (3, 1), (5, 1), (6, 2), (9, 3)])
def test_so_many_completed_at_once_make_so_many_cycles(app, settings, clock, cycles, completed, expected):
    complete(completed)
    run_all(settings, clock)

    assert len(cycles) == expected


def test_the_count_survives_a_restart(app, settings, clock, cycles):
    complete(2)
    create_app(settings)
    complete(1)
    create_app(settings)

    assert reasoner.run_if_due(settings, clock=clock) is True


def test_a_thousand_completed_at_once_make_a_few_cycles(app, settings, clock, cycles):
    complete(1000)
    run_all(settings, clock)

    assert 1 <= len(cycles) <= 3


@pytest.mark.slow
def test_a_thousand_completed_over_an_hour_make_a_few_cycles_and_one_at_the_end(
    client, settings, clock, cycles
):
    client.upload(draw("still waiting"))
    for _ in range(1000):
        complete(1)
        clock.move(seconds=3.6)
        reasoner.run_if_due(settings, clock=clock)
    during = len(cycles)
    assert reasoner.run_if_due(settings, clock=clock) is False
    complete(3)
    client.delete("/api/photos/1")
    run_all(settings, clock)

    assert 3 + 10 <= during <= 3 + 12
    assert len(cycles) == during + 1


def test_after_an_import_six_make_two_again(client, settings, clock, cycles):
    client.upload(draw("still waiting"))
    for _ in range(30):
        complete(3)
        reasoner.run_if_due(settings, clock=clock)
    client.delete("/api/photos/1")
    run_all(settings, clock)
    cycles.clear()
    client.upload(draw("another"))
    complete(6)
    run_all(settings, clock)

    assert len(cycles) == 2


def test_a_cycle_that_fails_is_not_repeated_but_its_material_is_kept(
    phone, analysed, fake_llm, remote, clock, caplog
):
    ids = analysed("a", "b", "c")
    fake_llm.fail(503)

    assert reasoner.run_if_due(remote, clock=clock) is True
    assert reasoner.run_if_due(remote, clock=clock) is False
    assert "cycle failed" in caplog.text
    fake_llm.answer({"articles": [article("Three", *ids)]})
    assert len(reasoner.cycle(remote, clock=clock)) == 1


@pytest.mark.slow
def test_the_reasoners_thread_runs_what_is_due(app, remote, fake_llm, monkeypatch, work_queue):
    monkeypatch.setattr(reasoner, "LOOK_AGAIN", 0.01)
    client = Client(create_app(remote))
    for name in "abc":
        client.upload(draw(name))
    loop = reasoner.loop(remote)
    loop.start()
    try:
        fake_llm.default = lambda request: (
            SEEN if request.images else {"articles": [article("Three", 1, 2, 3)]}
        )
        work_queue(remote)
        _until(lambda: titles(client) == ["Three"])
    finally:
        loop.stop()
        loop.join(90)


# -------------------------------------------------------------------------------------------------- over HTTP


def walk(client, limit, query=""):
    """The ids of all pages, in order."""
    seen, cursor = [], 0
    for _ in range(200):
        answer = client.get(f"/api/dynamics?limit={limit}&cursor={cursor}{query}").json
        seen += [item["id"] for item in answer["items"]]
        cursor = answer["next_cursor"]
        assert answer["has_more"] == (cursor != 0)
        if not cursor:
            return seen
        assert cursor == seen[-1]
    raise AssertionError("the pages never end")


@given(pinned=st.lists(st.booleans(), max_size=25), limit=st.integers(1, 8), freshly=st.booleans())
@examples(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_pages_show_each_item_once_pinned_first_then_the_latest(client, pinned, limit, freshly):
    with database.scope():
        Dynamic.delete().execute()
    ids = make(len(pinned))
    for dynamic_id in itertools.compress(ids, pinned):
        if freshly:
            client.put(f"/api/dynamics/{dynamic_id}/pin")
        else:
            with database.scope():
                Dynamic.update(is_pinned=True).where(Dynamic.id == dynamic_id).execute()
    expected = sorted(ids, key=lambda dynamic_id: (pinned[dynamic_id - ids[0]], dynamic_id), reverse=True)

    assert walk(client, limit) == expected


@given(
    pinned=st.lists(st.booleans(), min_size=1, max_size=12),
    limit=st.integers(1, 4),
    changes=st.lists(st.tuples(st.sampled_from(["pin", "delete"]), st.integers(0, 11)), max_size=10),
)
@examples(max_examples=at_least(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_pinned_and_deleted_meanwhile_costs_the_reader_no_other_item(client, pinned, limit, changes):
    """Each that was left alone is seen once, unless it was the very item at which a page ended that changed;
    the pages always end.
    """
    with database.scope():
        Dynamic.delete().execute()
    ids = make(len(pinned))
    with database.scope():
        Dynamic.update(is_pinned=True).where(Dynamic.id.in_(list(itertools.compress(ids, pinned)))).execute()
    seen, touched, kept_its_place, cursor, pending = [], set(), True, 0, iter(changes)
    for _ in range(100):
        answer = client.get(f"/api/dynamics?limit={limit}&cursor={cursor}").json
        seen += [item["id"] for item in answer["items"]]
        cursor = answer["next_cursor"]
        if not cursor:
            break
        for change, place in itertools.islice(pending, 2):
            chosen = ids[place % len(ids)]
            touched.add(chosen)
            if change == "pin":
                client.put(f"/api/dynamics/{chosen}/pin")
            else:
                client.delete(f"/api/dynamics/{chosen}")
        kept_its_place &= cursor not in touched
    else:
        raise AssertionError("the pages never end")

    if kept_its_place:
        assert sorted(set(seen) - touched) == sorted(set(ids) - touched)
        assert len([one for one in seen if one not in touched]) == len(set(ids) - touched)


def test_pages_may_differ_in_size(client):
    ids = make(9)
    with database.scope():
        Dynamic.update(is_pinned=True).where(Dynamic.id.in_(ids[:5])).execute()
    first = client.get("/api/dynamics?limit=2").json
    second = client.get(f"/api/dynamics?limit=30&cursor={first['next_cursor']}").json

    assert [item["id"] for item in first["items"] + second["items"]] == [*ids[4::-1], *ids[:4:-1]]


@pytest.mark.parametrize("change", ["pin", "delete"])
@pytest.mark.parametrize("limit", [2, 3])
def test_a_cursor_whose_item_was_pinned_or_deleted_meanwhile_goes_on_where_it_stood(client, change, limit):
    ids = make(9)
    client.put(f"/api/dynamics/{ids[0]}/pin")
    first = client.get(f"/api/dynamics?limit={limit}").json
    seen, cursor = [item["id"] for item in first["items"]], first["next_cursor"]
    if change == "pin":
        client.put(f"/api/dynamics/{cursor}/pin")
    else:
        client.delete(f"/api/dynamics/{cursor}")
    while cursor:
        following = client.get(f"/api/dynamics?limit={limit}&cursor={cursor}").json
        seen += [item["id"] for item in following["items"]]
        cursor = following["next_cursor"]

    assert seen == [ids[0], *ids[:0:-1]]


def test_a_list_filters_by_category_and_device_also_over_pages(client):
    wanted = make(5, category="report", device_id="pixel")
    make(5, category="report", device_id="tablet")
    make(5, device_id="pixel")

    assert walk(client, 2, "&category=report&device_id=pixel") == wanted[::-1]
    assert len(walk(client, 4, "&category=report")) == 10
    assert len(walk(client, 3, "&device_id=pixel")) == 10
    assert "category: must be one of" in detail(client.get("/api/dynamics?category=panic"), 400)
    assert detail(client.get("/api/dynamics?limit=101"), 400) == "limit: must be between 1 and 100"
    detail(client.get("/api/dynamics?cursor=-1"), 400)


def test_a_list_item_has_exactly_the_contracts_fields(client):
    make(1)
    (item,) = client.get("/api/dynamics").json["items"]

    assert set(item) == {
        "id",
        "title",
        "summary",
        "category",
        "confidence",
        "is_read",
        "is_pinned",
        "device_id",
        "created_at",
        "sensitive",
    }


@pytest.mark.parametrize("count", [1, 60])
def test_a_list_makes_a_fixed_number_of_queries(client, count):
    ids = make(count)
    statements = []
    database.db.query_hooks.append(statements.append)
    try:
        client.get("/api/dynamics")
        first = len(statements)
        client.get(f"/api/dynamics?cursor={ids[-1]}")
    finally:
        database.db.query_hooks.clear()

    assert (first, len(statements) - first) == (1, 3)


def test_read_pin_and_delete(client):
    first, second = make(2)
    assert client.put(f"/api/dynamics/{first}/read").json["is_read"] is True
    assert client.get(f"/api/dynamics/{first}").json["is_read"] is True
    assert client.put(f"/api/dynamics/{first}/pin").json == {"is_pinned": True}
    assert [item["id"] for item in client.get("/api/dynamics").json["items"]] == [first, second]
    assert client.put(f"/api/dynamics/{first}/pin").json == {"is_pinned": False}
    assert client.delete(f"/api/dynamics/{first}").json == {"message": "Deleted"}

    assert [item["id"] for item in client.get("/api/dynamics").json["items"]] == [second]


@pytest.mark.parametrize(("method", "path"), [("get", ""), ("put", "/read"), ("put", "/pin"), ("delete", "")])
def test_an_unknown_note_is_404(client, method, path):
    assert detail(getattr(client, method)(f"/api/dynamics/7{path}"), 404) == "Dynamic not found"


@pytest.mark.parametrize(
    "given", [{"query_string": {"device_id": "pixel"}}, {"json": {"device_id": "pixel"}}]
)
def test_read_all_of_a_device_takes_it_from_the_query_or_the_body(client, given):
    make(2, device_id="pixel")
    make(3, device_id="tablet")

    assert client.put("/api/dynamics/read-all", **given).json["updated"] == 2
    assert client.put("/api/dynamics/read-all", **given).json["updated"] == 0
    assert client.put("/api/dynamics/read-all").json["updated"] == 3
    assert client.get("/api/dynamics/stats").json["total_unread"] == 0


def test_statistics_count_the_unread_and_all_by_category(client):
    assert client.get("/api/dynamics/stats").json == {"total_unread": 0, "by_category": {}}
    first, *_ = make(3, category="report")
    make(2, category="insight")
    client.put(f"/api/dynamics/{first}/read")

    assert client.get("/api/dynamics/stats").json == {
        "total_unread": 4,
        "by_category": {"report": 3, "insight": 2},
    }


def test_a_failing_model_is_502_on_trigger_with_a_sentence_without_the_key(phone, analysed, fake_llm):
    analysed("soup")
    fake_llm.fail(401, "Bad key sk-scripted-secret.")
    sentence = detail(phone.post("/api/dynamics/trigger", json={}), 502)

    assert "401" in sentence
    assert "scripted-secret" not in sentence


def test_used_up_tokens_are_503_on_trigger(app, analysed, remote):
    analysed("soup")
    limited = Client(create_app(dataclasses.replace(remote, daily_token_limit=1)))
    with database.scope():
        models.SpendLedger.update(day=utc_now().date().isoformat()).execute()
    answer = limited.post("/api/dynamics/trigger", json={"device_id": ""})

    assert "used up" in detail(answer, 503)
    assert int(answer.headers["Retry-After"]) > 0


def test_a_body_that_names_no_text_as_device_is_400(client):
    assert (
        detail(client.post("/api/dynamics/trigger", json={"device_id": 5}), 400)
        == "device_id: must be a text"
    )
    detail(client.put("/api/dynamics/read-all", json=[]), 400)


def _until(condition, seconds=90.0):
    """Wait for a condition that other threads bring about."""
    import time

    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never came true"
        threading.Event().wait(0.01)
