"""What the MCP servers offer.

When a turn begins, all are asked for their tools at the same time, with a short deadline; the answers are
cached for a minute. So are failures: a dead server delays at most one turn a minute.
"""

import concurrent.futures
import logging
import threading
import time
from typing import NamedTuple

import net
from assistant import mcp, mcp_messages
from engines import configuration
from models import McpServer
from settings import Settings

log = logging.getLogger(__name__)

MOST_SERVERS = 16  # asked at the same time, a thread for each
LIST_LASTS = 60.0  # seconds until a server is asked again, also after a failure


class _Listing(NamedTuple):
    requested_at: float  # monotonic
    answer: concurrent.futures.Future[list[mcp_messages.Tool]]
    before: list[mcp_messages.Tool]  # the last list that was received

    @property
    def tools(self) -> list[mcp_messages.Tool]:
        return self.answer.result() if self.answer.done() and self.answer.exception() is None else self.before


class Listings:
    """What MCP servers offer, as each has answered last, while the store is open."""

    def __init__(self) -> None:
        self._of_server: dict[tuple[str, str], _Listing] = {}  # by id and address
        self._guard = threading.Lock()
        self._pool = concurrent.futures.ThreadPoolExecutor(MOST_SERVERS, thread_name_prefix="mcp-list")

    def clear(self) -> None:
        with self._guard:
            self._of_server.clear()
            self._pool.shutdown(wait=False, cancel_futures=True)

    def tools_of(
        self, servers: list[McpServer], settings: Settings, seconds: float
    ) -> list[tuple[McpServer, mcp_messages.Tool]]:
        """Each tool of each server, with its server, within so many seconds. Turns share the requests."""
        with self._guard:
            for server in servers:
                known = self._of_server.get((server.id, server.url))
                if known is None or time.monotonic() - known.requested_at > LIST_LASTS:
                    answer = self._pool.submit(_list_tools, server, settings, seconds)
                    before = known.tools if known else []
                    self._of_server[server.id, server.url] = _Listing(time.monotonic(), answer, before)
            listings = [self._of_server[server.id, server.url] for server in servers]
            for gone in self._of_server.keys() - {(server.id, server.url) for server in servers}:
                del self._of_server[gone]
        concurrent.futures.wait([listing.answer for listing in listings], seconds)
        each = zip(servers, listings, strict=True)
        return [(server, tool) for server, listing in each for tool in listing.tools]


def _list_tools(server: McpServer, settings: Settings, seconds: float) -> list[mcp_messages.Tool]:
    try:
        with mcp.Client(server.url, configuration.guard(settings), deadline=seconds) as client:
            return client.list_tools()
    except net.CallFailed as failure:
        log.warning("the tools of the MCP server %s cannot be listed: %s", server.id, failure.detail)
        raise
    except Exception:
        # The pool only stores the exception, so it is logged here.
        log.exception("the tools of the MCP server %s cannot be listed", server.id)
        raise
