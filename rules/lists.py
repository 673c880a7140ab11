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
from rules import wordlists
from rules.entities import MONTH
from rules.headings import Heading, heading, is_day, is_title
from rules.kinds import AGO, MONTH_DAYS, WHEN_RIGHT, days_of_month, headed, is_lock_screen
from rules.layout import (
    RIGHT_EDGE,
    Block,
    Layout,
    Row,
    folded,
    is_chinese,
    is_clock,
    joined,
    plain,
    weight,
    without_time,
)
from rules.names import without_count
from rules.view import Draft, View
from text import shortened

OFF = 0.12  # of the space between two entries: how far one may be from its place
MOST_READ = 200  # characters of a line that may be a name
NEAR = 3.0  # heights between a line and the one that belongs to the same entry
LIKELY = 0.2  # chance from which on a screen is a list of mails
LEAST_PRICES = 2  # amounts that a page of settings has not
SHORT = 14  # characters of a word at the right edge of a list
LEAST_DIGITS = 4  # of a number that sent a message
PAGES = 0.5  # of the height: where the day or the month of a page of a calendar is
LARGER = 1.15  # than an entry is a heading at the same left edge
MOST_WORDS = 3  # of a heading that says what a list is
ENTRY, SAID, NOTICE = 60, 90, 110  # characters of an entry's name, of what is below it, of a notification
_WORDS = wordlists.table("writings")
_BUTTONS = frozenset(wordlists.lines(_WORDS["notice"]["buttons"]))
_HEADERS = {name: frozenset(wordlists.lines(text)) for name, text in _WORDS["headers"].items()}
_UNSURE = ("", "form", "page", "notices")  # kinds of which the word in the header is surer
AGO_BEHIND = re.compile(rf"[\s·•](?:{AGO})\W{{0,3}}$", re.IGNORECASE)
_MONTH = re.compile(rf"{MONTH}|\d ?月", re.IGNORECASE)
_CLOCK = re.compile(r"\d[:：]\d\d")
_DATE = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)(?=.)|(?<=.)(?:19|20)\d\d(?!\d)|\d ?月")
_FROM_TO = re.compile(r"\d{1,2}[:：]\d\d ?(?:[ap]m)? ?[-–—~至] ?\d{1,2}[:：]\d\d", re.IGNORECASE)


class Entry(NamedTuple):
    """An entry of a list: its name, what is below it, the value at its right, and its lines."""

    name: str
    said: str
    value: str
    lines: tuple[Line, ...]


Listed = tuple[Line, Line | None]  # the name of an entry, and what is below it


def entries(layout: Layout, title: str = "") -> list[Entry]:
    """The entries of the screen's list, without the heading and what is in capitals among others, the
    headings of sections.
    """
    rows = [row for row in entry_rows(layout) if name_of(row) != title]
    mixed = [row for row in rows if not row.first.text.isupper()]
    rows = mixed if len(mixed) >= 2 else rows
    names = tuple(f"{name_of(row)}:" for row in rows)
    rows = [row for row in rows if not name_of(row).startswith(names)]  # "Anna: see you", what she said
    begun = [row for row in rows if not name_of(row)[:1].islower()]  # the others go on with a wrapped line
    rows = begun if len(begun) >= 2 else rows
    found = [
        _entry(layout, row, after) for row, after in itertools.zip_longest(rows, rows[1:]) if row is not None
    ]
    return list({(entry.name, entry.said): entry for entry in found}.values())


