"""Well-known apps by all of their names: the English one, the Chinese one, and the package names that phones
write into the names of screenshots (`rules/words/names.toml`).
"""

from rules import wordlists
from rules.layout import is_chinese

_BY_NAME: dict[str, tuple[str, str]] = {}
for _line in wordlists.lines(wordlists.table("names")["known"]["apps"]):
    _parts = _line.split(" | ")
    _chinese = next((_part for _part in _parts[1:] if is_chinese(_part[0])), _parts[0])
    for _part in _parts:
        _BY_NAME[_part.casefold()] = (_parts[0], _chinese)


def names_of(name: str) -> tuple[str, str]:
    """The English and the Chinese name of the app that has this name, the same twice where it has one, ("",
    "") when it is not known.
    """
    return _BY_NAME.get(name.casefold(), ("", ""))


def with_other_name(name: str) -> str:
    """A name and, where the app has another one, that behind it: an app is found by both."""
    return " ".join(dict.fromkeys(filter(None, (name, *names_of(name)))))
