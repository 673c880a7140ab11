"""Push: which devices want notifications, and one signed webhook call for each; `/api/push`.

Snaplore does not talk to phones. The operator names a webhook (a gateway of ntfy, Bark, a home automation)
and gets one POST per device and notification; without one a notification is a line in the log. The address is
the operator's own setting, so its host is trusted wherever it leads, and nothing else is: a redirect is a
failure, not a way.

What the network costs is bounded three times: a call, the tries of one device, and all devices together.
Devices are served side by side, so that one which fails costs the others nothing. `send` and `broadcast` open
the database by themselves, for a moment, and hold nothing of it while they wait; their callers have no scope
open.

Token, address and secret are never logged. Neither are the sentences of `net`, which name the host.
"""

import base64
import contextlib
import dataclasses
import hmac
import json
import logging
import secrets
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Annotated, Any, NamedTuple
from urllib.parse import urlsplit

import msgspec
from flask import Blueprint
from msgspec import UNSET, Meta, UnsetType

import database
import net
from clock import to_epoch_ms, utc_now
from errors import BadInput, NotFound, StartRefused, Unavailable
from loops import Places
from models import PushDevice
from settings import NAME, Settings, variable
from web import inputs, shapes

log = logging.getLogger(__name__)

CALL_SECONDS = 30.0  # by the contract
RETRY_DELAYS = (1.0, 3.0)  # seconds: a gateway that restarts is back by then
TRIES = len(RETRY_DELAYS) + 1
MAX_RETRY_AFTER = 10.0  # seconds; somebody waits for the answer of the broadcast
# All devices together, in seconds: what a hanging gateway may cost, and about when browsers and proxies give
# up.
BROADCAST_SECONDS = 60.0
THREADS = 8  # that wait for the network side by side
MOST_AT_ONCE = 2  # requests that may wait for a webhook: each holds one of the server's threads
BUSY_SECONDS = 10.0  # after which it is worth coming again

SECRET_PREFIX = "whsec_"  # noqa: S105 - how Standard Webhooks marks a secret that is written in base64


@dataclasses.dataclass(frozen=True)
class Notification:
    title: str
    body: str
    data: Mapping[str, Any] = dataclasses.field(default_factory=dict)


# By language; the Chinese texts are the contract's.
TEST = {
    "zh": Notification(f"{NAME} 测试通知", "这是一条测试推送通知"),
    "en": Notification(f"{NAME} test notification", "This is a test push notification"),
}
NEW_MESSAGE = {"zh": "新消息", "en": "New message"}
MOST_TITLES = 3  # of new notes that their notification names, by the contract


def announce(settings: Settings) -> None:
    """Say at start what has no effect. Raises `StartRefused` for an address or a secret with which no call
    could ever be made.
    """
    if settings.fcm_project_id or settings.fcm_credentials_json:
        names = f"{variable('fcm_project_id')} and {variable('fcm_credentials_json')}"
        log.info(
            "%s are reserved: the mobile push channel is inactive, notifications go to the webhook only",
            names,
        )
    _signing_key(settings.push_webhook_secret)
    if settings.push_webhook_url:
        try:
            _guard(settings.push_webhook_url).target(
                settings.push_webhook_url, field=variable("push_webhook_url")
            )
        except BadInput as problem:
            raise StartRefused(problem.detail) from None


def register(device_id: str, token: str, *, now: datetime, **more: str) -> None:
    """Keep a device, or take over what is given of one that is known; it was seen `now`.

    `more` may have its `platform`, `device_name`, `device_model` and `app_version`.
    """
    given = {"device_id": device_id, "token": token, **more, "last_seen": now}
    # One statement, so that an app that starts twice at once is one device.
    PushDevice.insert(**given, created_at=now).on_conflict(
        conflict_target=[PushDevice.device_id], update=given
    ).execute()


def devices() -> list[PushDevice]:
    """All devices, the one that was seen last first."""
    return list(PushDevice.select().order_by(PushDevice.last_seen.desc(), PushDevice.id.desc()))


def delete(device_id: str) -> None:
    """Forget a device. Raises `NotFound`."""
    if not PushDevice.delete().where(PushDevice.device_id == device_id).execute():
        raise NotFound("Device not found")


def broadcast(settings: Settings, notification: Notification) -> int:
    """Send to every device; the number of those that it was sent to. Waits at most about `BROADCAST_SECONDS`."""
    with database.scope():
        targets = devices()
    return _deliver(settings, targets, notification)


def send(settings: Settings, device_id: str, notification: Notification) -> bool:
    """Send to one device; False when it is unknown or the webhook did not take it."""
    device = _find(device_id)
    return device is not None and _deliver(settings, [device], notification) == 1


