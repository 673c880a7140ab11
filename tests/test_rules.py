"""What the rules say about text: each case is a screen that people keep, set line by line."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines import rules
from engines.lines import Line, Page
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
        (("Settings", "Notifications", "Language", "Messages", "Clear all", "About"), "other"),
        (("设置", "通知", "外观", "聊天", "通知管理", "关于手机"), "other"),
    ],
)
def test_a_screen_is_put_into_its_category(texts, category):
    found = judge(*texts)
    assert found.content_category == category
    assert json.loads(found.raw)["category_evidence"] >= (0 if category == "other" else rules.ENOUGH)


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
        ("Screenshot_2024-11-21-07-31-04-123_com.tencent.mm.jpg", "微信"),
        ("Screenshot_2024-11-21-07-31-04-123_com.tencent.mm-edit.jpg", "微信"),
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
    assert judge("支付宝", "扫一扫", "付款码").app_name == "支付宝"
    assert judge("Telegram", "Anna", "See you tomorrow").app_name == "Telegram"
    assert judge("Telegram is better than WhatsApp", "says Anna").app_name == ""
    assert judge(*["Some other line"] * 12, "Telegram").app_name == ""


def test_the_summary_tells_category_app_title_and_content():
    found = judge(
        "Trip to Lisbon",
        "Anna",
        "We land on Friday at noon",
        "12:30",
        language="en",
        tall=("Trip to Lisbon",),
        name="Screenshot_20241121-073104_Signal.jpg",
    )
    assert found.summary == "Screenshot (Signal): Trip to Lisbon; We land on Friday at noon"
    assert judge(*CHAT_ZH, language="zh").summary.startswith("聊天：")


@pytest.mark.parametrize("language", ["zh", "en"])
def test_a_summary_is_short(language):
    found = judge(
        *["A sentence that goes on for quite a while " + "x" * number for number in range(30)],
        language=language,
    )
    assert 100 < len(found.summary) <= rules.SUMMARY_LENGTH


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


def test_confidence_grows_with_evidence_and_never_passes_one_half():
    blank, unsure, clear = judge(), judge("Some words of text"), judge(*CHAT, confidence=1.0)
    assert 0 < blank.confidence < unsure.confidence < clear.confidence <= 0.5
    assert judge(*CHAT, confidence=0.6).confidence < clear.confidence


def test_what_was_seen_is_told_as_it_was():
    assert json.loads(judge("One", "Two", confidence=0.9).raw) == {
        "analyser": "local/small",
        "lines": 2,
        "mean_confidence": 0.9,
        "category_evidence": 0,
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
