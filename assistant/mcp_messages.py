"""The messages of MCP servers: decoding streams, tools and results, and encoding headers. No network here.

Only the fields that are used are decoded; everything else is skipped without building objects. The limits
here are in characters, because the texts end up in a model's context; the caller limits the bytes that are
read from the network.
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
MAX_LABEL = 200  # characters of a type, an address or a name in a placeholder
MAX_CURSOR = 10_000

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")  # specification, server/tools, "Tool Names"
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
    tools: list[msgspec.Raw]  # decoded one by one, so that an invalid tool does not cost the others
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
    """`data` as a `shape`. Raises `ValueError` for anything that does not fit."""
    try:
        return msgspec.json.decode(data, type=shape)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def events(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The data of each event in a stream (HTML Living Standard, section 9.2.6), without empty ones."""
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
    """A tool of a list. Raises `ValueError` for one that cannot be offered to a model."""
    if memoryview(raw).nbytes > MAX_SCHEMA + 6 * MAX_DESCRIPTION:  # before any object is built
        raise ValueError("it is too large")
    offered = decode(raw, OfferedTool)
    if not _NAME.fullmatch(offered.name):
        raise ValueError("its name must be 1 to 128 letters, digits, dots, hyphens or underscores")
    if offered.inputSchema.get("type") != "object":
        raise ValueError("its schema must describe an object")
    if len(msgspec.json.encode(offered.inputSchema)) > MAX_SCHEMA:
        raise ValueError("its schema is too large")
    return Tool(
        offered.name,
        cut(storable(offered.description or ""), MAX_DESCRIPTION),
        offered.inputSchema,
        _mirrored(offered.inputSchema),
    )


def result_text(result: CallResult) -> str:
    """All blocks as text; the structured content only if no block has text, because it repeats them."""
    parts = [_block_text(block) for block in result.content or ()]
    if result.structuredContent and not any(block.text for block in result.content or ()):
        parts.append(bytes(result.structuredContent).decode(errors="replace"))
    return storable("\n".join(parts))


def header_value(value: str | int | bool) -> str:
    """A value as a header: plain, or Base64 where needed (streamable-http, "Value Encoding")."""
    text = value if isinstance(value, str) else str(value).lower()
    if _PLAIN.fullmatch(text) and not _ENCODED.fullmatch(text):
        return text
    return f"=?base64?{base64.b64encode(text.encode(errors='replace')).decode()}?="


def header_text(value: str) -> str:
    """The text of a header: the reverse of `header_value`. Raises `ValueError` for invalid Base64."""
    if not _ENCODED.fullmatch(value):
        return value
    return base64.b64decode(value[len("=?base64?") : -len("?=")], validate=True).decode()


def at(arguments: Any, path: tuple[str, ...]) -> str | int | bool | None:
    """The argument at `path`; None if there is none or a header cannot carry it."""
    for name in path:
        arguments = arguments.get(name) if isinstance(arguments, dict) else None
    return arguments if isinstance(arguments, str | int | bool) else None


def _lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The lines of a stream, ended by LF, CR or CRLF. An unfinished last line is dropped."""
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
    """A block as text; a placeholder names the type of a block that is not text."""
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
    """The arguments that `x-mcp-header` requires in headers as well: path -> name of the header, without the
    prefix.

    Raises `ValueError` where the schema violates a rule of server/tools, "x-mcp-header", or is nested deeper
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
                    raise ValueError("it requires an argument in a header that cannot carry it")
                found[*path, name] = header
    distinct = {header.lower() for header in found.values()}
    if len(distinct) != len(found) or _annotations(schema, MAX_DEPTH) != len(found):
        raise ValueError("it requires two arguments in one header, or one without a fixed path")
    return found


def _annotations(part: Any, depth: int) -> int:
    """How often `x-mcp-header` occurs in a schema, without properties of this name."""
    if depth < 0:
        raise ValueError("its schema is nested too deeply")
    if isinstance(part, list):
        return sum(_annotations(inner, depth - 1) for inner in part)
    if isinstance(part, dict):
        own = "x-mcp-header" in part and not isinstance(part["x-mcp-header"], dict)
        return own + sum(_annotations(inner, depth - 1) for inner in part.values())
    return 0
