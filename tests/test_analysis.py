"""The queue: whose turn it is, what a failure costs, when the circuit opens, and what survives a death."""

import dataclasses
import json
import threading
from datetime import datetime, timedelta

import pytest

import claims
import database
import lexicon
import llm
import models
import readings
import uploads
from analysis import listing
from analysis.pool import Pool, Worker
from clock import local_time, utc_now
from engines.circuit import Circuit
from engines.findings import Entity, Findings
from engines.lines import Line, Page
from engines.records import Field, Record
from models import Analysis
from rules import embedded
from rules.embedded import LocalModel
from tests.support.client import Client, detail
from tests.support.drawing import draw
from tests.support.fake_llm import FINDINGS


@pytest.fixture
def turn(remote, clock):
    """One turn of the queue with the fake server as the model; False when nothing was due."""
    return lambda settings=remote: Worker(settings, clock=clock).work()


def shown(client, photo):
    return client.get(f"/api/photos/{photo}").json["analysis"]


def upload(client, *texts, **fields):
    return [client.upload(draw(text), f"{text}.png", **fields).json["id"] for text in texts]


def test_a_finished_analysis_has_the_models_findings(client, fake_llm, turn):
    (photo,) = upload(client, "library")
    assert turn() is True
    assert turn() is False

    found = shown(client, photo)
    assert found["status"] == "done"
    assert found["completed_at"] is not None
    assert found["error_message"] is None
    for field in ("app_name", "content_category", "intent", "summary", "confidence"):
        assert found[field] == FINDINGS[field]
    assert json.loads(found["entities"]) == FINDINGS["entities"]
    assert "library book" in found["llm_response"]
    item = client.get("/api/photos").json["items"][0]
    assert (item["analysis_status"], item["intent"], item["summary"]) == (
        "done",
        "reminder",
        FINDINGS["summary"],
    )


def test_the_oldest_photo_is_analysed_first(client, fake_llm, turn):
    upload(client, "first", "second", "third")
    for _ in range(3):
        turn()

    assert [
        text in request.text
        for request, text in zip(fake_llm.requests, ("first", "second", "third"), strict=True)
    ] == [True] * 3


def test_identical_bytes_are_analysed_once(client, fake_llm, turn):
    for device in ("phone", "tablet", "watch"):
        upload(client, "same", device_id=device)
    while turn():
        pass

    assert len(fake_llm.requests) == 1
    assert client.get("/api/stats").json["done"] == 3
    assert {item["summary"] for item in client.get("/api/photos").json["items"]} == {FINDINGS["summary"]}


def test_identical_bytes_are_never_analysed_side_by_side(client, fake_llm, worker):
    upload(client, "same", "same")
    let_go = threading.Event()
    fake_llm.answer(after=let_go)
    first = threading.Thread(target=worker.work)
    first.start()
    fake_llm.wait_for_requests(1)
    try:
        assert worker.work() is False
    finally:
        let_go.set()
        first.join()

    assert worker.work() is True
    assert len(fake_llm.requests) == 1
    assert client.get("/api/stats").json["done"] == 2


def test_an_analysis_waits_for_a_crowd_of_uploads_but_not_for_one(client, fake_llm, worker, monkeypatch):
    monkeypatch.setattr("analysis.pool.UPLOADS_FIRST", 60.0)
    upload(client, "one", "two")
    arriving = database.store().cache(uploads.Arriving)
    with arriving.one():
        assert worker.work() is True
        working = threading.Thread(target=worker.work)
        with arriving.one():
            working.start()
            working.join(0.2)
            assert len(fake_llm.requests) == 1
        working.join(90)

    assert client.get("/api/stats").json["done"] == 2


def test_an_analysis_does_not_wait_for_ever_while_uploads_go_on(client, fake_llm, worker, monkeypatch):
    monkeypatch.setattr("analysis.pool.UPLOADS_FIRST", 0.01)
    upload(client, "one")
    arriving = database.store().cache(uploads.Arriving)
    with arriving.one(), arriving.one():
        assert worker.work() is True

    assert client.get("/api/stats").json["done"] == 1


