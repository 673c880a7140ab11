"""Records of what people read and write: conversations, posts, videos, articles, recipes, messages of errors,
and the weather.
"""

import itertools
import re
from collections import Counter
from collections.abc import Sequence

from engines.lines import Line
from engines.records import Record
from rules import wordlists
from rules.headings import first_sentence, heading, is_day, is_title, names_nothing, site
from rules.kinds import BY
from rules.layout import (
    HEADER_BOTTOM,
    Block,
    Layout,
    Row,
    ends_in_time,
    folded,
    is_chinese,
    is_clock,
    joined,
    letters,
    plain,
    weight,
    without_time,
)
from rules.names import is_generic
from rules.pairs import FORMED, Value
from rules.signed import first_signed, is_ago, is_dated, long_text, named_above, signature
from rules.subjects import subject
from rules.view import Draft, View

# Letters, Chinese ones counted double, of a text that somebody has posted, and of one that others answer.
POSTED, ANSWERED = 28, 90
_MAYBE_SAID = ("conversations", "", "page", "article")  # with a field for a message, these are conversations
MOST_LISTED = 40
LONG = 3  # lines of a paragraph of an assistant's answer
LARGER = 1.3  # times the usual height: a heading, however long
MOST_DATED = 3  # times alone in their places that the articles of a list have
_CODED = frozenset('{}[]"_=<>|\\')  # signs of a log or a source
CODED = 0.05  # part of these in a text
READ = 190  # the same, of the paragraphs of a page to read
TITLED = 12  # letters of a heading, below which a word may be in a picture
QUOTED, SAID = 110, 150  # characters of a message or a heading, of a text
_WORDS = wordlists.table("writings")
_SKY = frozenset(wordlists.lines(_WORDS["sky"]["words"]))
_ERROR = tuple(wordlists.lines(_WORDS["error"]["words"]))
CODED_LENGTH = 40  # characters without a space that nobody has written
_DEGREES = re.compile(r"[-−]?(?<![\d.,])\d{1,3}(?:[.,]\d)? ?(?:°|℃|℉)[CF]?")
_BYLINE = re.compile(
    rf"(?:\S{{1,2}} |.{{0,20}}\d )?(?:(?:{BY}) |作者[:：/]? ?|文[:：/] ?)(.{{2,40}}?)"
    r"(?: ?[·•|,].{0,60}| - .{0,60}| \S{1,8}[:：].{0,40})?",
    re.IGNORECASE,
)
_VIEWS, _FOLLOWED = (
    re.compile(rf"\d[\d.,]{{0,9}} ?[KMB万]? ?{wordlists.any_of(_WORDS['counted'][of])}", re.IGNORECASE)
    for of in ("views", "followers")
)
_HOURS, _MINUTES = (wordlists.any_of(_WORDS["lasts"][unit]) for unit in ("hours", "minutes"))
_HOURS = rf"\d{{1,2}} ?{_HOURS}"
_DURATION = re.compile(rf"(?:{_HOURS} ?)?\d{{1,3}} ?{_MINUTES}(?!\w)|{_HOURS}(?!\w)", re.IGNORECASE)
_LENGTH = re.compile(r"(?:\d{1,2}:)?\d{1,2}:\d\d")  # of a video
_CODE = re.compile(
    rf"{wordlists.any_of(_WORDS['error']['code'])}\W{{0,3}}(?:code\W{{0,3}})?([A-Z]{{0,4}}[-_]?\d{{2,8}})",
    re.IGNORECASE,
)
_BACK = ("<", "‹", "←", "〈")  # the sign before the name of the screen before
BAR_ROWS = 4
ASIDE = 0.65  # of the width, from where on a bar names whose account it is
_SAID_ENDS = ("?", "!", "？", "！", "。")  # no name ends so
_MESSAGE = 150  # letters: an error's text is short


def conversation(view: View) -> Record | None:
    """A conversation with whom and its last message."""
    if view.kind != "conversation" and (view.kind not in _MAYBE_SAID or view.layout.composer is None):
        return None
    pane = view.pane
    draft = Draft(view, pane.shift)
    who, line = with_whom(pane)
    said = _messages(pane.layout, who)
    # The bar of a window names its program or file.
    if said and pane is view and pane.layout.width > pane.layout.height:
        line = None
    if line is not None:
        draft.add("participant", [{"name": who}], [line])
    last = _last(pane.layout, said) if said else None
    if last and (line is None or pane.layout.composer or _has_time(last, pane.layout)):
        text = plain(without_time(last.text))
        draft.add("lastMessage", first_sentence(text, QUOTED), last.lines)
    draft.name_app("app")
    return draft.record("Conversation")


