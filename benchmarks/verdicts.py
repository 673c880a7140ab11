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
