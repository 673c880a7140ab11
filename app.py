"""The application: connects the other files, authenticates requests, and converts every failure into the one
error body.

The steps of a request: id, key, rate limit, receiving the body, database scope, route. The key is checked
first, so that a client without it learns nothing, not even which paths exist. The body is received before the
database is opened, so that a slow client holds no lock.
"""

import contextlib
import functools
import logging
import os
import secrets
import sys
import time
from collections.abc import Callable, Iterator
from typing import Annotated, Any, cast

import flask
import msgspec
from flask.cli import ScriptInfo
from flask.json.provider import JSONProvider
from flask.typing import ResponseReturnValue
from flask_cors import CORS
from flask_limiter import Limiter
from flask_limiter.util import get_remote_address
from limits.errors import ConfigurationError
from werkzeug.exceptions import HTTPException
from werkzeug.middleware.proxy_fix import ProxyFix

import access
import agenda
import database
import devices
import jobs
import lexicon
import llm
import meaning
import memory
import models
import push
import readings
import reasoner
import records
import search
import threads
import uploads
from analysis import listing
from assistant import chat, conversations, mcp_servers, skills
from clock import utc_now
from commands import table
from curation import batch, opened, originals, proposals, retention, searches, stacks, trash, words
from errors import (
    BadInput,
    DataDamaged,
    Forbidden,
    ModelFailure,
    NotAuthenticated,
    NotFound,
    SnaploreError,
    StartRefused,
    StorageFull,
    Unavailable,
    Unreadable,
)
from locks import ServiceLock
from outlets import feeds, mcp, shares, tabular, webhooks
from rules import templates
from settings import NAME, VERSION, Settings
from spool import Spool
from terminal.commands import Beside
from terminal.service import Login
from tls import addresses, authority, network, trust
from upkeep import amounts, rollback, watching
from web import dashboard, inputs, installable, openapi, page_texts, shapes

log = logging.getLogger(__name__)

BLUEPRINTS = (
    access.routes,
    network.routes,
    feeds.routes,
    shares.routes,
    uploads.routes,  # and those of `photos`
    readings.routes,
    records.routes,
    tabular.routes,
    threads.routes,
    words.routes,
    proposals.routes,
    trash.routes,
    batch.routes,
    originals.routes,
    retention.routes,
    stacks.routes,
    devices.routes,
    search.routes,
    searches.routes,
    opened.routes,
    meaning.routes,
    agenda.routes,
    listing.routes,
    llm.routes,
    llm.connection_routes,
    llm.usage_routes,
    skills.routes,
    mcp_servers.routes,
    memory.routes,
    push.routes,
    webhooks.routes,
    reasoner.routes,  # and those of `dynamics`
    conversations.routes,
    chat.routes,
    amounts.routes,
    watching.routes,
    mcp.routes,
)
# Neither a body nor the database: these hold nothing of the person.
WITHOUT_DATA = (
    *("index", "health", "manifest", "service_worker", "icon", "share", "sign_out", "page_part"),
    *trust.PATHS,
)
FEEDS = ("feeds.show_agenda", "feeds.show_notes", "feeds.show_search")  # their address is the key
OPEN_ENDPOINTS = (*WITHOUT_DATA, "access.redeem_code", *FEEDS, "shares.show")  # no key
# No key is needed, but one that is sent must be right: the client's `login` tries its key there.
OPTIONAL_ENDPOINTS = ("show_contract",)
# Where clients of `/mcp` look for a server of OAuth. A 401 there would say that there is one.
NO_OAUTH = ("/.well-known/", "/mcp/.well-known/", "/register")
# What a service with a certificate answers over plain http: how to trust it, and whether it runs.
PLAIN_ENDPOINTS = ("health", "icon", *trust.PATHS)
LIMITED_ENDPOINTS = ("chat.send_message", "chat.send_with_file", "dynamics.trigger")
CALLS_A_MINUTE = 10  # per client address, for these endpoints together
FEED_CALLS_A_MINUTE = 60  # the same for feeds, and for links to pictures
MCP_CALLS_A_MINUTE = 300  # the same for agents, which make some ten calls for a question
EXPOSED_HEADERS = (
    "X-Request-ID",
    "Retry-After",
    "ETag",
    "X-RateLimit-Limit",
    "X-RateLimit-Remaining",
    "X-RateLimit-Reset",
)
CLOCK_STEP = 1.0  # seconds; NTP slews smaller corrections and steps larger ones


