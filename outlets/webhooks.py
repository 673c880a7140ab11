"""Webhooks: what happens here is sent to the addresses that the owner has registered, signed as Standard
Webhooks 1.0 describes; `/api/webhooks`.

An event is queued in the transaction in which it happens, so it is sent if and only if that is stored, also
when the process is killed in between: at least once, always with the same `webhook-id`, by which a receiver
recognises a repetition. The queue holds ids and no texts. A message is made when it is sent, from what is
stored then: what was deleted meanwhile is withdrawn, and of what is sensitive (`gate.py`) a receiver learns
the id and nothing else.

One loop of all processes sends. It makes one call for each webhook at a time, so a slow one hinders no other;
one that fails rests, longer each time. After `PATIENCE` without any success it is switched off, with a
sentence for the person. The addresses follow the rules of `net.py`: what is private must be allowed by the
setting. Addresses often hold a secret, so no log names one.

More than 550 lines, because an event, its delivery and its log follow one delivery through its states.
"""

import base64
import json
import logging
import secrets
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Annotated, Any, NamedTuple, cast, get_args

import msgspec
import peewee
from flask import Blueprint
from msgspec import Meta

import agenda
import database
import dynamics
import gate
import loops
import net
import photos
import push
from clock import iso, utc_now
from database import db
from errors import BadInput, NotFound, Unavailable
from locks import named_lock
from models import Delivery, Webhook
from settings import Settings, variable
from text import one_line, storable
from web import inputs, shapes

log = logging.getLogger(__name__)

ANALYSED: shapes.Event = "photo.analysed"
WRITTEN: shapes.Event = "note.written"
DUE: shapes.Event = "reminder.due"
EVENTS: tuple[shapes.Event, ...] = get_args(shapes.Event)
TEST = "webhook.test"

MOST_WEBHOOKS = 20
MOST_WAITING = 1_000  # deliveries of a webhook; further events are counted, and not sent
KEPT = 50  # deliveries of a webhook that are shown, and kept when they have ended
CALL_SECONDS = 10.0
THREADS = 4  # calls at the same time
LOOK_AGAIN = 2.0  # seconds until the loop looks for new events

# After each failure of a delivery, as Standard Webhooks suggests: about a day in all.
DELAYS = (
    *(timedelta(seconds=5), timedelta(minutes=5), timedelta(minutes=30)),
    *(timedelta(hours=hours) for hours in (2, 5, 10, 10)),
)
# After each failure in a row of a webhook that cannot be reached or is overloaded.
RESTS = (timedelta(seconds=5), timedelta(seconds=30), timedelta(minutes=5), timedelta(minutes=30))
LONGEST_REST = timedelta(hours=1)
LONGEST_WAIT = timedelta(days=1)  # a later time comes from a clock that was ahead
PATIENCE = timedelta(days=3)
LEAST_FAILURES = 5  # a clock that jumps must not switch a webhook off

REMINDED_AGAIN = timedelta(hours=6)  # the announcement of a slot that is repeated in it is the same one

GONE = 410
UNWANTED = "The receiver has answered that it wants no further events (HTTP status 410)."
SILENT = (
    "Nothing was accepted for {days} days; the last answer: {problem}. Switch it on when the receiver runs."
)
WITHDRAWN = "it was deleted before it was sent"
SWITCHED_OFF = "the webhook was switched off"

# ----------------------------------------------------------------------------------------------- the webhooks


def add(
    settings: Settings, url: str, events: Sequence[shapes.Event], name: str, *, now: datetime
) -> shapes.NewWebhook:
    """Register an address for events; only this answer holds its secret. Raises `BadInput`."""
    url = guard(settings).check_address(url, field="url")
    secret = push.SECRET_PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()
    with db.atomic():
        if Webhook.select().count() >= MOST_WEBHOOKS:
            raise BadInput(f"url: there are {MOST_WEBHOOKS} webhooks already; delete one first")
        webhook = Webhook.create(
            name=one_line(storable(name)) or net.host(url),
            url=url,
            secret=secret,
            events=" ".join(dict.fromkeys(events)),
            created_at=now,
        )
    log.info("webhook %d registered", webhook.id)
    return shapes.of(webhook, shapes.NewWebhook, events=webhook.events.split())


