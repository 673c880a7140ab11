"""What the makers of records look at, and how they note what they find.

A maker is a function that looks at a `View` and returns a record of its type, or None. It takes every value
from lines of the page and notes which; nothing is invented.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from engines.lines import Line, Page
from engines.records import Field, Record, Value, checked
from rules.layout import Layout, joined
from rules.moments import Moments
from rules.pairs import Pairs
from rules.pairs import Value as Labelled
from rules.prices import Money
from rules.searched import Text


@dataclass(frozen=True, eq=False)
class View:
    """A page with its layout, the kind of screen (`rules/kinds.py`), the app, and when the screenshot was
    taken, in local time without a zone, None where that is not known.
    """

    page: Page
    layout: Layout
    kind: str
    app: str
    taken: datetime | None

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


Maker = Callable[[View], Record | None]


class Draft:
    """A record while its fields are found. The first value of a field stays."""

    def __init__(self, view: View):
        self._view = view
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
        places = [self._at.get((line.left, line.top, line.right, line.bottom), -1) for line in lines]
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
        line = next((line for line in self._view.page.lines if app and app in line.text.casefold()), None)
        if line is not None:
            self.add(name, self._view.app, [line])

    def record(self, kind: str, confidence: float = 0.5) -> Record | None:
        """The record of this type, None where a field that it needs was not found."""
        return checked(Record(kind, list(self._fields.values()), "local", confidence))
