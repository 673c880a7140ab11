"""The spend ledger: calls and tokens by day, purpose and model, and the daily limit; `/api/usage`.

Every answered call counts, also one whose answer could not be used. The embedded model costs nothing and adds
no row. Days are UTC.
"""

from datetime import datetime, timedelta

import msgspec
import peewee

from engines.findings import Usage
from models import SpendLedger
from settings import Settings

USED_UP = "The day's tokens are used up; the count starts again at midnight UTC."


def record(usage: Usage, *, purpose: str, model: str, now: datetime) -> None:
    """Add `usage` to the ledger of the day. Without a call, no row is added."""
    if not usage.calls:
        return
    counts = msgspec.structs.asdict(usage)
    more = {getattr(SpendLedger, name): getattr(SpendLedger, name) + count for name, count in counts.items()}
    SpendLedger.insert(day=now.date().isoformat(), purpose=purpose, model=model, **counts).on_conflict(
        conflict_target=[SpendLedger.day, SpendLedger.purpose, SpendLedger.model], update=more
    ).execute()


def tokens_today(*, now: datetime) -> int:
    """Tokens of all calls on the day of `now`."""
    tokens = peewee.fn.SUM(SpendLedger.prompt_tokens + SpendLedger.completion_tokens)
    return SpendLedger.select(tokens).where(SpendLedger.day == _day(now)).scalar() or 0


def used_up(settings: Settings, *, now: datetime) -> bool:
    """Whether the day's tokens are spent. The call that crosses the limit is finished: its tokens are known
    only afterwards.
    """
    return bool(settings.daily_token_limit) and tokens_today(now=now) >= settings.daily_token_limit


def resets_in(*, now: datetime) -> float:
    """Seconds until the day of `now` ends and the count starts again."""
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
    return (midnight - now).total_seconds()


def usage(days: int, *, now: datetime) -> list[SpendLedger]:
    """The ledger's rows of the last `days` days, today included, newest first."""
    rows = SpendLedger.select().where(SpendLedger.day > _day(now - timedelta(days=days)))
    return list(rows.order_by(SpendLedger.day.desc(), SpendLedger.purpose, SpendLedger.model))


def _day(moment: datetime) -> str:
    return moment.date().isoformat()