def messages(view: View) -> list[str]:
    """What was said in a conversation, without times, from the oldest to the newest."""
    who, _ = with_whom(view.pane)
    return [plain(without_time(block.text)) for block in _messages(view.pane.layout, who)]


def with_whom(view: View) -> tuple[str, Line | None]:
    """The other side of a conversation and its line: what the bar at the top names, unless that is the app or
    was said.
    """
    layout = view.layout
    left, right = layout.bubbles
    said = {
        id(line)
        for block in [*left, *right]
        for line in block.lines
        if len(block.lines) > 1 or weight(block.text) >= 24
    }
    bar = [
        line
        for row in layout.rows[:BAR_ROWS]
        for line in (row.lines if len(row.lines) < 3 else ())  # three are tabs
        if _in_bar(line, layout)
    ]
    for line in bar:
        text = plain(line.text)
        # In an assistant's chat, what is below the app's name was said.
        if (
            text.casefold() == view.app.casefold()
            or id(line) in said
            or text.endswith((*_SAID_ENDS, ":", "："))
        ):
            continue
        if line.text.startswith(_BACK) and line is not bar[-1]:
            continue
        name = _whole(text, layout)
        if line.left > ASIDE * layout.width or not _names_somebody(name):
            continue
        if is_title(name, 1) and not names_nothing(name) and len(name) <= 40 and not ends_in_time(name):
            return _without_status(name), line
        digits = text.replace(" ", "")
        if digits.lstrip("+").isdigit() and len(digits) >= 4:
            return text, line
    return "", None


def _names_somebody(text: str) -> bool:
    """Whether a text may be a whole name: not two letters of a picture, not the middle of a sentence."""
    return len(text) > 2 or any(letter.isdigit() or is_chinese(letter) for letter in text)


def _in_bar(line: Line, layout: Layout) -> bool:
    """Whether a line is in the bar at the top."""
    lowest = layout.top + HEADER_BOTTOM * min(layout.height, 2.4 * layout.width)
    return line.bottom <= lowest and not is_clock(line.text) and line.height >= 0.75 * layout.median


def _whole(text: str, layout: Layout) -> str:
    """A name that was cut, as it is elsewhere on the screen."""
    begun = text.rstrip(".… ")
    if begun == text or len(begun) < 3:
        return text
    if " " in begun and begun[0].islower():
        return ""  # a sentence
    for line in layout.lines:
        other = plain(line.text).rstrip(":：")
        if other.startswith(begun) and not other.endswith((".", "…")):
            return other
    return begun


def post(view: View) -> Record | None:
    """Something that somebody has posted: who, when, and its text."""
    layout, draft = view.layout, Draft(view)
    if view.kind not in ("post", "video") or _seen(view):
        return None
    signed = first_signed(layout)
    if signed and (said := long_text(layout, ANSWERED, signed.lines[0].top)):
        signed = None  # it answers a post whose signature was not read
    else:
        said = signed.said if signed else long_text(layout, POSTED)
    if said is None or (signed is None and weight(said.text) < 2 * POSTED):
        return None  # a list of people or of accounts
    if signed:
        draft.add("author", signed.author, signed.lines[:1])
    elif (by := named_above(layout, said)) is not None:
        draft.add("author", plain(by.text), [by])
    draft.add("text", first_sentence(plain(said.text), SAID), said.lines)
    if signed and (day := view.moments.day(signed.lines[-1].text)):
        draft.add("datePublished", day.begins, signed.lines[-1:])
    return draft.record("SocialMediaPosting")


