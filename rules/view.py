"""What the makers of records look at, and how they note what they find.

A maker is a function that looks at a `View` and returns a record of its type, or None. It takes every value
from lines of the page and notes which; nothing is invented.
"""

import copy
import itertools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

import msgspec

from engines.lines import Line, Page
from engines.records import Field, Record, Value, checked
from rules.layout import Layout, joined
from rules.moments import Moments
from rules.pairs import Pairs
from rules.pairs import Value as Labelled
from rules.prices import Money
from rules.searched import Text

WIDE = 1.15  # times its height: a window that may have a list at its left
STRIP = (18, 46)  # hundredths of the width: where the strip beside that list may be
MOST_CROSSING = 1  # lines that were read as one over the strip
LEAST_BESIDE = 5  # lines on each of its sides


@dataclass(frozen=True, eq=False)
class View:
    """A page with its layout, the kind of screen (`rules/kinds.py`), the app, and when the screenshot was
    taken, in local time without a zone, None where that is not known. `shift` is how far the page is moved to
    the left of the picture. `types` is how likely each type of record is, empty where nothing has voted.
    """

    page: Page
    layout: Layout
    kind: str
    app: str
    taken: datetime | None
    shift: int = 0
    types: Mapping[str, float] = field(default_factory=dict)

    def chosen(self, kind: str, record: str) -> "View":
        """The same screen, looked at as one of another kind, whose type of record is beyond doubt."""
        other = copy.copy(self)  # with what is cached
        object.__setattr__(other, "kind", kind)
        object.__setattr__(other, "types", {record: 1.0})
        return other

    @cached_property
    def pane(self) -> "View":
        """What is beside the list at the left of a wide window, as messengers on computers have it; the whole
        screen where there is none.
        """
        strip = _strip(self.layout)
        if strip is None:
            return self
        moved = [
            msgspec.structs.replace(line, left=line.left - strip, right=line.right - strip)
            for line in self.page.written
            if line.left >= strip
        ]
        page = Page(width=self.page.width - strip, height=self.page.height, lines=moved)
        return View(page, Layout(page), self.kind, self.app, self.taken, strip)

    @cached_property
    def pairs(self) -> Pairs:
        """The labels of the screen with their values."""
        return Pairs(self.layout)

    @cached_property
    def text(self) -> Text:
        """All of its text, folded."""
        return Text(self.layout.content)

    @cached_property
    def money(self) -> Money:
        """Reads amounts."""
        return Money(self.layout.content)

    @cached_property
    def moments(self) -> Moments:
        """Reads days and times."""
        return Moments(self.layout.content, self.taken, day_first=True if self.pairs.is_continental else None)


def _strip(layout: Layout) -> int | None:
    """Where the empty strip of a wide window is, between a list at the left and what is beside it."""
    lines = layout.lines
    if layout.width < WIDE * layout.height or len(lines) < 2 * LEAST_BESIDE:
        return None
    places = [part * layout.width // 100 for part in range(*STRIP)]
    crossing = [sum(line.left < place < line.right for line in lines) for place in places]
    if min(crossing) > MOST_CROSSING:
        return None
    runs = itertools.groupby(zip(crossing, places, strict=True), key=lambda one: one[0] == min(crossing))
    strip = max(([place for _, place in run] for is_free, run in runs if is_free), key=len)[-1]
    sides = ([one for one in lines if one.right <= strip], [one for one in lines if one.left >= strip])
    for side in sides:
        tall = max((one.bottom for one in side), default=0) - min((one.top for one in side), default=0)
        if len(side) < LEAST_BESIDE or tall < 0.5 * layout.height:
            return None
    return strip


Maker = Callable[[View], Record | None]


class Draft:
    """A record while its fields are found. The first value of a field stays."""

    def __init__(self, view: View, shift: int = 0):
        """`shift` is that of the view which the lines will be of."""
        self._view, self._shift = view, shift
        self._at = {
            (line.left, line.top, line.right, line.bottom): n for n, line in enumerate(view.page.lines)
        }
        self._fields: dict[str, Field] = {}

    def add(self, name: str, value: Value | None, lines: Iterable[Line], text: str = "") -> None:
        """Note a field that stands on `lines`. `text` is the words as they are on the screen, by default
        those of the lines. An empty value is none.
        """
        lines = list(lines)
        if not value or name in self._fields:
            return
        shift = self._shift
        places = [
            self._at.get((line.left + shift, line.top, line.right + shift, line.bottom), -1) for line in lines
        ]
        self._fields[name] = Field(
            name,
            value,
            text or joined(line.text for line in lines),
            list(dict.fromkeys(place for place in places if place >= 0)),
        )

    def put(self, name: str, found: tuple[str, Labelled] | None) -> None:
        """Note a field that was found by its label."""
        if found is not None:
            self.add(name, found[0], found[1].lines, found[1].text)

    def name_app(self, name: str) -> None:
        """Note the app in a field, if its name is on the screen."""
        app = self._view.app.casefold()
        at = next(
            (n for n, line in enumerate(self._view.page.lines) if app and app in line.text.casefold()), -1
        )
        if at >= 0 and name not in self._fields:
            self._fields[name] = Field(name, self._view.app, self._view.page.lines[at].text, [at])

    def record(self, kind: str, confidence: float = 0.5) -> Record | None:
        """The record of this type, None where a field that it needs was not found."""
        return checked(Record(kind, list(self._fields.values()), "local", confidence))
