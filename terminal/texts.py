"""What the client prints: texts from screenshots and services, made safe for a terminal.

A screenshot may show anything, and so may its recognised text: an escape sequence that renames the window,
fills the clipboard or rewrites the lines above. So nothing is printed before it went through `safe`, `lines`
or `as_json`, which leave printable signs only. All functions take linear time.
"""

import json
import unicodedata
from collections.abc import Collection
from datetime import UTC, datetime

import click

from text import one_line

MOST = 2_000  # signs of a text in one line
MOST_LINES = 2_000


def safe(value: object) -> str:
    """`value`, a text or a number, in one line. Empty for anything else."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return ""
    return one_line(_printable(str(value)[:MOST]))


def lines(value: object) -> list[str]:
    """The lines of a text, without empty ones at its ends."""
    return [safe(line) for line in value.strip().splitlines()[:MOST_LINES]] if isinstance(value, str) else []


def as_json(value: object) -> str:
    """`value` as JSON that a terminal shows without obeying it, and that any program reads as it was."""
    return "".join(
        sign if sign.isprintable() or sign == "\n" else json.dumps(sign)[1:-1]
        for sign in json.dumps(value, ensure_ascii=False, indent=2)
    ).replace("\x7f", "\\u007f")


def as_table(data: bytes) -> str:
    """A table of a service as a terminal shows it without obeying it."""
    return "\n".join(_printable(line) for line in data.decode(errors="replace").splitlines())


def wrapped(text: str, width: int) -> list[str]:
    """`text` in lines of at most `width` cells, broken at spaces where there are some."""
    made: list[str] = []
    for word in text.split(" ") if text else ():
        if made and cells(made[-1]) + 1 + cells(word) <= width:
            made[-1] += f" {word}"
            continue
        made.append("")
        for sign in word:
            if cells(made[-1]) + cells(sign) > width:
                made.append("")
            made[-1] += sign
    return made


def cells(text: str) -> int:
    """The cells of a terminal that `text` takes: two for a Chinese sign, none for an accent."""
    return sum(
        0 if unicodedata.combining(sign) else 2 if unicodedata.east_asian_width(sign) in "WF" else 1
        for sign in text
    )


def emphasised(text: str, words: Collection[str]) -> str:
    """`text` with `words` in bold. Click takes the emphasis away where no terminal reads it."""
    small = text.lower()
    if len(small) != len(text):  # a few letters have longer small forms: places would be wrong
        return text
    bold = [False] * len(text)
    for word in words:
        at = small.find(word.lower()) if word else -1
        while at >= 0:
            bold[at : at + len(word)] = [True] * len(word)
            at = small.find(word.lower(), at + len(word))
    parts, begin = [], 0
    for at in range(1, len(text) + 1):
        if at == len(text) or bold[at] != bold[begin]:
            parts.append(click.style(text[begin:at], bold=True) if bold[begin] else text[begin:at])
            begin = at
    return "".join(parts)


def local_time(stamp: object) -> str:
    """A timestamp of the service (UTC) as the local time of this machine; empty if it is none."""
    try:
        moment = datetime.fromisoformat(str(stamp)).replace(tzinfo=UTC)
        return f"{moment.astimezone():%Y-%m-%d %H:%M}"
    except (ValueError, OverflowError, OSError):
        return ""


def _printable(text: str) -> str:
    """`text` without signs that control a terminal, and without those that turn or hide other signs."""
    return "".join(
        sign if sign.isprintable() else "" if unicodedata.category(sign) in ("Cf", "Cs") else " "
        for sign in text
    )