class Request(inputs.Request):
    """A request whose file parts are written to sealed spools."""

    def open_spool(self, largest: int) -> Spool:
        return Spool(largest)


class Application(flask.Flask):
    """The Flask application with its settings, its API key, its certificate, and its data folder's state."""

    request_class = Request
    settings: Settings
    api_key: str | None = None
    certificate: authority.Presented
    share_part = ""  # of the address to which other apps share pictures
    service_lock: ServiceLock | None = None  # of the service; commands run beside it
    is_open = False

    def open_data(self) -> None:
        """Open the data folder, once. Raises `StartRefused`, without having changed anything."""
        if not self.is_open:
            database.open_store(self.settings, alone=self.service_lock is not None)
            lexicon.renew()
            self.api_key = access.api_key(self.settings)
            with database.scope():
                self.share_part = models.stored_secret("share_part")
            self.certificate.load()
            # Connections do not survive a fork, and gunicorn forks after this.
            database.close_connections()
            self.is_open = True


class MsgspecJSON(JSONProvider):
    """JSON by msgspec: faster and shorter than the standard library's, and Chinese is not escaped."""

    def dumps(self, obj: Any, **kwargs: Any) -> str:
        return msgspec.json.encode(obj).decode()

    def loads(self, s: str | bytes, **kwargs: Any) -> Any:
        return msgspec.json.decode(s)


def create_app(settings: Settings | None = None) -> Application:
    """The WSGI application with the open data folder of `settings`. Raises `StartRefused`.

    `./snaplore` and `flask --app app` call it without `settings`. Then the settings are the environment's,
    and the data folder stays closed: each command opens it by itself, or repairs data that cannot be opened.
    A refusal then ends the process with one line.
    """
    if settings is None:
        with _refusal_in_one_line():
            return _wired(Settings.from_environ(os.environ))
    app = _wired(settings)
    app.open_data()
    return app


def serve() -> Application:
    """The application that gunicorn serves, with the environment's settings. A refusal ends the process with
    one line.

    The lock is taken first, because opening may migrate the data, also under a service that runs already. The
    workers inherit it.
    """
    with _refusal_in_one_line():
        app = _wired(Settings.from_environ(os.environ))
        app.service_lock = database.lock_service(app.settings)
        app.open_data()
    app.certificate.keep(now=utc_now())
    rollback.count_start()
    return app


def beside_client() -> Beside:
    """What the command line `./snaplore` has beside the client's commands."""
    context = ScriptInfo(create_app=create_app, set_debug_flag=False)

    def login() -> Login:
        with create_app().app_context():
            return jobs.own_login()

    return Beside({str(command.name): command for command in table.COMMANDS}, context, login)


@contextlib.contextmanager
def _refusal_in_one_line() -> Iterator[None]:
    try:
        yield
    except StartRefused as refusal:
        sys.exit(f"{NAME} cannot start: {refusal}")