def test_a_result_of_another_analyser_is_not_taken_over(client, fake_llm, remote, turn):
    upload(client, "same")
    turn()
    upload(client, "same")
    turn(dataclasses.replace(remote, llm_model="a better one"))

    assert len(fake_llm.requests) == 2


def test_asking_again_asks_the_model_and_keeps_the_old_result_until_then(client, fake_llm, turn):
    (photo,) = upload(client, "library")
    turn()
    assert client.post(f"/api/analysis/{photo}/reprocess").json == {"message": "Reprocessing queued"}
    waiting = shown(client, photo)
    fake_llm.answer({**FINDINGS, "summary": "Seen with fresh eyes.", "visible_text": "Zanzibar"})
    turn()

    assert (waiting["status"], waiting["summary"]) == ("pending", FINDINGS["summary"])
    assert shown(client, photo)["summary"] == "Seen with fresh eyes."
    assert len(fake_llm.requests) == 2
    assert client.get("/api/search?q=zanzibar").json["total"] == 1
    assert client.get("/api/search?q=library").json["total"] == 0
    detail(client.post("/api/analysis/999/reprocess"), 404)


def test_a_providers_failure_is_tried_three_times_with_growing_delays_and_then_told(
    client, fake_llm, turn, clock
):
    (photo,) = upload(client, "library")
    for _ in range(3):
        fake_llm.fail(500, "Out of order.")
    assert turn()
    assert turn() is False
    clock.move(seconds=2)
    assert turn()
    clock.move(seconds=7)
    assert turn() is False
    clock.move(seconds=1)
    assert turn()

    found = shown(client, photo)
    assert found["status"] == "error"
    assert "500" in found["error_message"]
    assert len(fake_llm.requests) == 3


def test_a_row_that_waits_for_another_try_says_why(client, fake_llm, turn):
    (photo,) = upload(client, "library")
    fake_llm.fail(503)
    turn()

    found = shown(client, photo)
    assert found["status"] == "pending"
    assert "503" in found["error_message"]


def test_a_provider_that_asks_to_wait_is_not_asked_before(client, fake_llm, turn, clock):
    (photo,) = upload(client, "library")
    fake_llm.fail(429, headers={"Retry-After": "90"})
    turn()
    clock.move(seconds=89)
    assert turn() is False
    clock.move(seconds=1)
    assert turn() is True

    assert shown(client, photo)["status"] == "done"


def test_after_three_failures_in_a_row_the_queue_waits_and_costs_its_rows_nothing(
    client, fake_llm, turn, clock
):
    photos = upload(client, *"abcdef")
    for _ in range(3):
        fake_llm.fail(502)
    for _ in range(3):
        assert turn()
    clock.move(seconds=29)

    assert turn() is False
    assert len(fake_llm.requests) == 3
    assert {shown(client, photo)["status"] for photo in photos} == {"pending"}


@pytest.mark.slow
def test_while_the_provider_is_down_one_probe_goes_out_at_growing_intervals(client, fake_llm, turn, clock):
    upload(client, *"abcdef")
    fake_llm.default = lambda request: pytest.fail("every answer of this test is scripted")
    for _ in range(8):
        fake_llm.fail(502)
    for _ in range(3):
        turn()
    waited = []
    for _ in range(5):
        start = clock.now
        while not turn():
            clock.move(seconds=10)
        waited.append((clock.now - start).total_seconds())

    assert waited == [30, 60, 120, 240, 480]
    assert len(fake_llm.requests) == 8
    assert client.get("/api/stats").json["errors"] == 0


def test_when_the_provider_answers_again_everything_is_made_up_by_itself(client, fake_llm, turn, clock):
    failed = upload(client, "a")
    for _ in range(3):
        fake_llm.fail(500)
        turn()
        clock.move(seconds=8)
    waiting = upload(client, "b", "c")
    assert shown(client, failed[0])["status"] == "error"
    clock.move(seconds=30)
    while turn():
        pass

    assert {shown(client, photo)["status"] for photo in failed + waiting} == {"done"}
    assert shown(client, failed[0])["error_message"] is None


