"""The service as a person runs it: `gunicorn` in the project's folder, in its own processes, over real
sockets.

The kernel chooses the port and the test reads it from the log, so that no other process can take it in
between. Every started process is ended, whatever the test does.
"""

import contextlib
import http.client
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import psutil
import requests

from settings import PREFIX, ROOT, variable
from tests.support import forked
from tests.support.forked import Forked

PATIENCE = 90.0  # seconds that any step may take: many times its duration on a small, busy machine

T = TypeVar("T")


def eventually(
    condition: Callable[[], T], what: str, *, every: float = 0.02, patience: float = PATIENCE
) -> T:
    """Wait for the first true value of `condition` and return it. Raises `AssertionError`, which names
    `what`, after too long a wait.
    """
    deadline = time.monotonic() + patience
    while not (value := condition()):
        assert time.monotonic() < deadline, f"{what}: not within {patience:.0f} s"
        time.sleep(every)
    return value


def alive(process: psutil.Process) -> bool:
    """Whether the process runs. A zombie does not: in a container, nobody may wait for orphans."""
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


class Service:
    """A Snaplore with the data folder `folder`/data. Keyword arguments are settings by their names:
    `Service(folder, "-w", "2", language="en")`.

    A context manager: it starts the service, and leaves no process behind. `start`, `stop` and `kill` may be
    called repeatedly; the data stays.
    """

    def __init__(self, folder: Path, *arguments: str, fresh: bool = False, **settings: Any):
        self.fresh = fresh  # a new interpreter for each process, for tests of its memory or its start
        self.data = folder / "data"
        self.temporary = folder / "temporary"  # the temporary folder of the processes
        self.url = ""
        self.log = folder / "service.log"
        self.inside: tuple[str, ...] = ()  # a command to run its processes with, such as `nsenter …`
        self._arguments = arguments
        # A scripted model takes no time, while reading takes seconds of the processor's.
        unread = {"read_locally": "false"}
        self._settings = {"data_dir": self.data, "bind": "127.0.0.1:0", **unread, **settings}
        self._process: subprocess.Popen | Forked | None = None
        self._known: set[psutil.Process] = set()
        self._key = ""
        for made in (folder, self.temporary):
            made.mkdir(exist_ok=True)

    def __enter__(self) -> "Service":
        try:
            self.start()
        except BaseException:
            self.__exit__(*sys.exc_info())
            raise
        return self

    def __exit__(self, kind, *_) -> None:
        self.kill()
        if kind is not None:
            print(self.output[-5_000:])  # pytest shows it with the failure
        else:
            assert "Traceback" not in self.output, self.output

    # ---------------------------------------------------------------------------------------------- processes

    def start(self, **settings: Any) -> None:
        """Change these settings, start, and wait for the first answer."""
        self._settings |= settings
        self.launch()
        address = re.compile(r"Listening at: (http://\S+) ")
        self.url = eventually(
            lambda: self._ended() or address.findall(self.output, self._began), "the service listens"
        )[0].replace("//0.0.0.0:", "//127.0.0.1:")
        eventually(lambda: self.knock("GET", "/api/health").ok, "the service answers")

    def launch(self) -> None:
        """Start without waiting for an answer."""
        self._began = len(self.output)
        if not self.inside and not self.fresh:
            self._process = Forked(
                "gunicorn", *self._arguments, environment=self.environment(), folder=ROOT, stdout=self.log
            )
            return
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [*self.inside, sys.executable, "-m", "gunicorn", *self._arguments],
                cwd=ROOT, env=self.environment(), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True,
            )  # fmt: skip

    def stop(self) -> int:
        """End it as systemd does. Returns the exit code."""
        self.begin_to_stop()
        return self.wait()

    def begin_to_stop(self) -> None:
        """Send SIGTERM and wait until it is received. Requests in progress continue."""
        self._process.terminate()
        eventually(lambda: "Handling signal: term" in self.output[self._began :], "the signal arrives")

    def wait(self) -> int:
        """Wait until all its processes have ended. Returns the exit code."""
        self._family()
        code = self._process.wait(PATIENCE)
        eventually(lambda: not self._family(), "all processes end")
        return code

    def kill(self) -> None:
        """Send SIGKILL to all its processes at once."""
        if self._process is not None:
            family = self._family()
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            for process in family:  # the embedded analyser's is in a group of its own
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
            self.wait()

    def run(self, *module: str, **settings: Any) -> subprocess.CompletedProcess:
        """Run a Python program with the service's environment to its end: `run("flask", "--app", "app",
        "keys", …)`.
        """
        environment = self.environment(**settings)
        if not self.inside and not self.fresh:
            return forked.run(*module, environment=environment, folder=ROOT, timeout=PATIENCE)
        command = [*self.inside, sys.executable, "-m", *module]
        return subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False
        )

    def environment(self, **settings: Any) -> dict[str, str]:
        """This process's environment, with the service's settings instead of its own settings of Snaplore and
        gunicorn.
        """
        foreign = (PREFIX, "GUNICORN_", "WEB_CONCURRENCY", "PORT")
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
        chosen = {variable(name): str(value) for name, value in {**self._settings, **settings}.items()}
        locale = {
            "LC_ALL": "C.UTF-8",
            "LC_MESSAGES": "",
            "LANG": "",
        }  # the same default language for everybody
        return {**inherited, **locale, "TMPDIR": str(self.temporary), **chosen}

    @property
    def output(self) -> str:
        """The output of its processes since the first start."""
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    @property
    def master(self) -> psutil.Process:
        return psutil.Process(self._process.pid)

    @property
    def workers(self) -> list[psutil.Process]:
        return self.master.children()

    @property
    def ocr(self) -> list[psutil.Process]:
        """The embedded analyser's child process, if there is one."""
        return [process for process in self._family() if "engines.ocr" in " ".join(process.cmdline())]

    def _family(self) -> list[psutil.Process]:
        """Its running processes, including orphans that an earlier call has seen."""
        with contextlib.suppress(psutil.NoSuchProcess):
            self._known |= {self.master, *self.master.children(recursive=True)}
        return [process for process in self._known if alive(process)]

    def _ended(self) -> None:
        assert self._process.poll() is None, f"the service ended at its start:\n{self.output[self._began :]}"

    # ----------------------------------------------------------------------------------------------- requests

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    @property
    def key(self) -> str:
        """The key in its settings, or the generated one, which the command line shows."""
        if not self._key:
            self._key = (
                self._settings.get("api_key")
                or self.run("flask", "--app", "app", "keys", "show-api-key").stdout.strip()
            )
        return self._key

    @property
    def bearer(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.key}"}

    def knock(self, method: str, path: str, **options: Any) -> requests.Response:
        """A request without the key, over a new connection."""
        with requests.Session() as session:
            session.trust_env = False  # ignore this machine's proxy settings
            return session.request(method, self.url + path, timeout=PATIENCE, **options)

    def call(
        self, method: str, path: str, *, headers: dict[str, str] | None = None, **options: Any
    ) -> requests.Response:
        return self.knock(method, path, headers={**self.bearer, **(headers or {})}, **options)

    def get(self, path: str, **parameters: Any) -> Any:
        """The JSON of a successful answer."""
        answer = self.call("GET", path, params=parameters)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def upload(self, picture: bytes, filename: str = "screenshot.png", **fields: str) -> dict[str, Any]:
        answer = self.call("POST", "/api/photos/upload", files={"file": (filename, picture)}, data=fields)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def photos(self, **filters: str) -> Iterator[dict[str, Any]]:
        """Every list item, over all pages."""
        number = 1
        while items := self.get("/api/photos", page=number, page_size=100, **filters)["items"]:
            yield from items
            number += 1

    def wait_until_analysed(self) -> dict[str, Any]:
        """Wait until the analysis queue is empty. Returns the statistics."""

        def settled():
            stats = self.get("/api/stats")
            return None if stats["pending"] or stats["processing"] else stats

        return eventually(settled, "every photo is analysed", patience=6 * PATIENCE)


