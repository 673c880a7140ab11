"""A person who uses the dashboard: Debian's Chromium without a window, with the real service.

At the end of each test the page must have caused no error on the console, no violation of the Content
Security Policy and no request to another host. A test that causes one on purpose (a wrong key answers 401,
which Chromium reports) allows it with `tolerate`.
"""

import collections
import contextlib
import json
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright
from playwright.sync_api import Error as PlaywrightError
from playwright.sync_api import Request as PageRequest

from engines.prompts import CONNECTION_TEST
from tests.support.fake_llm import FINDINGS, FakeLLM, Request
from tests.support.service import PATIENCE, Service

# The first one that is installed is used. The headless build takes a third of the time.
PROGRAMS = ("chromium-headless-shell", "chromium", "chromium-browser")
AXE = "axe-core@4.11.1"
NPM_PATIENCE = 60.0
DESKTOP = {"width": 1280, "height": 800}
PHONE = {"width": 390, "height": 844}
KEY = "only-the-person-knows"
# What is fetched while its photo goes to the trash may come too late on a busy machine; Chromium reports it.
GONE = r"404 .*/api/photos/\d+(/(image|lines|opened|thumbnail))?\)"


@contextlib.contextmanager
def running() -> Iterator[Browser]:
    """The browser. Skips the test, with the reason, when none is installed."""
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        pytest.skip(
            "the dashboard's tests need Chromium, which is not installed (Debian: apt-get install chromium)"
        )
    expect.set_options(timeout=PATIENCE * 1000 / 2)  # the default of five seconds is short on a busy machine
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program)
        yield browser
        browser.close()


def axe_source(folder: Path) -> str:
    """The script of axe-core, which checks the accessibility of a page. Skips the test when npm cannot
    install it.
    """
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("axe-core comes from npm, which is not installed")
    impatient = ("--fetch-retries=0", "--fetch-timeout=10000", "--no-audit", "--no-fund")
    try:
        command = [npm, "install", *impatient, "--prefix", str(folder), AXE]
        installed = subprocess.run(command, capture_output=True, text=True, timeout=NPM_PATIENCE, check=False)
    except subprocess.TimeoutExpired:
        pytest.skip(f"npm does not bring {AXE} in time")
    if installed.returncode:
        pytest.skip(f"npm cannot install {AXE}: {installed.stderr[-200:]}")
    return (folder / "node_modules" / "axe-core" / "axe.min.js").read_text(encoding="utf-8")


