"""Words for a record: its one-line fact, its title and its summary, in English and in Chinese.

The templates are data (`rules/words/templates.toml`), one for each type and language. Everything here needs
the record only, so that it can be put into words when it is shown: in the language of whoever asks (`speak`),
also where the stored title and summary were made in another one (`again`).
"""

import re
from contextvars import ContextVar
from datetime import datetime

from engines.findings import MAX_TITLE
from engines.records import TYPES, Record, Value
from rules import wordlists
from text import one_line, shortened

LINE = 90  # characters of a one-line fact
# Characters of a text, a heading, a quotation, an entry of a list, the beginning of a text, a whole one.
SHORT, LONG, QUOTED, ENTRY, HEAD, SAID = 48, 90, 110, 36, 56, 150
SUMMARY_LENGTH = 200
NAMED, FULL = 4, 4  # entries that are named, and those that are named with what belongs to them
MOST = {"two": 2, "three": 3}  # entries by form

LANGUAGES = ("en", "zh")

_spoken: ContextVar[str] = ContextVar("spoken", default="")  # by whoever made the request
_TEMPLATES = wordlists.table("templates")
_PHRASES = wordlists.table("sentences")
_SIGNS: dict[str, str] = _TEMPLATES["signs"]
_CARRIER = re.compile(r"^([A-Z]{2,3})(\d)")  # "NW482" is written "NW 482"
_OPTIONAL = re.compile(r"\[([^\[\]]*)\]")
_FIELD = re.compile(r"\{(\w+)(?::(\w+))?\}")


def speak(language: str) -> None:
    """Put records into words of this language from now on, in this request; "" for that of the settings."""
    _spoken.set(language)


def spoken(default: str) -> str:
    """The language of whoever made the request, `default` where none did."""
    return _spoken.get() or default


def again(record: Record, app: str, title_: str, summary_: str) -> tuple[str, str]:
    """A stored title and summary in the language that is spoken, where a template has made them of this
    record; what a person or another model wrote stays as it is.
    """
    wanted = _spoken.get()
    for other in LANGUAGES if wanted else ():
        if other != wanted:
            title_ = _title_again(record, title_, other, wanted)
            summary_ = _summary_again(record, app, summary_, other, wanted)
    return title_, summary_


def _title_again(record: Record, said: str, other: str, wanted: str) -> str:
    """It may have the app before it, and more of the screen behind it."""
    made, texts = title(record, other), _PHRASES[other]["caption"]
    spoken = title(record, wanted) or made
    if not made:
        return said
    if said == shortened(made, MAX_TITLE):
        return shortened(spoken, MAX_TITLE)
    before, found, behind = said.partition(made)
    has_app = before.endswith(texts["of_app"].format(app="", title=""))
    has_more = behind.startswith((texts["comma"], texts["named"].format(title="", entries="")))
    is_made = found and (has_app or not before) and (has_more or not behind)
    return shortened(f"{before}{spoken}{behind}", MAX_TITLE) if is_made else said


def _summary_again(record: Record, app: str, said: str, other: str, wanted: str) -> str:
    """It may have a second sentence, of what else the screen has."""
    made = finished(summary(record, other), app, other)
    first, last = _PHRASES[other]["caption"]["also"].format(said=made, entries="\n").split("\n")
    is_made = said == made or (said.startswith(first) and said.endswith(last))
    return (made and is_made and finished(summary(record, wanted), app, wanted)) or said


def finished(sentence: str, app: str, language: str) -> str:
    """A sentence with its app, where it does not name it, and its full stop, at most `SUMMARY_LENGTH`
    characters; "" stays "".
    """
    texts, sentence = _PHRASES[language]["caption"], one_line(sentence)
    if not sentence:
        return ""
    if app and app.casefold() not in sentence.casefold():
        sentence = texts["named"].format(title=app, entries=sentence)
    end = "" if sentence.endswith((".", "。", "!", "?", "！", "？", "…", "”")) else texts["end"]
    if len(sentence) >= SUMMARY_LENGTH:
        return shortened(sentence, SUMMARY_LENGTH)
    return shortened(sentence, SUMMARY_LENGTH - 1) + str(end)


def line(record: Record, language: str) -> str:
    """The one-line fact of a record: "€23.80 · REWE · 21 Nov"; "" for a type that has no template."""
    parts = []
    for named in _TEMPLATES.get(record.type, {"line": ""})["line"].split():
        name, _, form = named.partition(":")
        words = [_shown(record, one, form, language) for one in name.split("–")]
        if all(words):
            parts.append("–".join(words))
    return shortened(" · ".join(parts), LINE)


def title(record: Record, language: str) -> str:
    """The title of a screen that this record is about, "" where its type has no template."""
    return _filled(record, "title", language)


def thread(record: Record, language: str) -> str:
    """The name of the order, parcel, trip or booking that this record is about, whatever its state."""
    name = _filled(record, "thread", language) or title(record, language)
    return name[:1].upper() + name[1:]