def every() -> list[shapes.WebhookFields]:
    """All webhooks in the order of their registration."""
    counted = Delivery.select(Delivery.webhook, peewee.fn.COUNT(Delivery.id)).where(
        Delivery.status == "waiting"
    )
    waiting = dict(cast("Iterable[tuple[int, int]]", counted.group_by(Delivery.webhook).tuples()))
    return [_shown(webhook, waiting.get(webhook.id, 0)) for webhook in Webhook.select().order_by(Webhook.id)]


def change(webhook_id: int, fields: dict[str, Any]) -> shapes.WebhookFields:
    """Change the name, the events, or whether it is on. One that is switched on starts anew; what waits for
    one that is switched off is not sent. Raises `NotFound`.
    """
    fields = dict(fields)
    if "events" in fields:
        fields["events"] = " ".join(dict.fromkeys(fields["events"]))
    if "name" in fields:
        fields["name"] = one_line(storable(fields["name"])) or net.host(_get(webhook_id).url)
    with db.atomic():
        _get(webhook_id)
        if fields.get("enabled"):
            fields |= {"problem": "", "failures": 0, "failing_since": None, "rests_until": None}
        if fields:
            Webhook.update(fields).where(Webhook.id == webhook_id).execute()
        if fields.get("enabled") is False:
            _give_up(webhook_id)
        return _shown(_get(webhook_id), _waiting(webhook_id))


def delete(webhook_id: int) -> None:
    """Delete a webhook with its log. Raises `NotFound`."""
    if not Webhook.delete().where(Webhook.id == webhook_id).execute():
        raise NotFound("Webhook not found")
    log.info("webhook %d deleted", webhook_id)


def deliveries(webhook_id: int) -> list[shapes.DeliveryFields]:
    """The last deliveries of a webhook, the newest first. Raises `NotFound`."""
    _get(webhook_id)
    found = Delivery.select().where(Delivery.webhook == webhook_id)
    return [_delivery(row) for row in found.order_by(Delivery.id.desc()).limit(KEPT)]


def send_again(webhook_id: int, delivery_id: int, *, now: datetime) -> shapes.DeliveryFields:
    """Queue a delivery once more, or at once if it waits, with the same `webhook-id`. Raises `NotFound`, and
    `BadInput` for a webhook that is switched off.
    """
    with db.atomic():
        webhook = _get(webhook_id)
        mine = (Delivery.id == delivery_id) & (Delivery.webhook == webhook_id)
        if not Delivery.select().where(mine).exists():
            raise NotFound("Delivery not found")
        if not webhook.enabled:
            raise BadInput("webhook_id: is switched off")
        Delivery.update(status="waiting", attempts=0, due_at=now, problem="").where(mine).execute()
        Webhook.update(rests_until=None).where(Webhook.id == webhook_id).execute()
        return _delivery(Delivery.get(mine))


def guard(settings: Settings) -> net.Guard:
    """The rules for the addresses of webhooks."""
    return net.Guard(
        dev_mode=settings.dev_mode,
        allowed_hosts=settings.webhook_allowed_hosts,
        setting=variable("webhook_allowed_hosts"),
    )


def forget_deliveries() -> None:
    """Delete the log and what waits; the webhooks stay."""
    Delivery.delete().execute()


# ------------------------------------------------------------------------------------------------- the events


def record(event: shapes.Event, subject: int, *, now: datetime) -> None:
    """Queue an event about the row `subject` for the webhooks that ask for it, in its transaction."""
    for webhook in Webhook.select().where(Webhook.enabled):
        if event in webhook.events.split():
            _queue(webhook.id, event, subject, now=now)


