"""Title and summary of a screen, as a person would write them: one short line, and one sentence.

Both are built from what the kind of screen has: of a conversation with whom and its last lines, of a
payment the amount and to whom, of a list its name and first entries, of an article its heading and first
sentence. What is quoted is quoted as it was read, whole paragraphs instead of single lines, and never the
status bar.

More than 550 lines, because titles and summaries of all kinds of screens are made of the same parts.
"""

import itertools
import re
from collections.abc import Callable, Iterable, Sequence

from engines.findings import MAX_TITLE, Entity
from rules import wordlists
from rules.entities import MONTH, NUMBER, SIGN, TOP_LEVEL
from rules.kinds import AMOUNT_RIGHT, MONEY, WHEN_RIGHT, headed, is_lock_screen
from rules.layout import Block, Layout, Row, is_chinese, is_clock, letters, plain, weight
from text import one_line, shortened

SUMMARY_LENGTH = 200
LONGEST_TITLE = 70  # characters; only a heading without a break is longer
QUOTED = 110  # characters of a quotation
RUNNING = 400  # letters of the paragraphs of a text to read, Chinese ones counted double
POSTED = 28  # letters, Chinese ones counted double, of a text that somebody has posted
ENTRY = 36  # characters of an entry in an enumeration

_NO_TITLE = re.compile(
    r"(?:search|search .{1,40}|back|cancel|done|edit|ok|skip|close|next|save|share|menu|more|all|today"
    r"|yesterday|now|you|\d{1,3} ?(?:min|h|km|m)\b.{0,24}|\d{1,3} ?(?:分钟|公里|小时).{0,24}"
    r"|[日一二三四五六 ]{7,14}"
    r"|(?:mon|tue|wed|thu|fri|sat|sun)\w{0,6}\W.{0,20}\d\d:\d\d.{0,14}"
    r"|(?:mon|tue|sun)\W.{8,40}|\d{1,2}\W{0,2}(?:mon|tues|wednes|thurs|fri|satur|sun)day"
    r"|(?:enter|type) (?:your|an?|the) .{2,30}"
    r"|filters?|sort(?: by)?|new|add|home|"
    r"搜索.{0,12}|返回|取消|完成|编辑|确定|关闭|下一步|保存|分享|菜单|更多|全部|今天|昨天|刚刚|首页)\W{0,3}",
    re.IGNORECASE,
)
# Headers that name the kind of the screen only: with something larger or more particular below, that is
# the title.
_GENERIC_HEADER = re.compile(
    r"(?:post|thread|details?|comments?|notes?|your reservation|reservation|receipt|order details|payment"
    r"|summary|event|article|message|video|translate|recipe|ticket|.{0,6}详情|帖子|动态|文章|订单|详情页?|笔记|正文|评论)\W{0,3}",
    re.IGNORECASE,
)
_DAY_NAME = re.compile(r"today|tomorrow|this week|今天|明天|本周", re.IGNORECASE)
_AMOUNT = re.compile(rf"[-+−]? ?{SIGN} ?{NUMBER}|{NUMBER} ?(?:元|€|£|USD|EUR)")
_PAYEE = re.compile(
    r"(?:收款方|收款人|商户|商家|商户全称|收款账户|付款给|转账给|to|paid to|merchant|recipient"
    r"|sent to|payee|for)[:：]?",
    re.IGNORECASE,
)
_SITE = re.compile(
    rf"(?:https?://)?(?:www\.)?((?:[\w-]{{1,63}}\.){{1,6}}{TOP_LEVEL})(?:[/?]\S{{0,200}})?", re.IGNORECASE
)
_SENTENCE_END = re.compile(r"[。！？!?]|\.(?=\s|$)")
_TRAILING_TIME = re.compile(r"[\s·•]{0,3}(?:[01]?\d|2[0-3])[:：][0-5]\d\W{0,4}$")
_TEMPERATURE = re.compile(r"-?\d{1,3} ?(?:°|℃|℉)[CF]?")

