"""The MCP servers whose tools the assistant may use: registering, changing, deleting; `/api/mcp-servers`.

A server is an address and a name that the person chooses. Its address follows the same rules as a model's and
is checked by the same guard: when it is saved, so that a mistake can be reported, and at every connection.
Registering calls nothing: a server may be switched off at that moment.
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

# OpenAI's limits for the name of a function; other providers allow at least as much.
MAX_TOOL_NAME = 64
_TOOL_NAME = re.compile(rf"[A-Za-z0-9_-]{{1,{MAX_TOOL_NAME}}}")


def add(settings: Settings, fields: dict[str, Any], *, now: datetime) -> McpServer:
    """Register a server, enabled. Raises `BadInput` for its address, and `Conflict` when the id is taken."""
    url = configuration.guard(settings).check_address(fields["url"], field="url")
    try:
        return McpServer.create(**{**fields, "url": url}, created_at=now)
    except peewee.IntegrityError:
        raise Conflict(f"An MCP server {fields['id']} exists already") from None


def change(settings: Settings, server_id: str, fields: dict[str, Any]) -> McpServer:
    """Change the given fields of a server. Trust is in a host: with an address on another one, the server is
    no longer trusted unless `fields` says so. Raises `NotFound`, and `BadInput` for an address.
    """
    if "url" in fields:
        fields = {**fields, "url": configuration.guard(settings).check_address(fields["url"], field="url")}
    with db.atomic():
        known = McpServer.get_or_none(McpServer.id == server_id)
        if known is not None and "url" in fields and net.origin(known.url) != net.origin(fields["url"]):
            fields = {"trusted": False, **fields}
        if fields:
            McpServer.update(fields).where(McpServer.id == server_id).execute()
        server = McpServer.get_or_none(McpServer.id == server_id)
    if server is None:
        raise NotFound("MCP server not found")
    return server


def delete(server_id: str) -> None:
    """Remove a server. Raises `NotFound`."""
    if not McpServer.delete().where(McpServer.id == server_id).execute():
        raise NotFound("MCP server not found")


def registered() -> list[McpServer]:
    """All servers, in the order of their registration."""
    return list(McpServer.select().order_by(McpServer.created_at, McpServer.id))


def tool_name(server_id: str, tool: str) -> str:
    """The name of a server's tool for the model: `mcp__<server>__<tool>`.

    Two tools never get the same name. Where they could, or where a provider would refuse the name, it is
    cleaned, shortened and ends in a digest of both parts. So a name cannot be parsed back: the caller keeps a
    table of the names that it offers.
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
Url = Annotated[str, msgspec.Meta(max_length=net.MAX_URL_LENGTH, description=net.ABOUT_HOST)]
Description = Annotated[str, msgspec.Meta(max_length=2_000)]


class NewServer(msgspec.Struct):
    id: Id
    name: Name
    url: Url
    description: Description = ""
    trusted: bool = False


class ServerChange(msgspec.Struct):
    name: Name | None = None
    url: Url | None = None
    description: Description | None = None
    enabled: bool | None = None
    trusted: bool | None = None


@routes.get("")
@inputs.operation()
def list_servers() -> shapes.ServerList:
    """List the MCP servers in the order of their registration. Disabled ones are listed, too."""
    return {"servers": [shapes.of(server, shapes.ServerFields) for server in registered()]}


@routes.post("")
@inputs.operation(Conflict)
def register(body: NewServer) -> shapes.ServerFields:
    """Register an MCP server. The rules for its address are those for a model's; nothing is called."""
    server = add(inputs.settings(), msgspec.structs.asdict(body), now=utc_now())
    return shapes.of(server, shapes.ServerFields)


@routes.put("/<server_id>")
@inputs.operation(NotFound)
def update(server_id: str, body: ServerChange) -> shapes.ServerFields:
    """Change the given fields of an MCP server. The tools of a disabled server are not offered."""
    return shapes.of(change(inputs.settings(), server_id, inputs.given(body)), shapes.ServerFields)


@routes.delete("/<server_id>")
@inputs.operation(NotFound)
def remove(server_id: str) -> shapes.Done:
    """Remove an MCP server. Its tools are not offered any more, from the next message on."""
    delete(server_id)
    return {"message": "Deleted"}