def send_test(settings: Settings, device_id: str) -> bool:
    """Send a test notification; whether the webhook took it. Raises `NotFound`."""
    device = _find(device_id)
    if device is None:
        raise NotFound("Device not found")
    return _deliver(settings, [device], TEST[settings.language]) == 1


def new_notes(titles: Sequence[str], language: str) -> Notification:
    """What is told when the reasoner has saved articles; `titles` are all of theirs."""
    count, named = len(titles), titles[:MOST_TITLES]
    data = {"count": count, "type": "new_dynamics"}
    if language == "zh":
        return Notification(f"{NAME} 新笔记", f"已生成 {count} 篇笔记：{'、'.join(named)}", data)
    return Notification(
        f"{NAME} new notes", f"{count} new {'note' if count == 1 else 'notes'}: {', '.join(named)}", data
    )


# --------------------------------------------------------------------------------------------------- delivery


class _Attempt(NamedTuple):
    """What one call came to; `failure` is empty when the notification was taken."""

    failure: str = ""
    passing: bool = False  # another try may succeed
    retry_after: float = 0.0  # seconds that the webhook asks for


class _Webhook:
    """The operator's webhook while one notification is sent. Used by several threads, which share what is
    left of its time.
    """

    def __init__(self, url: str, settings: Settings):
        self._url = url
        self._key = _signing_key(settings.push_webhook_secret)
        self._client = net.Client(_guard(self._url))
        self._until = time.monotonic() + BROADCAST_SECONDS

    def take(self, device: PushDevice, notification: Notification) -> bool:
        """Whether the webhook took it, in one of `TRIES`. A failure of the network ends here, in the log."""
        body = json.dumps(_payload(device, notification)).encode()
        message_id = f"msg_{secrets.token_hex(16)}"
        for delay in (*RETRY_DELAYS, None):
            attempt = self._call(body, message_id)
            if not attempt.failure:
                return True
            if delay is None or not attempt.passing:
                break
            pause = max(delay, attempt.retry_after)
            if time.monotonic() + pause >= self._until:
                break
            time.sleep(pause)
        log.warning("push to device %r failed: %s", device.device_id, attempt.failure)
        return False

    def close(self) -> None:
        self._client.close()

    def _call(self, body: bytes, message_id: str) -> _Attempt:
        left = self._until - time.monotonic()
        if left <= 0:
            return _Attempt("no time was left")
        headers = {} if self._key is None else _signed(self._key, message_id, body, now=utc_now())
        try:
            # Only the status matters: what else the webhook says is not waited for.
            with self._client.open(
                "POST", self._url, body, headers=headers, deadline=min(CALL_SECONDS, left)
            ) as answer:
                status, retry_after = answer.status, _retry_after(answer.headers)
        except net.CallFailed as problem:
            # One that was silent until the deadline may have delivered it already, and has had its time.
            return _Attempt(type(problem).__name__, passing=isinstance(problem, net.Unreachable))
        if 200 <= status < 300:
            return _Attempt()
        return _Attempt(f"HTTP status {status}", status == 429 or status >= 500, retry_after)


def _deliver(settings: Settings, targets: Sequence[PushDevice], notification: Notification) -> int:
    url = settings.push_webhook_url
    if not url:
        for device in targets:
            log.info(
                "push %r to device %r: only logged, no webhook is set", notification.title, device.device_id
            )
        return len(targets)
    with (
        contextlib.closing(_Webhook(url, settings)) as webhook,
        ThreadPoolExecutor(THREADS, "push") as threads,
    ):
        return sum(threads.map(lambda device: webhook.take(device, notification), targets))


def _payload(device: PushDevice, notification: Notification) -> dict[str, Any]:
    """The contract's body of a webhook call."""
    return {
        "device_id": device.device_id,
        "device_name": device.device_name or device.device_id,
        "platform": device.platform,
        "token": device.token,
        "title": notification.title,
        "body": notification.body,
        "data": dict(notification.data),
    }


def _signed(key: bytes, message_id: str, body: bytes, *, now: datetime) -> dict[str, str]:
    """The headers of Standard Webhooks 1.0 (symmetric signatures): the receiver knows by the id what it has
    got already.
    """
    seconds = to_epoch_ms(now) // 1000
    digest = hmac.digest(key, b"%s.%d.%s" % (message_id.encode(), seconds, body), "sha256")
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(seconds),
        "webhook-signature": f"v1,{base64.b64encode(digest).decode()}",
    }


