"""The tools that read the person's own screenshots for a model: search, one screenshot, the agenda, records
and threads.

Where answers leave for a remote model, each passes the gate here: of a sensitive screenshot the model learns
only that there is one.
"""

from collections.abc import Callable, Container
from datetime import datetime
from typing import Any, cast

import msgspec

import agenda
import database
import gate
import meaning
import photos
import readings
import records
import search
import threads
from assistant.arguments import (
    DAY,
    MOST_FOUND,
    SORTS,
    Agenda,
    GetScreenshot,
    ListRecords,
    ListThreads,
    SearchKnowledgeBase,
    begun,
    day,
    one_of,
    span,
)
from clock import iso, local_time, parse_time
from engines.findings import CATEGORIES, INTENTS, Entity
from engines.records import TYPES, Record
from errors import NotFound, Unavailable
from models import Photo, Shown
from queries import candidates
from rules import joins, questions
from settings import Settings
from text import cut, one_line

FEW = 5  # with fewer, those that are closest in meaning are added

# Characters of the results: a screenful of text is 2,000, and twenty results with a summary are 3,000 tokens.
MAX_SUMMARY = 500
MAX_SNIPPET = 200
MAX_VISIBLE_TEXT = 6_000
MAX_ENTITIES = 30
MAX_ENTITY = 200