def _wired(settings: Settings) -> Application:
    """The complete application, with its data folder still closed."""
    app = Application(__name__, static_folder=None)
    app.settings = settings
    app.certificate = authority.Presented(settings)
    push.announce(settings)
    agenda.reminded.connect(webhooks.remind)
    app.json = MsgspecJSON(app)
    app.url_map.converters["id"] = inputs.RowId
    if settings.trusted_proxies:
        hops = settings.trusted_proxies
        # Flask documents this assignment as the way to add a middleware.
        app.wsgi_app = ProxyFix(  # type: ignore[method-assign]
            app.wsgi_app, x_for=hops, x_proto=hops, x_host=hops, x_prefix=hops
        )

    app.after_request(_finish)  # registered first, so it runs last: after the limiter has set its headers
    app.before_request(_authenticate)
    app.before_request(lambda: templates.speak(dashboard.language_of(flask.request, "")))
    if settings.read_only:
        app.before_request(_refuse_changes)
    # The limiter counts later, around the view: a request without the key does not count, and the body of one
    # past the limit has been received.
    limiter = _limiter(app)
    limits = (
        ("the assistant", LIMITED_ENDPOINTS, CALLS_A_MINUTE),
        ("feeds", FEEDS, FEED_CALLS_A_MINUTE),
        ("links", ("shares.show",), FEED_CALLS_A_MINUTE),
        ("/mcp", ("mcp.call",), MCP_CALLS_A_MINUTE),
    )
    app.before_request(_clock_follower(limiter))
    app.before_request(_receive)
    app.teardown_request(_close_scope)
    app.register_error_handler(Exception, _failure)
    for blueprint in BLUEPRINTS:
        app.register_blueprint(blueprint)
    for called, endpoints, calls in limits:
        shared = limiter.shared_limit(
            f"{calls} per minute", scope=called, error_message=TOO_MANY.format(called, calls)
        )
        for endpoint in endpoints:
            limited: Any = shared(app.view_functions[endpoint])  # typed as if routes could be async
            app.view_functions[endpoint] = limited
    if settings.cors_origins:
        CORS(app, origins=list(settings.cors_origins), expose_headers=EXPOSED_HEADERS, max_age=3600)
    for command in table.COMMANDS:
        app.cli.add_command(command)
    page = functools.cache(
        lambda language: dashboard.assemble(key_needed=app.api_key is not None, language=language)
    )
    _add_own_routes(app, page)
    _add_page_parts(app, page)
    return app


def _add_own_routes(app: Application, page: Callable[[str], dashboard.Page]) -> None:
    """The routes that belong to no noun: identity and dashboard, health, and the published contract."""
    contract = functools.cache(
        lambda: openapi.document(
            app,
            unlocked=(*OPEN_ENDPOINTS, *OPTIONAL_ENDPOINTS),
            limited=(*LIMITED_ENDPOINTS, *FEEDS, "shares.show"),
            scopes_of=access.allowed_scopes,
        )
    )

    @app.get("/")
    @inputs.operation()
    def index() -> Annotated[shapes.Identity, inputs.Media(("text/html",), has_etag=True)]:
        """Show name and version of the service. A client that prefers HTML, such as a browser, gets the
        dashboard.
        """
        if dashboard.wanted(flask.request):
            language = dashboard.language_of(flask.request)
            answer = dashboard.response(page(language), flask.request)
        else:
            answer = flask.jsonify(name=NAME, version=VERSION, status="running")
        answer.vary.add("Accept")
        return cast(shapes.Identity, answer)  # the annotation is the published answer, not its Python type

    @app.get("/api/health")
    @inputs.operation()
    def health() -> shapes.Health:
        """Report that the service is running. The database is not read."""
        return {"status": "ok"}

    @app.get("/api/addresses")
    @inputs.operation()
    def show_addresses() -> shapes.Addresses:
        """List the addresses under which other devices reach the service. Loopback and container networks are
        left out. A client on another device is given the first one.
        """
        environ = flask.request.environ
        # What the socket listens on, also where a proxy names the host that its clients see.
        server = {**environ, **environ.get("werkzeug.proxy_fix.orig", {})}
        name = f"[{server['SERVER_NAME']}]" if ":" in server["SERVER_NAME"] else server["SERVER_NAME"]
        found = addresses.reach(f"{app.certificate.scheme}://{name}:{server['SERVER_PORT']}")
        own = network.current()
        also = own.addresses(app.certificate.scheme) if own else []
        return {
            "addresses": also or list(found.addresses),
            "loopback_only": found.loopback_only and not also,
            "certificate": app.certificate.fields(),
            "network": network.state(own, now=utc_now()) if own else None,
        }

    @app.get("/api/openapi.json")
    @inputs.operation(NotAuthenticated)
    def show_contract() -> dict[str, Any]:
        """Get this contract, as OpenAPI 3.1. Client makers generate their code from it. It is the same for
        everybody and needs no key, but one that is sent must be right.
        """
        return contract()


