"""Records of stays and of what one goes to: hotels, events, tables in restaurants, appointments."""

import re
from collections.abc import Callable

from engines.records import Record
from rules.layout import plain, weight
from rules.moments import Moment, written
from rules.pairs import FORMED, NAMED, Value
from rules.subjects import about, any_of, evidence, mentioned, subject
from rules.travel import BESIDE, code, days_of, is_offer, mode_of, put_address
from rules.view import Draft, View

_ARTICLES = ("article", "post")  # kinds of screens whose days are of the world, not of a person
_PERSONS = re.compile(r"\d{1,2}")


def lodging(view: View) -> Record | None:
    """A hotel or another stay that is booked."""
    pairs, moments = view.pairs, view.moments
    arrives = pairs.find("checkin", moments.day, BESIDE)
    leaves = pairs.find("checkout", moments.day, BESIDE)
    if (
        evidence(view, "cancelled")
        or evidence(view, "lodging") < 2
        or (evidence(view, "flight") > 2 and not leaves)
    ):
        return None
    draft = Draft(view)
    if arrives is None or leaves is None:
        ranged = next((one for one in days_of(view) if one[0].last is not None), None)
        if ranged is None or (arrives is None and leaves is not None):
            return None
        draft.add("checkinTime", ranged[0].begins, ranged[1].lines)
        draft.add("checkoutTime", ranged[0].ends, ranged[1].lines)
    for field, found, labels in (("checkinTime", arrives, "checkin"), ("checkoutTime", leaves, "checkout")):
        if found is None or found[0].day is None:
            continue
        clock, lines = found[0].clock, found[1].lines
        if not clock:
            later = next(pairs.each(labels, _alone(view), BESIDE), None) or _below(view, found[1])
            if later is not None and later[0].day in (None, found[0].day):
                clock, lines = later[0].clock, (*lines, *later[1].lines)
        draft.add(field, written(found[0].day, clock), lines, found[1].text)
    name = pairs.text("hotel") or mentioned(view) or subject(view)
    if name is not None:
        draft.add("name", plain(name.text), name.lines, name.text)
    put_address(view, draft, "address")
    draft.put("reservationId", pairs.find("booking", code, FORMED))
    return draft.record("LodgingReservation", 0.85)


def _alone(view: View) -> Callable[[str], Moment | None]:
    """Reads a time of day that is a text of its own: not "free cancellation until 18:00"."""
    return lambda text: next((one for one in view.moments.alone(text) if one.clock), None)


def _below(view: View, value: Value) -> tuple[Moment, Value] | None:
    """The time that is alone below a day: "from 15:00"."""
    near = view.pairs.near(value.lines[-1], below=True)
    if near is None or not (found := view.moments.alone(near.text)) or found[0].day or not found[0].clock:
        return None
    return found[0], Value(near.text, (near,), "below", "")


def event(view: View) -> Record | None:
    """Something one has a ticket or an invitation for."""
    pairs = view.pairs
    shown = (
        evidence(view, "event")
        + evidence(view, "admission")
        + pairs.has("doors")
        + pairs.has("venue")
        + pairs.has("event")
        + _has_seat(view)
    )
    if (
        shown < 2
        or evidence(view, "cancelled")
        or mode_of(view) is not None
        or evidence(view, "lodging") > shown
        or view.kind in ("payment", "accounts")
    ):
        return None
    if evidence(view, "appointment") >= shown or is_offer(view) or evidence(view, "table"):
        return None
    starts = _start(view)
    if starts is None:
        return None
    draft = Draft(view)
    draft.add("startDate", starts[0].begins, starts[1].lines, starts[1].text)
    draft.add("endDate", starts[0].ends, starts[1].lines, starts[1].text)
    name = pairs.find("event", _name, NAMED)
    named = name[1] if name else about(view)
    if named is not None:
        draft.add("name", plain(named.text), named.lines, named.text)
    doors = pairs.find("doors", view.moments.clock, BESIDE)
    if doors is not None and starts[0].day is not None:
        there = doors[0].day or starts[0].day
        draft.add("doorTime", written(there, doors[0].clock), doors[1].lines, doors[1].text)
    _put_place(view, draft, "location")
    draft.put("seat", pairs.find("seat", _event_seat, BESIDE))
    draft.put("ticketNumber", pairs.find(("ticket", "booking"), code, FORMED))
    ended = draft.record("EventReservation", 0.8 if starts[0].clock else 0.6)
    return ended if ended and (len(ended.fields) > 2 or shown > 2 or evidence(view, "admission")) else None


def _has_seat(view: View) -> bool:
    """Whether a seat is that of a hall: trains and buses have other words."""
    return view.pairs.has("seat") and not view.pairs.has("departure", "platform", "train", "bus", "from")


