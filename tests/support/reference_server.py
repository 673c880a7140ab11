"""The official MCP reference server "everything", for machines with Node: found on the path, or installed
from npm into a folder of the tests.
"""

import contextlib
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.service import eventually

PACKAGE = "@modelcontextprotocol/server-everything@2026.8.31"
PROGRAM = "mcp-server-everything"
PATIENCE = 60.0


def program(folder: Path) -> str:
    """The path of the server's program. Skips the test when it is neither installed nor installable."""
    if found := shutil.which(PROGRAM):
        return found
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("the MCP reference server needs Node, which is not installed")
    impatient = (
        "--fetch-retries=0",
        "--fetch-timeout=10000",
        "--no-audit",
        "--no-fund",
    )  # do not wait when there is no network
    command = [npm, "install", *impatient, "--prefix", str(folder), PACKAGE]
    try:
        installed = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    except subprocess.TimeoutExpired:
        pytest.skip(f"npm does not bring {PACKAGE} in time")
    if installed.returncode:
        pytest.skip(f"npm cannot install {PACKAGE}: {installed.stderr[-200:]}")
    return str(folder / "node_modules" / ".bin" / PROGRAM)


@contextlib.contextmanager
def running(path: str) -> Iterator[str]:
    """The address of a server that speaks Streamable HTTP on loopback."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [path, "streamableHttp"],
        env={**os.environ, "PORT": str(port)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        eventually(lambda: _listens(process, port), "the reference server starts")
        yield f"http://localhost:{port}/mcp"
    finally:
        process.terminate()
        process.wait(10)


def _listens(process: subprocess.Popen, port: int) -> bool:
    assert process.poll() is None, "the reference server has ended"
    try:
        socket.create_connection(("localhost", port), 1).close()
    except OSError:
        return False
    return True
