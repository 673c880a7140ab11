"""Reading requests: queries, forms and JSON bodies become validated objects, or a 400 that names the field.
No other file reads a request's input.

The signature of a route is its contract. `@operation` reads the input that the signature declares, as
`msgspec.Struct`s whose annotations carry the limits, and `web/openapi.py` publishes the same signature, so
validation and documentation cannot disagree. `receive` reads the whole body once, before the route opens the
database, so that a slow client holds no lock. Everything after it works on the received data.
"""

import functools
import logging
import re
from collections.abc import Callable
from datetime import datetime
from typing import IO, Annotated, Any, NamedTuple, Protocol, TypeVar, cast, get_origin, get_type_hints

import flask
import msgspec
from gunicorn.http.errors import ParseException
from msgspec import Meta
from werkzeug.datastructures import FileStorage
from werkzeug.exceptions import RequestEntityTooLarge
from werkzeug.routing import IntegerConverter

from clock import from_epoch_ms
from errors import BadInput, SnaploreError, TooLarge
from settings import MEGABYTE, Settings

# Limit of a request without files. The largest valid one is a chat message of 32,768 characters, escaped.
MAX_BODY = 1 * MEGABYTE
FORM_SLACK = 1 * MEGABYTE  # the fields and boundaries of a form, in addition to its files

log = logging.getLogger(__name__)

T = TypeVar("T")
View = TypeVar("View", bound=Callable[..., Any])


class RowId(IntegerConverter):
    """An id in a path. A value that is not an integer, or is larger than SQLite's, is an unknown path."""

    # Limited by its digits: with the converter's `max`, a larger number would be a 405 where another method
    # has the same path.
    regex = "[0-9]{1,18}"


Page = Annotated[int, Meta(ge=1, le=1_000_000_000)]
PageSize = Annotated[int, Meta(ge=1, le=100)]

# A text that never reaches the database as it is, such as a search query. It may contain NULs.
_ANYTHING = {"anything": True}
AnyText = Annotated[str, Meta(extra=_ANYTHING)]
Moment = Annotated[
    str, Meta(description="an ISO 8601 time; without a zone it is UTC", examples=["2026-11-21T07:31:04"])
]


class Media(NamedTuple):
    """A route's media types besides JSON: `Annotated[flask.Response, Media(("image/png",))]`."""

    media_types: tuple[str, ...]
    has_etag: bool = False  # and honours `If-None-Match`
    has_ranges: bool = False  # honours `Range`


class Operation(NamedTuple):
    """The input and the answer of a route, from its signature."""

    inputs: dict[str, Any]  # types of what is read from the request: query, form, body, file, files
    path: dict[str, Any]  # types of the path's variables
    answer: Any
    failures: tuple[type[SnaploreError], ...]  # in addition to those that any route may have


class FileSink(Protocol):
    """Receives the bytes of a file part while they arrive."""

    def write(self, data: bytes, /) -> int: ...

    def seek(self, offset: int, whence: int = 0, /) -> int: ...

    def close(self) -> None: ...


class Request(flask.Request):
    """A request whose file parts are written to spools, which a subclass chooses, while they arrive."""

    max_file_bytes = 0

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._streams: list[FileSink] = []

    def open_spool(self, largest: int) -> FileSink:
        """A new spool for a file part of up to `largest` bytes."""
        raise NotImplementedError

    def _get_file_stream(self, *about: Any, **named: Any) -> IO[bytes]:
        stream = self.open_spool(self.max_file_bytes)
        self._streams.append(stream)
        return cast(IO[bytes], stream)  # the form parser uses only what a `FileSink` has

    def close(self) -> None:
        super().close()
        for stream in self._streams:
            stream.close()


