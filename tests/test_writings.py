"""The records of what people read, write and list, made from drawn screens of made-up apps."""

import pytest

from engines.lines import Line, Page
from rules import judge as rules
from rules.layout import Layout
from rules.signed import first_signed
from rules.view import View
from rules.writings import conversation, weather

SIZE = (1080, 2400)
BAR = ((40, 20, "9:41"), (940, 20, "82%"))


def page_of(*rows):
    """A page of rows `(left, top, text)`, or with a height behind them."""
    lines = []
    for left, top, text, *height in rows:
        tall = height[0] if height else 40
        width = sum(tall if letter > "\u2e80" else tall // 2 for letter in text)
        lines.append(Line(text, 0.98, left, top, left + width, top + tall))
    return Page(*SIZE, lines)


def found(*rows, language="en"):
    """What is found on a page of rows."""
    return rules.judge(page_of(*rows), analyser="local/small", language=language)


def fields(record):
    return {field.name: field.value for field in record.fields}


def test_a_conversation_has_its_participant_and_last_message():
    said = found(
        *BAR,
        (150, 130, "Ines Ferrand", 56),
        (150, 320, "Did the piano tuner come?"),
        (150, 380, "14:02", 30),
        (520, 520, "He comes on Thursday."),
        (900, 580, "14:05", 30),
        (150, 700, "Then I will bake something."),
        (150, 760, "14:06", 30),
        (150, 2200, "Type a message"),
    )

    (record,) = said.records
    assert (record.type, fields(record)) == (
        "Conversation",
        {"participant": [{"name": "Ines Ferrand"}], "lastMessage": "Then I will bake something."},
    )
    assert said.title == "Chat with Ines Ferrand"
    assert [record.fields[1].lines] == [[7]]


def test_a_message_that_was_said_twice_is_the_last_one_too():
    said = found(
        *BAR,
        (150, 130, "Ines Ferrand", 56),
        (150, 320, "Did the piano tuner come?"),
        (700, 520, "Good luck!"),
        (150, 700, "Good luck!"),
        (150, 2200, "Type a message"),
    )

    assert fields(said.records[0])["lastMessage"] == "Good luck!"


def test_what_is_last_without_a_time_or_a_field_below_is_no_message():
    page = page_of(
        (150, 130, "Ines Ferrand", 56),
        (150, 320, "Did the piano tuner come?"),
        (520, 520, "He comes on Thursday."),
        (150, 700, "Shall I bring the cups?"),
        (150, 2200, "Voice call with everybody"),
    )
    record = conversation(View(page, Layout(page), "conversation", "", None))

    assert record is not None
    assert fields(record) == {"participant": [{"name": "Ines Ferrand"}]}


def test_the_last_message_of_an_assistant_begins_below_the_question():
    said = found(
        *BAR,
        (150, 130, "Tern 4B", 56),
        (520, 320, "Why is the sea salt?"),
        (60, 460, "Rain takes salts from the rocks of the"),
        (60, 510, "land, and the rivers bring them into"),
        (60, 560, "the sea, where they stay for very long."),
        (60, 700, "What evaporates has no salt in it, so"),
        (60, 750, "more and more of it has come together."),
        (60, 890, "812ms per token, 1.2 tokens per second"),
        (60, 2200, "Type a message"),
        (60, 2290, "Sources: an encyclopedia of the sea"),
    )

    last = said.records[0].text("lastMessage")
    assert last.startswith("Rain takes salts from the rocks")


def test_what_somebody_said_in_a_list_of_chats_is_no_entry():
    said = found(
        *BAR,
        (60, 130, "Chats", 56),
        *((150, 320, "Oskar Lind", 44), (930, 322, "17:05"), (150, 384, "Oskar Lind: See you", 36)),
        *((150, 520, "Choir", 44), (930, 522, "16:48"), (150, 584, "Page 14 today", 36)),
        *((150, 720, "Piano lessons", 44), (860, 722, "Yesterday"), (150, 784, "Thank you!", 36)),
    )

    names = [entry["who"] for entry in said.records[0].entries("entries")]
    assert names == ["Oskar Lind", "Choir", "Piano lessons"]


@pytest.mark.parametrize(
    "rows",
    [
        ((150, 320, "Ines Ferrand", 44), (150, 380, "5 hours ago", 36), (150, 440, "@ines@tern.example", 36)),
        ((150, 320, "Ines Ferrand@ines", 44), (150, 380, "5 hours ago", 36)),
    ],
)
def test_the_author_of_a_post_is_above_or_before_the_handle(rows):
    said = found(
        *BAR,
        *((60, 130, "For you", 46), (400, 130, "Local", 46), (700, 130, "Federated", 46)),
        *rows,
        (150, 520, "The first swallows are back above the harbour,"),
        (150, 580, "and nobody has told the weather #spring #birds"),
        *((150, 700, "Reply"), (400, 700, "Boost"), (700, 700, "Like")),
    )

    assert said.records[0].type == "SocialMediaPosting"
    assert said.records[0].text("author") == "Ines Ferrand"


@pytest.mark.parametrize(
    ("header", "language", "title"),
    [
        ("Chats", "en", "Chats: Oskar Lind, Choir and Piano lessons"),
        ("聊天列表", "zh", "聊天列表：Oskar Lind、Choir和Piano lessons"),
    ],
)
def test_a_list_of_chats_has_who_wrote_and_what(header, language, title):
    said = found(
        *BAR,
        (60, 130, header, 56),
        *((150, 320, "Oskar Lind", 44), (930, 322, "17:05"), (150, 384, "See you there", 36)),
        *((150, 520, "Choir", 44), (930, 522, "16:48"), (150, 584, "Page 14 today", 36)),
        *((150, 720, "Piano lessons", 44), (860, 722, "Yesterday"), (150, 784, "Thank you!", 36)),
        language=language,
    )

    assert said.records[0].type == "MessageList"
    assert said.records[0].entries("entries")[1] == {"who": "Choir", "what": "Page 14 today"}
    assert said.title == title


def test_settings_are_known_by_their_header():
    said = found(
        *BAR,
        (150, 130, "Player preferences", 58),
        *((150, 320, "Loop", 46), (900, 322, "Never")),
        *((150, 520, "Quality", 46), (900, 522, "High")),
        *((150, 720, "Captions", 46), (900, 722, "Off")),
    )

    assert said.records[0].type == "SettingsPage"
    assert said.records[0].text("name") == "Player preferences"
    assert said.title == "Player preferences: Loop"


def test_a_list_of_videos_is_known_by_how_often_they_were_seen():
    said = found(
        *BAR,
        (60, 130, "tides", 56),
        *(
            (60, 700, "How the tides of the bay work"),
            (60, 760, "Harbour School · 2 years ago · 26K views", 34),
        ),
        *((60, 1400, "A walk on the sea floor"), (60, 1460, "mudlark · 3 weeks ago · 1.2M views", 34)),
    )

    record = said.records[0]
    assert record.type == "VideoObject"
    assert fields(record) == {
        "headline": "How the tides of the bay work",
        "author": "Harbour School",
        "text": "26K views",
    }


def test_a_recipe_has_its_ingredients():
    said = found(
        *BAR,
        (60, 150, "Plum crumble", 80),
        (60, 300, "Preparation time"),
        (60, 350, "25 min"),
        (60, 450, "Ingredients", 46),
        *((60, 520 + 60 * n, text) for n, text in enumerate(("800 g plums", "200 g flour", "100 g butter"))),
        (60, 800, "Directions", 46),
        (60, 870, "Preheat the oven, then bake the plums for ten minutes."),
        (60, 940, "Servings: 4"),
    )

    assert said.records[0].type == "Recipe"
    assert fields(said.records[0])["totalTime"] == "25 min"
    assert {"name": "200 g flour"} in said.records[0].entries("recipeIngredient")
    assert said.title == "Recipe: Plum crumble"


def test_a_recipe_is_known_by_how_much_it_needs_too():
    said = found(
        *BAR,
        (60, 150, "Plum crumble", 80),
        (60, 420, "Ingredients", 46),
        *((60, 520, "800 g plums"), (60, 640, "Flour, sieved"), (60, 690, "200 g"), (60, 810, "3 eggs")),
    )

    record = next(record for record in said.records if record.type == "Recipe")
    assert record.entries("recipeIngredient") == [
        {"name": "800 g plums"},
        {"name": "Flour, sieved"},
        {"name": "3 eggs"},
    ]


def test_a_recipe_is_known_by_its_ingredients_and_read_in_columns():
    said = found(
        *BAR,
        (60, 150, "Recipes", 48),
        (60, 270, "Plum crumble", 66),
        *((60, 420, "Serves", 34), (400, 420, "Ready in", 34)),
        *((60, 480, "4"), (400, 480, "1 h 10 min")),
        (60, 620, "Ingredients"),
        *((60, 700 + 76 * n, text) for n, text in enumerate(("800 g plums", "200 g flour", "1 tsp salt"))),
        (340, 950, "Member since March 2019", 34),
    )

    assert said.records[0].type == "Recipe"
    assert fields(said.records[0]) == {
        "name": "Plum crumble",
        "totalTime": "1 h 10 min",
        "recipeYield": "4",
        "recipeIngredient": [{"name": "800 g plums"}, {"name": "200 g flour"}, {"name": "1 tsp salt"}],
    }


def test_a_dialog_that_says_what_failed_is_an_error():
    said = found(
        (40, 160, "Photos", 56),
        (40, 400, "Holidays in the north"),
        (40, 500, "A walk along the river"),
        (160, 1000, "The upload failed", 52),
        (160, 1090, "Error code: UP-502"),
        *((500, 1240, "Cancel"), (760, 1240, "Retry")),
    )

    assert said.records[0].type == "ErrorMessage"
    assert said.records[0].text("code") == "UP-502"
    assert said.title == "The upload failed"


def test_every_value_of_a_record_is_on_lines():
    said = found(
        *BAR,
        (60, 130, "example.com/tidal"),
        (60, 300, "Why tidal energy finally works", 62),
        (60, 420, "By Helen Strand · 6 min read", 36),
        (60, 540, "For three decades engineers promised that the sea"),
        (60, 600, "would power whole towns. It never did, because the"),
        (60, 660, "turbines broke within a year of their first winter."),
    )

    (record,) = said.records
    assert record.type == "Article"
    assert record.text("author") == "Helen Strand"
    assert all(field.lines for field in record.fields)


@pytest.mark.parametrize(
    "byline",
    ["Feb 12, 2024 by Helen Strand", "by Helen Strand - Feb 12, 2024 5:05 PM", "8 作者：Helen Strand|2024"],
)
def test_the_author_of_an_article_may_have_the_day_before_or_behind(byline):
    said = found(
        *BAR,
        (60, 300, "Why tidal energy finally works", 62),
        (60, 420, byline, 36),
        (60, 540, "For three decades engineers promised that the sea"),
        (60, 600, "would power whole towns. It never did, because the"),
        (60, 660, "turbines broke within a year of their first winter."),
    )

    assert said.records[0].text("author") == "Helen Strand"


def test_the_place_of_the_weather_is_above_the_temperature():
    page = page_of(
        (40, 30, "LTE", 36),
        (60, 140, "Skylark Weather", 56),
        (300, 480, "Rome, Italy"),
        (300, 600, "18.8°C", 120),
        (300, 800, "Cloudy"),
        *((100 + 240 * n, 1100, f"{n + 10}:00") for n in range(4)),
    )
    record = weather(View(page, Layout(page), "weather", "", None))

    assert record is not None
    assert fields(record) == {"place": "Rome, Italy", "temperature": "18.8°C", "condition": "Cloudy"}


def test_a_form_makes_no_record():
    assert not found(*BAR, (60, 130, "New entry", 56), (60, 300, "Subject"), (60, 400, "Notes")).records


@pytest.mark.parametrize("bar", ["Comments", "Tidal power explained"])
def test_posts_are_named_by_the_bar_above_them(bar):
    said = found(
        *BAR,
        (40, 130, bar, 64),
        (40, 300, "Mira Holm @mira@social.example"),
        (40, 360, "The turbines by the old pier run since Tuesday"),
        (700, 480, "12 likes 3 reposts"),
        (40, 620, "Jon Aas @jon@social.example"),
        (40, 680, "I hope the seals do not mind them at all"),
        (700, 800, "4 likes"),
    )

    assert [record.type for record in said.records] == ["SocialMediaPosting"]
    assert said.title.removesuffix(": The turbines by the old pier run since Tuesday") == bar


@pytest.mark.parametrize("time", ["4 months ago – Public", "9 godz. temu", "Oct 4th 2025 at 12:47 PM"])
def test_the_time_of_a_post_may_be_in_other_languages_and_say_who_sees_it(time):
    rows = ((150, 320, "mira", 44), (150, 380, time, 36), (150, 520, "The swallows are back"))
    signed = first_signed(Layout(page_of(*rows)))

    assert signed is not None
    assert (signed.author, signed.said.text) == ("mira", "The swallows are back")


def test_an_address_or_a_version_with_a_letter_behind_a_number_is_no_time():
    rows = (
        (150, 320, "b9d419c2d8.png"),
        (150, 420, "Site 9to5.example"),
        (150, 520, "The swallows are back"),
    )

    assert first_signed(Layout(page_of(*rows))) is None


def test_a_post_above_the_first_signature_is_the_one_that_others_answer():
    said = found(
        *BAR,
        (60, 130, "Thread", 56),
        (60, 320, "mira"),
        (60, 400, "The first swallows are back above the harbour, and nobody"),
        (60, 450, "has told the weather, which brings snow again on Tuesday"),
        (60, 700, "jon 2 hours ago"),
        (60, 760, "I saw two of them by the pier"),
    )

    record = said.records[0]
    assert (record.type, record.text("author")) == ("SocialMediaPosting", "mira")
    assert record.text("text").startswith("The first swallows")


def test_a_title_names_no_secret_of_the_screen():
    said = found(
        *BAR,
        (40, 130, "Guest network", 64),
        (40, 300, "Password: hunter22xx", 44),
        (40, 460, "Ask us in the branch"),
    )

    assert said.title == "Guest network: Ask us in the branch"


def test_a_name_may_be_right_before_the_time_of_a_comment_with_its_number_behind_it():
    rows = ((150, 320, "umbra6天前1楼", 36), (150, 380, "会有直播吗？我想从头看到尾"))
    signed = first_signed(Layout(page_of(*rows)))

    assert signed is not None
    assert (signed.author, signed.said.text) == ("umbra", "会有直播吗？我想从头看到尾")