_SENTENCES = wordlists.table("sentences")
_LINKS = wordlists.words(wordlists.table("names")["plain"]["links"])


def title(layout: Layout, kind: str, app: str, language: str) -> str:
    """The line that a person would give the screenshot, at most `MAX_TITLE` characters; "" when it has no
    words.
    """
    texts = _SENTENCES[language]["caption"]
    subject = _subject(layout, kind, app)
    match kind:
        case "conversation" if who := _with_whom(layout, app):
            return shortened(texts["with"].format(who), MAX_TITLE)
        case "payment" if (amount := _amount(layout)) and (who := _payee(layout)):
            return shortened(texts["paid_to"].format(amount=amount, who=who), MAX_TITLE)
        case "payment" if (amount := _amount(layout)) and subject and weight(subject) <= 40:
            return shortened(
                f"{subject}{texts['behind']}{amount}" if amount not in subject else subject, MAX_TITLE
            )
        case "post" if layout.paragraphs and (who := _author(layout)) and (said := _longest(layout)):
            colon = ": " if language == "en" else "："
            return shortened(f"{who}{colon}{_first_sentence(said, LONGEST_TITLE)}", MAX_TITLE)
        case "lock_screen" | "notices" if notices := _notices(layout):
            sender, said = notices[0]
            return shortened(
                f"{sender}: {said}" if said and language == "en" else f"{sender}：{said}" if said else sender,
                MAX_TITLE,
            )
    return shortened(one_line(subject), MAX_TITLE)


def summary(layout: Layout, kind: str, category: str, app: str, language: str) -> str:
    """One sentence about the screen, at most `SUMMARY_LENGTH` characters."""
    if not layout.all_lines:
        return str(_SENTENCES[language]["caption"]["no_text"])
    texts = _SENTENCES[language]["caption"]
    write = _WRITERS.get(kind)
    sentence = write(layout, app, texts) if write else ""
    sentence = one_line(
        sentence or _listed(layout, kind, app, texts) or _SENTENCES[language]["category"][category]
    )
    if app and app.casefold() not in sentence.casefold():
        sentence = f"{app}{'：' if language == 'zh' else ': '}{sentence}"
    end = "" if sentence.endswith((".", "。", "!", "?", "！", "？", "…", "”")) else texts["end"]
    return (
        shortened(sentence, SUMMARY_LENGTH - 1) + end
        if len(sentence) < SUMMARY_LENGTH
        else shortened(sentence, SUMMARY_LENGTH)
    )


# -------------------------------------------------------------------------------------------------- the title


def of_code(entity: Entity, language: str) -> str:
    """Title and summary of a picture that shows a code and no text."""
    return shortened(one_line(_SENTENCES[language]["caption"]["code"].format(said=entity.value)), MAX_TITLE)


def _header(layout: Layout, kind: str) -> str:
    """The first line of the header that is a title, or on a plan of days the name of a day."""
    for line in layout.headers:
        text = _without_count(plain(line.text))
        is_day = kind in ("tasks", "calendar") and weight(text) >= 4 and _DAY_NAME.fullmatch(text)
        if _is_title(text, 2) or is_day:
            return text
    return ""