def _add_page_parts(app: Application, page: Callable[[str], dashboard.Page]) -> None:
    """Add what a browser fetches for the dashboard, to install it, and to trust the service. It is no part of
    the API: it is not published in the contract.
    """

    @app.get("/parts/<name>")
    def page_part(name: str) -> flask.Response:
        if name == dashboard.font().name:
            return dashboard.font_response()
        for language in page_texts.LANGUAGES:
            if name.startswith(f"{language}-") and name == page(language).later.name:
                return dashboard.part_response(page(language), flask.request)
        raise NotFound("This part belongs to another version of the page: load the page again")

    app.add_url_rule("/manifest.webmanifest", "manifest", lambda: installable.manifest(app.share_part))
    app.add_url_rule("/service-worker.js", "service_worker", installable.service_worker)
    for name in (*installable.ICONS, *installable.SCREENSHOTS):
        app.add_url_rule(f"/{name}", "icon", installable.icon, defaults={"name": name})
    for path in ("/share", f"/{installable.SHARE}<part>"):
        app.add_url_rule(path, "share", installable.shared_without_worker, methods=["POST"])
    app.add_url_rule("/sign-out", "sign_out", installable.sign_out, methods=["POST"])

    @app.get(trust.PATHS["ca"])
    def ca() -> flask.Response:
        return trust.page(app.certificate.ca)

    @app.get(trust.PATHS["ca_file"])
    def ca_file() -> flask.Response:
        return trust.file(app.certificate.ca)

    @app.get(trust.PATHS["ca_profile"])
    def ca_profile() -> flask.Response:
        return trust.profile(app.certificate.ca)


def _limiter(app: Application) -> Limiter:
    """The rate limiter, by client address. While a shared storage is unreachable, each worker counts alone.

    Raises `StartRefused` for a storage address that cannot be used.
    """
    try:
        return Limiter(
            get_remote_address,
            app=app,
            storage_uri=app.settings.ratelimit_storage,
            strategy="moving-window",
            headers_enabled=True,
            in_memory_fallback_enabled=True,
        )
    # NotImplementedError: a storage without moving windows. ValueError: an invalid port.
    except (ConfigurationError, NotImplementedError, ValueError):
        raise StartRefused(
            "SNAPLORE_RATELIMIT_STORAGE: must be a supported storage address, like redis://127.0.0.1:6379"
        ) from None


def _clock_follower(limiter: Limiter) -> Callable[[], None]:
    """Reset the rate limiter when the clock steps back, or its window would last until it catches up."""
    ahead = time.time() - time.monotonic()

    def follow() -> None:
        nonlocal ahead
        before, ahead = ahead, time.time() - time.monotonic()
        if ahead < before - CLOCK_STEP:
            limiter.reset()

    return follow


def _authenticate() -> ResponseReturnValue | None:
    request = inputs.current()
    flask.g.request_id = secrets.token_hex(8)
    app = cast(Application, flask.current_app)
    if app.certificate.context and not request.is_secure and request.endpoint not in PLAIN_ENDPOINTS:
        return _lead_to_https(request)
    if request.endpoint in OPEN_ENDPOINTS:
        return None
    if request.endpoint in OPTIONAL_ENDPOINTS and "Authorization" not in request.headers:
        return None
    if request.endpoint is None and request.path.startswith(NO_OAUTH):
        raise NotFound("There is nothing at this path: the key is the only way in")
    if not _is_preflight(request, app.settings):
        flask.g.caller = _caller(request.environ.get("HTTP_AUTHORIZATION", ""), app.api_key)
        if request.endpoint not in OPTIONAL_ENDPOINTS:
            access.check_scope(flask.g.caller, request.endpoint)
    if app.api_key is None:
        access.check_without_key(request.headers, app.settings.cors_origins, reads_json=inputs.has_json())
    return None


def _refuse_changes() -> None:
    request = inputs.current()
    if request.method not in ("GET", "HEAD", "OPTIONS") and request.endpoint not in WITHOUT_DATA:
        raise Forbidden("Nothing can be changed here: this service is read-only.")