def remind(items: list[agenda.Item]) -> None:
    """Queue the reminders that are announced now. `agenda.reminded` may be sent more than once."""
    now = utc_now()
    recent = Delivery.select(Delivery.subject).where(
        Delivery.event == DUE, Delivery.created_at > now - REMINDED_AGAIN
    )
    known = {row.subject for row in recent}
    for item in items:
        if item.id not in known:
            record(DUE, item.id, now=now)


def _queue(webhook_id: int, event: str, subject: int, *, now: datetime) -> None:
    if _waiting(webhook_id) >= MOST_WAITING:
        Webhook.update(dropped=Webhook.dropped + 1).where(Webhook.id == webhook_id).execute()
        return
    _insert(webhook_id, event, subject, now=now)


def _insert(webhook_id: int, event: str, subject: int, *, now: datetime) -> Delivery:
    return Delivery.create(
        webhook=webhook_id,
        message_id=f"msg_{secrets.token_hex(16)}",
        event=event,
        subject=subject,
        status="waiting",
        due_at=now,
        created_at=now,
    )


def _waiting(webhook_id: int) -> int:
    return Delivery.select().where(Delivery.webhook == webhook_id, Delivery.status == "waiting").count()


# ----------------------------------------------------------------------------------------------- the messages


def _data(event: str, subject: int, settings: Settings) -> dict[str, Any] | None:
    """The data of a message about a row as it is now; None when the row is gone."""
    try:
        return _DATA[event](subject, gate.is_closed(settings))
    except NotFound:
        return None


def _photo(photo_id: int, gated: bool) -> dict[str, Any]:
    detail = photos.detail(photo_id)
    analysis = detail["analysis"]
    shown = {
        "title": detail["title"],
        "summary": detail["summary"],
        "app": analysis["app_name"],
        "category": analysis["content_category"],
        "intent": analysis["intent"],
        "filename": detail["filename"],
        "device_id": detail["device_id"],
        "taken_at": f"{detail['original_timestamp']}Z",
    }
    if gated and gate.withholds(gate.marks([photo_id]).get(photo_id, gate.Mark()), shown):
        return {"photo_id": photo_id, "sensitive": True}
    return {"photo_id": photo_id, "sensitive": False, **shown}


def _note(note_id: int, gated: bool) -> dict[str, Any]:
    note = dynamics.detail(note_id)
    cited = json.loads(note["source_photo_ids"])
    if gated and gate.withholds_any(cited, note["title"], note["summary"], note["content"]):
        return {"note_id": note_id, "sensitive": True}
    return {
        "note_id": note_id,
        "sensitive": False,
        "title": note["title"],
        "summary": note["summary"],
        "content": note["content"],
        "category": note["category"],
        "photo_ids": cited,
    }


def _reminder(item_id: int, gated: bool) -> dict[str, Any]:
    item = agenda.get(item_id)
    if item.dismissed:
        raise NotFound("It was dismissed")
    if gated and gate.withholds_any(item.photo_ids, item.title, item.quote):
        return {"agenda_id": item_id, "sensitive": True}
    names = ("photo_id", "kind", "title", "starts_at", "ends_at", "all_day", "quote")
    return {"agenda_id": item_id, "sensitive": False, **{name: getattr(item, name) for name in names}}


_TEST_DATA = {"message": "This is a test. Everything else has the same form."}
_DATA = {ANALYSED: _photo, WRITTEN: _note, DUE: _reminder, TEST: lambda *_: _TEST_DATA}


# ------------------------------------------------------------------------------------------------ the sending


class _Call(NamedTuple):
    """A delivery that is due, ready to be sent; without a body, there is nothing to send any more."""

    delivery_id: int
    webhook_id: int
    message_id: str
    url: str
    key: bytes
    body: bytes | None


class _Answer(NamedTuple):
    """The result of a call; `problem` is empty when the event was accepted."""

    status: int | None = None
    problem: str = ""
    rests: bool = False  # other events would fail now, too
    retry_after: float = 0.0  # seconds


