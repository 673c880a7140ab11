"""What a term of the search index is: folding, and cutting text into words and bigrams.

Documents and queries pass through here alike, so a term is found by whatever folds to the same. Scripts that
put no spaces between words are cut into overlapping pairs of characters: without a dictionary it is the only
cut that cannot be wrong, and any piece of such a text, two characters or longer, is a phrase of pairs.
Everything else is a word of letters and digits; an address like `nadiyar@c.im` is the phrase of its words.
"""

import itertools
import re
import unicodedata

# Thai, Lao, Myanmar, Khmer, Hangul, Han, kana, bopomofo.
_UNSPACED = (
    "\u0e01-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17d3\u2e80-\u2fdf\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u318f"
    "\u31a0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff"
)
_LETTER = rf"[^\W_{_UNSPACED}]"
# a part of a word, though not for `\w`
_VOWEL_SIGN = "[\u0300-\u036f\u0483-\u0487\u0610-\u061a\u0900-\u0963\u0966-\u0dff]"
# Cut at 64 letters, which only codes have. C++ and C# are words, too.
_WORD = rf"{_LETTER}{{1,64}}(?:{_VOWEL_SIGN}{{1,8}}{_LETTER}{{0,64}}){{0,32}}(?:(?<=\b[A-Za-z])(?:\+\+|\#(?!\w)))?"
RUN = re.compile(rf"[{_UNSPACED}]+")
PIECE = re.compile(rf"{_WORD}|[{_UNSPACED}]+")
_FIRST_UNSPACED = "\u0e01"
_BROKEN_RUN = re.compile(rf"(?<=[{_UNSPACED}])\s+(?=[{_UNSPACED}])")
_SEAM = re.compile(r"[a-z](?=[A-Z0-9])|[A-Z](?=[A-Z][a-z]|[0-9])|[0-9](?=[A-Za-z])")
_LINK = re.compile(r"['’-](?<=[^\W\d_]['’-])\n?(?=[^\W\d_])")
_ACCENT = re.compile("[\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u064b-\u0652]")
_NOT_A_LETTER = re.compile(rf"[^\w\n{_UNSPACED}]+|_+")

# What Unicode does not decompose. º is how an OCR reads °; NFKC would make a letter of it.
_FOLDED = str.maketrans(
    {
        "ø": "o",
        "Ø": "O",
        "ł": "l",
        "Ł": "L",
        "đ": "d",
        "Đ": "D",
        "ð": "d",
        "þ": "th",
        "æ": "ae",
        "Æ": "Ae",
        "œ": "oe",
        "Œ": "Oe",
        "ı": "i",
    }
    | dict.fromkeys("“”„«»「」", '"')
    | {"º": "°"}
    | dict.fromkeys("\u00ad\u200b\u200c\u200d\u2060\ufeff")  # soft hyphen, zero width
)
_FOLDABLE = re.compile(f"[{''.join(map(chr, _FOLDED))}]")


def fold(text: str) -> str:
    """`text` without the differences that a searcher does not mean: width, accents, ligatures. Case stays: it
    shows seams.
    """
    if text.isascii():
        return text
    if _FOLDABLE.search(text):  # seldom, and `translate` takes ten times as long
        text = text.translate(_FOLDED)
    text = unicodedata.normalize("NFD", unicodedata.normalize("NFKC", text))
    # Back to NFC: only Western, Hebrew and Arabic marks were taken off; kana keep their voicing, Hangul its
    # syllables.
    return unicodedata.normalize("NFC", _ACCENT.sub("", text))


def fold_lines(texts: list[str]) -> str:
    """Texts, a line each, folded; where a script has no spaces, words go on over the ends of lines."""
    folded = fold("\n".join(texts))
    return folded if folded.isascii() else _BROKEN_RUN.sub("", folded)


def cut(folded: str) -> list[str]:
    """The terms of a folded text, in order."""
    pieces = PIECE.findall(folded.casefold())
    if folded.isascii():
        return pieces
    terms: list[str] = []
    for piece in pieces:
        if piece[0] >= _FIRST_UNSPACED and len(piece) > 1 and RUN.match(piece):
            terms += map("".join, itertools.pairwise(piece))
        else:
            terms.append(piece)
    return terms


def parts(folded: str, terms: list[str]) -> list[str]:
    """Terms beyond `terms` under which the text is found as well: the words of PixelSocial and
    Keepass2Android; e-mail, don't and words broken at the end of a line as one; the single characters of
    pairs.
    """
    found = set(cut(_SEAM.sub(r"\g<0> ", folded)))
    linked, links = _LINK.subn("", folded)
    if links:
        found.update(cut(linked))
    if not folded.isascii():
        found.update(*RUN.findall(folded))
    return sorted(found.difference(terms))


def is_word(term: str) -> bool:
    """Whether a term is a word, and no pair or single character of a script without spaces."""
    return term[0] < _FIRST_UNSPACED or not RUN.match(term)


def squeeze(folded: str) -> str:
    """Lines without what an OCR drops, adds or confuses: spaces, punctuation, 0 and o, 1, l and i."""
    return _NOT_A_LETTER.sub("", folded.casefold()).replace("0", "o").replace("1", "l").replace("i", "l")
