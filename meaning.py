"""Meaning: the screenshots that are nearest to a description in other words than those on them; part of
`/api/search`.

Each photo has a vector of its title, summary and text, made in the background, behind analyses and readings
(`engines/vectors.py`). A query becomes a vector too, and the photos with the nearest ones are its relatives.
Something is always nearest, so relatives are a list of their own, with grades, and never mixed with what has
the words of a query.

With `SNAPLORE_EMBEDDINGS`, the configured provider makes a second vector of each photo that is not sensitive.
A search is then answered by both: each photo is judged by the provider's vector where it has one of the
present model, else by ours. Vectors of different models are never compared, and while the provider fails,
ours answer alone.

Without vectors, because the setting is off or the machine cannot make them, there are no relatives, and all
else works.
"""

import logging
import statistics
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, Any, Literal, NamedTuple, cast

import msgspec
import peewee
from flask import Blueprint

import database
import gate
import lexicon
import llm
import loops
import photos
import readings
import tallies
import text
from clock import utc_now
from database import db
from engines import configuration, ledger, vectors
from engines.configuration import LOCAL
from engines.findings import MAX_JUDGED, Usage, kind_in
from errors import AnswerUnusable, BadInput, ModelFailure, ProviderDown, ProviderRefused, Unavailable
from models import (
    Analysis,
    Meaning,
    MeaningDue,
    MeaningSigns,
    Photo,
    Shown,
    store_value,
    stored_value,
)
from queries import operators, wording
from settings import Settings
from web import inputs, shapes

log = logging.getLogger(__name__)

# On screens of apps that nobody tuned on, 0.2 hid 8 of 60 right answers, and 0.6 called 5 of them probable
# instead of 15; of 45 queries for what is on none, one has more than 0.45 at best.
PROBABLE, LEAST = 0.45, 0.15
COMPARED = 200  # photos with the nearest signs, whose vectors are compared
PIECE = 5_000  # signs that are read and sent at once
MAX_QUERY = 400  # characters
MAX_SNIPPET = 160  # characters
MOST_FAILURES = 3
PATIENCE = 3.0  # seconds for the text that is being worked on
REST = 30.0  # seconds until the next look for work
BEHIND = 5.0  # seconds while analyses run
# A provider's vectors.
# Texts in a call: Alibaba's servers take no more, and the vectors stay below the limit of an answer, 2 MB.
TOGETHER = 10
QUERY_LIMIT = 5.0  # seconds that a search waits for the provider
EMBED_LIMIT = 60.0  # seconds of a call with `TOGETHER` texts; a small machine may have to load the model
LEASE = 120  # seconds for which photos are claimed
LONGEST_REST = 600.0  # seconds between calls that fail
FAILURES_LOGGED = 3  # in a row
FEWEST = 8  # photos; of fewer, nothing can be said about what they have in common
PROBABLE_AT_PROVIDER = 0.35  # of a cosine from which the common part is taken off
PURPOSE = "meaning"  # in the ledger
PROVIDER = "provider"  # the maker of its vectors; that of ours is `LOCAL`
CHANGED = "The model's vectors have {dimensions} numbers, and had another number before."


class Relative(msgspec.Struct, frozen=True):
    """A photo near to a description in meaning."""

    photo_id: int
    score: float  # the sum of two cosines
    grade: Literal["probable", "possible"]
    snippet: str


class Relatives(msgspec.Struct, frozen=True):
    """What is near to a description, and what compared it: `local`, or a provider's model; "" for nothing."""

    items: list[Relative]
    model: str


Near = list[tuple[int, float]]  # ids of photos, each with a score, the nearest first


