"""The gate: what is sensitive leaves by no exit. It marks the photos with something sensitive on them
(`rules/sensitive.py` recognises it in their text), and every exit of the program asks it.

What is stored is never altered, and a search of the person finds it: only what goes elsewhere is held back. A
model that is embedded is no exit, so nothing is held back from it. `EXITS` names the exits; each module there
calls this one, and `tests/test_gate.py` looks for marked secrets at the far end of each.

Two things are judged. A photo is marked when its text is stored; the mark stays until the text is read again,
and a person may say that it is wrong, which holds. And a text that leaves by itself is judged by itself: a
note's title, a memory, a tool's arguments. What a person writes to a model or attaches to a message is theirs
to send. What was not read cannot be judged.
"""

import collections
import functools
import itertools
from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

import models
from database import db
from engines.configuration import LOCAL, Configuration
from errors import BadInput, NotFound
from models import Analysis
from rules import disguises, sensitive
from settings import Settings


class Exit(NamedTuple):
    """A way by which data of the person leaves this program."""

    name: str
    module: str  # that holds back
    rule: str


EXITS = (
    Exit(
        "analysis by a remote model",
        "analysis.pool",
        "the embedded model judges the photo from the lines that were read; neither picture nor text is sent",
    ),
    Exit(
        "chat with a remote model",
        "assistant.library",
        "tools answer with the id and `TITLE`, without text, or leave it out; `assistant.transcript` leaves"
        " out earlier results and answers that rest on such a photo, `assistant.openings` memories",
    ),
    Exit(
        "reading a chat for memories by a remote model",
        "assistant.recollection",
        "a turn in which something sensitive was said or read is not sent",
    ),
    Exit(
        "notes by a remote model",
        "reasoner",
        "such photos, and notes and memories about them, are no material; of a chat about them only the"
        " person's own words are",
    ),
    Exit(
        "embeddings by a remote model",
        "meaning",
        "neither the text of such a photo nor a search with something sensitive in it is sent; they are"
        " compared on this machine",
    ),
    Exit(
        "web search",
        "assistant.tools",
        "a query with something sensitive in it is refused, unless the person allows exactly this call",
    ),
    Exit(
        "calls of MCP servers",
        "assistant.tools",
        "arguments with something sensitive in them are refused, unless the person allows exactly this call",
    ),
    Exit(
        "push notifications",
        "push",
        "a sensitive text is replaced; `reasoner` names no note about such a photo, and `agenda` announces"
        " nothing that is on one",
    ),
    Exit("feeds", "outlets.feeds", "such photos, notes about them and their dates are in no feed"),
    Exit(
        "links to pictures, and pictures to pass on",
        "outlets.shares",
        "what is sensitive on the picture is painted over, unless the person chooses otherwise",
    ),
    Exit(
        "webhooks",
        "outlets.webhooks",
        "an event about such a photo, note or date has its id and nothing else",
    ),
    Exit(
        "answers of `/mcp`",
        "outlets.mcp_tools",
        "such a screenshot, or a note about one, is its id, its link and `TITLE`, without picture; what the"
        " agenda has of it is left out",
    ),
    Exit("the log", "push", "nobody else logs what a person, a picture or a model wrote"),
    # Sealed bytes in a bucket (`buckets/`) are no exit: nobody can read them without the keys in this folder.
    # These have no texts of their own: they quote models and servers, which were sent nothing sensitive.
    Exit("messages of errors", "analysis.pool", "they quote no text of a photo"),
)

TITLE = "a sensitive screenshot"  # instead of everything that a remote model would learn about it
HELD_BACK = "[Held back on this device: it is about a sensitive screenshot.]"
REFUSED = "not sent: the arguments contain something sensitive ({kinds}), which may not leave this device."
NAMES = {
    "card": "a payment card",
    "iban": "a bank account",
    "national_id": "an identity number",
    "one_time_code": "a one-time code",
    "password": "a password",
    "api_key": "an access key",
    "private_key": "a private key",
    "recovery_phrase": "a recovery phrase",
}


class Mark(NamedTuple):
    """What is known about a photo: its kinds of what is sensitive, and whether the person cleared it."""

    sensitive: str = ""
    cleared: bool = False


BATCH = 15  # photos that are judged in one transaction: about 0.1 s, while nobody else can write
MAX_REMEMBERED = 4_000  # characters of a text whose judgement is remembered


# --------------------------------------------------------------------------------------------- what is marked


