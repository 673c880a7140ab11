"""The tools that the assistant can call while it answers one message: screenshots, the web, memories, and
those of MCP servers.

The names and arguments of calls come from a model, and possibly from a screenshot or a web page that
persuaded it. So a tool may do only what is acceptable whoever asks for it: the built-in ones read, and the
one that writes has a gate (`save_memory`). Every failure becomes a sentence in the tool's result, for the
model to read: no tool ends a turn.

Tools wait for networks, so a turn holds no database scope here: each tool that needs the database opens one
for a moment.

What models read of the built-in tools is in `assistant/arguments.py`, what the MCP servers offer in
`assistant/offers.py`.

More than 550 lines, because it is one list of tools, which share their limits and the gate.
"""

import contextlib
import functools
import logging
from collections.abc import Callable, Container, Sequence
from datetime import datetime
from typing import Any, NamedTuple, TypeVar

import msgspec

import agenda
import database
import gate
import meaning
import memory
import net
import photos
import records
import search
import threads
from assistant import mcp, mcp_servers, offers, web_search
from assistant.arguments import (
    DAY,
    MOST_FOUND,
    Agenda,
    GetScreenshot,
    ListRecords,
    ListThreads,
    SaveMemory,
    SearchKnowledgeBase,
    WebSearch,
    begun,
    day,
    decoded,
    described,
    one_of,
    read,
    span,
)
from assistant.confirmation import Destination
from clock import iso, local_time, parse_time
from database import db
from engines import configuration, reading
from engines.findings import CATEGORIES, INTENTS, Entity, MemoryCandidate
from engines.records import TYPES, Record
from errors import BadInput, NotFound, SnaploreError, Unavailable
from models import McpServer, Photo, Shown
from queries import candidates
from rules import joins, questions
from settings import Settings
from text import cut, one_line

log = logging.getLogger(__name__)

T = TypeVar("T")

MOST_TOOLS = 128  # in all: OpenAI refuses a request with more
MOST_TOOL_CHARACTERS = 60_000  # of all MCP tools, 15,000 tokens of every request; one server may use them all

MOST_LEAVING = 40  # calls of a turn that are judged together
LIST_SECONDS = 5.0  # that a turn waits for the lists of tools
CALL_SECONDS = 30.0  # for one call of an MCP tool

FEW = 5  # with fewer, those that are closest in meaning are added
WEB_RESULTS = 5

# Characters of the results: a screenful of text is 2,000, and twenty results with a summary are 3,000 tokens.
MAX_SUMMARY = 500
MAX_SNIPPET = 200
MAX_VISIBLE_TEXT = 6_000
MAX_ENTITIES = 30
MAX_ENTITY = 200
MAX_ERROR = 2_000


class _Tool(NamedTuple):
    description: str
    parameters: dict[str, Any]  # JSON schema
    # Takes the arguments; returns the result without `tool` and `count`.
    run: Callable[[dict[str, Any]], dict[str, Any]]
    host: str = ""  # that gets the arguments; empty: they leave for nowhere
    server: McpServer | None = None