class Library:
    """What tools read. With `gated`, the answers go to a remote model."""

    def __init__(self, settings: Settings, clock: Callable[[], datetime], *, gated: bool):
        self._settings, self._clock, self._gated = settings, clock, gated

    def find(self, arguments: SearchKnowledgeBase) -> dict[str, Any]:
        limit = max(1, min(MOST_FOUND, arguments.limit))
        since = begun(arguments.since, local_time(self._clock()).date())
        until = parse_time(arguments.until, field="until")
        if until is not None and len(arguments.until) <= len("2026-11-21"):
            until = min(until, datetime.max - DAY) + DAY
        filters = photos.Filters(
            category=one_of("category", arguments.category, CATEGORIES),
            intent=one_of("intent", arguments.intent, INTENTS),
            device_id=arguments.device_id or None,
            since=since or parse_time(arguments.since, field="since"),
            until=until,
        )
        with database.scope():
            if arguments.query:
                found = search.find(
                    arguments.query,
                    filters,
                    limit=min(candidates.RERANKED, limit * arguments.page),
                    guarded=self._gated,
                    now=self._clock(),
                )
            else:
                total, ids = photos.ids_of_page(arguments.page, limit, filters)
                found = search.Found(total, [search.Hit(photo_id, 0.0, "") for photo_id in ids])
            hits = found.items[limit * (arguments.page - 1) :] if arguments.query else found.items
            rows = _rows([hit.photo_id for hit in hits])
        results = [_found(rows[hit.photo_id], hit) for hit in hits if hit.photo_id in rows]
        shown = [self._let_out(rows[result["id"]], result) for result in results]
        answer: dict[str, Any] = {"total": max(found.total, len(results)), "results": shown}
        if found.corrected:
            answer["corrected"] = msgspec.to_builtins(found.corrected)
        if found.nearest:
            answer["nearest"] = [{"word": near.word, "photos": near.photos} for near in found.nearest]
        if arguments.query and found.total < FEW and (near := self._near(arguments, rows)):
            answer["closest_in_meaning"] = near  # what the tool's description says of it
        return answer

    def _near(self, arguments: SearchKnowledgeBase, found: Container[int]) -> list[dict[str, Any]]:
        """The screenshots closest to a query in meaning, without those found; none where filters are set."""
        filters = (
            arguments.category,
            arguments.intent,
            arguments.device_id,
            arguments.since,
            arguments.until,
        )
        if any(filters):
            return []
        try:
            found_near = meaning.relatives_if_possible(
                arguments.query, self._settings, limit=FEW, guarded=self._gated
            )
        except Unavailable:
            return []
        near = [one for one in found_near.items if one.photo_id not in found]
        with database.scope():
            rows = _rows([one.photo_id for one in near])
        return [
            self._let_out(row, {**_heading(row), "snippet": one.snippet}) | {"grade": one.grade}
            for one in near
            if (row := rows.get(one.photo_id)) is not None
        ]

    def read(self, arguments: GetScreenshot) -> dict[str, Any]:
        with database.scope():
            row = _rows([arguments.id]).get(arguments.id)
            read = readings.of([arguments.id]).get(arguments.id)
        if row is None:
            raise NotFound("Photo not found")
        entities = msgspec.json.decode(row.entities, type=list[Entity])[:MAX_ENTITIES]
        end = arguments.offset + MAX_VISIBLE_TEXT
        result = {
            **_heading(row),
            "snippet": _line(row.text or row.summary, MAX_SNIPPET),
            "entities": [
                {"type": entity.type, "value": _line(entity.value, MAX_ENTITY)} for entity in entities
            ],
            "visible_text": (read.in_rows(row.text) if read else row.text)[arguments.offset : end],
            "text_length": len(row.text),
            "status": row.status,
            "filename": row.photo.filename,
        }
        if end < len(row.text):
            result["next_offset"] = end
        if stored := records.decoded(row.records):
            said = [
                records.without_secrets(record) if self._gated and not row.cleared else record
                for record in stored
            ]
            result["records"] = [_fields(record) for record in said]
            if withheld := records.withheld(stored, said):
                result["withheld"] = withheld
        if row.note:
            result["note"] = cut(row.note, MAX_VISIBLE_TEXT)
        if tags := msgspec.json.decode(row.tags):
            result["tags"] = tags
        return {"results": [self._let_out(row, result)]}

    def list_agenda(self, arguments: Agenda) -> dict[str, Any]:
        today = local_time(self._clock()).date()
        since = agenda.local_bound(arguments.since, field="since")
        until = agenda.local_bound(arguments.until, field="until")
        if arguments.period[:1].isdigit():
            first, last = span(arguments.period, today, ahead=True)
            since, until = first.isoformat(), last.isoformat()
        elif arguments.period == questions.AHEAD:
            since = local_time(self._clock()).isoformat(timespec="minutes")
        elif period := one_of("period", arguments.period, questions.PERIODS):
            since, until = agenda.period(period, today)
        elif since is None and until is None:
            since = today.isoformat()
        limit = max(1, min(MOST_FOUND, arguments.limit))
        with database.scope():
            total, items = agenda.listed(since, until, leaving=self._gated, limit=limit * arguments.page)
        results = [
            {
                "id": item.photo_id,
                "title": item.title,
                "snippet": _line(item.quote, MAX_SNIPPET),
                "kind": item.kind,
                "starts_at": item.starts_at,
                **({"ends_at": item.ends_at} if item.ends_at else {}),
            }
            for item in items[limit * (arguments.page - 1) :]
        ]
        return {
            "total": len(results) if self._gated else total,
            "results": results,
        }

    def _let_out(self, row: Shown, result: dict[str, Any]) -> dict[str, Any]:
        """The result about a screenshot, or, before the gate, only that there is a sensitive one."""
        mark = gate.Mark(row.sensitive, row.cleared)
        if not self._gated or not (row.withheld or gate.withholds(mark, [row.visible_text, result])):
            return result
        kept = {name: result[name] for name in ("id", "device_id", "taken")}
        return {**kept, "title": gate.TITLE, "snippet": ""}

    def list_records(self, arguments: ListRecords) -> dict[str, Any]:
        since, until = (day(name, getattr(arguments, name)) for name in ("since", "until"))
        now = local_time(self._clock())
        is_ahead = arguments.period == questions.AHEAD
        if is_ahead:
            since = now.date()
        elif arguments.period:
            since, until = span(arguments.period, now.date())
        sort = cast("records.Sort | None", one_of("sort", arguments.sort, SORTS))
        types = {name.casefold(): name for name in TYPES}
        wanted = records.Wanted(
            [types.get(arguments.type.casefold(), arguments.type)] if arguments.type else [],
            since,
            until,
            text=arguments.text,
        )
        with database.scope():
            total, found, sums = records.listed(
                wanted,
                arguments.page,
                max(1, min(MOST_FOUND, arguments.limit)),
                guarded=self._gated,
                sort=sort or ("earliest" if is_ahead else "latest"),
            )
            if is_ahead:
                present = now.isoformat(timespec="minutes")
                found = [one for one in found if not records.is_over(one.record, present)]
                if not sort:
                    found.sort(key=lambda one: records.day_of(one.record) or one.day)
            lines = [records.fact(one.record) for one in found]
        results = [
            {
                "id": one.photo_id,
                "title": line["line"] if line and line["line"] else one.record.type,
                "snippet": one.record.type,
                "day": one.day,
                "records": [_fields(one.record)],
                **({"withheld": one.withheld} if one.withheld else {}),
            }
            for one, line in zip(found, lines, strict=True)
        ]
        totals = [{"currency": one.currency, "value": f"{one.value:f}", "count": one.records} for one in sums]
        return {"total": total, "sums": totals, "results": results}

    def list_threads(self, arguments: ListThreads) -> dict[str, Any]:
        now, limit = self._clock(), max(1, min(MOST_FOUND, arguments.limit))
        kind = one_of("type", arguments.type, list(joins.STATES)) or ""
        types = [kind, "order"] if kind == "parcel" else [kind] if kind else []
        with database.scope():
            if arguments.text:
                wanted = records.Wanted(text=arguments.text)
                _, said, _ = records.listed(wanted, 1, MOST_FOUND, guarded=self._gated)
                known = dict.fromkeys(threads.of([one.photo_id for one in said]).values())
                found = [threads.get(one, now=now) for one in known]
                found = [one for one in found if not types or one.type in types]
            else:
                found = threads.listed(types, "", 1, MOST_FOUND, now=now)[1]
            rows = _rows([one.said_on for one in found])
            results = [self._thread(one, rows[one.said_on]) for one in found if one.said_on in rows]
        results.sort(key=lambda one: not one.get("is_open"))
        return {"total": len(results), "results": results[:limit]}

    def _thread(self, thread: threads.Thread, row: Shown) -> dict[str, Any]:
        lines = row.visible_text.split("\n")
        said = lines[thread.line] if thread.line is not None and thread.line < len(lines) else ""
        result = {
            "id": thread.said_on,
            "title": thread.title,
            "snippet": _line(said, MAX_SNIPPET),
            "type": thread.type,
            "state": thread.state,
            "is_open": thread.is_open,
            "screenshot": row.title or row.summary,
            "taken": iso(row.photo.original_timestamp),
            "device_id": row.device_id,
            **({"next": thread.next._asdict()} if thread.next else {}),
        }
        if self._gated and thread.sensitive:
            return {"id": thread.said_on, "title": gate.TITLE, "snippet": ""}
        return self._let_out(row, result)


