"""What is read of an MCP server's messages and written into a request's headers: streams, fields, schemas,
texts. No network here.

Messages are decoded into the few fields that are wanted; everything else is skipped without being built. What
is bounded is bounded here by characters, because it ends up in a model's context; how many bytes may come at
all is for whoever reads them.
"""

import base64
import re
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, NamedTuple, TypeVar

import msgspec

from text import cut, one_line, storable

MAX_SCHEMA = 12_000  # characters of one tool's schema
MAX_DESCRIPTION = 2_000
MAX_DEPTH = 32  # of a schema
MAX_LABEL = 200  # of a type, an address or a name in a placeholder
MAX_CURSOR = 10_000

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")  # by the specification, server/tools, "Tool Names"
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}")  # a token, RFC 9110 section 5.6.2
_HEADER_TYPES = ("string", "integer", "boolean")
_PLAIN = re.compile(r"[!-~]([\t -~]*[!-~])?")
_ENCODED = re.compile(r"=\?base64\?.*\?=")

T = TypeVar("T")

# The names of the fields are the protocol's.


class Error(msgspec.Struct):
    code: int
    message: str = ""
    data: msgspec.Raw = msgspec.Raw()


class Message(msgspec.Struct):
    id: int | str | None = None
    method: str | None = None
    result: msgspec.Raw = msgspec.Raw()
    error: Error | None = None


class Versions(msgspec.Struct):
    supported: list[str] = []


class Discovered(msgspec.Struct):
    supportedVersions: list[str]


class Initialized(msgspec.Struct):
    protocolVersion: str


class Page(msgspec.Struct):
    tools: list[msgspec.Raw]  # one that is not as it has to be is no reason to lose the rest
    nextCursor: Annotated[str, msgspec.Meta(max_length=MAX_CURSOR)] | None = None


class OfferedTool(msgspec.Struct):
    name: str
    inputSchema: dict[str, Any]
    description: str | None = None


class Resource(msgspec.Struct):
    uri: str = ""
    text: str = ""


class Block(msgspec.Struct):
    type: str
    text: str = ""
    mimeType: str | None = None
    uri: str = ""
    name: str = ""
    resource: Resource | None = None


class CallResult(msgspec.Struct):
    content: list[Block] | None = None
    structuredContent: msgspec.Raw = msgspec.Raw()
    isError: bool = False
    resultType: str = "complete"


class Tool(NamedTuple):
    name: str
    description: str
    input_schema: dict[str, Any]
    mirrored: dict[tuple[str, ...], str]  # path of an argument that also goes into a header -> the header