def operation(*failures: type[SnaploreError]) -> Callable[[View], View]:
    """Mark a route: its signature is its contract, and its verbs raise `failures`.

    The parameters `query`, `form` and `body` are read as the `msgspec.Struct` of their annotation, `file` as
    the only file of the form (optional if the annotation allows None), and `files` as a list of files. Any
    other parameter is a variable of the path. The return annotation is the published answer.
    """

    def mark(view: View) -> View:
        hints = get_type_hints(view, include_extras=True)
        answer = hints.pop("return")
        inputs = {name: kind for name, kind in hints.items() if name in _READERS}
        path = {name: kind for name, kind in hints.items() if name not in _READERS}

        @functools.wraps(view)
        def route(**path_values: Any) -> Any:
            return view(**path_values, **{name: _READERS[name](kind) for name, kind in inputs.items()})

        route.operation = Operation(inputs, path, answer, failures)  # type: ignore[attr-defined]  # a mark on the function
        return cast(View, route)

    return mark


def takes_files(*, largest: int, most: int = 1) -> Callable[[View], View]:
    """Mark a route: it accepts up to `most` files of up to `largest` bytes each."""

    def mark(view: View) -> View:
        view.takes_files = (largest, most)  # type: ignore[attr-defined]  # a mark on the function
        return view

    return mark


def without_scope(view: View) -> View:
    """Mark a route: its verb waits for the network, and opens its own short database scopes."""
    view.without_scope = True  # type: ignore[attr-defined]  # a mark on the function
    return view


def has_json() -> bool:
    """Whether the current request has a body that its route reads as JSON."""
    request = flask.request
    contract: Operation | None = getattr(_view(), "operation", None)
    is_sent = bool(request.content_length) or "Transfer-Encoding" in request.headers
    return is_sent and contract is not None and "body" in contract.inputs


def current() -> Request:
    """The current request itself: `flask.request` looks it up for each of its attributes."""
    return cast(Request, cast(Any, flask.request)._get_current_object())


def own_address() -> str:
    """The service's address for the client, with a proxy's path, without a trailing slash."""
    return flask.request.root_url.rstrip("/")


def receive() -> None:
    """Read the whole body of the current request.

    Raises `TooLarge` when it exceeds the endpoint's limit, and `BadInput` when its chunks are malformed.
    """
    request = current()
    if "CONTENT_LENGTH" not in request.environ and "HTTP_TRANSFER_ENCODING" not in request.environ:
        return  # HTTP/1.1: then there is no body
    largest, most = _file_limits()
    # The limit of a form leaves room for a file a little over its own limit, so that the file is refused with
    # a sentence about its size.
    limit = most * largest + FORM_SLACK if most else MAX_BODY
    request.max_content_length = limit
    request.max_file_bytes = largest
    try:
        if most and request.mimetype == "multipart/form-data":
            _ = request.form
        elif len(request.get_data(cache=True)) >= limit and _has_more(request):
            raise RequestEntityTooLarge
    except RequestEntityTooLarge:
        raise TooLarge(
            f"The request is larger than the {limit // MEGABYTE} MB that this path accepts."
        ) from None
    except ParseException as problem:
        log.warning("request %s: malformed chunks: %s", flask.g.get("request_id"), type(problem).__name__)
        raise BadInput("body: its chunks are malformed") from None


def _has_more(request: flask.Request) -> bool:
    """Whether a body that has been read up to its limit continues.

    A chunked body declares no length, and werkzeug stops reading it at the limit without an error. A stream
    whose end the server does not mark cannot be longer than its declared length.
    """
    stream = request.environ["wsgi.input"]
    return bool(request.environ.get("wsgi.input_terminated") and stream.read(1))


def settings() -> Settings:
    """The settings of the application that answers the request."""
    return cast(Settings, flask.current_app.settings)  # type: ignore[attr-defined]  # `app.Application` has it


