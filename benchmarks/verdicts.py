"""What the load may see and what it may not: answers, memory. The clients judge by it request by request,
`load` in the end.
"""

import re
import statistics
from collections.abc import Mapping, Sequence

# For what a service may ask to come again: a rotation, as many chats as it takes, an answer that is still
# awaited.
REASONS = re.compile(
    r"The data folder is being worked on|Too many chats are going on|This conversation still waits"
)
LIMITED = ("/api/chat/send",)  # what the clients call of that which has a rate

# The start is left out: each of the threads has a database connection whose cache of 4 MB fills with use, and
# Pillow, msgspec and the allocator reach their size with the first pictures.
WARM_UP = 0.25


def problem(path: str, status: int, headers: Mapping[str, str], text: str) -> str | None:
    """Why this answer should not be; None for one that may. Status 0: there was none."""
    comes_again = "Retry-After" in headers
    if 200 <= status < 300 or status == 304:
        return None
    if (status == 429 and path in LIMITED and comes_again) or (
        status == 503 and REASONS.search(text) and comes_again
    ):
        return None
    return f"{status} {text[:200]}"


def growth(samples: Sequence[float]) -> float:
    """The median of the last third against that of the first, after the warm-up."""
    warm = samples[int(len(samples) * WARM_UP) :]
    third = max(1, len(warm) // 3)
    return statistics.median(warm[-third:]) / statistics.median(warm[:third])
