"""What an import shows behind its bar: its rate, and how much of everything stored is searchable."""

import time

import database
from analysis import listing
from clock import utc_now

LOOKS_AGAIN = 1.0  # seconds between two looks at how much is searchable


class Pace:
    """The text behind the bar of one import."""

    def __init__(self) -> None:
        self._begun = self._looked_at = time.monotonic()
        self._files = 0
        self._searchable = ""

    def shown(self, file: object | None) -> str:
        """For the bar, which calls this for each file."""
        now = time.monotonic()
        if file is not None:
            self._files += 1
            if now - self._looked_at >= LOOKS_AGAIN:
                self._looked_at = now
                self._searchable = f"; {searchable()}"
        return f"{self._files / max(now - self._begun, 0.001):.0f} files/s{self._searchable}"


def searchable() -> str:
    """How many screenshots are searchable, and when all will be."""
    with database.scope():
        found = listing.statistics(now=utc_now())
    line = f"searchable: {found['searchable']:,} of {found['total_photos']:,}"
    match found["seconds_left"]:
        case None | 0:
            return line
        case seconds if seconds < 90:
            return f"{line}, about a minute left"
        case seconds if seconds < 5400:
            return f"{line}, about {seconds / 60:.0f} minutes left"
        case seconds:
            return f"{line}, about {seconds / 3600:.0f} hours left"
