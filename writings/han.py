"""Chinese characters: traditional ones as simplified ones, and what is meant by their sounds (pinyin).

The tables are data with their sources, in `han.toml`. Who searches for 车票 also wants 車票, and who has no
Chinese keyboard at hand writes `chepiao`, `chē piào` or `che1 piao4`.
"""

import functools
import re
import tomllib
from pathlib import Path

MOST_SYLLABLES = 8  # of a word
MOST_WAYS = 4  # in which a word is divided into syllables: `xian` is one or two

_LONGEST = 6  # letters of a syllable: zhuang
_ALONE = "ae"  # letters that are a syllable inside a word
_TONE = re.compile(r"(?<=[a-z])[1-5]")

_TABLE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
_SIMPLIFIED = {other: line[0] for line in _TABLE["traditional"].split() for other in line[1:]}
_TRADITIONAL = re.compile(f"[{''.join(_SIMPLIFIED)}]")


def simplified(text: str) -> str:
    """`text` with simplified characters in place of traditional ones; as long as before."""
    # Most texts have none, and `str.translate` takes several times as long to find that.
    return _TRADITIONAL.sub(lambda found: _SIMPLIFIED[found[0]], text)


def syllables(word: str) -> list[list[str]]:
    """The ways to read a word as syllables of pinyin, the longest first. `v` is ü, which is indexed as u."""
    plain = _TONE.sub("", word)
    if not (plain.isascii() and plain.isalpha()):
        return []
    return _divided(plain.replace("lv", "lu").replace("nv", "nu"), MOST_SYLLABLES)[:MOST_WAYS]


def characters(syllable: str) -> str:
    """The simplified characters that are read so, whatever their tone, the most frequent first."""
    return _characters().get(syllable, "")


def _divided(letters: str, most: int) -> list[list[str]]:
    if not letters:
        return [[]]
    if not most:
        return []
    return [
        [letters[:end], *rest]
        for end in range(min(_LONGEST, len(letters)), 0, -1)
        if letters[:end] in _characters() and (end > 1 or letters[0] in _ALONE)
        for rest in _divided(letters[end:], most - 1)
    ]


@functools.cache
def _characters() -> dict[str, str]:
    return dict(line.split(" ") for line in _TABLE["readings"].split("\n") if line)
