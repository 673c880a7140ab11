"""Search through its verbs, on a real encrypted store. Sizes and speeds are the benchmarks' business."""

import contextlib
import random
import re
import threading
import uuid
from datetime import datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, strategies
from hypothesis import settings as examples

import database
import lexicon
import models
import search
from database import db
from models import Analysis, Vocabulary
from queries import candidates, wording
from tests.support.library import NOW, Library
from tests.support.properties import at_least


@pytest.fixture
def library(tmp_path):
    yield Library(tmp_path / "data")
    database.close_connections()


def words_of(seed, number):
    """Random words, none of which is a word of the tests."""
    letters = random.Random(seed)
    return [
        "".join(letters.choice("bdgkvwz") + letters.choice("aeiou") for _ in range(4)) for _ in range(number)
    ]


# ---------------------------------------------------------------------------------------------- what is found


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("Flight to Tahiti", "tahiti"),
        ("Flight to Tahiti", "TAHITI flight"),
        ("Nadiyar @nadiyar@c.im 45m", "nadiyar@c.im"),
        ("Parent Folder\n/storage/emulated/0", "/storage/emulated/0"),
        ("Battle.net Authenticator", "battle.net"),
        ("Battle.net Authenticator", "battle"),
        ("1 item, with size 10.00 kB", "10.00 kB"),
        ("Fediverse Report #113", "report #113"),
        ("Feels like 22°", "22°"),
        ("Feels like 22º", "22°"),
        ("Learn C++ in a week", "c++"),
        ("Learn C# in a week", "C#"),
        ("PixelSocial – the Fruit revolution", "social"),
        ("PixelSocial – the Fruit revolution", "pixel social"),
        ("Fill with Keepass2Android", "android"),
        ("Your e-mail", "email"),
        ("Your email", "e-mail"),
        ("Zürich Straße", "zurich strasse"),
        ("Zurich Strasse", "Zürich Straße"),
        ("Décision concernant votre dossier", "decision"),
        ("Łódź, Tromsø", "lodz tromso"),
        ("ＦＵＬＬ　ｗｉｄｔｈ", "full width"),
        ("Ελλάδα Москва", "ελλαδα москва"),
        ("हिन्दी समाचार", "हिन्दी"),
        ("倒垃圾 今天", "倒垃圾"),
        ("倒垃圾 今天", "垃"),
        ("选择 SIM 卡\n${姓名}，元旦快乐！", "SIM 卡 元旦快乐"),
        ("选择SIM卡片", "SIM 卡"),
        ("用一个应用替代你的电\n子邮件", "电子邮件"),
        ("全部下载 0/0", "全部 下载"),
        ("ガイドブック", "ガイド"),
        ("안녕하세요 세계", "안녕"),
        ("ยินดีต้อนรับ", "ต้อน"),
        ("กรุงเทพ", "รุง"),
    ],
)
def test_a_text_is_found_by_what_a_person_would_type(library, text, query):
    wanted = library.add(text)
    library.add(" ".join(words_of(1, 30)))

    assert library.ids(query) == [wanted]


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("Outofoffice", "out of office"),
        ("Out ofoffice until Monday", "Out of office"),
        ("white flooroutofoffice Outofofficejournal", "out of office"),
        ("Back up failed", "backup failed"),
        ("Build your own Al assistant", "build your own AI assistant"),
        ("Tota1 am0unt", "total amount"),
        ("lnbox", "Inbox"),
        ("Mattermost", "Mattremost"),
        ("Flight to Tahiti", "Tahitti"),
        ("Flight to Tahiti", "Yahiti"),
        ("Mattermost", "aMttermost"),
        ("Mastodon Engineering", "mastadon enginering"),
        ("Florian Tessiderae", "Tessid"),
        ("Declare it, and the arrny will defend it", "Declare it, and the army will defend it"),
        ("今天尚无传输记禄", "今天尚无传输记录"),
        ("თბილისი", "თბილიზი"),
    ],
)
def test_reading_and_typing_errors_do_not_hide_a_screenshot(library, text, query):
    wanted = library.add(text)
    library.add(" ".join(words_of(1, 30)))

    assert library.ids(query) == [wanted]


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("臺灣高鐵車票", "台湾高铁车票"),
        ("高铁车票", '"高鐵車票"'),
        ("购物车", "gouwuche"),
        ("購物車", "gòu wù chē"),
        ("蓝牙耳机", "lan2ya2 er3ji1"),
        ("西安的旅行", "xian lvxing"),
        ("出发 2025-05-27 上午", "27 May 2025"),
        ("Due on May 27th, 2025", "2025年5月27日"),
        ("取件 5月27日", "2025-05-27"),
        ("Lieferung am 27. Mai", "5/27"),
        ("Delivered 27.05.2025", "May 27"),
        ("Total € 1 284,50", "1284.50"),
        ("Total 1,284.50", "1 284,50"),
        ("Tracking 00340434161094042557", "042557"),
        ("Tracking 00340434161094042557", "0034043"),
        ("IBAN DE21 5001 0517 5407 3249 31", "DE21500105175407324931"),
        ("Card 4471 9902 1185 7730", "4471990211857730"),
    ],
)
def test_other_scripts_and_other_writings_find_each_other(library, text, query):
    wanted = library.add(text)
    library.add(" ".join(words_of(1, 30)))

    assert library.ids(query) == [wanted]