class Toolbox:
    """The tools of one turn: a context manager for one thread, used outside of any database scope.

    `own_words` are the person's messages in this conversation, the present one last; `recalled` are the
    memories that the model was given. With `gated`, the answers go to a remote model, which learns about a
    sensitive screenshot only that there is one. `is_kept` returns whether the present message still exists:
    if it was deleted meanwhile, nothing is remembered.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        device_id: str,
        own_words: Sequence[str],
        recalled: Sequence[str],
        clock: Callable[[], datetime],
        gated: bool = False,
        is_kept: Callable[[], bool] = lambda: True,
        list_seconds: float = LIST_SECONDS,
        call_seconds: float = CALL_SECONDS,
    ):
        self._settings = settings
        self._device_id = device_id
        self._own_words, self._recalled = own_words, recalled
        self._clock, self._gated, self._is_kept = clock, gated, is_kept
        self._list_seconds, self._call_seconds = list_seconds, call_seconds
        self._saved_on_request = False
        self._clients: dict[str, mcp.Client] = {}  # by server
        self._leaving: list[dict[str, Any]] = []  # the arguments of calls that leave, judged together
        self._open = contextlib.ExitStack()

    def __enter__(self) -> "Toolbox":
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._clients.clear()
        self._open.close()

    @property
    def offered(self) -> list[dict[str, Any]]:
        """The tools in the protocol's form. The first access asks the MCP servers. Raises `Unavailable`."""
        return [
            {
                "type": "function",
                "function": {"name": name, "description": tool.description, "parameters": tool.parameters},
            }
            for name, tool in self._tools.items()
        ]

    def destination(self, name: str, arguments: str) -> Destination | None:
        """Where a call would send its arguments. None when they leave for nowhere, or when `run` refuses them
        anyway.
        """
        try:
            tool = self._tools.get(name)
            if tool is None or not tool.host:
                return None
            given = decoded(arguments)
            return Destination(
                tool.host,
                tool.server.id if tool.server else None,
                tool.server is not None and tool.server.trusted,
                msgspec.json.encode(given).decode(),
                gate.kinds_in(given, earlier=self._others(given)) if gate.is_closed(self._settings) else (),
            )
        except SnaploreError:
            return None

    def _others(self, given: dict[str, Any]) -> list[dict[str, Any]]:
        """The arguments of the other calls of this turn that leave; these are noted."""
        others = [one for one in self._leaving if one != given]
        self._leaving = [*others, given][-MOST_LEAVING:]
        return others

    def run(self, name: str, arguments: str, *, allowed_for: str | None = None) -> dict[str, Any]:
        """Run a tool; returns `{tool, count, results}`, each result with a `title` and a `snippet`. A search
        also has `total`.

        With `allowed_for`, the person has seen these arguments and allows this call to this host; the gate
        is not asked. `arguments` is the text of a JSON object, repaired if need be. Raises nothing: `error`
        is a sentence about what failed.
        """
        shown = reading.as_text(name)[: mcp_servers.MAX_TOOL_NAME]
        try:
            tool = self._built_ins.get(name) or self._tools.get(name)
            if tool is None:
                raise BadInput("There is no such tool. Only the tools that are offered can be called.")
            given = decoded(arguments)
            if allowed_for is not None and allowed_for != tool.host:
                raise BadInput("not sent: the address has changed since the person allowed it.")
            if tool.host and allowed_for is None and gate.is_closed(self._settings):
                gate.check_arguments(given, earlier=self._others(given))
            answer = tool.run(given)
        except SnaploreError as failure:
            answer = {"results": [], "error": failure.detail}
        except Exception as problem:
            # The tool loop's outermost catch: the model reads the error, and the turn goes on.
            log.exception("the tool %s failed", shown)
            known = database.known_failure(problem)
            answer = {"results": [], "error": known.detail if known else "The tool failed unexpectedly."}
        return {"tool": shown, "count": len(answer["results"]), **answer}

    @functools.cached_property
    def _built_ins(self) -> dict[str, _Tool]:
        """The built-in tools. To call one, no MCP server is asked."""
        return {
            "search_knowledge_base": _built_in(SearchKnowledgeBase, self._search),
            "get_screenshot": _built_in(GetScreenshot, self._screenshot),
            "agenda": _built_in(Agenda, self._agenda),
            "list_records": _built_in(ListRecords, self._list_records),
            "list_threads": _built_in(ListThreads, self._list_threads),
            "web_search": _built_in(WebSearch, self._web_search)._replace(
                host=web_search.hosts(self._settings)
            ),
            "save_memory": _built_in(SaveMemory, self._save_memory),
        }

    @functools.cached_property
    def _tools(self) -> dict[str, _Tool]:
        tools = dict(self._built_ins)
        with database.scope():
            servers = [server for server in mcp_servers.registered() if server.enabled]
        if len(servers) > offers.MOST_SERVERS:
            log.warning(
                "%d MCP servers are enabled; the tools of the first %d are offered",
                len(servers),
                offers.MOST_SERVERS,
            )
        characters = MOST_TOOL_CHARACTERS
        listings = database.store().cache(offers.Listings)
        for server, tool in listings.tools_of(
            servers[: offers.MOST_SERVERS], self._settings, self._list_seconds
        ):
            description = f"{server.name}: {tool.description or tool.name}"
            parameters = {"properties": {}, **tool.input_schema}  # OpenAI requires `properties`
            characters -= len(description) + len(msgspec.json.encode(parameters))
            if len(tools) == MOST_TOOLS or characters < 0:
                log.warning(
                    "the MCP servers have more tools than the limits allow; %s is the first that is left out",
                    tool.name,
                )
                break
            call = functools.partial(self._call, server, tool.name)
            tools[mcp_servers.tool_name(server.id, tool.name)] = _Tool(
                description, parameters, call, net.host(server.url), server
            )
        return tools

    def _search(self, arguments: SearchKnowledgeBase) -> dict[str, Any]:
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
                    limit=min(candidates.RERANKED, limit * arguments.page),
                    category=filters.category,
                    intent=filters.intent,
                    device_id=filters.device_id,
                    since=filters.since,
                    until=filters.until,
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
        """The screenshots that are closest to a query in meaning, without those that were found; none where
        filters are set or this machine cannot look for meanings.
        """
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

    def _screenshot(self, arguments: GetScreenshot) -> dict[str, Any]:
        with database.scope():
            row = _rows([arguments.id]).get(arguments.id)
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
            "visible_text": row.text[arguments.offset : end],
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

    def _agenda(self, arguments: Agenda) -> dict[str, Any]:
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

    def _list_records(self, arguments: ListRecords) -> dict[str, Any]:
        since, until = (day(name, getattr(arguments, name)) for name in ("since", "until"))
        now = local_time(self._clock())
        is_ahead = arguments.period == questions.AHEAD
        if is_ahead:
            since = now.date()
        elif arguments.period:
            since, until = span(arguments.period, now.date())
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
                soonest=is_ahead,
            )
            if is_ahead:
                present = now.isoformat(timespec="minutes")
                found = sorted(
                    (one for one in found if not records.is_over(one.record, present)),
                    key=lambda one: records.day_of(one.record) or one.day,
                )
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

    def _list_threads(self, arguments: ListThreads) -> dict[str, Any]:
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

    def _web_search(self, arguments: WebSearch) -> dict[str, Any]:
        found = web_search.search(arguments.query, self._settings, most=WEB_RESULTS)
        return {
            "results": [
                {"title": result.title, "url": result.url, "snippet": result.snippet} for result in found
            ]
        }

    def _save_memory(self, arguments: SaveMemory) -> dict[str, Any]:
        """Save a memory with source `chat` if it rests on the person's own words. Anything else may come from
        a text that the model read: only one such memory is saved in a turn, with source `assistant`, and
        only if the present message asks to remember something.
        """
        content = arguments.content[: reading.MAX_MEMORY]
        present = self._own_words[-1] if self._own_words else ""
        rests_on_own_words = memory.rests_on(content, self._own_words)
        if not rests_on_own_words and (self._saved_on_request or not memory.asks_to_keep(present)):
            raise BadInput(
                "not saved: the person did not say this themselves, nor ask for it to be remembered."
            )
        category = one_of("category", arguments.category, reading.MEMORY_CATEGORIES)
        memory_type = one_of("memory_type", arguments.memory_type, reading.MEMORY_TYPES)
        candidate = MemoryCandidate(
            content, category or "fact", memory_type or "long_term", arguments.importance
        )
        with database.scope(), db.atomic():
            if not self._is_kept():
                raise BadInput("not saved: the conversation was deleted.")
            entry = memory.remember(
                candidate,
                source_type="chat" if rests_on_own_words else "assistant",
                device_id=self._device_id,
                now=self._clock(),
                said=[present],
                recalled=self._recalled,
            )
        if entry is None:
            raise BadInput("not saved: it adds nothing to what is remembered already.")
        self._saved_on_request = self._saved_on_request or not rests_on_own_words
        return {"results": [{"id": entry.id, "title": entry.category, "snippet": entry.content}]}

    def _call(self, server: McpServer, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        if server.id not in self._clients:
            client = mcp.Client(server.url, configuration.guard(self._settings), deadline=self._call_seconds)
            self._clients[server.id] = self._open.enter_context(client)
        result = self._clients[server.id].call(tool, arguments)
        if result.is_error:
            return {"results": [], "error": f"{server.name} reports: {cut(result.text, MAX_ERROR)}"}
        return {"results": [{"title": tool, "snippet": result.text}]}


# ------------------------------------------------------------------------------------------------- arguments


def _built_in(shape: type[T], run: Callable[[T], dict[str, Any]]) -> _Tool:
    description, parameters = described(shape)  # type: ignore[arg-type]  # mypy takes no type[T] for hashable
    return _Tool(description, parameters, lambda arguments: run(read(shape, arguments)))


# ------------------------------------------------------------------------------------------------ screenshots


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