def video(view: View) -> Record | None:
    """A video or the first of a list: its heading, who published it, how often it was seen."""
    layout, draft = view.layout, Draft(view)
    seen = _seen(view)
    if not seen:
        return None
    head = _above(layout, seen[0])
    if head and is_title(text := plain(joined(line.text for line in head))):
        draft.add("headline", first_sentence(text, QUOTED), head)
    elif (found := heading(layout, view.kind, view.app)) is not None and not found.generic:
        draft.add("headline", found.text, found.lines)
    before = plain(re.split("[·•|]", seen[0].text)[0])
    if is_title(before) and not _VIEWS.search(before):
        draft.add("author", before, seen[:1])
    followed = next((line for line in layout.lines if _FOLLOWED.search(line.text[:80])), None)
    if followed is not None:
        name = plain(_FOLLOWED.split(followed.text)[0])
        name = name or plain(joined(line.text for line in _above(layout, followed)))
        draft.add("author", name if is_title(name) else "", [followed])
    if match := _VIEWS.search(seen[0].text[:80]):
        draft.add("text", match[0], seen[:1])
    return draft.record("VideoObject")


def _seen(view: View) -> list[Line]:
    """The lines that say how often a video was seen: several of a list, or one beside a length or on a screen
    of a video.
    """
    lines = view.layout.lines
    seen = [line for line in lines if _VIEWS.search(line.text[:80])]
    is_sure = view.kind == "video" or any(_LENGTH.fullmatch(line.text.strip()) for line in lines)
    return seen if len(seen) > 1 or is_sure else []


def article(view: View) -> Record | None:
    """An article or another page to read: its heading, its first sentence, where and by whom."""
    layout, draft = view.layout, Draft(view)
    if view.kind not in ("article", "page", "") or layout.composer is not None:
        return None
    named = heading(layout, view.kind, view.app)
    running = [
        block
        for block in layout.paragraphs
        if _is_prose(block.text)
        and block.height < LARGER * layout.median
        and (named is None or plain(block.text) != named.text)
    ]
    if not running or _is_list(layout):
        return None
    running.sort(key=lambda block: block.top)
    head = _headline(layout, running[0])
    lines = head.lines if head else named.lines if named and not named.generic else ()
    if not lines:
        return None
    large = all(line.height >= 1.25 * layout.median for line in lines)
    signed = [
        (match[1], line) for line in layout.lines[:16] if (match := _BYLINE.fullmatch(plain(line.text)[:100]))
    ]
    lengths = [weight(one.text) for one in running]
    is_read = max(lengths) >= READ if view.kind == "article" else large and sum(lengths) >= READ
    if not signed and not is_read and view.kind != "article":
        return None  # a page to use, not to read
    text = plain(joined(line.text for line in lines))
    draft.add("headline", first_sentence(text, QUOTED), lines)
    draft.add("text", first_sentence(plain(running[0].text), SAID), running[0].lines)
    for name, line in signed or _between(layout, lines[-1].bottom, running[0].top):
        draft.add("author", name, [line])
        if day := view.moments.day(line.text):
            draft.add("datePublished", day.begins, [line])
    if address := site(layout):
        draft.add("publisher", address[0], [address[1]])
    draft.name_app("publisher")
    return draft.record("Article")


def _between(layout: Layout, top: int, bottom: int) -> list[tuple[str, Line]]:
    """The name and the time between a heading and the first paragraph, with their lines."""
    for at, row in enumerate(layout.rows):
        if top <= row.first.top < bottom and (found := signature(layout, at)):
            return [(found[0], found[1][0]), ("", found[1][-1])]
    return []


def _headline(layout: Layout, first: Block) -> Block | None:
    """The largest text right above the first paragraph, in its column."""
    above = [
        block
        for block in layout.blocks
        if block.bottom <= first.top + first.height
        and block.left < first.right
        and block.right > first.left
        and block.height > layout.median
        # A word in a picture is not where the text begins.
        and (weight(block.text) >= TITLED or abs(block.left - first.left) < 2 * first.height)
        and is_title(plain(block.text))
        and not is_day(plain(block.text))
    ]
    return max(above, key=lambda block: (round(block.height / layout.median, 1), block.top), default=None)


def _is_prose(text: str) -> bool:
    """Whether a text is for reading, and no log or source."""
    return sum(letter in _CODED for letter in text) <= CODED * len(text)


def _is_list(layout: Layout) -> bool:
    """Whether several parts of a screen end with a time or begin with one, as articles of a list do."""
    return sum(is_dated(row.first) or is_dated(row.last) for row in layout.rows) >= MOST_DATED


