"""Where the words of a query stand: in the text of a photo that was found, and on its picture.

A search finds photos by terms of the index (`lexicon.py`), which are folded and may be longer words, typos or
parts of compounds. A person wants to see the words that are really there. So the texts of the few photos that
are shown are cut into terms once more, now with their places, and where a term that the query may mean
stands, the text gets a *mark*: a stretch of it, as it is written.

Not every mark helps. Where a word itself stands, its typos are not marked; nor is a common word (`the`) far
from the others; nor is a part of a Chinese phrase where a larger part stands; nor is the status bar of the
screen, unless the word stands nowhere else.

On the picture, a mark is a part of a recognised line. Lines have boxes, but their characters have none, so
the part is estimated from typical widths of characters.
"""

import bisect
import collections
import itertools
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

import terms
from queries.wording import Word
from readings import Lines
from vocabulary import CONFUSED, TYPO
from writings import figures

MOST = 20  # matched words, and boxes, of a photo
LONGEST = 100  # characters of a matched word
SNIPPET = 160  # characters
LEAD = 40  # characters before the first match, from the beginning of its line where that is so near
LONGEST_LEAD = 60  # where the text ends so soon that the snippet would be short
CLOSE = 24  # characters: so near to another word of the query, a common one is marked
COMMON = 0.5  # share of the heaviest word's weight below which a word is common


class Box(msgspec.Struct, frozen=True):
    """A part of the upright picture, in parts of its width and height."""

    left: float
    top: float
    width: float
    height: float


class Form(msgspec.Struct, frozen=True):
    """A word of the query as it is written in a text."""

    written: str
    words: frozenset[int]  # indices of the query's words that it may be
    differs: bool  # it is a typo of them, or has characters that look alike


class Shown(msgspec.Struct, frozen=True):
    """What a photo shows of a query: a snippet, the words as written there, and boxes of some of them."""

    snippet: str
    forms: list[Form]
    boxes: list[Box]


class _Mark(NamedTuple):
    start: int
    end: int
    words: frozenset[int]
    typo: bool = False
    differs: bool = False
    in_run: bool = False  # in a script without spaces


