"""The vocabulary of the search index: how many photos have a term, and the words in memory.

The table `vocabulary` has each term with the number of photos that contain it; `lexicon.py` writes it. Its
words are also held in memory, where prefixes are found by bisection and typos by a scan with rapidfuzz (with
100,000 documents 98 % recall in 3 ms; a trigram index takes 140 ms for 95 %). So the index is only queried
for terms that exist, and a query of unknown words needs no search.
"""

import bisect
import copy
import heapq
import itertools
import operator
import threading
from array import array
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec
from rapidfuzz import process
from rapidfuzz.distance import OSA

import database
import terms
from database import db
from writings import figures, han

# So many of its last digits find a number of so many.
FEWEST_DIGITS, LONG_NUMBER = 4, 8
MOST_RUNS = 200  # of characters that have the same sounds
BLOCK = 64  # words in one string in memory; finding one of them takes 3 µs
SLICE = 20_000  # words that are read at once
MAX_MEANINGS = 24  # terms that one word may mean; fewer if a query has many words
# The worth of a term that differs from the query's word: characters that text recognition confuses, the word
# joined with its neighbour or split in two, a longer word, one letter different, two letters different.
CONFUSED, JOINED, LONGER, TYPO, FAR_TYPO = 0.95, 0.95, 0.85, 0.7, 0.5
EVERYTHING = "@"  # a term that every photo in the index has
NO_WORD = (EVERYTHING, figures.MARK)  # how terms begin that are no words
SEEN = "documents - hidden"  # photos that a guarded query may find by a term

_ALIKE = {character: group for group in ("0o", "1li") for character in group}


def filter_term(name: str, value: str) -> str:
    """The term of a filter, which occurs in no text. In hexadecimal, because FTS5 ignores case."""
    return f"@{name}:{value.encode().hex()}"


def date_terms(day: str) -> list[str]:
    """The terms of an ISO timestamp's year, month and day, so that a time range needs few terms."""
    return [f"@{day[:length]}" for length in (4, 7, 10)]


def counts(of: Iterable[str], *, guarded: bool = False) -> dict[str, int]:
    """How many photos contain each of these terms, for a guarded query without what is redacted."""
    number = SEEN if guarded else "documents"
    sql = f"SELECT term, {number} FROM vocabulary WHERE term IN (SELECT value FROM json_each(?))"  # noqa: S608
    if guarded:
        sql += f" AND {SEEN} > 0"
    return dict(db.execute_sql(sql, (msgspec.json.encode(list(of)).decode(),)).fetchall())


def sounding(syllables: list[str], *, guarded: bool) -> list[str]:
    """The runs of characters with these sounds in the vocabulary, the most frequent first, as terms."""
    if not 2 <= len(syllables) <= han.MOST_SYLLABLES:
        return []
    number = SEEN if guarded else "documents"
    runs: dict[str, int] = {}
    for place, (first, second) in enumerate(itertools.pairwise(map(han.characters, syllables))):
        begins = set(first) if not place else set(first).intersection(run[-1] for run in runs)
        pairs: dict[str, list[tuple[str, int]]] = {}
        for term, count in db.execute_sql(
            f"""SELECT term, {number} FROM json_each(?) AS begin JOIN vocabulary
            ON term > begin.value AND term < begin.value || char(1114111) WHERE {number} > 0""",  # noqa: S608
            (msgspec.json.encode(sorted(begins)).decode(),),
        ):
            if len(term) == 2 and term[1] in second:
                pairs.setdefault(term[0], []).append((term, count))
        found = pairs.values() if not place else ()
        grown = {term: count for several in found for term, count in several}
        for run, fewest in runs.items():
            grown |= {run + term[1]: min(fewest, count) for term, count in pairs.get(run[-1], ())}
        runs = dict(sorted(grown.items(), key=lambda one: -one[1])[:MOST_RUNS])
    return [" ".join(map("".join, itertools.pairwise(run))) for run in runs]


def latest(*, guarded: bool) -> "Words":
    """The words of the open store's vocabulary."""
    photos = counts([EVERYTHING]).get(EVERYTHING, 0)
    if db.in_transaction():
        return Words(photos, guarded=guarded)  # not shared: what it has read may be rolled back
    return database.store().cache(_LatestGuarded if guarded else _Latest).of(photos)


