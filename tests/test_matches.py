"""What a hit shows of a query: the words as they are written, where they stand, and the snippet."""

import itertools
import re

import pytest
from hypothesis import HealthCheck, given, strategies
from hypothesis import settings as examples
from PIL import ImageFont

import database
import readings
from database import db
from engines.lines import Line, Page
from models import Reading
from queries import matches
from search import Correction
from tests.support import fonts
from tests.support.library import Library
from tests.support.properties import at_least

WIDTH, HEIGHT = 1080, 2400
FONT = 30
BATTERY = "84%"


@pytest.fixture
def library(tmp_path):
    yield Library(tmp_path / "data")
    database.close_connections()


@pytest.fixture
def screen(library):
    """A function that stores a screenshot whose lines were read, one below the other, except for a battery,
    which is beside the clock; returns its id.
    """

    def store(*texts, **fields):
        lines, row = [], 0
        for text in texts:
            left, top = (980, 10) if text == BATTERY else (40, 10 + 100 * row)
            lines.append(Line(text, 0.99, left, top, left + 20 * len(text), top + 50))
            row += text != BATTERY
        return store_page(library, Page(WIDTH, HEIGHT, lines), **fields)

    return store


def store_page(library, page, **fields):
    photo = library.add("\n".join(line.text for line in page.lines), **fields)
    with database.scope(), db.atomic():
        readings.save(photo, page, reader="small")
    return photo


def places(hit):
    """The lines in which the boxes of a hit stand, by their number."""
    return [round((box.top * HEIGHT - 10) / 100) for box in hit.boxes]


@pytest.mark.parametrize(
    ("texts", "query", "matched", "lines"),
    [
        (["Flight to Tahiti", "TAHITI"], "tahiti", ["Tahiti"], [0, 1]),
        (["Summer camping"], "campnig", ["camping"], [0]),
        (["camping", "campsite"], "camp", ["camping", "campsite"], [0, 1]),
        (["camping", "canping"], "camping", ["camping"], [0]),  # a typo is not marked beside the word
        (["lnbox"], "inbox", ["lnbox"], [0]),
        (["Back up failed"], "backup", ["Back up"], [0]),
        (["Back", "up"], "backup", ["Back up"], [0, 1]),
        (["Outofoffice"], "out of office", ["Outofoffice"], [0]),
        (["Your e-mail"], "email", ["e-mail"], [0]),
        (["Your func-", "tionality"], "functionality", ["func- tionality"], [0, 1]),
        (["You don't"], "dont", ["don't"], [0]),
        (["PixelSocial"], "social", ["Social"], [0]),
        (["Décision", "Straße"], "decision strasse", ["Décision", "Straße"], [0, 1]),
        (["Battle.net 17:00"], "battle.net 17:00", ["Battle.net", "17:00"], [0]),
        (["Learn C++"], "c++", ["C++"], [0]),
        (["用电子邮件", "电子书", "邮件"], "电子邮件", ["电子邮件"], [0]),
        (["用一个电", "子邮件"], "电子邮件", ["电 子邮件"], [0, 1]),
        (["倒垃圾 今天"], "垃", ["垃"], [0]),
        (["选择 SIM 卡片"], "SIM卡", ["SIM", "卡"], [0]),
        (["１２月の旅"], "12", ["１２"], [0]),
        (["17:44", BATTERY, "Alarm at 17:44"], "17:44", ["17:44"], [1]),  # not in the status bar
        (["17:44", BATTERY, "Alarm"], "17:44", ["17:44"], [0]),  # unless it stands nowhere else
    ],
)
def test_the_words_that_stand_there_are_named_and_their_lines_are_marked(
    library, screen, texts, query, matched, lines
):
    screen(*texts)
    [hit] = library.find(query).items

    assert hit.matched == matched
    assert sorted(places(hit)) == lines
    assert matched[0] in hit.snippet


def test_a_common_word_is_marked_only_beside_the_others(library, screen):
    for _ in range(9):
        screen("the lake")
    photo = screen(
        "the lake is the place", "A line between", "the weather", "Another line between", "the end"
    )
    [hit] = library.find("the weather").items

    assert hit.photo_id == photo
    assert hit.matched == ["the", "weather"]
    assert places(hit) == [2]


