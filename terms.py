"""The terms of the search index: folding of case and accents, and tokenising into words and bigrams.

Documents and queries are folded and tokenised by the same functions, so both yield the same terms. Text in
scripts without spaces between words becomes overlapping pairs of characters (bigrams): word boundaries would
need a dictionary, and any piece of such a text of two or more characters is a phrase of bigrams. All other
text becomes words of letters and digits; an address like `nadiyar@c.im` is the phrase of its words.
"""

import itertools
import re
import unicodedata

from writings import han

# Thai, Lao, Myanmar, Khmer, Hangul, Han, kana, bopomofo.
UNSPACED = (
    "\u0e01-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17d3\u2e80-\u2fdf\u3005-\u3007\u3041-\u3096\u309d-\u309f"
    "\u30a1-\u30fa\u30fc-\u318f\u31a0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff"
)
_LETTER = rf"[^\W_{UNSPACED}]"
# Marks that are part of a word, though `\w` does not match them.
_VOWEL_SIGN = "[\u0300-\u036f\u0483-\u0487\u0610-\u061a\u0900-\u0963\u0966-\u0dff]"
# At most 64 letters: only codes are longer. C++ and C# are words, too.
_WORD = (
    rf"{_LETTER}{{1,64}}(?:{_VOWEL_SIGN}{{1,8}}{_LETTER}{{0,64}}){{0,32}}"
    r"(?:(?<=\b[A-Za-z])(?:\+\+|\#(?!\w)))?"
)
RUN = re.compile(rf"[{UNSPACED}]+")
PIECE = re.compile(rf"{_WORD}|[{UNSPACED}]+")
_FIRST_UNSPACED = "\u0e01"
# It begins with the space, though the look behind it comes first in the text: the search for spaces is fast.
_BROKEN_RUN = re.compile(rf"\s(?<=[{UNSPACED}]\s)\s*(?=[{UNSPACED}])")
_SEAM = re.compile(r"[a-z](?=[A-Z0-9])|[A-Z](?=[A-Z][a-z]|[0-9])|[0-9](?=[A-Za-z])")
_LINK = re.compile(r"['’-](?<=[^\W\d_]['’-])\n?(?=[^\W\d_])")
_ACCENT = re.compile("[\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u064b-\u0652]")
_NOT_A_LETTER = re.compile(rf"[^\w\n{UNSPACED}]+|_+")
LONGEST = 64  # letters of a term
_SIGNS = "。、・•·…–—‘’“”£€°©×→"  # frequent ones that are no letters
# What `cut` and `squeeze` do with ASCII, as tables for the bytes of UTF-8, whose other characters are bytes
# from 128 on: that takes a tenth of an expression's time.
_SIGNED = re.compile(r"[a-z](?:\+\+|\#)")  # C++ and C#
_SPACED = bytes(code if chr(code).isalnum() or code > 127 else 32 for code in range(256))
_SQUEEZED = bytes.maketrans(b"01i", b"oll")
_DROPPED = bytes(code for code in range(128) if not chr(code).isalnum() and code != 10)

# Characters that Unicode does not decompose. OCR reads ° as º, which NFKC would turn into a letter.
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
    """`text` without differences that a search ignores: width, accents, ligatures, the script of Chinese.

    Case stays, because `parts` splits words like PixelSocial at it.
    """
    return text if text.isascii() else han.simplified(fold_latin(text))


def fold_latin(text: str) -> str:
    """As `fold`, and traditional Chinese characters stay. Stored names were folded so."""
    if text.isascii():
        return text
    if _FOLDABLE.search(text):  # rarely true, and `translate` takes ten times as long as this test
        text = text.translate(_FOLDED)
    text = unicodedata.normalize("NFD", unicodedata.normalize("NFKC", text))
    # Back to NFC: only Western, Hebrew and Arabic marks are removed; kana keep their voicing marks, and
    # Hangul is composed into syllables again.
    return unicodedata.normalize("NFC", _ACCENT.sub("", text))


def fold_lines(texts: list[str]) -> str:
    """`texts` folded, one a line; scripts without spaces lose the line breaks that split their words."""
    folded = fold("\n".join(texts))
    return folded if folded.isascii() else _BROKEN_RUN.sub("", folded)


def cut(folded: str) -> list[str]:
    """The terms of a folded text, in order, case-folded."""
    text = folded.casefold()
    if ("+" in text or "#" in text) and _SIGNED.search(text):
        return _terms(text)
    # Every other ASCII character that is neither letter nor digit ends a term, so the expression is only
    # needed for words that have other characters, or are too long.
    words = _translated(text, _SPACED).split()
    if text.isascii() and max(map(len, words), default=0) <= LONGEST:
        return words
    terms: list[str] = []
    done = 0
    for place in [at for at, word in enumerate(words) if not word.isascii() or len(word) > LONGEST]:
        terms += words[done:place]
        terms += _terms(words[place])
        done = place + 1
    return terms + words[done:]


def parts(folded: str, terms: list[str]) -> list[str]:
    """Further terms that find the text, besides its own `terms`; sorted.

    They are the words inside PixelSocial and Keepass2Android; e-mail, don't and words hyphenated at the end
    of a line, each as one word; and the single characters of scripts without spaces.
    """
    found = set(cut(_SEAM.sub(r"\g<0> ", folded)))
    linked, links = _LINK.subn("", folded)
    if links:
        found.update(cut(linked))
    if not folded.isascii():
        found.update(*RUN.findall(folded))
    return sorted(found.difference(terms))


def inner_words(word: str) -> list[tuple[int, int]]:
    """The places of the words inside a word like PixelSocial; none in one without such words."""
    seams = [seam.end() for seam in _SEAM.finditer(word)]
    return list(itertools.pairwise((0, *seams, len(word)))) if seams else []


def is_link(text: str, start: int, end: int) -> bool:
    """Whether `text[start:end]`, between two words, makes them one: in e-mail, don't, and at a line's end."""
    return end - start <= 2 and (link := _LINK.match(text, start)) is not None and link.end() == end


def is_word(term: str) -> bool:
    """Whether a term is a word, not a bigram or single character of a script without spaces."""
    return term[0] < _FIRST_UNSPACED or not RUN.match(term)


def squeeze(folded: str) -> str:
    """Folded lines without what OCR drops, adds or confuses: spaces, punctuation; 0 and o; 1, l and i."""
    return squeezed(folded.casefold())


def squeezed(text: str) -> str:
    """`squeeze` of a case-folded text."""
    text = _translated(text, _SQUEEZED, _DROPPED)
    if text.isascii():
        return text
    # The expression takes longer than this, and most texts have no other signs.
    for sign in _SIGNS:
        if sign in text:
            text = text.replace(sign, "")
    return text if text.replace("\n", "").isalnum() else _NOT_A_LETTER.sub("", text)


def _translated(text: str, table: bytes, dropped: bytes = b"") -> str:
    """`text` with its ASCII characters replaced by `table`, without those in `dropped`."""
    # Half of a surrogate pair is no character, but a model's answer may have one.
    return text.encode(errors="surrogatepass").translate(table, dropped).decode(errors="surrogatepass")


def _terms(text: str) -> list[str]:
    """The terms of a case-folded text, in order."""
    terms: list[str] = []
    for piece in PIECE.findall(text):
        if piece[0] >= _FIRST_UNSPACED and len(piece) > 1 and RUN.match(piece):
            terms += [piece[at : at + 2] for at in range(len(piece) - 1)]
        else:
            terms.append(piece)
    return terms
