"""Which results of the load are allowed: the clients judge each answer, and `load` the growth of memory."""

import re
import statistics
from collections.abc import Mapping, Sequence

# The allowed reasons for a 503: a key rotation, too many chats, a conversation whose answer is pending.
REASONS = re.compile(
    "The data folder is being worked on|Too many chats are running|previous message is still being answered"
)
LIMITED = ("/api/chat/send",)  # the rate-limited paths that the clients call

# The share of the samples that is left out at the start: the cache of each thread's database connection fills
# up to 4 MB with use, and Pillow, msgspec and the allocator reach their size with the first pictures.
WARM_UP = 0.25

MEGABYTE = 1_048_576
# Limit of what the processes may gain in an hour. The samples scatter even when nothing is gained, so that
# the slope of an hour is uncertain by some 5 MB, and that of minutes says nothing.
MOST_GAINED = 40 * MEGABYTE
LONG_ENOUGH = 1_800.0  # seconds from which on a slope is judged


def problem(path: str, status: int, headers: Mapping[str, str], text: str) -> str | None:
    """Why this answer is not allowed; None if it is. Status 0 means that there was no answer."""
    comes_again = "Retry-After" in headers
    if 200 <= status < 300 or status == 304:
        return None
    if (status == 429 and path in LIMITED and comes_again) or (
        status == 503 and REASONS.search(text) and comes_again
    ):
        return None
    return f"{status} {text[:200]}"


def growth(samples: Sequence[float]) -> float:
    """The median of the last third divided by that of the first, after the warm-up."""
    warm = samples[int(len(samples) * WARM_UP) :]
    third = max(1, len(warm) // 3)
    return statistics.median(warm[-third:]) / statistics.median(warm[:third])


def slope(times: Sequence[float], samples: Sequence[float]) -> float:
    """What the samples grow by in an hour, by least squares, after the warm-up. `times` are in seconds."""
    first = int(len(samples) * WARM_UP)
    return 3_600 * statistics.linear_regression(times[first:], samples[first:]).slope


def gains(slopes: Mapping[str, float], seconds: float) -> tuple[str, list[str]]:
    """The sentence about these slopes (kind of process -> bytes per hour) in a load of so many seconds, and
    the problems.
    """
    if seconds < LONG_ENOUGH:
        return f"its slope is measured from {LONG_ENOUGH / 60:.0f} minutes on", []
    rates = {kind: f"{kind} {gain / MEGABYTE:+.1f} MB per hour" for kind, gain in slopes.items()}
    sentence = (
        f"its slope after the warm-up, by least squares: {', '.join(rates.values())} "
        f"(at most {MOST_GAINED / MEGABYTE:+.0f} MB per hour for each)"
    )
    return sentence, [f"memory has grown: {rates[kind]}" for kind in slopes if slopes[kind] > MOST_GAINED]