def test_words_of_summary_app_and_values_are_named_without_a_box(library, screen):
    screen("Timeline", app_name="Tusky", summary="A jalopy for sale", entities=["TX-4711"])

    for query, word in (("tusky", "Tusky"), ("jalopy", "jalopy"), ("tx-4711", "TX-4711")):
        [hit] = library.find(query).items
        assert (hit.matched, hit.boxes) == ([word], [])
        assert word in hit.snippet


def test_without_a_reading_and_with_a_damaged_one_there_are_words_but_no_boxes(library, screen):
    library.add("Flight to Tahiti")
    screen("Flight to Tahiti")
    with database.scope():
        Reading.update(lines=b"\0damaged").execute()

    assert [(hit.matched, hit.boxes) for hit in library.find("tahiti").items] == 2 * [(["Tahiti"], [])]


def test_when_the_text_was_changed_since_the_boxes_are_those_of_the_reading(library, screen):
    photo = screen("Flight to Tahlti", "Hotel in Tahiti")
    library.analyse_again(photo, "A trip\nHotel in Tahiti")
    [hit] = library.find("tahiti").items

    assert hit.matched == ["Tahiti"]
    assert places(hit) == [1]


def test_at_most_twenty_places_and_words_are_marked(library, screen):
    words = [f"tahiti{number}" for number in range(22)]
    screen(*words)
    [hit] = library.find(" ".join(words)).items

    assert len(hit.matched) == len(set(hit.matched)) == 20
    assert len(hit.boxes) == 20


def test_the_words_of_a_phrase_have_one_box(library, screen):
    screen("Out of office until Monday")
    [hit] = library.find("out of office").items

    assert hit.matched == ["Out", "of", "office"]
    assert len(hit.boxes) == 1


TEXTS = (
    "Flight to Tahiti on Wednesday morning at 07:45",
    "Illinois will fill little lilies in April",
    "WWF MAMMOTH COMMUNITY MEMBERSHIP WINDOW",
    "Your payment of 1250 USD to Moon Market was successful.",
    "wifi, iMessage, Mattermost; hammock (minimum) million",
    "Declare it, and the army will defend it.",
)


@pytest.mark.parametrize("name", ["", fonts.SANS, fonts.CHINESE, fonts.BOLD])
def test_a_box_covers_its_word(library, name):
    """The words of lines set in a font, so that their places are known, in the margins that text recognition
    leaves.
    """
    font = fonts.font(name, FONT) if name else ImageFont.load_default(FONT)
    lines, truth = [], []
    for number, text in enumerate(TEXTS):
        top = 200 + 100 * number
        lines.append(Line(text, 0.99, 33, top, 45 + round(font.getlength(text)), top + 39))
        for word in re.finditer(r"\w+", text):
            left, right = (40 + font.getlength(text[:place]) for place in word.span())
            truth.append((word[0], top, left, right))
    store_page(library, Page(WIDTH, HEIGHT, lines))

    covered = []
    for word, top, left, right in truth:
        [hit] = library.find(f'"{word}"').items
        shares = [0.0]
        for box in hit.boxes:
            if round(box.top * HEIGHT) == top:
                start, end = box.left * WIDTH, (box.left + box.width) * WIDTH
                shares.append((min(right, end) - max(left, start)) / (max(right, end) - min(left, start)))
        covered.append(max(shares) >= 0.6)
    assert sum(covered) >= 0.98 * len(covered), list(
        itertools.compress(truth, [not done for done in covered])
    )


# --------------------------------------------------------------------------------------------------- snippets


def test_a_snippet_leaves_the_status_bar_out_unless_only_that_matches(library, screen):
    screen("17:44", BATTERY, "Chats", "Dinner at eight")
    screen("18:01", BATTERY, "Dinner at nine")

    assert [hit.snippet for hit in library.find("dinner").items] == [
        "Dinner at nine",
        "Chats Dinner at eight",
    ]
    assert library.find("17:44").items[0].snippet.startswith("17:44")


