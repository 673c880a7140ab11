"""The results of analyses: how what a model has found, and what was read, is stored with the photo.

Whoever stores a result also does what follows from it: the photo is marked by the gate, indexed anew for
searches, its records and dates are filed, and the reasoner and webhooks learn of it. What was found on the
same bytes, or on a near-duplicate with the same words, is found here, too, and no model is asked. Everything
here runs in the caller's scope.
"""

import logging
from datetime import datetime
from typing import Any, NamedTuple

import msgspec

import agenda
import database
import gate
import lexicon
import llm
import memory
import readings
import reasoner
import records
from analysis import wordmarks
from analysis.text_reader import Read
from claims import UNLEASED, Claim
from clock import local_time
from database import db
from engines import configuration
from engines.findings import RESULT_FIELDS, Entity, Findings
from engines.lines import Page
from engines.records import Record
from models import Analysis, Photo
from outlets import webhooks

log = logging.getLogger(__name__)

LOCAL = f"{configuration.LOCAL}/"  # how the identity of the embedded model begins
JUDGED_HERE = (Analysis.status == "done") & Analysis.analyser.startswith(LOCAL)


class Known(NamedTuple):
    """What is known about a claimed photo when its text was read, or could not be: what is on it, its mark,
    and how often it may still be tried to be read.
    """

    read: Read | None
    mark: gate.Mark
    reads_left: int


# ------------------------------------------------------------------------------------ before a model is asked


def of_same_bytes(photo: Photo, analyser: str) -> Findings | None:
    """What the same analyser has found on identical bytes, with what was read there; None if it has not."""
    twin = next(iter(Analysis.raw(_TWIN, photo.sha256, analyser)), None)
    if twin is None:
        return None
    log.info("photo %d has the bytes of photo %d, which was analysed", photo.id, twin.photo_id)
    found = _findings_in(twin)
    read = readings.page_of(twin.photo_id) or readings.page_of(photo.id)
    if read is not None:
        found.page, found.reader = read
    return found


def known(claim: Claim, read: Read | None, *, now: datetime) -> Known | None:
    """What is known about a claimed photo; None when the claim no longer holds. What was `read` now is saved,
    so that it is found whatever a model answers; where nothing was, what was read before counts.
    """
    with db.atomic():
        row = Analysis.get_or_none(claim.held)
        if row is None:
            return None
        if read is None:
            mark = gate.Mark(row.sensitive, row.cleared)
            return Known(readings.page_of(row.photo_id), mark, row.reads_left)
        page = keep_read(row, read, now=now)
        return Known((page, read[1]), gate.marks([row.photo_id])[row.photo_id], 0)


def of_same_words(other: Analysis) -> Findings:
    """What was found on a near-duplicate with the same words, without its text: that of this one was read."""
    found = _findings_in(other)
    found.visible_text = ""
    return found


# ------------------------------------------------------------------------------------------- what is stored


def columns_of(findings: Findings) -> dict[str, Any]:
    """The columns of an analysis row that hold these findings."""
    return {
        **{name: getattr(findings, name) for name in RESULT_FIELDS},
        "entities": msgspec.json.encode(findings.entities).decode(),
        "records": None if findings.records is None else records.encoded(findings.records),
        "llm_response": findings.raw,
    }


def keep(photo: Photo, found: Findings, read: Read | None, analyser: str, *, now: datetime) -> None:
    """Store what was found on a claimed photo, and what follows from it. `read` is what was read on the photo
    before, for findings that have no page.
    """
    result = {**columns_of(found), "app_name": wordmarks.keep(photo.id, found)}
    if found.page is not None:
        page: Page | None = readings.save(photo.id, found.page, reader=found.reader)
    else:
        page = None if read is None else read[0]
        result["visible_text"] = readings.merged("" if page is None else page.text, found.visible_text)
        result["records"] = records.encoded(_records_of(photo, found, read))
    done = {"status": "done", "analyser": analyser, "completed_at": now, "error_message": None, "fault": ""}
    anew = {"fresh": False, "noted": False, "attempts": 0, "interruptions": 0, "returns": 0}
    _change(photo.id, {**result, **done, **anew, **UNLEASED}, page, now=now)
    reasoner.count_completed()
    webhooks.record(webhooks.ANALYSED, photo.id, now=now)
    # What the picture tells about the person. Memories are de-duplicated.
    for candidate in found.memories:
        memory.remember(candidate, source_type="screenshot", device_id=photo.device_id, now=now)


