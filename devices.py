"""The devices that upload photos, and how far each has synced; `/api/photos/devices` and
`/api/photos/sync-state`.

An id consists of letters, digits and underscores. Real phones have others (`samsung_SM-G991B_1`), so an id
that was registered for notifications is accepted as it is.
"""

import re
from datetime import datetime
from typing import Annotated

import msgspec
import peewee
from flask import Blueprint

import access
from clock import iso, to_epoch_ms, utc_now
from errors import BadInput
from models import PushDevice, SyncState
from web import inputs, shapes

DEVICE_ID = r"^[A-Za-z0-9_]{1,256}\Z"
MAX_NAME = 255  # characters of a name or source that are stored for display

Name = Annotated[str, msgspec.Meta(max_length=1024)]
EpochMs = Annotated[str, msgspec.Meta(pattern=r"^[0-9]{0,15}\Z", description="epoch milliseconds, in digits")]
DeviceId = Annotated[
    str,
    msgspec.Meta(
        description="1 to 256 letters, digits or underscores, or the id of a device registered for push",
    ),
]


def check_id(device_id: str) -> None:
    """Raises `BadInput` for an id that is neither made of the accepted characters nor registered."""
    registered = PushDevice.select().where(PushDevice.device_id == device_id)
    if not re.match(DEVICE_ID, device_id) and not registered.exists():
        raise BadInput(
            "device_id: must be 1 to 256 letters, digits or underscores, or the id of a device that is "
            "registered for push"
        )


def synced() -> list[shapes.SyncedDevice]:
    """Every device that has synced, the latest first."""
    states = SyncState.select().order_by(SyncState.last_sync_time.desc(), SyncState.device_id)
    return [shapes.of(state, shapes.SyncedDevice) for state in states]


def sync_state(device_id: str) -> shapes.SyncProgress:
    """How far a device has synced. An unknown device has synced nothing."""
    state = SyncState.get_or_none(SyncState.device_id == device_id) or SyncState(device_id=device_id)
    newest = state.last_synced_timestamp
    return shapes.of(state, shapes.SyncProgress, last_synced_ts_ms=to_epoch_ms(newest) if newest else 0)


def set_sync_start(device_id: str, since: datetime | None, *, device_name: str, now: datetime) -> None:
    """Set the time from which a device syncs; None syncs everything."""
    named = {"device_name": device_name[:MAX_NAME]} if device_name else {}
    state = {"last_synced_timestamp": since, "last_sync_time": now, **named}
    SyncState.insert(device_id=device_id, **state).on_conflict(
        conflict_target=[SyncState.device_id], update=state
    ).execute()


def note_upload(device_id: str, taken: datetime | None, *, device_name: str, new: int, now: datetime) -> None:
    """Advance a device's sync state to a picture taken at `taken`, and its total by `new`: 1, or 0 for a
    picture that was stored before. None: the uploader may not move the device's time or name it.
    """
    named = {"device_name": device_name[:MAX_NAME]} if device_name and taken else {}
    newest: object = SyncState.last_synced_timestamp
    if taken is not None:
        newest = peewee.fn.MAX(peewee.fn.COALESCE(SyncState.last_synced_timestamp, ""), iso(taken))
    SyncState.insert(
        device_id=device_id, last_synced_timestamp=taken, last_sync_time=now, total_synced=new, **named
    ).on_conflict(
        conflict_target=[SyncState.device_id],
        update={
            "last_synced_timestamp": newest,
            "last_sync_time": now,
            "total_synced": SyncState.total_synced + new,
            **named,
        },
    ).execute()


def forget_all() -> None:
    """Delete the sync states of all devices."""
    SyncState.delete().execute()


# ----------------------------------------------------------------------------------------------------- routes

routes = Blueprint("devices", __name__, url_prefix="/api/photos")


class SyncQuery(msgspec.Struct):
    device_id: DeviceId


class SyncForm(msgspec.Struct):
    device_id: DeviceId
    since_ms: EpochMs = ""
    device_name: Name = ""


@routes.get("/devices")
@inputs.operation()
def list_devices() -> shapes.SyncedDevices:
    """List the devices that have synced, the latest first. A device appears with its first upload or its
    first sync state.
    """
    return {"devices": synced()}


@routes.get("/sync-state")
@inputs.operation()
def show_sync_state(query: SyncQuery) -> shapes.SyncProgress:
    """Show how far a device has synced. A device that has never uploaded is not an error: it has null, 0 and
    0.
    """
    check_id(query.device_id)
    access.check_device(access.caller(), query.device_id)
    return sync_state(query.device_id)


@routes.post("/sync-state")
@inputs.takes_files(largest=0)
@inputs.operation()
def change_sync_state(form: SyncForm) -> shapes.SyncProgress:
    """Set the time from which a device syncs; 0 or no time syncs everything. The answer is the new state.
    Uploads later than this time move it forward again.
    """
    check_id(form.device_id)
    access.check_device(access.caller(), form.device_id)
    now = utc_now()
    since = inputs.moment("since_ms", form.since_ms) if form.since_ms.strip("0") else None
    set_sync_start(form.device_id, since, device_name=form.device_name, now=now)
    return sync_state(form.device_id)
