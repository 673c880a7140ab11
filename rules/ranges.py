"""Weights of a learned vote over measures: each measure has ranges, and each range counts something."""

import bisect
from collections.abc import Mapping

import msgspec


class Ranges(msgspec.Struct):
    """What no measure counts, and for each measure where its ranges end and what each counts."""

    start: float
    measures: dict[str, tuple[list[float], list[float]]]

    def total(self, measured: Mapping[str, float]) -> float:
        """What all measures of a text count together."""
        total = self.start
        for name, (ends, counts) in self.measures.items():
            total += counts[bisect.bisect_right(ends, measured[name])]
        return total