def _subject(layout: Layout, kind: str, app: str) -> str:
    """The header, or what is larger or more particular than it."""
    if kind == "weather" and (place := _place(layout)):
        return place
    header = _header(layout, kind)
    heading = "" if layout.heading is None else plain(layout.heading.text)
    if heading and not _is_title(heading):
        heading = ""
    if (
        heading
        and header
        and layout.heading is not None
        and header in {plain(line.text) for line in layout.heading.lines}
    ):
        return heading  # a header in several lines
    generic = (
        not header
        or header.endswith(("...", "…", ".."))
        or _GENERIC_HEADER.fullmatch(header) is not None
        or header.casefold() == app.casefold()
    )
    far_larger = (
        layout.heading is not None and layout.heading.height >= 1.8 * layout.headers[0].height
        if layout.headers
        else False
    )
    if heading and (
        generic or (far_larger and kind in ("", "note")) or kind in ("article", "ticket", "recipe", "page")
    ):
        return heading
    if kind == "video" and generic and (line := _first_line(layout, header)):
        return line
    if kind == "post" and generic and (said := _longest(layout)):
        return _first_sentence(said, LONGEST_TITLE)
    if kind in ("article", "page") and layout.caption == "" and header.casefold() == app.casefold():
        return _first_line(layout, header) or header
    if header and not (generic and header.casefold() != app.casefold()):
        # A framed screen without a header of its own is named by its caption.
        return header
    if layout.caption and not header:
        return layout.caption
    if (
        header
        and header.casefold() != app.casefold()
        and kind not in ("", "article", "page", "post", "video", "note", "recipe")
    ):
        return header
    if (
        header
        and header.casefold() == app.casefold()
        and kind in ("conversations", "accounts", "mail", "map", "files", "")
    ):
        return header
    return _first_line(layout, header) or header or layout.caption


def _without_count(text: str) -> str:
    """A header without the number of unread things: "微信(12)" is 微信."""
    head, bracket, rest = text.replace("（", "(").rpartition("(")
    return head.strip() if bracket and head and rest.rstrip(")）+ ").isdigit() else text


def _is_title(text: str, least: int = 3) -> bool:
    return (
        weight(text) >= least
        and letters(text) >= (0.3 if text[-1:] == "月" else 0.4)
        and not _NO_TITLE.fullmatch(text)
        and not WHEN_RIGHT.fullmatch(text)
        and not _SITE.fullmatch(text)
        and not _is_menu(text)
    )


def _is_menu(text: str) -> bool:
    """Whether a text is the links at the top of a web page, read as one line."""
    words = text.casefold().split()
    return len(words) >= 4 and (
        2 * sum(word in _LINKS for word in words) > len(words)
        or all(len(word) <= 4 and is_chinese(word[0]) for word in words)
    )


def _first_line(layout: Layout, header: str) -> str:
    """The first text below the header that says something; a larger one among the first is preferred."""
    worded = [block for block in layout.blocks if _is_title(text := plain(block.text)) and text != header]
    if not worded:
        return ""
    first = worded[:5]
    tallest = max(block.height for block in first)
    chosen = next((block for block in first if block.height >= 0.85 * tallest), first[0])
    return _first_sentence(plain(chosen.text), LONGEST_TITLE)


def _with_whom(layout: Layout, app: str) -> str:
    """The other side of a conversation: the header, unless that is the app."""
    left, right = layout.bubbles
    said = {
        id(line)
        for block in [*left, *right]
        for line in block.lines
        if len(block.lines) > 1 or weight(block.text) >= 24
    }
    for line in layout.headers:
        text = plain(line.text)
        # In an assistant's chat, what is below the app's name was said.
        if text.casefold() == app.casefold() or id(line) in said:
            continue
        if _is_title(text) and len(text) <= 40:
            return text
        digits = text.replace(" ", "")
        if digits.lstrip("+").isdigit() and len(digits) >= 4:
            return text
    return ""


# ---------------------------------------------------------------------------------------------- the summaries


def _conversation(layout: Layout, app: str, texts: dict[str, str]) -> str:
    who = _with_whom(layout, app)
    left, right = layout.bubbles
    said = sorted(
        (
            block
            for block in [*left, *right]
            if _is_said(plain(block.text), who) and not _is_speaker(block, left, layout)
        ),
        key=lambda block: block.top,
    )
    timed = [block for block in said if _has_time(block, layout)]
    if len(timed) >= 2:
        said = timed  # and not the buttons below
    last = [
        texts["quote"].format(shortened(_TRAILING_TIME.sub("", plain(block.text)), 70)) for block in said[-2:]
    ]
    if not last:
        return texts["with"].format(who) if who else ""
    spoken = texts["and"].format(*last) if len(last) == 2 else last[0]
    if not who:
        return texts["chat_said"].format(said=spoken)
    return texts["with_said"].format(who=who, said=spoken)


