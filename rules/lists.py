"""Lists on a screen, and the records that are made of them: chats, mails, tasks, events, settings.

An entry is a line at the left edge that most entries share, with what is below it up to the next one.
"""

import itertools
import re
import statistics
from collections.abc import Sequence
from typing import NamedTuple

from engines.lines import Line
from engines.records import Record
from rules import rows, wordlists
from rules.entities import MONTH
from rules.headings import Heading, heading, is_day, is_title
from rules.kinds import MONTH_DAYS, WHEN_RIGHT, days_of_month, headed, is_lock_screen
from rules.layout import (
    Block,
    Layout,
    folded,
    is_chinese,
    is_clock,
    joined,
    plain,
    weight,
)
from rules.names import without_count
from rules.view import Draft, View
from text import shortened

NEAR = 3.0  # heights between a line and the one that belongs to the same entry
SURE = 0.6  # chance of a list (`rules/rows.py`) below which a record that needs none goes without it
LEAST_PRICES = 2  # amounts that a page of settings has not
PAGES = 0.5  # of the height: where the day or the month of a page of a calendar is
LARGER = 1.15  # than an entry is a heading at the same left edge
MOST_WORDS = 3  # of a heading that says what a list is
ENTRY, SAID, NOTICE = 60, 90, 110  # characters of an entry's name, of what is below it, of a notification
_WORDS = wordlists.table("writings")
_BUTTONS = frozenset(wordlists.lines(_WORDS["notice"]["buttons"]))
_HEADERS = {name: frozenset(wordlists.lines(text)) for name, text in _WORDS["headers"].items()}
_UNSURE = ("", "form", "page", "notices")  # kinds of which the word in the header is surer
_MONTH = re.compile(rf"{MONTH}|\d ?月", re.IGNORECASE)
_CLOCK = re.compile(r"\d[:：]\d\d")
_DATE = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)(?=.)|(?<=.)(?:19|20)\d\d(?!\d)|\d ?月")


class Entry(NamedTuple):
    """An entry of a list: its name, what is below it, the value at its right, and its lines."""

    name: str
    said: str
    value: str
    lines: tuple[Line, ...]


def entries(layout: Layout, kind: str, title: str = "", least: float = 0.0) -> list[Entry]:
    """The entries of the list on a screen of this kind, without its title; none where they are less sure than
    `least` (`rows.Named`).
    """
    found = rows.named(layout, kind)
    lines = [line for line in found.lines if rows.name_of(line) != title]
    if found.chance < least:
        return []
    row_of = {id(line): at for at, row in enumerate(layout.rows) for line in row.lines}
    taken = {id(line) for line in (*lines, *(layout.navigation.lines if layout.navigation else ()))}
    listed = [_entry(layout, line, row_of[id(line)], taken) for line in lines]
    return list({(entry.name, entry.said): entry for entry in listed}.values())


def _entry(layout: Layout, line: Line, at: int, taken: set[int]) -> Entry:
    """The entry that a line of a row names, with what is below it and beside it, up to what others have."""
    row = layout.rows[at]
    below = next(
        (
            other
            for near in itertools.takewhile(
                lambda near: not any(id(one) in taken for one in near.lines), layout.rows[at + 1 : at + 4]
            )
            for other in near.lines[:2]
            if other.left >= line.left - line.height
            and other.top - line.bottom < NEAR * line.height
            and weight(other.text) >= 3
            and not WHEN_RIGHT.fullmatch(other.text.strip())
        ),
        None,
    )
    is_valued = row.last is not line and id(row.last) not in taken
    value = plain(row.last.text) if is_valued and not is_clock(row.last.text) else ""
    value = "" if WHEN_RIGHT.fullmatch(value) else value
    said = plain(below.text)[:SAID] if below else ""
    return Entry(rows.name_of(line)[:ENTRY], said, value[:ENTRY], (line, *([below] if below else [])))


def notices_of(layout: Layout) -> list[Entry]:
    """The notifications on a screen: the sender of each, and its text."""
    found = []
    locked = is_lock_screen(layout)

    def sender_of(block: Block) -> str:
        return headed(block.lines[0].text, with_address=locked)

    for at, block in enumerate(layout.blocks):
        if sender := sender_of(block):
            # Its title and its text are in the blocks below, up to the next header.
            below = [
                one
                for one in itertools.takewhile(lambda one: not sender_of(one), layout.blocks[at + 1 : at + 3])
                if weight(one.text) >= 3 and not is_clock(one.text) and folded(one.text) not in _BUTTONS
            ]
            own = plain(" ".join(line.text for line in block.lines[1:]))
            said = own or ": ".join(plain(one.text) for one in below)
            lines = (*block.lines, *(line for one in ([] if own else below) for line in one.lines))
            found.append(Entry(plain(sender), shortened(said, NOTICE), "", lines))
    return found