@pytest.mark.parametrize("query", ["27 May 2024", "28 May 2025", "5/28", "shengdan", "huo", "4042558"])
def test_other_days_numbers_and_sounds_are_not_found(library, query):
    library.add("出发 2025-05-27\n高铁车票\n00340434161094042557")

    assert library.ids(query) == []


@pytest.mark.parametrize(
    ("text", "query", "matched"),
    [
        ("Due on May 27th, 2025 at noon", "2025-05-27", ["May 27th, 2025"]),
        ("Total 1,284.50 EUR", "1284", ["1,284"]),
        ("我的火车票", "huochepiao", ["火车票"]),
        ("我的火車票", "火车", ["火車"]),
    ],
)
def test_what_was_found_in_another_writing_is_shown_as_it_is_written(library, text, query, matched):
    library.add(text)

    assert library.find(query).items[0].matched == matched


def test_of_words_that_or_joins_one_is_enough(library):
    both, visa, permit = (
        library.add("Visa and permit 2031"),
        library.add("Visa 2031"),
        library.add("Permit 2031"),
    )
    phrase = library.add("Residence card 2031")
    library.add("Residence 2031")

    assert set(library.ids("visa OR permit")) == {both, visa, permit}
    assert set(library.ids('2031 visa OR "residence card"')) == {both, visa, phrase}
    assert library.ids("visa permit") == [both]
    assert set(library.ids("viza OR permot")) == {both, visa, permit}
    assert library.ids("OR") == library.ids("OR OR") == []


def test_an_index_of_an_earlier_form_is_built_anew_once(library):
    wanted = library.add("高鐵車票")
    with database.scope(), db.atomic():
        lexicon.empty()
        models.store_value("index_form", 1)
    assert library.ids("车票") == []

    lexicon.renew()

    assert library.ids("车票") == [wanted]
    with database.scope():
        assert models.stored_value("index_form") == lexicon.FORM
        with db.atomic():
            lexicon.empty()
    lexicon.renew()
    assert library.ids("车票") == []


@pytest.mark.parametrize(
    "query",
    [
        "chlorophyll",
        "Ottoman cavalry",
        "xylophone lessons",
        "mortgage Tahiti",
        "tahity reykjavik glacier",
        "1235",
        "flt",
        "机器翻译",
        "“to flight”",
        "c++",
    ],
)
def test_what_is_not_there_is_not_found(library, query):
    library.add("Flight to Tahiti, see the calendar\n机器学习\n1234 C")

    found = library.find(query)
    assert (found.total, found.items, found.corrected) == (0, [], [])


@pytest.mark.parametrize("query", ["", "   ", "\n", '""', "!?", "@", "\0", "\ud800"])
def test_a_query_without_words_finds_nothing(library, query):
    library.add("Flight to Tahiti")

    assert library.find(query) == search.Found(0, [])


def test_text_is_searched_wherever_the_analysis_has_it(library):
    name, summary, entity = (
        library.add(app_name="Aegis"),
        library.add(summary="A jalopy for sale"),
        library.add(entities=["TX-4711"]),
    )

    assert [library.ids(query) for query in ("aegis", "jalopy", "tx-4711")] == [[name], [summary], [entity]]


def test_quoted_words_must_be_a_phrase(library):
    phrase = library.add("an orange warning was given")
    loose = library.add("warning: the orange is ripe")

    assert library.ids('"orange warning"') == [phrase]
    assert library.ids("'orange warning'") == [phrase, loose]
    assert library.ids('ripe "the orange"') == [loose]
    assert library.ids('"orange warning') == [phrase, loose]
    assert library.ids('"orang warning"') == []


def test_a_missing_word_is_forgiven_when_the_others_are_distinctive(library):
    wanted = library.add("The laptop backup of Nairobi failed")
    library.add("The laptop is new")

    assert library.ids("laptop backup nairobi yesterday") == [wanted]
    assert library.ids("laptop yesterday") == []


def test_all_words_come_before_most_words(library):
    every = library.add("Guitar practice on Tuesday evening")
    library.add("Guitar practice on Wednesday evening")

    assert library.ids("guitar practice tuesday") == [every]


# ---------------------------------------------------------------------------------------------------- ranking


