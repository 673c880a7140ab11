"""The application: wires the other files together, authenticates, and turns every failure into the one error
body.

A request goes: id, key, rate limit, body received, database scope, route. The key comes before everything
else, so that who has none learns nothing, not even which paths exist. The body is received before the
database is touched, so that a slow client holds no lock.
"""

import contextlib
import functools
import logging
import os
import secrets
import sys
import time
from collections.abc import Callable, Iterator
from typing import Annotated, Any

import flask
import msgspec
from flask.cli import ScriptInfo
from flask.json.provider import JSONProvider
from flask_cors import CORS
from flask_limiter import Limiter
from flask_limiter.util import get_remote_address
from limits.errors import ConfigurationError
from werkzeug.exceptions import HTTPException
from werkzeug.middleware.proxy_fix import ProxyFix

import access
import analysis
import database
import devices
import dynamics
import jobs
import llm
import memory
import photos
import push
import search
from assistant import chat, conversations, mcp_servers, skills
from errors import (
    DataDamaged,
    ModelFailure,
    NotAuthenticated,
    SnaploreError,
    StartRefused,
    StorageFull,
    Unavailable,
    Unreadable,
)
from settings import NAME, VERSION, Settings
from spool import Spool
from upkeep import amounts
from web import dashboard, inputs, openapi, shapes

log = logging.getLogger(__name__)

BLUEPRINTS = (
    photos.routes,
    devices.routes,
    search.routes,
    analysis.routes,
    llm.routes,
    llm.connection_routes,
    llm.usage_routes,
    skills.routes,
    mcp_servers.routes,
    memory.routes,
    push.routes,
    dynamics.routes,
    conversations.routes,
    chat.routes,
    amounts.routes,
)
OPEN_ENDPOINTS = ("index", "health")  # no key, no database
LIMITED_ENDPOINTS = ("chat.send_message", "chat.send_with_file", "dynamics.trigger")
CALLS_A_MINUTE = 10  # over these endpoints together, for each client address
EXPOSED_HEADERS = (
    "X-Request-ID",
    "Retry-After",
    "ETag",
    "X-RateLimit-Limit",
    "X-RateLimit-Remaining",
    "X-RateLimit-Reset",
)
CLOCK_STEP = 1.0  # seconds; by less it is drawn, not set
SOCKET_PATIENCE = 60.0  # seconds without a byte after which a client has lost its thread


class Request(inputs.Request):
    def open_spool(self, largest: int) -> Spool:
        return Spool(largest)


class Application(flask.Flask):
    request_class = Request
    settings: Settings
    api_key: str | None = None
    is_open = False

    def open_data(self) -> None:
        """Open the data folder of the settings, once. Raises `StartRefused`, having changed nothing."""
        if not self.is_open:
            database.open_store(self.settings)
            self.api_key = access.api_key(self.settings)
            # A connection does not survive a fork, and gunicorn forks after this.
            database.close_connections()
            self.is_open = True


class MsgspecJSON(JSONProvider):
    """Shorter and faster than the standard library's, and it writes Chinese as itself."""

    def dumps(self, obj, **kwargs):
        return msgspec.json.encode(obj).decode()

    def loads(self, s, **kwargs):
        return msgspec.json.decode(s)


def create_app(settings: Settings | None = None) -> Application:
    """The WSGI application over the data folder of `settings`, which is open. Raises `StartRefused`.

    Without `settings`, as `./snaplore` and `flask --app app` call it, they are the environment's, and the
    data folder is closed: each command opens it for itself, or mends data that does not open. A refusal then
    ends the process with one line.
    """
    if settings is None:
        with _refusal_in_one_line():
            return _wired(Settings.from_environ(os.environ))
    app = _wired(settings)
    app.open_data()
    return app


def serve() -> Application:
    """The application that gunicorn serves, over the environment's settings. A refusal ends the process with
    one line.
    """
    with _refusal_in_one_line():
        return create_app(Settings.from_environ(os.environ))


