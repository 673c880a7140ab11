"""Forms of names: what is written like the name of an app or a product, and what is a label, a heading or a
word that many screens have.
"""

import re

from rules import apps, phrases, wordlists
from rules.layout import is_chinese, plain

_TABLE = wordlists.table("names")
_ALSO_WORDS = frozenset(word.casefold() for word in wordlists.words(_TABLE["known"]["also_words"]))
_GENERIC, _GENERIC_CHINESE, _PLAIN, _PRODUCT_WORDS = (
    wordlists.words(_TABLE["plain"][name]) for name in ("generic", "generic_chinese", "between", "product")
)
# Samsung: Screenshot_20241121-073104_WhatsApp.jpg. Xiaomi and others:
# Screenshot_2024-11-21-07-31-04-123_com.tencent.mm.jpg.
_FILE_NAME = re.compile(
    r"Screenshot_(?:\d{8}[-_]\d{6}|\d{4}(?:-\d\d){5}(?:-\d{1,3})?)_(?P<app>[^_/~]+?)"
    r"(?:~\d+|-edit\w*)?\.\w+",
    re.IGNORECASE,
)
_COINED = re.compile(
    r"[A-Z]?[a-z]{1,14}[A-Z][A-Za-z]{1,14}|[A-Z]{2,5}[a-z]{2,14}|[A-Z][a-z]{2,12}(?:ify|Fork|DX)"
)
_BEFORE = tuple(f"{word} " if word.isascii() else word for word in wordlists.lines(_TABLE["plain"]["before"]))
_BEHIND = re.compile(
    rf"(\w[^:：\d]{{2,29}}?) ?(?:{'|'.join(wordlists.lines(_TABLE['plain']['behind']))}|v)"
    r"(?:[:. ]{0,3}\d[\d.]{0,12}.{0,24})?",
    re.IGNORECASE,
)
# A program that is in no list: "Fernery 0.4.0", "Fernery version: 0.5.9-beta", "Fernery 8.8 (7415)".
_VERSIONED = re.compile(
    r"([A-Z][A-Za-z]{2,20}|[\u4e00-\u9fff]{3,10})(?: version:?| ?v)? ?"
    r"\d{1,3}\.\d{1,3}(?:\.\d{1,4}| \(\d).{0,24}"
)
_SIGN_BEFORE = re.compile(r"^\w (?=\w{3})")
_VERSION_BEHIND = re.compile(r" ?[vV]?\d{1,3}(?:\.\d{1,4}){1,3}$")
MOST_OF_PHRASE = 60  # characters


def in_file_name(file_name: str) -> str:
    """The app that a phone has written into the name of a screenshot, "" where none has."""
    # In code that the name has a letter: in the expression, this would take quadratic time.
    if (named := _FILE_NAME.fullmatch(file_name)) and any(map(str.isalpha, named["app"])):
        return apps.more_of(named["app"])[0] if named["app"].count(".") >= 2 else named["app"]
    return ""


def in_phrase(text: str) -> str:
    """The app of a whole line like "Welcome to Orgzly!", "Search in Signal" or "BitBanana version 0.5.9"."""
    text = plain(text[:MOST_OF_PHRASE])
    lower = text.casefold()
    before = next((word for word in _BEFORE if lower.startswith(word)), "")
    if before:
        return text[len(before) :].strip(" !！.:：,")
    match = _BEHIND.fullmatch(text)
    return match[1].strip() if match else ""


def versioned(text: str) -> str:
    """The name before a version on a whole line, "" where there is none."""
    match = _VERSIONED.fullmatch(plain(text[:MOST_OF_PHRASE]))
    return match[1] if match else ""


def is_everyday(name: str) -> bool:
    """Whether many screens have all words of a name, and it is not written like a product ("PayPal")."""
    words = name.casefold().split()
    listed = all(word in _ALSO_WORDS or word in _GENERIC or phrases.is_listed(word) for word in words)
    return listed and not _COINED.fullmatch(name)


def is_common(text: str) -> bool:
    """Whether labels of many apps have all of its words, or end like a Chinese text."""
    ends, words = wordlists.parts_of_labels()
    if is_chinese(text[-1:]):
        return text[-2:] in ends
    said = filter(None, re.split(r"[\W\d_]+", text.casefold()))
    return all(word in words or word in _GENERIC or phrases.is_listed(word) for word in said)


def is_coined(name: str) -> bool:
    """Whether a word of it is built like a product's name ("SimplyTranslate", "Gotify") and not like a
    family's.
    """
    return _COINED.search(name) is not None and not any(word.startswith("Mc") for word in name.split())


def is_product(name: str) -> bool:
    """Whether it ends with a word like "Chat", "Cloud" or "Player"."""
    return name[name.rfind(" ") + 1 :].casefold() in _PRODUCT_WORDS


def is_generic(text: str) -> bool:
    """Whether a title names no thing of its own: "Settings", "My orders", 设置."""
    words = plain(text).casefold().replace("’s", "").split()
    return (
        all(word.strip(".,:") in _GENERIC or word in _PLAIN for word in words)
        or text.strip() in _GENERIC_CHINESE
    )


def without_version(text: str) -> str:
    """The name in a wordmark: without the sign before it and the version behind it."""
    return _VERSION_BEHIND.sub("", _SIGN_BEFORE.sub("", plain(text)))


def without_count(text: str) -> str:
    """A header without the number of unread things: "微信(12)" is 微信."""
    head, bracket, rest = text.replace("（", "(").rpartition("(")
    return head.strip() if bracket and rest.rstrip(")）+ ").isdigit() else text