def test_the_word_itself_comes_before_longer_words_and_these_before_typos(library):
    typo, longer, exact = (
        library.add("the barley field"),
        library.add("the barleycorn field"),
        library.add("the barlex field"),
    )

    assert library.ids("barle") == [exact, typo, longer]
    assert library.ids("barley") == [typo, longer, exact]

    longer, parted = library.add("backups"), library.add("Back up failed")
    assert library.ids("backup") == [parted, longer]


def test_a_line_of_its_own_comes_before_a_phrase_in_a_line_and_that_before_scattered_words(library):
    scattered = library.add("Saved by the bell\nNo new messages today")
    within = library.add("Twelve saved messages were found here")
    line = library.add("Chats\nSaved messages\nArchive")

    assert library.ids("saved messages") == [line, within, scattered]


def test_app_name_and_summary_weigh_more_than_the_rest(library):
    body = library.add("Posted with Tusky")
    name = library.add("Timeline", app_name="Tusky")

    assert library.ids("tusky") == [name, body]


def test_an_app_is_found_by_its_english_and_its_chinese_name(library):
    english = library.add("Pay in shops", app_name="WeChat")
    chinese = library.add("钱包", app_name="微信", category="chat")
    library.add("Timeline", app_name="Tusky")

    for query in ("wechat", "微信", "WeChat pay", "微信 钱包", "app:wechat", "app:微信"):
        expected = {"WeChat pay": {english}, "微信 钱包": {chinese}}.get(query, {english, chinese})
        assert set(library.ids(query)) == expected, query
    assert len(library.ids("app:tusky")) == 1


def test_of_equal_matches_the_newest_picture_comes_first(library):
    ids = [
        library.add("Reminder: water the plants", taken=NOW - timedelta(days=days))
        for days in (400, 2, 90, 800)
    ]

    assert library.ids("water plants") == [ids[1], ids[2], ids[0], ids[3]]
    assert library.ids("water plants", limit=2) == [ids[1], ids[2]]

    # A little higher up in a text is no better match, much higher up is one.
    texts = [f"{'a' * before} tahiti {'a' * (120 - before)}" for before in (40, 41, 120)]
    higher, lower, last = (
        library.add(text, taken=NOW + timedelta(minutes=place)) for place, text in enumerate(texts)
    )
    assert library.ids("tahiti") == [lower, higher, last]


APART = " ".join(
    words_of(4, 11)
)  # two words around these are not near each other, and are without the first of them


@pytest.mark.parametrize(
    ("shown", "query", "score"),
    [
        # A line of its own, at the beginning or further down, in a longer line, and in summary and app name.
        ({"visible_text": "Tahiti"}, "tahiti", 0.9038),
        ({"visible_text": "Flight to Tahiti\nTahiti"}, "tahiti", 0.8991),
        ({"visible_text": "Flight to Tahiti"}, "tahiti", 0.8658),
        ({"summary": "Tahiti"}, "tahiti", 0.9969),
        ({"app_name": "Tahiti"}, "tahiti", 1.0),
        # What looks alike, a longer word, a typo in a short word, two in a long one, and one in each of two.
        ({"visible_text": "Tahitl"}, "tahiti", 0.8337),
        ({"visible_text": "Tahitian"}, "tahiti", 0.7299),
        ({"visible_text": "simple"}, "sim", 0.6322),
        ({"visible_text": "Tahitu"}, "tahiti", 0.59),
        ({"visible_text": "engiimeering"}, "engineering", 0.46),
        ({"visible_text": "Mastodom engimeering"}, "mastodon engineering", 0.59),
        # Words that an OCR has run together or broken, within a line and as one.
        ({"visible_text": "Outofoffice"}, "out of office", 0.7877),
        ({"visible_text": "now Out ofoffice"}, "out of office", 0.783),
        ({"visible_text": "Backup failed"}, "back up", 0.7605),
        ({"visible_text": "Back up failed"}, "backup", 0.8114),
        ({"visible_text": "Back\nup"}, "backup", 0.7525),
        ({"visible_text": "Back up failed"}, "backup failed", 0.8527),
        ({"visible_text": "func-\ntionality"}, "functionality", 0.785),
        ({"visible_text": "电\n子邮件"}, "电子邮件", 0.785),
        ({"visible_text": "PixelSocial"}, "social", 0.8363),
        # One word in the app name and the other below.
        ({"app_name": "Chat", "visible_text": "Flight to Tahiti"}, "chat flight", 0.83),
        # Side by side, near, and far from each other.
        ({"visible_text": "saved\nmessages"}, "saved messages", 0.785),
        ({"visible_text": "messages saved"}, "saved messages", 0.785),
        ({"visible_text": f"saved {APART.partition(' ')[2]} messages"}, "saved messages", 0.7412),
        ({"visible_text": f"saved {APART} messages"}, "saved messages", 0.7225),
        ({"visible_text": f"messages saved {APART} messages"}, "saved messages", 0.785),
        # Short, and in a script without spaces.
        ({"visible_text": "sim"}, "sim", 0.9),
        ({"visible_text": "倒垃圾 今天"}, "垃", 0.8218),
        ({"visible_text": "倒垃圾 今天"}, "垃圾", 0.8693),
        # A month and two months old, and of a clock that was ahead.
        ({"visible_text": "Tahiti", "taken": NOW - timedelta(days=30)}, "tahiti", 0.8988),
        ({"visible_text": "Tahiti", "taken": NOW - timedelta(days=60)}, "tahiti", 0.8962),
        ({"visible_text": "Tahiti", "taken": NOW + timedelta(days=60)}, "tahiti", 0.9038),
        # Three words of five, with which the photo is found at all.
        ({"visible_text": "tahiti flight calendar"}, "tahiti flight calendar glacier mortgage", 0.475),
    ],
)
def test_a_score_is_made_of_what_is_covered_how_close_it_stands_where_and_when(library, shown, query, score):
    library.add(**shown)

    assert [hit.score for hit in library.find(query).items] == [score]