def _name(text: str) -> str | None:
    return plain(text) if weight(text) >= 2 and len(text) <= 100 else None


def _event_seat(text: str) -> str | None:
    return text if re.search(r"\d", text) and len(text) <= 40 else None


def _put_place(view: View, draft: Draft, field: str) -> None:
    found = view.pairs.find(
        "venue", lambda text: text if weight(text) >= 3 and len(text) <= 100 else None, NAMED
    )
    # What is below the screen's own name is no place, even where that name is "Clinic" or "Restaurant".
    if found is not None and _is_below_header(view, found[1]):
        return
    draft.put(field, found)


def _is_below_header(view: View, value: Value) -> bool:
    headers = view.layout.headers[:1]
    between = [
        line for line in view.layout.lines if headers and headers[0].bottom <= line.top < value.lines[0].top
    ]
    return value.where == "below" and bool(headers) and not between


def _start(view: View) -> tuple[Moment, Value] | None:
    """When something begins: a labelled day with its time, wherever that is."""
    pairs, moments = view.pairs, view.moments
    found = pairs.find("date", moments.day, BESIDE) or next(
        (one for one in days_of(view) if one[0].clock), next(days_of(view), None)
    )
    if found is None or found[0].day is None:
        return None
    if found[0].clock or found[0].last:
        return found
    timed = list(pairs.each("time", moments.clock, BESIDE))
    if len({one.clock for one, _ in timed}) > 1:
        return found
    clock = timed[0] if timed else None
    if clock is None or clock[0].day not in (None, found[0].day):
        near = _below(view, found[1])
        alone = [
            (one[0], Value(line.text, (line,), "rest", ""))
            for line in view.layout.lines
            if (one := moments.alone(line.text)) and len(one) == 1 and one[0].clock and one[0].day is None
        ]
        clock = near or (alone[0] if len(alone) == 1 else None)
    if clock is None:
        return found
    moment = found[0]._replace(clock=clock[0].clock, until=clock[0].until)
    lines = (*found[1].lines, *clock[1].lines)
    return moment, Value(found[1].text, lines, "below", "")


def food(view: View) -> Record | None:
    """A table that is reserved."""
    if (
        not (evidence(view, "table") or view.pairs.has("party"))
        or evidence(view, "food") < 2
        or len(view.money.prices(view.layout.content)) > 1
    ):
        return None
    starts = _start(view)
    if starts is None or not starts[0].clock or starts[1].lines[0].text.rstrip().endswith(("?", "？")):
        return None  # a question is no reservation
    draft = Draft(view)
    draft.add("startTime", starts[0].begins, starts[1].lines, starts[1].text)
    name = view.pairs.find("restaurant", _name, NAMED)
    named = name[1] if name else about(view)
    if named is not None:
        draft.add("name", plain(named.text), named.lines, named.text)
    size = view.pairs.find("party", _persons, FORMED)
    draft.put("partySize", size)
    return draft.record("FoodEstablishmentReservation", 0.8)


def _persons(text: str) -> str | None:
    found = _PERSONS.match(text)
    return found[0] if found and not re.match(r"\d{1,2}[:.]\d", text) else None


def appointment(view: View) -> Record | None:
    """When somebody is to be seen: a doctor, an office, a hairdresser."""
    shown = evidence(view, "appointment")
    if (
        shown < 1
        or evidence(view, "cancelled")
        or mode_of(view) is not None
        or evidence(view, "table")
        or view.kind in _ARTICLES
    ):
        return None
    if evidence(view, "event") > shown + 1 or evidence(view, "parcel") > shown or is_offer(view):
        return None
    starts = _start(view)
    if starts is None or not starts[0].clock or len(list(days_of(view))) > 4:
        return None
    draft = Draft(view)
    draft.add("startTime", starts[0].begins, starts[1].lines, starts[1].text)
    who = view.pairs.find("with", _name, NAMED)
    person = who[1] if who else _person(view)
    if person is not None:
        draft.add("with", plain(person.text), person.lines, person.text)
    _put_place(view, draft, "location")
    put_address(view, draft, "location")
    draft.put(
        "preparation",
        view.pairs.find("preparation", lambda text: text if weight(text) > 5 else None, NAMED),
    )
    return draft.record("Appointment", 0.75)


_PERSON = re.compile(
    rf"(?<!\w)(?:{any_of('titles', 'before')})\.?(?: med\.?(?: dent\.?)?)?"
    r" [A-ZÄÖÜÉ][\w'-]+(?: [A-ZÄÖÜ][\w'-]+){0,2}"
    rf"|[\u4e00-\u9fff]{{2,3}}(?:{any_of('titles', 'after')})"
)


def _person(view: View) -> Value | None:
    for line in view.layout.lines:
        if (found := _PERSON.search(line.text)) is not None:
            return Value(found[0], (line,), "rest", "")
    return None
