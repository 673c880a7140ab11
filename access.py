"""Who may do what: the owner's API key, the tokens of devices and programs, and pairing, by which a device
gets its token; `/api/tokens` and `/api/pairing`.

The key is `SNAPLORE_API_KEY` or, where that is unset, one made at the first start and stored in the encrypted
database. It may do everything. A token may do what its scope allows, and only its SHA-256 is stored. It is
looked up at every request, so a revoked token is out of force at once, in every worker. It lasts until it is
revoked; only pairing codes expire.

A pairing code can be redeemed once within five minutes. It never contains the key: whoever sees the code on a
screen gets, at most, one token, which the owner sees in the list and can revoke.
"""

import hashlib
import hmac
import io
import ipaddress
import logging
import secrets
import tomllib
from collections.abc import Callable, Collection
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, cast
from urllib.parse import urlsplit

import flask
import msgspec
from flask import Blueprint
from msgspec import Meta
from werkzeug.datastructures import Headers

import crypto
import database
from clock import to_epoch_ms, utc_now
from database import db
from errors import BadInput, Forbidden, NotAuthenticated, NotFound, TooManyRequests
from models import Pairing, Photo, SyncState, Token, store_value, stored_secret, stored_value
from settings import Settings
from web import inputs, recipes, shapes

log = logging.getLogger(__name__)

LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")

TOKEN_PREFIX = "snp_"  # noqa: S105 - not a secret
MOST_TOKENS = 200
NO_DEVICE = "unknown"  # the device of uploads that name none
USE_STEP = timedelta(minutes=1)  # how exactly `last_used_at` is known, so that few requests write

CODE_LETTERS = "23456789ABCDEFGHJKMNPQRSTUVWXYZ"  # without 0 and O, 1, I and L
CODE_LENGTH = 8
CODE_AGE = timedelta(minutes=5)
MOST_CODES = 20  # that wait at the same time
# Of an address, failures included. Not over all addresses: ten wrong codes would lock everybody else out.
REDEMPTIONS_A_MINUTE = 10
# Over all addresses, so that what is counted stays small. Of 8e11 codes, 20 wait for five minutes.
ALL_REDEMPTIONS_A_MINUTE = 1_000
ATTEMPTS = "pairing.attempts_by_address"
MINUTE = timedelta(minutes=1)

# What tokens of a scope may call, by endpoint, and what only the owner may.
ENDPOINTS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
UPLOADING, READING, OWNER_ONLY = (frozenset(ENDPOINTS[name]) for name in ("upload", "read", "owner_only"))


class Caller(NamedTuple):
    """Who sends a request: the owner, or the holder of the token `token_id`."""

    scope: shapes.Scope | Literal["owner"]
    token_id: int | None = None
    device_id: str = ""  # of the token; empty: it has sent none yet
    owns_device: bool = False

    @property
    def uploads_only(self) -> bool:
        return self.scope == "upload"


OWNER = Caller("owner")

# ------------------------------------------------------------------------------------------- the owner's key


def api_key(settings: Settings) -> str | None:
    """The key that requests must carry; None in dev mode without a key. Opens a database scope."""
    if settings.api_key:
        return settings.api_key
    if settings.dev_mode:
        if not settings.binds_to_loopback:
            log.warning(
                "DEV MODE WITHOUT A KEY on %s: anyone who reaches it can read and delete everything",
                settings.address,
            )
        return None
    with database.scope():
        return generated_api_key()


def generated_api_key() -> str:
    """The key where none is set: made by the first call and stored. Needs a scope."""
    return stored_secret("api_key")


def key_matches(authorization: str, key: str | None) -> bool:
    """Whether the header `authorization`, as WSGI gives it, carries `key`; always true where `key` is None.

    Digests are compared in constant time, so the duration reveals neither the key's content nor its length.
    Clients send a non-ASCII key as UTF-8 or Latin-1, so both are accepted.
    """
    if key is None:
        return True
    scheme, _, given = authorization.partition(" ")
    digest = hashlib.sha256(given.strip().encode("latin-1", "replace")).digest()
    spellings = (key.encode("utf-8", "surrogateescape"), key.encode("latin-1", "backslashreplace"))
    equal = [hmac.compare_digest(digest, hashlib.sha256(spelling).digest()) for spelling in spellings]
    return scheme.lower() == "bearer" and any(equal)


