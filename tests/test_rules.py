"""What the rules say about text: each case is a screen that people keep, set line by line."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.lines import Line, Page
from rules import judge as rules
from rules import kinds
from tests.support.properties import REPEATED

SIZE = (1080, 2400)


def page(*texts, size=SIZE, tall=(), confidence=0.98):
    """A page with a line for each text, the first below the status bar; those in `tall` are set five times as
    large.
    """
    lines, top = [], 160
    for text in texts:
        height = 200 if text in tall else 40
        lines.append(Line(text, confidence, 40, top, 40 + 20 * len(text), top + height))
        top += height + 40
    return Page(*size, lines)


def judge(*texts, language="en", name="", **options):
    return rules.judge(page(*texts, **options), analyser="local/small", language=language, name=name)


CHAT = (
    "Anna",
    "online",
    "Are you coming tonight?",
    "18:02",
    "Yes, at eight",
    "18:04",
    "Great, see you",
    "18:05",
    "Type a message",
)
CHAT_ZH = ("王芳", "你到哪里了", "10:21", "快到地铁站了", "10:22", "好的，我在门口等你", "10:22", "按住 说话")
FINANCE = (
    "Transactions",
    "Balance",
    "$1,204.50",
    "Coffee House",
    "-$4.20",
    "Rent",
    "-$950.00",
    "Salary",
    "+$3,200.00",
)
FINANCE_ZH = ("账单", "本月支出 ¥2,318.60", "收入 ¥8,000.00", "美团外卖", "-32.50", "转账", "-200.00")
NOTIFICATION = (
    "Notifications",
    "Calendar · 5m",
    "Standup in ten minutes",
    "Backup · 1h",
    "The backup completed",
    "Clear all",
)
NOTIFICATION_ZH = ("通知中心", "中国移动", "刚刚", "您的验证码是 482913，5分钟内有效")
SOCIAL = (
    "Maria",
    "@maria_travels",
    "Sunrise above the clouds #alps",
    "1,204 likes",
    "86 comments",
    "@jonas Wonderful!",
)
SOCIAL_ZH = ("旅行日记", "云海日出 #周末去哪儿", "1.2万 点赞", "356 评论", "关注", "转发")
WEBPAGE = (
    "https://en.wikipedia.org/wiki/Alps", "Alps", "From Wikipedia, the free encyclopedia",
    "The Alps are the highest and most extensive mountain range",
    "that is entirely in Europe, stretching approximately 1,200 kilometres",
    "across eight Alpine countries, from west to east.",
)  # fmt: skip
WEBPAGE_ZH = ("www.example.com.cn/news/1", "城市新增三条地铁线路", "来源：日报", "责任编辑：李明", "版权所有")


@pytest.mark.parametrize(
    ("texts", "category"),
    [
        (CHAT, "chat"),
        (CHAT_ZH, "chat"),
        (FINANCE, "finance"),
        (FINANCE_ZH, "finance"),
        (NOTIFICATION, "notification"),
        (NOTIFICATION_ZH, "notification"),
        (SOCIAL, "social_media"),
        (SOCIAL_ZH, "social_media"),
        (WEBPAGE, "webpage"),
        (WEBPAGE_ZH, "webpage"),
        (("Partly cloudy", "Hourly forecast", "21°", "Air quality"), "other"),
        (("天气", "多云", "空气质量良", "未来七天"), "other"),
        (("Settings", "Notifications", "Language", "Messages", "Privacy", "About"), "other"),
        (("设置", "通知", "外观", "聊天", "通知管理", "关于手机"), "other"),
    ],
)
def test_a_screen_is_put_into_its_category(texts, category):
    found = judge(*texts)
    assert found.content_category == category
    assert json.loads(found.raw)["category_chance"] > 0.3


def test_a_lock_screen_is_a_notification_and_names_the_app():
    found = judge("17:44", "Sun, 17 Nov", "Calendar·now", "Dentist in one hour", tall=("17:44",))
    assert (found.content_category, found.app_name) == ("notification", "Calendar")


@pytest.mark.parametrize(
    ("texts", "intent"),
    [
        (("Dentist appointment", "Friday, 21 November", "14:30"), "reminder"),
        (("航班 CA1501", "登机 08:20", "登机口 C12"), "reminder"),
        (("会议", "明天请准时参加这个很重要的活动哦"), "note"),
        (WEBPAGE, "research"),
        (("Your verification code is 482913", "Do not share it with anyone"), "reference"),
        (FINANCE, "reference"),
        (("The gate is behind the old mill", "Ring twice and wait"), "note"),
        (("12:30", "OK"), "ignore"),
    ],
)
def test_an_intent_follows_from_what_is_there(texts, intent):
    assert judge(*texts).intent == intent


@pytest.mark.parametrize(
    ("name", "app"),
    [
        ("Screenshot_20241121-073104_WhatsApp.jpg", "WhatsApp"),
        ("Screenshot_20241121_073104_One UI Home.png", "One UI Home"),
        ("Screenshot_20241121-073104_WhatsApp~2.jpg", "WhatsApp"),
        ("Screenshot_2024-11-21-07-31-04-123_com.tencent.mm.jpg", "WeChat"),
        ("Screenshot_2024-11-21-07-31-04-123_com.tencent.mm-edit.jpg", "WeChat"),
        ("Screenshot_2024-11-21-07-31-04-123_org.unheard.of.jpg", ""),
        ("Screenshot_20241121-073104.png", ""),
        ("Screenshot_1_edited.png", ""),
        ("IMG_0021.PNG", ""),
        ("", ""),
    ],
)
def test_the_name_of_the_file_tells_the_app(name, app):
    assert judge("Some words of text", name=name).app_name == app


def test_an_app_is_named_when_its_name_stands_alone_at_the_top():
    assert judge("支付宝", "扫一扫", "付款码", language="zh").app_name == "支付宝"
    assert judge("Telegram", "Anna", "See you tomorrow").app_name == "Telegram"
    assert judge("Telegram is better than WhatsApp", "says Anna").app_name == ""
    assert judge(*["Some other line"] * 12, "Telegram").app_name == ""


@pytest.mark.parametrize("seen", ["WeChat", "微信", "com.tencent.mm"])
def test_an_app_with_two_names_has_that_of_the_installation_s_language(seen):
    name = f"Screenshot_2024-11-21-07-31-04-123_{seen}.jpg"

    assert judge("Some words of text", name=name).app_name == "WeChat"
    assert judge("Some words of text", name=name, language="zh").app_name == "微信"


def test_the_way_back_to_another_app_beside_the_clock_is_not_the_app():
    rows = ((40, 20, "WeChat", 30), (480, 20, "9:41", 30), (150, 300, "Some news"), (150, 400, "Read more"))

    assert placed(*rows).app_name == ""


@pytest.mark.parametrize("language", ["zh", "en"])
def test_a_summary_is_short(language):
    found = judge(
        *["A sentence that goes on for quite a while " + "x" * number for number in range(30)],
        language=language,
    )
    assert 40 < len(found.summary) <= rules.SUMMARY_LENGTH


def test_the_status_bar_is_text_but_says_nothing():
    lines = [
        Line("18:04", 0.9, 20, 10, 120, 50),
        Line("5G 80%", 0.9, 900, 10, 1040, 50),
        *page("Shopping list", "Milk, bread").lines,
    ]
    found = rules.judge(Page(*SIZE, lines), analyser="local/small", language="en")
    assert found.visible_text.splitlines()[:2] == ["18:04", "5G 80%"]
    assert found.entities == []
    assert "18:04" not in found.summary
    assert found.title == "Shopping list: Milk, bread"


@pytest.mark.parametrize(
    ("texts", "tall", "expected"),
    [
        (
            ("Anna", "Trip to Lisbon", "We land on Friday"),
            ("Trip to Lisbon",),
            "Signal – Anna: Trip to Lisbon",
        ),
        (("12:30", "昨天", "We land on Friday at noon"), (), "Signal – We land on Friday at noon"),
        (("· 我的订单", "待付款"), ("· 我的订单",), "Signal – 我的订单"),
        (("12", "OK", "7:15"), (), ""),
        ((), (), ""),
    ],
)
def test_the_title_is_the_header_or_the_first_line_that_says_something(texts, tall, expected):
    assert judge(*texts, tall=tall, name="Screenshot_20241121-073104_Signal.jpg").title == expected


def test_a_title_is_one_short_line():
    title = judge("A sentence that goes on " * 30).title
    assert title.startswith("A sentence that goes on")
    assert len(title) <= 120


def test_confidence_grows_with_evidence_and_never_passes_one_half():
    blank, unsure, clear = judge(), judge("Some words of text"), judge(*CHAT, confidence=1.0)
    assert 0 < blank.confidence < unsure.confidence < clear.confidence <= 0.5
    assert judge(*CHAT, confidence=0.6).confidence < clear.confidence


def test_what_was_seen_is_told_as_it_was():
    seen = json.loads(judge("Umbra", "Xylo", confidence=0.9).raw)
    assert 0 < seen.pop("category_chance") < 1
    assert seen == {
        "analyser": "local/small",
        "rules": rules.VERSION,
        "kind": "",
        "lines": 2,
        "mean_confidence": 0.9,
        "width": SIZE[0],
        "height": SIZE[1],
    }


@given(st.lists(st.text(max_size=60), max_size=12))
def test_no_text_is_too_odd_for_the_rules(texts):
    found = judge(*texts)
    assert len(found.summary) <= rules.SUMMARY_LENGTH
    assert found.summary


@pytest.mark.parametrize("unit", REPEATED)
def test_hostile_repetition_is_read_in_linear_time(unit):
    begun = time.process_time()
    judge((unit * 20_000)[:20_000], *["word"] * 3)
    assert time.process_time() - begun < 1  # second


def placed(*rows, size=SIZE, language="en"):
    """What is found on a page of rows `(left, top, text)`, or with a height behind them, else 40 pixels."""
    lines = []
    for left, top, text, *height in rows:
        tall = height[0] if height else 40
        width = sum(tall if letter > "\u2e80" else tall // 2 for letter in text)
        lines.append(Line(text, 0.98, left, top, left + width, top + tall))
    return rules.judge(Page(*size, lines), analyser="local/small", language=language)


BAR = ((40, 20, "9:41"), (940, 20, "82%"))
# Who wrote is told by the side alone; nothing on this page names a messenger.
BUBBLES = (
    *BAR,
    (150, 130, "Maya Lindqvist", 56),
    (150, 320, "Did you book the cabin for the"),
    (150, 380, "weekend after next?"),
    (460, 520, "Yes, from Friday to Monday."),
    (150, 640, "Wonderful! I bring the games."),
    (500, 760, "And I bring the coffee."),
)


@pytest.mark.parametrize(
    ("rows", "language", "category", "title", "summary"),
    [
        (
            BUBBLES,
            "en",
            "chat",
            "Chat with Maya Lindqvist",
            "Chat with Maya Lindqvist: “Yes, from Friday to Monday.”, “Wonderful! I bring the games.”, "
            "“And I bring the coffee.”",
        ),
        (
            (
                *BAR,
                (150, 130, "WhatsApp", 56),
                *((150, 320, "Grandpa Joe", 46), (930, 322, "17:05"), (150, 384, "See you on Sunday", 36)),
                *((150, 520, "Hiking Crew", 46), (930, 522, "16:48"), (150, 584, "At the trailhead", 36)),
                *((150, 720, "Book Club", 46), (860, 722, "Yesterday"), (150, 784, "Chapter nine", 36)),
                *((90, 2250, "Chats"), (500, 2250, "Updates"), (900, 2250, "Calls")),
            ),
            "en",
            "chat",
            "WhatsApp – Chat list: Grandpa Joe, Hiking Crew and Book Club",
            "WhatsApp: List of chats with Grandpa Joe: See you on Sunday, Hiking Crew: At the trailhead "
            "and Book Club: Chapter nine.",
        ),
        (
            (
                *BAR,
                (60, 130, "example.com/tidal"),
                (60, 300, "Why tidal energy finally works", 62),
                (60, 420, "By Helen Strand · 6 min read", 36),
                (60, 540, "For three decades engineers promised that the sea"),
                (60, 600, "would power whole towns. It never did, because the"),
                (60, 660, "turbines broke within a year of their first winter."),
            ),
            "en",
            "webpage",
            "Why tidal energy finally works",
            "“Why tidal energy finally works” by Helen Strand (example.com): For three decades engineers "
            "promised that the sea would power whole towns.",
        ),
        (
            (
                *BAR,
                (150, 130, "Settings", 58),
                *((150, 320, "Dark theme", 46), (150, 384, "Follow system", 36)),
                *((150, 520, "Language", 46), (150, 584, "English", 36)),
                *((150, 720, "Backup", 46), (150, 784, "Every night", 36)),
                (150, 920, "About", 46),
            ),
            "en",
            "other",
            "Settings: Dark theme",
            "Settings with Dark theme, Language, Backup and About. Also Every night.",
        ),
        (
            (
                (400, 200, "21:08", 160),
                (380, 420, "11月19日 星期四"),
                (150, 620, "京东 · 现在", 44),
                (150, 690, "您的快递已由前台代收，请及时领取", 36),
            ),
            "zh",
            "notification",
            "京东通知：您的快递已由前台代收，请及时领取",
            "京东的通知：您的快递已由前台代收，请及时领取。",
        ),
        (
            (
                *BAR,
                (150, 130, "Founders", 56),
                (520, 190, "Let the words sing; we must all hang", 40),
                (1000, 240, "17:50", 36),
                (150, 332, "Declare it, and we will defend it.", 40),
                (730, 380, "17:52", 36),
                (150, 500, "Add to the calendar"),
                (150, 600, "Pick an emoji to react"),
                (150, 2200, "Send a message"),
            ),
            "en",
            "chat",
            "Chat with Founders",
            "Chat with Founders: “Let the words sing; we must all hang”, "
            "“Declare it, and we will defend it.”",
        ),
        (
            (
                *BAR,
                (150, 130, "Inbox", 56),
                *((150, 320, "Florian Meier", 40), (880, 322, "4 Mar"), (150, 370, "Ideas for the team", 36)),
                *((150, 520, "Florian Meier", 40), (880, 522, "2 Mar"), (150, 570, "Company news", 36)),
                *((150, 720, "Florian Meier", 40), (880, 722, "15 Feb"), (150, 770, "Project updates", 36)),
            ),
            "en",
            "other",
            "Inbox: Florian Meier",
            "Mails from Florian Meier: Ideas for the team, Florian Meier: Company news and Florian Meier: "
            "Project updates.",
        ),
        (
            (
                *BAR,
                (440, 300, "Light rain", 46),
                (440, 380, "9", 200),
                (150, 130, "Bergen", 56),
                (150, 800, "Mon 10° Tue 8° Wed 12°"),
                (150, 900, "Daily forecast"),
                (150, 1000, "Wind, humidity and air quality"),
            ),
            "en",
            "other",
            "Weather in Bergen: 9°, Light rain",
            "Bergen has 9°, Light rain.",
        ),
        (
            (
                (80, 200, "9:41", 130),
                (80, 400, "Friday, 10 February", 44),
                (80, 700, "Jeanne Henri · laura@example.org · now", 36),
                (80, 760, "Invitation to the wedding", 40),
            ),
            "en",
            "notification",
            "Jeanne Henri notification: Invitation to the wedding",
            "Notification from Jeanne Henri: Invitation to the wedding.",
        ),
        (
            (
                *BAR,
                (150, 130, "January", 56),
                *((150, 320, "Guitar lesson", 40), (150, 370, "04:00 PM - 05:30 PM", 36)),
                *((150, 520, "Team meeting", 40), (150, 570, "10:00 AM - 11:00 AM", 36)),
                *((90, 2250, "Week view"), (480, 2250, "Month"), (800, 2250, "Add event")),
            ),
            "en",
            "other",
            "January: Guitar lesson",
            "Calendar with Guitar lesson and Team meeting.",
        ),
        (
            [
                *BAR,
                (60, 130, "Alerts", 56),
                *((60, 300, "Nightly backup completed"), (900, 300, "03:06"), (60, 360, "In six minutes")),
                *((60, 500, "Disk usage warning"), (900, 500, "02:40"), (60, 560, "It is 91% full")),
                *((60, 700, "Certificate renewal failed"), (900, 700, "01:15"), (60, 760, "Five days left")),
            ],
            "en",
            "notification",
            "Alerts: Nightly backup completed, Disk usage warning and Certificate renewal failed",
            "Notifications: Nightly backup completed – In six minutes; Disk usage warning – It is 91% full; "
            "Certificate renewal failed – Five days left.",
        ),
    ],
    ids=[
        "conversation",
        "conversations",
        "article",
        "settings",
        "notification",
        "buttons",
        "mails of one person",
        "weather",
        "lock screen with an address",
        "agenda",
        "list of notifications",
    ],
)
def test_title_and_summary_are_built_for_the_kind_of_screen(rows, language, category, title, summary):
    found = placed(*rows, language=language)

    assert (found.content_category, found.title, found.summary) == (category, title, summary)


def test_a_payment_is_named_by_its_amount():
    found = placed(
        *BAR,
        (420, 200, "¥46.80", 92),
        (440, 340, "支付成功"),
        *((60, 480, "收款方"), (700, 480, "老王饺子馆")),
        *((60, 580, "付款时间"), (600, 580, "2026-11-18 12:21:09")),
        language="zh",
    )

    assert found.content_category == "finance"
    assert "¥46.80" in found.title
    assert "老王饺子馆" in found.summary


def test_a_generic_bar_gives_way_to_the_heading_below():
    found = placed(*BAR, (150, 130, "Read", 56), (60, 400, "Moving to the coast", 80), (60, 560, "Chapter 1"))

    assert found.title == "Moving to the coast"


def test_what_is_listed_below_a_heading_is_not_in_the_title():
    steps = [
        (60, 420 + 90 * number, text)
        for number, text in enumerate(("250 g red lentils", "2 carrots", "Cumin"))
    ]
    found = placed(*BAR, (150, 130, "Recipes", 58), (60, 300, "Lentil soup", 58), *steps)

    assert found.title == "Recipes: Lentil soup"


def test_a_dialog_names_the_screen_before_what_it_dims():
    found = placed(
        (40, 160, "Photos", 56),
        (40, 400, "Holidays in the north"),
        (40, 500, "A walk along the river"),
        (160, 1000, "Delete this album?", 52),
        (160, 1090, "Its pictures stay on the device."),
        *((500, 1240, "Cancel"), (760, 1240, "Delete")),
    )

    assert found.title == "Delete this album?"


def test_a_line_that_was_read_badly_is_no_title():
    rows = ((150, 130, "Vineyards", 44), (300, 300, "RELEAE", 60), (60, 500, "Harvest begins in September"))
    lines = [
        Line(text, 0.6 if text == "RELEAE" else 0.98, left, top, left + 300, top + tall)
        for left, top, text, tall in [(*row, 40)[:4] for row in rows]
    ]

    assert rules.judge(Page(*SIZE, lines), analyser="x", language="en").title == (
        "Vineyards: Harvest begins in September"
    )


def test_the_caption_above_a_framed_phone_is_not_the_screens_header():
    found = placed(
        (200, 80, "Find all your", 90),
        (180, 190, "conversations easily", 90),
        *((240, 420, "11:20", 36), (860, 420, "82%", 36)),
        (260, 520, "Favorites", 44),
        *((260, 660, "Nadiyar", 40), (260, 760, "Conny Duck", 40), (260, 860, "Terence Eden", 40)),
    )

    assert found.title == "Contacts: Nadiyar, Conny Duck and Terence Eden"


@pytest.mark.parametrize(
    ("header", "app"),
    [
        ("SimplyTranslate Mobile", "SimplyTranslate Mobile"),
        ("Delta Chat", "Delta Chat"),
        ("Search in Nextcloud Talk", "Nextcloud Talk"),
        ("高德地图", "Amap"),
        ("Exeter", ""),
        ("Saved Messages", ""),
        ("Group Chat", ""),
        ("Search in Documents", ""),
        ("Bolt", ""),
        ("Threads", ""),
        ("Anna McDonald", ""),
        ("January 2026", ""),
    ],
)
def test_the_app_is_named_by_a_header_that_can_be_nothing_else(header, app):
    found = placed(*BAR, (150, 130, header, 56), (150, 400, "Something else is written below"))

    assert found.app_name == app


@pytest.mark.parametrize(
    ("rows", "size", "app"),
    [
        (
            ((20, 20, "ChatGPT Desk", 30), (900, 18, "あ"), (40, 120, "Settings", 60), (40, 260, "Theme")),
            SIZE,
            "ChatGPT Desk",
        ),
        (
            ((40, 10, "Minutes of Monday - Thunderbird"), (40, 150, "Dear all"), (40, 300, "Agenda")),
            SIZE,
            "Thunderbird",
        ),
        # A person at the top of a cropped conversation has the place of such a title.
        (((470, 60, "Anna", 36), *BUBBLES[3:]), SIZE, ""),
        (((20, 20, "General", 30), (40, 120, "Settings", 60), (40, 260, "Theme")), SIZE, ""),
        (
            (
                *BAR,
                (150, 130, "Settings", 56),
                (150, 320, "Theme"),
                (150, 420, "Language"),
                (150, 520, "About phone"),
            ),
            SIZE,
            "",
        ),
        # The bell behind the time was read as a character.
        (
            (
                (80, 200, "9:41", 130),
                (80, 400, "Friday, 10 February"),
                (80, 700, "Ntfy · now 全"),
                (80, 760, "The backup failed"),
            ),
            SIZE,
            "ntfy",
        ),
    ],
    ids=["corner", "behind a dash", "person", "generic", "about phone", "bell"],
)
def test_the_app_is_named_by_a_window_a_menu_or_a_notification(rows, size, app):
    assert placed(*rows, size=size).app_name == app


def test_a_conversation_is_not_named_after_the_person():
    assert placed(*BUBBLES).app_name == ""


def test_a_handle_is_no_header_of_a_notification():
    assert kinds.headed("@anna", with_address=True) == ""
    assert kinds.headed("Anna · anna@example.org · now", with_address=True) == "Anna"


BOXES = st.tuples(
    st.text(max_size=40),
    *(st.integers(-20, 2_500) for _ in range(4)),
    st.floats(0, 1),
)


@pytest.mark.slow
@given(
    st.lists(BOXES, max_size=14),
    st.sampled_from([(1080, 2400), (0, 0), (1, 1), (2560, 1440), (1080, 30_000)]),
)
def test_no_place_is_too_odd_for_the_rules(rows, size):
    lines = [Line(text, sure, left, top, right, bottom) for text, left, top, right, bottom, sure in rows]
    found = rules.judge(Page(*size, lines), analyser="local/small", language="zh")

    assert found.summary
    assert len(found.title) <= 120


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (
            ((60, 300, "Account holder"), (60, 360, "IBAN: DE89 3704 0044 0532 0130 00")),
            ["DE89 3704 0044 0532 0130 00"],
        ),
        (
            ((60, 300, "IBAN"), (60, 360, "DE89 3704 0044"), (60, 420, "0532 0130 00")),
            ["DE89 3704 0044 0532 0130 00"],
        ),
        (((60, 300, "IBAN: DE89 3704 0044 0532 0130 01"),), []),
    ],
    ids=["on its line", "in two lines", "with other check digits"],
)
def test_an_iban_can_be_copied_as_a_whole(rows, expected):
    found = placed((60, 200, "Bank details"), *rows)
    assert [entity.value for entity in found.entities if entity.type == "iban"] == expected


@pytest.mark.slow
def test_a_page_of_very_many_lines_takes_hardly_longer_than_one_of_many():
    def seconds(count):
        rows = (
            (60 + 400 * (number % 2), 60 * number, "Hello there, how are you?") for number in range(count)
        )
        begun = time.process_time()
        found = placed(*rows, size=(1080, 60 * count))
        assert found.visible_text.count("\n") == count - 1
        return time.process_time() - begun

    seconds(30)  # loads the words
    many, very_many = seconds(1_000), seconds(3_500)
    assert very_many < 3 * many  # 12 times if each line were held against each other


@pytest.mark.parametrize(
    ("rows", "size", "app"),
    [
        # A name of the lists of apps, in the bar of a phone and in the corner of a page.
        (
            (*BAR, (60, 130, "AntennaPod", 56), (60, 400, "Queue"), (60, 500, "Inbox")),
            (1080, 2340),
            "AntennaPod",
        ),
        (
            (*BAR, (60, 130, "< Grayjay", 56), (60, 400, "Popular posts")),
            (1080, 2340),
            "Grayjay",
        ),
        # The line of a version.
        ((*BAR, (60, 130, "About", 56), (60, 900, "AntennaPod version 3.4.1")), (1080, 2340), "AntennaPod"),
        # A word in the corner may be a section's: it needs its form or a second place.
        (((40, 20, "Fernery"), (40, 200, "Files")), (1600, 900), ""),
        (((40, 20, "Fernery"), (40, 200, "Help for Fernery")), (1600, 900), "Fernery"),
        # What is searched may be the place, not the app.
        ((*BAR, (60, 130, "Notebook", 56), (60, 400, "Search Joplin")), (1080, 2340), ""),
        # In such a corner, a label of many apps names a part of the page.
        (((40, 20, "封禁列表"), (40, 200, "Plants")), (1600, 900), ""),
        (((40, 20, "Preferences"), (40, 200, "Plants")), (1600, 900), ""),
        # The same in a sentence, and a label that many apps have, are none.
        ((*BAR, (60, 130, "Notebook", 56), (60, 400, "I read it in AntennaPod yesterday")), (1080, 2340), ""),
        ((*BAR, (60, 130, "Downloads", 56), (60, 400, "Queue"), (60, 500, "Inbox")), (1080, 2340), ""),
    ],
)
def test_an_app_of_the_lists_is_named_where_little_but_a_name_stands(rows, size, app):
    assert placed(*rows, size=size).app_name == app


@pytest.mark.parametrize(
    ("rows", "size", "name"),
    [
        # In no list: of usual words, in the corner of a page, above a feed, and in the title of a window.
        (
            (*BAR, (60, 130, "Mileage Tracker", 56), (60, 400, "Trips of May")),
            (1080, 2340),
            "Mileage Tracker",
        ),
        (((40, 20, "Fernery-Desk"), (40, 200, "Files")), (1600, 900), "Fernery-Desk"),
        (
            (
                *BAR,
                (40, 130, "Fernery", 70),
                *((150, y, "@anna · 5m") for y in (400, 700, 1000)),
                (150, 500, "8 likes"),
            ),
            (1080, 2340),
            "Fernery",
        ),
        (((500, 20, "Plants of May — Fernery"), (40, 200, "Moss")), (1600, 900), "Fernery"),
        # With a menu beside it or below it, the sign before it and the version behind it; and in a greeting.
        (
            ((40, 20, "F Fernery v1.4"), (500, 20, "Home About Contact"), (40, 200, "Plants")),
            (1600, 900),
            "Fernery",
        ),
        (((40, 20, "Fernery"), (40, 80, "File Edit View Help"), (40, 200, "Plants")), (1600, 900), "Fernery"),
        ((*BAR, (60, 130, "Notebook", 56), (60, 400, "Welcome to Joplin!")), (1080, 2340), "Joplin"),
        ((*BAR, (60, 130, "About", 56), (60, 900, "Fernery 0.4.0")), (1080, 2340), "Fernery"),
    ],
)
def test_a_name_that_is_not_sure_is_the_likeliest_one(rows, size, name):
    found = placed(*rows, size=size)

    assert found.app_name == ""
    assert found.wordmarks[0].name == name


def test_a_title_has_neither_keys_nor_counts_behind_its_heading():
    found = placed(
        *BAR,
        (60, 130, "Study places", 56),
        (60, 400, "0 / 238 occupied", 48),
        (60, 520, "n4pJDAqsagWbouT7G7xRH8548s9pZpQwtG", 48),
        (60, 640, "Harbour Library", 40),
    )

    assert found.title == "Study places"


def test_several_notifications_are_named_by_what_they_say():
    found = placed(
        *((80, 200, "9:41", 130), (80, 400, "Friday, 10 February")),
        *((80, 700, "Ntfy · now"), (80, 760, "The backup failed")),
        *((80, 960, "Todos · 2m"), (80, 1020, "Water the plants")),
    )

    assert found.title == "Notifications: The backup failed and Water the plants"


def test_a_ribbon_and_the_bars_of_a_browser_are_no_title():
    debug = placed(*BAR, (960, 90, "DFBUG", 40), (60, 130, "Balance sheet", 40), (60, 300, "Savings"))
    assert debug.title == "Balance sheet: Savings"
    page = placed(
        (40, 10, "Fern care - Mozilla"), (300, 60, "https://ferns.example.org/care"),
        (40, 110, "Mail"), (200, 110, "News"), (400, 110, "Maps"), (600, 110, "Wiki"),
        (300, 220, "How to water a fern", 70),
        (300, 340, "A fern wants soil that is moist and never wet, so it is watered often and little."),
        (300, 400, "In winter it rests, and needs a third of that."),
        size=(1600, 900),
    )  # fmt: skip
    assert page.title == "How to water a fern"
    assert page.summary.startswith("How to water a fern: A fern wants soil")


def test_a_summary_has_the_values_and_not_the_labels_of_the_interface():
    found = placed(
        *BAR,
        (60, 130, "Statistics", 56),
        *((60, 400, "Monthly cost", 36), (60, 450, "€125.87", 52)),
        *((560, 400, "Yearly cost", 36), (560, 450, "€1,510.44", 52)),
        *((60, 700, "Settings", 40), (60, 800, "Share", 40), (60, 900, "Sign out", 40)),
    )
    assert "Monthly cost €125.87" in found.summary
    assert "Yearly cost €1,510.44" in found.summary
    assert not any(word in found.summary for word in ("Share", "Settings", "Sign out"))


def test_sentences_on_one_side_are_a_conversation_and_not_a_list_of_chats():
    found = placed(
        *BAR,
        (150, 130, "Maya Lindqvist", 56),
        *((60, 400, "Are you at home today?"), (60, 560, "I would bring the book back.")),
        *((60, 720, "And the cake that I owe you."), (60, 880, "Shall I come at six?")),
        (60, 2200, "Send messag…"),
    )
    assert json.loads(found.raw)["kind"] == "conversation"
    assert found.title == "Chat with Maya Lindqvist"
    assert found.summary.startswith("Chat with Maya Lindqvist: “I would bring the book back.”, “And")


def test_a_wrapped_entry_is_one_entry():
    found = placed(
        *BAR,
        (60, 130, "Unread", 56),
        *((60, 300, "Harbour opens again after the long repair of"), (60, 350, "its northern pier", 40)),
        *((60, 600, "Ferries are late on the western line for the"), (60, 650, "third week", 40)),
        *((60, 900, "Gulls have learned to open the lids of waste"), (60, 950, "bins", 40)),
    )
    assert "Harbour opens again after the long repair of its northern pier" in found.summary