def recipe(view: View) -> Record | None:
    """A recipe: its name, how long it takes, for how many, and what it needs."""
    pairs = view.pairs
    listed = next(
        (label.line for label in pairs.labels if label.is_whole and "ingredients" in label.names), None
    )
    timed = pairs.find(("total_time", "part_time", "time"), _duration, FORMED)
    size = pairs.find("yield", _portions, FORMED)
    rows = _listed_below(view, listed) if listed else []
    measured = sum(any(map(str.isdigit, line.text)) for row in rows for line in row.lines[:1])
    if view.kind != "recipe" and (listed is None or (timed is None and size is None and measured < 2)):
        return None
    found = heading(view.layout, view.kind, view.app)
    name = Value(found.text, found.lines, "above", "") if found and not found.generic else subject(view)
    if name is None:
        return None
    draft = Draft(view)
    draft.add("name", name.text, name.lines)
    draft.put("totalTime", timed)
    draft.put("recipeYield", size)
    names = [{"name": " ".join(line.text for line in row.lines)[:60]} for row in rows]
    draft.add("recipeIngredient", names, [line for row in rows for line in row.lines])
    return draft.record("Recipe")


def _duration(text: str) -> str | None:
    match = _DURATION.search(text[:60])
    return match[0] if match else None


def _portions(text: str) -> str | None:
    return (
        text[:30] if len(text) <= 30 and any(map(str.isdigit, text)) and not _DURATION.search(text) else None
    )


def _listed_below(view: View, label: Line) -> list[Row]:
    """The short rows below a label, up to another label, a gap or a sentence."""
    rows: list[Row] = []
    last, step = label.bottom, 3 * label.height
    for row in view.layout.rows:
        if row.first.top < label.bottom - 2 or view.pairs.begins_label(row.first):
            continue
        text = row.first.text
        if rows and weight(text) < 3 and any(map(str.isdigit, text)):
            last = row.first.bottom  # how much of it
            continue
        if (
            row.first.top - last > step
            or row.first.left > label.left + 0.2 * view.layout.width
            or view.pairs.is_label(row.first)
            or len(text) > 60
            or weight(text) < 3
            or text.endswith(_SAID_ENDS)
        ):
            break
        step = 2 * max(row.first.height, row.first.top - last)
        last = row.first.bottom
        rows.append(row)
    return rows[:MOST_LISTED]


def weather(view: View) -> Record | None:
    """The weather: where, how warm, and how the sky is."""
    if view.kind != "weather":
        return None
    layout, draft = view.layout, Draft(view)
    first = layout.blocks[:14]
    sky = next((one for one in first if _is_sky(one.text) and len(one.text) <= 40), None)
    large = [line for line in layout.lines if line.height >= 1.8 * layout.median]
    degrees = next(
        (line for line in large if re.fullmatch(r"[-−]?\d{1,2} ?[°o℃℉]?[CF]?", line.text.strip())), None
    ) or next((line for line in layout.lines if _DEGREES.search(line.text[:60])), None)
    places = [one for one in first if _is_place(plain(one.text), view.app)]
    above = [
        one
        for one in places
        if degrees and one.bottom <= degrees.top and one.left < degrees.right and one.right > degrees.left
    ]
    place = next(iter([*reversed(above), *places]), None)
    if place is None:
        return None
    draft.add("place", plain(place.text), place.lines)
    if degrees is not None:
        match = _DEGREES.search(degrees.text)
        text = match[0].replace(" ", "") if match else degrees.text.strip().rstrip("°o") + "°"
        draft.add("temperature", text, [degrees])
    if sky is not None:
        draft.add("condition", plain(sky.text), sky.lines)
    return draft.record("WeatherForecast")


def _is_place(text: str, app: str) -> bool:
    return (
        is_title(text, 4) and not _is_sky(text) and not is_generic(text) and text.casefold() != app.casefold()
    )


def error(view: View) -> Record | None:
    """A message that something failed: a dialog, or a screen with little else."""
    layout = view.layout
    lines = [line for row in layout.dialog[:-1] for line in row.lines]
    if not lines and not view.kind and sum(weight(line.text) for line in layout.lines) <= _MESSAGE:
        lines = list(layout.lines)
    wrong = next((line for line in lines if folded(line.text[:80]).find("?") < 0 and _fails(line)), None)
    if wrong is None:
        return None
    draft = Draft(view)
    block = next((block for block in layout.blocks if wrong in block.lines), None)
    draft.add("text", plain(block.text if block else wrong.text)[:QUOTED], block.lines if block else [wrong])
    for line in lines:
        if match := _CODE.search(line.text):
            draft.add("code", match[1], [line])
    draft.name_app("app")
    return draft.record("ErrorMessage")