def check_without_key(headers: Headers, origins: Collection[str], *, reads_json: bool) -> None:
    """Refuse what foreign web pages can send, through a person's browser, to a service without a key.

    A page can send forms and text to any address (CSRF), and can reach this one under its own name (DNS
    rebinding). So the addressed host must be this machine, the browser must not report another site, and a
    JSON body (`reads_json`) must have its content type, which a browser sends to another site only after
    asking it. Pages of `origins` are allowed.

    Raises `NotAuthenticated`, or `BadInput` for the content type.
    """
    origin = headers.get("Origin")
    is_foreign = origin not in origins and (
        headers.get("Sec-Fetch-Site") == "cross-site" or (origin is not None and not _is_local(origin))
    )
    if is_foreign or not _is_local(f"http://{headers.get('Host', '')}"):
        raise NotAuthenticated(
            "A service without an API key answers requests to localhost only, and none of other websites."
        )
    content_type = headers.get("Content-Type", "").partition(";")[0].strip().lower()
    if reads_json and content_type != "application/json":
        raise BadInput("body: must have the content type application/json")


def is_trusted_origin(origin: str, origins: Collection[str]) -> bool:
    """Whether a browser's page of this `origin` may speak with the service: one of the configured `origins`,
    or one of this machine.

    The host that a request is addressed to proves nothing: after DNS rebinding it is the page's own.
    """
    return origin in origins or _is_local(origin)


def _is_local(address: str) -> bool:
    """Whether the host of a URL is this machine."""
    try:
        parts = urlsplit(address)
        return parts.hostname in LOCAL_HOSTS and parts.username is None
    except ValueError:
        return False


# --------------------------------------------------------------------------------------------------- tokens


def holder(authorization: str, *, now: datetime) -> Caller | None:
    """The holder of the token in the header `authorization`; None when it carries no valid token.

    Opens a database scope, and notes that the token was used.
    """
    scheme, _, given = authorization.partition(" ")
    if scheme.lower() != "bearer" or not given.strip().startswith(TOKEN_PREFIX):
        return None
    with database.scope():
        token = Token.get_or_none(Token.digest == crypto.secret_digest(given.strip()))
        if token is None:
            return None
        if token.last_used_at is None or now - token.last_used_at >= USE_STEP:
            with database.unless_full():
                Token.update(last_used_at=now).where(Token.id == token.id).execute()
        return Caller(cast(shapes.Scope, token.scope), token.id, token.device_id, token.owns_device)


def allowed_scopes(endpoint: str) -> list[str]:
    """The scopes whose tokens may call an endpoint that is not open to everybody."""
    return [
        *(["upload"] if endpoint in UPLOADING else []),
        *(["read"] if endpoint in READING else []),
        *(["full"] if endpoint not in OWNER_ONLY else []),
    ]


def check_scope(caller: Caller, endpoint: str | None) -> None:
    """Raises `Forbidden` when `caller` may not call this endpoint; None is an unknown path."""
    if caller is OWNER or endpoint is None or caller.scope in allowed_scopes(endpoint):
        return
    raise Forbidden(
        "Only the owner's API key may do this."
        if endpoint in OWNER_ONLY
        else f"A token of the scope `{caller.scope}` may not do this."
    )


def caller() -> Caller:
    """Who sends the current request."""
    return cast(Caller, flask.g.caller)


def make_token(
    name: str, scope: shapes.Scope, *, now: datetime, device_id: str = "", is_paired: bool = False
) -> shapes.NewToken:
    """Make a token; the answer holds it this once. With a `device_id` it owns that device from the start, and
    replaces the tokens that could only upload for it. Raises `BadInput` when there are too many.
    """
    secret = TOKEN_PREFIX + secrets.token_urlsafe(32)
    with db.atomic():
        if Token.select().count() >= MOST_TOKENS:
            raise BadInput(f"name: there are {MOST_TOKENS} tokens already; revoke one first")
        described = {"name": name, "scope": scope, "device_id": device_id, "owns_device": bool(device_id)}
        token = Token.create(
            **described, is_paired=is_paired, digest=crypto.secret_digest(secret), created_at=now
        )
        if device_id:
            _replace_uploaders(device_id, by=token.id)
    log.info("token %d made, scope %s", token.id, scope)
    return shapes.of(token, shapes.NewToken, token=secret)


