"""Notes without a model, by plain rules. A note is written only where screenshots give a reason for one:

- something is due: on a screenshot that was kept as a reminder, or a bill, is an event of the agenda
- screenshots belong together: the same conversation, shop, product, parcel or account on several screenshots
- a trip: tickets and bookings whose days are close to each other

The days are those of the agenda (`NewPhoto.event_day`). Each note says what is known in a sentence a
screenshot, with day, amount and name, and cites the screenshots that it rests on. Where there is no reason
there is no note: a list of what is new is the library's own page.
"""

import re
from collections.abc import Sequence
from datetime import date, timedelta
from typing import Any, NamedTuple

from engines.articles import Article, Material, NewPhoto, Notes
from rules import wordlists
from rules.names import is_generic
from rules.noted import MAX_NAMED
from rules.statements import titles_alike
from text import one_line, shortened

# The highest confidence of the embedded model, which recognises words and understands nothing.
CONFIDENCE = 0.4
MOST_NOTES = 4  # of a cycle
MOST_SENTENCES = 8  # of a note; the others are only cited
MAX_SENTENCE = 200
TRIP = timedelta(days=10)  # between two bookings of a trip


class Seen(NamedTuple):
    photo: NewPhoto
    is_new: bool


def write(material: Material, language: str) -> Notes:
    """The embedded model's notes, none where nothing calls for one. `language` is `zh` or `en`."""
    texts = _TEXTS[language]["note"]
    seen = [Seen(photo, True) for photo in material.photos]
    seen += [Seen(photo, False) for photo in material.earlier]
    written: list[Article] = []
    trip = _trip(seen, texts)
    if trip is not None:
        written.append(trip)
    on_trip = set(trip.photo_ids) if trip is not None else set()
    due = [
        (photo.event_day, photo)
        for photo in material.photos
        if photo.event_day and photo.id not in on_trip and _is_to_remember(photo)
    ]
    written += [_reminder(photo, day, texts) for day, photo in sorted(due, key=lambda one: one[0])]
    written += _groups(seen, on_trip, texts)
    for article in written:
        article.updates = next(
            (note.id for note in material.notes if titles_alike(note.title, article.title)), article.updates
        )
    return Notes(written[:MOST_NOTES])


_TEXTS = wordlists.table("sentences")

# -------------------------------------------------------------------------------------------------- reminders


def _is_to_remember(photo: NewPhoto) -> bool:
    """Whether it was kept as a reminder, or is a bill."""
    return photo.intent == "reminder" or any(entity.type == "amount" for entity in photo.entities)


def _reminder(photo: NewPhoto, due: date, texts: dict[str, Any]) -> Article:
    day = texts["day"].format(day=due)
    name = shortened(_name(photo), MAX_NAMED)
    said = texts["on_day"].format(day=day, said=_sentence(photo, texts))
    said_already = texts["date"].format(day=due) in name  # a title that a template made may name the day
    return Article(
        title=name if said_already else texts["due"].format(name=name, day=day),
        summary=one_line(said.replace("**", "")),
        content=said,
        category="reminder",
        confidence=CONFIDENCE,
        photo_ids=[photo.id],
    )


# -------------------------------------------------------------------------------------- what belongs together

_TRAVELS = re.compile(wordlists.any_in("contexts", "travels"), re.IGNORECASE)
# Screens that are alike because their apps are: they tell nothing by being several.
_TOGETHER = frozenset({"amount", "code", "link", "phone", "address", "email"})


def _trip(seen: Sequence[Seen], texts: dict[str, Any]) -> Article | None:
    """Two or more bookings whose days are close, one of them new."""
    booked = sorted(
        (
            (one.photo.event_day, one)
            for one in seen
            if one.photo.event_day and _TRAVELS.search(f"{one.photo.summary} {one.photo.text}"[:1000])
        ),
        key=lambda pair: pair[0],
    )
    days = [day for day, _ in booked]
    near = [
        (day, one)
        for number, (day, one) in enumerate(booked)
        if any(
            abs(day - other) <= TRIP
            for other in days[max(0, number - 1) : number] + days[number + 1 : number + 2]
        )
    ]
    if not any(one.is_new for _, one in near):
        return None
    first, last = (texts["day"].format(day=near[at][0]) for at in (0, -1))
    title = texts["trip" if first != last else "trip_day"].format(first=first, last=last)
    sentences = [
        texts["of"].format(taken=texts["day"].format(day=day), said=_sentence(one.photo, texts))
        for day, one in near[:MOST_SENTENCES]
    ]
    return _article(title, "reminder", sentences, [one for _, one in near])


