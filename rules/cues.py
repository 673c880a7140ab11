"""The words that say what a day on a screen is for (`words/cues.toml`): "due", "departs", 截止, 取件. Others
show that it is for nothing that is to come: "posted", "born", 下单.

Texts are folded (`days.folded`). A word is `weak` where it is on many screens for other reasons, such as
"dinner": then only a day that certainly is to come counts.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from rules import wordlists

BEHIND = frozenset("前之以")  # how a Chinese word begins that is right behind its day


class Cue(NamedTuple):
    """A word that says what a day is for. `kind` is "" where it is for nothing that is to come; one that is
    `weak` needs a day to come.
    """

    start: int
    end: int
    kind: str
    weak: bool


def cues_in(text: str, is_travel: bool) -> Iterator[Cue]:
    """The cues in a folded text, in its order; of those that overlap, the longest."""
    found = [
        Cue(*match.span(), kind, weak) for kind, weak, pattern in _CUES for match in pattern.finditer(text)
    ]
    if is_travel:
        found += [Cue(*match.span(), "", False) for match in _ARRIVAL.finditer(text)]
    end = 0
    for cue in sorted(found, key=lambda one: (one.start, -one.end, one.kind != "")):
        if cue.start >= end:
            end = cue.end
            yield cue


def of_label(label: str, is_travel: bool) -> Cue | None:
    """The cue of a folded label: one that says that nothing is to come, or else the last."""
    cues = [cue for cue in cues_in(label, is_travel) if not cue.kind or label[cue.start] not in BEHIND]
    return next((cue for cue in cues if not cue.kind), None) or (cues[-1] if cues else None)


_TABLE = wordlists.table("cues")


def _expression(latin: str, chinese: str) -> re.Pattern[str]:
    """Any of these alternatives, in any case; Latin ones as whole words."""
    one, other = (
        "|".join(re.split(r"\s\|\s", text.strip())).replace("{by}", _BY) for text in (latin, chinese)
    )
    return re.compile(rf"(?<![a-z])(?:{one})(?![a-z])|{other}", re.IGNORECASE)


def _words(name: str) -> re.Pattern[str]:
    return _expression(**_TABLE[name])


_BY = "(?:之前|以前|前)(?:来|到)?"  # after a day
_CUES: tuple[tuple[str, bool, re.Pattern[str]], ...] = (
    *((cue["kind"], cue["weak"], _expression(cue["latin"], cue["chinese"])) for cue in _TABLE["cues"]),
    ("", False, re.compile(r"(?:^|[·•|-] ?)[Bb]y [A-Z][\w.'-]{1,20} [A-Z]")),
    ("departure", True, re.compile(r"(?<![A-Z\d])[A-Z]{2} ?\d{3,4}(?![\d-])|(?<![A-Za-z])[GDCKTZ]\d{1,4}次")),
)
_ARRIVAL = _words("arrival")
TRAVEL = _words("travel")
CANCELLED = _words("cancelled")
EVENING = _words("evening")
EXPIRED = _words("expired")
YOURS = _words("yours")  # whose plan it is, in a sentence
LASTS = _words("lasts")
DATED = _words("dated")
UNTIL = re.compile(rf"{wordlists.any_in('cues', 'until', wordlists.START)}(?: the)?\s{{0,2}}$", re.IGNORECASE)