def decode(data: bytes | msgspec.Raw, shape: type[T]) -> T:
    """`data` as a `shape`. Raises `ValueError`, whatever is wrong with it."""
    try:
        return msgspec.json.decode(data, type=shape)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def events(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The data of each event of a stream (HTML Living Standard, section 9.2.6). Empty ones, which only prime
    a client, are skipped.
    """
    data: list[bytes] = []
    kind = b""
    for line in _lines(pieces):
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            data.append(value)
        elif field == b"event":
            kind = value
        elif not line:
            if any(data) and kind in (b"", b"message"):
                yield b"\n".join(data)
            data, kind = [], b""


def tool(raw: msgspec.Raw) -> Tool:
    """A tool of a list. Raises `ValueError` for one that a model cannot be offered."""
    if memoryview(raw).nbytes > MAX_SCHEMA + 6 * MAX_DESCRIPTION:  # before anything of it is built
        raise ValueError("it is too large")
    offered = decode(raw, OfferedTool)
    if not _NAME.fullmatch(offered.name):
        raise ValueError("its name is not made of 1 to 128 letters, digits, dots, dashes and underscores")
    if offered.inputSchema.get("type") != "object":
        raise ValueError("its schema is not that of an object")
    if len(msgspec.json.encode(offered.inputSchema)) > MAX_SCHEMA:
        raise ValueError("its schema is too large")
    return Tool(
        offered.name,
        cut(storable(offered.description or ""), MAX_DESCRIPTION),
        offered.inputSchema,
        _mirrored(offered.inputSchema),
    )


def result_text(result: CallResult) -> str:
    """All blocks as text; the structured content only where no block has a text, for it is the same once
    more.
    """
    parts = [_block_text(block) for block in result.content or ()]
    if result.structuredContent and not any(block.text for block in result.content or ()):
        parts.append(bytes(result.structuredContent).decode(errors="replace"))
    return storable("\n".join(parts))


def header_value(value: str | int | bool) -> str:
    """As a header carries it: plain, or Base64 where that would not come through (streamable-http, "Value
    Encoding").
    """
    text = value if isinstance(value, str) else str(value).lower()
    if _PLAIN.fullmatch(text) and not _ENCODED.fullmatch(text):
        return text
    return f"=?base64?{base64.b64encode(text.encode(errors='replace')).decode()}?="


def at(arguments: Any, path: tuple[str, ...]) -> str | int | bool | None:
    """The argument at `path`, if there is one that a header can carry."""
    for name in path:
        arguments = arguments.get(name) if isinstance(arguments, dict) else None
    return arguments if isinstance(arguments, str | int | bool) else None


def _lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Lines of a stream, ended by LF, CR or both. The rest after the last end is no line."""
    pending = bytearray()
    begins = True
    after_cr = False
    for piece in pieces:
        if after_cr:
            piece = piece.removeprefix(b"\n")
        after_cr = piece.endswith(b"\r")
        pending += piece
        if b"\n" not in piece and b"\r" not in piece:
            continue
        *lines, rest = re.split(rb"\r\n|\n|\r", bytes(pending))
        pending = bytearray(rest)
        if begins:
            lines[0] = lines[0].removeprefix(b"\xef\xbb\xbf")
            begins = False
        yield from lines


def _block_text(block: Block) -> str:
    """A block as text; what is none leaves a note of what it was."""
    match block.type:
        case "text":
            return block.text
        case "resource" if block.resource is not None:
            label = f"[resource {_label(block.resource.uri)}]"
            return f"{label}\n{block.resource.text}" if block.resource.text else label
        case "resource_link":
            return f"[link {_label(block.name)} {_label(block.uri)}]"
    return f"[{_label(f'{block.type} {block.mimeType or str()}')}]"


def _label(text: str) -> str:
    return cut(one_line(text), MAX_LABEL)


def _mirrored(schema: dict[str, Any]) -> dict[tuple[str, ...], str]:
    """The arguments that `x-mcp-header` wants in headers as well: their paths, and the headers' names without
    the prefix.

    Raises `ValueError` where the schema breaks a rule of server/tools, "x-mcp-header", or is nested deeper
    than `MAX_DEPTH`.
    """
    found: dict[tuple[str, ...], str] = {}
    places: list[tuple[tuple[str, ...], dict[str, Any]]] = [((), schema)]
    while places:
        path, place = places.pop()
        properties = place.get("properties")
        for name, inner in properties.items() if isinstance(properties, dict) else ():
            if not isinstance(inner, dict):
                continue
            places.append(((*path, name), inner))
            if "x-mcp-header" in inner:
                header = inner["x-mcp-header"]
                if (
                    not isinstance(header, str)
                    or not _HEADER.fullmatch(header)
                    or inner.get("type") not in _HEADER_TYPES
                ):
                    raise ValueError("it wants an argument in a header that cannot be one")
                found[*path, name] = header
    if len({header.lower() for header in found.values()}) != len(found) or _annotations(
        schema, MAX_DEPTH
    ) != len(found):
        raise ValueError("it wants two arguments in one header, or one that is not always in the same place")
    return found


def _annotations(part: Any, depth: int) -> int:
    """How often `x-mcp-header` stands anywhere in a schema. A property that has this name has a schema as its
    value.
    """
    if depth < 0:
        raise ValueError("its schema is nested too deeply")
    if isinstance(part, list):
        return sum(_annotations(inner, depth - 1) for inner in part)
    if isinstance(part, dict):
        own = "x-mcp-header" in part and not isinstance(part["x-mcp-header"], dict)
        return own + sum(_annotations(inner, depth - 1) for inner in part.values())
    return 0
