"""What the text of a screenshot says, judged by plain rules: category, intent, app, entities, a summary.

The embedded analyser recognises words and shapes; it understands nothing. So the rules favour precision. A
category needs evidence worth `ENOUGH`, from words and from the shape of the page; otherwise it is `other`. An
app is named only when the file's name or a notification's header names it, or when a well-known name is alone
on a line at the top. The confidence, at most one half, reflects how the category was found. Words are listed
for English and Chinese, the languages of the summaries.
"""

import re
import statistics
from typing import NamedTuple

import msgspec

from engines.entities import CLOCK, MONTH, NUMBER, SIGN, WHEN, entities_in
from engines.findings import CATEGORIES, Entity, Findings
from engines.lines import Line, Page
from text import shortened

ENOUGH = 3
MAX_CONFIDENCE = 0.5
# Parts of `MAX_CONFIDENCE`: for a category with twice the evidence, with enough, with none, and for a picture
# without text.
CERTAIN, LIKELY, UNSUPPORTED, BLANK = 1.0, 0.8, 0.5, 0.2
SUMMARY_LENGTH = 200
STATUS_BAR = 0.05  # of the height
TOP, BOTTOM = 0.16, 0.88  # where address bars and titles are: above and below these parts of the height
LEAST_TEXT = 12  # letters and digits; with fewer, a screenshot is not worth keeping
LONG_LINE = 34  # characters of running text; a Chinese one counts double


class Clue(NamedTuple):
    """Evidence for a category: `weight` once `pattern` is found in `least` different lines."""

    weight: int
    pattern: re.Pattern[str]
    least: int = 1


def judge(page: Page, *, analyser: str, language: str, name: str = "") -> Findings:
    """The findings for a page. `analyser` is named in `raw`, `language` (`zh` or `en`) is the summary's, and
    `name` is the file's.
    """
    lines = [line for line in page.lines if not _in_status_bar(line, page)]
    text = "\n".join(line.text for line in page.lines)
    reading = statistics.fmean(line.confidence for line in page.lines) if page.lines else 0.0
    entities = entities_in("\n".join(line.text for line in lines))
    category, evidence = _category(lines, page)
    app = _app_name(lines, page, name)
    if not lines:
        support = BLANK
    elif category == "other":
        support = UNSUPPORTED
    else:
        support = CERTAIN if evidence >= 2 * ENOUGH else LIKELY
    raw = {
        "analyser": analyser, "lines": len(page.lines), "mean_confidence": round(reading, 3),
        "category_evidence": evidence, "width": page.width, "height": page.height,
    }  # fmt: skip
    return Findings(
        app_name=app,
        content_category=category,
        intent=_intent(category, lines, entities),
        summary=_summary(category, app, lines, page, language),
        entities=entities,
        confidence=round(MAX_CONFIDENCE * support * (reading if lines else 1), 3),
        visible_text=text,
        raw=msgspec.json.encode(raw).decode(),
    )


def _words(latin: str, chinese: str = "") -> re.Pattern[str]:
    """Any of these alternatives, in any case; Latin ones as whole words."""
    whole = rf"(?<![a-z])(?:{latin})(?![a-z])"
    return re.compile(f"{whole}|{chinese}" if chinese else whole, re.IGNORECASE)


def _alone(alternatives: str) -> re.Pattern[str]:
    """Any of these as a whole line, but for icons and dots around it."""
    return re.compile(rf"^\W*(?:{alternatives})\W*$", re.IGNORECASE)


_AGO = (
    r"now|just now|yesterday|\d{1,2} ?(?:s|m|min|mins|h|hr|hrs|d|w)(?: ago)?"
    r"|\d+ (?:minute|hour|day|week)s?(?: ago)?|jetzt"
    r"|刚刚|昨天|\d+ ?(?:分钟|小时|天)前"
)
# The header of a notification: "Calendar · 5m".
_HEADER = re.compile(rf"^(.{{2,40}}?) ?[·•・] ?(?:{_AGO})\W*$", re.IGNORECASE)
_MONEY = re.compile(rf"{SIGN} ?\d|\d ?(?:€|£|元|USD|EUR|CNY|RMB)")
_HANDLE = re.compile(r"(?:^|\s)@[\w.]{2,}")