def test_a_rare_word_weighs_more_than_a_common_one(library):
    for _ in range(8):
        library.add("silent lake")
    valley = library.add("valley mortgage")
    lake = library.add("lake mortgage")

    assert library.ids("silent valley mortgage") == library.ids("silent valley") == [valley]
    assert library.ids("lake valley mortgage glacier") == []
    assert library.ids("lake mortgage") == [lake]

    for _ in range(8):
        library.add("mortgages harbour")
    # By the photos with the very word, not by those with a longer one.
    assert library.ids("mortgage harbour glacier") == []


@pytest.mark.parametrize(
    ("text", "found", "missed"),
    [
        ("abcd", "abce", "abef"),  # one letter in a word of four
        ("xyz", "xyz", "xyw"),  # none in one of three
        ("barleys", "barlexs", "barlxxs"),  # one in a word of seven
        ("barleyss", "barlxxss", "barxxxss"),  # two in one of eight
        ("room4711", "room4711", "room4712"),  # none in a code
        ("tahiti", "yahiti", "yahito"),  # the first letter may be wrong, and then nothing else
        ("qzxjw", "qz x j w", "q z x j w"),  # four words in one, and not five
        ("ab cd", "abcd", "bcd"),  # one word in two, of two letters at least
        ("q 4711x", "q 4711x", "q4711x"),
        ("outofoffice", "out ofo", "out of"),  # a longer word by its beginning, from six letters on, in two
        ("l1", "1l", "2l"),
        ("tahiti", "ta", "t"),  # longer words by two letters, and not by one
        ("room 1", "1", "l"),  # one character as it is
    ],
)
def test_what_a_word_stands_for_has_bounds(library, text, found, missed):
    wanted = library.add(text)

    assert (library.ids(found), library.ids(missed)) == ([wanted], [])


def test_of_many_words_that_a_word_may_stand_for_some_are_taken(library):
    """Twelve that begin with it, the most frequent ones; three that begin with two words run together; 24
    with a typo.
    """
    rare = library.add("tahic")
    for letter in "abdefghijklm":
        for _ in range(2):
            library.add(f"tahi{letter}")
    found = library.ids("tahi", limit=100)
    assert (len(found), rare in found) == (24, False)

    for letter in "abcd":
        library.add(f"outofo{letter}")
    assert len(library.ids("out ofo")) == 3

    for letter in "abcdefghijklmnopqrstuvwxy":
        library.add(f"barle{letter}")
    assert len(library.ids("barlez", limit=100)) == 24


def test_at_most_a_hundred_photos_are_compared_and_twenty_listed(library):
    for _ in range(101):
        library.add("tahiti")

    found = library.find("tahiti", limit=1000)
    assert (found.total, len(found.items)) == (101, 100)
    assert len(library.ids("tahiti")) == 20


def test_a_query_is_read_so_far(library):
    """To its thousandth character and its 32nd word, and typos are looked for in four words."""
    photo = library.add("tahiti")
    many = " ".join(words_of(11, 31))
    whole = library.add(f"{many} nairobi")
    four = library.add("glaciem mortgagm calendam hospitam")
    library.add("glacies mortgags calendas hospitas gardenes")

    assert library.find(f"{'tahiti':>1000}").items[0].score == library.find("tahiti").items[0].score
    assert library.find(f"{'tahiti':>1001}").items[0].score < library.find("tahiti").items[0].score
    assert library.ids(f'{many} "nairobi"') == library.ids(f"{many} nairobi zanzibar") == [whole]
    assert (
        library.find(f"{many} nairobi zanzibar").items[0].score
        == library.find(f"{many} nairobi").items[0].score
    )
    assert library.find(f"{many} zanzibar").items[0].score < library.find(f"{many} nairobi").items[0].score
    assert four in library.ids("glacier mortgage calendar hospital")
    assert library.ids("glacier mortgage calendar hospital gardener") == []
    assert library.ids("tahiti") == [photo]