def test_a_failed_row_alone_is_probed_when_nothing_else_waits(client, fake_llm, turn, clock):
    (photo,) = upload(client, "a")
    for _ in range(3):
        fake_llm.fail(500)
        turn()
        clock.move(seconds=8)
    clock.move(seconds=30)

    assert turn() is True
    assert shown(client, photo)["status"] == "done"


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_refusal_is_an_error_at_once_and_stops_the_queue_until_the_configuration_changes(
    client, fake_llm, turn, remote, clock, status
):
    first, second = upload(client, "a", "b")
    fake_llm.fail(status, "No.")
    turn()
    clock.move(days=2)

    assert turn() is False
    assert str(status) in shown(client, first)["error_message"]
    assert (shown(client, first)["status"], shown(client, second)["status"]) == ("error", "pending")
    changed = dataclasses.replace(remote, llm_api_key="sk-another")
    assert turn(changed)
    assert turn(changed)
    assert client.get("/api/stats").json["done"] == 2


def test_a_person_who_asks_again_gets_one_more_try_at_a_provider_that_refused(client, fake_llm, turn):
    first, _second = upload(client, "a", "b")
    fake_llm.fail(401)
    turn()
    assert turn() is False
    client.post(f"/api/analysis/{first}/reprocess")
    while turn():
        pass

    assert client.get("/api/stats").json["done"] == 2


def test_a_probe_after_a_refusal_that_finds_the_provider_down_is_not_repeated_at_once(
    client, fake_llm, turn, clock
):
    first, _second = upload(client, "a", "b")
    fake_llm.fail(401)
    turn()
    client.post(f"/api/analysis/{first}/reprocess")
    clock.move(minutes=1)
    fake_llm.fail(500)
    assert turn()

    clock.move(seconds=29)
    assert turn() is False
    clock.move(seconds=1)
    assert turn()


def test_a_thread_does_not_spin_on_what_is_due_but_may_not_be_taken(client, remote, clock, fake_llm):
    limited = dataclasses.replace(remote, daily_token_limit=1)
    upload(client, "a", "b")
    worker = Worker(limited, clock=clock)
    assert worker.work()
    assert worker.work() is False
    with database.scope():
        assert claims.seconds_until_due(now=clock()) >= 1
        models.store_value("analysis.circuit", Circuit(open=True, probe_at=clock()))
        assert claims.seconds_until_due(now=clock() + timedelta(hours=1)) >= 1


def test_an_unreadable_answer_is_tried_three_times_and_costs_only_its_row(client, fake_llm, turn, clock):
    bad, good = upload(client, "bad", "good")
    fake_llm.default = lambda request: "I would rather not." if "bad" in request.text else FINDINGS
    for _ in range(6):
        turn()
        clock.move(seconds=10)

    assert shown(client, bad)["status"] == "error"
    assert shown(client, bad)["error_message"]
    assert shown(client, good)["status"] == "done"
    assert sum("bad" in request.text for request in fake_llm.requests) == 3


def test_an_answer_that_was_cut_off_is_not_stored_as_if_it_were_whole(client, fake_llm, turn):
    (photo,) = upload(client, "library")
    fake_llm.answer(finish_reason="length")
    turn()

    assert shown(client, photo)["summary"] == ""
    assert shown(client, photo)["status"] == "pending"


def test_values_outside_the_lists_become_other_and_note(client, fake_llm, turn):
    (photo,) = upload(client, "library")
    fake_llm.answer({**FINDINGS, "content_category": "spreadsheet", "intent": "panic", "confidence": 7})
    turn()

    found = shown(client, photo)
    assert (found["content_category"], found["intent"], found["confidence"]) == ("other", "note", 1.0)