def _says(view: View, name: str) -> bool:
    """Whether the header says what the list is, on a screen whose kind is not known by more than that."""
    headers = " ".join(folded(line.text) for line in view.layout.headers[:2])
    return view.kind in _UNSURE and _says_by(headers, name)


def _says_by(text: str, name: str) -> bool:
    """Whether one of the words of a kind of list is in a folded text."""
    return any(
        word in (text if is_chinese(word[0]) or " " in word else text.split())
        for word in _HEADERS.get(name, ())
    )


def name_list(view: View, draft: Draft, of: str = "", *, generic: bool = True) -> str:
    """The heading of the list, noted as its name, also a `generic` one that any such list has; else the line
    above it that says what it is a list `of`.
    """
    layout = view.layout
    rows = [row.first for row in layout.entries]
    found = heading(layout, view.kind, view.app)
    if found is not None and found.lines and _is_entry(layout, found.lines[0]):
        found = None
    name = None
    if found is not None and (not found.generic or (generic and found.lines)) and _is_name(found.text):
        name = None if any(line in rows for line in found.lines) else found
    line = _worded(layout, of, rows)
    if line is not None and (name is None or name.text.casefold() == view.app.casefold()):
        name = found = Heading(plain(line.text), (line,), generic=True)
    if name is not None:
        draft.add("name", name.text, name.lines)
    return found.text if found else ""


def _is_entry(layout: Layout, line: Line) -> bool:
    """Whether a line looks as the entries of a list do: at their left edge, and as large."""
    rows = [row.first for row in layout.entries]
    like = [
        one
        for one in rows
        if abs(one.left - line.left) < line.height / 2 and line.height < LARGER * one.height
    ]
    return len(like) >= 2 and 2 * len(like) >= len(rows)


def _worded(layout: Layout, of: str, rows: Sequence[Line]) -> Line | None:
    """The largest line above a list that says what it is a list `of`."""
    top = min((line.top for line in rows), default=layout.height)
    left_out = {id(line) for line in layout.sidebar}
    found = [
        line
        for line in layout.lines
        if line.bottom <= top + line.height
        and id(line) not in left_out
        and len(folded(line.text).split()) <= MOST_WORDS
        and is_title(plain(line.text), 2)
        and _says_by(folded(line.text), of)
    ]
    return max(found, key=lambda line: line.height, default=None)


def _is_name(text: str) -> bool:
    """Whether a heading names a list, and is no entry, day or value that was read as one."""
    return not (is_day(text) or ":" in text or text.endswith((".", "…")))


def _least(draft: Draft, kind: str) -> float:
    """How sure the entries of a record must be: it may do without them, unless it has nothing else."""
    return SURE if draft.record(kind) is not None else 0.0


def _listed(view: View, draft: Draft, found: Sequence[Entry], second: str) -> None:
    first = "who" if second == "what" else "name"
    values = [one.value if second == "value" else one.said for one in found]
    listed = [
        {first: one.name} | ({second: value} if value else {})
        for one, value in zip(found, values, strict=True)
    ]
    draft.add("entries", listed, [line for one in found for line in one.lines])


def messages(view: View) -> Record | None:
    """The chats of a messenger, each with its newest message."""
    return _received(view) if view.kind != "mail" else None


def mails(view: View) -> Record | None:
    """The mails of an inbox."""
    return _received(view) if view.kind == "mail" else None


def _received(view: View) -> Record | None:
    layout = view.layout
    is_list = view.kind in ("conversations", "mail") or _says(view, "messages")
    if not is_list or (layout.composer is not None and not view.types):
        return None
    is_unsure = view.kind == "mail" and "MailList" not in view.types
    if is_unsure and layout.paragraphs and len(layout.values(WHEN_RIGHT)) < 3:
        return None  # one mail
    draft = Draft(view)
    if view.kind == "mail":  # of which the largest line is one of the mails
        folder = next(
            (line for line in layout.lines if _says_by(without_count(folded(line.text)), "mails")), None
        )
        name = plain(folder.text) if folder else ""
        draft.add("name", without_count(name), [folder] if folder else [])
    else:
        name = name_list(view, draft, "messages")
    found = entries(layout, view.kind, name)
    if len(found) < 2 or not (view.types or any(one.said or one.value for one in found)):
        return None  # names alone: of a list, each chat has a message or a time
    _listed(view, draft, found, "what")
    return draft.record("MailList" if view.kind == "mail" else "MessageList")