class Marker:
    """Finds the words of one query in the texts of photos."""

    def __init__(self, words: list[Word]):
        self._weights = [word.weight for word in words]
        # What a term means: the words that it may be, whether it is a typo of them, whether it differs.
        self._meanings: dict[str, tuple[frozenset[int], bool, bool]] = {}
        self._phrases: dict[str, list[tuple[list[str], int]]] = collections.defaultdict(list)
        for number, word in enumerate(words):
            for term, worth in word.meanings.items():
                parts = term.split()
                if len(parts) > 1 and terms.is_word(term):
                    self._phrases[parts[0]].append((parts, number))
                    continue
                typo = worth <= TYPO and not term.startswith(word.term)
                differs = typo or (worth == CONFUSED and len(term) == len(word.term))
                for part in parts:  # the pairs of characters of a longer run stand together as marks do
                    known = self._meanings.get(part, (frozenset(), True, True))
                    self._meanings[part] = (known[0] | {number}, known[1] and typo, known[2] and differs)
        self._has_runs = not all(map(terms.is_word, self._meanings))
        self._has_figures = any(map(figures.is_term, self._meanings))

    def show(self, texts: list[str], read: Lines | None) -> Shown:
        """What a photo shows. `texts` are app name, summary, values and visible text."""
        app_name, summary, *values, visible = texts
        sources = (visible, summary, "\n".join(values), app_name)
        starts = _starts(read, visible)
        bar = _status_bar(read, starts)
        found = self._helpful([self._marks(text) for text in sources], bar)
        found = [_joined(marks, text) for marks, text in zip(found, sources, strict=True)]
        best, place = _best(found)
        if not any(found):
            snippet = _snippet(_without(visible, bar), 0) or _snippet(summary, 0)
        elif best or _is_within(place, bar):
            snippet = _snippet(sources[best], place)
        else:
            snippet = _snippet(_without(visible, bar), place)
        ordered = sorted(
            ((number, mark) for number, marks in enumerate(found) for mark in marks),
            key=lambda item: item[0] != best or not place <= item[1].start < place + SNIPPET,
        )
        forms = _forms(ordered, sources)
        if read is None:
            return Shown(snippet, forms, [])
        if starts is not None:
            on_picture = [mark for number, mark in ordered if number == 0]
        else:  # a person or a model has changed the text since it was read
            starts = _line_starts(read)
            on_picture = self._helpful([self._marks(read.text)], _status_bar(read, starts))[0]
        return Shown(snippet, forms, _boxes(on_picture, read, starts))

    def _marks(self, text: str) -> list[_Mark]:
        """Every place in `text` at which a term stands that the query may mean, in order."""
        marks: list[_Mark] = []
        words: list[tuple[str, int, int]] = []  # terms with their places, for phrases
        chain: list[tuple[int, int]] = []  # linked words, like e-mail
        runs: list[tuple[int, int]] = []
        for piece in terms.PIECE.finditer(text):
            raw, (start, end) = piece[0], piece.span()
            if raw[0] >= "\u0e01" and terms.RUN.match(raw):
                runs.append((start, end))
                continue
            if chain and not terms.is_link(text, chain[-1][1], start):
                marks += self._linked(text, chain)
                chain.clear()
            chain.append((start, end))
            folded = raw if raw.isascii() else terms.fold(raw)
            for term in [folded.casefold()] if raw.isascii() else terms.cut(folded):
                if term in self._meanings:
                    marks.append(_Mark(start, end, *self._meanings[term]))
                if self._phrases:
                    words.append((term, start, end))
            if not raw.islower() and len(folded) == len(raw):
                for left, right in terms.inner_words(folded):
                    if (term := folded[left:right].casefold()) in self._meanings:
                        marks.append(_Mark(start + left, start + right, *self._meanings[term]))
        marks += self._linked(text, chain)
        marks += self._in_phrases(words)
        if self._has_runs:
            marks += self._in_runs(text, runs)
        folded = terms.fold(text).casefold() if self._has_figures else ""
        if len(folded) == len(text):  # else its places are others
            for figure in self._figures(folded):
                numbers = [self._meanings[term][0] for term in figure.terms if term in self._meanings]
                marks.append(_Mark(figure.start, figure.end, frozenset().union(*numbers)))
        return _without_inner(marks)

    def _figures(self, folded: str) -> list[figures.Figure]:
        """The days and numbers in a folded text that the query may mean."""
        if not self._has_figures:
            return []
        return [one for one in figures.find(folded) if not self._meanings.keys().isdisjoint(one.terms)]

    def _linked(self, text: str, chain: list[tuple[int, int]]) -> Iterator[_Mark]:
        """Words that hyphens or apostrophes link are also one word."""
        if len(chain) > 1:
            term = terms.fold("".join(text[start:end] for start, end in chain)).casefold()
            if term in self._meanings:
                yield _Mark(chain[0][0], chain[-1][1], *self._meanings[term])

    def _in_phrases(self, words: list[tuple[str, int, int]]) -> Iterator[_Mark]:
        """A word of the query that is written as several."""
        for place, (term, start, _) in enumerate(words):
            for parts, number in self._phrases.get(term, ()):
                following = words[place : place + len(parts)]
                if [word for word, _, _ in following] == parts:
                    yield _Mark(start, following[-1][2], frozenset((number,)))

    def _in_runs(self, text: str, runs: list[tuple[int, int]]) -> list[_Mark]:
        """In scripts without spaces, where a word may go on in the next line, and pairs become one mark."""
        characters: list[tuple[str, int]] = []  # folded, with their places; "" where a run ends
        for start, end in runs:
            if characters and not text[characters[-1][1] + 1 : start].isspace():
                characters.append(("", start))
            folded = terms.fold(text[start:end]).casefold()
            # A character may fold to several; then they all have the place of the last one.
            characters += [(character, min(start + at, end - 1)) for at, character in enumerate(folded)]
        marks: list[_Mark] = []
        for (first, place), (second, other) in itertools.pairwise([*characters, ("", 0)]):
            for term, last in ((first, place), (first + second, other)):
                if term in self._meanings and (second or last == place):
                    numbers = self._meanings[term][0]
                    if marks and place < marks[-1].end:
                        numbers |= marks[-1].words
                        marks[-1] = _Mark(marks[-1].start, max(last + 1, marks[-1].end), numbers, in_run=True)
                    else:
                        marks.append(_Mark(place, last + 1, numbers, in_run=True))
        return marks

    def _helpful(self, found: list[list[_Mark]], bar: list[tuple[int, int]]) -> list[list[_Mark]]:
        """The marks of several texts without those that do not help; `bar` is the status bar in the first."""
        every = list(itertools.chain.from_iterable(found))
        in_bar = {mark for mark in found[0] if _is_within(mark.start, bar)}
        outside = _words(
            mark for marks in found for mark in marks if mark not in in_bar or marks is not found[0]
        )
        certain = _words(mark for mark in every if not mark.typo)
        parts = {mark.words for mark in every if mark.in_run}
        heaviest = max(map(self._weight, every), default=0.0)

        def helps(mark: _Mark) -> bool:
            return not (mark.typo and mark.words <= certain) and not (
                mark.in_run and any(mark.words < part for part in parts)
            )

        kept = [list(filter(helps, marks)) for marks in found]
        kept[0] = [mark for mark in kept[0] if mark not in in_bar or not mark.words <= outside]
        for number, marks in enumerate(kept):
            heavy = [mark.start for mark in marks if self._weight(mark) >= COMMON * heaviest]
            if len(heavy) < len(marks):
                kept[number] = [
                    mark
                    for mark in marks
                    if self._weight(mark) >= COMMON * heaviest or _is_near(mark.start, heavy)
                ]
        return kept

    def _weight(self, mark: _Mark) -> float:
        return max(self._weights[number] for number in mark.words)