def mark(photo_id: int, text: str) -> None:
    """Mark a photo by the text on it, or remove its mark. What the person has said about it holds."""
    kinds = " ".join(sensitive.kinds(text))
    uncleared = (Analysis.photo == photo_id) & ~Analysis.cleared
    Analysis.update(sensitive=kinds, judged=True).where(uncleared).execute()


def mark_as_now(photo_ids: Collection[int]) -> None:
    """Mark these photos by the present rules."""
    rows = Analysis.select(Analysis.photo, Analysis.visible_text).where(Analysis.photo.in_(list(photo_ids)))
    for row in list(rows):
        mark(row.photo_id, row.visible_text)


def is_behind() -> bool:
    """Whether there are photos that no or earlier rules have judged."""
    return _were_other_rules() or Analysis.select().where(models.UNJUDGED).exists()


def _were_other_rules() -> bool:
    """Whether other rules than these have judged all photos last."""
    judged_by: int = models.stored_value("gate.rules", 0)
    return judged_by != sensitive.VERSION


def mark_older() -> list[int]:
    """Mark the newest photos that no or earlier rules have judged; returns the ids of those judged."""
    _doubt_marks_of_other_rules()
    # Literal, as in the partial index `analyses_unjudged`.
    due = Analysis.select(Analysis.photo, Analysis.visible_text).where(models.UNJUDGED)
    rows = list(due.order_by(Analysis.photo.desc()).limit(BATCH))
    ids = [row.photo_id for row in rows]
    if rows:  # an idle service writes nothing
        with db.atomic():
            for row in rows:
                mark(row.photo_id, row.visible_text)
            Analysis.update(judged=True).where(Analysis.photo.in_(ids)).execute()
    return ids


def _doubt_marks_of_other_rules() -> None:
    """Let all photos be judged again when other rules than these have judged them last."""
    if _were_other_rules():
        with db.atomic():
            Analysis.update(judged=False).where(Analysis.judged).execute()
            models.store_value("gate.rules", sensitive.VERSION)


def set_cleared(photo_id: int, *, cleared: bool) -> None:
    """Record whether the person says that a photo is not sensitive. Raises `NotFound`, also in the trash."""
    row = Analysis.select(Analysis.visible_text).where(Analysis.photo == photo_id).get_or_none()
    if row is None:
        raise NotFound("Photo not found")
    Analysis.update(cleared=cleared, sensitive="", judged=True).where(Analysis.photo == photo_id).execute()
    if not cleared:
        mark(photo_id, row.visible_text)


def tallied() -> dict[str, int]:
    """The number of photos with the same kinds of what is sensitive, by these kinds, with blanks between."""
    # The condition is literal, as in the partial index `analyses_sensitive`, which has all that is read.
    rows = db.execute_sql("SELECT sensitive FROM analyses WHERE sensitive <> ''").fetchall()
    return collections.Counter(kinds for (kinds,) in rows)


def counts(tallied: dict[str, int]) -> dict[str, int]:
    """The number of photos with something of each kind; a photo may have several."""
    found: dict[str, int] = {}
    for kinds, photos in tallied.items():
        for kind in kinds.split():
            found[kind] = found.get(kind, 0) + photos
    return {kind: found[kind] for kind in sensitive.KINDS if kind in found}


# ------------------------------------------------------------------------------------------ what is held back


def is_closed(settings: Settings) -> bool:
    """Whether anything is held back at all."""
    return settings.sensitive == LOCAL


def is_before(config: Configuration, settings: Settings) -> bool:
    """Whether the gate is between this program and the model of a configuration."""
    return is_closed(settings) and config.provider != LOCAL


def withholds(mark: "Analysis | Mark", shown: Any) -> bool:
    """Whether what would be `shown` of a photo is held back: it is marked, or there is something sensitive in
    the texts of `shown`, unless the person says that the photo is not sensitive.
    """
    if mark.cleared:
        return False
    return bool(mark.sensitive) or withholds_text(*(text for _, text in disguises.texts_in("", shown)))


def marks(photo_ids: Iterable[int]) -> dict[int, Mark]:
    """The marks of those of these photos that exist, also in the trash."""
    if not (asked := list(photo_ids)):
        return {}
    ids = (msgspec.json.encode(asked).decode(),)
    # Without peewee: a chat asks for each result of a tool in its history.
    among = "WHERE photo_id IN (SELECT value FROM json_each(?))"
    rows = db.execute_sql(f"SELECT photo_id, sensitive, cleared FROM analyses {among}", ids)  # noqa: S608
    found = {photo_id: Mark(kinds, bool(cleared)) for photo_id, kinds, cleared in rows}
    if len(found) == len(set(asked)):
        return found
    for photo_id, stored in db.execute_sql(f"SELECT photo_id, analysis FROM trash {among}", ids):  # noqa: S608
        analysis = msgspec.json.decode(stored)
        found[photo_id] = Mark(analysis.get("sensitive", ""), bool(analysis.get("cleared")))
    return found


