"""What may be searched of a photo for somebody who must not learn what is sensitive on it: its texts without
that.

A search tells something even where its results are held back (`gate.py`): that there is one. Whoever may ask
often enough could spell out a card's number by its beginnings. So a remote model and other programs search a
sensitive photo only by what is left here, and nothing that was cut out changes what they are answered.

The rules find a secret where something names it. The same words may stand elsewhere by themselves, in a title
or a tag, so they are cut out of every text. And the rules do not find everything: of a photo on which they
have found something, no word with a digit in it is searched either, nor what follows a secret in its line.
"""

import re
from collections.abc import Iterable

import terms
from rules import sensitive
from text import encodable

_WORD = re.compile(rf"[^\s{terms.UNSPACED}]+")
_CUT = "\0"  # in place of each character of a secret
_GAP = "|"  # so that what was around it does not become a word


def redacted(texts: list[str], others: Iterable[str]) -> list[str]:
    """The texts of a photo without what is sensitive in them or in `others`, which are its too."""
    lines_of = [encodable(text).split("\n") for text in texts]
    findings = [sensitive.find(lines) for lines in lines_of]
    found = _words_of(lines_of, findings)
    more = [encodable(text).split("\n") for text in others]
    found |= _words_of(more, map(sensitive.find, more))
    for lines, in_text in zip(lines_of, findings, strict=True):
        for finding in in_text:
            line = lines[finding.line]
            lines[finding.line] = line[: finding.start] + _CUT * (len(line) - finding.start)

    def left(word: re.Match[str]) -> str:
        piece = word[0]
        if _CUT in piece or any(map(str.isdigit, piece)) or not found.isdisjoint(_words(piece)):
            return _GAP
        return piece

    return ["\n".join(_WORD.sub(left, line) for line in lines) for lines in lines_of]


def _words_of(texts: list[list[str]], findings: Iterable[list[sensitive.Finding]]) -> set[str]:
    """The words of what was found in the lines of texts."""
    return {
        word
        for lines, in_text in zip(texts, findings, strict=True)
        for finding in in_text
        for word in _words(lines[finding.line][finding.start : finding.end])
    }


def _words(text: str) -> set[str]:
    folded = terms.fold(text)
    return {*terms.cut(folded), *terms.parts(folded, [])}
