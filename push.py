"""Push: the devices registered for notifications, and one signed webhook call per device; `/api/push`.

Snaplore does not send to phones itself. The operator configures a webhook (a gateway such as ntfy or Bark, or
home automation), which receives one POST per device and notification. Without a webhook, a notification is
only logged. The address is the operator's setting, so its host is trusted even on the LAN, but no other host
is: a redirect counts as a failure.

Time is limited per call, per device, and for all devices together. Devices are served in parallel, so that a
failure of one does not delay the others. `send` and `broadcast` open their own short database scopes and hold
none while they wait, so they must be called without an open scope.

Token, address and secret are never logged. Neither are the messages of `net`, which name the host.
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

import access
import database
import gate
import net
from clock import to_epoch_ms, utc_now
from errors import BadInput, NotFound, StartRefused, Unavailable
from loops import Places
from models import PushDevice
from settings import NAME, Settings, variable
from web import inputs, shapes

log = logging.getLogger(__name__)

CALL_SECONDS = 30.0  # by the contract
RETRY_DELAYS = (1.0, 3.0)  # seconds; enough for a restart of the gateway
MAX_RETRY_AFTER = 10.0  # seconds, because a client waits for the answer of the broadcast
# Seconds for all devices together, with a gateway that hangs: about when browsers and proxies give up.
BROADCAST_SECONDS = 60.0
THREADS = 8  # parallel calls of one notification
MOST_AT_ONCE = 2  # requests that may wait for a webhook: each holds one of the server's threads
BUSY_SECONDS = 10.0  # for Retry-After

SECRET_PREFIX = "whsec_"  # noqa: S105 - not a secret: the mark of base64 in Standard Webhooks


@dataclasses.dataclass(frozen=True)
class Notification:
    """What a device shows, and data for its app."""

    title: str
    body: str
    data: Mapping[str, Any] = dataclasses.field(default_factory=dict)


# By language; the Chinese texts are the contract's.
TEST = {
    "zh": Notification(f"{NAME} 测试通知", "这是一条测试推送通知"),
    "en": Notification(f"{NAME} test notification", "This is a test push notification"),
}
# Instead of what is sensitive: of a whole notification, and of a note's title.
HELD_BACK = {
    "zh": Notification(NAME, "有一条包含敏感内容的通知，请在应用中查看。"),
    "en": Notification(NAME, "A notification has something sensitive in it. It is shown in the app."),
}
UNNAMED = {"zh": "关于一张敏感截图", "en": "About a sensitive screenshot"}
NEW_MESSAGE = {"zh": "新消息", "en": "New message"}
MOST_TITLES = 3  # titles of new notes in their notification, by the contract


def announce(settings: Settings) -> None:
    """Check the settings at start; log those without effect. Raises `StartRefused` for a useless one."""
    if settings.fcm_project_id or settings.fcm_credentials_json:
        names = f"{variable('fcm_project_id')} and {variable('fcm_credentials_json')}"
        log.info(
            "%s are reserved: the mobile push channel is inactive, notifications go to the webhook only",
            names,
        )
    signing_key(settings.push_webhook_secret)
    if settings.push_webhook_url:
        try:
            _guard(settings.push_webhook_url).target(
                settings.push_webhook_url, field=variable("push_webhook_url")
            )
        except BadInput as problem:
            raise StartRefused(problem.detail) from None


def register(device_id: str, token: str, *, now: datetime, **more: str) -> None:
    """Register a device, or update the given fields of a registered one; `now` is when it was last seen.

    `more` may have its `platform`, `device_name`, `device_model` and `app_version`.
    """
    given = {"device_id": device_id, "token": token, **more, "last_seen": now}
    # One statement, so that two simultaneous registrations of a device make one row.
    PushDevice.insert(**given, created_at=now).on_conflict(
        conflict_target=[PushDevice.device_id], update=given
    ).execute()


def devices() -> list[PushDevice]:
    """All devices, the last seen first."""
    return list(PushDevice.select().order_by(PushDevice.last_seen.desc(), PushDevice.id.desc()))


def delete(device_id: str) -> None:
    """Delete a device. Raises `NotFound`."""
    if not PushDevice.delete().where(PushDevice.device_id == device_id).execute():
        raise NotFound("Device not found")


def broadcast(settings: Settings, notification: Notification) -> int:
    """Send to every device; returns to how many it was sent, after about `BROADCAST_SECONDS` at most."""
    with database.scope():
        targets = devices()
    return _deliver(settings, targets, notification)


def send(settings: Settings, device_id: str, notification: Notification) -> bool:
    """Send to one device; False when it is unknown or the webhook did not accept the call."""
    device = _find(device_id)
    return device is not None and _deliver(settings, [device], notification) == 1


def send_test(settings: Settings, device_id: str) -> bool:
    """Send a test notification; returns whether the webhook accepted it. Raises `NotFound`."""
    device = _find(device_id)
    if device is None:
        raise NotFound("Device not found")
    return _deliver(settings, [device], TEST[settings.language]) == 1


def new_notes(titles: Sequence[str], language: str) -> Notification:
    """The notification about new notes; `titles` are those of all of them."""
    count, named = len(titles), titles[:MOST_TITLES]
    data = {"count": count, "type": "new_dynamics"}
    if language == "zh":
        return Notification(f"{NAME} 新笔记", f"已生成 {count} 篇笔记：{'、'.join(named)}", data)
    return Notification(
        f"{NAME} new notes", f"{count} new {'note' if count == 1 else 'notes'}: {', '.join(named)}", data
    )


# --------------------------------------------------------------------------------------------------- delivery


class _Attempt(NamedTuple):
    """The result of one call; `failure` is empty when the webhook accepted it."""

    failure: str = ""
    passing: bool = False  # a retry may succeed
    retry_after: float = 0.0  # seconds, from the webhook's Retry-After


class _Webhook:
    """The operator's webhook while one notification is sent. Several threads share the remaining time."""

    def __init__(self, url: str, settings: Settings):
        self._url = url
        self._key = signing_key(settings.push_webhook_secret)
        self._client = net.Client(_guard(self._url))
        self._until = time.monotonic() + BROADCAST_SECONDS

    def take(self, device: PushDevice, notification: Notification) -> bool:
        """Call the webhook, again after each of `RETRY_DELAYS`; returns whether it accepted."""
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
            return _Attempt("the time limit was reached")
        headers = {} if self._key is None else signed(self._key, message_id, body, now=utc_now())
        try:
            # Only status and headers matter; the body is not read.
            with self._client.open(
                "POST", self._url, body, headers=headers, deadline=min(CALL_SECONDS, left)
            ) as answer:
                status, pause = answer.status, retry_after(answer.headers, MAX_RETRY_AFTER)
        except net.CallFailed as problem:
            # No retry after a timeout: the notification may have been delivered, and the time is used up.
            return _Attempt(type(problem).__name__, passing=isinstance(problem, net.Unreachable))
        if 200 <= status < 300:
            return _Attempt()
        return _Attempt(f"HTTP status {status}", status == 429 or status >= 500, pause)