def relatives(description: str, settings: Settings, *, limit: int, guarded: bool = False) -> Relatives:
    """The photos nearest to a description, the nearest first; none for a quoted phrase, which is wanted as it
    is, and for a query with operators. Where a photo has every word, only the probable
    ones. A `guarded` description finds no photo that is withheld (`lexicon.withheld`), whose vector knows all
    of its text. Opens its own short scopes.

    Raises `ProviderRefused` when neither this machine nor a provider can make vectors, `ProviderDown`, and
    `Unavailable` while other texts are being compared.
    """
    wanted = text.storable(description[:MAX_QUERY]).strip()
    query = wording.read(wanted, guarded=guarded)
    if (
        query.phrases
        or query.choices
        or not query.sequence
        or operators.split(wanted, now=utc_now()).operators
    ):
        return Relatives([], LOCAL)
    judged = _near_at_provider(wanted, settings, guarded=guarded)
    try:
        near = _near_here(wanted, guarded=guarded)
    except (ProviderRefused, ProviderDown, Unavailable):
        if judged is None:
            raise
        near = []
    model = LOCAL
    if judged is not None:
        others = _without_provider(judged.mark, [photo_id for photo_id, _ in near])
        near = judged.near + [(photo_id, score) for photo_id, score in near if photo_id in others]
        near.sort(key=lambda found: (-found[1], -found[0]))
        model = judged.identity
    with database.scope():
        # Below a hit that has every word, what is only possible is noise.
        least = PROBABLE if wording.stands(query) else LEAST
        near = [(photo_id, score) for photo_id, score in near[:limit] if score >= least]
        texts = {photo_id: text_of(photo_id) for photo_id, _ in near}
    items = [
        Relative(
            photo_id,
            round(score, 4),
            "probable" if score >= PROBABLE else "possible",
            " ".join(texts[photo_id][:MAX_SNIPPET].split()),
        )
        for photo_id, score in near
    ]
    return Relatives(items, model)


def relatives_if_possible(
    description: str, settings: Settings, *, limit: int, guarded: bool = False
) -> Relatives:
    """As `relatives`; with an empty `model` where none can be made. Raises `Unavailable` for the moment."""
    if settings.meaning == "off":
        return Relatives([], "")
    try:
        return relatives(description, settings, limit=limit, guarded=guarded)
    except ProviderRefused:
        return Relatives([], "")
    except ProviderDown as failure:
        raise Unavailable(failure.detail) from None


def shown(near: list[Relative]) -> list[shapes.PhotoRelative]:
    """The relatives as clients see them: as hits of a search in which no word matches."""
    of_photo = {one.photo_id: msgspec.to_builtins(one) | {"matched": [], "boxes": []} for one in near}
    with database.scope():
        items = photos.list_items(list(of_photo))
    return [shapes.of({**item, **of_photo[item["id"]]}, shapes.PhotoRelative) for item in items]


def make_one() -> bool:
    """Make the vector of the newest photo that needs one; False when none does. Opens its own short scopes.

    Raises `ProviderRefused` when this machine cannot make vectors, and `ProviderDown`, also when the child
    died over this text.
    """
    with database.scope():
        claimed = _claim(LOCAL, utc_now(), together=1)
        texts = [text_of(due.photo_id) for due in claimed]
    if not claimed:
        return False
    try:
        made, name = llm.embedder().embed(texts[0])
    except (ProviderRefused, ProviderDown) as failure:
        with database.scope():
            _release(claimed, failed=isinstance(failure, ProviderDown))
        raise
    with database.scope(), db.atomic():
        _keep(claimed[0], made, name)
    return True


def text_of(photo_id: int) -> str:
    """What a photo's vector is made of: its title, summary, note and text, without the status bar."""
    return _joined(_texts_of(photo_id))


def embed_some(settings: Settings, *, clock: Callable[[], datetime] = utc_now) -> bool:
    """Get the vectors of the newest photos that need one from the provider, in one call; False when none
    does, or no provider is configured. What is sensitive is not sent, and loses a vector that it had. Opens
    its own short scopes.

    Raises `ModelFailure`; the photos stay due, unless their answer was unusable three times. Raises
    `Unavailable` when the day's tokens are used up.
    """
    with database.scope():
        config = configuration.latest(settings)
        provider = llm.provider(config, settings)
        if provider is None:
            return False
        ledger.require_tokens(config, settings, now=clock())
        claimed = _claim(PROVIDER, clock(), together=TOGETHER)
        due = [row for row in claimed if not _is_held(row.photo_id, settings)]
        texts = {row.photo_id: text_of(row.photo_id) for row in due}
        with db.atomic():
            for row in claimed:
                if not texts.get(row.photo_id, "").strip():
                    _forget(row)
    due = [row for row in due if texts[row.photo_id].strip()]
    if not due:
        return bool(claimed)
    most = vectors.SHORT_TEXT if due[0].failures else vectors.LONG_TEXT  # it may have been too long
    try:
        made, dimensions, usage = provider.embed(
            [texts[row.photo_id][:most] for row in due], deadline=EMBED_LIMIT
        )
    except ModelFailure as failure:
        with database.scope(), db.atomic():
            ledger.record(failure.usage or Usage(), purpose=PURPOSE, model=provider.identity, now=clock())
            _release(due, failed=isinstance(failure, AnswerUnusable))
        raise
    with database.scope(), db.atomic():
        ledger.record(usage, purpose=PURPOSE, model=provider.identity, now=clock())
        if not _is_known(provider.mark, dimensions):
            _release(due, failed=True)
            refusal: AnswerUnusable | None = AnswerUnusable(CHANGED.format(dimensions=dimensions))
        else:
            refusal = None
            for row, vector in zip(due, made, strict=True):
                _keep(row, vector, f"{provider.mark} {dimensions}")
    if refusal is not None:
        raise refusal
    return True