def tasks(view: View) -> Record | None:
    """A list of things to do."""
    if view.kind != "tasks" and not _says(view, "tasks"):
        return None
    draft = Draft(view)
    found = entries(view.layout, view.kind, name_list(view, draft, "tasks"))
    if len(found) < 2:
        return None
    days = [view.moments.day(entry.said) or view.moments.day(entry.value) for entry in found]
    listed = [
        {"name": entry.name} | ({"date": day.begins} if day and day.begins else {})
        for entry, day in zip(found, days, strict=True)
    ]
    draft.add("entries", listed, [line for entry in found for line in entry.lines])
    return draft.record("TaskList")


def month(view: View) -> Record | None:
    """A month as a table, with what its days have."""
    layout, draft = view.layout, Draft(view)
    days = days_of_month(layout)
    if len(days) < MONTH_DAYS or len(planned := _in_month(layout, days)) < 2:
        return None
    _date(view, draft)
    named = next((line for line in layout.lines if line.top < days[0].top and _MONTH.search(line.text)), None)
    if named is not None:
        draft.add("name", plain(named.text), [named])
    draft.add("entries", [{"name": plain(line.text)[:ENTRY]} for line in planned], planned)
    return draft.record("CalendarView")


def calendar(view: View) -> Record | None:
    """A calendar, with its events."""
    if view.kind != "calendar":
        return None
    layout, draft = view.layout, Draft(view)
    _date(view, draft)
    title = name_list(view, draft, generic=False)
    found = entries(layout, view.kind, title, _least(draft, "CalendarView"))
    draft.add("entries", [{"name": one.name} for one in found], [one.lines[0] for one in found])
    return draft.record("CalendarView")


def _date(view: View, draft: Draft) -> None:
    """Note the day, week or month that a page of a calendar has at its top, unless each entry has one."""
    layout = view.layout
    found = [row for row in layout.rows if any(_is_date(plain(line.text)) for line in row.lines)]
    upper = [row for row in found if row.first.top < PAGES * layout.height]
    large = [row for row in found[1:] if LARGER * row.first.height > found[0].first.height]
    if upper and (len(found) == 1 or not large):
        lines = [line for line in upper[0].lines if is_day(line.text) and not _CLOCK.search(line.text)]
        draft.add("name", joined(plain(line.text) for line in lines), lines)


def _is_date(text: str) -> bool:
    return is_day(text) and _DATE.search(text) is not None and not _CLOCK.search(text)


def _in_month(layout: Layout, days: Sequence[Line]) -> list[Line]:
    """What the cells of a month's table have beside the numbers of the days."""
    tops = sorted({day.top for day in days})
    weeks = [below - above for above, below in itertools.pairwise(tops) if below - above > days[0].height]
    lowest = tops[-1] + (statistics.median(weeks) if weeks else 0)
    numbers = {id(day) for day in days}
    return [
        line
        for line in layout.lines
        if tops[0] < line.top < lowest and id(line) not in numbers and is_title(plain(line.text))
    ]


def notices(view: View) -> Record | None:
    """Notifications: who sent each, and what it says."""
    named = _says(view, "notices")
    if view.kind not in ("notices", "lock_screen") and not named:
        return None
    found = notices_of(view.layout)
    draft = Draft(view)
    title = name_list(view, draft, "notices")
    if len(found) < 2 and view.kind != "lock_screen":
        found = entries(view.layout, view.kind, title, 0.0 if named else SURE)
    if not found:
        return None
    listed = [{"who": one.name} | ({"what": one.said} if one.said else {}) for one in found]
    draft.add("entries", listed, [line for one in found for line in one.lines])
    return draft.record("MessageList")


def settings(view: View) -> Record | None:
    """A page of settings with its entries."""
    if view.kind != "settings" and not _says(view, "settings"):
        return None
    if len(view.money.prices(view.layout.content)) >= LEAST_PRICES:
        return None  # where there are settings, too
    draft = Draft(view)
    title = name_list(view, draft, "settings")
    draft.name_app("app")
    found = entries(view.layout, view.kind, title, _least(draft, "SettingsPage"))
    found = [one for one in found if folded(one.name) not in _HEADERS["settings"]]
    if len(found) >= 2:
        _listed(view, draft, found, "value")
    return draft.record("SettingsPage")
