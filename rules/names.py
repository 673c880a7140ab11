"""The name of the app that a screenshot shows, where something on it says so.

A wrong name would show up in searches for that app, so no guess is made: the name is in the file's
name, in a notification's header, in the title of a window, in a phrase like "Search in …", or at the top as
a name of the lists or one that is built like a product's ("SimplyTranslate", "Delta Chat", "Gotify"). A name
of everyday words ("Signal", "Photos", "Bolt") is more often a heading: it needs a second place.
"""

import re
from collections.abc import Sequence

from engines.lines import Line
from rules import apps, phrases, wordlists
from rules.kinds import headed, is_lock_screen
from rules.layout import Layout, is_chinese, is_clock, plain, weight

_TABLE = wordlists.table("names")
_ALSO_WORDS = frozenset(word.casefold() for word in wordlists.words(_TABLE["known"]["also_words"]))
# Samsung: Screenshot_20241121-073104_WhatsApp.jpg. Xiaomi and others:
# Screenshot_2024-11-21-07-31-04-123_com.tencent.mm.jpg.
_FILE_NAME = re.compile(
    r"Screenshot_(?:\d{8}[-_]\d{6}|\d{4}(?:-\d\d){5}(?:-\d{1,3})?)_(?P<app>[^_/~]+?)"
    r"(?:~\d+|-edit\w*)?\.\w+",
    re.IGNORECASE,
)