def _is_said(text: str, who: str) -> bool:
    """Whether a block of a conversation is a message, and no name, time, button or input field."""
    return (
        weight(text) >= 4
        and text != who
        and not WHEN_RIGHT.fullmatch(text)
        and not _NO_TITLE.fullmatch(text)
        and not _INPUT.fullmatch(text)
    )


def _has_time(block: Block, layout: Layout) -> bool:
    """Whether the time of a message is behind its text or right below it."""
    return _TRAILING_TIME.search(block.text) is not None or any(
        -0.5 * block.height < line.top - block.bottom < 0.8 * block.height
        and block.left <= line.left
        and line.right <= block.right + 4 * block.height
        and is_clock(line.text)
        for line in layout.lines
    )


def _is_speaker(block: Block, left: Sequence[Block], layout: Layout) -> bool:
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


_INPUT = re.compile(
    r"(?:(?:type|enter|write|send|text) ?(?:a|an|your)? ?(?:text |email )?message|message|ask anything"
    r"|subject|send to\W*|online|last seen.{0,40}"
    r"|按住 ?说话|发送?消息|输入消息|发送短信|say something|new messages?)\W{0,3}",
    re.IGNORECASE,
)


_WRITE_HERE = re.compile(
    r"(?:type|enter|write|send) (?:an? |your )?(?:text |e-?mail )?message|按住 ?说话|输入消息|发送消息",
    re.IGNORECASE,
)


def _conversations(layout: Layout, app: str, texts: dict[str, str]) -> str:
    if any(_WRITE_HERE.match(plain(line.text)) for line in layout.lines):
        return _conversation(layout, app, texts)
    entries = _names(_entry_rows(layout), texts)
    if not entries:
        return ""
    return (
        texts["chats_in"].format(app=app, entries=entries) if app else texts["chats"].format(entries=entries)
    )


def _payment(layout: Layout, app: str, texts: dict[str, str]) -> str:
    amount, who = _amount(layout), _payee(layout)
    if not amount:
        return ""
    subject = _subject(layout, "payment", app)
    if who:
        what = texts["paid_to"].format(amount=amount, who=who)
    elif subject and amount not in subject and subject.casefold() != app.casefold():
        what = texts["total"].format(name=subject, amount=amount)
    else:
        what = texts["paid"].format(amount=amount)
    when = _date(layout)
    return texts["on"].format(what=what, when=when) if when else what


_MONTH_ALONE = re.compile(rf"{MONTH}\.?(?: \d{{1,2}})?|\d{{1,2}}月", re.IGNORECASE)


def _accounts(layout: Layout, app: str, texts: dict[str, str]) -> str:
    rows = layout.values(AMOUNT_RIGHT) or [
        row for row in layout.rows if len(row.lines) >= 2 and MONEY.search(row.last.text)
    ]
    entries = [
        f"{shortened(plain(row.first.text), 30)} {row.last.text.strip()}"
        for row in rows
        if weight(row.first.text) >= 3 - any(map(is_chinese, row.first.text))
        and not _MONTH_ALONE.fullmatch(plain(row.first.text))
    ]
    if not entries:
        return ""
    name = _subject(layout, "accounts", app)
    large = _amount(layout, largest=True)
    listed = texts["comma"].join([*([large] if large and large not in entries[0] else []), *entries[:4]])
    return texts["named"].format(title=name, entries=listed) if name else listed


def _notified(layout: Layout, app: str, texts: dict[str, str]) -> str:
    found = _notices(layout) or _timed(layout)
    if not found:
        blocks = _entry_rows(layout)
        names = _names(blocks, texts)
        return texts["notices"].format(entries=names) if names else ""
    if len(found) == 1:
        sender, said = found[0]
        return texts["notice"].format(app=sender, said=said or sender)
    entries = [f"{sender} – {shortened(said, 60)}" if said else sender for sender, said in found[:3]]
    return texts["notices"].format(entries=("; " if texts["end"] == "." else "；").join(entries))


