"""Records of journeys: flights, trains, buses; and of maps.

A journey is sure by its form: a number, two places, a time. What else is on such a screen (deals, search
results) has more than one price or asks to choose, and is none.
"""

import itertools
import re
from collections.abc import Iterator, Sequence
from datetime import date
from typing import Literal, NamedTuple

from engines.lines import Line
from engines.records import Record
from rules.headings import is_title
from rules.layout import is_chinese, joined, letters, plain, weight
from rules.moments import Moment, written
from rules.pairs import FORMED, NAMED, Value, Where
from rules.subjects import any_of, evidence, is_heading, names_something, words_of
from rules.view import Draft, View

# A map has so many texts that are not level, of so many characters, over more than this part of its height.
LEAST_TURNED, TURNED, SPREAD = 3, (6, 30), 0.2

Mode = Literal["air", "train", "bus"]
_TYPE = {"air": "FlightReservation", "train": "TrainReservation", "bus": "BusReservation"}
_LABELLED: tuple[Where, ...] = ("colon", "rest", "right", "below")
BESIDE: tuple[Where, ...] = ("colon", "rest", "right", "below", "inside")

_FLIGHT = re.compile(
    r"(?<![A-Z0-9])(?:[A-Z]{2}|[A-Z]\d|\d[A-Z]) ?\d{2,4}(?![\d.,:%A-Z-]| ?(?:km|mi|kg|USD|EUR)\b)"
)
_TRAIN = re.compile(rf"(?<![A-Z0-9]){any_of('trains', 'short')} ?\d{{1,5}}(?!\d)")
_CHINESE_TRAIN = re.compile(r"(?<![A-Za-z0-9])[GDCKTZ]\d{1,4}(?![\dA-Za-z])")
_TRAIN_NAMED = re.compile(
    rf"(?:{any_of('trains', 'named')} ?\d{{1,5}}|{any_of('trains', 'japanese')}\s?\d{{1,4}}号)"
)
_NUMBERED = re.compile(r"[A-Z0-9]{1,4}[ -]?\d{1,5}[A-Z]?")
_CODE = re.compile(r"(?=[A-Z0-9-]{5,16}(?![\w-]))(?:[A-Z0-9]+-?)+")
_GATE = re.compile(r"(?:[A-Z]{1,2} ?)?\d{1,3}[A-Z]?|[A-H]")
_SEAT = re.compile(
    r"\d{1,2}[排车車号]\s?\d{1,3}[A-F]?[座号番]?(?:[上中下]铺)?|\d{1,2}号車\s?\d{1,2}番?[A-E]席?"
    rf"|(?:{any_of('seats', 'rows')}? ?\d{{1,3}}[ ,·/-]{{0,3}}{any_of('seats', 'seats')}? ?)?"
    r"(?:\d{1,3} ?[A-L](?![a-z])|[A-Z]{0,2}-?\d{1,3})(?:[ ,&/]{1,3}(?:\d{1,3}[A-L]|[A-Z]?\d{1,3}))*"
)
_CHINESE_SEAT = re.compile(r"\d{1,2}[车車]\s?\d{1,3}[A-F]?号")
_GATE_SURE = re.compile(r"[A-Z] ?\d{1,3}[A-Z]?")
_IATA = re.compile(r"[A-Z]{3}")
_ARROW = re.compile(
    rf"→|➔|➝|->|—>|=>|⇒|⇄|✈|↔|>|›|～|~|[–—―]|\s(?:{any_of('ways', 'between')}|-)\s"
    r"|(?<=[\u4e00-\u9fff])(?:至|到|-|一)(?=[\u4e00-\u9fff])|(?<=[A-Z]{3})-(?=[A-Z]{3}$)"
)
_BEFORE = re.compile(rf"^(?:.*\b)?(?:{any_of('ways', 'before')})\s+")
_PLACE = r"[A-ZÀ-Ý][\w.'-]*(?: [A-ZÀ-Ý][\w.'-]*){0,3}"
_FROM_TO = re.compile(
    rf"\b(?:{any_of('ways', 'origin')}) ({_PLACE}) (?:{any_of('ways', 'between')}) ({_PLACE})"
)
_TO = re.compile(rf"(?:{any_of('ways', 'between')}|→|›) ({_PLACE})")
_IN_BRACKETS = re.compile(r"\s{0,3}[(（][A-Z]{3}[)）]\s{0,3}")