def send_due(settings: Settings, *, clock: Callable[[], datetime] = utc_now) -> bool:
    """Send what is due, one event to each webhook; False when there was none. Needs that no scope is open."""
    with database.scope():
        if not _due(now=clock()):  # before the lock: an idle service writes nothing
            return False
    try:
        with named_lock(database.store().folder / "jobs", "webhooks", 0, busy="Another process sends."):
            with database.scope():
                calls = [_call_of(delivery, settings) for delivery in _due(now=clock())]
            with ThreadPoolExecutor(THREADS, "webhook") as threads:
                answers = list(threads.map(lambda call: _called(call, settings, clock()), calls))
            with database.scope():
                for call, answer in zip(calls, answers, strict=True):
                    _settle(call, answer, now=clock())
            return bool(calls)
    except Unavailable:
        return False


def loop(settings: Settings) -> loops.Loop:
    """The thread that sends; for the server process, after its fork."""
    return loops.Loop("webhooks", lambda: 0.0 if send_due(settings) else LOOK_AGAIN)


def send_test(settings: Settings, webhook_id: int, *, now: datetime) -> shapes.DeliveryFields:
    """Send a test event at once, and only once. Needs that no scope is open. Raises `NotFound`."""
    with database.scope(), db.atomic():
        _get(webhook_id)
        # Not waiting: the loop leaves it alone, and a kill leaves a failure in the log.
        delivery = _insert(webhook_id, TEST, webhook_id, now=now)
        Delivery.update(status="failed", problem="it was interrupted").where(
            Delivery.id == delivery.id
        ).execute()
        call = _call_of(delivery, settings)
    answer = _called(call, settings, now)
    with database.scope(), db.atomic():
        _record_answer(call, answer, "failed" if answer.problem else "delivered", now=now, due_at=now)
        _prune(webhook_id)
        return _delivery(Delivery.get_by_id(delivery.id))


def _due(*, now: datetime) -> list[Delivery]:
    """The delivery that is due first, of each webhook that does not rest."""
    found: list[Delivery] = []
    for webhook in Webhook.select().where(Webhook.enabled):
        rests = webhook.rests_until
        if rests is not None and now < rests <= now + LONGEST_WAIT:
            continue
        due = (Delivery.due_at <= now) | (Delivery.due_at > now + LONGEST_WAIT)
        waiting = (
            Delivery.select(Delivery, Webhook)
            .join(Webhook)
            .where(Delivery.webhook == webhook.id, Delivery.status == "waiting", due)
        )
        found.extend(waiting.order_by(Delivery.due_at, Delivery.id).limit(1))
    return found


def _call_of(delivery: Delivery, settings: Settings) -> _Call:
    webhook = delivery.webhook
    data = _data(delivery.event, delivery.subject, settings)
    body = None
    if data is not None:
        message = {"type": delivery.event, "timestamp": f"{iso(delivery.created_at)}Z", "data": data}
        body = json.dumps(message, ensure_ascii=False).encode()
    key = push.signing_key(webhook.secret) or b""
    return _Call(delivery.id, webhook.id, delivery.message_id, webhook.url, key, body)


def _called(call: _Call, settings: Settings, now: datetime) -> _Answer:
    if call.body is None:
        return _Answer()
    headers = push.signed(call.key, call.message_id, call.body, now=now)
    client = net.Client(guard(settings))
    try:
        # Only status and headers matter; the body is not read.
        with client.open("POST", call.url, call.body, headers=headers, deadline=CALL_SECONDS) as answer:
            status = answer.status
            retry_after = push.retry_after(answer.headers, LONGEST_REST.total_seconds())
    except BadInput as problem:  # the settings allow this address no longer
        return _Answer(problem=problem.detail, rests=True)
    except net.CallFailed as problem:
        return _Answer(problem=_PROBLEMS.get(type(problem), "the call failed"), rests=True)
    finally:
        client.close()
    if 200 <= status < 300:
        return _Answer(status)
    return _Answer(status, f"HTTP status {status}", status == 429 or status >= 500, retry_after)


