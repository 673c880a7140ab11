"""The only reading of requests: queries, forms and JSON bodies become validated objects, or a 400 that names
the field.

The signature of a route is its contract. `@operation` reads by it what the route takes, as `msgspec.Struct`s
whose annotations carry the limits, and `web/openapi.py` publishes the same signature: what is checked and
what is promised cannot drift apart. Files are received before the endpoint's work begins, so that a slow
client holds no lock: `receive` is called once for each request, and everything after it reads what has
arrived.
"""

import functools
import re
from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any, NamedTuple, TypeVar, cast, get_type_hints

import flask
import msgspec
from msgspec import Meta
from werkzeug.datastructures import FileStorage
from werkzeug.exceptions import RequestEntityTooLarge
from werkzeug.routing import IntegerConverter

from clock import from_epoch_ms
from errors import BadInput, SnaploreError, TooLarge
from settings import MEGABYTE, Settings

# Of a request without files; the largest is a chat message of 32,768 characters, escaped.
MAX_BODY = 1 * MEGABYTE
FORM_SLACK = 1 * MEGABYTE  # what a form with files may carry beside them

T = TypeVar("T")
View = TypeVar("View", bound=Callable[..., Any])


class RowId(IntegerConverter):
    """An id in a path; what is no int, or more than SQLite counts to, is an unknown path."""

    # By its digits and not by a `max`: with that, a number too large is 405 where another method has the same
    # path.
    regex = "[0-9]{1,18}"


Page = Annotated[int, Meta(ge=1, le=1_000_000_000)]
PageSize = Annotated[int, Meta(ge=1, le=100)]

# A text that no database is asked for as it is: whatever is typed into a search may be in it.
_ANYTHING = {"anything": True}
AnyText = Annotated[str, Meta(extra=_ANYTHING)]
Moment = Annotated[
    str, Meta(description="an ISO 8601 time; without a zone it is UTC", examples=["2026-11-21T07:31:04"])
]


class Media(NamedTuple):
    """Says what a route answers beside JSON, or what its `flask.Response` holds: `Annotated[flask.Response,
    Media(("image/png",))]`.
    """

    media_types: tuple[str, ...]
    has_etag: bool = False  # and keeps to `If-None-Match`
    has_ranges: bool = False  # it keeps to `Range`


class Operation(NamedTuple):
    """What a route takes and answers, from its signature."""

    inputs: dict[str, Any]  # what is read of the request: query, form, body, file, files
    path: dict[str, Any]  # the parts of the path
    answer: Any
    failures: tuple[type[SnaploreError], ...]  # beyond those that any route may have


class Request(flask.Request):
    """A request whose file parts go into spools as they arrive; an application has a subclass that says into
    which.
    """

    max_file_bytes = 0

    def open_spool(self, largest: int) -> Any:
        """What a file part of up to `largest` bytes is written to: it has `write`, `seek` and `close`."""
        raise NotImplementedError

    def _get_file_stream(self, total_content_length, content_type, filename=None, content_length=None):
        stream = self.open_spool(self.max_file_bytes)
        self._streams.append(stream)
        return stream

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._streams = []

    def close(self) -> None:
        super().close()
        for stream in self._streams:
            stream.close()


def operation(*failures: type[SnaploreError]) -> Callable[[View], View]:
    """Mark a route: its signature is its contract, and `failures` are what its verbs raise.

    `query`, `form` and `body` are read as the `msgspec.Struct` that their annotation names, `file` as the one
    file of the form, which may be missing if the annotation has a None, `files` as a list of them; any other
    parameter is a part of the path. The annotation of what is returned is the published answer.
    """

    def mark(view: View) -> View:
        hints = get_type_hints(view, include_extras=True)
        answer = hints.pop("return")
        inputs = {name: kind for name, kind in hints.items() if name in _READERS}
        path = {name: kind for name, kind in hints.items() if name not in _READERS}

        @functools.wraps(view)
        def route(**given: Any) -> Any:
            return view(**given, **{name: _READERS[name](kind) for name, kind in inputs.items()})

        route.operation = Operation(inputs, path, answer, failures)  # type: ignore[attr-defined]
        return cast(View, route)

    return mark


def takes_files(*, largest: int, most: int = 1) -> Callable[[View], View]:
    """Mark a route: it takes up to `most` files of up to `largest` bytes each."""

    def mark(view: View) -> View:
        view.takes_files = (largest, most)  # type: ignore[attr-defined]
        return view

    return mark


def without_scope(view: View) -> View:
    """Mark a route: its verb waits for others (a model, a webhook) and opens the database by itself, for
    moments only.
    """
    view.without_scope = True  # type: ignore[attr-defined]
    return view


def receive() -> None:
    """Read the whole body of the current request. Raises `TooLarge` when it is more than its endpoint takes."""
    request = flask.request
    largest, most = getattr(flask.current_app.view_functions.get(request.endpoint), "takes_files", (0, 0))
    # A single file may come a little over its limit, so that it is refused by its size, with a sentence, and
    # not by the form's.
    limit = most * largest + FORM_SLACK if most else MAX_BODY
    request.max_content_length = limit
    request.max_file_bytes = largest
    try:
        if most and request.mimetype == "multipart/form-data":
            _ = request.form
        else:
            request.get_data(cache=True)
    except RequestEntityTooLarge:
        raise TooLarge(
            f"The request is larger than the {limit // MEGABYTE} MB that can be taken here."
        ) from None


def settings() -> Settings:
    """The settings of the application that answers the request."""
    return cast(Settings, flask.current_app.settings)  # type: ignore[attr-defined]  # `app.Application` has it