class Clients:
    """Clients that repeat calls, each in its own thread, while this context lasts."""

    def __init__(self, service: "Service", *calls: Callable[[], object]):
        self.done = 0
        self.failures: list[str] = []  # a failure ends its client
        self._service = service
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._repeat, args=(call,)) for call in calls]

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _repeat(self, call: Callable[[], object]) -> None:
        while not self._stop.is_set():
            try:
                call()
                self.done += 1
            except Exception as problem:
                self.failures.append(repr(problem))
                return


class HeldUpload:
    """An upload in parts over its own connection, as from a phone with a bad connection. With `chunked`, its
    length is not declared. `connection` replaces the one to the service itself.
    """

    def __init__(
        self,
        service: Service,
        picture: bytes,
        *,
        chunked: bool = False,
        headers: dict[str, str] | None = None,
        connection: http.client.HTTPConnection | None = None,
    ):
        form = requests.Request("POST", service.url, files={"file": ("held.png", picture)}).prepare()
        length = (
            {"Transfer-Encoding": "chunked"}
            if chunked
            else {"Content-Length": form.headers["Content-Length"]}
        )
        self._rest = form.body
        self._chunked = chunked
        self._connection = connection or http.client.HTTPConnection(
            "127.0.0.1", service.port, timeout=PATIENCE
        )
        self._connection.putrequest("POST", "/api/photos/upload")
        for name, value in {
            **service.bearer,
            **length,
            "Content-Type": form.headers["Content-Type"],
            **(headers or {}),
        }.items():
            self._connection.putheader(name, value)
        self._connection.endheaders()

    def send(self, count: int) -> None:
        part, self._rest = self._rest[:count], self._rest[count:]
        self._connection.send(b"%x\r\n%b\r\n" % (len(part), part) if self._chunked else part)

    def is_told_to_continue(self) -> bool:
        """Whether the service has asked for the body."""
        return self._connection.sock.recv(64, socket.MSG_PEEK).startswith(b"HTTP/1.1 100 ")

    def finish(self) -> http.client.HTTPResponse:
        """Send the rest. Returns the answer."""
        self.send_rest()
        return self.answer()

    def send_rest(self) -> None:
        while self._rest:
            self.send(1_000_000)
        if self._chunked:
            self._connection.send(b"0\r\n\r\n")

    def answer(self) -> http.client.HTTPResponse:
        """The answer to the part that has been sent."""
        return self._connection.getresponse()

    def close(self) -> None:
        self._connection.close()


def together(*calls: Callable[[], T]) -> list[T]:
    """The results of the calls, all made at once in a thread each."""
    with ThreadPoolExecutor(len(calls)) as threads:
        return [pending.result() for pending in [threads.submit(call) for call in calls]]