def tokens() -> list[shapes.TokenFields]:
    """All tokens, the newest first."""
    return [shapes.of(token, shapes.TokenFields) for token in Token.select().order_by(Token.id.desc())]


def rename(token_id: int, name: str) -> shapes.TokenFields:
    """Give a token another name; what it may do stays. Raises `NotFound`."""
    if not Token.update(name=name).where(Token.id == token_id).execute():
        raise NotFound("Token not found")
    return shapes.of(Token.get_by_id(token_id), shapes.TokenFields)


def revoke(token_id: int) -> None:
    """Revoke a token. Raises `NotFound`."""
    if not Token.delete().where(Token.id == token_id).execute():
        raise NotFound("Token not found")
    log.info("token %d revoked", token_id)


def use_device(caller: Caller, device_id: str) -> bool:
    """Note the first device that a token sends; returns whether `caller` may have all of this device: its
    duplicates and its sync state. The owner and tokens that may do more than upload may have every device.

    An upload token is of one device. It has it alone unless the owner or another token has used it before.
    Then it shares nothing but the name, except when it was paired under the device's name: then it is the
    same phone, paired anew, and takes the device over from the tokens that could only upload for it.
    Raises `Forbidden` when an upload token sends another device than its own.
    """
    if caller.token_id is None or (caller.device_id and not caller.uploads_only):
        return True
    if caller.uploads_only and device_id == NO_DEVICE:
        return False
    if caller.device_id not in ("", device_id):
        raise Forbidden(f"This token is of the device `{caller.device_id}` only.")
    if caller.owns_device:
        return True
    with db.atomic():
        token = Token.get_or_none(Token.id == caller.token_id)
        if token is None:
            raise NotAuthenticated("The token was revoked.")
        if caller.uploads_only and token.device_id not in ("", device_id):
            raise Forbidden(f"This token is of the device `{token.device_id}` only.")
        if not token.device_id:
            token.device_id = device_id
            token.save(only=[Token.device_id])
        if not caller.uploads_only:
            return True
        owns = not _is_used_by_others(device_id, token.id) or _is_paired_anew(token, device_id)
        if owns:
            Token.update(owns_device=True).where(Token.id == token.id).execute()
            _replace_uploaders(device_id, by=token.id)
    return owns


def check_device(caller: Caller, device_id: str) -> None:
    """As `use_device`, for a device as a whole. Raises `Forbidden` also when others have used it."""
    if not use_device(caller, device_id):
        raise Forbidden(
            f"The device `{device_id}` is used by others. Revoke their token, or pair this under its name."
        )


def _is_used_by_others(device_id: str, token_id: int) -> bool:
    """Whether the owner, or a token that still is there, has used a device."""
    others = Token.select(Token.id).where(Token.id != token_id)
    if others.where(Token.device_id == device_id).exists():
        return True
    uploaded = Photo.token_id.is_null() | Photo.token_id.in_(others)
    return bool(Photo.select().where(Photo.device_id == device_id, uploaded).exists())


def _is_paired_anew(token: Token, device_id: str) -> bool:
    """Whether `token` was paired under a device's name, as the device reports it or its token is called."""
    if not token.is_paired or not token.name:
        return False
    state = SyncState.get_or_none(SyncState.device_id == device_id)
    if state is not None and state.device_name == token.name:
        return True
    same = (Token.device_id == device_id) & (Token.name == token.name) & (Token.id != token.id)
    return bool(Token.select().where(same).exists())


def _replace_uploaders(device_id: str, *, by: int) -> None:
    """Revoke the older tokens that could only upload for a device: the token `by` takes their place."""
    older = (Token.device_id == device_id) & (Token.scope == "upload") & (Token.id < by)
    for (token_id,) in list(Token.delete().where(older).returning(Token.id).tuples().execute()):
        log.info("token %d revoked: token %d was paired for its device", token_id, by)


# --------------------------------------------------------------------------------------------------- pairing


