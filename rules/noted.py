"""Puts a note of the embedded model (`rules/digest.py`) into another language when it is shown.

Its sentences are templates (`[en.note]` in `rules/words/sentences.toml`), around titles and summaries of
screenshots, which may be of templates too. So a stored note is taken apart line by line and put together in
the other language. What is no such sentence stays as it is: the words of screens, of persons and of other
models.
"""

import functools
import re
from collections.abc import Sequence
from datetime import date, timedelta

from rules import templates, wordlists
from text import shortened

MAX_NAMED = 60  # characters of a screenshot's title in the title of a note

_TEXTS = wordlists.table("sentences")
_PLACES = {
    "said": ".*",
    "count": r"\d{1,6}",
    "name": f".{{1,{MAX_NAMED}}}",
    "before": ".{1,40}",
    "after": ".{1,40}",
}
_A_DAY = "[^:：]{3,20}"
_SENTENCES = ("due", "on_day", "of", "together", "together_day", "about", "trip", "trip_day")


def _form(sentence: str, *, is_plain: bool) -> str:
    """The expression of a sentence; `is_plain`: as a summary has it, without its marks."""
    parts = re.split(r"\{(\w+)\}", sentence.removeprefix("- ").replace("**", "") if is_plain else sentence)
    return "".join(
        f"(?P<{part}>{_PLACES.get(part, _A_DAY)})" if number % 2 else re.escape(part)
        for number, part in enumerate(parts)
    )


_FORMS = {
    language: [
        (name, is_plain, re.compile(_form(texts["note"][name], is_plain=is_plain) + (
            f"(?: ?{_form(texts['note']['changed'], is_plain=False)})?" if "together" in name else ""
        )))
        for name in _SENTENCES
        for is_plain in (False, True)
    ]
    for language, texts in _TEXTS.items()
}  # fmt: skip


def again(text: str, pairs: Sequence[tuple[str, str]], about: date) -> str:
    """The title, the summary or the content of a note in the language that is spoken: its sentences, and in
    them those titles and summaries of its screenshots that a template has made. `pairs` has these as they are
    stored and as they are spoken; `about` is a day near those of the note, which have no year. What is no
    sentence of these rules stays as it is.
    """
    wanted = templates.spoken("")
    for language in templates.LANGUAGES if wanted else ():
        if language != wanted:
            text = "\n".join(_spoken(line, language, wanted, pairs, about) for line in text.split("\n"))
    return text


def _spoken(line: str, language: str, wanted: str, pairs: Sequence[tuple[str, str]], about: date) -> str:
    texts, days = _TEXTS[wanted]["note"], _days(language, about)
    for name, is_plain, form in _FORMS[language]:
        found = form.fullmatch(line)
        words = {place: said for place, said in found.groupdict().items() if said} if found else {}
        dated = [place for place in words if place not in _PLACES]
        if found is None or any(words[place] not in days for place in dated):
            continue
        words |= {place: texts["day"].format(day=days[words[place]]) for place in dated}
        words |= {place: _named(words[place], pairs) for place in ("name", "said") if place in words}
        facts, wanted_facts = (one["facts"].split("{facts}") for one in (_TEXTS[language]["note"], texts))
        if words.get("said", "").endswith(facts[1]) and facts[0] in words["said"]:
            before, _, named = words["said"].removesuffix(facts[1]).rpartition(facts[0])
            words["said"] = f"{before}{wanted_facts[0]}{named}{wanted_facts[1]}"
        made = str(texts[name].format(**words))
        if "before" in words:
            made += " " * (texts["stop"] == ".") + texts["changed"].format(**words)
        return made.removeprefix("- ").replace("**", "") if is_plain else made
    return _named(line, pairs)


def _named(said: str, pairs: Sequence[tuple[str, str]]) -> str:
    """The title of a screenshot, or its summary, also with values behind it in brackets."""
    for stored, spoken in pairs:
        if said == shortened(stored, MAX_NAMED):
            return shortened(spoken, MAX_NAMED)
        if said == stored or said.startswith((f"{stored} (", f"{stored}（")):
            return spoken + said[len(stored) :]
    return said


@functools.lru_cache(maxsize=64)
def _days(language: str, about: date) -> dict[str, date]:
    """The days within a year of one, by how notes name them; of two with one name the nearer."""
    near = (about + timedelta(days=number) for number in sorted(range(-365, 366), key=abs, reverse=True))
    return {_TEXTS[language]["note"]["day"].format(day=day): day for day in near}
