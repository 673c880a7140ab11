"""What a start costs: the packages that it may load, by their names, and the memory that the idle service
takes beside theirs.
"""

import json
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from benchmarks import floors
from tests.support.service import Service
from tests.test_layers import PACKAGES, RANKS

ROOT = Path(__file__).resolve().parent.parent

# What a start may load of what others have written. Each costs its time and its memory on every machine, used
# or not, so a package that only some requests need is imported where they need it, and is not added here.
ALLOWED = {
    *("flask", "werkzeug", "jinja2", "markupsafe", "itsdangerous", "blinker", "click"),
    *(
        "flask_cors",
        "flask_limiter",
        "limits",
        "deprecated",
        "wrapt",
        "ordered_set",
        "packaging",
        "typing_extensions",
    ),
    *("peewee", "playhouse", "sqlcipher3", "cryptography"),
    "gunicorn",  # runs the service; `web/inputs.py` handles its errors
    *("requests", "urllib3", "certifi", "charset_normalizer", "idna"),
    "brotli",  # a package of the tests, which urllib3 loads where it is
    *("msgspec", "json_repair", "rapidfuzz", "PIL"),
}
FOLDERS = {path.name for path in ROOT.iterdir() if path.is_dir()}

# The service's two processes share what was loaded before the fork; their own code, threads and connections
# come on top.
MEMORY = 2.2  # times that of an interpreter with the packages alone; measured: 1.6

LOADED = """
import json, os, sys
from app import create_app
from settings import Settings
create_app(Settings.from_environ(os.environ))
{more}
origins = {{
    name: getattr(getattr(module, "__spec__", None), "origin", None)
    for name, module in list(sys.modules.items())
}}
print(json.dumps(origins))
"""


@pytest.fixture
def loaded(tmp_path):
    """`loaded()`: the names of the project's modules, and of others' packages, in an interpreter that has
    made the application.
    """

    def run(more=""):
        command = [sys.executable, "-c", LOADED.format(more=more)]
        environment = {"SNAPLORE_DATA_DIR": str(tmp_path / "data"), "PATH": "/usr/bin:/bin"}
        finished = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120, check=True
        )
        origins = {
            name: Path(origin)
            for name, origin in json.loads(finished.stdout).items()
            if origin not in (None, "built-in", "frozen")
        }
        packages = {
            name.partition(".")[0] for name, origin in origins.items() if "site-packages" in origin.parts
        }
        return {
            name
            for name, origin in origins.items()
            if origin.parent == ROOT or name.partition(".")[0] in FOLDERS
        }, packages

    return run


def of_others(packages):
    """Without the compiled parts of packages, which bear names of their own, and what a virtual environment
    brings along.
    """
    return {name for name in packages if not name.startswith("_")}


@pytest.mark.slow
def test_a_start_loads_only_the_packages_that_every_service_needs(loaded):
    project, packages = loaded()

    assert of_others(packages) - ALLOWED == set()
    assert project == {*RANKS, *PACKAGES} - {
        "analysis.pool",
        "web.connections",
        "web.worker",
        "web.sockets",
        "terminal.bundle",
    }  # for gunicorn and make client


@pytest.mark.slow
@pytest.mark.parametrize("package", ["faster_paddle", "ddgs", "lxml", "minify_html"])
def test_a_heavy_package_that_is_loaded_too_early_is_found(loaded, package):
    _, packages = loaded(f"import {package}")

    assert package in of_others(packages) - ALLOWED


@pytest.mark.slow
def test_an_idle_service_takes_little_more_memory_than_its_packages(tmp_path):
    _, alone = floors.bare_process()
    with Service(tmp_path, fresh=True) as service:
        idle = sum(
            psutil.Process(process.pid).memory_full_info().pss
            for process in (service.master, *service.workers)
        )

    assert alone < idle < MEMORY * alone
