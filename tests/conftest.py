"""Fixtures of the whole suite: settings → app → client, cli; pictures drawn on the spot; a model that answers
from a script.
"""

import contextlib
import dataclasses
import os
import tempfile
from datetime import timedelta

import hypothesis
import pytest

pytest.register_assert_rewrite("tests.support")

import database  # noqa: E402
import llm  # noqa: E402
from analysis.pool import Worker  # noqa: E402
from app import Application, create_app  # noqa: E402
from clock import utc_now  # noqa: E402
from engines import configuration  # noqa: E402
from settings import Settings  # noqa: E402
from tests.support import browser, properties  # noqa: E402
from tests.support import reference_server as reference  # noqa: E402
from tests.support.beginning import begin  # noqa: E402
from tests.support.client import Client  # noqa: E402
from tests.support.drawing import draw  # noqa: E402
from tests.support.fake_llm import FakeLLM  # noqa: E402
from tests.support.routing import CompiledOnce  # noqa: E402

MEMORY = "/dev/shm"
ROOM = 2 * 1024**3  # bytes; a run has some hundred megabytes at once


def pytest_configure(config):
    use_memory_for_files()
    Application.url_rule_class = CompiledOnce
    hypothesis.settings.load_profile(config.getoption("--hypothesis-profile") or properties.QUICK)


def use_memory_for_files():
    """Put data folders into memory where there is room: else tests wait for the disk's flushes most of their
    time.
    """
    with contextlib.suppress(FileNotFoundError):
        disk = os.statvfs(MEMORY)
        if disk.f_bavail * disk.f_frsize > ROOM and not disk.f_flag & os.ST_NOEXEC:
            os.environ.setdefault("TMPDIR", MEMORY)
            tempfile.tempdir = None  # to be looked up again


@pytest.fixture
def settings(tmp_path):
    """Without the models for descriptions, which take a second to load: tests of them turn them on."""
    return Settings(data_dir=tmp_path / "data", language="en", meaning="off")


@pytest.fixture
def app(settings):
    begin(settings)
    app = create_app(settings)
    yield app
    database.close_store()


@pytest.fixture
def client(app):
    return Client(app)


@pytest.fixture
def cli(app):
    return app.test_cli_runner()


@pytest.fixture
def loaded():
    """The models of a test, as an open store owns them."""
    loaded = llm.LoadedModels()
    yield loaded
    loaded.clear()


@pytest.fixture
def model_for(loaded):
    """The model of some settings, as it is with nothing configured over the API."""
    return lambda settings: loaded.model_for(configuration.merged(configuration.Stored(), settings), settings)


@pytest.fixture
def fake_llm():
    with FakeLLM() as server:
        yield server


@pytest.fixture
def make_photo():
    """`make_photo(text="…", size=(w, h), format="PNG", **save_options)`: the bytes of a picture with words on
    it.
    """
    return draw


class Clock:
    """A clock that moves only when it is set. It is an hour ahead of the uploads, so that they are due."""

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
    """A worker of the queue whose model is the fake server: `worker.work()` is one turn, in the test's own
    thread.
    """
    with contextlib.closing(Worker(remote, clock=clock)) as worker:
        yield worker


@pytest.fixture
def reading(remote, clock):
    """A worker with the fake server as the model, before which every picture is read."""
    settings = dataclasses.replace(remote, read_locally=True)
    with contextlib.closing(Worker(settings, clock=clock)) as worker:
        yield worker


@pytest.fixture
def work_queue(settings):
    """Run the queue by hand until nothing is due, with the function that the pool's threads run."""

    def run(chosen=settings, **options):
        turns = 0
        with contextlib.closing(Worker(chosen, **options)) as worker:
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
    """The real service with the scripted model; `dashboard.open("#/notes")` is a page on it. The page must
    stay quiet.
    """
    with browser.Dashboard(chromium, tmp_path, fake_llm) as dashboard:
        yield dashboard


@pytest.fixture
def remote(settings, fake_llm):
    """The settings with the fake server as the model, and their data folder."""
    begin(settings)
    return dataclasses.replace(
        settings,
        dev_mode=True,
        llm_base_url=fake_llm.url,
        llm_model="scripted",
        llm_api_key="sk-scripted-secret",
        read_locally=False,  # takes seconds; tests/test_readings.py turns it on
    )


def pytest_addoption(parser):
    parser.addoption(
        "--thorough", action="store_true", help="kill, cut and fuzz at many more points, which takes minutes"
    )
    parser.addoption(
        "--fuzz-seconds", type=int, default=10, help="how long tests/test_fuzz.py sends requests"
    )
    parser.addoption(
        "--fuzz-bodies", type=int, default=2_000, help="how many bodies tests/test_mcp_server.py sends"
    )
