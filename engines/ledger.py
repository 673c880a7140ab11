"""The spend ledger: calls and tokens by day, purpose and model, and the daily limit; `/api/usage`.

Every answered call counts, also one whose answer could not be used. The embedded model costs nothing and adds
no row. Days are UTC.
"""

from datetime import datetime, timedelta

import msgspec
import peewee

from database import db
from engines.configuration import LOCAL, Configuration
from engines.findings import Usage
from errors import Unavailable
from models import SpendLedger
from settings import Settings

USED_UP = "The day's tokens are used up; the count starts again at midnight UTC."


def record(usage: Usage, *, purpose: str, model: str, now: datetime) -> None:
    """Add `usage` to the ledger of the day. Without a call, no row is added."""
    if not usage.calls:
        return
    db.execute_sql(_ADD, (_day(now), purpose, model, *msgspec.structs.astuple(usage)))


def tokens_today(*, now: datetime) -> int:
    """Tokens of all calls on the day of `now`."""
    tokens = peewee.fn.SUM(SpendLedger.prompt_tokens + SpendLedger.completion_tokens)
    return SpendLedger.select(tokens).where(SpendLedger.day == _day(now)).scalar() or 0


def out_of_tokens(config: Configuration, settings: Settings, *, now: datetime) -> bool:
    """Whether the model of this configuration costs tokens, and the day's tokens are spent. The call that
    crosses the limit is finished.
    """
    limit = settings.daily_token_limit if config.provider != LOCAL else 0
    return bool(limit) and tokens_today(now=now) >= limit


def require_tokens(config: Configuration, settings: Settings, *, now: datetime) -> None:
    """Raises `Unavailable` until the next day when `out_of_tokens`."""
    if out_of_tokens(config, settings, now=now):
        midnight = now.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
        raise Unavailable(USED_UP, retry_after=(midnight - now).total_seconds())


def usage(days: int, *, now: datetime) -> list[SpendLedger]:
    """The ledger's rows of the last `days` days, today included, newest first."""
    rows = SpendLedger.select().where(SpendLedger.day > _day(now - timedelta(days=days)))
    return list(rows.order_by(SpendLedger.day.desc(), SpendLedger.purpose, SpendLedger.model))


_COUNTS = Usage.__struct_fields__
_ADD = f"""INSERT INTO spend_ledger (day, purpose, model, {", ".join(_COUNTS)})
    VALUES (?, ?, ?{", ?" * len(_COUNTS)}) ON CONFLICT (day, purpose, model) DO UPDATE
    SET {", ".join(f"{name} = {name} + excluded.{name}" for name in _COUNTS)}"""  # noqa: S608


def _day(moment: datetime) -> str:
    return moment.date().isoformat()