def keep_read(row: Analysis, read: Read, *, now: datetime) -> Page:
    """Save what was read on a photo before or without its analysis, and index it with what a model has seen;
    returns the page as it is stored.
    """
    seen = ""
    if not row.analyser.startswith(LOCAL):
        seen = row.visible_text.removeprefix(readings.text(row.photo_id))
    page = readings.save(row.photo_id, read[0], reader=read[1])
    changed = {"visible_text": readings.merged(page.text, seen)}
    if row.records is not None:  # their lines are others now
        found = records.on_page(records.decoded(row.records), page, confidence=row.confidence)
        changed["records"] = records.encoded(found)
    _change(row.photo_id, changed, page, now=now)
    return page


def replace_judgement(row: Any, page: Page, found: Findings, analyser: str, *, now: datetime) -> None:
    """Save what the embedded model finds now on a reading; of another model's photo, only the records."""
    same = (Analysis.photo == row.photo_id) & (Analysis.analyser == row.analyser)
    same &= (Analysis.completed_at == row.completed_at) & (Analysis.status == "done")
    if not Analysis.select().where(same).exists():
        return
    changed = {**columns_of(found), "app_name": wordmarks.keep(row.photo_id, found), "analyser": analyser}
    del changed["visible_text"]
    if not row.analyser.startswith(LOCAL):
        changed = {"records": changed["records"]}
    _change(row.photo_id, changed, page, now=now)


def time_taken(photo: Any) -> datetime:
    """When a photo was taken, in local time without a zone."""
    return local_time(photo.original_timestamp)


def _change(photo_id: int, changed: dict[str, Any], page: Page | None, *, now: datetime) -> None:
    """Change columns of the analysis of a photo with this reading, and what follows from them."""
    with lexicon.changing([photo_id]):
        Analysis.update(**changed).where(Analysis.photo == photo_id).execute()
        if "visible_text" in changed:
            gate.mark(photo_id, changed["visible_text"])
    records.file([photo_id])
    agenda.renew(photo_id, page, now=now)
    if "app_name" in changed and (named := wordmarks.named_by(photo_id)):
        _name(named)


def _name(named: dict[int, str]) -> None:
    """Give photos without an app the name that another one has made sure."""
    with lexicon.changing(named):
        for other_id, name in named.items():
            Analysis.update(app_name=name).where(Analysis.photo == other_id).execute()


def _records_of(photo: Photo, found: Findings, read: Read | None) -> list[Record]:
    """The records of a remote model with their lines, or the rules' where it names none."""
    if found.records is not None:
        page = None if read is None else read[0]
        return records.on_page(found.records, page, confidence=found.confidence)
    if read is None:
        return []
    reader = llm.reader(database.store().settings)
    return reader.judge(*read, name=photo.filename, taken=time_taken(photo)).records or []


def _findings_in(row: Analysis) -> Findings:
    """The findings that `columns_of` has stored in a row."""
    columns = {name: getattr(row, name) for name in RESULT_FIELDS}
    columns["entities"] = msgspec.json.decode(row.entities, type=list[Entity])
    columns["records"] = None if row.records is None else records.decoded(row.records)
    found = Findings(**columns, raw=row.llm_response, wordmarks=wordmarks.of(row.photo_id))
    found.visible_text = row.visible_text  # with the spaces at its ends, by which lines are found in it
    return found


# CROSS JOIN keeps this order: SQLite would start with all finished analyses.
_TWIN = """
    SELECT twin.* FROM photos AS same CROSS JOIN analyses AS twin ON twin.photo_id = same.id
    WHERE same.sha256 = ? AND twin.status = 'done' AND twin.analyser = ? LIMIT 1
"""
