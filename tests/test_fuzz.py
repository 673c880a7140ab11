"""The contract under hostile input: Schemathesis sends a real service what the contract allows and what it
does not, bounded in time.

No answer may be a failure of the server, have a status or a header that is not declared, or a body outside
its schema; nothing is answered without the key, and nothing found that was deleted. `make fuzz` gives it
minutes instead of seconds.
"""

import os
import subprocess
import sys

import pytest

from settings import ROOT
from tests.support.service import PATIENCE, Service

KEY = "fuzz"
CONTRACT_CHECKS = ROOT / "tests" / "support" / "schemathesis.toml"

# The service's own configuration; but no name leads out of the machine, since what is sent may be a preset's
# address, and then a message. Requests seem to come from many addresses, or the limit of 10 a minute would
# end all chats.
CONFIGURATION = f"""
import random
import socket

exec(open({str(ROOT / "gunicorn.conf.py")!r}).read())
resolve = socket.getaddrinfo


def getaddrinfo(host, *args, **options):
    if host not in ("localhost", "127.0.0.1", "::1", None):
        raise socket.gaierror(socket.EAI_AGAIN, "there is no network in this test")
    return resolve(host, *args, **options)


socket.getaddrinfo = getaddrinfo


def pre_request(worker, request):
    request.headers.append(("X-FORWARDED-FOR", f"198.51.100.{{random.randrange(40)}}"))
"""


@pytest.mark.slow
def test_whatever_is_sent_the_service_keeps_to_its_contract(tmp_path, request):
    seconds = request.config.getoption("fuzz_seconds")
    configuration = tmp_path / "gunicorn.conf.py"
    configuration.write_text(CONFIGURATION)
    with Service(
        tmp_path, "-c", str(configuration), api_key=KEY, language="en", trusted_proxies=1
    ) as service:
        command = ["run", f"{service.url}/api/openapi.json", "--max-time", str(seconds), "--no-color"]
        found = subprocess.run(
            [sys.executable, "-m", "schemathesis.cli", "--config-file", str(CONTRACT_CHECKS), *command],
            cwd=tmp_path, env={**os.environ, "FUZZ_KEY": KEY}, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=seconds + 3 * PATIENCE, check=False,
        )  # fmt: skip
        print(found.stdout, found.stderr)
        assert found.returncode == 0
        assert " generated, " in found.stdout