def _deliver(settings: Settings, targets: Sequence[PushDevice], notification: Notification) -> int:
    texts = (notification.title, notification.body, *map(str, notification.data.values()))
    if gate.is_closed(settings) and gate.withholds_text(*texts):
        notification = HELD_BACK[settings.language]
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


def signed(key: bytes, message_id: str, body: bytes, *, now: datetime) -> dict[str, str]:
    """The headers of Standard Webhooks 1.0 with a symmetric signature. The id marks a repetition."""
    seconds = to_epoch_ms(now) // 1000
    digest = hmac.digest(key, b"%s.%d.%s" % (message_id.encode(), seconds, body), "sha256")
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(seconds),
        "webhook-signature": f"v1,{base64.b64encode(digest).decode()}",
    }


def signing_key(secret: str | None) -> bytes | None:
    """The key of a secret: the decoded base64 after `whsec_`, or the bytes of a secret without this prefix.

    Raises `StartRefused` for a prefixed secret that is not base64: the receiver would reject every signature.
    """
    if not secret:
        return None
    if not secret.startswith(SECRET_PREFIX):
        return secret.encode("utf-8", "surrogateescape")  # restores bytes that are not UTF-8
    encoded = secret.removeprefix(SECRET_PREFIX).rstrip("=")
    try:
        key = base64.b64decode(encoded + "=" * (-len(encoded) % 4), validate=True)
    except ValueError:
        key = b""
    if not key:
        raise StartRefused(f"{variable('push_webhook_secret')}: must be base64 after {SECRET_PREFIX}")
    return key