def query(shape: type[T]) -> T:
    """The query as a `shape`. Empty values are absent; lists may repeat. Raises `BadInput`."""
    lists = {name for name, kind in get_type_hints(shape).items() if get_origin(kind) is list}
    given: dict[str, list[str]] = flask.request.args.to_dict(flat=False)
    values = {name: [value for value in sent if value] for name, sent in given.items()}
    firsts = {name: sent[0] for name, sent in given.items() if sent[0]}
    return convert(firsts | {name: values[name] for name in lists & values.keys()}, shape)


def form(shape: type[T]) -> T:
    """The text fields of a form as a `shape`. Empty values count as absent. Raises `BadInput`."""
    return convert({name: value for name, value in flask.request.form.to_dict().items() if value}, shape)


def body(shape: type[T]) -> T:
    """The JSON object of the body as a `shape`; an empty body is an empty object. Raises `BadInput`."""
    raw = flask.request.get_data()
    try:
        value = msgspec.json.decode(raw) if raw.strip() else {}
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise BadInput("body: is not valid JSON") from None
    if not isinstance(value, dict):
        raise BadInput("body: must be a JSON object")
    return convert(value, shape, strict=True)


def message() -> bytes:
    """The body of a request to a route with a protocol of its own, which reads it itself."""
    return flask.request.get_data()


def given(body: msgspec.Struct) -> dict[str, Any]:
    """The fields that a body sets, by name, without those that are absent or null."""
    return {
        name: value
        for name, value in msgspec.structs.asdict(body).items()
        if value is not None and value is not msgspec.UNSET
    }


def files(_kind: Any) -> list[FileStorage]:
    """The uploaded files of the field `files`, at most as many as the route accepts. Raises `BadInput`."""
    return _uploaded("files", most=_file_limits()[1])


def file(kind: Any) -> FileStorage | None:
    """The uploaded file of the field `file`. Raises `BadInput` when there is none or more than one.

    None if `kind` allows None and the form has no file, or one without a name: browsers send that for an
    empty file field.
    """
    if kind is FileStorage:
        return _uploaded("file", most=1)[0]
    uploaded = [file for file in flask.request.files.getlist("file") if file.filename]
    if len(uploaded) > 1:
        raise BadInput("file: must be a single file")
    return uploaded[0] if uploaded else None


_READERS: dict[str, Callable[[Any], Any]] = {
    "query": query,
    "form": form,
    "body": body,
    "file": file,
    "files": files,
}


def _file_limits() -> tuple[int, int]:
    """The limits of the current endpoint: the size of a file in bytes, and the number of files."""
    limits: tuple[int, int] = getattr(_view(), "takes_files", (0, 0))
    return limits


def _view() -> Any:
    """The view function of the current request; None for an unknown path."""
    return flask.current_app.view_functions.get(flask.request.endpoint or "")


def _uploaded(name: str, *, most: int) -> list[FileStorage]:
    # Some clients write the name of a list with brackets, like HTTP Shortcuts on Android.
    sent = flask.request.files
    uploaded = sent.getlist(name) or sent.getlist(f"{name}[]")
    if not uploaded:
        raise BadInput(f"{name}: is missing; send it as a file in multipart/form-data")
    if len(uploaded) > most:
        raise BadInput(f"{name}: must be at most {most} files")
    return uploaded


def listed(name: str, value: str, *, most: int) -> list[str]:
    """The entries of a comma-separated field, one for each of `most` files. Raises `BadInput` for more."""
    entries = [entry.strip() for entry in value.split(",")] if value.strip() else []
    if len(entries) > most:
        raise BadInput(f"{name}: has {len(entries)} entries for {most} files")
    return entries + [""] * (most - len(entries))


def moment(name: str, value: str) -> datetime | None:
    """The time that a field gives in epoch milliseconds; None if it is empty. Raises `BadInput`."""
    if not value:
        return None
    if not re.fullmatch(r"[0-9]{1,15}", value):
        raise BadInput(f"{name}: must be epoch milliseconds, in digits")
    try:
        return from_epoch_ms(int(value))
    except (ValueError, OverflowError):
        raise BadInput(f"{name}: is too far in the future") from None