def begin(
    name: str, scope: shapes.Scope, address: str, *, now: datetime, device_id: str = ""
) -> shapes.PairingFields:
    """A new code for a device that reaches the service at `address`; its token owns `device_id`, if given."""
    code = "".join(secrets.choice(CODE_LETTERS) for _ in range(CODE_LENGTH))
    with db.atomic():
        Pairing.delete().where(Pairing.expires_at <= now).execute()
        if Pairing.select().count() >= MOST_CODES:
            raise TooManyRequests(
                "Too many codes are waiting. Please come again in five minutes.", retry_after=300
            )
        described = {"name": name, "scope": scope, "device_id": device_id}
        row = Pairing.create(digest=crypto.secret_digest(code), **described, expires_at=now + CODE_AGE)
    url = f"{address}/#/pair/{code}"
    return shapes.of(row, shapes.PairingFields, code=code, url=url, qr=qr_drawn(url))


def redeem(code: str, device_name: str, address: str, *, clock: Callable[[], datetime]) -> shapes.Redeemed:
    """Exchange a pairing code for a new token, once, for a client at the network `address`. Raises
    `NotAuthenticated`, with one sentence for every reason, and `TooManyRequests`.
    """
    spelled = "".join(letter for letter in code.upper() if letter.isalnum())
    with db.atomic():
        # Read while the transaction holds the lock, so that parallel requests are counted in their order.
        now = clock()
        _count_redemption(_network(address), now)
    with db.atomic():
        # One statement takes the row, so that of parallel redemptions only one gets it.
        waiting = (Pairing.digest == crypto.secret_digest(spelled)) & (Pairing.expires_at > now)
        taken = list(Pairing.delete().where(waiting).returning(Pairing).execute())
        if not taken:
            raise NotAuthenticated("The code is wrong, used or older than five minutes. Ask for a new one.")
        (pairing,) = taken
        name = device_name.strip() or pairing.name
        token = make_token(name, pairing.scope, now=now, device_id=pairing.device_id, is_paired=True)
    return {"token": token["token"], "scope": token["scope"]}


def qr_lines(url: str) -> str:
    """`url` as a QR code for a terminal."""
    import segno  # imported only where somebody pairs a device

    out = io.StringIO()
    segno.make(url, error="m", micro=False).terminal(out, border=2, compact=True)
    return out.getvalue()


def qr_drawn(url: str) -> str:
    """`url` as a QR code in SVG."""
    import segno

    out = io.BytesIO()
    segno.make(url, error="m", micro=False).save(
        out, kind="svg", scale=4, border=2, light="#fff", xmldecl=False, nl=False
    )
    return out.getvalue().decode()


def _count_redemption(network: str, now: datetime) -> None:
    """Raises `TooManyRequests` past the limits. Counted in the database, for all workers."""
    moment = to_epoch_ms(now)
    since = moment - MINUTE // timedelta(milliseconds=1)
    # A later moment than now is from before the clock was set back: it counts until it is a minute away.
    recent: list[tuple[str, int]] = [
        (by, at) for by, at in stored_value(ATTEMPTS, []) if abs(at - moment) < moment - since
    ]
    by_this = sum(by == network for by, _ in recent)
    if by_this >= REDEMPTIONS_A_MINUTE or len(recent) >= ALL_REDEMPTIONS_A_MINUTE:
        raise TooManyRequests("Too many codes were tried. Please come again in a minute.", retry_after=60)
    store_value(ATTEMPTS, [*recent, (network, moment)])


def _network(address: str) -> str:
    """What a client can send from as it likes: its IPv4 address, or the /64 of its IPv6 address."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv6Address):
        if found.ipv4_mapped is None:
            return str(ipaddress.ip_network((found, 64), strict=False))
        found = found.ipv4_mapped
    return str(found)


def make_recipe(
    kind: recipes.Kind, address: str, certificate: shapes.CertificateFields | None, *, now: datetime
) -> shapes.RecipeFields:
    """A recipe for a program, with a new token that may only upload. `certificate` is the service's own."""
    token = make_token(recipes.TEXTS[kind]["name"], "upload", now=now)["token"]
    target = recipes.Target(address, token)
    parts = urlsplit(address)
    # At another host name there is a proxy with a certificate of its own.
    if certificate is not None and parts.scheme == "https" and parts.hostname in certificate["names"]:
        fingerprint = certificate["fingerprint"].replace(":", "").lower()
        target = target._replace(fingerprint=fingerprint, renewed=str(certificate["expires_at"])[:10])
    return recipes.made(kind, target)