def densest(marks: Iterable[tuple[int, int]], reach: int) -> tuple[int, int]:
    """The largest number of distinct words within `reach`, and the first place at which they stand closest.
    `marks` are pairs of place and word, in order.
    """
    marks = list(marks)
    most, start = 0, 0
    inside: collections.Counter[int] = collections.Counter()
    first = 0
    for place, word in marks:
        inside[word] += 1
        while marks[first][0] <= place - reach:
            inside[marks[first][1]] -= 1
            first += 1
        if (distinct := sum(map(bool, inside.values()))) > most:
            while inside[marks[first][1]] > 1:
                inside[marks[first][1]] -= 1
                first += 1
            most, start = distinct, marks[first][0]
    return most, start


# --------------------------------------------------------------------------------------------------- the text


def _words(marks: Iterable[_Mark]) -> frozenset[int]:
    return frozenset(itertools.chain.from_iterable(mark.words for mark in marks))


def _without_inner(marks: list[_Mark]) -> list[_Mark]:
    """The marks in order, without those inside a larger one of the same words."""
    kept: list[_Mark] = []
    for mark in sorted(marks, key=lambda mark: (mark.start, -mark.end)):
        if not (kept and mark.end <= kept[-1].end and mark.words <= kept[-1].words):
            kept.append(mark)
    return kept


def _joined(marks: list[_Mark], text: str) -> list[_Mark]:
    """Marks between which there is nothing but a sign become one: 17:00, nadiyar@c.im."""
    joined: list[_Mark] = []
    for mark in marks:
        last = joined[-1] if joined else None
        between = text[last.end : mark.start] if last is not None else ""
        if (
            last is not None
            and len(between) == 1
            and not between.isspace()
            and last.differs == mark.differs
            and mark.end - last.start <= LONGEST
        ):
            joined[-1] = last._replace(end=mark.end, words=last.words | mark.words)
        else:
            joined.append(mark)
    return joined


def _is_near(place: int, places: list[int]) -> bool:
    """Whether one of the sorted `places` is close to `place`."""
    after = bisect.bisect_left(places, place)
    return any(abs(other - place) <= CLOSE for other in places[max(0, after - 1) : after + 1])


def _is_within(place: int, spans: list[tuple[int, int]]) -> bool:
    return any(start <= place < end for start, end in spans)


def _best(found: list[list[_Mark]]) -> tuple[int, int]:
    """The text in which most of the words stand together, the first of several, and the place."""
    most, best, start = 0, 0, 0
    for number, marks in enumerate(found):
        distinct, place = densest([(mark.start, word) for mark in marks for word in mark.words], SNIPPET)
        if distinct > most:
            most, best, start = distinct, number, place
    return best, start


def _without(text: str, spans: list[tuple[int, int]]) -> str:
    """`text` with spaces in place of `spans`."""
    for start, end in spans:
        text = f"{text[:start]}{' ' * len(text[start:end])}{text[end:]}"
    return text


def _snippet(text: str, place: int) -> str:
    """About `SNIPPET` plain characters of `text`, in which the match at `place` comes early."""
    # Runs of spaces become one, so more is taken than is needed.
    before, after = text[max(0, place - 4 * SNIPPET) : place], text[place : place + 4 * SNIPPET]
    follows = " ".join(after.split())
    short = len(follows) < SNIPPET - LEAD and len(after) < 4 * SNIPPET
    line = " ".join(before.rpartition("\n")[2].split())
    whole = " ".join(before.split())
    if short:
        lead = whole[-LONGEST_LEAD:]
    else:
        lead = line if len(line) <= LEAD else line[-LEAD:]
    cut = len(lead) < len(line) or (short and len(lead) < len(whole))
    if cut and (space := lead.find(" ", 0, 20)) >= 0:
        lead = lead[space + 1 :]
    gap = " " if lead and before[-1:].isspace() else ""
    snippet = f"{lead}{gap}{follows}"
    end = SNIPPET
    if end < len(snippet) and (space := snippet.rfind(" ", end - 20, end)) > len(lead):
        end = space
    return f"{'…' if cut else ''}{snippet[:end]}{'…' if end < len(snippet) else ''}"