def test_a_stored_file_that_is_damaged_ends_its_row_without_a_call(client, fake_llm, turn, settings):
    (photo,) = upload(client, "library")
    (settings.data_dir / client.get(f"/api/photos/{photo}").json["original_path"]).write_bytes(b"gone")
    turn()

    assert "damaged" in shown(client, photo)["error_message"]
    assert shown(client, photo)["status"] == "error"
    assert fake_llm.requests == []


def delete_while_analysed(client, photo, fake_llm, worker):
    let_go = threading.Event()
    fake_llm.answer(after=let_go)
    thread = threading.Thread(target=worker.work)
    thread.start()
    fake_llm.wait_for_requests(1)
    assert client.delete(f"/api/photos/{photo}").status_code == 200
    let_go.set()
    thread.join()


def test_a_photo_that_is_deleted_while_it_is_analysed_leaves_nothing(client, fake_llm, worker):
    (photo,) = upload(client, "library")
    delete_while_analysed(client, photo, fake_llm, worker)

    assert client.get("/api/stats").json["total_analyses"] == 0
    assert client.get("/api/search?q=library").json["total"] == 0


def test_a_result_that_comes_after_its_lease_ended_is_discarded(client, fake_llm, remote, clock, worker):
    (photo,) = upload(client, "library")
    let_go = threading.Event()
    fake_llm.answer({**FINDINGS, "summary": "too late"}, after=let_go)
    thread = threading.Thread(target=worker.work)
    thread.start()
    fake_llm.wait_for_requests(1)
    clock.move(minutes=6)
    other = Worker(remote, clock=clock)
    with database.scope():
        assert other.recover(now=clock()) == 1
    assert other.work()
    let_go.set()
    thread.join()

    assert shown(client, photo)["summary"] == FINDINGS["summary"]
    assert len(fake_llm.requests) == 2


def test_rows_of_a_worker_that_died_are_pending_again_at_the_next_start(client, clock, worker):
    (photo,) = upload(client, "library")
    with database.scope():
        lease = {
            "status": "processing",
            "lease_until": clock() + timedelta(minutes=5),
            "lease_token": "0123456789abcdef:1",
        }
        models.Analysis.update(**lease).execute()
        assert worker.recover(now=clock()) == 1

    assert shown(client, photo)["status"] == "pending"


def test_rows_of_a_worker_that_lives_keep_their_lease(client, clock, worker):
    upload(client, "library")
    with database.scope():
        claim = worker.claim_next("any", now=clock())
        assert worker.recover(now=clock()) == 0
        assert worker.recover(now=clock() + timedelta(minutes=6)) == 1
        assert claim is not None


def test_a_picture_that_keeps_killing_its_worker_is_given_up(client, clock, worker):
    (photo,) = upload(client, "library")
    with database.scope():
        for _ in range(claims.MAX_INTERRUPTIONS):
            assert worker.claim_next("any", now=clock()) is not None
            models.Analysis.update(lease_token="0123456789abcdef:1").execute()
            assert worker.recover(now=clock()) == 1

    assert shown(client, photo)["status"] == "error"
    assert "interrupted" in shown(client, photo)["error_message"]


def test_a_turn_of_the_queue_reads_no_more_when_the_queue_is_long(client, fake_llm, clock, worker):
    upload(client, "a", "b")
    statements = []
    database.db.query_hooks.append(statements.append)
    try:
        worker.work()
        with database.scope():
            claims.seconds_until_due(now=clock())
    finally:
        database.db.query_hooks.clear()
    explained = [event for event in statements if event.sql.lstrip().startswith(("SELECT", "UPDATE"))]

    assert len(explained) > 10
    with database.scope():
        for event in explained:
            for *_, step in database.db.execute_sql(
                f"EXPLAIN QUERY PLAN {event.sql}", event.params
            ).fetchall():
                # All rows, or all rows of a status, but for those in processing (`other`), which are as many
                # as there are threads.
                whole_table = step.startswith("SCAN analyses") and "analyses_due" not in step
                whole_status = "(status=?)" in step and not step.startswith("SEARCH other")
                grows = whole_table or whole_status or "TEMP B-TREE" in step
                assert not grows, f"{event.sql}\n{step}"


