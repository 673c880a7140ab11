"""Analysing in the real server: the embedded analyser and its child process, a model on the network and its
faults, two workers.
"""

import itertools
import json
import threading

import pytest

from tests.support.drawing import draw
from tests.support.fake_llm import FINDINGS
from tests.support.service import Clients, Service, alive, eventually, together

MODEL_KEY = "sk-only-the-model-may-see-this"


def remote(url: str) -> dict[str, str]:
    # One thread: what the model is asked comes in the order of the uploads.
    model = {"llm_base_url": url, "llm_model": "scripted", "llm_api_key": MODEL_KEY}
    return {"api_key": "key", "dev_mode": "true", "analysis_workers": "1", **model}


@pytest.fixture
def service(tmp_path, fake_llm):
    with Service(tmp_path, **remote(fake_llm.url)) as service:
        yield service
        assert MODEL_KEY not in service.output


def analysis_of(service, photo):
    answer = service.call("GET", f"/api/photos/{photo['id']}")
    assert MODEL_KEY not in answer.text
    return answer.json()["analysis"]


# ------------------------------------------------------------------------------------------ embedded analyser


@pytest.mark.slow
def test_with_nothing_configured_screenshots_are_read_and_found_and_no_process_outlives_the_service(tmp_path):
    with Service(tmp_path) as service:
        invoice = service.upload(draw("Invoice 4711\nTotal 129.90 EUR\nGreenfield Electric"), "invoice.png")
        train = service.upload(draw("Train to Hamburg\nPlatform 7\nDeparture 09:41"), "train.png")
        assert service.wait_until_analysed()["done"] == 2

        def found(words):
            return [photo["id"] for photo in service.get("/api/search", q=words)["items"]]

        assert (
            found("Greenfield")
            == found("Greenfeild")
            == found("greenf")
            == found("invoice total")
            == [invoice["id"]]
        )
        assert found("hamburg") == found("hambrug") == found("depart") == [train["id"]]
        assert found("zeppelin") == []
        analysis = analysis_of(service, invoice)
        assert analysis["status"] == "done"
        assert 0 < analysis["confidence"] <= 0.5
        assert {"type": "amount", "value": "129.90 EUR"} in json.loads(analysis["entities"])

        # A worker that is killed takes its children with it, and the next one goes on.
        worker, children = service.workers[0], service.ocr
        worker.kill()
        eventually(lambda: not any(map(alive, children)), "the killed worker's children end")
        eventually(lambda: answers(service), "there is a new worker")
        bakery = service.upload(draw("Bakery opens at six"), "bakery.png")
        service.wait_until_analysed()
        assert found("bakery") == [bakery["id"]]

        # A master that is killed leaves nothing either.
        assert len(service.ocr) == 1
        service.master.kill()
        service.wait()

        service.start()
        service.upload(draw("The last one"), "last.png")
        service.wait_until_analysed()
        assert len(service.ocr) == 1
        assert service.stop() == 0
        assert len(list((service.data / "database").iterdir())) == 1, "the database is whole without a log"


def answers(service):
    try:
        return service.knock("GET", "/api/health").ok
    except OSError:  # the connection had gone to the worker that was killed
        return False


# ------------------------------------------------------------------------------------- a model on the network


def test_what_the_model_finds_becomes_the_analysis(service, fake_llm):
    photo = service.upload(draw(), "library.png")
    service.wait_until_analysed()
    analysis = analysis_of(service, photo)
    plain = ("app_name", "content_category", "intent", "summary", "confidence")
    assert {name: analysis[name] for name in plain} == {name: FINDINGS[name] for name in plain}
    assert (analysis["status"], analysis["error_message"], json.loads(analysis["entities"])) == (
        "done",
        None,
        FINDINGS["entities"],
    )
    assert json.loads(analysis["llm_response"]) == FINDINGS
    [request] = fake_llm.requests
    assert (request.path, request.key, request.body["model"], len(request.images)) == (
        "/v1/chat/completions",
        MODEL_KEY,
        "scripted",
        1,
    )
    assert "library.png" in request.text
    assert [item["id"] for item in service.get("/api/search", q="library book")["items"]] == [photo["id"]]


@pytest.mark.slow
def test_analyses_go_on_under_endless_uploads(service):
    numbers = itertools.count()
    picture = draw("A holiday", size=(1080, 2400))

    def upload():
        service.upload(picture + next(numbers).to_bytes(8, "big"))

    with Clients(service, *[upload] * 4) as phones:
        eventually(lambda: service.get("/api/stats")["done"] >= 5, "some are analysed")
        before = phones.done
        eventually(lambda: phones.done >= before + 4, "uploads still go on")

    assert phones.failures == []


@pytest.mark.slow
def test_a_screenshot_that_several_devices_send_at_once_is_paid_for_once(tmp_path, fake_llm):
    with Service(tmp_path, **remote(fake_llm.url) | {"analysis_workers": "4"}) as service:
        release = threading.Event()
        fake_llm.answer(after=release)
        same, other = draw("The same on both"), draw("Another one")
        first, second, third = together(
            lambda: service.upload(same, device_id="phone"),
            lambda: service.upload(same, device_id="tablet"),
            lambda: service.upload(other),
        )
        fake_llm.wait_for_requests(2)  # the held one, and the other picture's or the same one's
        release.set()
        service.wait_until_analysed()
        service.upload(same, device_id="watch")
        assert service.wait_until_analysed()["done"] == 4
        assert len(fake_llm.requests) == 2
        assert len({first["id"], second["id"], third["id"]}) == 3
        assert (
            analysis_of(service, first)["summary"]
            == analysis_of(service, second)["summary"]
            == FINDINGS["summary"]
        )


