"""The results of analyses: how what a model has found, and what was read, is stored with the photo.

Whoever stores a result also does what follows from it: the photo is marked by the gate, indexed anew for
searches, its records and dates are filed, and the reasoner and webhooks learn of it. A result is copied for
the same bytes, and for a near-duplicate with the same words. Everything here runs in the caller's scope.
"""

import contextlib
import logging
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import msgspec

import agenda
import claims
import database
import gate
import lexicon
import llm
import memory
import readings
import reasoner
import records
from analysis.text_reader import Read
from claims import Claim
from clock import local_time
from curation import stacks
from database import db
from engines import configuration
from engines.findings import RESULT_FIELDS, Findings
from engines.lines import Page
from engines.records import Record
from models import Analysis, Photo
from outlets import webhooks

log = logging.getLogger(__name__)

LOCAL = f"{configuration.LOCAL}/"  # how the identity of the embedded model begins
JUDGED_HERE = (Analysis.status == "done") & Analysis.analyser.startswith(LOCAL)
_COLUMNS = (*RESULT_FIELDS, "llm_response")


def columns_of(findings: Findings) -> dict[str, Any]:
    """The columns of an analysis row that hold these findings."""
    return {
        **{name: getattr(findings, name) for name in RESULT_FIELDS},
        "entities": msgspec.json.encode(findings.entities).decode(),
        "llm_response": findings.raw,
        "records": records.encoded(findings.records or []),
    }


def keep(claim: Claim, found: Findings, read: Read | None, analyser: str, *, now: datetime) -> None:
    """Store what a model has found in a claimed photo, and what follows from it. `read` is what was read on
    the photo before, for a model that does not say so itself.
    """
    result = columns_of(found)
    if found.page is not None:
        page: Page | None = _keep_reading(claim.photo.id, found.page, found.reader)
    else:
        page = None if read is None else read[0]
        result["visible_text"] = readings.merged("" if page is None else page.text, found.visible_text)
        result["records"] = records.encoded(_records_of(claim.photo, found, read))
    _save(claim, result, page, analyser, now=now)
    # What the picture tells about the person. Memories are de-duplicated.
    for candidate in found.memories:
        memory.remember(candidate, source_type="screenshot", device_id=claim.photo.device_id, now=now)


# CROSS JOIN keeps this order: SQLite would start with all finished analyses.
_TWIN = """
    SELECT twin.id FROM analyses AS own
    JOIN photos ON photos.id = own.photo_id
    CROSS JOIN photos AS same ON same.sha256 = photos.sha256
    CROSS JOIN analyses AS twin ON twin.photo_id = same.id
    WHERE own.id = ? AND NOT own.fresh AND twin.status = 'done' AND twin.analyser = ?
    LIMIT 1
"""


def copied_from_twin(claim: Claim, analyser: str, *, now: datetime) -> bool:
    """Copy the result of the same analyser for identical bytes, without a call; False when there is none."""
    found = db.execute_sql(_TWIN, (claim.analysis_id, analyser)).fetchone()
    twin = None if found is None else Analysis.get_or_none(Analysis.id == found[0])
    if twin is None:
        return False
    with db.atomic():
        if claims.is_current(claim):
            page = readings.copy(twin.photo_id, claim.photo.id)
            result = {name: getattr(twin, name) for name in _COLUMNS}
            _save(claim, result, page, analyser, now=now)
        claims.end(claim, None, now=now)  # the provider was not asked
    log.info("photo %d analysed: copied from the same picture", claim.photo.id)
    return True


def copied_from_stack(claim: Claim, page: Page, analyser: str, *, now: datetime) -> bool:
    """Copy, or wait for, the result of a near-duplicate with the same words as are on `page`; False when
    there is none, or a person asks for a new result.
    """
    if claim.fresh:
        return False
    other_id, is_awaited = stacks.same_words(claim.photo.id, page, analyser)
    if other_id is None:
        if is_awaited:
            claims.give_back(claim, now=now, pause=claims.COPY_DELAY)
        return is_awaited
    with db.atomic():
        other = Analysis.get_or_none(Analysis.photo == other_id)
        if other is None or not claims.is_current(claim):
            claims.give_back(claim, now=now)  # deleted meanwhile
            return True
        result = {name: getattr(other, name) for name in _COLUMNS}
        result["visible_text"] = page.text
        there = records.on_page(records.decoded(other.records), page, confidence=other.confidence)
        result["records"] = records.encoded(there)
        _save(claim, result, page, f"{analyser}, of the near-duplicate {other_id}", now=now)
        claims.end(claim, None, now=now)  # the provider was not asked
    log.info("photo %d analysed: copied from a near-duplicate", claim.photo.id)
    return True