def query(shape: type[T]) -> T:
    """The query string as a `shape`; empty values count as absent."""
    return _convert({name: value for name, value in flask.request.args.to_dict().items() if value}, shape)


def form(shape: type[T]) -> T:
    """The text fields of a form as a `shape`; empty ones count as absent."""
    return _convert({name: value for name, value in flask.request.form.to_dict().items() if value}, shape)


def body(shape: type[T]) -> T:
    """The JSON object of the body as a `shape`; an absent or empty body is an empty object."""
    raw = flask.request.get_data()
    try:
        value = msgspec.json.decode(raw) if raw.strip() else {}
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise BadInput("body: is not valid JSON") from None
    if not isinstance(value, dict):
        raise BadInput("body: must be a JSON object")
    return _convert(value, shape, strict=True)


def given(body: msgspec.Struct) -> dict[str, Any]:
    """The fields that a body gives, by name; one that is left out or null is not among them."""
    return {
        name: value
        for name, value in msgspec.structs.asdict(body).items()
        if value is not None and value is not msgspec.UNSET
    }


def files(_kind: Any = None) -> list[FileStorage]:
    """The uploaded files of the field `files`, at least one and at most as many as the route takes."""
    return _uploaded("files", most=flask.current_app.view_functions[flask.request.endpoint].takes_files[1])


def file(kind: Any) -> FileStorage | None:
    """The uploaded file of the field `file`; None if `kind` has a None and the form none or, as browsers do,
    an empty one.
    """
    if kind is FileStorage:
        return _uploaded("file", most=1)[0]
    uploaded = [file for file in flask.request.files.getlist("file") if file.filename]
    if len(uploaded) > 1:
        raise BadInput("file: must be a single file")
    return uploaded[0] if uploaded else None


_READERS = {"query": query, "form": form, "body": body, "file": file, "files": files}


def _uploaded(name: str, *, most: int) -> list[FileStorage]:
    uploaded = flask.request.files.getlist(name)
    if not uploaded:
        raise BadInput(f"{name}: is missing; send it as a file in multipart/form-data")
    if len(uploaded) > most:
        raise BadInput(f"{name}: must be at most {most} files")
    return uploaded


def listed(name: str, value: str, *, most: int) -> list[str]:
    """A comma-separated field with an entry for each of `most` files; missing entries are empty."""
    entries = [entry.strip() for entry in value.split(",")] if value.strip() else []
    if len(entries) > most:
        raise BadInput(f"{name}: has {len(entries)} entries for {most} files")
    return entries + [""] * (most - len(entries))


def moment(name: str, value: str, default: datetime) -> datetime:
    """A time in epoch milliseconds, in digits; empty means `default`."""
    if not value:
        return default
    if not re.fullmatch(r"[0-9]{1,15}", value):
        raise BadInput(f"{name}: must be epoch milliseconds, in digits")
    try:
        return from_epoch_ms(int(value))
    except (ValueError, OverflowError):
        raise BadInput(f"{name}: is too far in the future") from None


def _convert(values: dict[str, Any], shape: type[T], *, strict: bool = False) -> T:
    try:
        result = msgspec.convert(values, shape, strict=strict)
    except (msgspec.ValidationError, RecursionError) as problem:
        raise BadInput(_explain(str(problem), values, shape)) from None
    for name, kind in _fields(shape).items():
        value = values.get(name)
        if (
            isinstance(value, str) and not strict and getattr(result, name) is None
        ):  # for msgspec "null" is one way to say nothing
            raise BadInput(f"{name}: {_demand(kind, value)}")
        # SQLite would keep a NUL and then cut the text off at it in half of its functions.
        if isinstance(value, str) and "\0" in value and getattr(kind, "extra", None) != _ANYTHING:
            raise BadInput(f"{name}: must not contain a NUL character")
    return result


def _explain(problem: str, values: dict[str, Any], shape: type) -> str:
    """`page_size: must be between 1 and 100`: what the field's declaration demands.

    Which field it is about, msgspec tells only by the words of `problem`.
    """
    if missing := re.search(r"missing required field `([^`]+)`", problem):
        return f"{missing[1]}: is missing"
    path = re.search(r"at `\$\.([^`.\[]+)", problem)
    if not path:
        return f"body: {problem}"
    return f"{path[1]}: {_demand(_fields(shape)[path[1]], values[path[1]])}"


@functools.cache
def _fields(shape: type) -> dict[str, Any]:
    return {field.encode_name: field.type for field in msgspec.inspect.type_info(shape).fields}


def _demand(kind: Any, value: Any) -> str:
    """What a field of the type `kind` must be, and `value` is not."""
    if isinstance(kind, msgspec.inspect.UnionType):
        kind = next(part for part in kind.types if not isinstance(part, msgspec.inspect.NoneType))
    if isinstance(kind, msgspec.inspect.Metadata):
        kind, schema = kind.type, kind.extra_json_schema or {}
        if "description" in schema and (
            isinstance(kind, msgspec.inspect.LiteralType) or getattr(kind, "pattern", None)
        ):
            return f"must be {schema['description']}"
    match kind:
        case msgspec.inspect.IntType(ge=low, le=high) if low is not None and high is not None:
            return f"must be between {low} and {high}"
        case msgspec.inspect.IntType():
            return "must be a whole number"
        case msgspec.inspect.FloatType(ge=low, le=high) if low is not None and high is not None:
            return f"must be between {low} and {high}"
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
    return "cannot be read"