def _rows(ids: list[int]) -> dict[int, Shown]:
    """What is shown of these photos, with the photos, in one query."""
    selected = Shown.select(Shown, Photo.id, Photo.filename, Photo.original_timestamp).join(Photo)
    return {row.photo_id: row for row in selected.where(Shown.photo.in_(ids))}


def _found(row: Shown, hit: search.Hit) -> dict[str, Any]:
    return {**_heading(row), "snippet": hit.snippet or _line(row.text, MAX_SNIPPET), "score": hit.score}


def _heading(row: Shown) -> dict[str, Any]:
    """The fields that every result about a screenshot has."""
    return {
        "id": row.photo_id,
        "title": row.title or row.app_name or row.photo.filename,
        "app": row.app_name,
        "summary": _line(row.summary, MAX_SUMMARY),
        "category": row.content_category,
        "intent": row.intent,
        "device_id": row.device_id,
        "taken": iso(row.photo.original_timestamp),
    }


def _fields(record: Record) -> dict[str, Any]:
    """A record for models: values in normal form, and the words as they are on the screen."""
    fields = [{"name": one.name, "value": one.value, "text": one.text} for one in record.fields]
    return {"type": record.type, "fields": fields}


def _line(text: str, most: int) -> str:
    return cut(one_line(text[: 2 * most]), most)