def convert(values: dict[str, Any], shape: type[T], *, strict: bool = False) -> T:
    """`values` as a `shape`; unless `strict`, texts may stand for numbers and booleans. Raises `BadInput`."""
    try:
        result = msgspec.convert(values, shape, strict=strict)
    except (msgspec.ValidationError, RecursionError) as problem:
        raise BadInput(_explain(str(problem), values, shape)) from None
    for name, kind in _fields(cast(type, shape)).items():  # mypy takes a `type[T]` for unhashable
        value = values.get(name)
        # msgspec reads the word "null" in a query or form as no value.
        if isinstance(value, str) and not strict and getattr(result, name) is None:
            raise BadInput(f"{name}: {_demand(kind, value)}")
        # SQLite stores a NUL, but many of its functions end the text there.
        if isinstance(value, str) and "\0" in value and getattr(kind, "extra", None) != _ANYTHING:
            raise BadInput(f"{name}: must not contain a NUL character")
    return result


def _explain(problem: str, values: dict[str, Any], shape: type) -> str:
    """What the field's declaration requires: `page_size: must be between 1 and 100`.

    msgspec names the field only in its message, `problem`.
    """
    if missing := re.search(r"missing required field `([^`]+)`", problem):
        return f"{missing[1]}: is missing"
    path = re.search(r"at `\$\.([^`.\[]+)", problem)
    if not path:
        return f"body: {problem}"
    return f"{path[1]}: {_demand(_fields(shape)[path[1]], values[path[1]])}"


def _longest(entries: list[Any]) -> Any:
    """An entry that is not a text or is empty, else the longest text."""
    wrong = [entry for entry in entries if not isinstance(entry, str) or not entry]
    return wrong[0] if wrong else max(entries, key=len)


@functools.cache
def _fields(shape: type) -> dict[str, Any]:
    info = cast(msgspec.inspect.StructType, msgspec.inspect.type_info(shape))
    return {field.encode_name: field.type for field in info.fields}


def _demand(kind: Any, value: Any) -> str:
    """The requirement of a field of the type `kind` that `value` does not meet."""
    if isinstance(kind, msgspec.inspect.UnionType):
        kind = next(part for part in kind.types if not isinstance(part, msgspec.inspect.NoneType))
    if isinstance(kind, msgspec.inspect.Metadata):
        kind, schema = kind.type, kind.extra_json_schema or {}
        if "description" in schema and (
            isinstance(kind, msgspec.inspect.LiteralType) or getattr(kind, "pattern", None)
        ):
            return f"must be {schema['description']}"
    match kind:
        case msgspec.inspect.IntType(ge=low, le=high) | msgspec.inspect.FloatType(ge=low, le=high) if (
            low is not None and high is not None
        ):
            return f"must be between {low} and {high}"
        case msgspec.inspect.IntType():
            return "must be a whole number"
        case msgspec.inspect.LiteralType(values=values):
            return f"must be one of {', '.join(map(str, values))}"
        case msgspec.inspect.BoolType():
            return "must be true or false"
        case msgspec.inspect.StrType(max_length=longest) if (
            longest is not None and isinstance(value, str) and len(value) > longest
        ):
            return f"must be at most {longest:,} characters"
        case msgspec.inspect.StrType(min_length=shortest) if shortest and value == "":
            return "must not be empty"
        case msgspec.inspect.StrType():
            return "must be a text"
        case msgspec.inspect.ListType(min_length=fewest, max_length=most) if isinstance(value, list) and (
            len(value) < (fewest or 0) or (most is not None and len(value) > most)
        ):
            return f"must have {f'{fewest} to' if fewest else 'at most'} {most} entries"
        case msgspec.inspect.ListType() if isinstance(value, list):
            return f"each entry {_demand(kind.item_type, _longest(value))}"
        case msgspec.inspect.ListType():
            return "must be a list"
    return "cannot be read"