class Route(NamedTuple):
    """Two places, each with the lines that it is on."""

    origin: str
    at: tuple[Line, ...]
    destination: str
    to: tuple[Line, ...]


# --------------------------------------------------------------------------------------------------- journeys


def journey(view: View) -> Record | None:
    """A flight, a train or a bus that is booked."""
    mode = mode_of(view)
    if mode is None or is_offer(view) or evidence(view, "cancelled"):
        return None
    draft = Draft(view)
    pairs = view.pairs
    number = _number(view, mode)
    if number is not None:
        draft.add("number", number[0], number[1].lines, number[0])
    route = _route(view)
    if route is not None:
        draft.add("from", route.origin, route.at, route.origin)
        draft.add("to", route.destination, route.to, route.destination)
    elif number is not None and (to := _behind(number)) is not None:
        draft.add("to", to, number[1].lines, to)
    _times(view, draft, route, number)
    _fields(view, draft, mode)
    if (operator := _operator(view, mode)) is not None:
        draft.add("provider", operator.text, operator.lines, operator.text)
    passenger = pairs.text("passenger")
    if passenger is not None and len(passenger.text) <= 50 and not re.search(r"\d", passenger.text):
        draft.add("underName", passenger.text, passenger.lines)
    return draft.record(_TYPE[mode], 0.9 if number is not None and route is not None else 0.7)


def _fields(view: View, draft: Draft, mode: Mode) -> None:
    pairs = view.pairs
    if mode == "air":
        draft.put(
            "gate",
            pairs.find("gate", _whole(_GATE), _LABELLED)
            or pairs.find("gate", _whole(_GATE_SURE), ("inside",)),
        )
    else:
        draft.put("platform", pairs.find("platform", _whole(_GATE), BESIDE))
    draft.put("seat", pairs.find("seat", _seat, BESIDE) or _first(view, _CHINESE_SEAT))
    draft.put("reservationId", pairs.find("booking", code, FORMED))


def mode_of(view: View) -> Mode | None:
    """What a screen travels by, if it has words of it and a number or a stop."""
    pairs = view.pairs
    shown = {
        "air": evidence(view, "flight") + 2 * pairs.has("flight") + pairs.has("gate") + pairs.has("boarding"),
        "train": evidence(view, "train") + 2 * pairs.has("train"),
        "bus": evidence(view, "bus") + 2 * pairs.has("bus"),
    }
    is_bus = pairs.has("bus") and evidence(view, "bus") > 0 and not pairs.has("train")
    is_train = not is_bus and _is_train(view)
    if is_train:
        shown["train"] += 3
    elif evidence(view, "bus") and shown["bus"] >= evidence(view, "train"):
        shown["bus"] += 3
    if shown["air"] and _first(view, _FLIGHT) is not None and not pairs.has("train"):
        shown["air"] += 2
    if pairs.has("departure") and _route_in_a_line(view) is not None:
        shown = {name: amount + (amount > 0) for name, amount in shown.items()}
    mode = max(shown, key=lambda name: shown[name])
    return mode if shown[mode] >= 2 else None  # type: ignore[return-value]


def _is_train(view: View) -> bool:
    """Whether a number of a train is on the screen, and words of trains."""
    return _first(view, _TRAIN_NAMED) is not None or (
        evidence(view, "train") + view.pairs.has("train") > 0
        and any(_first(view, form) is not None for form in _trains(view))
    )


def _trains(view: View) -> tuple[re.Pattern[str], ...]:
    """The forms of a train's number. A letter before figures is one in Chinese; elsewhere it is a gate."""
    return (_TRAIN, _CHINESE_TRAIN) if any(map(is_chinese, view.layout.content)) else (_TRAIN,)


def is_offer(view: View) -> bool:
    """Whether a screen is a list of journeys to choose from."""
    prices = len(view.money.prices(view.layout.content))
    return prices >= 4 or (prices >= 2 and evidence(view, "search") >= 2)


def _number(view: View, mode: Mode) -> tuple[str, Value] | None:
    name = {"air": "flight", "train": "train", "bus": "bus"}[mode]
    forms = {"air": (_FLIGHT,), "train": (_TRAIN_NAMED, *_trains(view)), "bus": ()}[mode]

    def read(text: str) -> str | None:
        for form in forms:
            if (found := form.search(text)) is not None and found.start() <= 12:
                return found[0]
        if mode == "air":
            return None
        found = _NUMBERED.match(text)
        return found[0] if found and len(found[0]) == len(text.split("·")[0].strip()) else None

    found = view.pairs.find(name, read, BESIDE)
    if found is not None:
        return found
    for form in forms:
        if (alone := _first(view, form)) is not None:
            return alone
    return None


