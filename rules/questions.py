"""What a person's question asks for, by plain rules: the words that must be on a screenshot, and whether a
date, an amount, a name, a place or a number is wanted.

A question such as "and when?" has no words of its own. It goes on about the subject of the question before.
"""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal, NamedTuple

import terms
from rules import wordlists
from rules.wordlists import any_of, either
from writings import figures

Wish = Literal["", "when", "long", "amount", "who", "where", "link", "number", "count"]

MAX_QUESTION = 2_000  # characters that are read
MOST_EARLIER = 4  # questions in which a subject is looked for
MOST_WORDS = 12


def _patterns(table: dict[str, str]) -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((name, re.compile(either(names))) for name, names in table.items())


_TABLE = wordlists.table("questions")
_QUESTION_WORDS, _ACTIONS, _KINDS, _FOLLOWING = (
    wordlists.words(_TABLE[name]) for name in ("asking", "actions", "things", "following")
)
_OTHER = wordlists.words(_TABLE["other"])
_CALENDAR = wordlists.words(_TABLE["weekdays"]) | figures.MONTHS.keys()
_QUESTION_WORDS |= wordlists.words(_TABLE["sum"])
# What people call the fields and the types of records.
FIELDS: dict[str, str] = _TABLE["fields"]
TYPES: dict[str, str] = _TABLE["types"]
THREADS: dict[str, str] = _TABLE["threads"]
SAID = "lastMessage"  # what a person says
CHINESE_FIELDS = frozenset(name for names in FIELDS.values() for name in names.partition("|")[2].split())
_WORD = re.compile(r"[^\W_]+(?:['’.@:/_-][^\W_]+)*")

_CHINESE = re.compile("[\u4e00-\u9fff]")
_CHINESE_QUESTION_WORDS = re.compile(any_of(_TABLE["chinese_asking"]))
_CHINESE_BEFORE, _CHINESE_BEHIND = _TABLE["chinese_before"], _TABLE["chinese_behind"]
_CHINESE_VERBS: str = _TABLE["chinese_verbs"]
_CHINESE_KINDS: list[str] = _TABLE["chinese_things"].split()
_CHINESE_FOLLOWING = re.compile(
    f"^(?:{any_of(_TABLE['chinese_following'])})|{any_of(_TABLE['chinese_referring'])}"
)
_LATIN = re.compile(f"([A-Za-z]+)({'|'.join(_TABLE['chinese_codes'].split())})")  # BV号: the number called BV
_CHINESE_ANEW = re.compile(_TABLE["chinese_anew"])
_WANTING = re.compile(f"({'|'.join(_TABLE['chinese_kept'].split())})|{_TABLE['chinese_between']}")
_IS_PAID = re.compile(_TABLE["is_paid"])
_LATER = re.compile(either(_TABLE["later"]))
_CODE = re.compile(r"[A-Za-z0-9]+(?:-[A-Za-z0-9]+)*")
LEAST_CODE = 5  # characters of a number that names an order or a parcel
_ANEW = [one.split() for one in _TABLE["anew"]]
_PARTS = re.compile(either(_TABLE["parts"]))
_WHICH = wordlists.words(_TABLE["which"])
_CHINESE_WHICH = re.compile(any_of(_TABLE["chinese_which"]))
_POSSESSIVE = re.compile(r"['’]s?$")

_BEGINNING = r"^\W*(?:and )?"
# The first that a question has: its beginning, or words anywhere in it.
_WISHES: tuple[tuple[Wish, re.Pattern[str]], ...] = tuple(
    (
        one["wish"],
        re.compile(
            f"{_BEGINNING}(?:{either(one['begins'])})" if "begins" in one else either(one["has"]), re.I
        ),
    )
    for one in _TABLE["wishes"]
)

_GREETINGS = wordlists.words(_TABLE["greetings"])
_GREETINGS_CHINESE = re.compile(any_of(_TABLE["greetings_chinese"]))
_SAVING = wordlists.words(_TABLE["saving"])
# Words that a screenshot may have for a word of a question.
SAME: dict[str, list[str]] = {word: names.split() for word, names in _TABLE["same"].items()}
LABELS: list[str] = _TABLE["label_forms"]
LEFT: list[str] = _TABLE["left"]
PLANNED: dict[str, str] = _TABLE["planned"]