def loop(settings: Settings) -> loops.Loop:
    """The thread that makes vectors, behind analyses and readings."""

    def step() -> float:
        with database.scope():
            if tallies.photos({"status": "processing"}) or readings.next_unread() is not None:
                return BEHIND
        try:
            return 0.0 if make_one() else REST
        except ProviderRefused:
            return REST  # said once in the log

    return loops.Loop("meaning", step)


def provider_loop(settings: Settings) -> loops.Loop:
    """The thread that gets vectors from a provider. It waits longer after each failure in a row, so that
    neither a provider that is down nor one that answers nonsense is asked, and paid, for every photo.
    """
    failures = 0

    def step() -> float:
        nonlocal failures
        try:
            pause = 0.0 if embed_some(settings) else REST
            failures = 0
            return pause
        except Unavailable:
            return LONGEST_REST  # the day's tokens are used up
        except (ModelFailure, BadInput) as failure:
            failures += 1
            if failures == FAILURES_LOGGED:
                log.warning("no vectors from the provider: %s", failure.detail)
            # The first failure may be that of one text: each is then sent alone.
            pause = (
                0.0 if failures == 1 and isinstance(failure, AnswerUnusable) else REST * 2 ** min(failures, 6)
            )
            return max(min(pause, LONGEST_REST), failure.retry_after or 0.0)

    return loops.Loop("embeddings", step)


def _near_here(wanted: str, *, guarded: bool) -> Near:
    """By the vectors that this machine made."""
    with database.scope():
        if not MeaningSigns.select().where(MeaningSigns.maker == LOCAL).exists():
            return []
    return llm.embedder().nearest(
        wanted,
        COMPARED,
        changes=partial(_changes, maker=LOCAL),
        vectors_of=partial(_vectors, maker=LOCAL, guarded=guarded),
        patience=PATIENCE,
    )


class _Judged(NamedTuple):
    """What a provider's vectors say, on the scale of ours."""

    near: Near
    mark: str
    identity: str


def _near_at_provider(wanted: str, settings: Settings, *, guarded: bool) -> _Judged | None:
    """By the vectors of the configured provider; None when it cannot be asked, or has too few of them."""
    if not settings.embeddings:
        return None
    with database.scope():
        known = _known()
        try:
            config = configuration.current(settings)
            provider = llm.provider(config, settings)
        except BadInput:
            return None
        if (
            provider is None
            or known.mark != provider.mark
            or provider.rests
            or ledger.out_of_tokens(config, settings, now=utc_now())
            or (gate.is_closed(settings) and gate.withholds_text(wanted))
        ):
            return None
        mark = f"{known.mark} {known.dimensions}"
        if _signs(PROVIDER, mark).limit(FEWEST).count() < FEWEST:
            return None
    try:
        (query,), dimensions, usage = provider.embed([wanted], deadline=QUERY_LIMIT)
    except ModelFailure as failure:
        provider.rest()
        log.warning("a search is answered without the provider's vectors: %s", failure.detail)
        usage, dimensions = failure.usage or Usage(), 0
    with database.scope():
        ledger.record(usage, purpose=PURPOSE, model=provider.identity, now=utc_now())
    if dimensions != known.dimensions:
        return None
    try:
        found = provider.comparer(dimensions).nearest(
            query,
            COMPARED,
            changes=partial(_changes, maker=PROVIDER, model=mark),
            vectors_of=partial(_vectors, maker=PROVIDER, model=mark, guarded=guarded),
            patience=PATIENCE,
        )
    except (ProviderRefused, ProviderDown, Unavailable) as failure:
        log.warning("a search is answered without the provider's vectors: %s", failure.detail)
        return None
    return _Judged(_scaled(found), mark, provider.identity)