def _first(view: View, form: re.Pattern[str]) -> tuple[str, Value] | None:
    """The first text of a form on the screen: one that is a line of its own, then others."""
    found = [
        (match[0], line) for line in view.layout.lines if (match := form.search(line.text[:120])) is not None
    ]
    best = min(found, key=lambda one: len(one[1].text) - len(one[0]) > 8, default=None)
    return (best[0], Value(best[0], (best[1],), "rest", "")) if best else None


def _route(view: View) -> Route | None:
    return (
        _labelled_route(view)
        or _route_in_a_line(view)
        or _route_of_codes(view)
        or _route_in_a_row(view)
        or _route_in_a_column(view)
    )


def _labelled_route(view: View) -> Route | None:
    start = view.pairs.find("from", _stop, BESIDE) or view.pairs.find("departure", _stop, NAMED)
    end = view.pairs.find("to", _stop, BESIDE) or view.pairs.find("arrival", _stop, NAMED)
    if start is None or end is None or start[0] == end[0]:
        return None
    return Route(start[0], start[1].lines, end[0], end[1].lines)


def _stop(text: str) -> str | None:
    """The name of a place where one gets on or off."""
    text = plain(text)
    if _IATA.fullmatch(text):
        return text
    text = _IN_BRACKETS.sub(" ", text).strip()
    has_digits = any(map(str.isdigit, text)) or len([one for one in _ARROW.split(text) if one.strip()]) > 1
    if not 2 <= len(text) <= 45 or has_digits or letters(text) < 0.9 or is_heading(text):
        return None
    return text if text[0].isupper() or is_chinese(text[0]) or text[0] > "\u3040" else None


def _route_in_a_line(view: View) -> Route | None:
    for block in view.layout.blocks:
        lines = itertools.groupby(block.lines, view.pairs.begins_label)
        said = next(
            (found for _, part in lines if (found := _FROM_TO.search(joined(line.text for line in part)))),
            None,
        )
        if said is not None:
            return Route(said[1], block.lines, said[2], block.lines)
    texts = [(block.lines[0], block.text) for block in view.layout.blocks]
    texts += [(line, line.text) for line in view.layout.lines]
    for line, text in texts:
        text = plain(text)[:100]
        # "NW 482 Hamburg–Lisbon"
        text = re.sub(r"^[A-Z0-9]{2,3} ?\d{2,4}[ ,:·]+", "", text)
        clauses = [re.split(r"[,·|] ", part)[0] for part in re.split("[，。；]", text)]
        routes = [[part for part in _ARROW.split(one) if part and part.strip()] for one in clauses]
        parts = next((one for one in routes if len(one) == 2), [])
        if not parts:
            continue
        before = _BEFORE.sub("", parts[0].strip())
        start, end = _stop(before), _stop(parts[1].strip())
        if start and end and start != end and not any(map(view.moments.all, (before, parts[1]))):
            return Route(start, (line,), end, (line,))
    return None


def _route_of_codes(view: View) -> Route | None:
    """Two airports' codes in a row, with the names of their cities where these are right below or above."""
    for row in view.layout.rows:
        found = [line for line in row.lines if _IATA.fullmatch(line.text.strip(" ✈→-"))]
        if len(found) == 2 and found[0].text != found[1].text:
            start, end = (_city(view, line) for line in found)
            return Route(start[0], start[1], end[0], end[1])
    return None


def _city(view: View, code_line: Line) -> tuple[str, tuple[Line, ...]]:
    for below in (True, False):
        near = view.pairs.near(code_line, below=below)
        if near is not None and not view.pairs.is_label(near) and not _IATA.fullmatch(near.text.strip()):
            name = _stop(near.text)
            if name is not None and not name.isupper():
                return name, (near,)
    return code_line.text.strip(" ✈→-"), (code_line,)