# The input field is the surest sign of a conversation; lists of chats are recognised by their tabs and times.
_CHAT = (
    Clue(
        3,
        _alone(
            r"(?:(?:type|enter|write|send|compose) (?:a |your )?(?:text |email )?|text )?message|imessage"
        ),
    ),
    Clue(3, _alone(r"按住 ?说话|(?:发送?|输入)消息.{0,4}")),
    Clue(3, _words("is typing", "对方正在输入")),
    Clue(
        2,
        _alone(
            r"chats|all chats|new (?:chat|conversation)|messenger|messages|direct messages?"
            r"|聊天|群聊.{0,8}|微信.{0,6}"
        ),
    ),
    Clue(
        2,
        _words(
            "last seen|saved messages|voice message|end-to-end encrypted",
            "已读|已送达|语音(?:消息|通话)|消息免打扰|撤回了一条",
        ),
    ),
    Clue(
        1,
        _alone(
            r"online|contacts|calls|groups|you|在线|通讯录|\[(?:voice|photo|sticker|图片|语音|表情|视频)\]"
        ),
    ),
    Clue(2, re.compile(rf"(?:^|\D){CLOCK}(?: ?[ap]m)?\W*$", re.IGNORECASE), 4),
    Clue(1, _alone(_AGO), 4),
)
_FINANCE = (
    Clue(2, _MONEY, 2),
    Clue(1, _MONEY, 4),
    Clue(1, re.compile(rf"^\W*[-+−] ?{SIGN}? ?{NUMBER}\W*$"), 2),
    Clue(
        2,
        _words(
            "transactions?|expenses?|income|you (?:spent|saved|paid)",
            "交易|账单|收入|支出|转账|余额|实付|支付成功|付款",
        ),
    ),
    Clue(1, _words("budget|balance", "预算|消费|总资产|理财")),
    Clue(1, _words("salary|savings?|spending|spent|subscriptions?", "工资|储蓄|信用卡")),
    Clue(
        1,
        _words(
            "payment|paid|transfer(?:red)?|deposit|withdraw(?:al)?|invoice|receipt",
            "收款|提现|充值|还款|红包|发票",
        ),
    ),
    Clue(1, _words("(?:credit|debit) card|bank|iban|portfolio|stocks?", "银行|基金|股票|收益")),
)
_NOTIFICATION = (
    Clue(
        3,
        _alone(
            r"clear all|notification cent(?:er|re)|no (?:new |older )?notifications|manage notifications"
            r"|silent notifications"
        ),
    ),
    Clue(3, _alone(r"全部清除|清除全部|通知中心|没有(?:新)?通知|通知管理|不重要的通知")),
    Clue(3, _HEADER),
    Clue(
        2,
        _words("verification code|security code|one-time (?:code|password|passcode)", "验证码|校验码|取件码"),
    ),
    Clue(1, _alone(r"notifications|alerts?|通知|警报")),
    Clue(
        2,
        _words(
            "failed|succeeded|success(?:ful)?|completed|warning|logged in|restarted",
            "已完成|失败|成功|已签收|已发货|提醒您",
        ),
        3,
    ),
)
_COUNTED = (
    "likes?|comments?|followers?|following|reposts?|retweets?|boosts?|favou?rites|upvotes?|replies|shares"
    "|views|subscribers"
)
_COUNTED_ZH = "粉丝|播放|点赞|赞|条?评论|转发|关注|获赞|收藏|浏览|回复"
_SOCIAL = (
    Clue(3, re.compile(rf"\d[\d.,]{{0,11}} ?[km]? (?:{_COUNTED})\b", re.IGNORECASE)),
    Clue(3, re.compile(rf"\d ?万?\+? ?(?:{_COUNTED_ZH})|(?:{_COUNTED_ZH}) ?\d")),
    Clue(2, _HANDLE, 2),
    Clue(1, _HANDLE, 4),
    Clue(1, re.compile(r"(?:^|\s)[#＃][^\W\d_]\w+")),
    Clue(
        1,
        _words(
            "followers|following|retweet|repost|boosted|upvote|timeline|trending|for you",
            "粉丝|关注|点赞|转发|热搜|热门|话题",
        ),
    ),
    Clue(
        1,
        _words(
            "posts?|comments?|reply|replies|share|favou?rites?",
            "评论|收藏|帖子|笔记|动态|朋友圈|超话|投稿|弹幕",
        ),
    ),
)
_WEBPAGE = (
    Clue(
        3,
        _words(
            "all rights reserved|accept (?:all )?cookies|cookie (?:settings|preferences|policy)"
            "|skip to (?:main )?content"
        ),
    ),
    Clue(3, re.compile("ICP备.{0,12}号|版权所有|责任编辑")),
    Clue(1, re.compile(r"https?://|\bwww\.", re.IGNORECASE)),
    Clue(
        2,
        _words(
            r"sign in to \w+|\d{1,3} min read|pull requests|from wikipedia|table of contents",
            "阅读全文|阅读原文|来源[:：]",
        ),
    ),
    Clue(
        1,
        _words(
            "privacy policy|terms of (?:service|use)|create an account|forgot password|read more",
            "隐私政策|用户协议|网页",
        ),
    ),
    Clue(
        1,
        _words(
            r"by .{3,40}, .{0,40}\d{4}|published|wikipedia|encyclopedia",
            "编辑[:：]|发布时间|维基百科|百度百科",
        ),
    ),
)
# A browser shows the address alone on its line.
_ADDRESS = re.compile(
    r"^\W*(?:https?://\S+|(?:www\.)?(?:\w[\w-]*\.)+(?:com|org|net|io|dev|cn|de|uk|edu|gov)(?:/\S*)?)"
    r"(?:\W.{0,4})?$",
    re.IGNORECASE,
)
# A settings screen names every feature of its app, which is no evidence for a category.
_SETTINGS = Clue(
    -3,
    _alone(
        r"settings|preferences|appearance|general|themes?|language|dark (?:mode|theme)|font size"
        r"|about(?: .{1,20})?"
        r"|设置|通用|外观|主题|语言|深色(?:模式)?|字体大小|关于.{0,8}"
    ),
    2,
)