def _signing_key(secret: str | None) -> bytes | None:
    """The key of a secret: what stands after `whsec_`, decoded, or a secret without that mark, byte by byte
    as it is.

    Raises `StartRefused` for what is marked and is no base64: signed with a guess, every call would be
    refused by the receiver.
    """
    if not secret:
        return None
    if not secret.startswith(SECRET_PREFIX):
        return secret.encode("utf-8", "surrogateescape")  # also what the environment had in no encoding
    encoded = secret.removeprefix(SECRET_PREFIX).rstrip("=")
    try:
        key = base64.b64decode(encoded + "=" * (-len(encoded) % 4), validate=True)
    except ValueError:
        key = b""
    if not key:
        raise StartRefused(f"{variable('push_webhook_secret')}: must be base64 after {SECRET_PREFIX}")
    return key


def _guard(url: str) -> net.Guard:
    """The webhook's host is trusted, also on the LAN and without https."""
    return net.Guard(allowed_hosts=[urlsplit(url).hostname or ""])


def _retry_after(headers: Mapping[str, str]) -> float:
    """Seconds, at most `MAX_RETRY_AFTER`; 0 when none are given. A date says no more than the ordinary delay
    in so short a time.
    """
    value = headers.get("Retry-After", "").strip()
    return min(float(value), MAX_RETRY_AFTER) if value.isascii() and value.isdigit() else 0.0


def _find(device_id: str) -> PushDevice | None:
    with database.scope():
        return PushDevice.get_or_none(PushDevice.device_id == device_id)


# Of requests that wait for a webhook. The reasoner needs none: its cycles never overlap.
_places = Places(MOST_AT_ONCE, full="Other notifications are still on their way.", retry_after=BUSY_SECONDS)


# ----------------------------------------------------------------------------------------------------- routes

routes = Blueprint("push", __name__, url_prefix="/api/push")

# A path cannot tell a slash at its beginning from the one before it, and what is registered can be deleted.
DEVICE_ID = r"^(?!/)[^\x00-\x1f\x7f-\x9f]{1,256}\Z"
DeviceId = Annotated[
    str, Meta(pattern=DEVICE_ID, description="1 to 256 characters, none of control, and no slash first")
]
Text256 = Annotated[str, Meta(max_length=256)]


class Registration(msgspec.Struct):
    device_id: DeviceId
    token: Annotated[str, Meta(min_length=1, max_length=1024)]
    platform: Annotated[str, Meta(max_length=64)] | UnsetType = UNSET
    device_name: Text256 | UnsetType = UNSET
    device_model: Text256 | UnsetType = UNSET
    app_version: Annotated[str, Meta(max_length=32)] | UnsetType = UNSET


class Target(msgspec.Struct):
    device_id: DeviceId


class BroadcastText(msgspec.Struct):
    title: Text256 = ""
    body: Annotated[str, Meta(max_length=4_096)] = ""  # what the push services of phones take, all in all


@routes.post("/register")
@inputs.operation()
def register_device(body: Registration) -> shapes.Registered:
    """Register a device, or refresh one that is registered; what is not given stays."""
    register(**inputs.given(body), now=utc_now())
    return {"message": "Registered", "device_id": body.device_id}


@routes.get("/devices")
@inputs.operation()
def list_devices() -> shapes.DeviceList:
    """List the registered devices, the one that was seen last first."""
    return {"devices": [_shown(device) for device in devices()]}


@routes.delete("/devices/<path:device_id>")
@inputs.operation(NotFound)
def remove_device(device_id: str) -> shapes.Done:
    """Forget a device."""
    delete(device_id)
    return {"message": "Deleted"}


@routes.post("/test")
@inputs.without_scope
@inputs.operation(NotFound, Unavailable)
def send_test_notification(body: Target) -> shapes.TestSent:
    """Send a test notification to a device."""
    with _places.one():
        success = send_test(inputs.settings(), body.device_id)
    return {"message": "Sent" if success else "The webhook did not take it", "success": success}


@routes.post("/broadcast")
@inputs.without_scope
@inputs.operation(Unavailable)
def broadcast_message(query: BroadcastText, body: BroadcastText) -> shapes.BroadcastSent:
    """Send a notification to every device. The texts may stand in the query or in the body, which wins."""
    settings = inputs.settings()
    title, text = body.title or query.title or NAME, body.body or query.body or NEW_MESSAGE[settings.language]
    with _places.one():
        count = broadcast(settings, Notification(title, text))
    return {"message": f"Sent to {count} {'device' if count == 1 else 'devices'}", "count": count}


def _shown(device: PushDevice) -> shapes.DeviceFields:
    return shapes.of(device, shapes.DeviceFields, device_name=device.device_name or device.device_id)