def timed(layout: Layout) -> list[Entry]:
    """The entries of a list that has a time at the right of each, beside its name or beside what is below it;
    none where fewer than two have one.
    """
    dated = layout.values(WHEN_RIGHT)
    if len(dated) < 2:
        return []
    edge = statistics.median(_leading(row).left for row in dated)
    # Some have a word instead of the time: "Draft".
    first = layout.rows.index(dated[0])
    dated = [row for row in layout.rows[first:] if row in dated or _is_like(row, edge, layout)]
    pairs = []
    for row in dated:
        at = layout.rows.index(row)
        own = min(row.lines[:-1], key=lambda line: abs(line.left - edge))
        above = _neighbour(layout.rows[:at][::-1], own)
        below = _neighbour(layout.rows[at + 1 :], own)
        pairs.append((own, above, below))
    # The name is above where what is there is closer than what is below.
    raised = [
        above is not None and (below is None or _gap(above, own) < _gap(own, below))
        for own, above, below in pairs
    ]
    is_raised = 2 * sum(raised) > len(pairs)
    named = [
        (above or own, own if above else below) if is_raised else (own, below) for own, above, below in pairs
    ]
    found = []
    for name, said in _with_untimed(layout, named):
        text = _named(name.text)
        if weight(text) or sum(map(str.isdigit, text)) >= LEAST_DIGITS:
            what = plain(said.text)[:SAID] if said is not None else ""
            found.append(Entry(text[:ENTRY], what, "", (name, *([said] if said else []))))
    return found if len(found) >= 2 else []


def _with_untimed(layout: Layout, named: Sequence[Listed]) -> list[Listed]:
    """These names of a list and what is below each, with those of entries between or below them that have no
    time, at the same left edge and as far from each other.
    """
    tops = [name.top for name, _ in named]
    step = min((below - above for above, below in itertools.pairwise(tops)), default=0)
    edge = statistics.median(name.left for name, _ in named)
    known = {id(line) for pair in named for line in pair} | {id(one) for one in layout.headers[:1]}
    known |= {id(line) for line in (layout.navigation.lines if layout.navigation else ())}
    found = list(named)
    for at, row in enumerate(layout.rows):
        line = next((one for one in row.lines if abs(one.left - edge) < one.height), row.first)
        steps = min((abs(line.top - top) for top in tops), default=0) / max(1, step)
        if (
            id(line) not in known
            and abs(line.left - edge) < line.height
            and steps > 0.5
            and abs(steps - round(steps)) < OFF
            and is_title(plain(line.text), 2)
        ):
            found.append((line, _neighbour(layout.rows[at + 1 :], line)))
    return sorted(found, key=lambda pair: pair[0].top)


def _is_like(row: Row, edge: float, layout: Layout) -> bool:
    """Whether a row has a text at the left edge of a list and a short word at the right one."""
    return (
        len(row.lines) >= 2
        and abs(_leading(row).left - edge) < row.first.height
        and row.last.right > RIGHT_EDGE * layout.width
        and len(row.last.text) <= SHORT
        and weight(row.last.text) >= 3
    )


def _leading(row: Row) -> Line:
    """The first line of a row that says something, and is no icon or count before it."""
    return next((line for line in row.lines[:-1] if weight(line.text) >= 2), row.first)


def _neighbour(rows: Sequence[Row], own: Line) -> Line | None:
    """The line at the same left edge in the next row, if that is close and has no time."""
    for row in rows[:2]:
        for line in row.lines:
            if abs(line.left - own.left) < own.height and not WHEN_RIGHT.fullmatch(line.text.strip()):
                near = abs(line.top + line.bottom - own.top - own.bottom) < 2 * NEAR * own.height
                return line if near and not WHEN_RIGHT.fullmatch(row.last.text.strip()) else None
    return None


def _gap(above: Line, below: Line | None) -> int:
    return below.top - above.bottom if below is not None else 0


def entry_rows(layout: Layout) -> list[Row]:
    """The rows that name the entries."""
    first = [row for row in layout.rows if row.first in layout.headers[:1] and _is_entry(layout, row.first)]
    rows = [*first, *layout.entries]
    rows = [row for row in rows if is_title(name_of(row)) and not is_day(name_of(row))]
    if 2 * len(rows) < len(layout.entries):  # each entry begins with its time
        below = _below(layout, layout.entries)
        return below if len(below) >= 3 else rows
    return rows


def name_of(row: Row) -> str:
    """What names an entry: its first text, without a time behind it."""
    return _named(row.first.text)


def _named(text: str) -> str:
    return plain(AGO_BEHIND.sub("", without_time(text[:MOST_READ])))


