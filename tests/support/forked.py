"""Python programs in their own processes, forked from a process that has already imported the service.

That takes a tenth of the time of a start, because nine tenths are imports. Each program has its own
arguments, environment, folder, output and signal handling. Variables that glibc or Python read only when an
interpreter starts have no effect.
"""

import contextlib
import multiprocessing
import os
import runpy
import subprocess
import sys
import tempfile
import time
from pathlib import Path

_SPAWN = multiprocessing.get_context("forkserver")
_SPAWN.set_forkserver_preload(
    ["app", "gunicorn.app.wsgiapp", "web.worker", "flask.cli", "tests.support.forked"]
)


class Forked:
    """`python -m` with these arguments in `folder`, as the leader of a session. It has the interface of
    `subprocess.Popen`.
    """

    def __init__(
        self,
        *arguments: str,
        environment: dict[str, str],
        folder: Path,
        stdout: Path,
        stderr: Path | None = None,
    ):
        self.arguments = arguments
        self._process = _SPAWN.Process(
            target=_become, args=(arguments, environment, folder, stdout, stderr), daemon=True
        )
        self._process.start()
        self.pid = self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float) -> int:
        """The exit code. Raises `subprocess.TimeoutExpired`."""
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired(self.arguments, timeout)
        return self._process.exitcode

    def terminate(self) -> None:
        self._process.terminate()

    def kill(self) -> None:
        self._process.kill()


def run(
    *arguments: str, environment: dict[str, str], folder: Path, timeout: float
) -> subprocess.CompletedProcess:
    """Run `python -m` with these arguments to its end; the finished process with its output. Raises
    `subprocess.TimeoutExpired`.
    """
    with tempfile.TemporaryDirectory() as written:
        stdout, stderr = Path(written, "stdout"), Path(written, "stderr")
        process = Forked(*arguments, environment=environment, folder=folder, stdout=stdout, stderr=stderr)
        try:
            process.wait(timeout)
        finally:
            process.kill()
        return subprocess.CompletedProcess(
            arguments, process.returncode, stdout.read_text(), stderr.read_text()
        )


def _become(
    arguments: tuple[str, ...], environment: dict[str, str], folder: Path, stdout: Path, stderr: Path | None
) -> None:
    os.setsid()
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    nothing = os.open(os.devnull, os.O_RDONLY)
    out = os.open(stdout, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    error = os.open(stderr, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666) if stderr else out
    for number, descriptor in enumerate((nothing, out, error)):
        os.dup2(descriptor, number)
    sys.path[0] = str(folder)
    sys.argv = list(arguments)
    with contextlib.suppress(KeyboardInterrupt):
        runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)
