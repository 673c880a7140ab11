"""The tools that the assistant can call while it answers one message: screenshots, the web, memories, and
those of MCP servers.

The names and arguments of calls come from a model, and possibly from a screenshot or a web page that
persuaded it. So a tool may do only what is acceptable whoever asks for it: the built-in ones read, and the
one that writes has a gate (`save_memory`). Every failure becomes a sentence in the tool's result, for the
model to read: no tool ends a turn.

Tools wait for networks, so a turn holds no database scope here: each tool that needs the database opens one
for a moment.

Those that read screenshots are in `assistant/library.py`; what models read of the built-in tools is in
`assistant/arguments.py`, what the MCP servers offer in `assistant/offers.py`.
"""

import contextlib
import functools
import logging
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, NamedTuple, TypeVar

import msgspec

import database
import gate
import memory
import net
from assistant import mcp, mcp_servers, offers, web_search
from assistant.arguments import (
    Agenda,
    GetScreenshot,
    ListRecords,
    ListThreads,
    SaveMemory,
    SearchKnowledgeBase,
    WebSearch,
    decoded,
    described,
    one_of,
    read,
)
from assistant.confirmation import Destination
from assistant.library import Library
from database import db
from engines import configuration, reading
from engines.findings import MemoryCandidate
from errors import BadInput, SnaploreError
from models import McpServer
from rules import disguises, statements
from settings import Settings
from text import cut

log = logging.getLogger(__name__)

T = TypeVar("T")

MOST_TOOLS = 128  # in all: OpenAI refuses a request with more
MOST_TOOL_CHARACTERS = 60_000  # of all MCP tools, 15,000 tokens of every request; one server may use them all

MOST_LEAVING = 40  # calls of a turn that are judged together
LIST_SECONDS = 5.0  # that a turn waits for the lists of tools
CALL_SECONDS = 30.0  # for one call of an MCP tool

WEB_RESULTS = 5
MAX_ERROR = 2_000  # characters


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
        """Where a call would send its arguments; None for nowhere, or when `run` refuses them anyway."""
        try:
            tool = self._tools.get(name)
            if tool is None or not tool.host:
                return None
            given = decoded(arguments)
            is_closed = gate.is_closed(self._settings)
            return Destination(
                tool.host,
                tool.server.id if tool.server else None,
                tool.server is not None and tool.server.trusted,
                msgspec.json.encode(given).decode(),
                disguises.kinds_in(given, earlier=self._others(given)) if is_closed else (),
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
        library = Library(self._settings, self._clock, gated=self._gated)
        return {
            "search_knowledge_base": _built_in(SearchKnowledgeBase, library.find),
            "get_screenshot": _built_in(GetScreenshot, library.read),
            "agenda": _built_in(Agenda, library.list_agenda),
            "list_records": _built_in(ListRecords, library.list_records),
            "list_threads": _built_in(ListThreads, library.list_threads),
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
        rests_on_own_words = statements.rests_on(content, self._own_words)
        if not rests_on_own_words and (self._saved_on_request or not statements.asks_to_keep(present)):
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
