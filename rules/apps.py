"""Apps by all of their names: the English one, the Chinese one, and the package names that phones write
into the names of screenshots.

The most used ones (`rules/words/names.toml`) are known in any place where a name may stand, the many others
(`rules/words/apps.toml`) where nothing else does.
"""

import functools

from rules import wordlists
from rules.layout import is_chinese


def _by_name(text: str) -> dict[str, tuple[str, str]]:
    """The English and the Chinese name of each app of a list, by each of its names."""
    found = {}
    for line in wordlists.lines(text):
        parts = line.split(" | ")
        chinese = next((part for part in parts[1:] if is_chinese(part[0])), parts[0])
        for part in parts:
            found[part.casefold()] = (parts[0], chinese)
    return found


_BY_NAME = _by_name(wordlists.table("names")["known"]["apps"])


@functools.cache
def _more() -> dict[str, tuple[str, str]]:
    """Read when the first screen is judged: a service that only answers needs no room for them."""
    return _by_name(wordlists.table("apps")["more"]["apps"])


def names_of(name: str) -> tuple[str, str]:
    """The English and the Chinese name of the app that has this name, the same twice where it has one, ("",
    "") when it is not known.
    """
    return _BY_NAME.get(name.casefold(), ("", ""))


def more_of(name: str) -> tuple[str, str]:
    """The same among all apps that have ever been listed, for a place where nothing but a name stands."""
    return _BY_NAME.get(name.casefold()) or _more().get(name.casefold(), ("", ""))


def with_other_name(name: str) -> str:
    """A name and, where the app has another one, that behind it: an app is found by both."""
    return " ".join(dict.fromkeys(filter(None, (name, *names_of(name)))))