def _scaled(found: Near) -> Near:
    """Cosines of a provider's model on the scale of ours. All vectors of some models lie close together, so
    that what is unlike has a cosine of 0.8: what the compared photos have in common is taken off, as the mean
    of a language is from ours.
    """
    if len(found) < FEWEST:
        return []
    common = statistics.median(score for _, score in found) / 2
    rest = max(1 - common, 0.01)
    return [
        (photo_id, (score / 2 - common) / rest * (PROBABLE / PROBABLE_AT_PROVIDER))
        for photo_id, score in found
    ]


def _without_provider(mark: str, photo_ids: list[int]) -> set[int]:
    """Those of these photos that have no vector with this mark."""
    with database.scope():
        of_model = (Meaning.maker == PROVIDER) & (Meaning.model == mark)
        rows = Meaning.select(Meaning.photo).where(Meaning.photo.in_(photo_ids), of_model)
        return set(photo_ids) - {row.photo_id for row in rows}


def _texts_of(photo_id: int) -> list[str]:
    shown = Shown.get_or_none(Shown.photo == photo_id)
    if shown is None:  # deleted, or in the trash
        return []
    read = readings.of([photo_id]).get(photo_id)
    text = shown.own_text or (read.content if read else shown.text)
    return [part for part in (shown.title, shown.summary, shown.note, text) if part]


def _joined(parts: list[str]) -> str:
    return "\n".join(parts)[: vectors.LONG_TEXT]


def _is_held(photo_id: int, settings: Settings) -> bool:
    """Whether the gate holds a photo back: it is marked, or something sensitive is in its texts."""
    if not gate.is_closed(settings):
        return False
    parts = _texts_of(photo_id)
    return gate.withholds(gate.marks([photo_id]).get(photo_id, gate.Mark()), [*parts, _joined(parts)])


class _Known(msgspec.Struct):
    """The provider's model that made the vectors."""

    mark: str = ""
    dimensions: int = 0


def _known() -> _Known:
    return msgspec.convert(stored_value("embeddings", {}), _Known)


def _is_known(mark: str, dimensions: int) -> bool:
    """Whether vectors of this model can be kept. One with another mark replaces the one before, and every
    photo becomes due; one that only changes its dimensions is refused, or a server that changes them with
    each answer would be paid for all photos again and again.
    """
    known = _known()
    if known.mark == mark:
        return known.dimensions == dimensions
    store_value("embeddings", _Known(mark, dimensions))
    others = Analysis.select(Analysis.photo, peewee.Value(PROVIDER)).where(Analysis.status == "done")
    MeaningDue.insert_from(others, [MeaningDue.photo, MeaningDue.maker]).on_conflict_ignore().execute()
    failed = (MeaningDue.maker == PROVIDER) & (MeaningDue.failures > 0)
    MeaningDue.update(failures=0).where(failed).execute()
    return True


def _claim(maker: str, now: datetime, *, together: int) -> list[MeaningDue]:
    """The newest photos due for this maker, leased: up to `together`, or one that has failed."""
    seconds = int(now.replace(tzinfo=UTC).timestamp())
    for failures, most in ((0, together), *((count, 1) for count in range(1, MOST_FAILURES))):
        free = (MeaningDue.failures == failures) & (MeaningDue.leased_until <= seconds)
        newest = MeaningDue.select(MeaningDue.photo).where(MeaningDue.maker == maker, free)
        newest = newest.order_by(MeaningDue.photo.desc()).limit(most)
        claim = MeaningDue.update(leased_until=seconds + LEASE)
        claim = claim.where(MeaningDue.maker == maker, MeaningDue.photo.in_(newest))
        if rows := list(claim.returning(MeaningDue)):
            return sorted(rows, key=lambda row: -row.photo_id)
    return []