# Without the host, which the messages of `net` name: these are shown beside the address.
_PROBLEMS: dict[type[Exception], str] = {
    net.AddressBlocked: "the name leads to a private address",
    net.Unreachable: "the receiver cannot be reached",
    net.TimedOut: f"no answer within {CALL_SECONDS:.0f} s",
}


def _settle(call: _Call, answer: _Answer, *, now: datetime) -> None:
    """Record how a call has ended, unless the webhook was deleted meanwhile."""
    with db.atomic():
        webhook = Webhook.get_or_none(Webhook.id == call.webhook_id)
        delivery = Delivery.get_or_none((Delivery.id == call.delivery_id) & (Delivery.status == "waiting"))
        if webhook is None or delivery is None:
            return
        if call.body is None:
            _record_answer(call, _Answer(problem=WITHDRAWN), "withdrawn", now=now, due_at=now)
        elif not answer.problem:
            _record_answer(call, answer, "delivered", now=now, due_at=now)
            _count_success(webhook, now=now)
        else:
            pause = max(
                DELAYS[min(delivery.attempts, len(DELAYS) - 1)], timedelta(seconds=answer.retry_after)
            )
            is_last = delivery.attempts >= len(DELAYS)
            _record_answer(call, answer, "failed" if is_last else "waiting", now=now, due_at=now + pause)
            _count_failure(webhook, answer, now=now)
        _prune(webhook.id)


def _record_answer(call: _Call, answer: _Answer, status: str, *, now: datetime, due_at: datetime) -> None:
    Delivery.update(
        status=status,
        attempts=Delivery.attempts + (call.body is not None),
        due_at=due_at,
        tried_at=now if call.body is not None else None,
        answer=answer.status,
        problem=answer.problem,
    ).where(Delivery.id == call.delivery_id).execute()


def _count_success(webhook: Webhook, *, now: datetime) -> None:
    if webhook.failing_since is None:
        return
    Webhook.update(failures=0, failing_since=None, rests_until=None).where(Webhook.id == webhook.id).execute()
    # The receiver is back: what has waited for it is due.
    waiting = (Delivery.webhook == webhook.id) & (Delivery.status == "waiting")
    Delivery.update(due_at=now).where(waiting).execute()


def _count_failure(webhook: Webhook, answer: _Answer, *, now: datetime) -> None:
    since, failures = webhook.failing_since or now, webhook.failures + 1
    fields: dict[str, Any] = {"failures": failures, "failing_since": since}
    if answer.rests:
        rest = RESTS[failures - 1] if failures <= len(RESTS) else LONGEST_REST
        fields["rests_until"] = now + max(rest, timedelta(seconds=answer.retry_after))
    problem = UNWANTED if answer.status == GONE else ""
    if now - since >= PATIENCE and failures >= LEAST_FAILURES:
        problem = SILENT.format(days=PATIENCE.days, problem=answer.problem)
    if problem:
        fields |= {"enabled": False, "problem": problem}
        log.warning("webhook %d is switched off: %s", webhook.id, answer.problem)
    Webhook.update(fields).where(Webhook.id == webhook.id).execute()
    if problem:
        _give_up(webhook.id)


def _give_up(webhook_id: int) -> None:
    """What waits is not sent: when the webhook is switched on again, it would be old."""
    waiting = (Delivery.webhook == webhook_id) & (Delivery.status == "waiting")
    Delivery.update(status="failed", problem=SWITCHED_OFF).where(waiting).execute()
    _prune(webhook_id)


def _prune(webhook_id: int) -> None:
    """Delete all but the last deliveries that have ended."""
    ended = (Delivery.webhook == webhook_id) & (Delivery.status != "waiting")
    newest = Delivery.select(Delivery.id).where(ended).order_by(Delivery.id.desc())
    oldest = newest.offset(KEPT - 1).limit(1).scalar()
    if oldest is not None:
        Delivery.delete().where(ended, Delivery.id < oldest).execute()