def summary(record: Record, language: str) -> str:
    """One sentence about the record, without a full stop; "" where its type has no template."""
    said = _filled(record, "summary", language)
    return said[:1].upper() + said[1:]


def complete(template: str, record: Record, language: str) -> str:
    """A template in words of a language, "" where a field of it is missing."""
    named = _FIELD.findall(template)
    if not all(worded(record, name, form, language) for name, form in named):
        return ""
    return _FIELD.sub(lambda match: worded(record, match[1], match[2] or "", language), template)


def worded(record: Record, name: str, form: str, language: str) -> str:
    """The value of a field in words of a language, "" where the record has none. `form` is that of the
    templates: `day`, `clock`, `quote`, `long`, `head`, `said`, `full`, `two`, `three` or "".
    """
    value = record.get(name)
    if value is None:
        return ""
    kind = TYPES[record.type].fields[name].kind
    if isinstance(value, str):
        if kind in ("day", "time"):
            return when(value, language, form)
        return _text(value, form, language)
    if isinstance(value, dict):
        return money(value)
    return _listed(value, form, language)


def money(value: dict[str, str]) -> str:
    """An amount with the sign of its currency, or with its code: "€23.80", "CHF 12"."""
    number, currency = value["value"], value["currency"]
    minus, number = ("-", number[1:]) if number.startswith("-") else ("", number)
    whole, point, rest = number.partition(".")
    number = f"{int(whole or 0):,}{point}{rest}"
    return f"{minus}{_SIGNS[currency]}{number}" if currency in _SIGNS else f"{currency} {minus}{number}"


def when(value: str, language: str, form: str = "") -> str:
    """A day or a time of a record in words: "Fri 4 Dec 07:10", "21 Nov"; with `form` "day" or "clock" only
    that part.
    """
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return ""
    has_clock = len(value) > 10
    clock = f"{moment:%H:%M}"
    if form == "clock" and has_clock:
        return clock
    if language == "zh":
        day = f"{moment.month}月{moment.day}日"
        weekday = f"周{'一二三四五六日'[moment.weekday()]}"
    else:
        day, weekday = f"{moment.day} {moment:%b}", f"{moment:%a} "
    if form == "day" or not has_clock:
        return day
    return f"{day} {weekday} {clock}" if language == "zh" else f"{weekday}{day} {clock}"


def enumerated(names: list[str], language: str, most: int = NAMED) -> str:
    """“Anna, Ben and Chor”, or with “and more” where there are more than `most` and one."""
    texts = _PHRASES[language]["caption"]
    names = list(dict.fromkeys(name for name in names if name))
    if len(names) > most + 1:
        return str(texts["more"].format(texts["comma"].join(names[:most])))
    if len(names) < 2:
        return "".join(names)
    return str(texts["and"].format(texts["comma"].join(names[:-1]), names[-1]))


def _filled(record: Record, what: str, language: str) -> str:
    """The first template of which all fields outside of brackets are known, filled in."""

    def known(text: str) -> bool:
        return all(worded(record, name, form, language) for name, form in _FIELD.findall(text))

    def fill(text: str) -> str:
        return _FIELD.sub(lambda match: _shown(record, match[1], match[2] or "", language), text)

    def kept(template: str) -> str:
        """A template without the brackets, and without what is in them where it is unknown or said around
        them: “Settings” of the settings.
        """
        frame = _OPTIONAL.sub("", template).casefold()

        def more(match: re.Match[str]) -> str:
            is_said = fill(match[1]).strip(" “”").casefold() in frame
            return match[1] if known(match[1]) and not is_said else ""

        return _OPTIONAL.sub(more, template)

    for template in _TEMPLATES.get(record.type, {}).get(language, {}).get(what, []):
        if known(_OPTIONAL.sub("", template)):
            return one_line(fill(kept(template))).strip(" ,，:：·–")
    return ""


def _shown(record: Record, name: str, form: str, language: str) -> str:
    """A field as titles and lines have it: a number of a journey with a space."""
    text = worded(record, name, form, language)
    return _CARRIER.sub(r"\1 \2", text) if name == "number" else text


def _text(value: str, form: str, language: str) -> str:
    if form == "quote":
        return str(_PHRASES[language]["caption"]["quote"].format(shortened(value, QUOTED)))
    return shortened(value, {"long": LONG, "quoted": QUOTED, "head": HEAD, "said": SAID}.get(form, SHORT))


def _listed(value: Value, form: str, language: str) -> str:
    entries = [entry for entry in value if isinstance(entry, dict)]
    if form != "full":
        names = [shortened(next(iter(entry.values())), ENTRY) for entry in entries]
        return enumerated(names, language, MOST.get(form, NAMED))
    colon = "：" if language == "zh" else ": "
    full = [colon.join(shortened(said, SHORT) for said in entry.values()) for entry in entries]
    return enumerated(full, language, FULL)
