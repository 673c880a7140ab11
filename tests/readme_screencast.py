"""The README's screencast: `make pictures` lets Chromium use the dashboard for a minute, and keeps what it
shows as an animated WebP. It is made of single frames, each with the time that it stays, so a slow machine
makes the same film as a fast one.
"""

import io
from collections.abc import Callable
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page

from tests.support import browser

SIZE = {"width": 1120, "height": 700}
LETTER, MOMENT, LOOK, READ = 140, 700, 2_200, 4_500  # milliseconds that a frame stays
QUALITY = 62
MOST_BYTES = 3_000_000


class Film:
    """The frames of a page, each with how long it stays."""

    def __init__(self, page: Page):
        self.page = page
        self._frames: list[tuple[Image.Image, int]] = []

    def shoot(self, milliseconds: int) -> None:
        self.page.wait_for_load_state("networkidle")
        frame = Image.open(io.BytesIO(self.page.screenshot())).convert("RGB")
        self._frames.append((frame, milliseconds))

    def type(self, text: str) -> None:
        for letter in text:
            self.page.keyboard.type(letter)
            self.shoot(LETTER)

    def save(self, path: Path) -> float:
        """Returns the seconds that it takes to look at."""
        (first, _), *others = self._frames
        times = [milliseconds for _, milliseconds in self._frames]
        frames = [frame for frame, _ in others]
        first.save(
            path, save_all=True, append_images=frames, duration=times, loop=0, quality=QUALITY, method=6
        )
        return sum(times) / 1000


def make(dashboard: browser.Dashboard, path: Path) -> None:
    """Use the dashboard for a minute: look, search with a typing mistake, open, plan, list, ask."""
    film = Film(dashboard.open("#/library", size=SIZE))
    for scene in (_library, _search, _agenda, _tables, _chat):
        scene(film)
    seconds = film.save(path)
    size = path.stat().st_size
    assert size < MOST_BYTES, size
    print(f"{path.name}: {seconds:.0f} s, {size // 1024} KB")


def _library(film: Film) -> None:
    film.page.locator(".timeline img").first.wait_for()
    film.shoot(READ)
    film.page.mouse.move(SIZE["width"] / 2, SIZE["height"] / 2)
    for _ in range(6):
        film.page.mouse.wheel(0, 60)
        film.shoot(LETTER)
    film.shoot(LOOK)


def _search(film: Film) -> None:
    film.page.keyboard.press("/")
    film.shoot(MOMENT)
    film.type("apointment tuesday")
    film.page.keyboard.press("Enter")
    film.page.locator(".results img").first.wait_for()
    film.shoot(READ)
    film.page.locator(".results img").first.click()
    film.page.locator(".viewer-slide:not([inert]) img").wait_for()
    film.shoot(READ + LOOK)
    film.page.keyboard.press("Escape")
    film.shoot(MOMENT)


def _agenda(film: Film) -> None:
    _go(film, "#/agenda", lambda page: page.locator("main img").first.wait_for())
    film.shoot(READ + LOOK)


def _tables(film: Film) -> None:
    _go(film, "#/records/trips", lambda page: page.locator(".records-open").first.wait_for())
    film.shoot(READ)


def _chat(film: Film) -> None:
    _go(film, "#/chat", lambda page: page.get_by_role("textbox", name="Message").wait_for())
    film.shoot(LOOK)
    film.page.get_by_role("textbox", name="Message").focus()
    film.type("When does my train to Hamburg leave?")
    film.page.keyboard.press("Enter")
    film.page.locator(".chat-answer").first.wait_for()
    film.shoot(2 * READ)


def _go(film: Film, address: str, arrived: Callable[[Page], None]) -> None:
    film.page.evaluate("address => { location.hash = address; }", address)
    arrived(film.page)
    film.shoot(MOMENT)
