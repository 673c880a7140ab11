"""What the assistant may call while it answers one message: the screenshots, the web, memories, and the tools
of MCP servers.

The names and arguments of calls come from a model, and may come through it from a screenshot or a web page
that talked it into them. So a tool can do no more than it may do for anybody: the built-in ones read, and the
one that writes has a gate of its own (`save_memory`). Whatever goes wrong becomes a sentence in the tool's
answer, for the model to read: a turn never ends by a tool.

A turn waits for others here, so it holds no database scope: each tool that needs the database opens one for
its moment.

MCP servers are asked for their tools when a turn begins, all at once and with a short deadline; what they
said holds for a minute. A server that says nothing is left alone for as long, so that a dead one costs one
turn a minute a few seconds, and no turn more.
"""

import concurrent.futures
import contextlib
import functools
import logging
import re
import threading
import time
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any, NamedTuple, TypeVar

import msgspec
from msgspec import Meta

import database
import memory
import net
import photos
import search
from assistant import mcp, mcp_messages, mcp_servers, web_search
from clock import iso, parse_time
from database import db
from engines import configuration, reading
from engines.findings import CATEGORIES, INTENTS, Entity, MemoryCandidate
from errors import BadInput, SnaploreError
from models import Analysis, McpServer, Photo
from settings import Settings
from text import cut, one_line

log = logging.getLogger(__name__)

T = TypeVar("T")

MOST_TOOLS = 128  # in all: OpenAI refuses a request with more
MOST_TOOL_CHARACTERS = (
    60_000  # of all MCP tools: 15,000 tokens of every request, which is what one server may have by itself
)
MOST_SERVERS = 16  # asked at once, a thread each

LIST_SECONDS = 5.0  # that a turn waits for the lists
LIST_LASTS = 60.0  # seconds until a server is asked again, whatever it said
CALL_SECONDS = 30.0  # for one call of an MCP tool

MOST_FOUND = 20
FOUND = 8  # screenshots, where the model does not say how many
WEB_RESULTS = 5

# Characters of what a model gets to read: a screenful of text is 2,000, and twenty results with a summary
# each are 3,000 tokens.
MAX_SUMMARY = 500
MAX_SNIPPET = 200
MAX_VISIBLE_TEXT = 6_000
MAX_ENTITIES = 30
MAX_ENTITY = 200
MAX_ERROR = 2_000

DAY = timedelta(days=1)


def _about(description: str, allowed: Sequence[str] = ()) -> Meta:
    """The schema of a text argument. The model is shown the `allowed` words; `_one_of` checks them and is
    lenient about spelling.
    """
    return Meta(description=description, extra_json_schema={"enum": list(allowed)} if allowed else None)


# What the built-in tools take. Models read the docstrings and descriptions, and decide by them.


class SearchKnowledgeBase(msgspec.Struct):
    """Search the person's own screenshots by the words on them. Finds words, their beginnings and typos; use
    a few distinctive words, not a sentence. An empty query lists the newest screenshots that match the
    filters.
    """

    query: Annotated[str, _about('Words to look for; "in quotes" for an exact phrase')] = ""
    category: Annotated[str, _about("Only this kind of content", CATEGORIES)] = ""
    intent: Annotated[str, _about("Only what was kept for this purpose", INTENTS)] = ""
    device_id: Annotated[str, _about("Only screenshots of this device")] = ""
    since: Annotated[
        str, _about("Only taken at or after this time, UTC, like 2026-11-21 or 2026-11-21T07:30:00")
    ] = ""
    until: Annotated[str, _about("Only taken before this time, UTC; a date includes its whole day")] = ""
    # Not held by `Meta`'s own limits: a model that wants 50 gets what there may be.
    limit: Annotated[
        int, Meta(description="How many results", extra_json_schema={"minimum": 1, "maximum": MOST_FOUND})
    ] = FOUND


class GetScreenshot(msgspec.Struct):
    """Read one screenshot in full: its text, summary and entities. Takes an id from search_knowledge_base."""

    id: Annotated[int, Meta(ge=1, le=2**53)]  # as far as JSON's numbers are exact everywhere


class WebSearch(msgspec.Struct):
    """Search the web for what the screenshots cannot tell: current facts, prices, news, background."""

    query: Annotated[
        str, _about("What to search for. It leaves the person's device: put nothing private into it")
    ]


class SaveMemory(msgspec.Struct):
    """Remember something about the person for later conversations. Only what they told you themselves, in
    their language and words, or what they ask you to remember.
    """

    content: Annotated[str, _about("One sentence")]
    category: Annotated[str, _about("What it is about", reading.MEMORY_CATEGORIES)] = "fact"
    memory_type: Annotated[
        str, _about("long_term if it stays true, short_term if it passes within days", reading.MEMORY_TYPES)
    ] = "long_term"
    importance: Annotated[
        float, Meta(description="0 to 1", extra_json_schema={"minimum": 0, "maximum": 1})
    ] = 0.5