def test_typos_are_matches_where_fewer_than_five_photos_have_the_word(library):
    other = library.add("farley")
    words = [library.add("barley")]
    assert library.ids("barley") == words  # a wrong first letter is looked for when nothing else is there
    typo = library.add("barlex")
    assert library.ids("darley") == [words[0], other]
    assert library.ids("barlez") == [typo, words[0]]
    words += [library.add("barley") for _ in range(3)]
    assert sorted(library.ids("barley")) == sorted([typo, *words])

    words.append(library.add("barley"))
    assert sorted(library.ids("barley")) == words


def test_with_plenty_of_the_very_word_its_longer_ones_are_no_matches(library, monkeypatch):
    monkeypatch.setattr(wording, "PLENTY", 3)
    monkeypatch.setattr(candidates, "FEW", 0)
    longer = library.add("tahitian")
    words = [library.add("tahiti") for _ in range(2)]
    assert sorted(library.ids("tahiti")) == [longer, *words]

    words.append(library.add("tahiti"))
    assert sorted(library.ids("tahiti")) == words


def test_the_bounds_of_cost_keep_the_best_matches(library, monkeypatch):
    monkeypatch.setattr(candidates, "LOOKUPS", 1)
    monkeypatch.setattr(candidates, "RANKABLE", 1)
    monkeypatch.setattr(candidates, "RERANKED", 10)
    for _ in range(20):
        library.add("the valley")
    wanted = library.add("the silent valley")
    library.add("silent night")

    assert library.ids("silent valley")[0] == wanted
    assert library.find("the valley").total == 21


def test_of_more_matches_than_are_compared_the_best_are(library, monkeypatch):
    monkeypatch.setattr(candidates, "RERANKED", 2)
    oldest = library.add("valley")
    for number in range(4):
        library.add("the valley " + " ".join(words_of(number, 30)))
    other = library.add("valley, the")
    library.add("the valley " + " ".join(words_of(5, 30)))

    assert library.ids("valley") == [oldest, other]


def test_an_old_phrase_is_found_behind_many_newer_photos_with_its_words(library, monkeypatch):
    monkeypatch.setattr(candidates, "NEWEST", 20)
    monkeypatch.setattr(candidates, "RERANKED", 10)
    wanted = library.add("silent valley")
    for _ in range(30):
        library.add("valley " + " ".join(words_of(2, 5)) + " silent")

    found = library.find("silent valley")
    assert found.items[0].photo_id == wanted
    assert found.total == 20
    assert library.find("valley").total == 20


# --------------------------------------------------------------------------------------------------- snippets


@pytest.mark.parametrize(
    ("query", "first", "last"),
    [
        ("a000", 0, 31),
        ("a000 a100", 0, 31),  # in the first place of two as good ones
        ("a050", 42, 73),
        ("a150 a100 a149", 141, 172),  # where most of the words are
        ("a199", 187, 199),
    ],
)
def test_a_snippet_is_the_text_around_the_matches(library, query, first, last):
    library.add("  ".join(f"a{number:03}" for number in range(200)))

    snippet = " ".join(f"a{number:03}" for number in range(first, last + 1))
    expected = f"{'…' if first else ''}{snippet}{'…' if last < 199 else ''}"
    assert library.find(query).items[0].snippet == expected


@pytest.mark.parametrize("query", ["Décision", "decision", "desicion"])
def test_a_snippet_at_the_end_has_more_of_what_is_before(library, query):
    library.add(" ".join(words_of(1, 60)) + " Décision")

    snippet = library.find(query).items[0].snippet
    assert snippet.startswith("…")
    assert snippet.endswith(" Décision")
    assert 50 <= len(snippet) <= 80


@pytest.mark.parametrize(
    ("text", "query", "expected"),
    [
        ("Flight to Tahiti", "tahitti", "Flight to Tahiti"),
        ("Florian Tessiderae", "tessid", "Florian Tessiderae"),
        ("PixelSocial", "social", "PixelSocial"),
        ("Décision", "decision", "Décision"),
        ("Back up failed", "backup", "Back up failed"),
        ("You don't", "dont", "You don't"),
        ("添加待办\n倒垃圾", "垃圾", "添加待办 倒垃圾"),
        ("添加待办\n倒垃圾", "圾", "添加待办 倒垃圾"),
        ("<b>bold</b>", "bold", "<b>bold</b>"),
    ],
)
def test_a_snippet_is_the_original_text_however_it_was_matched(library, text, query, expected):
    library.add(text)

    assert library.find(query).items[0].snippet == expected


def test_a_snippet_in_a_script_without_spaces_shows_the_match(library):
    library.add("机器学习" * 200 + "倒垃圾" + "机器学习" * 200)

    assert library.find("倒垃圾").items[0].snippet == f"…{'机器学习' * 10}倒垃圾{'机器学习' * 29}机…"


