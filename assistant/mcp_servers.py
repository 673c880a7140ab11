"""The MCP servers whose tools the assistant may use: registering, enabling, deleting them;
`/api/mcp-servers`.

A server is an address and what a person calls it. Its address keeps to the same rules as a model's and is
checked by the same guard, here at saving, where a mistake can be told, and again at every connection. Nothing
is called when a server is registered: one that is switched off at the moment is no reason to refuse it.
"""

import hashlib
import re
from datetime import datetime
from typing import Annotated, Any

import msgspec
import peewee
from flask import Blueprint

import net
from clock import utc_now
from database import db
from engines import configuration
from errors import Conflict, NotFound
from models import McpServer
from settings import Settings
from web import inputs, shapes

# What OpenAI takes as the name of a function; other providers take no less.
MAX_TOOL_NAME = 64
_TOOL_NAME = re.compile(rf"[A-Za-z0-9_-]{{1,{MAX_TOOL_NAME}}}")


def add(
    settings: Settings, server_id: str, *, name: str, url: str, description: str = "", now: datetime
) -> McpServer:
    """Register a server, enabled. Raises `BadInput` for its address, and `Conflict` when the id is taken."""
    url = configuration.guard(settings).check_address(url, field="url")
    try:
        return McpServer.create(id=server_id, name=name, url=url, description=description, created_at=now)
    except peewee.IntegrityError:
        raise Conflict(f"The MCP server {server_id} exists already") from None


def change(settings: Settings, server_id: str, fields: dict[str, Any]) -> McpServer:
    """Change the given fields of a server. Raises `NotFound`, and `BadInput` for an address."""
    if "url" in fields:
        fields = {**fields, "url": configuration.guard(settings).check_address(fields["url"], field="url")}
    with db.atomic():
        if fields:
            McpServer.update(fields).where(McpServer.id == server_id).execute()
        server = McpServer.get_or_none(McpServer.id == server_id)
    if server is None:
        raise NotFound("MCP server not found")
    return server


def delete(server_id: str) -> None:
    """Forget a server. Raises `NotFound`."""
    if not McpServer.delete().where(McpServer.id == server_id).execute():
        raise NotFound("MCP server not found")


def registered() -> list[McpServer]:
    """All servers, in the order in which they were registered."""
    return list(McpServer.select().order_by(McpServer.created_at, McpServer.id))


def tool_name(server_id: str, tool: str) -> str:
    """What a model calls a server's tool: `mcp__<server>__<tool>`.

    Two tools never have the same name. Where they could, or where a model's provider would not take the name,
    it is shortened to what it takes and ends in a digest of the two; so it cannot be taken apart again, and
    whoever offers it keeps a table.
    """
    plain = f"mcp__{server_id}__{tool}"
    if _TOOL_NAME.fullmatch(plain) and "__" not in f"{server_id}_":
        return plain
    digest = hashlib.sha256(f"{server_id}\n{tool}".encode()).hexdigest()[:12]
    return f"{re.sub(r'[^A-Za-z0-9_-]', '_', plain)[: MAX_TOOL_NAME - 13]}-{digest}"


# ----------------------------------------------------------------------------------------------------- routes

routes = Blueprint("mcp_servers", __name__, url_prefix="/api/mcp-servers")

Id = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^[A-Za-z0-9_-]{1,64}\Z", description="1 to 64 letters, digits, dashes or underscores"
    ),
]
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
Url = Annotated[str, msgspec.Meta(max_length=net.MAX_URL_LENGTH)]
Description = Annotated[str, msgspec.Meta(max_length=2_000)]


class NewServer(msgspec.Struct):
    id: Id
    name: Name
    url: Url
    description: Description = ""


class ServerChange(msgspec.Struct):
    name: Name | None = None
    url: Url | None = None
    description: Description | None = None
    enabled: bool | None = None


@routes.get("")
@inputs.operation()
def list_servers() -> shapes.ServerList:
    """List the MCP servers in the order in which they were registered."""
    return {"servers": [shapes.of(server, shapes.ServerFields) for server in registered()]}


@routes.post("")
@inputs.operation(Conflict)
def register(body: NewServer) -> shapes.ServerFields:
    """Register an MCP server. Its address keeps to the rules of a model's; nothing is called."""
    server = add(
        inputs.settings(),
        body.id,
        name=body.name,
        url=body.url,
        description=body.description,
        now=utc_now(),
    )
    return shapes.of(server, shapes.ServerFields)


@routes.put("/<server_id>")
@inputs.operation(NotFound)
def update(server_id: str, body: ServerChange) -> shapes.ServerFields:
    """Change an MCP server; what is not given stays. The tools of a disabled one are not offered."""
    return shapes.of(change(inputs.settings(), server_id, inputs.given(body)), shapes.ServerFields)


@routes.delete("/<server_id>")
@inputs.operation(NotFound)
def remove(server_id: str) -> shapes.Done:
    """Forget an MCP server."""
    delete(server_id)
    return {"message": "Deleted"}