class Dashboard:
    """The service with a scripted model, and the pages that are open on it. A context manager."""

    def __init__(self, browser: Browser, folder: Path, llm: FakeLLM | None, **settings: Any):
        model = (
            {"llm_base_url": llm.url, "llm_model": "scripted", "llm_api_key": "sk-scripted-secret"}
            if llm
            else {}
        )
        self.service = Service(
            folder,
            **{
                "api_key": KEY,
                "dev_mode": "true",
                "analysis_workers": "1",
                "language": "en",
                **model,
                **settings,
            },
        )
        self.llm = llm
        # The model's findings for the next pictures, in order, or functions that return them.
        self.findings = collections.deque()
        if llm:
            llm.default = self._answer
            llm.queue_is_for = lambda request: not request.images or CONNECTION_TEST in request.text
        self.address = ""  # of a proxy in front, which the pages open instead
        self._browser = browser
        self._contexts = []
        self._problems: list[str] = []
        self._tolerated: list[str] = []

    def __enter__(self) -> "Dashboard":
        self.service.__enter__()
        return self

    def __exit__(self, *failure) -> None:
        self._close_pages()
        self.service.__exit__(*failure)
        if failure[0] is None:
            self.assert_quiet()
        elif self._problems:
            print("on the pages:", *self._problems, sep="\n  ")

    def open(
        self,
        address: str = "#/",
        *,
        signed_in: bool = True,
        language: str = "en",
        theme: str = "light",
        size: dict = DESKTOP,
        **context: Any,
    ) -> Page:
        """A page in a browser with its own storage, with this person's language, theme and screen."""
        locale = {"en": "en-GB", "zh": "zh-CN"}[language]
        # Requests that a service worker is in charge of cannot be intercepted by a test.
        context = {"service_workers": "block", **context}
        own = self._browser.new_context(
            viewport=size, locale=locale, color_scheme=theme, reduced_motion="reduce", **context
        )
        self._contexts.append(own)
        own.set_default_timeout(PATIENCE * 1000 / 2)
        if signed_in:
            # Not on about:blank, which has no storage.
            own.add_init_script(
                f"if (location.host) localStorage.setItem('snaplore.key', {json.dumps(json.dumps(KEY))})"
            )
        own.add_init_script(
            "addEventListener('securitypolicyviolation', (event) => "
            "console.error('CSP: ' + event.violatedDirective))"
        )
        page = own.new_page()
        page.on(
            "console",
            lambda message: self._note(message.type, f"{message.text} ({message.location.get('url', '')})"),
        )
        page.on("pageerror", lambda error: self._note("error", str(error)))
        page.on("request", self._watch)
        page.goto(f"{self.address or self.service.url}/{address}")
        return page

    def tolerate(self, pattern: str) -> None:
        """Allow messages that this regular expression matches."""
        self._tolerated.append(pattern)

    def assert_quiet(self) -> None:
        loud = [
            problem
            for problem in self._problems
            if not any(re.search(pattern, problem) for pattern in self._tolerated)
        ]
        assert not loud, "\n".join(loud)

    def begin_anew(self) -> None:
        """Close the pages and check that they had no errors. The service keeps running for the next test."""
        self._close_pages()
        try:
            self.assert_quiet()
        finally:
            self._problems.clear()
            self._tolerated.clear()

    def _close_pages(self) -> None:
        while self._contexts:
            self._contexts.pop().close()

    def _answer(self, request: Request) -> Any:
        """Answer with the next findings. They have a queue of their own, because the note writer runs after
        every third picture at any time and would take answers from the model's queue.
        """
        if not request.images:
            return {"articles": []}
        found = self.findings.popleft() if self.findings else FINDINGS
        return found() if callable(found) else found

    def _note(self, kind: str, text: str) -> None:
        if kind in ("error", "warning") and "blocked by Playwright" not in text:
            self._problems.append(f"{kind}: {text}")

    def _watch(self, sent: PageRequest) -> None:
        url = sent.url
        if sent.method == "DELETE" or url.endswith(("/trash", "/photos/batch")):
            self.tolerate(GONE)
        if not url.startswith((self.address or self.service.url, "blob:", "data:")):
            self._problems.append(f"request to another place: {url}")


def barriers(page: Page, axe: str, *, only: list[str] | None = None) -> list[str]:
    """The accessibility problems that axe-core finds on the page, of all its rules or `only` of these: rule,
    help and elements of each.
    """
    if not page.evaluate("'axe' in window"):
        page.evaluate(axe)  # through the debugger, to which the page's policy does not apply
    found = page.evaluate(
        "(only) => axe.run(document, {resultTypes: ['violations'], ...(only && {runOnly: only})})"
        ".then((result) => result.violations)",
        only,
    )
    return [
        f"{violation['id']}: {violation['help']}: "
        + "; ".join(node["html"][:150] for node in violation["nodes"][:3])
        for violation in found
    ]


def _is_true(page: Page, condition: str, argument: Any) -> bool:
    try:
        return bool(page.evaluate(condition, argument))
    except PlaywrightError as problem:
        if "context was destroyed" not in str(problem):
            raise
        return False


def settled(page: Page, condition: str, argument: Any = None) -> None:
    """Wait until this JavaScript expression is true on the page, also while it is loaded anew."""
    deadline = time.monotonic() + 2 * PATIENCE
    while not _is_true(page, condition, argument):
        assert time.monotonic() < deadline, f"never true on the page: {condition}"
        page.wait_for_timeout(20)
