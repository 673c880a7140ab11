"""The vocabulary of the search index: how many photos have a term, and which words are near to one.

The table `vocabulary` has each term with the number of photos that contain it; `lexicon.py` writes it. Its
index finds prefixes. Its words are also held in memory, where a scan with rapidfuzz finds typos (with 100,000
documents 98 % recall in 3 ms; a trigram index takes 140 ms for 95 %). So the index of texts is only queried
for terms that exist, and a query of unknown words needs no search.
"""

import heapq
import itertools
import threading
from collections.abc import Iterable, Iterator

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
    # Within a transaction not shared: what it reads may be rolled back.
    seen = _Seen() if db.in_transaction() else database.store().cache(_Seen)
    seen.read_new()
    return Words(seen, guarded=guarded)


class Words:
    """The words of the vocabulary; for guarded queries those that are not on photos only where these are
    redacted.
    """

    def __init__(self, seen: "_Seen", *, guarded: bool):
        self._seen = seen
        self._guarded = guarded
        self._number = SEEN if guarded else "documents"

    def close(self, word: str) -> Iterator[tuple[str, float]]:
        """Terms that `word` may mean without a typo, with their worth, the closest first. None for a single
        character.
        """
        if len(word) == 1:
            return
        spellings = map("".join, itertools.product(*(_ALIKE.get(character, character) for character in word)))
        alike = [spelling for spelling in itertools.islice(spellings, 256) if spelling != word]
        halves = [(word[:place], word[place:]) for place in range(2, len(word) - 1)]
        known = self._counts([word, *alike, *itertools.chain.from_iterable(halves)])
        yield from ((spelling, CONFUSED) for spelling in alike if spelling in known)
        if word not in known:
            yield from ((f"{one} {two}", JOINED) for one, two in halves if one in known and two in known)
        if len(word) >= FEWEST_DIGITS and word.isdigit():
            yield from ((longer, LONGER) for longer in self._ending(word, MAX_MEANINGS // 2))
        for longer in self.starting(word, MAX_MEANINGS // 2):
            yield longer, LONGER * (0.8 + 0.2 * len(word) / len(longer))

    def starting(self, prefix: str, most: int) -> list[str]:
        """The `most` most frequent words that are longer than `prefix` and start with it."""
        sql = f"""SELECT term, {self._number} FROM vocabulary
            WHERE term > ? AND term < ? AND {self._number} > 0"""  # noqa: S608
        return _most_frequent(dict(db.execute_sql(sql, (prefix, f"{prefix}\U0010ffff"))), most)

    def near(self, word: str) -> list[tuple[str, float]]:
        """Words of which `word` may be a typing or reading error, with their worth, the nearest first. A swap
        of neighbouring letters is one error. Short words, numbers and codes are never taken for typos.
        """
        if len(word) < 4 or not word.isalpha():
            return []
        reach = 1 if len(word) < 8 else 2
        buckets = [(word[0], len(word) + longer) for longer in range(-reach, reach + 1)]
        found = self._within(buckets, word, reach)
        if not found and not self._counts([word]):
            # The first letter is seldom wrong, and other first letters cost ten times the time. If it is
            # wrong, it must be the only error.
            letters = list(self._seen.letters)
            others = [key for key in letters if key[0] != word[0] and abs(key[1] - len(word)) < 2]
            found = self._within(others, word, 1)
        return [(near, TYPO if distance == 1 else FAR_TYPO) for distance, _, near in sorted(found)]

    def _ending(self, digits: str, most: int) -> list[str]:
        """The `most` most frequent long numbers, or codes, that end with these digits."""
        known = self._counts(word for word in list(self._seen.numbers) if word.endswith(digits))
        known.pop(digits, None)
        return _most_frequent(known, most)

    def _within(self, buckets: list[tuple[str, int]], word: str, reach: int) -> list[tuple[int, int, str]]:
        distances: dict[str, int] = {}
        for letter, length in buckets:
            choices = _parted(self._seen.letters.get((letter, length), ""), length)
            found = process.extract(word, choices, scorer=OSA.distance, score_cutoff=reach, limit=None)
            distances |= {near: distance for near, distance, _ in found if distance}
        known = self._counts(distances)
        return [(distances[near], -count, near) for near, count in known.items()]

    def _counts(self, of: Iterable[str]) -> dict[str, int]:
        return counts(of, guarded=self._guarded)


class _Seen:
    """The words among which typos and ends of numbers are looked for, 1 MB for 100,000. All processes add
    words; one that is gone from the table stays here, and is not found there.
    """

    def __init__(self) -> None:
        self.letters: dict[tuple[str, int], str] = {}  # concatenated, by their first letter and length
        self.numbers: set[str] = set()  # with digits at their end
        self._last_id = 0
        self._guard = threading.Lock()

    def read_new(self) -> None:
        """Read the words that were added since the last call."""
        with self._guard:
            sql = "SELECT id, term FROM vocabulary WHERE id > ? ORDER BY id"
            cursor = db.execute_sql(sql, (self._last_id,))
            while rows := cursor.fetchmany(SLICE):  # a million at once would briefly take 150 MB
                self._last_id = rows[-1][0]
                self._add([term for _, term in rows if term[0] not in NO_WORD and terms.is_word(term)])

    def clear(self) -> None:
        with self._guard:
            self.letters, self.numbers, self._last_id = {}, set(), 0

    def _add(self, words: list[str]) -> None:
        self.numbers.update(
            word for word in words if len(word) >= LONG_NUMBER and word[-FEWEST_DIGITS:].isdigit()
        )
        buckets: dict[tuple[str, int], list[str]] = {}
        for word in filter(str.isalpha, words):
            buckets.setdefault((word[0], len(word)), []).append(word)
        for bucket, its_words in buckets.items():
            before = _parted(self.letters.get(bucket, ""), bucket[1])
            self.letters[bucket] = "".join(dict.fromkeys((*before, *its_words)))


def _most_frequent(known: dict[str, int], most: int) -> list[str]:
    return heapq.nsmallest(most, known, key=lambda word: (-known[word], word))


def _parted(together: str, length: int) -> list[str]:
    return [together[start : start + length] for start in range(0, len(together), length)]