# What a question about the agenda may ask for; "" is everything that is to come.
AHEAD = "ahead"  # from this minute on
PERIODS = ("", AHEAD, "today", "tomorrow", "this_week", "next_week", "this_month")
SINCE = ("today", "this_week", "this_month")  # in which something may have been saved
_PERIODS = _patterns(_TABLE["periods"])
_SPANS = _patterns(_TABLE["spans"])
_YEAR = re.compile(r"(?<!\d)20\d\d(?!\d)")
_MONTH_NAMED = re.compile(
    rf"\b(?:{any_of(_TABLE['before_months'])}) ({'|'.join(sorted(figures.MONTHS, key=len, reverse=True))})\b"
)
_MONTH_CHINESE = re.compile(r"(?<!\d)(\d{1,2})月(?!\d)")
_AGENDA = re.compile(either(_TABLE["agenda"]))
_AGENDA_VERBS = re.compile(either(_TABLE["agenda_verbs"]))
_AGENDA_WORDS = wordlists.words(_TABLE["agenda_words"])
_AGENDA_CHINESE = re.compile(rf"{any_of(_TABLE['agenda_chinese'])}|\d{{1,2}}月")


class Question(NamedTuple):
    """What is asked. `words` must be on a screenshot, and `subject` are those of an earlier question that
    this one goes on about; `helpful` ones need not.
    """

    wish: Wish
    words: list[str]
    helpful: list[str]
    subject: list[str]
    is_chinese: bool
    text: str = ""  # as it was asked, in small letters
    is_other: bool = False  # about another screenshot than that of the answer before
    days: frozenset[str] = frozenset()  # days of the calendar that it names, as the index has them
    sought: tuple[str, ...] = ()  # what it asks for by "which" or "what"
    follows: bool = False  # goes on from the question before
    month: str = ""  # the number of a month that it names, as "06"

    @property
    def wanted(self) -> list[str]:
        """The words that must be on a screenshot: the subject's and this question's own."""
        return list(dict.fromkeys([*self.subject, *self.words]))[:MOST_WORDS]


def understand(question: str, earlier: Sequence[str] = ()) -> Question:
    """What `question` asks, after the `earlier` ones of its conversation, the latest last."""
    question = question[:MAX_QUESTION]
    text = question.casefold().replace("’", "'")
    days, left = _days(question)
    words, helpful = _words(left)
    if not words and not any(map(_is_thing, helpful)):
        words, helpful = _words(question)  # a day is all that is named
    asked = Question(
        _wish(question),
        [],
        [],
        [],
        is_chinese(question),
        text,
        False,
        days,
        _sought(left),
        month=_month_of(text),
    )
    if earlier and _goes_on(question, words):
        before = _subject(earlier)
        anew = _begins_anew(question)
        asked = asked._replace(
            is_other=names_one(text, _TABLE["other"], _TABLE["other_chinese"]), follows=True
        )
        if not asked.wish and (anew or asked.is_other):
            asked = asked._replace(wish=_earlier_wish(earlier))
        own = [word for word in words if not (_OTHER & {_plain(word)} or names_of(FIELDS, _plain(word)))]
        if before and not (own and anew):
            # "which seat?": what is wished for helps to find the line, and need not be there.
            return asked._replace(helpful=[*words, *helpful], subject=before)
        if own:  # "and the electricity?": of what was asked before, only the wish stays
            return asked._replace(words=own, helpful=[*helpful, *before])
    words, helpful = _wanted(words, helpful)
    return asked._replace(words=words, helpful=helpful, is_other=False, follows=False)


def _days(question: str) -> tuple[frozenset[str], str]:
    """The days of the calendar that a question names, and the question without them."""
    folded = terms.fold(question).casefold()
    if len(folded) != len(question):
        return frozenset(), question
    found = [one for one in figures.find(folded) if one.terms[0].startswith(figures.MARK)]
    for one in found:
        question = question[: one.start] + " " * (one.end - one.start) + question[one.end :]
    return frozenset(day for one in found for day in one.meanings), question


def _sought(question: str) -> tuple[str, ...]:
    """What a question asks for by "which line", "how windy" or 哪家公司."""
    marked = _CHINESE_WHICH.sub(" which ", question)
    spoken = _WORD.findall(marked)
    behind = [word for before, word in pairwise(spoken) if _plain(before) in _WHICH]
    cut = [_CHINESE_QUESTION_WORDS.sub("", word) if is_chinese(word) else word for word in behind]
    return tuple(word for word in cut if word and _plain(word) not in _QUESTION_WORDS)