def kinds_of(photo_ids: Iterable[int]) -> dict[int, list[str]]:
    """The kinds of what is sensitive on those of these photos that have any, also in the trash."""
    return {photo_id: mark.sensitive.split() for photo_id, mark in marks(photo_ids).items() if mark.sensitive}


def withholds_any(photo_ids: Iterable[int], *texts: str) -> bool:
    """Whether something that rests on these photos is held back: one of them is marked, or there is something
    sensitive in `texts`, unless the person says of one of them that it is not sensitive.
    """
    return withholds_marked(marks(photo_ids).values(), *texts)


def withholds_marked(found: Collection[Mark], *texts: str) -> bool:
    """As `withholds_any`, with the marks of the photos."""
    if any(mark.sensitive for mark in found):
        return True
    return not any(mark.cleared for mark in found) and withholds_text(*texts)


def kinds_about(found: Collection[Mark], *texts: str) -> list[str]:
    """The kinds for which `withholds_marked` is true, for a page that covers the texts."""
    kinds = {kind for mark in found for kind in mark.sensitive.split()}
    if not any(mark.cleared for mark in found):
        kinds |= {kind for text in texts if withholds_text(text) for kind in sensitive.kinds(text)}
    return [kind for kind in sensitive.KINDS if kind in kinds]


def withholds_text(*texts: str) -> bool:
    """Whether there is something sensitive in one of the texts that would leave, each by itself."""
    return any(_judged(text) if len(text) <= MAX_REMEMBERED else sensitive.kinds(text) for text in texts)


@functools.lru_cache(maxsize=512)
def _judged(text: str) -> bool:
    """Whether something sensitive is in a text. Chats ask this again about the same results and memories."""
    return bool(sensitive.kinds(text))


class Said(NamedTuple):
    """A message of a turn: the JSON of what a tool has found about screenshots, or the words of the model."""

    found: str = ""
    words: str = ""


def held(turn: Sequence[Said]) -> set[int]:
    """The positions of the messages in a turn that must not leave: what was found about sensitive
    screenshots, and the answers that were given after that.
    """
    judged_results = [_judged_results(said.found) if said.found else [] for said in turn]
    every = itertools.chain.from_iterable(judged_results)
    known = marks({photo_id for photo_id, _ in every if photo_id is not None})
    found: set[int] = set()
    photos: set[int] = set()
    for number, (said, results) in enumerate(zip(turn, judged_results, strict=True)):
        photos.update(known.keys() & {photo_id for photo_id, _ in results})
        judged = ((known.get(photo_id or 0, Mark()), is_sensitive) for photo_id, is_sensitive in results)
        if any(not mark.cleared and (mark.sensitive or is_sensitive) for mark, is_sensitive in judged) or (
            said.words
            and (found or (photos and withholds_marked([known[one] for one in photos], said.words)))
        ):
            found.add(number)
    return found


@functools.lru_cache(maxsize=256)
def _judged_results(content: str) -> list[tuple[int | None, bool]]:
    """Of each result of a tool that was not held back when it ran, the photo's id, and whether something
    sensitive is in its texts. Each turn asks this again about its whole history, and judging texts is slow.
    """
    try:
        answer = msgspec.json.decode(content)
    except msgspec.DecodeError:
        return []
    results = answer.get("results", []) if isinstance(answer, dict) else []
    results = [result for result in results if isinstance(result, dict) and result.get("title") != TITLE]
    ids = [result["id"] if isinstance(result.get("id"), int) else None for result in results]
    return [(photo_id, withholds(Mark(), result)) for photo_id, result in zip(ids, results, strict=True)]


def check_arguments(arguments: Any, *, earlier: Sequence[Any] = ()) -> None:
    """Raises `BadInput` when a call's arguments, alone or with `earlier` ones, hold something sensitive."""
    kinds = disguises.kinds_in(arguments, earlier=earlier)
    if kinds:
        raise BadInput(REFUSED.format(kinds=", ".join(NAMES[kind] for kind in kinds)))