def _notices(layout: Layout) -> list[tuple[str, str]]:
    """The sender and the text of each notification."""
    found: list[tuple[str, str]] = []
    locked = is_lock_screen(layout)
    for at, block in enumerate(layout.blocks):
        sender = headed(block.lines[0].text, with_address=locked)
        if sender:
            # Its title and its text are in the blocks below, up to the next header.
            below = [
                plain(one.text)
                for one in itertools.takewhile(
                    lambda one: not headed(one.text, with_address=locked), layout.blocks[at + 1 : at + 3]
                )
                if weight(one.text) >= 3 and not is_clock(one.text) and not _CLEAR.fullmatch(one.text)
            ]
            own = plain(" ".join(line.text for line in block.lines[1:]))
            said = own or ": ".join(below)
            found.append((plain(sender), shortened(said, QUOTED)))
    return found


def _timed(layout: Layout) -> list[tuple[str, str]]:
    """The sender and the text of each entry of a list: a row with a time at its end, and the line below."""
    found = [
        (plain(row.first.text), plain(below.first.text))
        for row, below in itertools.pairwise(layout.rows)
        if len(row.lines) == 2 and is_clock(row.last.text) and len(below.lines) == 1
    ]
    return [(sender, said) for sender, said in found if weight(sender) >= 3 and weight(said) >= 3]


_CLEAR = re.compile(
    r"clear(?: all)?|manage|mark as read|reply|archive|全部清除|清除|管理|回复", re.IGNORECASE
)


def _code(layout: Layout, app: str, texts: dict[str, str]) -> str:
    said = [
        block.text
        for block in layout.blocks
        if re.search(r"\d{4}|\d-\d", block.text) and weight(block.text) >= 6
    ]
    return texts["a_notice"].format(said=shortened(plain(said[0]), 150)) if said else ""


def _post(layout: Layout, app: str, texts: dict[str, str]) -> str:
    said = _longest(layout)
    author = _author(layout)
    handles = sum("@" in line.text for line in layout.lines)
    if not said or (
        weight(said) < POSTED and (handles >= 3 or not author)
    ):  # a list of people or of accounts
        return ""
    quoted = texts["quote"].format(_first_sentence(said, QUOTED))
    return (
        texts["post"].format(who=shortened(author, 40), said=quoted)
        if author
        else texts["a_post"].format(said=quoted)
    )


def _author(layout: Layout) -> str:
    """Who wrote a post: the name before the first handle."""
    for row in layout.rows:
        text = plain(row.first.text)
        name = text.split(" @")[0].split(" · ")[0].split("·")[0].strip()
        if " @" in text and weight(name) >= 3 and not name.startswith("@"):
            return shortened(name, 40)
        if text.startswith("u/"):
            return name.split(" ")[0]
        after = layout.rows[layout.rows.index(row) + 1 :][:1]
        if weight(name) >= 3 and after and plain(after[0].first.text).startswith("@"):
            return shortened(name, 40)
    return ""


def _video(layout: Layout, app: str, texts: dict[str, str]) -> str:
    subject = _subject(layout, "video", app)
    if not subject:
        return ""
    counts = [
        plain(block.text)
        for block in layout.body
        if re.search(r"\d.{0,6}(?:views|播放|观看)", block.text[:80])
    ]
    video = texts["video"].format(title=texts["quote"].format(shortened(subject, 90)))
    return texts["comma"].join([video, *[shortened(count, 60) for count in counts[:1] if count != subject]])


def _article(layout: Layout, app: str, texts: dict[str, str]) -> str:
    subject, site = _subject(layout, "article", app), _site(layout) or app
    said = next((plain(block.text) for block in layout.paragraphs if plain(block.text) != subject), "")
    name = texts["quote"].format(shortened(subject, 80))
    if not said:
        return texts["page_at"].format(title=name, site=site) if site else texts["page"].format(title=name)
    said = _first_sentence(said, QUOTED)
    if not site:
        return texts["article"].format(title=name, said=said)
    return texts["article_at"].format(title=name, site=site, said=said)