def test_a_claim_is_exclusive_over_threads(client, clock, worker):
    upload(client, *"abcdefgh")
    claimed, start = [], threading.Barrier(4)

    def claim():
        start.wait(90)
        for _ in range(4):
            with database.scope():
                claimed.append(worker.claim_next("any", now=clock()))

    threads = [threading.Thread(target=claim) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(claim.photo.id for claim in claimed if claim) == list(range(1, 9))


def test_a_claim_that_is_given_back_is_pending_and_unharmed(client, clock, worker):
    (photo,) = upload(client, "library")
    with database.scope():
        claim = worker.claim_next("any", now=clock())
        claims.give_back(claim, now=clock())

    assert shown(client, photo)["status"] == "pending"
    with database.scope():
        assert models.Analysis.get().attempts == 0


def test_an_unexpected_failure_of_a_model_ends_in_a_sentence_and_in_the_log(
    client, settings, clock, monkeypatch, caplog
):
    class Broken:
        identity = "broken"

        def analyse(self, picture, *, name="", text="", taken=None):
            raise ZeroDivisionError

    monkeypatch.setattr(llm, "model_for", lambda chosen, settings: Broken())
    (photo,) = upload(client, "library")
    for _ in range(3):
        Worker(settings, clock=clock).work()
        clock.move(seconds=10)

    assert "unexpectedly" in shown(client, photo)["error_message"]
    assert "ZeroDivisionError" in caplog.text


def test_every_call_stands_in_the_spend_ledger_also_a_wasted_one(client, fake_llm, turn, clock):
    upload(client, "library")
    fake_llm.answer("nonsense", usage={"prompt_tokens": 100, "completion_tokens": 7})
    fake_llm.answer(usage={"prompt_tokens": 100, "completion_tokens": 50})
    turn()
    clock.move(seconds=2)
    turn()

    with database.scope():
        (row,) = models.SpendLedger.select().dicts()
    assert (row["calls"], row["prompt_tokens"], row["completion_tokens"], row["purpose"]) == (
        2,
        200,
        57,
        "analysis",
    )


def test_what_a_screenshot_tells_about_the_person_is_remembered_under_its_device(client, fake_llm, turn):
    upload(client, "library", device_id="pixel")
    turn()
    (remembered,) = client.get("/api/memories?device_id=pixel").json["items"]

    assert remembered["content"] == FINDINGS["memories"][0]["content"]
    assert (remembered["source_type"], remembered["category"], remembered["memory_type"]) == (
        "screenshot",
        "fact",
        "short_term",
    )


def test_a_screenshot_that_is_analysed_again_or_twice_is_remembered_once(client, fake_llm, turn):
    (photo, _copy) = upload(client, "library", "library")
    while turn():
        pass
    client.post(f"/api/analysis/{photo}/reprocess")
    assert turn()

    assert client.get("/api/memories").json["total"] == 1


def test_a_result_that_is_not_kept_leaves_no_memory(client, fake_llm, worker):
    (photo,) = upload(client, "library")
    delete_while_analysed(client, photo, fake_llm, worker)

    assert client.get("/api/memories").json["total"] == 0


def test_the_analysis_list_has_exactly_the_contracts_fields(client, fake_llm, turn):
    upload(client, "a", "b")
    turn()
    page = client.get("/api/analysis").json

    assert page["total"] == 2
    assert [item["photo_filename"] for item in page["items"]] == ["b.png", "a.png"]
    assert [item["photo_id"] for item in page["items"]] == [2, 1]
    assert set(page["items"][0]) == {
        *(
            "id",
            "photo_id",
            "status",
            "app_name",
            "content_category",
            "intent",
            "title",
            "summary",
            "entities",
            "confidence",
        ),
        *("error_message", "created_at", "completed_at", "photo_filename"),
    }


def test_the_analysis_list_filters_by_status_and_intent(client, fake_llm, turn):
    upload(client, "a", "b", "c")
    turn()
    fake_llm.answer({**FINDINGS, "intent": "research"})
    turn()

    def total(query):
        return client.get(f"/api/analysis?{query}").json["total"]

    assert (
        total("status=done"),
        total("status=pending"),
        total("intent=research"),
        total("intent=reminder&status=done"),
    ) == (2, 1, 1, 1)
    assert len(client.get("/api/analysis?intent=research").json["items"]) == 1
    assert client.get("/api/analysis?page=2&page_size=2").json["items"][0]["photo_filename"] == "a.png"
    assert "intent: must be one of" in detail(client.get("/api/analysis?intent=panic"), 400)


def test_statistics_count_by_status_intent_and_category(client, fake_llm, turn):
    assert client.get("/api/stats").json == {
        "total_photos": 0,
        "total_analyses": 0,
        "done": 0,
        "pending": 0,
        "processing": 0,
        "errors": 0,
        "searchable": 0,
        "seconds_left": 0,
        "intent_distribution": {},
        "category_distribution": {},
        "sensitive_photos": 0,
        "sensitive_kinds": {},
    }
    upload(client, "a", "b", "c", "d")
    turn()
    fake_llm.answer({**FINDINGS, "intent": "research", "content_category": "webpage"})
    turn()
    fake_llm.fail(401)
    turn()

    assert client.get("/api/stats").json == {
        "total_photos": 4,
        "total_analyses": 4,
        "done": 2,
        "pending": 1,
        "processing": 0,
        "errors": 1,
        "searchable": 2,
        "seconds_left": None,
        "intent_distribution": {"reminder": 1, "research": 1},
        "category_distribution": {"notification": 1, "webpage": 1},
        "sensitive_photos": 0,
        "sensitive_kinds": {},
    }


def test_the_time_left_follows_from_the_pace_of_the_last_minutes(client, fake_llm, worker, clock):
    upload(client, *"abcdefgh")
    for _ in range(4):
        assert worker.work() is True
        clock.move(seconds=10)

    def left():
        with database.scope():
            return listing.statistics(now=clock.now)["seconds_left"]

    assert left() == 40  # four in 40 seconds, four to go
    clock.move(minutes=10)
    assert left() is None  # nothing was analysed lately


def test_the_pool_works_off_what_is_uploaded_and_stops(app, remote, fake_llm):
    client = Client(app)
    pool = Pool(remote)
    pool.start()
    try:
        upload(client, "a", "b", "c")
        fake_llm.wait_for_requests(3)
        _until(lambda: client.get("/api/stats").json["done"] == 3)
    finally:
        pool.stop()
    upload(client, "d")

    assert client.get("/api/stats").json["pending"] == 1


def test_a_stopping_pool_gives_back_what_takes_too_long(app, remote, fake_llm, monkeypatch):
    monkeypatch.setattr("analysis.pool.STOP_PATIENCE", 0.1)
    client, let_go = Client(app), threading.Event()
    fake_llm.answer(after=let_go)
    pool = Pool(remote)
    pool.start()
    try:
        (photo,) = upload(client, "a")
        fake_llm.wait_for_requests(1)
        pool.stop()
        assert shown(client, photo)["status"] == "pending"
    finally:
        let_go.set()
        pool._loop.join(90)

    assert shown(client, photo)["status"] == "pending"


def test_the_embedded_model_goes_through_the_same_queue(client, settings, work_queue, monkeypatch):
    class Embedded:
        identity = "local/drawn"

        def analyse(self, picture, *, name="", text="", taken=None):
            assert picture.read(4) == b"\x89PNG"
            return Findings(
                app_name="Drawn",
                summary="Words.",
                entities=[Entity("date", "Friday")],
                visible_text="Words",
                confidence=0.4,
                raw="{}",
            )

    monkeypatch.setattr(llm, "model_for", lambda chosen, settings: Embedded())
    (photo,) = upload(client, "words")

    assert work_queue() == 1
    assert shown(client, photo)["app_name"] == "Drawn"


def judged_earlier(client, *names):
    """Photos that an earlier version of the embedded model has judged, with one line of text each."""
    ids = upload(client, *names)
    with database.scope():
        for number, name in zip(ids, names, strict=True):
            page = Page(1080, 2400, [Line(f"{name} market opens", 0.9, 40, 300, 700, 360)])
            readings.save(number, page, reader="small")
            readings.end_tries(number)
            fields = {"title": "Old", "summary": "Old; glued", "visible_text": f"{name} market opens"}
            Analysis.update(status="done", analyser="local/small", completed_at=utc_now(), **fields).where(
                Analysis.photo == number
            ).execute()
            lexicon.index(number)
    return ids


def test_what_an_earlier_version_of_the_rules_has_judged_is_judged_again_from_its_text(client, settings):
    first, second = judged_earlier(client, "fish", "flower")
    worker = Worker(settings)

    assert worker.backlog.judge_older()
    assert not worker.backlog.judge_older()
    detail = client.get(f"/api/photos/{first}").json["analysis"]
    assert (detail["title"], detail["summary"]) == ("fish market opens", "Screen “fish market opens”")
    (hit,) = client.get("/api/search?q=flower").json["items"]
    assert hit["id"] == second
    assert client.get("/api/search?q=glued").json["items"] == []


def test_what_comes_back_from_the_trash_is_judged_again_by_a_worker_that_was_through(client, settings):
    first, _ = judged_earlier(client, "fish", "flower")
    client.post(f"/api/photos/{first}/trash")
    worker = Worker(settings)
    while worker.backlog.judge_older():
        pass
    client.post(f"/api/photos/{first}/restore")
    assert client.get(f"/api/photos/{first}").json["analysis"]["title"] == "Old"

    while worker.backlog.judge_older():
        pass
    detail = client.get(f"/api/photos/{first}").json["analysis"]
    assert detail["title"] == "fish market opens"


def test_of_what_another_model_has_analysed_only_missing_records_are_found(client, settings, monkeypatch):
    older, newer = judged_earlier(client, "fish", "flower")
    with database.scope():
        Analysis.update(analyser="openai/gpt").execute()
        Analysis.update(records="[]").where(Analysis.photo == newer).execute()
    judge, taken_at = embedded.judge, []

    def judged(page, *, taken, **named):
        taken_at.append(taken)
        found = judge(page, taken=taken, **named)
        found.records = [Record("ErrorMessage", [Field("text", page.lines[0].text, lines=[0])])]
        return found

    monkeypatch.setattr(embedded, "judge", judged)
    worker = Worker(settings)
    while worker.backlog.judge_older():
        pass

    detail = client.get(f"/api/photos/{older}").json
    assert detail["analysis"]["title"] == "Old"
    assert [record["fields"][0]["value"] for record in detail["records"]] == ["fish market opens"]
    assert taken_at == [local_time(datetime.fromisoformat(detail["original_timestamp"]))]
    assert client.get(f"/api/photos/{newer}").json["records"] == []
    assert client.get("/api/records").json["total"] == 1


def test_judging_again_goes_on_after_a_restart_and_happens_once(client, settings, monkeypatch):
    monkeypatch.setattr("analysis.backlog.JUDGED_AT_ONCE", 1)
    first, second = judged_earlier(client, "fish", "flower")
    judged = []
    judge = LocalModel.judge

    def noted(self, page, *read, **named):
        judged.append(page.lines[0].text)
        return judge(self, page, *read, **named)

    monkeypatch.setattr(LocalModel, "judge", noted)
    assert Worker(settings).backlog.judge_older()
    for _ in range(2):
        worker = Worker(settings)
        while worker.backlog.judge_older():
            pass

    assert judged == ["flower market opens", "fish market opens"]
    titles = [client.get(f"/api/photos/{photo}").json["analysis"]["title"] for photo in (first, second)]
    assert titles == ["fish market opens", "flower market opens"]


def _until(condition, seconds=90.0):
    """Wait for a condition that other threads bring about."""
    import time

    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never came true"
        threading.Event().wait(0.01)