_GENERIC, _GENERIC_CHINESE, _PLAIN, _PRODUCT_WORDS = (
    wordlists.words(_TABLE["plain"][name]) for name in ("generic", "generic_chinese", "between", "product")
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
_NAME = re.compile(r"[A-Z][A-Za-z]{2,20}")
_WINDOW = 0.09  # of the height: where a window's title is
_CORNER = (
    0.05  # of the height and 0.08 of the width: where the title of a window with its buttons beside it is
)
# Where a plain word is more likely to be the heading than an app's name.
_BY_PLAIN_WORDS = frozenset(["", "article", "page", "conversation", "note", "accounts", "payment", "shop"])
CLEAR = 0.95  # the same, for a name that nothing else confirms
TOP = 0.12  # of the height below the status bar: where the bar of an app or the head of a page ends
EDGE = 0.07  # of the width: where a text begins that no arrow or picture is beside
WIDE = 1.15  # times the height: a page, or the window of a program
LABELS, MOSTLY = 2, 0.75  # words of labels that make a menu, and their part of all of its words
READ = 0.9  # confidence for a name that something else confirms
LARGE = 1.3  # times the usual height: a name in the bar
SURE = 0.85  # confidence of reading from which on a text may be a name
# Such screens are headed by a person, a place or a thing, whose name may look like a product's.
_OF_OTHERS = frozenset(
    ["conversation", "post", "profile", "video", "article", "note", "weather", "map", "source"]
)


def app_name(layout: Layout, kind: str, file_name: str, language: str = "en") -> str:
    """The app if something names it, else "". An app with a Chinese name has it where `language` is "zh"."""
    found = _in_the_file_name(file_name) or _on_the_screen(layout, kind)
    return apps.names_of(found)[language == "zh"] or found


def _is_everyday(name: str) -> bool:
    """Whether many screens have all words of a name, and it is not written like a product ("PayPal")."""
    words = name.casefold().split()
    listed = all(word in _ALSO_WORDS or word in _GENERIC or phrases.is_listed(word) for word in words)
    return listed and not _COINED.fullmatch(name)


def _is_common(text: str) -> bool:
    """Whether labels of many apps have all of its words, or end like a Chinese text."""
    ends, words = wordlists.parts_of_labels()
    if is_chinese(text[-1:]):
        return text[-2:] in ends
    said = filter(None, re.split(r"[\W\d_]+", text.casefold()))
    return all(word in words or word in _GENERIC or phrases.is_listed(word) for word in said)


def known(text: str) -> str:
    """The English name of the well-known app that a whole text names, "" when it names none."""
    return apps.names_of(plain(text))[0]


def _in_the_file_name(file_name: str) -> str:
    # In code that the name has a letter: in the expression, this would take quadratic time.
    if (named := _FILE_NAME.fullmatch(file_name)) and any(map(str.isalpha, named["app"])):
        return apps.more_of(named["app"])[0] if named["app"].count(".") >= 2 else named["app"]
    return ""


def _on_the_screen(layout: Layout, kind: str) -> str:
    if kind in ("notices", "lock_screen") and (from_notices := _notified(layout)):
        return from_notices
    if kind in ("home_screen", "lock_screen"):
        return ""
    found = _at_the_top(layout, kind) or (_in_a_phrase(layout) if kind != "article" else "")
    return found if not _is_everyday(found) or _places(layout, found) > 1 else ""


def is_generic(text: str) -> bool:
    """Whether a title names no thing of its own: "Settings", "My orders", 设置."""
    words = plain(text).casefold().replace("’s", "").split()
    return (
        all(word.strip(".,:") in _GENERIC or word in _PLAIN for word in words)
        or text.strip() in _GENERIC_CHINESE
    )


def _notified(layout: Layout) -> str:
    """The app in the headers of notifications, if all name the same."""
    headers = filter(None, (headed(line.text) for line in layout.all_lines))
    senders = {_DOT.split(plain(header))[0].strip(" .…") for header in headers}
    if len(senders) != 1:
        return ""
    (sender,) = senders
    rows = len(layout.lines)
    # In a feed, "Anna · 5m" is a person: a header of notifications is on a short or locked screen.
    return sender if is_lock_screen(layout) or rows <= 16 else ""


def _at_the_top(layout: Layout, kind: str) -> str:
    words = [plain(line.text) for line in layout.headers[:2] if _may_name(layout, line)]
    alone = [without_count(text) for text in words]
    for text in alone:
        if name := known(text):
            return name
    if window := _window_title(layout, kind):
        return window
    for text in (without_count(plain(line.text).strip("<> ")) for line in _alone_at_the_top(layout)):
        # A person or a place may have the name of an app, but hardly one of two words.
        if (name := apps.more_of(text)[0]) and (kind not in _OF_OTHERS or not text.isalpha()):
            return name
    mark = _wordmark(layout)
    if mark and (
        (kind != "conversation" and _has_menu(layout, mark))
        or (kind not in _OF_OTHERS - {"article"} and _is_confirmed(layout, mark))
    ):
        return mark
    if kind == "post" and (title := _head_of_a_feed(layout)):
        return title
    # A narrow conversation is headed by a person.
    if kind in _OF_OTHERS - {"post"} and (kind != "conversation" or layout.width < layout.height):
        return ""
    at_the_top = [
        line for line in layout.headers[:1] if _is_in_the_bar(layout, line) and _may_name(layout, line)
    ]
    texts = (
        without_count(plain(line.text))
        for line in (*at_the_top, *layout.below_heading)
        if line.confidence >= CLEAR
    )
    return next(filter(_is_product, texts), "")


def _is_confirmed(layout: Layout, name: str) -> bool:
    """Whether more than its place says that a text is an app's name: its form, a list of apps, or a second
    place.
    """
    is_formed = is_chinese(name[:1]) or "-" in name or _COINED.search(name) is not None
    return is_formed or bool(apps.more_of(name)[0]) or _places(layout, name) > 1


def _places(layout: Layout, name: str) -> int:
    """How many lines have a name."""
    folded = name.casefold()
    return sum(folded in line.text.casefold() for line in layout.all_lines)


def _head_of_a_feed(layout: Layout) -> str:
    """The name in large letters at the left edge, where no arrow or picture of a person is beside it."""
    if not layout.headers or not _is_in_the_bar(layout, line := layout.headers[0]):
        return ""
    text = line.text.strip()
    is_name = (
        line.left < EDGE * layout.width
        and line.height >= LARGE * layout.median
        and line.confidence >= CLEAR
        and text.isascii()
        and text.replace(" ", "").isalpha()
        and len(text.split()) <= 3
        and all(word[0].isupper() for word in text.split())
        and not _is_common(text)
    )
    return text if is_name else ""


def _is_in_the_bar(layout: Layout, line: Line) -> bool:
    """Whether a line is in the bar of an app or the head of a page."""
    return line.bottom < layout.top + TOP * min(layout.height, 2 * layout.width)


def _alone_at_the_top(layout: Layout) -> list[Line]:
    """The first text of the screen, in its bar or in the corner of a page, where little but a name stands."""
    first = [line for line in layout.lines[:3] if weight(line.text) >= 3 and not is_clock(line.text)]
    return [
        line
        for line in (*layout.headers[:1], *first[:1])
        if _may_name(layout, line) and _is_in_the_bar(layout, line)
    ]


def _wordmark(layout: Layout) -> str:
    """The name in the upper left corner of a wide page."""
    if layout.width < WIDE * layout.height or not layout.lines:
        return ""
    line = next((line for line in layout.lines[:3] if line.confidence >= SURE), layout.lines[0])
    text = _named(line.text)
    is_mark = (
        line.left < 0.2 * layout.width
        and line.confidence >= READ
        and re.sub("[ .-]", "", text).isalpha()
        and 3 <= weight(text) <= 20
        and (text[:1].isupper() or (is_chinese(text[:1]) and len(text) >= 5))
        and len(text.split()) <= 3
        and (text.isascii() or is_chinese(text[:1]))
        and not _is_common(text)
    )
    return text if is_mark else ""


def _named(text: str) -> str:
    """The name in a wordmark: without the sign before it and the version behind it."""
    return _VERSION_BEHIND.sub("", _SIGN_BEFORE.sub("", plain(text)))


def _has_menu(layout: Layout, name: str) -> bool:
    """Whether the menu of a site or a window is beside a name, or in the row below it."""
    if _is_common(name.split()[0]):
        return False
    rows = [[(_named(line.text), line.text) for line in row.lines] for row in layout.rows[:4]]
    at = next((at for at, row in enumerate(rows[:3]) if any(named == name for named, _ in row)), len(rows))
    for row in rows[at : at + 2]:
        text = " ".join(text for named, text in row if named != name)
        words = [word for word in re.split(r"[\W\d_]+", text) if len(word) > 1]
        common = sum(map(_is_common, words))
        if common >= LABELS and common >= MOSTLY * len(words):
            return True
    return False


def _may_name(layout: Layout, line: Line) -> bool:
    """Whether a header was read with certainty, and is not beside a clock at the very top: the way back to
    another app, or who carries the network.
    """
    beside_clock = any(
        line in row.lines and any(is_clock(other.text) for other in row.lines) for row in layout.rows[:2]
    )
    return line.confidence >= SURE and not beside_clock


def _window_title(layout: Layout, kind: str) -> str:
    """The app in the title of a window: behind a dash, in the middle of its bar, or at its left."""
    for line in layout.lines[:4]:
        if line.bottom > _WINDOW * layout.height or not _may_name(layout, line):
            continue
        text = plain(line.text)
        if (
            not layout.top
            and (name := known(_LAST_PART.split(text)[-1]))
            and name.casefold() != text.casefold()
        ):
            return name  # "Minutes.odt — Thunderbird"
        last = text.rpartition("—")[2].strip()
        if last != text and _NAME.fullmatch(last) and not _is_common(last):
            return last  # "Notes of May — Fernery"
        middle = (line.left + line.right) / 2
        centered = abs(middle - layout.width / 2) < 0.03 * layout.width
        wide = layout.width > WIDE * layout.height
        if centered and line.height <= 1.35 * layout.median:
            headed = kind not in _OF_OTHERS and kind not in _BY_PLAIN_WORDS - {"accounts"}
            confirmed = wide and _is_confirmed(layout, text)
            named = headed and (confirmed or _heads_a_window(layout, line))
            if named and (text.isalpha() and 3 <= len(text) <= 20 and text.casefold() not in _GENERIC):
                return text if text[0].isupper() else text.capitalize()
        elif (
            kind not in _OF_OTHERS
            and not layout.top
            and line.bottom < _CORNER * layout.height
            and line.left < 0.08 * layout.width
            and line.height <= layout.median
            and _is_product(text)
        ):
            return text
    return ""


_DOT = re.compile(r" ?[·•・∙] ?")
_LAST_PART = re.compile(r" [-–—|] ")


def _heads_a_window(layout: Layout, line: Line) -> bool:
    """Whether a title in the middle of a narrow window, which has no status bar, is above the screen's
    own header.
    """
    below = next((one for one in layout.headers if one is not line), None)
    first = not layout.top and line is layout.lines[0]
    return first and below is not None and below.height >= line.height


def _in_a_phrase(layout: Layout) -> str:
    return next(filter(None, (_named_in(plain(line.text)[:60]) for line in layout.all_lines)), "")


def _named_in(text: str) -> str:
    """The app of a whole line like "Welcome to Orgzly!", "Search in Signal" or "BitBanana version 0.5.9"."""
    folded = text.casefold()
    before = next((word for word in _BEFORE if folded.startswith(word)), "")
    name = text[len(before) :].strip(" !！.:：,") if before else ""
    if not before and (match := _BEHIND.fullmatch(text)):
        name = match[1].strip()
    if name and (listed := apps.more_of(name)[0]):
        return listed
    match = _VERSIONED.fullmatch(text)
    return match[1] if match and not _is_common(match[1]) else ""


def _is_product(text: str) -> bool:
    """Whether a header is built like the name of a product."""
    words = text.replace("-", " ").split()
    if not 1 <= len(words) <= 3 or len(text) > 30 or any(map(is_chinese, text)):
        return False
    if not all(word.isalpha() for word in words):
        return False
    first, last = words[0], words[-1]
    if any(word.startswith("Mc") for word in words):  # a family name
        return False
    if any(_COINED.fullmatch(word) and word.casefold() not in _GENERIC for word in words):
        others: Sequence[str] = [word for word in words if not _COINED.fullmatch(word)]
        return all(word[:1].isupper() for word in others)
    return (
        len(words) >= 2
        and last.casefold() in _PRODUCT_WORDS
        and all(word[:1].isupper() for word in words)
        and first.casefold() not in _GENERIC
    )


def without_count(text: str) -> str:
    """A header without the number of unread things: "微信(12)" is 微信."""
    head, bracket, rest = text.replace("（", "(").rpartition("(")
    return head.strip() if bracket and rest.rstrip(")）+ ").isdigit() else text