def _subject(earlier: Sequence[str]) -> list[str]:
    """The words of the latest question that has some."""
    found = (_wanted(*_words(one[:MAX_QUESTION]))[0] for one in reversed(earlier[-MOST_EARLIER:]))
    return next(filter(None, found), [])


def _earlier_wish(earlier: Sequence[str]) -> Wish:
    return next((wish for one in reversed(earlier[-MOST_EARLIER:]) if (wish := _wish(one))), "")


def _wish(question: str) -> Wish:
    return next((wish for wish, pattern in _WISHES if pattern.search(question)), "")


def names_one(text: str, words: str, chinese: str = "") -> bool:
    """Whether a text in small letters has one of these English words as a whole, or of these Chinese ones."""
    return any(re.search(rf"\b{re.escape(word)}\b", text) for word in words.split()) or any(
        word in text for word in chinese.split()
    )


def wants_sum(asked: Question) -> bool:
    """Whether the sum of several amounts is asked for."""
    return asked.wish == "amount" and names_one(asked.text, _TABLE["sum"], _TABLE["sum_chinese"])


def wants_part(asked: Question) -> bool:
    """Whether a part of a place is asked for by its name, as "which gate": another place is none."""
    return bool(asked.sought) and _PARTS.search(" ".join(asked.sought).casefold()) is not None


def wants_words(asked: Question) -> bool:
    """Whether it is asked what somebody says."""
    return asked.wish == "" and SAID in names_of(FIELDS, asked.text)


def thread_of(asked: Question) -> str:
    """The type of the order, parcel or bill whose state is asked for; "" where none is."""
    is_wished = asked.wish in ("", "where") or _IS_PAID.search(asked.text) is not None
    if not is_wished or "state" not in names_of(_TABLE["asks"], asked.text):
        return ""
    return next(iter(names_of(THREADS, asked.text)), "")


def wants_next(asked: Question) -> bool:
    """Whether the next one of several to come is asked for."""
    return "next" in names_of(_TABLE["asks"], _LATER.sub("", asked.text))


def wants_first(text: str) -> bool:
    """Whether a text in small letters asks for one thing to come, and not for all of them."""
    return "first" in names_of(_TABLE["asks"], _LATER.sub("", text))


def types_ahead(asked: Question) -> list[str]:
    """The types of records of which the next one may be asked for: "trip" names several."""
    named = names_of(TYPES, asked.text)
    several = [types.split() for types in names_of(_TABLE["several"], asked.text)]
    return list(named) or [name for types in several for name in types]


def names_in(asked: Question) -> list[str]:
    """The words of a question about something that goes on by which that is known: its number, else all that
    say neither what it is nor what is asked.
    """
    codes = [code for code in _CODE.findall(asked.text) if any(map(str.isdigit, code))]
    if codes := [code for code in codes if len(code) >= LEAST_CODE]:
        return codes
    tables = (THREADS, TYPES, FIELDS, _TABLE["asks"])
    return [word for word in asked.wanted if not any(names_of(table, _plain(word)) for table in tables)]


def wants_entries(asked: Question) -> bool:
    """Whether what a list has is asked for: by its name, or as "which models"."""
    if asked.wish:
        return False
    if names_one(asked.text, _TABLE["entries"], _TABLE["entries_chinese"]):
        return True
    words = [_plain(word) for word in _WORD.findall(asked.text)]
    several = words[1] if words[:1] in (["which"], ["what"]) and len(words) > 1 else ""
    return stem(several) != several and several not in _QUESTION_WORDS


def things_in(asked: Question) -> list[str]:
    """What a question calls the thing that it is about, as "train" or 材料."""
    return [word for word in asked.helpful if _is_thing(word) or word in CHINESE_FIELDS]


def pieces(words: Sequence[str]) -> set[str]:
    """What is looked for in texts: the stems of words, and of Chinese runs the pairs of characters by which
    the search finds them, so that a run need not stand as a whole.
    """
    found = set()
    for word in words:
        for folded in terms.fold(word).casefold().split():
            found.update(terms.cut(folded) if is_chinese(folded) else [stem(folded)])
    return found


def is_on(word: str, text: str) -> bool:
    """Whether a folded text has a word of the question, or another word for it; in Latin letters, as a whole
    word or as the beginning of one.
    """
    return any(_begins_in(one, text) for one in (word, *SAME.get(word, ())))