def _route_in_a_row(view: View) -> Route | None:
    """Two names at the left and the right of a row, above or below two times or with an arrow or a number
    between.
    """
    rows = view.layout.rows
    for number, row in enumerate(rows):
        names = [line for line in row.lines if _stop(line.text) and not view.pairs.is_label(line)]
        rest = [line for line in row.lines if line not in names]
        if len(names) != 2 or names[0].text == names[1].text:
            continue
        if not all(not letters(line.text) or _NUMBERED.fullmatch(line.text.strip()) for line in rest):
            continue
        near = rows[max(0, number - 1) : number + 2]
        timed = any(sum(bool(view.moments.clock(line.text)) for line in other.lines) >= 2 for other in near)
        if timed or (rest and names[0].left < rest[0].left < names[1].left):
            start, end = (_stop(line.text) or "" for line in names)
            return Route(start, (names[0],), end, (names[1],))
    return None


def _route_in_a_column(view: View) -> Route | None:
    """The first and the last of rows that have a place and a time."""
    stops = [(_stop(line.text) or "", line) for line, _ in _timed_stops(view)]
    if len(stops) < 2 or stops[0][0] == stops[-1][0]:
        return None
    return Route(stops[0][0], (stops[0][1],), stops[-1][0], (stops[-1][1],))


def _timed_stops(view: View) -> list[tuple[Line, tuple[Moment, Value]]]:
    """The rows of a place and a time, in their order."""
    found = []
    for row in view.layout.rows:
        clocks = [(one, line) for line in row.lines for one in view.moments.alone(line.text) if one.clock]
        names = [line for line in row.lines if _stop(line.text) and not view.pairs.is_label(line)]
        if len(clocks) == 1 and len(names) == 1 and len(row.lines) == 2 and not clocks[0][0].until:
            one, line = clocks[0]
            found.append((names[0], (one, Value(line.text, (line,), "rest", ""))))
    return found


def _behind(number: tuple[str, Value]) -> str | None:
    """The place behind a number: "ICE 708 to Hamburg"."""
    rest = " ".join(line.text for line in number[1].lines)[:120].partition(number[0])[2]
    found = _TO.fullmatch(rest.strip())
    return found[1] if found else None


def _beside(view: View, lines: Sequence[Line]) -> tuple[Moment, Value] | None:
    """The time in the row of a number."""
    for row in view.layout.rows:
        if any(line in row.lines for line in lines):
            for line in row.lines:
                if (moment := view.moments.clock(line.text)) is not None:
                    return moment, Value(line.text, (line,), "rest", "")
    return None


def _times(view: View, draft: Draft, route: Route | None, number: tuple[str, Value] | None) -> None:
    pairs, moments = view.pairs, view.moments
    day = _day(view)
    departs = pairs.find("departure", moments.clock, BESIDE)
    arrives = pairs.find("arrival", moments.clock, BESIDE)
    boards = pairs.find("boarding", moments.clock, BESIDE)
    if departs is None and arrives is None:
        two = _two_clocks(view)
        stops = _timed_stops(view)
        if two is None and len(stops) >= 2:
            two = stops[0][1], stops[-1][1]
        if two is not None:
            departs, arrives = two
    if departs is None and boards is None:
        departs = next(_lone_clock(view), None) or (_beside(view, number[1].lines) if number else None)
    own = departs[0].day if departs else None
    day_lines: tuple[Line, ...] = ()
    if own is None and day is not None:
        own, day_lines = day[0].day, day[1].lines
    for name, found in (("departureTime", departs), ("arrivalTime", arrives), ("boardingTime", boards)):
        if found is None or (there := found[0].day or own) is None:
            continue
        clock = found[0].clock
        if (
            name == "arrivalTime"
            and departs is not None
            and found[0].day is None
            and clock < departs[0].clock
        ):
            there = date.fromordinal(there.toordinal() + 1)
        lines = found[1].lines if found[0].day else (*found[1].lines, *day_lines)
        draft.add(name, written(there, clock), lines, found[1].text)
    if departs is None and day is not None:
        draft.add("departureTime", written(day[0].day, ""), day[1].lines, day[1].text)  # type: ignore[arg-type]


def _day(view: View) -> tuple[Moment, Value] | None:
    """The day of a journey: labelled, or the first day of the screen that is not the booking's."""
    found = view.pairs.find(("departure", "date"), view.moments.day, BESIDE)
    if found is not None:
        return found
    return next(days_of(view), None)


def days_of(view: View) -> Iterator[tuple[Moment, Value]]:
    """The days on a screen, without those of a payment or an order."""
    skipped = (
        {
            id(value.lines[0])
            for _, value in view.pairs.each(("paid_on", "renewal", "due_date"), view.moments.day)
            if value.label.casefold() not in ("date", "time", "when")
        }
        if view.pairs.has("paid_on")
        else set()
    )
    skipped -= {id(value.lines[0]) for _, value in view.pairs.each("date", view.moments.day)}
    found = [
        (moment, Value(line.text, (line,), "rest", ""))
        for line in view.layout.lines
        if id(line) not in skipped and (moment := view.moments.day(line.text)) is not None
    ]
    return iter(sorted(found, key=lambda one: not one[0].exact))