def _forms(order: list[tuple[int, _Mark]], texts: Sequence[str]) -> list[Form]:
    """The distinct words of the marks as they are written."""
    forms: dict[str, Form] = {}
    for number, mark in order:
        written = " ".join(texts[number][mark.start : mark.end].split())
        if len(written) <= LONGEST and len(forms) < MOST:
            forms.setdefault(written.casefold(), Form(written, mark.words, mark.differs))
    return list(forms.values())


# ------------------------------------------------------------------------------------------------ the picture


def _starts(read: Lines | None, visible: str) -> list[int] | None:
    """Where the reading's lines start in the visible text; None when that is another text."""
    if read is None or not (visible.startswith(read.text) or read.text.startswith(visible)):
        return None
    return _line_starts(read)


def _line_starts(read: Lines) -> list[int]:
    return list(itertools.accumulate([len(line.text) + 1 for line in read.lines[:-1]], initial=0))


def _status_bar(read: Lines | None, starts: list[int] | None) -> list[tuple[int, int]]:
    if read is None or starts is None:
        return []
    return [
        (start, start + len(line.text))
        for start, line in zip(starts, read.lines, strict=False)
        if line.status_bar
    ]


def _boxes(marks: Iterable[_Mark], read: Lines, starts: list[int]) -> list[Box]:
    """The boxes of the marks, in their order; those of neighbouring words of a line are one."""
    places: list[list[int]] = []  # line, start, end
    for mark in marks:
        first = max(0, bisect.bisect_right(starts, mark.start) - 1)
        for number in range(first, len(read.lines)):
            if starts[number] >= mark.end:
                break
            text = read.lines[number].text
            start, end = max(0, mark.start - starts[number]), min(len(text), mark.end - starts[number])
            if start >= end:
                continue
            for place in places:
                if place[0] == number and _are_neighbours(text, place[1], place[2], start, end):
                    place[1:] = min(place[1], start), max(place[2], end)
                    break
            else:
                if len(places) == MOST:
                    return [_box(read, *place) for place in places]
                places.append([number, start, end])
    return [_box(read, *place) for place in places]


def _are_neighbours(text: str, start: int, end: int, other_start: int, other_end: int) -> bool:
    between = text[min(end, other_end) : max(start, other_start)]
    return len(between) <= 2 and not any(map(str.isalnum, between))


def _box(read: Lines, number: int, start: int, end: int) -> Box:
    line = read.lines[number]
    widths = list(map(_WIDTHS.__getitem__, line.text))
    whole = sum(widths) or 1.0
    shape = min(1.0, line.height * read.height / max(1.0, line.width * read.width))
    margin, text = MARGINS[0] * shape, 1 - sum(MARGINS) * shape
    left = margin + text * sum(widths[:start]) / whole
    right = margin + text * sum(widths[:end]) / whole
    return Box(
        round(min(1.0, line.left + line.width * left), 5),
        line.top,
        round(max(0.0, min(line.width * (right - left), 1.0 - line.left - line.width * left)), 5),
        line.height,
    )


# At the left and the right of the text in its line's box, in heights of the box. Measured on 2,250 lines of
# screenshots; the larger margin at the left is rather typical of the text recognition than of screens.
MARGINS = (0.18, 0.12)


class _Widths(dict[str, int]):
    """Widths of characters in hundredths of the font's size, between those of Roboto and Helvetica."""

    def __missing__(self, character: str) -> int:
        if unicodedata.east_asian_width(character) in "WF":
            return 100
        if unicodedata.combining(character):
            return 0
        base = unicodedata.normalize("NFD", character)[0]
        return self.get(base, 63 if character.isupper() else 54)


_WIDTHS = _Widths(
    {
        character: width
        for width, characters in (
            (19, "'"), (23, "ijl"), (24, ",;|"), (26, " :"), (27, ".![]"), (28, "I"), (30, "t-·"),
            (33, "rf(){}"), (34, "/\\"), (35, "\""), (36, "•"), (41, "*"), (48, "y_"), (50, "vxzks"),
            (52, "c?"), (54, "ea<>J"), (55, "L–"), (56, "bdghnopqu0123456789$+=~#"), (58, "F"), (60, "TYZ"),
            (62, "ES"), (65, "ABKPVX&"), (68, "CRU"), (70, "DG"), (72, "HNw"), (73, "OQ"), (81, "%"),
            (86, "mM"), (91, "W"), (95, "@"), (99, "…—"),
        )
        for character in characters
    }
)  # fmt: skip