def _settings(layout: Layout, app: str, texts: dict[str, str]) -> str:
    subject = _subject(layout, "settings", app)
    rows = [row for row in _entry_rows(layout) if plain(row.first.text) != subject]
    # What is in capitals is the heading of a section.
    entries = _names([row for row in rows if not row.first.text.isupper()] or rows, texts)
    if not entries:
        return ""
    if len(subject) > 10 and ("settings" in subject.casefold() or "设置" in subject):
        return texts["named"].format(title=subject, entries=entries)
    if subject.casefold() in ("settings", "设置", "設定", "einstellungen", "preferences", ""):
        return texts["settings_plain"].format(entries=entries)
    return texts["settings"].format(title=subject, entries=entries)


def _weather(layout: Layout, app: str, texts: dict[str, str]) -> str:
    place = _place(layout)
    lines = [plain(block.text) for block in layout.blocks[:12]]
    sky = next((text for text in lines if _SKY.search(text) and len(text) <= 40), "")
    large = [line.text for line in layout.lines if line.height >= 2 * layout.median]
    degrees = next((text for text in large if _DEGREES.fullmatch(text)), "") or next(
        (match[0] for block in layout.body if (match := _TEMPERATURE.search(block.text[:60]))), ""
    )
    if degrees.isdigit():
        degrees += "°"
    parts = [part for part in (degrees.replace(" ", ""), shortened(sky, 60)) if part]
    return texts["weather"].format(title=place, entries=texts["comma"].join(parts)) if place and parts else ""


def _place(layout: Layout) -> str:
    """Where the weather is: the first title that is no weather."""
    lines = (plain(block.text) for block in layout.blocks[:12])
    return next((text for text in lines if _is_title(text) and not _SKY.search(text)), "")


_DEGREES = re.compile(r"-?\d{1,2} ?(?:°|℃|℉)?[CF]?")
_SKY = re.compile(
    r"(?<![a-z])(?:sunny|clear|cloud|cloudy|rain|snow|storm|thunder|fog|overcast|mist|drizzle|showers?|haze)"
    r"|晴|雨|多云|阴|雪|雾|霾",
    re.IGNORECASE,
)


def _calendar(layout: Layout, app: str, texts: dict[str, str]) -> str:
    """The events of an agenda: what is right above a time with a beginning and an end."""
    events = [
        plain(above.text)
        for line in layout.lines
        if _FROM_TO.match(line.text.strip())
        for above in layout.lines
        if 0 <= line.top - above.bottom < line.height and abs(above.left - line.left) < line.height
    ]
    named = list(dict.fromkeys(shortened(event, ENTRY) for event in events if _is_title(event)))
    subject = _subject(layout, "calendar", app)
    if len(named) < 2 or not subject:
        return ""
    entries = (
        texts["more"].format(texts["comma"].join(named[:4])) if len(named) > 5 else _enumerated(named, texts)
    )
    return texts["named"].format(title=subject, entries=entries)


_FROM_TO = re.compile(r"\d{1,2}[:：]\d\d ?(?:[ap]m)? ?[-–—~至] ?\d{1,2}[:：]\d\d", re.IGNORECASE)


def _mail(layout: Layout, app: str, texts: dict[str, str]) -> str:
    if layout.paragraphs and len(layout.values(WHEN_RIGHT)) < 3:
        subject = _subject(layout, "mail", app)
        return texts["mail"].format(
            title=texts["quote"].format(subject),
            said=_first_sentence(plain(layout.paragraphs[0].text), QUOTED),
        )
    rows = _entry_rows(layout)
    entries = _names(rows, texts)
    if len(rows) >= 3 and len({_entry(row) for row in rows}) == 1:
        subjects = _below(layout, rows)
        if len(subjects) >= 2:
            return texts["mails_from"].format(who=entries, entries=_names(subjects, texts))
    return texts["mails"].format(entries=entries) if entries else ""