def _two_clocks(view: View) -> tuple[tuple[Moment, Value], tuple[Moment, Value]] | None:
    """The times of departure and arrival: a range, or the only two of a row."""
    for row in view.layout.rows:
        found = [(one, line) for line in row.lines for one in view.moments.all(line.text) if one.clock]
        if len(found) == 1 and found[0][0].until and found[0][0].last is None:
            one, line = found[0]
            until = Moment(one.start, one.end, None, one.until, None, "")
            value = Value(line.text, (line,), "rest", "")
            return (one, value), (until, value)
        boards = view.pairs.find("boarding", view.moments.clock, BESIDE)
        taken = [id(line) for line in boards[1].lines] if boards else []
        if len(found) == 2 and not any(id(line) in taken for _, line in found):
            first, second = ((one, Value(line.text, (line,), "rest", "")) for one, line in found)
            return first, second
    return None


def _lone_clock(view: View) -> Iterator[tuple[Moment, Value]]:
    for line in view.layout.lines:
        moment = view.moments.clock(line.text)
        if moment is not None and moment.day is not None:
            yield moment, Value(line.text, (line,), "rest", "")


def _operator(view: View, mode: Mode) -> Value | None:
    found = view.pairs.text("operator")
    if found is not None and len(found.text) <= 40:
        return found
    words = {word.casefold() for word in words_of("operators", mode)}
    for line in view.layout.all_lines[:40]:
        text = plain(line.text)
        named = set(re.split(r"[\s,.-]+", text.casefold())) & words
        named |= {word for word in words if is_chinese(word[0]) and word in text}
        if named and weight(text) <= 40 and not re.search(r"\d", text) and names_something(view, text, line):
            return Value(text, (line,), "rest", "")
    return None


# ----------------------------------------------------------------------------------------------------- parts


def put_address(view: View, draft: Draft, field: str) -> None:
    """Note a labelled address."""
    found = view.pairs.find(
        "address", lambda text: text if weight(text) >= 4 and len(text) <= 160 else None, NAMED
    )
    draft.put(field, found)


def code(text: str) -> str | None:
    """The code at the beginning of a text: letters in capitals and digits, five to sixteen."""
    match = _CODE.match(text.strip(" #:："))
    if match is None:
        return None
    return match[0] if any(map(str.isdigit, match[0])) or len(match[0]) == 6 else None


def _seat(text: str) -> str | None:
    match = _SEAT.match(text)
    return match[0].strip() if match and len(text) - len(match[0]) < 16 else None


def _whole(form: re.Pattern[str]):  # type: ignore[no-untyped-def]
    """Reads a text that begins with a form and goes on with another word at most."""

    def read(text: str) -> str | None:
        match = form.match(text)
        if (
            match is None
            or text[match.end() : match.end() + 1].isalnum()
            or re.match(r"[:.]\d", text[match.end() :])
        ):
            return None
        return match[0]

    return read


# ------------------------------------------------------------------------------------------------------- maps


def place_map(view: View) -> Record | None:
    """A map: it says who drew it, or has streets in any direction. Its place is its largest name."""
    turned = [line for line in view.layout.lines if _is_turned(line)]
    spread = max((line.bottom for line in turned), default=0) - min((line.top for line in turned), default=0)
    is_drawn = len(turned) >= LEAST_TURNED and spread > SPREAD * view.layout.height
    if not is_drawn and not evidence(view, "maps"):
        return None
    draft = Draft(view)
    names = [
        line
        for line in view.layout.lines
        if line not in turned and is_title(plain(line.text)) and not is_heading(plain(line.text))
    ]
    largest = max(names, key=lambda line: line.height, default=None)
    if largest is not None:
        draft.add("place", plain(largest.text), [largest])
    return draft.record("Map", 0.6)


def _is_turned(line: Line) -> bool:
    """Whether a text of some length is not set level: its frame is high for its width."""
    text = line.text.strip()
    is_high = 2 * (line.bottom - line.top) > line.right - line.left
    return is_high and TURNED[0] <= len(text) <= TURNED[1] and letters(text) > 0.7