@pytest.mark.slow
def test_faults_of_the_model_end_in_results(service, fake_llm):
    faults = [
        lambda: fake_llm.fail(429, "Slow down.", headers={"Retry-After": "1"}),
        lambda: fake_llm.reply(b"<html>not what was asked for</html>"),
        lambda: fake_llm.close_mid_answer(),
        lambda: fake_llm.answer("I would rather talk about the weather."),
        lambda: fake_llm.fail(500, "Out of order."),
        lambda: fake_llm.answer(),
    ]
    for fault in faults:
        fault()
    photos = [service.upload(draw(f"Picture {number}")) for number in range(len(faults))]
    assert service.wait_until_analysed()["done"] == len(photos)
    assert {analysis_of(service, photo)["error_message"] for photo in photos} == {None}
    # Each faulty answer cost one more call, and none a third.
    assert len(fake_llm.requests) == len(photos) + 5


@pytest.mark.slow
def test_while_the_provider_is_down_photos_wait_with_the_reason_and_a_new_configuration_frees_them(
    service, fake_llm
):
    for _ in range(3):
        fake_llm.fail(503, f"Overloaded, says the one who knows {MODEL_KEY}.")
    photos = [service.upload(draw(f"Picture {number}")) for number in range(4)]
    fake_llm.wait_for_requests(3)
    reasons = eventually(lambda: failed(service, photos, 3), "three photos have their reason")
    assert {analysis["status"] for analysis in reasons} == {"pending"}
    assert {analysis["error_message"] for analysis in reasons} == {
        "The model's server cannot answer now (503): Overloaded, says the one who knows [key]."
    }
    assert service.stop() == 0
    service.start(llm_model="another")
    assert service.wait_until_analysed()["done"] == 4
    assert len(fake_llm.requests) == 3 + 4


def test_a_refused_key_is_an_error_at_once_and_the_right_key_mends_it(service, fake_llm):
    fake_llm.fail(401, f"Incorrect API key provided: {MODEL_KEY}")
    photos = [service.upload(draw(f"Picture {number}")) for number in range(3)]
    [refused] = eventually(lambda: failed(service, photos, 1), "the refusal is written down")
    assert refused["status"] == "error"
    assert (
        refused["error_message"]
        == "The model's server refuses this configuration (401): Incorrect API key provided: [key]"
    )
    assert service.get("/api/stats")["errors"] == 1
    assert len(fake_llm.requests) == 1
    assert service.stop() == 0
    service.start(llm_api_key="sk-the-right-one")
    assert service.wait_until_analysed()["done"] == 3
    assert {request.key for request in fake_llm.requests[1:]} == {"sk-the-right-one"}


@pytest.mark.slow
def test_a_model_that_never_answers_holds_up_one_thread_and_nothing_else(service, fake_llm):
    fake_llm.stay_silent()
    photos = [service.upload(draw(f"Picture {number}")) for number in range(2)]
    fake_llm.wait_for_requests(1)
    assert analysis_of(service, photos[0])["status"] == "processing"
    assert analysis_of(service, photos[1])["status"] == "pending"
    assert service.get("/api/photos")["total"] == 2
    service.kill()
    service.start()
    assert service.wait_until_analysed()["done"] == 2
    assert len(fake_llm.requests) == 3


def failed(service, photos, count):
    """The analyses with a reason, once there are so many."""
    analyses = [analysis for photo in photos if (analysis := analysis_of(service, photo))["error_message"]]
    return analyses if len(analyses) == count else None


@pytest.mark.slow
def test_a_provider_written_by_others_is_understood(tmp_path, llmock):
    """Its authors' reading of the protocol, and their judgement of how a client has to take faults: waiting
    as long as it is told.
    """
    llmock.rate_limit(retry_after=3).fail(500).reply(json.dumps(FINDINGS), times=None)
    with Service(tmp_path, **remote(llmock.base_url()), llm_allowed_hosts="127.0.0.1") as service:
        photos = [service.upload(draw("First")), service.upload(draw("Second"))]
        assert service.wait_until_analysed()["done"] == 2
        assert {analysis_of(service, photo)["summary"] for photo in photos} == {FINDINGS["summary"]}
        assert len(llmock.requests) == 4
        llmock.assert_resilient()


# ------------------------------------------------------------------------------------------------ two workers


@pytest.mark.slow
def test_two_workers_share_the_queue_and_analyse_every_photo_exactly_once(tmp_path, fake_llm):
    release = threading.Event()
    for _ in range(4):
        fake_llm.answer(after=release)
    logging = ("--access-logfile", "-", "--access-logformat", "served by %(p)s")
    settings = remote(fake_llm.url) | {"analysis_workers": "2"}
    with Service(tmp_path, "-w", "2", *logging, **settings) as service:
        count = 12
        together(
            *(lambda number=number: service.upload(draw(f"Picture {number}")) for number in range(count))
        )
        # Each worker has two threads: four pictures at once are both at work.
        fake_llm.wait_for_requests(4, seconds=90)
        release.set()
        assert service.wait_until_analysed()["done"] == count
        assert len(fake_llm.requests) == len({request.images[0] for request in fake_llm.requests}) == count

        def both_serve():
            service.get("/api/photos")
            return all(f"served by <{worker.pid}>" in service.output for worker in service.workers)

        eventually(both_serve, "both workers serve requests")
        assert service.stop() == 0
