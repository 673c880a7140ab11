"""The real server in its own process, on a free port of the loopback address, and a client that keeps its
connection open.
"""

import dataclasses
import http.client
import os
import secrets
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import psutil

from rules.embedded import CHILD
from settings import PREFIX, ROOT, Settings, variable

API_KEY = secrets.token_urlsafe(24)
BOUNDARY = "a-boundary-that-no-picture-has"
START_PATIENCE = 60.0  # seconds
STOP_PATIENCE = 40.0
READER = CHILD[-1]  # what the command line of the child process contains that recognises text
LOOK = 0.002  # seconds between tries to get the first answer


class Memory(NamedTuple):
    """Bytes; pages that processes share are counted once (PSS)."""

    gunicorn: int  # its master and its workers
    reader: int  # the child process that recognises text; 0 while there is none


class Service:
    """gunicorn over the data folder of `settings`, started like `make run`, with additional `arguments`.

    A context manager. `started_in` is the time to the first answer, in seconds. The program is that in the
    folder `root`.
    """

    def __init__(self, settings: Settings, *arguments: str, root: Path = ROOT):
        self._root = root
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self._settings = dataclasses.replace(settings, api_key=API_KEY, bind=f"127.0.0.1:{self.port}")
        self._arguments = arguments

    def __enter__(self) -> "Service":
        self._log = tempfile.TemporaryFile()
        begun = time.perf_counter()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "gunicorn", *self._arguments],
            cwd=self._root, env=_environment(self._settings), stdout=self._log, stderr=self._log,
        )  # fmt: skip
        try:
            self._wait_for_first_answer(begun + START_PATIENCE)
        except BaseException:
            self.__exit__()
            raise
        self.started_in = time.perf_counter() - begun
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.stop()
        self._log.close()

    def stop(self) -> int:
        """End it as systemd does, unless it has ended already. Returns the exit code."""
        self.process.terminate()
        try:
            return self.process.wait(STOP_PATIENCE)
        except subprocess.TimeoutExpired:
            for process in self._processes():
                process.kill()
            return self.process.wait()

    def client(self) -> "Client":
        return Client(self.port)

    def run(self, *command: str) -> str:
        """The output of a `flask` command that runs beside the service. Raises `CalledProcessError`."""
        environment = _environment(self._settings)
        flask = [sys.executable, "-m", "flask", "--app", "app", *command]
        return subprocess.run(
            flask, cwd=self._root, env=environment, capture_output=True, text=True, check=True
        ).stdout

    def log(self) -> str:
        """Everything that its processes have written."""
        return os.pread(self._log.fileno(), os.fstat(self._log.fileno()).st_size, 0).decode(errors="replace")

    def memory(self) -> int:
        """The memory of all its processes in bytes."""
        return sum(self.memory_of_each())

    def memory_of_each(self) -> Memory:
        """The memory that its processes take now."""
        gunicorn = reader = 0
        for process in self._processes():
            try:
                size = process.memory_full_info().pss
                if READER in process.cmdline():
                    reader += size
                else:
                    gunicorn += size
            except (psutil.NoSuchProcess, psutil.AccessDenied):
                continue  # it ended meanwhile
        return Memory(gunicorn, reader)

    def processor(self) -> float:
        """The processor time of all its processes so far, in seconds."""
        times = [process.cpu_times() for process in self._processes()]
        return sum(each.user + each.system for each in times)

    def _processes(self) -> list[psutil.Process]:
        parent = psutil.Process(self.process.pid)
        return [parent, *parent.children(recursive=True)]

    def _wait_for_first_answer(self, deadline: float) -> None:
        while True:
            try:
                self.client().get("/api/health")
                return
            except ConnectionError:
                if self.process.poll() is not None or time.perf_counter() > deadline:
                    raise RuntimeError(f"the service does not start: {self.log()}") from None
            time.sleep(LOOK)


class MemoryWatch:
    """Samples the memory of a service while this context lasts: at its start, and then `every` so many
    seconds.

    `samples` has all processes, in bytes; `each` the same by process, and `times` the seconds from the start.
    """

    def __init__(self, service: Service, every: float):
        self._begun = time.monotonic()
        self.times = [0.0]
        self.each = [service.memory_of_each()]
        self._service, self._every = service, every
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> "MemoryWatch":
        self._thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._ended.set()
        self._thread.join()

    @property
    def samples(self) -> list[int]:
        return [sum(sample) for sample in self.each]

    def _watch(self) -> None:
        while not self._ended.wait(self._every):
            self.times.append(time.monotonic() - self._begun)
            self.each.append(self._service.memory_of_each())


class PauseWatch:
    """Measures the longest request while this context lasts, in seconds, including refused ones. `threads`
    clients call `ask` without a pause.
    """

    def __init__(self, service: Service, ask: Callable[["Client"], bytes], threads: int):
        self.longest = 0.0  # seconds
        self.refused = 0
        self._service, self._request = service, ask
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=self._ask) for _ in range(threads)]

    def __enter__(self) -> "PauseWatch":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()

    def _ask(self) -> None:
        client = self._service.client()
        while not self._ended.is_set():
            begun = time.perf_counter()
            try:
                self._request(client)
            except RuntimeError:
                self.refused += 1
            self.longest = max(self.longest, time.perf_counter() - begun)


class Client:
    """A client with one open connection. It uses the standard library's HTTP client, because a client on the
    same machine takes processor time from the server.
    """

    def __init__(self, port: int):
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)

    def get(self, path: str) -> bytes:
        return self._call("GET", path, None, {})

    def upload(self, form: bytes) -> bytes:
        """Send a form made by `upload_form`."""
        return self._post("/api/photos/upload", form)

    def write(self) -> bytes:
        """Send the smallest write of the API: how far a device is synced."""
        return self._post(
            "/api/photos/sync-state",
            b"".join((_field("device_id", "phone_1"), _field("since_ms", "0"), _END)),
        )

    def _post(self, path: str, form: bytes) -> bytes:
        return self._call("POST", path, form, {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"})

    def _call(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> bytes:
        """The answer's body. Raises `RuntimeError` for any status but 200: a refusal is fast and would
        improve the figures.
        """
        self._connection.request(method, path, body, {"Authorization": f"Bearer {API_KEY}", **headers})
        response = self._connection.getresponse()
        answer = response.read()
        if response.status != 200:
            raise RuntimeError(f"{method} {path}: {response.status} {answer[:500]!r}")
        return answer


def upload_form(picture: bytes) -> bytes:
    """The complete body of an upload, made before the clock starts."""
    head = (
        f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="Screenshot.png"\r\n'
        "Content-Type: image/png\r\n\r\n"
    )
    return b"".join((_field("device_id", "phone_1"), head.encode(), picture, b"\r\n", _END))


def _field(name: str, value: str) -> bytes:
    return f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode()


_END = f"--{BOUNDARY}--\r\n".encode()


def _environment(settings: Settings) -> dict[str, str]:
    """This process's environment, with the service's variables set to `settings`."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
    for field in dataclasses.fields(settings):
        value = getattr(settings, field.name)
        # An earlier commit knows fewer of them.
        if value not in (None, ()) and value != field.default:
            environment[variable(field.name)] = _written(value)
    return environment


def _written(value: str | int | bool | tuple[str, ...] | Path) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(value) if isinstance(value, tuple) else str(value)