def command_line() -> None:
    """Run the command that the arguments of the process name, as `./snaplore` does."""
    jobs.command_line.main(
        prog_name=jobs.command_line.name, obj=ScriptInfo(create_app=create_app, set_debug_flag=False)
    )


@contextlib.contextmanager
def _refusal_in_one_line() -> Iterator[None]:
    try:
        yield
    except StartRefused as refusal:
        sys.exit(f"{NAME} cannot start: {refusal}")


def _wired(settings: Settings) -> Application:
    """The application with everything in its place but the data folder, which is closed."""
    app = Application(__name__, static_folder=None)
    app.settings = settings
    push.announce(settings)
    app.json = MsgspecJSON(app)
    app.url_map.converters["id"] = inputs.RowId
    if settings.trusted_proxies:
        hops = settings.trusted_proxies
        app.wsgi_app = ProxyFix(app.wsgi_app, x_for=hops, x_proto=hops, x_host=hops)

    app.before_request(_authenticate)
    # Between the two, so that a request past its limit is not received, and one without the key does not
    # count.
    limiter = _limiter(app)
    app.before_request(_clock_follower(limiter))
    app.before_request(_receive)
    app.after_request(_finish)
    app.teardown_request(_close_scope)
    app.register_error_handler(Exception, _failure)
    for blueprint in BLUEPRINTS:
        app.register_blueprint(blueprint)
    shared = limiter.shared_limit(f"{CALLS_A_MINUTE} per minute", scope="assistant")
    for endpoint in LIMITED_ENDPOINTS:
        app.view_functions[endpoint] = shared(app.view_functions[endpoint])
    if settings.cors_origins:
        CORS(app, origins=list(settings.cors_origins), expose_headers=EXPOSED_HEADERS, max_age=3600)
    for command in jobs.COMMANDS:
        app.cli.add_command(command)
    _add_own_routes(app)
    return app


def _add_own_routes(app: Application) -> None:
    """What the service says of itself: that it is there, how it is used, and the page."""
    contract = functools.cache(
        lambda: openapi.document(app, unlocked=OPEN_ENDPOINTS, limited=LIMITED_ENDPOINTS)
    )
    page = functools.cache(lambda: dashboard.assemble(key_needed=app.api_key is not None))

    @app.get("/")
    @inputs.operation()
    def index() -> Annotated[shapes.Identity, inputs.Media(("text/html",), has_etag=True)]:
        """Say what answers here. A client that prefers HTML, a browser, gets the dashboard."""
        if dashboard.wanted(flask.request):
            answer = dashboard.response(page(), flask.request)
        else:
            answer = flask.jsonify(name=NAME, version=VERSION, status="running")
        answer.vary.add("Accept")
        return answer

    @app.get("/api/health")
    @inputs.operation()
    def health() -> shapes.Health:
        """Say that the service is up; the database is not asked."""
        return {"status": "ok"}

    @app.get("/api/openapi.json")
    @inputs.without_scope
    @inputs.operation()
    def show_contract() -> dict[str, Any]:
        """Get this contract, as OpenAPI 3.1."""
        return contract()


def _limiter(app: Application) -> Limiter:
    """Of the rate of requests, by client address; each worker counts by itself while a shared storage is
    away.

    Raises `StartRefused` for a storage that it cannot use.
    """
    options = {"strategy": "moving-window", "headers_enabled": True, "in_memory_fallback_enabled": True}
    try:
        return Limiter(get_remote_address, app=app, storage_uri=app.settings.ratelimit_storage, **options)
    # What knows no moving window is not implemented, and a port that is none is a bad value.
    except (ConfigurationError, NotImplementedError, ValueError):
        sentence = "SNAPLORE_RATELIMIT_STORAGE: is no storage address that can be used here, like redis://127.0.0.1:6379"
        raise StartRefused(sentence) from None