_REMINDER = _words(
    "appointment|meeting|deadline|due|reservation|booking|boarding|depart(?:s|ure)|flight|check-?in|reminders?"
    "|remind me|invitation|rsvp|pick ?up|expires?|to-?do|add task|scheduled?|interview|renews?",
    "会议|开会|截止|到期|预约|预订|航班|登机|车次|检票|取件|日程|待办|还款日|面试|考试|复诊|提醒",
)
_RESEARCH = _words(
    "abstract|study|research|review|comparison|compare|benchmark|tutorial|documentation|how to|encyclopedia"
    "|definitions?",
    "论文|研究|评测|测评|对比|教程|文档|百科|攻略",
)

# Names that identify an app when they are alone on a line at the top of a screen, by the package names that
# phones write into the names of screenshots.
_PACKAGES = {
    "com.whatsapp": "WhatsApp", "org.telegram.messenger": "Telegram", "org.thoughtcrime.securesms": "Signal",
    "com.facebook.orca": "Messenger", "com.facebook.katana": "Facebook", "com.instagram.android": "Instagram",
    "com.discord": "Discord", "com.slack": "Slack", "com.linkedin.android": "LinkedIn",
    "com.reddit.frontpage": "Reddit", "com.google.android.youtube": "YouTube",
    "com.zhiliaoapp.musically": "TikTok", "com.spotify.music": "Spotify", "com.google.android.gm": "Gmail",
    "com.google.android.apps.maps": "Google Maps", "com.microsoft.office.outlook": "Outlook",
    "com.paypal.android.p2pmobile": "PayPal", "com.android.chrome": "Chrome",
    "org.mozilla.firefox": "Firefox", "com.tencent.mm": "微信", "com.tencent.mobileqq": "QQ",
    "com.eg.android.alipaygphone": "支付宝", "com.taobao.taobao": "淘宝", "com.jingdong.app.mall": "京东",
    "com.xunmeng.pinduoduo": "拼多多", "com.sankuai.meituan": "美团", "com.ss.android.ugc.aweme": "抖音",
    "com.xingin.xhs": "小红书", "com.sina.weibo": "微博", "com.zhihu.android": "知乎",
    "tv.danmaku.bili": "哔哩哔哩", "com.autonavi.minimap": "高德地图", "com.baidu.baidumap": "百度地图",
    "com.alibaba.android.rimet": "钉钉", "com.ss.android.lark": "飞书",
}  # fmt: skip
# Other chat apps call themselves "Messenger", too.
_TITLES = {*_PACKAGES.values()} - {"Messenger"}
# Samsung: Screenshot_20241121-073104_WhatsApp.jpg. Xiaomi and others:
# Screenshot_2024-11-21-07-31-04-123_com.tencent.mm.jpg.
_FILE_NAME = re.compile(
    r"Screenshot_(?:\d{8}[-_]\d{6}|\d{4}(?:-\d\d){5}(?:-\d{1,3})?)_(?P<app>[^_/~]*?[^\W\d_][^_/~]*?)"
    r"(?:~\d+|-edit\w*)?\.\w+",
    re.IGNORECASE,
)