def test_the_snippet_comes_from_the_summary_when_only_that_matches(library):
    library.add("Some other text", summary="A receipt from Nairobi, with text")

    assert library.find("nairobi").items[0].snippet == "A receipt from Nairobi, with text"
    assert library.find("text").items[0].snippet == "Some other text"


# ---------------------------------------------------------------------------------------------------- filters


def test_filters_narrow_and_combine(library):
    chat = library.add("tahiti", category="chat", intent="reminder", device_id="Pixel")
    page = library.add("tahiti", category="webpage", intent="reminder", device_id="pixel")

    assert library.ids("tahiti", category="chat") == [chat]
    assert library.ids("tahiti", intent="reminder") == [page, chat]
    assert library.ids("tahiti", device_id="Pixel") == [chat]
    assert library.ids("tahiti", category="chat", device_id="pixel") == []
    assert library.ids("tahiti", device_id='" OR "tahiti') == []


def test_a_search_within_an_app_finds_the_photos_of_that_very_app(library):
    mail = library.add("tahiti", app_name="Mail")
    library.add("tahiti, sent by Mail", app_name="Chat")
    chinese = library.add("塔希提 tahiti", app_name="微信", category="chat")
    signs = library.add("tahiti", app_name="…")
    library.add("tahiti", app_name="Mail Online")

    assert library.ids("tahiti", app="Mail") == [mail]
    assert (
        library.ids("tahiti", app="微信") == library.ids("tahiti", app="微信", category="chat") == [chinese]
    )
    assert library.ids("tahiti", app="…") == [signs]
    assert library.ids("tahiti", app="mail") == library.ids("tahiti", app='" OR "tahiti') == []
    assert library.ids("tahiti", app="微信", since=NOW + timedelta(days=1)) == []
    assert library.ids("tahiti", app="Mail", since=NOW - timedelta(days=1)) == [mail]


def test_the_terms_of_filters_are_not_words(library):
    library.add("tahiti", device_id="valley")

    for query in ("@", "@2026", "2026", "valley", "@device:76616c6c6579", "intent", "note"):
        assert library.ids(query) == [], query


@pytest.mark.parametrize(
    ("since", "until", "expected"),
    [
        (None, None, [0, 1, 2, 3, 4, 5, 6]),
        (datetime(2024, 1, 1), None, [2, 3, 4, 5, 6]),
        (None, datetime(2024, 2, 29, 12), [0, 1, 2]),
        (datetime(2024, 2, 29, 12), datetime(2024, 2, 29, 12, 0, 0, 1000), [3]),
        (datetime(2024, 2, 29), datetime(2025, 1, 1), [2, 3, 4]),
        (datetime(2023, 12, 31, 23), datetime(2025, 12, 31, 23, 59, 59), [1, 2, 3, 4, 5]),
        (datetime(2025, 1, 1), datetime(2025, 12, 31), [5]),
        (datetime(2026, 1, 1), datetime(2026, 1, 1), []),
        (datetime(2027, 1, 1), None, []),
        (datetime.min, datetime.max, [0, 1, 2, 3, 4, 5, 6]),
    ],
)
def test_a_range_of_time_is_exact(library, since, until, expected):
    moments = [
        datetime(2023, 1, 1),
        datetime(2023, 12, 31, 23, 59, 59),
        datetime(2024, 2, 29, 11, 59, 59, 999000),
        datetime(2024, 2, 29, 12),
        datetime(2024, 12, 31, 23, 59, 59, 999000),
        datetime(2025, 1, 1),
        datetime(2026, 1, 1),
    ]
    ids = [library.add("tahiti", taken=moment) for moment in moments]

    assert sorted(library.ids("tahiti", since=since, until=until)) == [ids[place] for place in expected]


def test_a_range_of_time_in_an_empty_library_finds_nothing(library):
    assert library.ids("tahiti", since=NOW) == []


