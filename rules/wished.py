"""Whether a line has what a question wishes for: a day for "when", a price for "how much"."""

import re

from rules import wordlists
from rules.entities import CLOCK, MONTH, NUMBER, SIGN
from rules.questions import CHINESE_FIELDS, FIELDS, Question, Wish, names_of, names_one
from rules.wordlists import any_of, either
from writings import figures

_DIGITS = re.compile(r"\d(?:[ ()/.-]{0,2}\d)*")  # of one number, as phone numbers are written
MAX_ANSWERING = 300  # characters of a line
AMONG_OTHERS, RELATIVE = 0.9, 0.6  # how well what is wished for answers among other words, and "today"

_TABLE = wordlists.table("questions")
_ENGLISH_FIELDS = (names.partition("|")[0].strip().split(", ") for names in FIELDS.values())
_FIELD_NAMES = CHINESE_FIELDS.union(*_ENGLISH_FIELDS)
_DAYS = either(_TABLE["days_named"])
_ASKS_CLOCK = re.compile(either(_TABLE["clock"]))
_CLOCK = re.compile(rf"(?<!\d){CLOCK}|\d ?[ap]m\b|\d[点點]", re.I)
_DAY_NAMED = re.compile(_DAYS, re.I)
_IP = r"(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?![\d.])"
_SIGNS = rf"(?:{SIGN}|[\u20a0-\u20c0])"  # the block of currency signs
_LARGE, _WITHIN = _TABLE["places_chinese"]
_BEHIND = _TABLE["behind"]  # what stands behind a number or a name of the kind that is wished for
_ANSWERS: dict[Wish, re.Pattern[str]] = {
    "when": re.compile(
        rf"{_DAYS}|(?<!\d){CLOCK}|\b{MONTH}\b|\d{{1,2}}月|\d{{1,2}} ?(?:am|pm)\b|\b(?:19|20)\d\d\b"
        r"|(?<![\d.,+$€£¥−-])(?:0?[1-9]|[12]\d|3[01])[./-](?:0?[1-9]|[12]\d|3[01])(?!\d)|\d{1,2}[点號号日]|^\d{1,2}(?= (?-i:[A-Z])[^\W\d]+$)",
        re.I,
    ),
    "long": re.compile(rf"\d ?(?:h\b|{any_of(_BEHIND['long'])})(?!\w{{0,20}} ?{any_of(_TABLE['past'])})|^\d{{1,3}}:[0-5]\d(?::[0-5]\d)?$", re.I),
    "amount": re.compile(rf"{_SIGNS} ?{NUMBER}|{NUMBER} ?{any_of(_BEHIND['amount'])}|(?<!\d)\d{{1,7}}[.,]\d\d(?!\d)|^\d{{1,7}}[.,]\d(?= ?(?:\(|$))|^[-+−]\d[\d.,]*$"),
    "who": re.compile(rf"(?:^|[\s:：])[A-Z][a-z]+(?: [A-Z][a-z]+){{0,3}}|@\w|{any_of(_BEHIND['who'])}"),
    "where": re.compile(
        rf"{either(_TABLE['places'])}|(?-i:\b(?:at|in) (?:the )?[A-Z]|\d{{1,4}} (?!{MONTH})[A-Z][a-z]+)"
        rf"|[a-zß-ÿ]{any_of(_BEHIND['where'])} ?\d|[{_LARGE}].{{0,40}}[{_WITHIN}]|[{_LARGE}{_WITHIN}](?=$|[\d\s,，、)）-])|[\w.]@\w|{_IP}",
        re.I,
    ),
    "link": re.compile(rf"https?:\S*|(?<![@\w.-])[\w-]+(?:\.[\w-]+)*\.[a-z]{{2,12}}(?:/\S*|\b(?![.@]))|{_IP}", re.I),
    "number": re.compile(r"\d+"),
}  # fmt: skip

# English ones are beginnings of words.
_LABELS: dict[Wish, re.Pattern[str]] = {
    wish: re.compile("|".join(rf"\b{re.escape(one)}" if one.isascii() else one for one in names))
    for wish, names in _TABLE["labels"].items()
}
UNITS: dict[str, str] = _TABLE["units"]
DIGITS: dict[str, int] = _TABLE["digits"]


def answers(asked: Question, line: str) -> float:
    """How well a line has something of the kind that is wished for: 1 where that is most of the line, less
    among other words and for a day that only the picture's own says ("today"), and 0 where it has nothing. A
    name or a number of the question itself answers nothing, and a phone number has several digits.
    """
    pattern = _ANSWERS.get(asked.wish)
    if pattern is None or (asked.wish == "who" and _is_label(line)):
        return 0.0
    line = line[:MAX_ANSWERING]
    if asked.wish == "when" and _ASKS_CLOCK.search(asked.text) and not _CLOCK.search(line):
        return 0.0
    if asked.wish == "number":
        line = _without_names(asked, line)
    found = [one[0] for one in pattern.finditer(line)]
    if asked.wish in ("who", "where", "number"):
        found = [one for one in found if one.strip(" :：").casefold() not in asked.text]
    if asked.wish in ("who", "number"):
        fewest = max((DIGITS.get(name, 0) for name in names_of(FIELDS, asked.text)), default=0)
        most = max((sum(map(str.isdigit, one)) for one in _DIGITS.findall(line)), default=0)
        own = {*asked.text.split(), *figures.MONTHS}
        found = [one for one in found if own.isdisjoint(one.casefold().split())]
        if most < fewest or not _has_unit(asked, line):
            return 0.0
    if not found:
        return 0.0
    if asked.wish == "when" and all(map(_DAY_NAMED.fullmatch, found)):
        return RELATIVE
    said = sum(len(one.strip()) for one in found)
    return 1.0 if 2 * said >= len(line.strip()) else AMONG_OTHERS


def _without_names(asked: Question, line: str) -> str:
    """A line without times, and without what begins with a word of the question: "gemma-2" is no number."""
    words = tuple(word.casefold() for word in asked.wanted if word.isascii())
    return " ".join(one for one in _CLOCK.sub("", line).split() if not one.casefold().startswith(words))


def _is_label(line: str) -> bool:
    """Whether a line is a label that apps have, or the name of a field, and no person's."""
    return wordlists.is_interface(line) or line.casefold().rstrip(" :：") in _FIELD_NAMES


def _has_unit(asked: Question, line: str) -> bool:
    """Whether a line has the unit that a question names, beside a number or as its label."""
    named = [key for key in UNITS if names_one(asked.text, *((key,) if key.isascii() else ("", key)))]
    return not named or any(
        re.search(rf"(?:\d ?|^)(?:{unit})(?![^\W\d_])", line, re.I)
        for key in named
        for unit in UNITS[key].split()
    )


def labels(wish: Wish, line: str) -> bool:
    """Whether a line, in lower case, names what is wished for, as "Departure" does a date."""
    pattern = _LABELS.get(wish)
    return pattern is not None and pattern.search(line) is not None