_CATEGORY_WORDS = {
    "zh": dict(zip(CATEGORIES, ("聊天", "网页", "财务", "通知", "社交媒体", "截图"), strict=True)),
    "en": dict(
        zip(
            CATEGORIES,
            ("Chat", "Web page", "Finance", "Notification", "Social media", "Screenshot"),
            strict=True,
        )
    ),
}
_NO_TEXT = {"zh": "图片中没有找到文字。", "en": "No text was found in the picture."}


# The parts of a status bar: clock, per cent, network, and icons that are read as up to three letters.
_STATUS = re.compile(rf"{CLOCK}|\d{{1,4}}|VoLTE|[A-Za-z\d]{{1,3}}")


def _category(lines: list[Line], page: Page) -> tuple[str, int]:
    """The category with the most evidence, and the amount of evidence; `other` when none has enough. A tie
    goes to the earlier category.
    """
    texts = [line.text.strip() for line in lines]
    evidence = {
        "chat": _evidence(_CHAT, texts),
        "finance": _evidence(_FINANCE, texts),
        "notification": _evidence(_NOTIFICATION, texts) + 3 * _is_lock_screen(lines),
        "social_media": _evidence(_SOCIAL, texts),
        "webpage": _evidence(_WEBPAGE, texts)
        + 2 * _has_address_bar(lines, page)
        + min(2, _running_lines(texts) // 4),
    }
    best = max(evidence, key=lambda category: evidence[category])
    amount = evidence[best] + _evidence((_SETTINGS,), texts)
    return (best, amount) if amount >= ENOUGH else ("other", max(0, amount))


def _evidence(clues: tuple[Clue, ...], texts: list[str]) -> int:
    return sum(
        clue.weight
        for clue in clues
        if sum(clue.pattern.search(text) is not None for text in texts) >= clue.least
    )


def _is_lock_screen(lines: list[Line]) -> bool:
    """Whether there is a clock in digits far larger than the other text, and a date close to it."""
    clock = next((line for line in lines if re.fullmatch(CLOCK, line.text.strip())), None)
    if clock is None or clock.height < 2.5 * statistics.median(line.height for line in lines):
        return False
    near = (line for line in lines if line is not clock and abs(line.top - clock.bottom) < 3 * clock.height)
    return any(re.search(rf"{MONTH}|\d月|周[一二三四五六日]|星期", line.text) for line in near)


def _has_address_bar(lines: list[Line], page: Page) -> bool:
    edges = (line for line in lines if line.bottom < TOP * page.height or line.top > BOTTOM * page.height)
    return any(_ADDRESS.match(line.text) for line in edges)


def _running_lines(texts: list[str]) -> int:
    return sum(len(text) + sum(character > "\u2e80" for character in text) >= LONG_LINE for text in texts)


def _intent(category: str, lines: list[Line], entities: list[Entity]) -> str:
    """The probable reason for keeping the screenshot."""
    texts = [line.text for line in lines]
    text = "\n".join(texts)
    if sum(character.isalnum() for character in text) < LEAST_TEXT:
        return "ignore"
    # A date alone is weak evidence, since chats are full of them; next to such a word it is the
    # appointment's.
    dated = any(
        _REMINDER.search(line) and WHEN.search("\n".join(texts[max(0, at - 1) : at + 2]))
        for at, line in enumerate(texts)
    )
    if dated or len({match[0].casefold() for match in _REMINDER.finditer(text)}) >= 2:
        return "reminder"
    if category == "webpage" or len({match[0].casefold() for match in _RESEARCH.finditer(text)}) >= 2:
        return "research"
    if category == "finance" or {entity.type for entity in entities} & {"code", "link", "email", "phone"}:
        return "reference"
    return "note"


def _app_name(lines: list[Line], page: Page, name: str) -> str:
    """The app if something names it, else "": a wrong name would show up in searches for that app."""
    if named := _FILE_NAME.fullmatch(name):
        app = named["app"]
        return _PACKAGES.get(app.casefold(), "") if "." in app else app
    headers = {match[1].strip() for line in lines if (match := _HEADER.match(line.text))}
    if len(headers) == 1 and _is_lock_screen(lines):
        return headers.pop()
    top = (_plain(line.text) for line in lines if line.bottom < TOP * page.height)
    return next((text for text in top if text in _TITLES), "")


def _summary(category: str, app: str, lines: list[Line], page: Page, language: str) -> str:
    """Category, app, title and the first lines with content, up to `SUMMARY_LENGTH` characters."""
    if not lines:
        return _NO_TEXT[language]
    opening = _CATEGORY_WORDS[language][category]
    if app:
        opening += f"（{app}）" if language == "zh" else f" ({app})"
    colon, semicolon = ("：", "；") if language == "zh" else (": ", "; ")
    content = semicolon.join(dict.fromkeys(_content_lines(lines, page)))
    return shortened(opening + colon + content, SUMMARY_LENGTH)


def _content_lines(lines: list[Line], page: Page) -> list[str]:
    """The title, which is the first of the largest lines in the upper part, then the longer lines, or all
    lines when none is long.
    """
    mere_times = _alone(f"{_AGO}|{CLOCK}")
    worded = [line for line in lines if _weight(line.text) >= 4 and not mere_times.match(line.text)]
    upper = [line for line in worded if line.top < 0.4 * page.height]
    # Heights differ a little with the letters of a line, so the largest one may be the second of a title.
    tallest = max((line.height for line in upper), default=0)
    title = next((line for line in upper if line.height >= 0.85 * tallest), None)
    sentences = [line for line in worded if _weight(line.text) >= 12]
    return [_plain(line.text) for line in ([title] if title else []) + (sentences or worded or lines)]


def _plain(text: str) -> str:
    """`text` without icons in front, which are read as punctuation or as a single Chinese character."""
    return (
        re.sub(r"^[^\w(\[（【《“\"'@#$€£¥￥+-]+|^[\u2e80-\u9fff] (?=[A-Za-z])", "", text.strip())
        or text.strip()
    )


def _weight(text: str) -> int:
    """The number of letters, Chinese ones counted double: how much a line says."""
    return sum(1 + (character > "\u2e80") for character in text if character.isalpha())


def _in_status_bar(line: Line, page: Page) -> bool:
    """Clock, battery and network at the top of a phone's screen, which say nothing about the content."""
    if page.height < page.width or line.bottom > STATUS_BAR * page.height:
        return False
    return all(_STATUS.fullmatch(token) for token in re.findall(r"\w+(?:[:：]\w+)*", line.text))