@pytest.mark.slow
@given(
    days=strategies.lists(strategies.integers(0, 4000), min_size=1, max_size=6),
    since=strategies.integers(0, 4000),
    length=strategies.integers(0, 4000),
)
@examples(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_range_finds_what_lies_in_it(library, days, since, length):
    start = datetime(2015, 1, 1)
    own = {"device_id": f"device{uuid.uuid4().hex}"}  # the library has the photos of earlier examples, too
    added = {library.add("periodical", taken=start + timedelta(days=day), **own): day for day in days}
    found = library.ids(
        "periodical", since=start + timedelta(days=since), until=start + timedelta(days=since + length), **own
    )

    assert set(found) == {photo_id for photo_id, day in added.items() if since <= day < since + length}


# ---------------------------------------------------------------------------- what goes in, and what goes out


def test_the_vocabulary_counts_photos(library):
    library.add("tahiti tahiti flight")
    library.add("Tahiti")

    assert library.vocabulary() == {"tahiti": 2, "flight": 1}


def test_a_new_analysis_replaces_the_old_one(library):
    photo = library.add("tahiti flight")
    other = library.add("flight")
    library.analyse_again(photo, "nairobi flight")

    assert [library.ids(query) for query in ("tahiti", "nairobi", "flight")] == [[], [photo], [other, photo]]
    assert library.vocabulary() == {"nairobi": 1, "flight": 2}


def test_indexing_or_removing_twice_changes_nothing(library):
    photo = library.add("tahiti 倒垃圾 PixelSocial")
    once = library.vocabulary()
    with database.scope(), db.atomic():
        lexicon.index(photo)
        lexicon.index(photo)
    assert library.vocabulary() == once
    assert library.ids("tahiti") == [photo]

    with database.scope(), db.atomic():
        lexicon.remove(photo)
        lexicon.remove(photo)
        lexicon.remove(4711)
    assert library.vocabulary() == {}
    assert library.ids("tahiti") == []


def test_a_wrong_count_is_corrected_by_the_index_and_others_stay(library):
    library.add("tahiti flight")
    library.add("tahiti")
    with database.scope():
        Vocabulary.update(documents=9).where(Vocabulary.term == "tahiti").execute()
        Vocabulary.delete().where(Vocabulary.term == "flight").execute()
        Vocabulary.insert(term="stray", documents=1).execute()
        for term in ("tahiti", "flight", "stray"):
            lexicon.count_anew(term)
        assert lexicon.photos_with("stray") == 0

    assert library.vocabulary() == {"tahiti": 2, "flight": 1}


def test_a_photo_without_text_stays_out(library):
    library.add("")
    library.add("…")

    with database.scope():
        assert Vocabulary.select().count() == 0


def test_what_is_rolled_back_is_not_found_and_does_not_hide_what_comes_after(library):
    photo = library.add("")
    with database.scope(), contextlib.suppress(ZeroDivisionError), db.atomic():
        Analysis.update(visible_text="nairobi").where(Analysis.photo == photo).execute()
        lexicon.index(photo)
        assert search.find("nairo", now=NOW).total == 1
        raise ZeroDivisionError
    assert library.ids("nairo") == []

    wanted = library.add("tahiti")
    assert library.ids("tahi") == [wanted]


def test_a_rebuilt_index_is_the_same(library, monkeypatch):
    monkeypatch.setattr(lexicon, "TOGETHER", 2)
    ids = [library.add(f"tahiti {' '.join(words_of(number, 3))} 倒垃圾") for number in range(5)]
    before, steps = library.vocabulary(), []
    with database.scope(), db.atomic():
        db.execute_sql("INSERT INTO photo_index(photo_index) VALUES ('delete-all')")
        Vocabulary.update(documents=99).execute()
        Vocabulary.insert(term="stray", documents=1).execute()
        assert lexicon.rebuild(steps.append) == 5

    assert steps == [2, 4, 5]
    assert library.vocabulary() == before
    assert sorted(library.ids("tahiti")) == ids
    assert library.ids("stray") == []


def test_after_compacting_removed_words_are_gone_from_the_index(library):
    photo = library.add("perpendicular")
    library.add("tahiti")
    with database.scope(), db.atomic():
        lexicon.remove(photo)

    assert compacted() > 0
    assert "tahiti" in index_bytes()
    assert "perpendicular" not in index_bytes()
    assert library.ids("tahiti")


@pytest.mark.slow
def test_compacting_goes_in_steps_between_which_others_write(library, monkeypatch):
    monkeypatch.setattr(lexicon, "MERGED", 1)
    ids = [
        library.add(f"tahiti {' '.join(f'word{number}x{this}' for this in range(2_000))}")
        for number in range(12)
    ]
    with database.scope(), db.atomic():
        for photo in ids[:6]:
            lexicon.remove(photo)

    later = []
    assert compacted(between=lambda: later.append(library.add("nairobi")) if len(later) < 3 else None) > 5
    assert "word3x" not in index_bytes()
    assert set(library.ids("tahiti")) == set(ids[6:])
    assert set(library.ids("nairobi")) == set(later)
    with database.scope():
        db.execute_sql("INSERT INTO photo_index(photo_index) VALUES ('integrity-check')")


def test_compacting_an_index_from_which_nothing_was_removed_writes_nothing(library):
    library.add("tahiti")
    library.add("nairobi")
    before = index_bytes()

    assert compacted() == 0
    assert index_bytes() == before


def compacted(between=lambda: None):
    """Compact to the end; the number of steps that did something."""
    steps = 0
    for _ in range(5):
        first = True
        while compact_a_step(first=first):
            first = False
            steps += 1
            between()
        if first:
            return steps
    raise AssertionError("the index is never compact")


def compact_a_step(*, first):
    with database.scope():
        return lexicon.compact(first=first)


def index_bytes():
    with database.scope():
        return b"".join(bytes(row[0]) for row in db.execute_sql("SELECT block FROM photo_index_data")).decode(
            "latin-1"
        )


# ----------------------------------------------------------------------------------- the vocabulary in memory


def test_words_that_come_later_are_prefixes_and_typos_at_once(library):
    library.add("nairobi")
    assert library.ids("tahitti") == []

    wanted = library.add("tahiti")
    assert library.ids("tahitti") == library.ids("tahi") == [wanted]


def test_words_that_came_one_by_one_are_found_like_those_that_were_there(library):
    words = words_of(7, 49)
    photos = [library.add(word) for word in words[:40]]
    asked = [*(word[:4] for word in words), *(f"{word[1]}{word[0]}{word[2:]}" for word in words)]
    assert library.ids(words[0]) == photos[:1]
    for word in words[40:]:
        photos.append(library.add(word))
        assert library.ids(word[:6]) == photos[-1:]
    found = [library.ids(text) for text in asked]

    database.close_store()
    assert [library.ids(text) for text in asked] == found
    assert all(photo in ids for photo, ids in zip(photos * 2, found, strict=True))


def test_a_word_that_goes_and_comes_again_is_found(library):
    photo = library.add("tahiti")
    assert library.ids("tahi") == [photo]
    library.analyse_again(photo, "nairobi")
    assert library.ids("tahi") == []
    library.analyse_again(photo, "tahiti")
    assert library.ids("tahi") == [photo]


def test_each_store_has_its_own_words(tmp_path):
    first = Library(tmp_path / "first")
    photo = first.add("tahiti")
    assert first.ids("tahi") == [photo]

    second = Library(tmp_path / "second")
    other = second.add("nairobi")
    assert second.ids("nairo") == [other]
    assert second.ids("tahi") == []

    database.open_store(first.settings)
    assert first.ids("tahi") == [photo]
    database.close_connections()


def test_threads_search_while_others_index(library):
    failures = []

    def work(number):
        try:
            for turn in range(10):
                photo = library.add(
                    f"tahiti thread{'abcd'[number]} {' '.join(words_of(number * 100 + turn, 5))}"
                )
                assert photo in library.ids(f"thread{'abcd'[number]}", limit=100)
        except Exception as problem:
            failures.append(problem)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(90)

    assert failures == []
    assert library.find("tahi").total == 40


# ------------------------------------------------------------------------------------ every string is a query


@pytest.mark.parametrize(
    "query",
    [
        '"', '"""', "'", "tahiti AND", "NEAR(tahiti, 2)", "tahiti*", "^tahiti", "tokens:tahiti",
        "-tahiti", "(tahiti", "tahiti)",
        "tahiti; DROP TABLE photos", "%", "_", "\\", "\0tahiti\0", "\ud800tahiti\udfff",
        "🌴 tahiti 🌴", "\u202etahiti\u202c",
        "مرحبا tahiti", "tahiti " * 20_000, "x" * 100_000, "1l" * 50_000,
        '"' * 100_000, " ".join(words_of(9, 3000)), "倒" * 50_000,
        "é" * 2000, "a\u0301" * 2000, "\u0941" * 2000, " ".join("abcdefghijklm" * 80),
        "l1I0O" * 12, "-" * 5000, "a-" * 5000, "aB" * 5000,
    ],
    ids=lambda query: repr(query[:20]),
)  # fmt: skip
def test_no_query_is_an_error(library, query):
    library.add("Flight to Tahiti 倒垃圾 a b c l10 é", category="chat")

    for options in ({}, {"category": "chat", "since": datetime(2026, 1, 1)}):
        found = library.find(query, **options)
        assert found.total >= len(found.items)


@given(text=strategies.text(max_size=60) | strategies.text(alphabet="ab \"tahi倒垃1l0-'", max_size=40))
@examples(max_examples=at_least(200), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_random_query_is_an_error(library, text):
    if not library.vocabulary():
        library.add("Flight to Tahiti 倒垃圾 ab ba a1 l0")

    library.find(text)


@pytest.mark.slow
@given(
    text=strategies.text(
        strategies.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=80
    )
)
@examples(max_examples=at_least(200), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_text_goes_in_and_comes_out_again(library, text):
    before = library.vocabulary()
    photo = library.add(text)
    words = re.sub('[-:"]', " ", text[:200])  # without what excludes a word, filters, or makes a phrase
    assert library.ids(words, limit=1000) or library.vocabulary() == before

    with database.scope(), db.atomic():
        lexicon.remove(photo)
    assert library.vocabulary() == before


def test_a_long_text_is_searched_to_its_end(library):
    wanted = library.add(" ".join(words_of(3, 8000)) + " tahiti")

    assert library.ids("tahiti") == [wanted]
    assert "tahiti" in library.find("tahiti").items[0].snippet