def _entry(layout: Layout, row: Row, after: Row | None) -> Entry:
    at = layout.rows.index(row)
    end = layout.rows.index(after) if after is not None else at + 2
    left_out = {id(line) for line in (layout.navigation.lines if layout.navigation else ())}
    below = next(
        (
            line
            for other in layout.rows[at + 1 : end]
            for line in other.lines[:2]
            if id(line) not in left_out
            and line.left >= row.first.left - row.first.height
            and line.top - row.first.bottom < 3 * row.first.height
            and weight(line.text) >= 3
            and not WHEN_RIGHT.fullmatch(line.text.strip())
        ),
        None,
    )
    value = plain(row.last.text) if len(row.lines) >= 2 and not is_clock(row.last.text) else ""
    value = "" if WHEN_RIGHT.fullmatch(value) else value
    lines = (row.first, *([below] if below else []))
    return Entry(name_of(row)[:ENTRY], plain(below.text)[:SAID] if below else "", value[:ENTRY], lines)


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


def _below(layout: Layout, rows: Sequence[Row]) -> list[Row]:
    """The row right below each of `rows`: the subjects of mails."""
    following = {
        id(row.first): below
        for row, below in itertools.pairwise(layout.rows)
        if row.first.bottom < below.first.bottom
    }
    found = [(row, following[id(row.first)]) for row in rows if id(row.first) in following]
    return [
        below
        for row, below in found
        if abs(below.first.left - row.first.left) < row.first.height
        and is_title(name_of(below))
        and name_of(below) != name_of(row)
    ]


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


def _name(view: View, draft: Draft, of: str = "", *, generic: bool = True) -> str:
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
    is_voted = view.types.get("MailList", 0.0) >= LIKELY
    if view.kind == "mail" and not is_voted and layout.paragraphs and len(layout.values(WHEN_RIGHT)) < 3:
        return None  # one mail
    draft = Draft(view)
    if view.kind == "mail":  # of which the largest line is one of the mails
        folder = next(
            (line for line in layout.lines if _says_by(without_count(folded(line.text)), "mails")), None
        )
        name = plain(folder.text) if folder else ""
        draft.add("name", without_count(name), [folder] if folder else [])
    else:
        name = _name(view, draft, "messages")
    found = timed(layout) or entries(layout, name)
    if len(found) < 2 or not (view.types or any(one.said or one.value for one in found)):
        return None  # names alone: of a list, each chat has a message or a time
    _listed(view, draft, found, "what")
    return draft.record("MailList" if view.kind == "mail" else "MessageList")


def tasks(view: View) -> Record | None:
    """A list of things to do."""
    if view.kind != "tasks" and not _says(view, "tasks"):
        return None
    draft = Draft(view)
    found = entries(view.layout, _name(view, draft, "tasks"))
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
    """A calendar: what is right above a time with a beginning and an end is an event."""
    if view.kind != "calendar":
        return None
    layout, draft = view.layout, Draft(view)
    _date(view, draft)
    title = _name(view, draft, generic=False)
    events = [
        above
        for line in layout.lines
        if _FROM_TO.match(line.text.strip())
        for above in layout.lines
        if 0 <= line.top - above.bottom < line.height and abs(above.left - line.left) < line.height
    ]
    named = {plain(line.text): line for line in events if is_title(plain(line.text))}
    if len(named) < 2 and not (named := _entered(layout, title)):
        return draft.record("CalendarView")
    draft.add("entries", [{"name": name[:ENTRY]} for name in named], list(named.values()))
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


def _entered(layout: Layout, title: str) -> dict[str, Line]:
    """The entries of a calendar that is a list."""
    found = {entry.name: entry.lines[0] for entry in entries(layout, title)}
    return found if len(found) >= 2 else {}


def notices(view: View) -> Record | None:
    """Notifications: who sent each, and what it says."""
    named = _says(view, "notices")
    if view.kind not in ("notices", "lock_screen") and not named:
        return None
    found = notices_of(view.layout)
    draft = Draft(view)
    title = _name(view, draft, "notices")
    if len(found) < 2 and view.kind != "lock_screen":
        found = timed(view.layout) or (entries(view.layout, title) if named else found)
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
    title = _name(view, draft, "settings")
    draft.name_app("app")
    found = [one for one in entries(view.layout, title) if folded(one.name) not in _HEADERS["settings"]]
    if len(found) >= 2:
        _listed(view, draft, found, "value")
    return draft.record("SettingsPage")
