"""Memory stays flat while the largest files arrive, and files beyond the limit get their answer."""

import contextlib
import functools
import io
import os
import threading

import psutil
import pytest
import requests
from PIL import Image

from tests.support.drawing import draw
from tests.support.fake_llm import FakeLLM
from tests.support.service import PATIENCE, Service, together

pytestmark = pytest.mark.slow

MEGABYTE = 1_048_576
LARGEST = 50 * MEGABYTE
CLIENTS = 3
BUDGET = (
    300 * MEGABYTE
)  # of the service without its OCR process, while three clients upload the largest files


def remote(fake):
    return {"api_key": "key", "dev_mode": "true", "llm_base_url": fake.url, "llm_model": "scripted"}


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with FakeLLM() as fake, Service(tmp_path_factory.mktemp("limits"), fresh=True, **remote(fake)) as service:
        yield service


@pytest.fixture(scope="module")
def largest_picture():
    """A PNG of noise, as near to 50 MB as it gets, with 17 million pixels."""
    side = (4_090, 4_260)
    out = io.BytesIO()
    Image.frombytes("RGB", side, os.urandom(side[0] * side[1] * 3)).save(out, "PNG", compress_level=0)
    assert 0.99 * LARGEST < out.tell() < LARGEST
    return out.getvalue()


class Peak:
    """The peak memory of the service's processes together in bytes, shared pages counted once."""

    def __init__(self, service: Service):
        self._processes = [service.master, *service.workers]
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self.bytes = 0

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._ended.set()
        self._thread.join()

    def _watch(self):
        while not self._ended.wait(0.01):
            with contextlib.suppress(psutil.NoSuchProcess):
                self.bytes = max(
                    self.bytes, sum(process.memory_full_info().pss for process in self._processes)
                )


@pytest.mark.skipif(
    not os.path.exists("/proc/self/smaps_rollup"), reason="this kernel does not count memory by process"
)
def test_three_clients_with_the_largest_files_stay_within_the_budget(tmp_path, largest_picture):
    answer = threading.Event()
    with FakeLLM() as fake, Service(tmp_path, fresh=True, **remote(fake)) as service:
        for _ in range(2):
            fake.answer(after=answer)  # what was sent to the model stays in memory as long as it thinks
        # What stands behind a PNG's end is no part of it; so these are different files.
        forms = [
            form(service, [("file", "large.png", largest_picture + bytes([number]))])
            for number in range(CLIENTS)
        ]
        uploads = [
            functools.partial(service.knock, "POST", "/api/photos/upload", data=body, headers=headers)
            for body, headers in forms
        ]
        with Peak(service) as peak:
            for _ in range(2):
                answers = together(*uploads)
                assert [answer.status_code for answer in answers] == [200] * CLIENTS
            fake.wait_for_requests(2, seconds=PATIENCE)
            original = service.call("GET", f"/api/photos/{answers[0].json()['id']}/image").content
        answer.set()
    assert original == largest_picture + bytes([0])
    assert peak.bytes < BUDGET, f"{peak.bytes / MEGABYTE:.0f} MB"


@pytest.mark.parametrize("mode", ["RGB", "RGBA"])
def test_a_picture_of_many_pixels_is_held_once_also_while_it_is_analysed(mode, tmp_path, fake_llm):
    side = 6_200
    out = io.BytesIO()
    Image.new(mode, (side, side), "gray").save(out, "PNG", compress_level=1)
    with Service(tmp_path, fresh=True, **remote(fake_llm)) as service, Peak(service) as peak:
        service.upload(out.getvalue())
        fake_llm.wait_for_requests(1, seconds=PATIENCE)
    decoded = side * side * 4
    # A second copy would be as large. With its model's JPEG, the service itself takes 130 to 140 MB.
    assert peak.bytes < decoded + 160 * MEGABYTE, f"{peak.bytes / MEGABYTE:.0f} MB"


@pytest.mark.parametrize("megabytes", [50.5, 60])
@pytest.mark.parametrize("chunked", [False, True], ids=["announced", "chunked"])
def test_a_file_over_the_limit_gets_its_answer_and_no_reset_connection(service, megabytes, chunked):
    body, headers = form(service, [("file", "too large.png", bytes(int(megabytes * MEGABYTE)))])
    sent = (body[start : start + MEGABYTE] for start in range(0, len(body), MEGABYTE)) if chunked else body
    with Peak(service) as peak:
        answer = service.knock("POST", "/api/photos/upload", data=sent, headers=headers)
    assert answer.status_code == 413
    assert set(answer.json()) == {"detail"}
    assert "larger than" in answer.json()["detail"]
    assert peak.bytes < BUDGET


def test_in_a_batch_only_the_file_over_the_limit_is_refused(service):
    files = [
        ("files", "one.png", draw("One")),
        ("files", "large.png", bytes(LARGEST + 1)),
        ("files", "two.png", draw("Two")),
    ]
    body, headers = form(service, files, device_id="phone")
    with Peak(service) as peak:
        answer = service.knock("POST", "/api/photos/upload-batch", data=body, headers=headers)
    assert answer.status_code == 200
    one, large, two = answer.json()["results"]
    assert answer.json()["uploaded"] == 2
    assert large == {"filename": "large.png", "error": "too large"}
    assert (one["dedup"], two["dedup"]) == (False, False)
    assert peak.bytes < BUDGET


def form(service, files, **fields):
    """The body of a form, and the request's headers."""
    parts = [(name, (filename, content)) for name, filename, content in files]
    prepared = requests.Request(
        "POST", service.url, files=parts, data=fields, headers=service.bearer
    ).prepare()
    headers = {name: value for name, value in prepared.headers.items() if name != "Content-Length"}
    return prepared.body, headers
