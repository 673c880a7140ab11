"""The texts of the dashboard and of the page `/ca`: a file for each language in `templates/texts/`, by view
and word.

Another language is one more file there: its name is the language's code, `name` is what the settings offer it
as, and `tag` is the page's `lang`. Each script of the page gets only the texts that it uses, in one language.
"""

import functools
import re
import tomllib
from pathlib import Path
from typing import NamedTuple

Texts = dict[str, dict[str, str]]  # by view and word


class Language(NamedTuple):
    name: str  # in the language itself
    tag: str  # as the attribute `lang`
    texts: Texts


FOLDER = Path(__file__).with_name("templates") / "texts"
DEFAULT = "en"
# Their codes, the default first.
LANGUAGES = (DEFAULT, *sorted({path.stem for path in FOLDER.glob("*.toml")} - {DEFAULT}))

# A text is named in full, or by its beginning where the rest is computed: t("chat.title"),
# t(`chat.idea${number}`), term("category", value).
_NAMED = re.compile(r'"(\w+\.\w+)"')
_BEGUN = re.compile(r"`(\w+\.\w*)\$\{")
_TERM = re.compile(r'\bterm\("(\w+)"')
# The other way round, t(`${group}.add`) is a word of each view that is named by itself.
_WORD = re.compile(r"`\$\{\w+\}\.(\w+)`")
_VIEW = re.compile(r'"(\w+)"')


@functools.cache
def language(code: str) -> Language:
    """One of `LANGUAGES`, read at the first call: commands need none."""
    read = tomllib.loads((FOLDER / f"{code}.toml").read_text(encoding="utf-8"))
    return Language(read.pop("name"), read.pop("tag"), read)


def used(script: str, texts: Texts) -> Texts:
    """Those of `texts` that `script` may show."""
    named = set(_NAMED.findall(script))
    begun = (*_BEGUN.findall(script), *(f"{view}." for view in _TERM.findall(script)))
    views, words = set(_VIEW.findall(script)), set(_WORD.findall(script))

    def is_used(view: str, word: str) -> bool:
        key = f"{view}.{word}"
        return key in named or key.startswith(begun) or (view in views and word in words)

    return _some(
        {view: [word for word in entries if is_used(view, word)] for view, entries in texts.items()}, texts
    )


def without(texts: Texts, others: Texts) -> Texts:
    """`texts` without those that are among `others`."""
    return _some(
        {
            view: [word for word in entries if word not in others.get(view, {})]
            for view, entries in texts.items()
        },
        texts,
    )


def _some(words: dict[str, list[str]], texts: Texts) -> Texts:
    return {view: {word: texts[view][word] for word in chosen} for view, chosen in words.items() if chosen}