def _guard(url: str) -> net.Guard:
    """A guard that trusts the webhook's host, even on the LAN and without https."""
    return net.Guard(allowed_hosts=[urlsplit(url).hostname or ""])


def retry_after(headers: Mapping[str, str], most: float) -> float:
    """The seconds of Retry-After, at most `most`; 0 without them. A date is ignored."""
    value = headers.get("Retry-After", "").strip()
    return min(float(value[:20]), most) if value.isascii() and value.isdigit() else 0.0


def _find(device_id: str) -> PushDevice | None:
    with database.scope():
        return PushDevice.get_or_none(PushDevice.device_id == device_id)


# For requests that wait for a webhook. The reasoner needs no place: its cycles never overlap.
_places = Places(MOST_AT_ONCE, full="Other notifications are still on their way.", retry_after=BUSY_SECONDS)


# ----------------------------------------------------------------------------------------------------- routes

routes = Blueprint("push", __name__, url_prefix="/api/push")

# No leading slash: DELETE has the id in its path, where two slashes would be merged.
DEVICE_ID = r"^(?!/)[^\x00-\x1f\x7f-\x9f]{1,256}\Z"
DeviceId = Annotated[
    str, Meta(pattern=DEVICE_ID, description="1 to 256 characters, no control characters, no leading slash")
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
    body: Annotated[str, Meta(max_length=4_096)] = ""  # the usual limit of mobile push services


@routes.post("/register")
@inputs.operation()
def register_device(body: Registration) -> shapes.Registered:
    """Register a device, or update a registered one; omitted fields stay. A registered `device_id` is
    accepted by uploads and sync state as it is written here.
    """
    access.check_device(access.caller(), body.device_id)
    register(**inputs.given(body), now=utc_now())
    return {"message": "Registered", "device_id": body.device_id}


@routes.get("/devices")
@inputs.operation()
def list_devices() -> shapes.DeviceList:
    """List the registered devices, the last seen first. A device without a name is listed under its
    `device_id`.
    """
    return {
        "devices": [
            shapes.of(device, shapes.DeviceFields, device_name=device.device_name or device.device_id)
            for device in devices()
        ]
    }


@routes.delete("/devices/<path:device_id>")
@inputs.operation(NotFound)
def remove_device(device_id: str) -> shapes.Done:
    """Delete a device. It gets no more notifications. Its photos stay."""
    delete(device_id)
    return {"message": "Deleted"}


@routes.post("/test")
@inputs.without_scope
@inputs.operation(NotFound, Unavailable)
def send_test_notification(body: Target) -> shapes.TestSent:
    """Send a test notification to a device. Without a configured webhook the notification is only logged,
    which counts as sent.
    """
    with _places.one():
        success = send_test(inputs.settings(), body.device_id)
    return {"message": "Sent" if success else "The webhook did not accept it", "success": success}


@routes.post("/broadcast")
@inputs.without_scope
@inputs.operation(Unavailable)
def broadcast_message(query: BroadcastText, body: BroadcastText) -> shapes.BroadcastSent:
    """Send a notification to every device. Texts in the body take precedence over texts in the query."""
    settings = inputs.settings()
    title, text = body.title or query.title or NAME, body.body or query.body or NEW_MESSAGE[settings.language]
    with _places.one():
        count = broadcast(settings, Notification(title, text))
    return {"message": f"Sent to {count} {'device' if count == 1 else 'devices'}", "count": count}