def _clock_follower(limiter: Limiter) -> Callable[[], None]:
    """Forgets who came in the last minute when the clock is set back: the limiter would count them until that
    minute has come again.
    """
    ahead = time.time() - time.monotonic()

    def follow() -> None:
        nonlocal ahead
        before, ahead = ahead, time.time() - time.monotonic()
        if ahead < before - CLOCK_STEP:
            limiter.reset()

    return follow


def _authenticate() -> None:
    request = flask.request
    flask.g.request_id = secrets.token_hex(8)
    client = request.environ.get("gunicorn.socket")
    if client is not None:
        client.settimeout(SOCKET_PATIENCE)
    if request.endpoint in OPEN_ENDPOINTS:
        return
    app = flask.current_app
    if not _is_preflight(request, app.settings) and not access.key_matches(
        request.environ.get("HTTP_AUTHORIZATION", ""), app.api_key
    ):
        raise NotAuthenticated("The API key is missing or wrong: send it as `Authorization: Bearer <key>`")
    if app.api_key is None:
        access.check_without_key(request.headers, app.settings.cors_origins, reads_json=inputs.has_json())


def _receive() -> None:
    request = flask.request
    if request.endpoint not in OPEN_ENDPOINTS and request.routing_exception is None:
        inputs.receive()
        if not getattr(flask.current_app.view_functions.get(request.endpoint), "without_scope", False):
            scope = contextlib.ExitStack()
            scope.enter_context(database.scope())
            flask.g.scope = scope


def _is_preflight(request: flask.Request, settings: Settings) -> bool:
    asks = request.method == "OPTIONS" and "Access-Control-Request-Method" in request.headers
    return asks and request.headers.get("Origin") in settings.cors_origins


def _close_scope(problem: BaseException | None) -> None:
    scope = flask.g.pop("scope", None)
    if scope is not None:
        scope.__exit__(type(problem) if problem else None, problem, None)


def _finish(response: flask.Response) -> flask.Response:
    response.headers["X-Request-ID"] = flask.g.request_id
    response.headers["X-Content-Type-Options"] = "nosniff"
    if (
        not response.cache_control
    ):  # what a route says nothing about is the person's own: no cache on the way keeps it
        response.cache_control.no_store = True
    if response.status_code >= 400:
        inputs.drain()
    return response


_SENTENCES = {
    404: "There is nothing at this path.",
    405: "This path does not take this method.",
    413: "The request is larger than what can be taken here.",
    429: f"Too many requests to the assistant: {CALLS_A_MINUTE} a minute are taken. Please come again in a moment.",
}


def _failure(problem: Exception):
    """Any failure as the one error body, `{"detail": "<sentence>"}`."""
    _close_scope(problem)  # here, because later nobody knows any more that it failed
    headers = {}
    if isinstance(problem, HTTPException):
        if problem.code is None or problem.code < 400:  # a redirect is an answer
            return problem
        status, detail = problem.code, _SENTENCES.get(problem.code) or problem.description or problem.name
        headers = {name: value for name, value in problem.get_headers() if name in ("Allow", "Retry-After")}
    else:
        known = _known(problem)
        if known.status >= 500 and not isinstance(problem, Unavailable):
            told = isinstance(
                known, DataDamaged | ModelFailure | StorageFull | Unavailable | Unreadable
            )  # by its sentence
            log.error(
                "request %s failed: %s",
                flask.g.get("request_id"),
                problem,
                exc_info=None if told else problem,
            )
        status, detail = known.status, known.detail
        if known.retry_after is not None:
            headers["Retry-After"] = str(max(1, round(known.retry_after)))
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return {"detail": detail}, status, headers


def _known(problem: Exception) -> SnaploreError:
    internal = "An internal error happened; the log of the service has the reason under this request's id."
    return database.known_failure(problem) or SnaploreError(internal)