def _begins_in(word: str, text: str) -> bool:
    """Whether a text has something at the beginning of a word."""
    at = text.find(word)
    while at > 0 and word[:1].isascii() and text[at - 1].isascii() and text[at - 1].isalnum():
        if word[0].isalpha() != text[at - 1].isalpha():
            break  # 2km, v3
        at = text.find(word, at + 1)
    return at >= 0


def names_of(table: dict[str, str], text: str) -> dict[str, int]:
    """The keys of a table of names that a text in small letters has, each with the length of the longest one.
    A value has English names, and Chinese ones behind a bar.
    """
    found: dict[str, int] = {}
    spoken = f" {' '.join(_WORD.findall(text))} "
    for key, names in table.items():
        english, _, chinese = names.partition("|")
        lengths = [len(name) for name in english.strip().split(", ") if f" {name} " in spoken]
        lengths += [2 * len(name) for name in chinese.split() if name in text]
        if lengths:
            found[key] = max(lengths)
    return found


def all_names(names: str) -> list[str]:
    """The names in a value of such a table."""
    english, _, chinese = names.partition("|")
    return [*filter(None, english.strip().split(", ")), *chinese.split()]


def agenda_period(question: str) -> str | None:
    """Which of `PERIODS` a question about the agenda asks for; None for any other question."""
    text = question[:MAX_QUESTION].casefold().replace("’", "'")
    period = next((name for name, named in _PERIODS if named.search(text)), "")
    is_first = wants_first(text)
    if not (_AGENDA.search(text) or is_first or (period and _AGENDA_VERBS.search(text))):
        return None
    span = "" if period else span_of(text)
    if is_chinese(text):
        only = not any(map(str.isalnum, _AGENDA_CHINESE.sub("", text)))
    else:
        words = {_plain(word) for word in _WORD.findall(text)}
        words -= {word for word in words if word in figures.MONTHS or word.isdigit()} if span else set()
        only = words <= _AGENDA_WORDS | _QUESTION_WORDS and "last" not in words
    named = period or (span if span[:1].isdigit() else "") or (AHEAD if is_first else "")
    return named if only else None


def greets(question: str) -> bool:
    """Whether nothing is asked: a greeting, or thanks."""
    text = question[:MAX_QUESTION].casefold()
    if is_chinese(text):
        return not any(map(str.isalnum, _GREETINGS_CHINESE.sub("", text)))
    words = [_plain(word) for word in _WORD.findall(text)]
    return bool(words) and _GREETINGS.issuperset(words)


def saved_since(question: str) -> str:
    """The time of a question about everything that was saved in it: "today", "this_week", "this_month" or
    ""; "" for a question about something.
    """
    text = question[:MAX_QUESTION].casefold().replace("’", "'")
    period = next((name for name, named in _PERIODS if named.search(text)), "")
    if period not in SINCE:
        return ""
    if is_chinese(text):
        left = _CHINESE_QUESTION_WORDS.sub("", _AGENDA_CHINESE.sub("", text))
        saves = names_one(text, "", _TABLE["saving_chinese"])
        for word in _TABLE["saving_chinese"].split():
            left = left.replace(word, "")
        return period if saves and not any(map(str.isalnum, left)) else ""
    words = {_plain(word) for word in _WORD.findall(text)}
    is_about_all = words <= _SAVING | _QUESTION_WORDS | _AGENDA_WORDS
    return period if is_about_all and not _SAVING.isdisjoint(words) else ""


def span_of(question: str) -> str:
    """The month or year of a question: "2026-11", "2026", "11" (the latest November), "this_month",
    "last_month", "this_year", or "".
    """
    text = terms.fold(question[:MAX_QUESTION]).casefold()
    for name, pattern in _SPANS:
        if pattern.search(text):
            return name
    year = _YEAR.search(text)
    return "-".join(filter(None, (year[0] if year else "", _month_of(text))))


def _month_of(text: str) -> str:
    """The number of the month that a text in small letters names, as "06"; "" where it names none."""
    found = _MONTH_NAMED.search(text) or _MONTH_CHINESE.search(text)
    number = (figures.MONTHS.get(found[1]) or int(found[1])) if found else 0
    return f"{number:02}" if 0 < number <= 12 else ""