def _groups(seen: Sequence[Seen], left_out: set[int], texts: dict[str, Any]) -> list[Article]:
    """Notes about what several screenshots share, the largest group first."""
    groups: dict[tuple[str, str], list[Seen]] = {}
    for one in seen:
        if one.photo.id not in left_out:
            for key in _keys(one.photo):
                groups.setdefault(key, []).append(one)
    written: list[Article] = []
    noted: set[int] = set()
    for (kind, _), members in sorted(groups.items(), key=lambda group: -len(group[1])):
        members = [one for one in members if one.photo.id not in noted]
        taken = {one.photo.taken.date() for one in members}
        # On one day, two screens of the same thing are one thing that was scrolled.
        if not any(one.is_new for one in members) or len(members) < (
            2 if len(taken) > 1 or kind == "code" else 3
        ):
            continue
        members.sort(key=lambda one: (one.photo.taken, one.photo.id))
        noted.update(one.photo.id for one in members)
        written.append(_together(members, texts))
    return written


def _keys(photo: NewPhoto) -> list[tuple[str, str]]:
    """What a screenshot may share with others: its subject, and the codes of orders and parcels."""
    keys = [
        ("code", entity.value.casefold())
        for entity in photo.entities
        if entity.type == "code" and len(entity.value) >= 8
    ]
    kinds = {entity.type for entity in photo.entities}
    telling = photo.category in ("chat", "finance") or (photo.category != "other" and kinds & _TOGETHER)
    telling = telling or (photo.category == "other" and "amount" in kinds)
    name = _name(photo)
    if telling and photo.title and name.casefold() != photo.app.casefold() and not is_generic(name):
        keys.append(("title", _subject(name)))
    return keys


def _subject(title: str) -> str:
    """What a title is about, without its amounts: “Payment of ¥12 to Noodle House” is about the house."""
    return " ".join(_FIGURES.sub(" ", title.casefold()).split())


_FIGURES = re.compile(r"(?:US\$|HK\$|NT\$|CN¥|[$€£¥￥])? ?\d[\d.,]{0,14} ?(?:元|€|£)?")


def _together(members: Sequence[Seen], texts: dict[str, Any]) -> Article:
    newest = members[-1].photo
    name = shortened(_name(newest), MAX_NAMED)
    first, last = (texts["day"].format(day=members[at].photo.taken) for at in (0, -1))
    opening = texts["together" if first != last else "together_day"].format(
        count=len(members), name=name, first=first, last=last
    )
    sentences = [
        texts["of"].format(taken=texts["day"].format(day=one.photo.taken), said=_sentence(one.photo, texts))
        for one in members[-MOST_SENTENCES:]
    ]
    amounts = [_amount(one.photo) for one in members]
    found = [amount for amount in amounts if amount]
    # Only of an unchanged subject with one amount each: of payments, each has its own.
    if len(found) == len(members) and found[0] != found[-1] and members[0].photo.title == newest.title:
        opening += " " * (texts["stop"] == ".") + texts["changed"].format(before=found[0], after=found[-1])
    return _article(texts["about"].format(name=name), "insight", [opening, "", *sentences], members)


def _article(title: str, category: str, sentences: Sequence[str], members: Sequence[Seen]) -> Article:
    summary = next((sentence for sentence in sentences if sentence), "")
    return Article(
        title=title,
        summary=one_line(summary.removeprefix("- ").replace("**", "")),
        content="\n".join(sentences),
        category=category,
        confidence=CONFIDENCE,
        photo_ids=[one.photo.id for one in members],
    )


# ------------------------------------------------------------------------------------------ of one screenshot


def _name(photo: NewPhoto) -> str:
    return one_line(photo.title or photo.summary or photo.text)


def _sentence(photo: NewPhoto, texts: dict[str, Any]) -> str:
    """The summary, and the amounts, addresses and codes that it does not name."""
    said = shortened(one_line(photo.summary or photo.text), MAX_SENTENCE)
    facts = [
        f"{entity.label} {entity.value}".strip()
        for entity in photo.entities
        if entity.type in ("amount", "address", "code") and entity.value not in said
    ]
    facts = list(dict.fromkeys(facts))[:3]
    ended = said if said.endswith((".", "。", "!", "?", "！", "？", "…", "”")) else said + str(texts["stop"])
    return ended + texts["facts"].format(facts=texts["comma"].join(facts)) if facts else ended


def _amount(photo: NewPhoto) -> str:
    amounts = list(dict.fromkeys(entity.value for entity in photo.entities if entity.type == "amount"))
    return amounts[0] if len(amounts) == 1 else ""