def _below(layout: Layout, rows: Sequence[Row]) -> list[Row]:
    """The row right below each of `rows`: the subjects of mails."""
    following = {
        id(row.first): below
        for row, below in itertools.pairwise(layout.rows)
        if row.first.bottom < below.first.bottom
    }
    found = [(row, following[id(row.first)]) for row in rows if id(row.first) in following]
    return [
        below
        for row, below in found
        if abs(below.first.left - row.first.left) < row.first.height
        and _is_title(_entry(below))
        and _entry(below) != _entry(row)
    ]


def _facts(layout: Layout, app: str, texts: dict[str, str]) -> str:
    """Name and labelled values, as on tickets: “Flight KL 1577, Gate D14”."""
    subject, pairs = _subject(layout, "ticket", app), _pairs(layout)
    if len(pairs) < 2:
        return ""
    return (
        texts["named"].format(title=subject, entries=texts["comma"].join(pairs[:5]))
        if subject
        else texts["comma"].join(pairs[:5])
    )


def _pairs(layout: Layout) -> list[str]:
    """Labels with their values beside them."""
    return [
        f"{plain(row.first.text)} {plain(row.last.text)}"
        for row in layout.rows
        if len(row.lines) == 2
        and row.first is not layout.header
        and not (row.first.text.isupper() and row.last.text.isupper())  # buttons
        and weight(row.first.text) >= 2
        and len(row.first.text) <= 30
        and len(row.last.text) <= 60
        and row.last.text.strip("0oO.·• ") != ""  # three dots of a menu
        and row.last.right > 0.6 * layout.width
    ]


_WRITERS: dict[str, Callable[[Layout, str, dict[str, str]], str]] = {
    "conversation": _conversation,
    "conversations": _conversations,
    "payment": _payment,
    "accounts": _accounts,
    "lock_screen": _notified,
    "notices": _notified,
    "code": _code,
    "post": _post,
    "video": _video,
    "article": _article,
    "page": _article,
    "settings": _settings,
    "weather": _weather,
    "calendar": _calendar,
    "mail": _mail,
    "ticket": _facts,
    "meeting": _facts,
    "parcel": _facts,
    "health": _facts,
    "game": _facts,
}


def _listed(layout: Layout, kind: str, app: str, texts: dict[str, str]) -> str:
    """The name of the screen and what it begins with: its first paragraph, or its first entries."""
    subject = _subject(layout, kind, app)
    said = next((plain(block.text) for block in layout.paragraphs if plain(block.text) != subject), "")
    rows = [row for row in _entry_rows(layout) if plain(row.first.text) != subject]
    named = [row for row in rows if not row.first.text.isupper()]  # no buttons, no headings of sections
    rows = named if len(named) >= 3 else rows
    if not said and len(named) < 3:
        said = next((text for block in layout.body if _is_said_here(block, text := plain(block.text))), "")
    is_running_text = sum(weight(block.text) for block in layout.paragraphs) >= RUNNING
    if said and (len(rows) < 6 or is_running_text):
        about = _first_sentence(said, QUOTED)
    elif len(pairs := _pairs(layout)) >= 2 and kind not in ("tasks", "contacts", "music", "home_screen"):
        about = texts["comma"].join(pairs[:4])
    else:
        about = _names(rows, texts)
        if not about:
            worded = [plain(block.text) for block in layout.blocks if _is_title(plain(block.text))]
            about = texts["comma"].join(
                shortened(text, 60)
                for text in dict.fromkeys(worded)
                if text != subject and text not in subject
            )
            about = shortened(about, QUOTED + 40)
    if subject and about:
        return texts["named"].format(title=subject, entries=about)
    return subject or about or " ".join(plain(line.text) for line in layout.all_lines[:12])


# -------------------------------------------------------------------------------------------------- the parts