def _get(webhook_id: int) -> Webhook:
    webhook = Webhook.get_or_none(Webhook.id == webhook_id)
    if webhook is None:
        raise NotFound("Webhook not found")
    return webhook


def _shown(webhook: Webhook, waiting: int) -> shapes.WebhookFields:
    return shapes.of(webhook, shapes.WebhookFields, events=webhook.events.split(), waiting=waiting)


def _delivery(row: Delivery) -> shapes.DeliveryFields:
    next_at = iso(row.due_at) if row.status == "waiting" else None
    return shapes.of(row, shapes.DeliveryFields, next_at=next_at)


# For requests that wait for a receiver's answer.
_places = loops.Places(2, full="Other tests are still on their way.", retry_after=CALL_SECONDS)


# ----------------------------------------------------------------------------------------------------- routes

routes = Blueprint("webhooks", __name__, url_prefix="/api/webhooks")

Events = Annotated[list[shapes.Event], Meta(min_length=1, max_length=len(EVENTS))]
Name = Annotated[str, Meta(max_length=100)]


class WebhookRequest(msgspec.Struct):
    url: Annotated[str, Meta(max_length=net.MAX_URL_LENGTH, description=net.ABOUT_HOST)]
    events: Events
    name: Annotated[str, Meta(max_length=100, description="empty: the host")] = ""


class WebhookChange(msgspec.Struct):
    events: Events | None = None
    name: Name | None = None
    enabled: bool | None = None


@routes.get("")
@inputs.operation()
def index() -> shapes.WebhookList:
    """List the webhooks in the order of their registration, without their secrets. One that the service has
    switched off says why in `problem`.
    """
    return {"webhooks": every()}


@routes.post("")
@inputs.operation()
def register(body: WebhookRequest) -> shapes.NewWebhook:
    """Register an address that gets a signed POST for each event. The answer shows the secret of the
    signatures this once. The address must be public and https, unless the service's settings allow it.
    """
    return add(inputs.settings(), body.url, body.events, body.name, now=utc_now())


@routes.patch("/<id:webhook_id>")
@inputs.operation(NotFound)
def update(webhook_id: int, body: WebhookChange) -> shapes.WebhookFields:
    """Change the given fields of a webhook, or switch it on or off. Its secret stays the same."""
    return change(webhook_id, inputs.given(body))


@routes.delete("/<id:webhook_id>")
@inputs.operation(NotFound)
def remove(webhook_id: int) -> shapes.Done:
    """Delete a webhook with its log. What waits for it is not sent."""
    delete(webhook_id)
    return {"message": "Deleted"}


@routes.post("/<id:webhook_id>/test")
@inputs.without_scope
@inputs.operation(NotFound, Unavailable)
def send_test_event(webhook_id: int) -> shapes.DeliveryFields:
    """Send a test event at once; the answer is its delivery. It is not tried again when it fails."""
    with _places.one():
        return send_test(inputs.settings(), webhook_id, now=utc_now())


@routes.get("/<id:webhook_id>/deliveries")
@inputs.operation(NotFound)
def list_deliveries(webhook_id: int) -> shapes.DeliveryList:
    """List the last 50 deliveries of a webhook, the newest first. Their texts are not kept: a message is made
    when it is sent.
    """
    return {"deliveries": deliveries(webhook_id)}


@routes.post("/<id:webhook_id>/deliveries/<id:delivery_id>/send")
@inputs.operation(NotFound, BadInput)
def send_delivery_again(webhook_id: int, delivery_id: int) -> shapes.DeliveryFields:
    """Send a delivery once more, or at once if it waits, with the same `webhook-id`. A receiver recognises a
    repetition by that header.
    """
    return send_again(webhook_id, delivery_id, now=utc_now())