def test_a_snippet_begins_with_the_line_of_the_match(library, screen):
    screen(
        *[f"Line number {number} of this text" for number in range(9)], "Hotel in Tahiti", *["more text"] * 30
    )

    assert library.find("tahiti").items[0].snippet.startswith("Hotel in Tahiti more text")


# --------------------------------------------------------------------------- what was meant, and what is near


def test_a_word_that_stands_nowhere_as_typed_is_said_with_what_was_found(library, screen):
    screen("Summer camping", "Camping trip")
    screen("lnbox of Anna")

    assert library.find("Campnig").corrected == [Correction("Campnig", ["camping"])]
    assert library.find("inbox Anna").corrected == [Correction("inbox", ["lnbox"])]
    assert library.find("camping").corrected == library.find("camp").corrected == []
    screen("backup", "Out of office")
    assert library.find("back up").corrected == library.find("out ofoffice").corrected == []


def test_when_nothing_is_found_the_nearest_words_are_named(library):
    for text in ("Flight to Tahiti", "Calendar of flights", "机器学习", "Tahiti"):
        library.add(text)

    assert library.find("tahiti glacier").nearest == [("tahiti", 2)]
    assert library.find("calendula").nearest == [("calendar", 1)]
    assert library.find('"flight calender"').nearest == [("flight", 1), ("calendar", 1), ("flights", 1)]
    assert library.find("机器翻译").nearest == [("机器", 1)]
    assert (
        library.find("xylophone").nearest == library.find("").nearest == library.find("tahiti").nearest == []
    )


def test_words_that_say_nothing_are_never_offered(library):
    library.add("Where was she then, 的 of theme")

    assert library.find("there zzzz").nearest == [("theme", 1)]
    assert library.find('"wheer"').nearest == library.find("的 zzzz").nearest == []


def test_words_near_are_counted_within_the_filters(library):
    library.add("Flight to Tahiti", category="chat")
    library.add("Tahiti", category="webpage", app_name="Maps")
    library.add("Tahiti", category="webpage")

    assert library.find("tahiti glacier", category="webpage").nearest == [("tahiti", 2)]
    assert library.find("tahiti flight", category="webpage").nearest == [("tahiti", 2)]
    assert library.find("tahiti glacier", app="Maps").nearest == [("tahiti", 1)]
    assert library.find("tahiti glacier", category="finance").nearest == []


def test_at_most_six_words_are_near(library):
    library.add(" ".join(f"tahiti{letter}" for letter in "abcdefghijk"))

    assert len(library.find("tahitixyz").nearest) == 6


# ------------------------------------------------------------------------------------------------ any input

ANY_TEXT = strategies.text(
    strategies.one_of(
        # Half of a surrogate pair is in no stored text, because UTF-8 has none.
        strategies.characters(exclude_categories=["Cs"]),
        strategies.sampled_from("aeilmtw 电子邮件 -'’\nİßﬁ\u0301\u00ad"),
    ),
    max_size=60,
)
LINES = strategies.lists(
    strategies.builds(
        Line, ANY_TEXT, strategies.just(1.0), *[strategies.integers(-(2**34), 2**34) for _ in range(4)]
    ),
    max_size=6,
)


@pytest.mark.slow
@given(LINES, ANY_TEXT, strategies.integers(0, 2**20), strategies.data())
@examples(max_examples=at_least(200), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_was_read_and_whatever_is_searched_boxes_are_on_the_picture(
    library, lines, text, side, data
):
    visible = "\n".join(line.text for line in lines)
    words = [*visible.split(), *text.split(), "电子", "mail", "\ud800"]
    query = " ".join(data.draw(strategies.lists(strategies.sampled_from(words), min_size=1, max_size=4)))
    photo = store_page(library, Page(side, side, lines), summary=text)

    for hit in library.find(query, limit=100).items:
        assert max(len(hit.matched), len(hit.boxes)) <= matches.MOST
        for box in hit.boxes:
            assert 0 <= box.left <= box.left + box.width <= 1.00001
            assert 0 <= box.top <= box.top + box.height <= 1.00001
        if hit.photo_id == photo and hit.matched:
            whole = " ".join(f"{text}\n{visible}".split()).casefold()
            assert all(word.casefold() in whole for word in hit.matched)
