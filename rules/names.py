"""The name of the app that a screenshot shows, where something on it says so.

A wrong name would show up in searches for that app, so no guess is made: the name is in the file's
name, in a notification's header, in the title of a window, in a phrase like "Search in …", or at the top as
a well-known name or one that is built like a product's ("SimplyTranslate", "Delta Chat", "Gotify").
"""

import re
from collections.abc import Sequence

from engines.lines import Line
from rules.kinds import headed, is_lock_screen
from rules.layout import Layout, is_chinese, letters, plain, weight


def _set_of(words: str) -> frozenset[str]:
    return frozenset(words.split())


# By the package names that phones write into the names of screenshots.
PACKAGES = {
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
_KNOWN = (
    "Twitter|Threads|Bluesky|Snapchat|Pinterest|Tumblr|Mastodon|Twitch|Zoom|Microsoft Teams|Skype"
    "|Viber|LINE|Threema|Element|WeChat|KakaoTalk|Google Chat|Google Meet|Google Pay"
    "|Google Wallet|Google Drive|Google Photos|Google Keep|Google Calendar|Google Translate"
    "|Google News|Apple Music|YouTube Music|SoundCloud|Deezer|Audible|Shazam|Netflix|Disney+"
    "|Prime Video|Hulu|Amazon|eBay|Etsy|AliExpress|Alibaba|Temu|SHEIN|Zalando|IKEA|Walmart|Shopee"
    "|Lazada|Uber|Uber Eats|Lyft|Bolt|Grab|DoorDash|Deliveroo|Airbnb|Booking.com|Expedia"
    "|Tripadvisor|Trip.com|Skyscanner|DB Navigator|Lufthansa|Ryanair|easyJet|Waze|Citymapper"
    "|OsmAnd|Organic Maps|Komoot|Strava|Garmin Connect|Fitbit|Duolingo|Anki|Kindle|Goodreads"
    "|Medium|Substack|Hacker News|Flipboard|Feedly|Wikipedia|DuckDuckGo|Notion|Evernote|OneNote"
    "|Obsidian|Todoist|Trello|Asana|Jira|Linear|Figma|Canva|GitHub|GitLab|Stack Overflow|Dropbox"
    "|OneDrive|Nextcloud|Proton Mail|Thunderbird|Venmo|Cash App|Revolut|Wise|N26|Monzo|Klarna"
    "|Stripe|Robinhood|Coinbase|Binance|Steam|Xbox|PlayStation App|Roblox|Bitwarden|1Password"
    "|KeePassDX|Google Authenticator|ChatGPT|Claude|Gemini|Perplexity|DeepSeek|Copilot|NewPipe"
    "|VLC|Kodi|Plex|Jellyfin|Syncthing|Home Assistant|Signal|Tinder|Bumble|Yelp|豆瓣|今日头条|快手|西瓜视频"
    "|腾讯视频|爱奇艺|优酷|芒果TV|网易云音乐|QQ音乐|酷狗音乐|酷我音乐|喜马拉雅|微信读书|腾讯会议|企业微信|云闪付|招商银行|工商银行|中国工商银行"
    "|建设银行|中国建设银行"
    "|农业银行|中国银行|交通银行|邮储银行|平安银行|浦发银行|中信银行|民生银行|兴业银行|光大银行|同花顺|东方财富|雪球|铁路12306|携程旅行|携程|去哪儿"
    "|去哪儿旅行|飞猪"
    "|同程旅行|航旅纵横|滴滴出行|哈啰|饿了么|大众点评|盒马|盒马鲜生|叮咚买菜|闲鱼|天猫|苏宁易购|唯品会|得物|菜鸟|菜鸟裹裹|顺丰速运|腾讯地图"
    "|知乎日报|虎扑|贴吧|百度"
    "|百度贴吧|百度网盘|夸克|UC浏览器|WPS Office|石墨文档"
    "|印象笔记|有道词典|扇贝单词|百词斩|墨墨背单词|下厨房|Keep|小米运动|华为运动健康|个人所得税"
    "|交管12123|国家反诈中心|支付寶|微信讀書|豆包|Kimi|文心一言|通义千问|元宝|得到|学习强国|番茄小说"
)
# These names are also plain words on other screens.
_ALSO_WORDS = _set_of(
    "Signal Element LINE Threads Medium Bolt Grab Wise Linear Keep Claude Gemini Steam Amazon 得到 元宝 百度"
)
# Other chat apps call themselves "Messenger", too.
_BY_NAME = {name.casefold(): name for name in [*PACKAGES.values(), *_KNOWN.split("|")] if name != "Messenger"}
# Samsung: Screenshot_20241121-073104_WhatsApp.jpg. Xiaomi and others:
# Screenshot_2024-11-21-07-31-04-123_com.tencent.mm.jpg.
_FILE_NAME = re.compile(
    r"Screenshot_(?:\d{8}[-_]\d{6}|\d{4}(?:-\d\d){5}(?:-\d{1,3})?)_(?P<app>[^_/~]+?)"
    r"(?:~\d+|-edit\w*)?\.\w+",
    re.IGNORECASE,
)


_SEARCH_IN = re.compile(
    r"(?:search in|search|welcome to|log in to|sign in to|about) (.{3,30}?)\W{0,3}"
    r"|(?:搜索|欢迎使用|欢迎来到|登录|关于) ?(.{2,20}?)\W{0,3}",
    re.IGNORECASE,
)
_GENERIC = _set_of(
    """
    about account accounts activity add agenda album albums alerts all amplify app appearance apps april
    archive article articles august bank billing book bookmarks books browse browser calendar call calls
    camera card cards cart categories category channel channels chat chats checkout clarify clock cloud
    code collection comments community compose contact contacts conversation conversations create
    customize daily dashboard data database date december default details device devices dialog digital
    direct discover display document documents download downloads draft drafts drive edit email emails
    event events explore export family favorites favourites february feed feeds file files filter
    filters folder folders following for free friday friends from gallery general german global group
    groups help history home identify image images import inbox info information internet item items
    january join july june justify language latest library list lists live local log login logs mail
    manage manager map maps march may media meeting members menu message messages messenger mobile
    modify monday monthly more most music my network new news next note notes notification notifications
    notify november october offline online open options order orders our overview page password payment
    payments people personal phone photo photos pictures play player playlist plugins podcast podcasts
    popular post posts preferences premium privacy private pro product products profile profiles project
    projects public qualify quick radio read reader recent recipe recipes recording remote report
    reports results review reviews room saturday save saved scan schedule school search security select
    send september server server's servers service settings setup share shared shop shopping show
    simplify smart sms social sort specify start statistics status storage store stories study
    subscriptions summary sunday support sync system tab tabs talk task tasks team template templates
    test text the theme themes thread threads thursday ticket tickets timeline to today todo tools top
    total track transaction transactions translate translation trending trip tuesday unread updates
    upload user users verify version video videos view voice voicemail wallet watch weather web
    wednesday weekly welcome widget work world yearly you your
    """
)
_PLAIN = _set_of("a an and at by from in my of on or the with")
_GENERIC_CHINESE = _set_of(
    "设置 首页 消息 聊天 通知 账单 订单 我的订单 日程 任务 待办 笔记 备忘录 相册"
    " 搜索 发现 详情 支付成功 余额 钱包 自选"
)
# The last word of a product's name after a proper name: "Delta Chat", "Ivy Wallet".
_PRODUCT_WORDS = _set_of(
    "chat mail messenger talk wallet mobile authenticator browser launcher keyboard reader player lite pay"
    " bank music fork"
)
_COINED = re.compile(
    r"[A-Z]?[a-z]{1,14}[A-Z][A-Za-z]{1,14}|[A-Z]{2,5}[a-z]{2,14}|[A-Z][a-z]{2,12}(?:ify|Fork|DX)"
)
_WINDOW = 0.09  # of the height: where a window's title is
_CORNER = (
    0.05  # of the height and 0.08 of the width: where the title of a window with its buttons beside it is
)
_ABOUT = re.compile(
    r"(?:about|rate|quit|exit|log out of|sign out of) (\w[\w .-]{2,29})|(?:关于|退出) ?(\w[\w .-]{1,19})",
    re.IGNORECASE,
)
# Such screens are headed by a person, a place or a thing, whose name may look like a product's.
_OF_OTHERS = _set_of("conversation post profile video article note weather map source")


def app_name(layout: Layout, kind: str, file_name: str) -> str:
    """The app if something names it, else ""."""
    # In code that the name has a letter: in the expression, this would take quadratic time.
    if (named := _FILE_NAME.fullmatch(file_name)) and any(map(str.isalpha, named["app"])):
        app = named["app"]
        return PACKAGES.get(app.casefold(), "") if "." in app else app
    if kind in ("notices", "lock_screen") and (from_notices := _notified(layout)):
        return from_notices
    if kind == "home_screen" or (kind == "lock_screen" and is_lock_screen(layout)):
        return ""
    return (
        _at_the_top(layout, kind)
        or _in_a_phrase(layout)
        or (_named_twice(layout) if kind == "settings" else "")
    )


def known(text: str) -> str:
    """The well-known app that a whole text names, "" when it names none."""
    return _BY_NAME.get(plain(text).casefold(), "")


def is_generic(text: str) -> bool:
    """Whether a title names no thing of its own: "Settings", "My orders", 设置."""
    words = plain(text).casefold().replace("’s", "").split()
    return (
        all(word.strip(".,:") in _GENERIC or word in _PLAIN for word in words)
        or text.strip() in _GENERIC_CHINESE
    )


def _notified(layout: Layout) -> str:
    """The app in the headers of notifications, if all name the same."""
    senders = {plain(sender) for line in layout.all_lines if (sender := headed(line.text))}
    if len(senders) != 1:
        return ""
    (sender,) = senders
    rows = len(layout.lines)
    # In a feed, "Anna · 5m" is a person: a header of notifications is on a short or locked screen.
    if is_lock_screen(layout) or rows <= 16:
        return sender if weight(sender) >= 2 and "@" not in sender and len(sender) <= 30 else ""
    return ""


def _at_the_top(layout: Layout, kind: str) -> str:
    words = [plain(line.text) for line in layout.headers[:2]]
    alone = [_without_count(text) for text in words]
    for text in alone:
        name = known(text)
        if name and (name not in _ALSO_WORDS or kind not in ("", "article", "page", "conversation", "note")):
            return name
    if window := _window_title(layout, kind):
        return window
    if kind in _OF_OTHERS:
        return ""
    below = [plain(line.text) for line in layout.below_heading]
    for text in [*alone[:1], *below]:
        if _is_product(text):
            return text
        first, _, rest = text.partition(" ")
        if rest.casefold() in _GENERIC and _COINED.fullmatch(first) and _is_product(first):
            return first  # "KeePassDX Database"
    return ""


def _window_title(layout: Layout, kind: str) -> str:
    """The app in the title of a window: behind a dash, in the middle of its bar, or at its left."""
    for line in layout.lines[:4]:
        if line.bottom > _WINDOW * layout.height:
            continue
        text = plain(line.text)
        if (
            not layout.top
            and (name := known(_LAST_PART.split(text)[-1]))
            and name.casefold() != text.casefold()
        ):
            return name  # "Minutes.odt — Thunderbird"
        middle = (line.left + line.right) / 2
        centered = abs(middle - layout.width / 2) < 0.03 * layout.width
        wide = layout.width > 1.15 * layout.height
        if centered and line.height <= 1.35 * layout.median:
            named = wide or (kind not in _OF_OTHERS and _heads_a_window(layout, line))
            if named and (
                letters(text) > 0.9
                and len(text.split()) == 1
                and 3 <= len(text) <= 20
                and text.casefold() not in _GENERIC
            ):
                return text if text[0].isupper() else text.capitalize()
        elif kind not in _OF_OTHERS and _is_in_the_corner(layout, line) and _is_product(text):
            return text
    return ""


_LAST_PART = re.compile(r" [-–—|] ")


def _is_in_the_corner(layout: Layout, line: Line) -> bool:
    """Whether it is the small first text in the upper left corner of a picture without a status bar."""
    return (
        not layout.top
        and line is layout.lines[0]
        and line.bottom < _CORNER * layout.height
        and line.left < 0.08 * layout.width
        and line.height <= layout.median
    )


def _heads_a_window(layout: Layout, line: Line) -> bool:
    """Whether a title in the middle of a narrow window, which has no status bar, is above the screen's
    own header.
    """
    if layout.top or line is not layout.lines[0]:
        return False
    below = next((one for one in layout.headers if one is not line), None)
    return below is not None and below.height >= line.height and below.right < 0.6 * layout.width


def _in_a_phrase(layout: Layout) -> str:
    for line in layout.headers[:3]:
        match = _SEARCH_IN.fullmatch(plain(line.text)[:60])
        if match:
            name = (match[1] or match[2]).strip()
            if known(name):
                return known(name)
            words = name.split()
            proper = all(word[:1].isupper() for word in words)
            if (
                match[1]
                and proper
                and len(words) >= 2
                and words[0].casefold() not in _GENERIC
                and _is_product(name)
            ):
                return name
    return ""


def _named_twice(layout: Layout) -> str:
    """The app of a menu that has "About Firefly", where "Firefly" stands alone as well."""
    alone = {plain(line.text).casefold() for line in layout.all_lines}
    for line in layout.lines:
        match = _ABOUT.fullmatch(plain(line.text)[:60])
        name = (match[1] or match[2]).strip() if match else ""
        if name and not is_generic(name) and (known(name) or name.casefold() in alone):
            return known(name) or (name if name[:1].isupper() or is_chinese(name[0]) else "")
    return ""


def _is_product(text: str) -> bool:
    """Whether a header is built like the name of a product."""
    words = text.replace("-", " ").split()
    if not words or len(words) > 3 or len(text) > 30 or any(map(is_chinese, text)):
        return False
    if not all(word.isalpha() for word in words):
        return False
    first, last = words[0], words[-1]
    if any(word.startswith("Mc") for word in words):  # a family name
        return False
    if any(_COINED.fullmatch(word) and word.casefold() not in _GENERIC for word in words):
        others: Sequence[str] = [word for word in words if not _COINED.fullmatch(word)]
        return all(word[:1].isupper() for word in others) and last.casefold() != "database"
    return (
        len(words) >= 2
        and last.casefold() in _PRODUCT_WORDS
        and all(word[:1].isupper() for word in words)
        and first.casefold() not in _GENERIC
    )


def _without_count(text: str) -> str:
    """A header without the number of unread things: "微信(12)" is 微信."""
    head, bracket, rest = text.replace("（", "(").partition("(")
    return head.strip() if bracket and rest.rstrip(")）+ ").isdigit() else text