def _lead_to_https(request: flask.Request) -> ResponseReturnValue:
    """The answer to a request over plain http, of a service with a certificate.

    A browser is redirected, for now and not for good: a certificate can be taken out of use. A program is
    refused with a sentence, because a redirect would hide that it sends its key over the network unencrypted.
    Raises `BadInput`.
    """
    address = f"https://{request.host}{request.script_root}"
    if request.method in ("GET", "HEAD") and "Authorization" not in request.headers:
        return flask.redirect(address + request.full_path.rstrip("?"), 307)
    raise BadInput(
        f"This service is reached over https: {address}. What is sent over plain http can be read on the way."
    )


def _caller(authorization: str, key: str | None) -> access.Caller:
    """Who sends a request with this header. Raises `NotAuthenticated`."""
    if access.key_matches(authorization, key):
        return access.OWNER
    holder = access.holder(authorization, now=utc_now())
    if holder is None:
        raise NotAuthenticated("The API key is missing or wrong: send it as `Authorization: Bearer <key>`")
    return holder


def _receive() -> None:
    request = inputs.current()
    # Flask answers OPTIONS by itself, a preflight's without the key: its body is not received.
    if (
        request.endpoint not in WITHOUT_DATA
        and request.routing_exception is None
        and request.method != "OPTIONS"
    ):
        inputs.receive()
        view = flask.current_app.view_functions.get(request.endpoint or "")
        if not getattr(view, "without_scope", False):
            scope = database.scope()
            scope.__enter__()
            flask.g.scope = scope


def _is_preflight(request: flask.Request, settings: Settings) -> bool:
    preflight = request.method == "OPTIONS" and "Access-Control-Request-Method" in request.headers
    return preflight and request.headers.get("Origin") in settings.cors_origins


def _close_scope(problem: BaseException | None) -> None:
    scope = flask.g.pop("scope", None)
    if scope is not None:
        scope.__exit__(type(problem) if problem else None, problem, None)


def _finish(response: flask.Response) -> flask.Response:
    headers = response.headers
    headers["X-Request-ID"] = flask.g.request_id
    headers["X-Content-Type-Options"] = "nosniff"
    # The limiter sets the end of its minute instead of a failure's own time, if that is sooner.
    if (seconds := flask.g.get("retry_after")) is not None:
        headers["Retry-After"] = str(seconds)
    elif response.status_code < 400:
        headers.pop("Retry-After", None)  # the limiter sets it on every answer that it counts
    # Unless a route says otherwise, answers are personal: no cache on the way keeps them.
    if not headers.get("Cache-Control"):
        headers["Cache-Control"] = "no-store"
    return response


TOO_MANY = "Too many requests to {}: {} a minute are accepted. Please come again in a moment."
_SENTENCES = {
    404: "There is nothing at this path.",
    405: "This path does not accept this method.",
    413: "The request is larger than this path accepts.",
}


def _failure(problem: Exception) -> ResponseReturnValue:
    """Any failure as the one error body, `{"detail": "<sentence>"}`."""
    _close_scope(problem)  # before the teardown, which no longer knows about the failure
    headers = {}
    if isinstance(problem, HTTPException):
        if problem.code is None or problem.code < 400:  # a redirect is not a failure
            return cast(ResponseReturnValue, problem)  # an HTTPException is a WSGI application
        status, detail = problem.code, _SENTENCES.get(problem.code) or problem.description or problem.name
        headers = {name: value for name, value in problem.get_headers() if name in ("Allow", "Retry-After")}
    else:
        internal = "An internal error occurred; the service's log has the reason under this request's id."
        known = database.known_failure(problem) or SnaploreError(internal)
        if known.status >= 500 and not isinstance(problem, Unavailable):
            # Expected failures: their message is enough, a traceback adds nothing.
            expected = DataDamaged | ModelFailure | StorageFull | Unavailable | Unreadable
            trace = None if isinstance(known, expected) else problem
            log.error("request %s failed: %s", flask.g.get("request_id"), problem, exc_info=trace)
        status, detail = known.status, known.detail
        if known.retry_after is not None:
            flask.g.retry_after = max(1, round(known.retry_after))  # `_finish` sends it
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    body = mcp.refusal(status, detail) if flask.request.path == mcp.PATH else {"detail": detail}
    return body, status, headers