def _release(due: list[MeaningDue], *, failed: bool) -> None:
    """Give claimed photos back."""
    for row in due:
        again = MeaningDue.update(leased_until=0, failures=MeaningDue.failures + failed)
        again.where(_of(MeaningDue, row)).execute()


def _keep(due: MeaningDue, made: vectors.Embedded, model: str) -> None:
    """Store the vector of a claimed photo, unless it was deleted meanwhile."""
    if Photo.select().where(Photo.id == due.photo_id).exists():
        whose = {"photo": due.photo_id, "maker": due.maker, "model": model}
        Meaning.insert(**whose, vector=made.vector).on_conflict_replace().execute()
        MeaningSigns.insert(**whose, signs=made.signs).on_conflict_replace().execute()
    _done(due)


def _forget(due: MeaningDue) -> None:
    """Remove the vector of a claimed photo that is held back or has no text."""
    Meaning.delete().where(_of(Meaning, due)).execute()
    MeaningSigns.delete().where(_of(MeaningSigns, due)).execute()
    _done(due)


def _done(due: MeaningDue) -> None:
    unchanged = MeaningDue.changes == due.changes
    MeaningDue.delete().where(_of(MeaningDue, due), unchanged).execute()


def _of(table: type[Meaning | MeaningSigns | MeaningDue], due: MeaningDue) -> Any:
    """The condition on the row of the same photo and maker."""
    return (table.photo == due.photo_id) & (table.maker == due.maker)


def _signs(maker: str, model: str | None) -> "peewee.ModelSelect[MeaningSigns]":
    found = MeaningSigns.select().where(MeaningSigns.maker == maker)
    return found if model is None else found.where(MeaningSigns.model == model)


def _changes(
    known: int, *, maker: str, model: str | None = None
) -> Iterator[tuple[int, list[int], list[bytes]]]:
    """The signs of this maker, and model if given, that were made after the id `known`."""
    while True:
        with database.scope():
            newer = _signs(maker, model).where(MeaningSigns.id > known)
            rows = [
                (row.id, row.photo_id, bytes(row.signs))
                for row in newer.order_by(MeaningSigns.id).limit(PIECE)
            ]
        if not rows:
            return
        known = rows[-1][0]
        yield known, [row[1] for row in rows], [row[2] for row in rows]


def _vectors(
    photo_ids: list[int], *, maker: str, guarded: bool, model: str | None = None
) -> list[tuple[int, bytes, str]]:
    """The vectors of these photos by this maker, each with the kind of its screen."""
    # Joined with the analyses: a photo without one is in the trash.
    with database.scope():
        if guarded:
            held = lexicon.withheld(photo_ids)
            photo_ids = [photo_id for photo_id in photo_ids if photo_id not in held]
        columns = (Meaning.photo, Meaning.vector, peewee.fn.SUBSTR(Analysis.llm_response, 1, MAX_JUDGED))
        query = Meaning.select(*columns).join(Analysis, on=(Analysis.photo == Meaning.photo))
        query = query.where(Meaning.photo.in_(photo_ids), Meaning.maker == maker)
        if model is not None:
            query = query.where(Meaning.model == model)
        rows = cast("Iterable[tuple[int, bytes, str]]", query.tuples())
        found = {photo_id: (bytes(vector), kind_in(raw)) for photo_id, vector, raw in rows}
    return [(photo_id, *found[photo_id]) for photo_id in photo_ids if photo_id in found]


# ----------------------------------------------------------------------------------------------------- routes

routes = Blueprint("meaning", __name__, url_prefix="/api/search")


class RelatedQuery(msgspec.Struct):
    q: inputs.AnyText = ""
    limit: Annotated[int, msgspec.Meta(ge=1, le=20)] = 5


@routes.get("/related", endpoint="find")
@inputs.without_scope
@inputs.operation(Unavailable)
def find_related(query: RelatedQuery) -> shapes.PhotoRelatives:
    """Find the photos that are closest to a description in meaning, whatever their words. Something is always
    closest, so each has a grade. A quoted phrase and a query with operators have no relatives.
    """
    near = relatives_if_possible(query.q, inputs.settings(), limit=query.limit)
    return {"available": bool(near.model), "model": near.model, "items": shown(near.items)}