# ----------------------------------------------------------------------------------------------------- routes

routes = Blueprint("access", __name__, url_prefix="/api")

Name = Annotated[str, Meta(min_length=1, max_length=100)]


class TokenRequest(msgspec.Struct):
    name: Name
    scope: shapes.Scope


class TokenName(msgspec.Struct):
    name: Name


Address = Annotated[
    str,
    Meta(
        pattern=r"^(https?://[A-Za-z0-9._~:\[\]-]{1,255}(/[A-Za-z0-9_~-]{1,64}){0,8})?\Z",
        description="the address by which the device reaches the service, like http://192.168.1.20:8000, "
        "with the path of a proxy; empty: that of this request",
    ),
]


PairedDevice = Annotated[
    str,
    Meta(
        pattern=r"^[A-Za-z0-9_]{0,256}\Z",
        description="the device that the token is for, which it takes over from older tokens that may only "
        "upload; empty: the first one that it sends",
    ),
]


class PairingRequest(msgspec.Struct):
    name: Annotated[str, Meta(max_length=100)] = ""
    scope: shapes.Scope = "full"
    address: Address = ""
    device_id: PairedDevice = ""


class RecipeRequest(msgspec.Struct):
    address: Address = ""


class Redemption(msgspec.Struct):
    code: Annotated[str, Meta(min_length=1, max_length=64)]
    device_name: Annotated[str, Meta(max_length=100)] = ""


@routes.get("/tokens")
@inputs.operation()
def list_tokens() -> shapes.TokenList:
    """List the tokens, the newest first, without their secrets. The owner's API key is not among them."""
    return {"tokens": tokens()}


@routes.post("/tokens")
@inputs.operation()
def add_token(body: TokenRequest) -> shapes.NewToken:
    """Make a token for a device or a program. The answer shows it this once."""
    return make_token(body.name, body.scope, now=utc_now())


@routes.patch("/tokens/<id:token_id>")
@inputs.operation(NotFound)
def rename_token(token_id: int, body: TokenName) -> shapes.TokenFields:
    """Rename a token. What it may do, and its secret, stay the same."""
    return rename(token_id, body.name)


@routes.delete("/tokens/<id:token_id>")
@inputs.operation(NotFound)
def remove_token(token_id: int) -> shapes.Done:
    """Revoke a token, at once. The next request that carries it is 401, in every worker."""
    revoke(token_id)
    return {"message": "Revoked"}


@routes.post("/pairing")
@inputs.operation(TooManyRequests)
def begin_pairing(body: PairingRequest) -> shapes.PairingFields:
    """Get a code, and its link as a QR code, by which a device gets a token. Valid for five minutes, once."""
    address = body.address or inputs.own_address()
    return begin(body.name, body.scope, address, device_id=body.device_id, now=utc_now())


@routes.post("/recipes/<kind>")
@inputs.operation(NotFound)
def add_recipe(kind: str, body: RecipeRequest) -> shapes.RecipeFields:
    """Get what a program needs to send screenshots here: a file or a line, with a new token that may only
    upload. An unknown `kind` is 404, and the answer names those that there are.
    """
    if kind not in recipes.KINDS:
        raise NotFound(f"There are recipes for {', '.join(recipes.KINDS)}.")
    address = body.address or inputs.own_address()
    return make_recipe(cast(recipes.Kind, kind), address, _certificate(), now=utc_now())


@routes.post("/pairing/redeem")
@inputs.operation(NotAuthenticated, TooManyRequests)
def redeem_code(body: Redemption) -> shapes.Redeemed:
    """Exchange a pairing code for a token; needs no key. The token is shown in this answer only. A wrong,
    used or expired code is 401, for every reason alike.
    """
    return redeem(body.code, body.device_name, flask.request.remote_addr or "", clock=utc_now)


def _certificate() -> shapes.CertificateFields | None:
    """The service's own certificate."""
    app = cast(Any, flask.current_app)  # `app.Application` has it
    return cast("shapes.CertificateFields | None", app.certificate.fields())