class _Block(NamedTuple):
    """Alphabetically consecutive words in one string: separate strings would take four times the memory."""

    text: str  # one word per line
    counts: "array[int]"

    @classmethod
    def of(cls, rows: list[tuple[str, int]]) -> "_Block":
        return cls("\n".join(word for word, _ in rows), array("I", [count for _, count in rows]))

    def first(self) -> str:
        return self.text.partition("\n")[0]

    def words(self) -> list[str]:
        return self.text.split("\n")

    def rows(self) -> list[tuple[str, int]]:
        return list(zip(self.words(), self.counts, strict=True))


class Words:
    """The words of the vocabulary, 3 MB for 100,000. Immutable, so that readers need no lock."""

    def __init__(self, photos: int, *, guarded: bool):
        self.photos = photos  # in the index when it was read, to tell how outdated the counts are
        self._number = SEEN if guarded else "documents"
        self._last_id = 0
        # Words of letters only, concatenated, by their first letter and length.
        self._letters: dict[tuple[str, int], str] = {}
        slices = []
        for rows in self._new_rows():
            slices.append(list(_blocks(sorted(rows))))
            self._add_letters(word for word, _ in rows)
        sorted_rows = (itertools.chain.from_iterable(block.rows() for block in blocks) for blocks in slices)
        self._blocks = list(_blocks(heapq.merge(*sorted_rows)))
        self._firsts = [block.first() for block in self._blocks]
        self._size = sum(len(block.counts) for block in self._blocks)
        self.added = 0

    def with_new(self) -> "Words":
        """These words with those added since this one was read, or this one when there are none."""
        grown = copy.copy(self)
        if not (rows := list(itertools.chain.from_iterable(grown._new_rows()))):
            return self
        grown._blocks, grown._firsts = self._blocks.copy(), self._firsts.copy()
        grown._letters = self._letters.copy()
        fresh = [word for word, count in rows if grown._put(word, count)]
        grown._add_letters(fresh)
        grown.added += len(fresh)
        return grown

    def has_aged(self, photos: int) -> bool:
        """Whether a quarter of the photos or words has changed, so that outdated counts matter."""
        return abs(photos - self.photos) > self.photos / 4 or self.added > self._size / 4

    def __contains__(self, word: str) -> bool:
        return bool(self._blocks) and word in self._block(word).words()

    def close(self, word: str) -> Iterator[tuple[str, float]]:
        """Terms that `word` may mean without a typo, with their worth, the closest first."""
        spellings = map("".join, itertools.product(*(_ALIKE.get(character, character) for character in word)))
        for spelling in itertools.islice(spellings, 256):
            if spelling != word and spelling in self:
                yield spelling, CONFUSED
        if word not in self:
            for place in range(2, len(word) - 1):
                if word[:place] in self and word[place:] in self:
                    yield f"{word[:place]} {word[place:]}", JOINED
        if len(word) >= FEWEST_DIGITS and word.isdigit():
            for longer in self.ending(word, MAX_MEANINGS // 2):
                yield longer, LONGER
        if len(word) > 1:
            for longer in self.starting(word, MAX_MEANINGS // 2):
                yield longer, LONGER * (0.8 + 0.2 * len(word) / len(longer))

    def starting(self, prefix: str, most: int) -> list[str]:
        """The `most` most frequent words that are longer than `prefix` and start with it."""
        if not self._blocks:
            return []
        end = prefix + "\U0010ffff"
        first, last = self._place(prefix), self._place(end)
        blocks = self._blocks[first : last + 1]
        # Only the first and the last block have other words, too. The words of the others are only needed for
        # the most frequent ones.
        start = bisect.bisect_right(blocks[0].words(), prefix)
        stop = sum(len(block.counts) for block in blocks[:-1]) + bisect.bisect_left(blocks[-1].words(), end)
        counts = array("I", itertools.chain.from_iterable(block.counts for block in blocks))
        places = heapq.nlargest(most, range(start, stop), key=counts.__getitem__)
        starts = list(itertools.accumulate((len(block.counts) for block in blocks), initial=0))
        found = ((bisect.bisect_right(starts, place) - 1, place) for place in places)
        return [blocks[block].words()[place - starts[block]] for block, place in found]

    def ending(self, digits: str, most: int) -> list[str]:
        """The `most` most frequent long numbers, or codes, that end with these digits."""
        wanted = f"{digits}\n"
        found = []
        for block in self._blocks:
            if wanted in block.text or block.text.endswith(digits):
                found += [
                    row for row in block.rows() if row[0].endswith(digits) and len(row[0]) >= LONG_NUMBER
                ]
        return [word for word, _ in heapq.nlargest(most, found, key=operator.itemgetter(1)) if word != digits]

    def near(self, word: str) -> list[tuple[str, float]]:
        """Words of which `word` may be a typing or reading error, with their worth, the nearest first. A swap
        of neighbouring letters is one error. Short words, numbers and codes are never taken for typos.
        """
        if len(word) < 4 or not word.isalpha():
            return []
        reach = 1 if len(word) < 8 else 2
        buckets = [(word[0], len(word) + longer) for longer in range(-reach, reach + 1)]
        found = self._within(buckets, word, reach)
        if not found and word not in self:
            # The first letter is seldom wrong, and other first letters cost ten times the time. If it is
            # wrong, it must be the only error.
            others = [key for key in self._letters if key[0] != word[0] and abs(key[1] - len(word)) < 2]
            found = self._within(others, word, 1)
        return [(near, TYPO if distance == 1 else FAR_TYPO) for distance, _, near in sorted(found)]

    def _within(self, buckets: list[tuple[str, int]], word: str, reach: int) -> list[tuple[int, int, str]]:
        found = []
        for bucket in buckets:
            together, length = self._letters.get(bucket, ""), bucket[1]
            choices = [together[start : start + length] for start in range(0, len(together), length)]
            for near, distance, _ in process.extract(
                word, choices, scorer=OSA.distance, score_cutoff=reach, limit=None
            ):
                if distance:
                    found.append((distance, -dict(self._block(near).rows())[near], near))
        return found

    def _place(self, word: str) -> int:
        """The index of the block that contains a word, or would contain it."""
        return max(0, bisect.bisect_right(self._firsts, word) - 1)

    def _block(self, word: str) -> _Block:
        return self._blocks[self._place(word)]

    def _put(self, word: str, count: int) -> bool:
        """Set the count of a word, which may have been removed and added again; returns whether it is new."""
        place = self._place(word)
        counted = dict(self._blocks[place].rows()) if self._blocks else {}
        fresh = word not in counted
        rows = sorted((counted | {word: count}).items())
        # A block that has become twice as long is split.
        parts = [rows] if len(rows) < 2 * BLOCK else [rows[:BLOCK], rows[BLOCK:]]
        halves = [_Block.of(part) for part in parts]
        self._blocks[place : place + 1] = halves
        self._firsts[place : place + 1] = [half.first() for half in halves]
        return fresh

    def _add_letters(self, words: Iterable[str]) -> None:
        buckets: dict[tuple[str, int], list[str]] = {}
        for word in filter(str.isalpha, words):
            buckets.setdefault((word[0], len(word)), []).append(word)
        for bucket, its_words in buckets.items():
            self._letters[bucket] = "".join((self._letters.get(bucket, ""), *its_words))

    def _new_rows(self) -> Iterator[list[tuple[str, int]]]:
        """New words and their counts, in slices: a million at once would briefly take 150 MB."""
        cursor = db.execute_sql(
            f"SELECT id, term, {self._number} FROM vocabulary"  # noqa: S608
            f" WHERE id > ? AND {self._number} > 0 ORDER BY id",
            (self._last_id,),
        )
        while rows := cursor.fetchmany(SLICE):
            self._last_id = rows[-1][0]
            yield [
                (term, count)
                for _, term, count in rows
                if len(term) > 1 and term[0] not in NO_WORD and terms.is_word(term)
            ]


def _blocks(rows: Iterable[tuple[str, int]]) -> Iterator[_Block]:
    left = iter(rows)
    while following := list(itertools.islice(left, BLOCK)):
        yield _Block.of(following)


class _Latest:
    """The words that queries share. They are updated with words that any process has added."""

    guarded = False

    def __init__(self) -> None:
        self._latest: Words | None = None
        self._guard = threading.Lock()

    def of(self, photos: int) -> Words:
        """The present words; `photos` is the present number of photos in the index."""
        with self._guard:
            known = self._latest
            if known is None or known.has_aged(photos):
                self._latest = Words(photos, guarded=self.guarded)
            else:
                self._latest = known.with_new()
            return self._latest

    def clear(self) -> None:
        with self._guard:
            self._latest = None


class _LatestGuarded(_Latest):
    """The words that guarded queries share: without words that are on photos only where these are redacted.

    One that is later on another photo, too, is found as it is typed, and by its beginning or a typo when the
    vocabulary is read anew.
    """

    guarded = True