def _is_said_here(block: Block, text: str) -> bool:
    """Whether a block is a sentence, or a wrapped text as long as one."""
    is_sentence = text[-1:] in ".!?。！？" and not text.endswith("..")
    return weight(text) >= (12 if is_sentence else 40) and (is_sentence or len(block.lines) >= 2)


def _entry_rows(layout: Layout) -> list[Row]:
    rows = [row for row in layout.entries if _is_title(_entry(row))]
    if 2 * len(rows) < len(layout.entries):  # each entry begins with its time
        below = _below(layout, layout.entries)
        return below if len(below) >= 3 else rows
    return rows


def _entry(row: Row) -> str:
    """What names an entry: its first text, without a time behind it."""
    return plain(_TRAILING_TIME.sub("", row.first.text))


def _names(rows: Sequence[Row], texts: dict[str, str]) -> str:
    """“Family, Alice and FunBreaker”, or with “and more” where there are more than five."""
    names = list(dict.fromkeys(shortened(_entry(row), ENTRY) for row in rows))
    if not names:
        return ""
    if len(names) > 5:
        return texts["more"].format(texts["comma"].join(names[:4]))
    return _enumerated(names, texts)


def _enumerated(names: Sequence[str], texts: dict[str, str]) -> str:
    if len(names) == 1:
        return names[0]
    return texts["and"].format(texts["comma"].join(names[:-1]), names[-1])


def _amount(layout: Layout, *, largest: bool = False) -> str:
    """The largest amount on the screen by its size; of equal ones the last, which is the total, unless only a
    `largest` one is wanted.
    """
    found = [
        (line.height, number, match[0].strip())
        for number, line in enumerate(layout.lines)
        if (match := _AMOUNT.search(line.text[:120]))
    ]
    if not found:
        return ""
    tallest = max(height for height, _, _ in found)
    large = [one for one in found if one[0] >= 0.85 * tallest]
    if tallest >= 1.4 * layout.median:
        return large[0][2]
    return "" if largest else large[-1][2]


def _payee(layout: Layout) -> str:
    for row in layout.rows:
        if len(row.lines) >= 2 and _PAYEE.fullmatch(plain(row.first.text)):
            return shortened(plain(row.last.text), 40)
    return ""


def _date(layout: Layout) -> str:
    for row in layout.rows:
        match = _DATE.search(row.last.text[:80])
        if match:
            return match[0]
    return ""


_DATE = re.compile(
    r"(?<!\d)\d{4}[-/.]\d{1,2}[-/.]\d{1,2}(?!\d)|(?<!\d)\d{1,2}/\d{1,2}/\d{4}|\d{4}年\d{1,2}月\d{1,2}日"
    r"|\d{1,2} [A-Z][a-z]{2,8} \d{4}|[A-Z][a-z]{2,8} \d{1,2}, \d{4}"
)


def _site(layout: Layout) -> str:
    for line in layout.all_lines[:6]:
        match = _SITE.fullmatch(plain(line.text)[:300])
        if match and "." in match[1]:
            return match[1].lower()
    return ""


def _longest(layout: Layout) -> str:
    """The first long text of the body."""
    said: Iterable[Block] = [
        block
        for block in layout.body
        if weight(block.text) >= POSTED and letters(block.text) > 0.6 and "@" not in block.text[:40]
    ]
    unaddressed = [block for block in layout.body if "@" not in block.text]
    said = said or sorted(unaddressed, key=lambda block: -weight(block.text))[:1]
    return next((plain(block.text) for block in said if weight(block.text) >= 10), "")


def _first_sentence(text: str, limit: int) -> str:
    """The beginning of a text, up to the end of a sentence where that is within the limit."""
    if len(text) <= limit:
        return text
    ends = [match.end() for match in _SENTENCE_END.finditer(text[:limit])]
    long_enough = [end for end in ends if end >= 24]
    return text[: long_enough[-1]].rstrip() if long_enough else shortened(text, limit)
