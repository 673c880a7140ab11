"""Fixtures of the whole suite: settings → app → client, cli; pictures drawn on the spot; a model that answers from a script."""

import contextlib
import dataclasses
import io
import json
import shutil
import sys
from datetime import timedelta
from pathlib import Path

import hypothesis
import pytest
from PIL import Image, ImageDraw, ImageFont

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import analysis  # noqa: E402
import models  # noqa: E402
from app import create_app  # noqa: E402
from settings import Settings, utc_now  # noqa: E402
from tests import browser, contract  # noqa: E402
from tests import reference_server as reference  # noqa: E402
from tests.fake_llm import FakeLLM  # noqa: E402

# Properties are about what holds, not about how long it takes on a busy machine.
hypothesis.settings.register_profile("suite", deadline=None, max_examples=50)
hypothesis.settings.register_profile("fuzz", deadline=None, max_examples=2_000)


def pytest_configure(config):
    hypothesis.settings.load_profile(config.getoption("--hypothesis-profile") or "suite")


def at_least(number):
    """So many examples of a property, or as many as the profile has where those are more."""
    return max(number, hypothesis.settings.default.max_examples)


@pytest.fixture
def settings(tmp_path):
    return Settings(data_dir=tmp_path / "data", language="en")


@pytest.fixture(scope="session")
def first_start(tmp_path_factory):
    """A data folder as a first start leaves it. To copy it takes a twentieth of the time of another first start."""
    folder = tmp_path_factory.mktemp("first-start") / "data"
    create_app(Settings(data_dir=folder))
    models.close_connections()
    return folder


@pytest.fixture
def app(settings, first_start):
    if settings.encryption and settings.master_key_file is None and not settings.data_dir.exists():
        shutil.copytree(first_start, settings.data_dir)
    app = create_app(settings)
    yield app
    models.close_store()


class Client:
    """Flask's test client that carries the key, knows the service's most frequent calls, and holds every answer against the contract."""

    def __init__(self, app):
        self.app = app
        self.open = app.test_client()
        self.headers = {"Authorization": f"Bearer {app.api_key}"} if app.api_key else {}
        contract.document(app)  # before a test puts anything else in the place of a route

    def get(self, path, **options):
        return self._call(self.open.get, path, options)

    def post(self, path, **options):
        return self._call(self.open.post, path, options)

    def put(self, path, **options):
        return self._call(self.open.put, path, options)

    def delete(self, path, **options):
        return self._call(self.open.delete, path, options)

    def upload(self, picture, filename="screenshot.png", **fields):
        return self.post("/api/photos/upload", data={"file": (io.BytesIO(picture), filename), **fields})

    def _call(self, method, path, options):
        headers = {**self.headers, **options.pop("headers", {})}
        answer = method(path, headers=headers, **options)
        answer.get_data()
        contract.hold(self.app, answer)
        answer.request.environ["wsgi.input"].close()  # a temporary file of the test client's, when the body was large
        answer.close()
        return answer


@pytest.fixture
def client(app):
    return Client(app)


@pytest.fixture
def cli(app):
    return app.test_cli_runner()


@pytest.fixture
def fake_llm():
    with FakeLLM() as server:
        yield server


@pytest.fixture
def make_photo():
    """`make_photo(text="…", size=(w, h), format="PNG", **save_options)`: the bytes of a picture with words on it."""
    return draw


def draw(text="Dentist on Friday", size=(540, 960), format="PNG", mode="RGB", background="white", **save_options):
    image = Image.new("RGB", size, background)
    ImageDraw.Draw(image).multiline_text((20, 40), text, fill="black", font=ImageFont.load_default(size=28))
    out = io.BytesIO()
    image.convert(mode).save(out, format, **save_options)
    return out.getvalue()


class Clock:
    """A clock that stands still until it is moved. It is an hour ahead of the uploads, so that they are due."""

    def __init__(self):
        self.now = utc_now() + timedelta(hours=1)

    def __call__(self):
        return self.now

    def move(self, **duration):
        self.now += timedelta(**duration)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def worker(remote, clock):
    """A worker of the queue whose model is the fake server: `worker.work()` is one turn, in the test's own thread."""
    with contextlib.closing(analysis.Worker(remote, clock=clock)) as worker:
        yield worker


@pytest.fixture
def work_queue(settings):
    """Run the queue by hand until nothing is due, with the function that the pool's threads run."""

    def run(chosen=settings, **options):
        turns = 0
        with contextlib.closing(analysis.Worker(chosen, **options)) as worker:
            while worker.work():
                turns += 1
                assert turns < 1000, "the queue never empties"
        return turns

    return run


@pytest.fixture(scope="session")
def reference_server(tmp_path_factory):
    """The address of the official MCP reference server, in a process of its own."""
    with reference.running(reference.program(tmp_path_factory.mktemp("npm"))) as address:
        yield address


@pytest.fixture(scope="session")
def chromium():
    with browser.running() as running:
        yield running


@pytest.fixture(scope="session")
def axe(tmp_path_factory):
    """The script of axe-core, for `browser.barriers`."""
    return browser.axe_source(tmp_path_factory.mktemp("axe"))


@pytest.fixture
def dashboard(chromium, tmp_path, fake_llm):
    """The real service with the scripted model; `dashboard.open("#/photos")` is a page on it. The page must stay quiet."""
    with browser.Dashboard(chromium, tmp_path, fake_llm) as dashboard:
        yield dashboard


@pytest.fixture
def remote(settings, fake_llm):
    """The settings with the fake server as the model."""
    return dataclasses.replace(settings, dev_mode=True, llm_base_url=fake_llm.url, llm_model="scripted", llm_api_key="sk-scripted-secret")


def detail(response, status):
    """The sentence of an error answer, which must have this status and the one body."""
    assert response.status_code == status, response.get_data(as_text=True)
    body = json.loads(response.get_data())
    assert set(body) == {"detail"}
    assert isinstance(body["detail"], str)
    assert body["detail"]
    return body["detail"]


def pytest_addoption(parser):
    parser.addoption("--thorough", action="store_true", help="kill, cut and fuzz at many more points, which takes minutes")
    parser.addoption("--fuzz-seconds", type=int, default=10, help="how long tests/test_fuzz.py sends requests")