# --------------------------------------------------------------------------------------------------- messages


def _messages(layout: Layout, who: str) -> list[Block]:
    """The messages of a conversation, without names, times, buttons and the field to type in. An assistant's
    are as wide as the screen.
    """
    left, right = layout.bubbles
    ended = [block for block in layout.body if _has_time(block, layout, beside=False)]
    among = {id(block): block for block in (*left, *right, *layout.paragraphs, *ended)}
    said = sorted(
        (
            block
            for block in among.values()
            if _is_said(plain(block.text), who)
            and not _is_speaker(block, left)
            and (layout.composer is None or block.bottom < layout.composer.top)
        ),
        key=lambda block: block.top,
    )
    timed = [block for block in said if _has_time(block, layout)]
    # The buttons below have no time; where the names above messages have, most of the text has none.
    if len(timed) >= 2 and 2 * sum(len(one.text) for one in timed) > sum(len(one.text) for one in said):
        said = timed
    often = Counter(plain(block.text) for block in said)
    return [  # names above messages are there again
        block
        for block, below in itertools.zip_longest(said, said[1:])
        if often[plain(block.text)] == 1 or below is None or below.top - block.bottom > block.height
    ]


def _last(layout: Layout, said: list[Block]) -> Block:
    """The last message, or where it is an assistant's, with many paragraphs, the first of these: what follows
    the last question.
    """
    asked = max((block.bottom for block in layout.bubbles[1]), default=0)
    answer = [block for block in said if block.top >= asked > 0]
    is_long = any(len(one.lines) >= LONG and one.right - one.left > 0.6 * layout.width for one in answer)
    return answer[0] if is_long and not any(_has_time(one, layout) for one in answer) else said[-1]


def _is_said(text: str, who: str) -> bool:
    is_key = len(text) > CODED_LENGTH and " " not in text and text.isascii()
    return text != who and is_title(text, 3) and not is_ago(plain(without_time(text))) and not is_key


def _has_time(block: Block, layout: Layout, *, beside: bool = True) -> bool:
    """Whether the time of a message is behind its text or right below it, or `beside` its last line."""
    left, bottom, height = block.left, block.bottom, block.height
    return ends_in_time(block.text) or any(
        is_clock(line.text)
        and left <= line.left
        and (
            -0.5 * height < line.top - bottom < 0.8 * height
            or (
                beside and abs(line.top - block.lines[-1].top) < height and line.left >= block.lines[-1].right
            )
        )
        for line in layout.lines
    )


def _is_speaker(block: Block, left: Sequence[Block]) -> bool:
    """Whether a short text is the name above a message of a group."""
    text = plain(block.text)
    if len(text) > 24 or not all(word[:1].isupper() or is_chinese(word[:1]) for word in text.split()):
        return False
    return (
        any(
            other is not block
            and 0 <= other.top - block.bottom < 1.2 * block.height
            and abs(other.left - block.left) < block.height
            for other in left
        )
        and letters(text) > 0.9
        and text[-1:].isalpha()
    )


def _without_status(text: str) -> str:
    """A name without the picture's initial before it: "M Maya Lindqvist"."""
    first, _, rest = text.partition(" ")
    return rest if len(first) == 1 and rest[:1] == first and first.isupper() else text


def _above(layout: Layout, line: Line) -> list[Line]:
    """The lines of the text right above a line, at its left edge."""
    for block in reversed(layout.blocks):
        lines = [one for one in block.lines if one.bottom <= line.top + 0.3 * line.height]
        if lines and line.top - lines[-1].bottom < 1.5 * line.height > abs(line.left - block.left):
            return lines
    return []


def _is_sky(text: str) -> bool:
    words = re.findall(r"[a-zà-ÿ]+", text.casefold())
    return any(word in _SKY for word in words) or any(word in text for word in _SKY if is_chinese(word[0]))


def _fails(line: Line) -> bool:
    text = folded(line.text[:80])
    return weight(text) >= 8 and any(
        word in text if is_chinese(word[0]) else re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text)
        for word in _ERROR
    )