class _Tool(NamedTuple):
    description: str
    parameters: dict[str, Any]  # JSON schema
    # From the arguments to the answer: `results`, and what else it has.
    run: Callable[[dict[str, Any]], dict[str, Any]]


class Toolbox:
    """The tools of one turn; a context manager, for one thread, outside of any database scope.

    `said` is what the person wrote in this conversation, the present message last; `recalled` the memories that the model was given.
    `is_kept` tells whether the present message was not deleted meanwhile: of one that was, nothing is remembered.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        device_id: str,
        said: Sequence[str],
        recalled: Sequence[str],
        clock: Callable[[], datetime],
        is_kept: Callable[[], bool] = lambda: True,
        list_seconds: float = LIST_SECONDS,
        call_seconds: float = CALL_SECONDS,
    ):
        self._settings = settings
        self._device_id = device_id
        self._said, self._recalled = said, recalled
        self._clock, self._is_kept = clock, is_kept
        self._list_seconds, self._call_seconds = list_seconds, call_seconds
        self._kept_as_asked = False
        self._clients: dict[str, mcp.Client] = {}  # by server
        self._open = contextlib.ExitStack()

    def __enter__(self) -> "Toolbox":
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._clients.clear()
        self._open.close()

    @property
    def offered(self) -> list[dict[str, Any]]:
        """The tools in the protocol's form. The MCP servers are asked at the first look. Raises
        `Unavailable`.
        """
        return [
            {
                "type": "function",
                "function": {"name": name, "description": tool.description, "parameters": tool.parameters},
            }
            for name, tool in self._tools.items()
        ]

    def run(self, name: str, arguments: str) -> dict[str, Any]:
        """`{tool, count, results}`, each result with a `title` and a `snippet`; a search also has `total`.

        `arguments` is the text of a JSON object, or nearly. Whatever fails, nothing is raised: `error` says it then, in a sentence.
        """
        shown = reading.as_text(name)[: mcp_servers.MAX_TOOL_NAME]
        try:
            tool = self._tools.get(name)
            if tool is None:
                raise BadInput("There is no such tool; only those that are offered can be called.")
            answer = tool.run(_arguments(arguments))
        except SnaploreError as failure:
            answer = {"results": [], "error": failure.detail}
        except Exception as problem:
            # The tool loop's outermost catch: the model is told, and the turn goes on.
            log.exception("the tool %s failed", shown)
            known = database.known_failure(problem)
            answer = {
                "results": [],
                "error": known.detail if known else "The tool failed for a reason of its own.",
            }
        return {"tool": shown, "count": len(answer["results"]), **answer}

    @functools.cached_property
    def _tools(self) -> dict[str, _Tool]:
        tools = {
            "search_knowledge_base": _built_in(SearchKnowledgeBase, self._search),
            "get_screenshot": _built_in(GetScreenshot, self._screenshot),
            "web_search": _built_in(WebSearch, self._web_search),
            "save_memory": _built_in(SaveMemory, self._save_memory),
        }
        with database.scope():
            servers = [server for server in mcp_servers.registered() if server.enabled]
        if len(servers) > MOST_SERVERS:
            log.warning(
                "%d MCP servers are enabled; the tools of the first %d are offered",
                len(servers),
                MOST_SERVERS,
            )
        characters = MOST_TOOL_CHARACTERS
        for server, tool in _listed(servers[:MOST_SERVERS], self._settings, self._list_seconds):
            description = f"{server.name}: {tool.description or tool.name}"
            parameters = {"properties": {}, **tool.input_schema}  # OpenAI refuses a schema without them
            characters -= len(description) + len(msgspec.json.encode(parameters))
            if len(tools) == MOST_TOOLS or characters < 0:
                log.warning(
                    "the MCP servers have more tools than a model can be offered; %s is the first that is left out",
                    tool.name,
                )
                break
            call = functools.partial(self._call, server, tool.name)
            tools[mcp_servers.tool_name(server.id, tool.name)] = _Tool(description, parameters, call)
        return tools

    def _search(self, wanted: SearchKnowledgeBase) -> dict[str, Any]:
        limit = max(1, min(MOST_FOUND, wanted.limit))
        until = parse_time(wanted.until, field="until")
        if until is not None and len(wanted.until) <= len("2026-11-21"):
            until = min(until, datetime.max - DAY) + DAY
        filters = photos.Filters(
            category=_one_of("category", wanted.category, CATEGORIES),
            intent=_one_of("intent", wanted.intent, INTENTS),
            device_id=wanted.device_id or None,
            since=parse_time(wanted.since, field="since"),
            until=until,
        )
        with database.scope():
            if wanted.query:
                found = search.find(
                    wanted.query,
                    limit=limit,
                    category=filters.category,
                    intent=filters.intent,
                    device_id=filters.device_id,
                    since=filters.since,
                    until=filters.until,
                    now=self._clock(),
                )
            else:
                found = _newest(limit, filters)
            rows = _rows([hit.photo_id for hit in found.items])
        results = [_found(rows[hit.photo_id], hit) for hit in found.items if hit.photo_id in rows]
        return {"total": max(found.total, len(results)), "results": results}

    def _screenshot(self, wanted: GetScreenshot) -> dict[str, Any]:
        with database.scope():
            photo = photos.get(wanted.id)
            analysis = Analysis.get(Analysis.photo == photo.id)
        entities = msgspec.json.decode(analysis.entities, type=list[Entity])[:MAX_ENTITIES]
        result = {
            **_heading(photo, analysis),
            "snippet": _line(analysis.visible_text or analysis.summary, MAX_SNIPPET),
            "entities": [
                {"type": entity.type, "value": _line(entity.value, MAX_ENTITY)} for entity in entities
            ],
            "visible_text": cut(analysis.visible_text, MAX_VISIBLE_TEXT),
            "status": analysis.status,
            "filename": photo.filename,
        }
        return {"results": [result]}

    def _web_search(self, wanted: WebSearch) -> dict[str, Any]:
        found = web_search.search(wanted.query, self._settings, most=WEB_RESULTS)
        return {
            "results": [
                {"title": result.title, "url": result.url, "snippet": result.snippet} for result in found
            ]
        }

    def _save_memory(self, wanted: SaveMemory) -> dict[str, Any]:
        """Written as the person's own is only what they have told. Of anything else that a model proposes
        nobody knows who put it into its head: one such memory a turn is let in, under the assistant's name,
        and only if the present message asks for it.
        """
        content = wanted.content[: reading.MAX_MEMORY]
        present = self._said[-1] if self._said else ""
        told = memory.rests_on(content, self._said)
        if not told and (self._kept_as_asked or not memory.asks_to_keep(present)):
            raise BadInput(
                "not saved: the person has not told this themselves, nor asked for it to be remembered."
            )
        category = _one_of("category", wanted.category, reading.MEMORY_CATEGORIES)
        memory_type = _one_of("memory_type", wanted.memory_type, reading.MEMORY_TYPES)
        candidate = MemoryCandidate(
            content, category or "fact", memory_type or "long_term", wanted.importance
        )
        with database.scope(), db.atomic():
            if not self._is_kept():
                raise BadInput("not saved: the conversation was deleted.")
            kept = memory.remember(
                candidate,
                source_type="chat" if told else "assistant",
                device_id=self._device_id,
                now=self._clock(),
                said=[present],
                recalled=self._recalled,
            )
        if kept is None:
            raise BadInput("not saved: it says nothing that is not remembered already.")
        self._kept_as_asked = self._kept_as_asked or not told
        return {"results": [{"id": kept.id, "title": kept.category, "snippet": kept.content}]}

    def _call(self, server: McpServer, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        if server.id not in self._clients:
            client = mcp.Client(server.url, configuration.guard(self._settings), deadline=self._call_seconds)
            self._clients[server.id] = self._open.enter_context(client)
        result = self._clients[server.id].call(tool, arguments)
        if result.is_error:
            return {"results": [], "error": f"{server.name} says: {cut(result.text, MAX_ERROR)}"}
        return {"results": [{"title": tool, "snippet": result.text}]}


# ------------------------------------------------------------------------------------- reading a model's call


def _built_in(shape: type[T], run: Callable[[T], dict[str, Any]]) -> _Tool:
    schema = msgspec.json.schema_components([shape])[1][shape.__name__]
    properties = {
        name: {key: value for key, value in schema_of.items() if (key, value) != ("default", "")}
        for name, schema_of in schema["properties"].items()
    }
    parameters = {"type": "object", "properties": properties, "required": schema.get("required", [])}
    return _Tool(one_line(schema["description"]), parameters, lambda arguments: run(_read(shape, arguments)))


def _arguments(text: str) -> dict[str, Any]:
    given = reading.loose_object(text)
    if not given and text.strip() not in ("", "{}", "null"):
        raise BadInput("The arguments must be a JSON object.")
    return given


def _read(shape: type[T], arguments: dict[str, Any]) -> T:
    """The arguments as a `shape`. What is null or empty is absent, a number may be a text, and a list of
    words is one text.
    """
    try:
        texts = {name: reading.as_text(value) for name, value in arguments.items()}
        if "id" in texts:
            texts["id"] = texts["id"].removeprefix("#")  # as the assistant is told to cite it
        return msgspec.convert({name: text for name, text in texts.items() if text}, shape, strict=False)
    except msgspec.ValidationError as problem:
        if missing := re.search(r"missing required field `([^`]+)`", str(problem)):
            raise BadInput(f"{missing[1]}: is missing") from None
        raise BadInput(
            f"{str(problem).rpartition('$.')[2].rstrip('`')}: must be a number within its limits"
        ) from None
    except RecursionError:
        raise BadInput("The arguments are nested too deeply.") from None


def _one_of(name: str, value: str, allowed: Sequence[str]) -> str | None:
    """`value` as the list spells it; None when there is none. Raises `BadInput` that names the list."""
    word = re.sub(r"[\s-]+", "_", value.lower())
    if word and word not in allowed:
        raise BadInput(f"{name}: must be one of {', '.join(allowed)}")
    return word or None


# ------------------------------------------------------------------------------------------------ screenshots


def _newest(limit: int, filters: photos.Filters) -> search.Found:
    """The photos that stand first in the list of this filter, in its order, and how many pass the filter in
    all.
    """
    total, ids = photos.ids_of_page(1, limit, filters)
    return search.Found(total, [search.Hit(photo_id, 0.0, "") for photo_id in ids])


def _rows(ids: list[int]) -> dict[int, Analysis]:
    """The analyses of these photos, with the photos, in one query."""
    chosen = Analysis.select(
        *(
            Analysis.photo,
            Analysis.app_name,
            Analysis.summary,
            Analysis.visible_text,
            Analysis.content_category,
            Analysis.intent,
        ),
        *(Photo.id, Photo.filename, Photo.device_id, Photo.original_timestamp),
    )
    return {analysis.photo_id: analysis for analysis in chosen.join(Photo).where(Analysis.photo.in_(ids))}


def _found(analysis: Analysis, hit: search.Hit) -> dict[str, Any]:
    snippet = hit.snippet or _line(analysis.visible_text, MAX_SNIPPET)
    return {**_heading(analysis.photo, analysis), "snippet": snippet, "score": hit.score}


def _heading(photo: Photo, analysis: Analysis) -> dict[str, Any]:
    """What every answer about a screenshot says."""
    return {
        "id": photo.id,
        "title": analysis.app_name or photo.filename,
        "summary": _line(analysis.summary, MAX_SUMMARY),
        "category": analysis.content_category,
        "intent": analysis.intent,
        "device_id": photo.device_id,
        "taken": iso(photo.original_timestamp),
    }


def _line(text: str, most: int) -> str:
    return cut(one_line(text[: 2 * most]), most)


# ----------------------------------------------------------------------------------------- what servers offer


class _Listing(NamedTuple):
    asked_at: float  # monotonic
    answer: concurrent.futures.Future[list[mcp_messages.Tool]]
    before: list[mcp_messages.Tool]  # what it said the last time that it said something

    @property
    def tools(self) -> list[mcp_messages.Tool]:
        return self.answer.result() if self.answer.done() and self.answer.exception() is None else self.before


_listings: dict[tuple[str, str], _Listing] = {}  # by id and address of a server
_guard = threading.Lock()
_askers = concurrent.futures.ThreadPoolExecutor(MOST_SERVERS, thread_name_prefix="mcp-list")


def _listed(
    servers: list[McpServer], settings: Settings, seconds: float
) -> list[tuple[McpServer, mcp_messages.Tool]]:
    """Each tool of each server, with the server, after at most so many seconds. Turns that begin together
    wait for the same answers.
    """
    with _guard:
        for server in servers:
            known = _listings.get((server.id, server.url))
            if known is None or time.monotonic() - known.asked_at > LIST_LASTS:
                answer = _askers.submit(_ask, server, settings, seconds)
                _listings[server.id, server.url] = _Listing(
                    time.monotonic(), answer, known.tools if known else []
                )
        wanted = [_listings[server.id, server.url] for server in servers]
        for gone in _listings.keys() - {(server.id, server.url) for server in servers}:
            del _listings[gone]
    concurrent.futures.wait([listing.answer for listing in wanted], seconds)
    return [(server, tool) for server, listing in zip(servers, wanted, strict=True) for tool in listing.tools]


def _ask(server: McpServer, settings: Settings, seconds: float) -> list[mcp_messages.Tool]:
    try:
        with mcp.Client(server.url, configuration.guard(settings), deadline=seconds) as client:
            return client.list_tools()
    except net.CallFailed as failure:
        log.warning("the tools of the MCP server %s cannot be listed: %s", server.id, failure.detail)
        raise
    except Exception:
        log.exception(
            "the tools of the MCP server %s cannot be listed", server.id
        )  # nobody else in this thread would
        raise
