"""A figure with its floor and its budget, and the table of all of them."""

import dataclasses
from typing import Any

MISS = "MISS"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Figure:
    """One line of the table. The budget limits the figure itself (`at_most`) or its ratio to the floor."""

    what: str
    measured: float
    unit: str
    floor: float | None = None
    floor_is: str = ""
    at_most: float | None = None
    ratio_at_most: float | None = None
    ratio_at_least: float | None = None

    @property
    def ratio(self) -> float | None:
        return self.measured / self.floor if self.floor else None

    @property
    def budget(self) -> str:
        if self.at_most is not None:
            return f"under {self.at_most:g} {self.unit}"
        if self.ratio_at_most is not None:
            return f"at most {self.ratio_at_most:g} x"
        return f"at least {self.ratio_at_least:g} x" if self.ratio_at_least is not None else ""

    @property
    def verdict(self) -> str:
        """`ok` or `MISS`; empty if there is no budget."""
        if not self.budget:
            return ""
        missed = (
            (self.at_most is not None and self.measured >= self.at_most)
            or (self.ratio_at_most is not None and self.ratio > self.ratio_at_most)
            or (self.ratio_at_least is not None and self.ratio < self.ratio_at_least)
        )
        return MISS if missed else "ok"

    def row(self) -> tuple[str, ...]:
        floor = f"{_number(self.floor)} {self.unit}, {self.floor_is}" if self.floor is not None else ""
        ratio = f"{self.ratio:.2f}" if self.ratio is not None else ""
        return self.what, f"{_number(self.measured)} {self.unit}", floor, ratio, self.budget, self.verdict

    def as_dict(self) -> dict[str, Any]:
        return {
            **dataclasses.asdict(self),
            "ratio": self.ratio,
            "budget": self.budget,
            "verdict": self.verdict,
        }


def table(figures: list[Figure]) -> str:
    """The figures as text, one line each, in aligned columns."""
    rows = [("what", "measured", "floor", "ratio", "budget", ""), *(figure.row() for figure in figures)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]
    return "\n".join([lines[0], "-" * sum((*widths, 2 * len(widths) - 2)), *lines[1:]])


def _number(value: float) -> str:
    """`value` with three significant digits."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"