def is_chinese(text: str) -> bool:
    return _CHINESE.search(text) is not None


def _wanted(words: list[str], helpful: list[str]) -> tuple[list[str], list[str]]:
    """A question that has only helpful words wants the things that they name, else all of them."""
    if words:
        return words, helpful
    things = [word for word in helpful if _is_thing(word)]
    return (things, [word for word in helpful if word not in things]) if things else (helpful, [])


def _is_thing(word: str) -> bool:
    return word in _CHINESE_KINDS or not _KINDS.isdisjoint((_plain(word), _plain(stem(word))))


def _words(question: str) -> tuple[list[str], list[str]]:
    """The words of a question that must be on a screenshot, and those that may."""
    left, sought = question, _sought(question)
    if is_chinese(question):
        left = _WANTING.sub(lambda found: found[1] or " ", _CHINESE_QUESTION_WORDS.sub(" ", question))
    words: dict[str, None] = {}
    helpful: dict[str, None] = {}
    for word in _WORD.findall(left)[: 4 * MOST_WORDS]:
        if is_chinese(word):
            thing, kind = _parts(word)
            if thing in CHINESE_FIELDS:
                thing, kind = "", thing + kind
            elif latin := _LATIN.fullmatch(thing):
                thing, kind = latin[1], latin[2]
            (helpful if thing + kind in sought else words).update(dict.fromkeys(filter(None, [thing])))
            helpful |= dict.fromkeys(filter(None, [kind]))
        elif _plain(word) in _QUESTION_WORDS:
            continue
        else:
            word = _POSSESSIVE.sub("", word)
            is_helpful = _plain(word) in _ACTIONS or _is_thing(word) or _plain(word) in _CALENDAR
            is_helpful = is_helpful or bool(names_of(FIELDS, _plain(word))) or word in sought
            (helpful if is_helpful else words)[word] = None
    return _named_together(question, list(words))[:MOST_WORDS], list(helpful)[:MOST_WORDS]


def _named_together(question: str, words: list[str]) -> list[str]:
    """The words of a question, those of a name ("Martin Wheeler") as one: half of it is not enough."""
    found: list[str] = []
    for word in words:
        together = f"{found[-1]} {word}" if found else ""
        if together and word[0].isupper() and found[-1][0].isupper() and together in question:
            found[-1] = together
        else:
            found.append(word)
    return found


def _parts(run: str) -> tuple[str, str]:
    """A run of Chinese as the thing and what it is called: 去北京的火车 has the runs 去北京 and 火车."""
    thing = run.lstrip(_CHINESE_BEFORE).rstrip(_CHINESE_BEHIND).strip(_CHINESE_VERBS)
    kind = next((kind for kind in _CHINESE_KINDS if thing.endswith(kind)), "")
    return thing.removesuffix(kind).strip(_CHINESE_VERBS), kind


def stem(word: str) -> str:
    """An English word without the ending of a plural or a past; any other word as it is. A search then finds
    all forms, since it also finds longer words that begin so.
    """
    for ending, replaced, shortest in (
        ("ies", "", 5),
        ("sses", "ss", 6),
        ("es", "", 6),
        ("s", "", 4),
        ("ing", "", 7),
        ("ed", "", 6),
    ):
        if (
            len(word) >= shortest
            and word.isascii()
            and word.lower().endswith(ending)
            and not word.lower().endswith("ss")
        ):
            return word[: -len(ending)] + replaced
    return word


def _goes_on(question: str, words: list[str]) -> bool:
    """Whether a question is about the subject of an earlier one: it has no words, or refers to something."""
    if not words:
        return True
    if is_chinese(question):
        return len(words) == 1 and _CHINESE_FOLLOWING.search(question.strip()) is not None
    spoken = [_plain(word) for word in _WORD.findall(question)]
    return len(words) <= 2 and (_begins_anew(question) or not _FOLLOWING.isdisjoint(spoken))


def _begins_anew(question: str) -> bool:
    """Whether a question names another thing of which the same is wanted: "and the electricity?" """
    spoken = [_plain(word) for word in _WORD.findall(question)]
    if is_chinese(question):
        return _CHINESE_ANEW.match(question.strip()) is not None
    refers = not _FOLLOWING.isdisjoint(spoken)
    return not refers and (any(spoken[: len(one)] == one for one in _ANEW))


def _plain(word: str) -> str:
    return word.casefold().replace("’", "'")