def _records_of(photo: Photo, found: Findings, read: Read | None) -> list[Record]:
    """The records of a remote model with their lines, or the rules' where it names none."""
    if found.records is not None:
        page = None if read is None else read[0]
        return records.on_page(found.records, page, confidence=found.confidence)
    if read is None:
        return []
    reader = llm.reader(database.store().settings)
    return reader.judge(*read, name=photo.filename, taken=time_taken(photo)).records or []


def _save(claim: Claim, result: dict[str, Any], page: Page | None, analyser: str, *, now: datetime) -> None:
    done = {
        "status": "done",
        "analyser": analyser,
        "completed_at": now,
        "error_message": None,
        "fault": "",
        "fresh": False,
        "noted": False,
    }
    counters = {"attempts": 0, "interruptions": 0, "returns": 0}
    with _changing(claim.photo.id, page, now=now):
        Analysis.update(**result, **done, **counters, **claims.UNLEASED).where(
            Analysis.id == claim.analysis_id
        ).execute()
        gate.mark(claim.photo.id, result["visible_text"])
    reasoner.count_completed()
    webhooks.record(webhooks.ANALYSED, claim.photo.id, now=now)


@contextlib.contextmanager
def _changing(photo_id: int, page: Page | None, *, now: datetime) -> Iterator[None]:
    """Store what follows from a result of a photo with this reading that is changed inside the context."""
    lexicon.remove(photo_id)  # before: removing an earlier result needs its text
    yield
    lexicon.index(photo_id)
    records.file([photo_id])
    agenda.renew(photo_id, page, now=now)


def replace_judgement(row: Any, page: Page, found: Findings, analyser: str, *, now: datetime) -> None:
    """Save what the embedded model finds now on a reading; of another model's photo, only the records."""
    same = (Analysis.photo == row.photo_id) & (Analysis.analyser == row.analyser)
    same &= (Analysis.completed_at == row.completed_at) & (Analysis.status == "done")
    if not Analysis.select().where(same).exists():
        return
    fields = {name: value for name, value in columns_of(found).items() if name != "visible_text"}
    is_local = row.analyser.startswith(LOCAL)
    changed = {**fields, "analyser": analyser} if is_local else {"records": fields["records"]}
    with lexicon.changing([row.photo_id] if is_local else []):  # records are not in the index
        Analysis.update(**changed).where(same).execute()
    records.file([row.photo_id])
    agenda.renew(row.photo_id, page, now=now)


def keep_and_index(photo_id: int, read: Read, *, now: datetime) -> Read:
    """Save what was read on a photo outside of its analysis, and index it with what a model has seen; returns
    it as it is stored.
    """
    columns = Analysis.select(Analysis.visible_text, Analysis.analyser, Analysis.records, Analysis.confidence)
    row = columns.where(Analysis.photo == photo_id).get_or_none()
    if row is None:
        return read  # deleted meanwhile
    before, seen = readings.text(photo_id), ""
    if not row.analyser.startswith(LOCAL):
        seen = row.visible_text.removeprefix(before)
    page = _keep_reading(photo_id, *read)
    changed = {"visible_text": readings.merged(page.text, seen)}
    if row.records is not None:  # their lines are others now
        found = records.on_page(records.decoded(row.records), page, confidence=row.confidence)
        changed["records"] = records.encoded(found)
    with _changing(photo_id, page, now=now):
        Analysis.update(**changed).where(Analysis.photo == photo_id).execute()
        gate.mark(photo_id, changed["visible_text"])
    return page, read[1]


def _keep_reading(photo_id: int, page: Page, reader: str) -> Page:
    readings.end_tries(photo_id)
    return readings.save(photo_id, page, reader=reader)


def time_taken(photo: Any) -> datetime:
    """When a photo was taken, in local time without a zone."""
    return local_time(photo.original_timestamp)
