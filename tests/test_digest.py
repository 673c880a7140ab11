"""What the embedded model writes by itself: notes only where something calls for one."""

from datetime import date, timedelta

import msgspec
import pytest

from engines.articles import Material, NewPhoto, RecentNote
from engines.findings import Entity
from rules import digest, noted, templates
from tests.support.material import BILL, DENTIST, MATERIAL, NOW, RECIPE

LATER = NOW + timedelta(days=3)


def photo(number, title, summary, *, day=0, entities=(), **fields):
    """A screenshot that was taken `day` days after the first."""
    return NewPhoto(
        number,
        NOW + timedelta(days=day),
        title=title,
        summary=summary,
        entities=[Entity(*entity) for entity in entities],
        **fields,
    )


def write(new, earlier=(), language="en", now=LATER, notes=()):
    return digest.write(Material(now, new, earlier=earlier, notes=notes), language).articles


@pytest.mark.parametrize(
    ("language", "titles", "said"),
    [
        (
            "en",
            ["Dentist on Friday at nine.: Fri 27 Nov", "The electricity bill is due.: Tue 1 Dec"],
            "On **Tue 1 Dec**: The electricity bill is due. (€ 48.20)",
        ),
        (
            "zh",
            ["Dentist on Friday at nine.：11月27日", "The electricity bill is due.：12月1日"],
            "**12月1日**：The electricity bill is due.（€ 48.20）",
        ),
    ],
)
def test_what_is_due_has_a_note_each_with_its_day_and_amount(language, titles, said):
    written = digest.write(MATERIAL, language)

    assert written.usage.calls == 0
    assert [article.title for article in written.articles] == titles
    assert [article.photo_ids for article in written.articles] == [[DENTIST.id], [BILL.id]]
    assert written.articles[1].content == said
    assert {article.category for article in written.articles} == {"reminder"}
    assert max(article.confidence for article in written.articles) <= 0.5


@pytest.mark.parametrize("title", ["City Power €64.20, due 27 Nov", "City Power €64.20, due 7 Nov"])
def test_a_title_that_names_the_day_does_not_name_it_twice(title):
    [note] = write([msgspec.structs.replace(DENTIST, title=title)])
    assert note.title == (title if " 27 " in title else f"{title}: Fri 27 Nov")


def test_where_nothing_calls_for_a_note_there_is_none():
    news = photo(
        20, "Tidal energy", "Article “Tidal energy”.", category="webpage", entities=[("link", "example.org")]
    )
    settings = [photo(30 + day, "Settings", "Settings with Theme.", day=day) for day in range(3)]
    chats = [
        photo(40 + day, "WhatsApp", "Chats.", day=day, app="WhatsApp", category="chat") for day in range(3)
    ]

    assert write([RECIPE]) == []
    assert write([news, *settings, *chats]) == []


def test_a_day_on_the_screen_that_is_not_in_the_agenda_is_nothing_due():
    bill = msgspec.structs.replace(BILL, event_day=None)
    lunch = photo(
        1, "Team lunch", "Lunch on Wednesday.", intent="reminder", entities=[("date", "2 Dec 2026")]
    )

    assert write([bill, lunch]) == []


def test_the_same_conversation_on_several_days_is_one_note_that_quotes_each():
    before = photo(1, "Chat with Anna", "Chat with Anna, at last “See you”.", category="chat")
    after = photo(2, "Chat with Anna", "Chat with Anna, at last “I am late”.", day=2, category="chat")
    (note,) = write([after], [before])

    assert (note.title, note.category, note.photo_ids) == ("More about Chat with Anna", "insight", [1, 2])
    assert "from Sat 21 Nov to Mon 23 Nov" in note.summary
    assert "- **Sat 21 Nov**: Chat with Anna, at last “See you”." in note.content
    assert "I am late" in note.content


def test_what_changed_is_named():
    kettle = {"category": "other", "app": "Shop"}
    before = photo(1, "Gooseneck Kettle", "Gooseneck Kettle.", entities=[("amount", "$59.00")], **kettle)
    after = photo(
        2, "Gooseneck Kettle", "Gooseneck Kettle.", day=3, entities=[("amount", "$44.00")], **kettle
    )
    (note,) = write([after], [before])

    assert "It went from $59.00 to $44.00." in note.content


def test_a_parcel_on_two_screens_is_one_note():
    code = [("code", "SF1029384756102", "运单号")]
    shipped = photo(1, "物流详情", "物流详情：已揽收。", entities=code)
    coming = photo(2, "短信", "您的包裹即将送达。", entities=code)
    (note,) = write([coming], [shipped], "zh")

    assert note.photo_ids == [1, 2]
    assert "运单号 SF1029384756102" in note.content


def test_a_flight_and_a_hotel_are_a_trip_and_no_single_reminders():
    flight = photo(
        1, "AMS → LIS", "Flight KL 1577, Gate D14.", intent="reminder", event_day=date(2026, 11, 28)
    )
    hotel = photo(2, "Casa Azul", "Check-in Nov 28.", intent="reminder", event_day=date(2026, 11, 28))
    back = photo(3, "LIS → AMS", "Flight KL 1578.", intent="reminder", event_day=date(2026, 12, 1))
    (note,) = write([flight, hotel, back])

    assert (note.title, sorted(note.photo_ids)) == ("Your trip from Sat 28 Nov to Tue 1 Dec", [1, 2, 3])
    assert "- **Sat 28 Nov**: Flight KL 1577, Gate D14." in note.content


def test_a_screen_that_was_scrolled_is_no_group():
    two = [photo(number, "Chat with Anna", f"Part {number}.", category="chat") for number in (1, 2)]

    assert write(two) == []
    assert write([photo(3, "Chat with Anna", "Later.", day=1, category="chat")], two)


def test_a_group_without_anything_new_is_not_written_again():
    two = [photo(day, "Chat with Anna", f"Day {day}.", day=day, category="chat") for day in (1, 2)]

    assert write([RECIPE], two) == []


def test_a_note_continues_the_earlier_one_of_the_same_title():
    two = [photo(day, "Chat with Anna", f"Day {day}.", day=day, category="chat") for day in (1, 2)]
    (note,) = write(two[1:], two[:1], notes=[RecentNote(9, "More about Chat with Anna", "", "insight")])

    assert note.updates == 9


def test_notes_of_much_are_few_and_short():
    bills = [msgspec.structs.replace(BILL, id=number + 1) for number in range(200)]
    chat = [photo(1_000 + day, "Chat with Anna", "x" * 500, day=day, category="chat") for day in range(60)]

    assert len(write(bills)) == digest.MOST_NOTES
    (note,) = write(chat, now=NOW + timedelta(days=60))
    assert note.content.count("\n- ") == digest.MOST_SENTENCES
    assert len(note.photo_ids) == 60
    assert len(note.content) < 3_000


ANNA = {"category": "chat"}
KETTLE = {"category": "other", "app": "Shop"}
SEVERAL = {
    "what is due": ([BILL, DENTIST], []),
    "what a name says is due": ([msgspec.structs.replace(DENTIST, summary="Ida: at nine.")], []),
    "a trip": (
        [
            photo(1, "AMS", "Flight KL 1577.", intent="reminder", event_day=date(2026, 11, 28)),
            photo(2, "LIS", "Flight KL 1578.", intent="reminder", event_day=date(2026, 12, 1)),
        ],
        [],
    ),
    "a conversation": (
        [photo(2, "Anna", "I am late: sorry.", day=2, **ANNA)],
        [photo(1, "Anna", "See you.", **ANNA)],
    ),
    "a conversation of a day": ([photo(day, "Anna", "See you.", **ANNA) for day in range(3)], []),
    "a price": (
        [photo(2, "Kettle", "A kettle.", day=3, entities=[("amount", "$44.00")], **KETTLE)],
        [photo(1, "Kettle", "A kettle.", entities=[("amount", "$59.00")], **KETTLE)],
    ),
}


@pytest.fixture
def speak():
    yield templates.speak
    templates.speak("")


def texts(article, shown=lambda text: text):
    return [shown(text) for text in (article.title, article.summary, article.content)]


@pytest.mark.parametrize(("stored", "spoken"), [("en", "zh"), ("zh", "en")])
@pytest.mark.parametrize("material", SEVERAL.values(), ids=SEVERAL)
def test_a_stored_note_reads_in_another_language_as_if_it_was_written_in_it(speak, material, stored, spoken):
    speak(spoken)
    written = write(*material, language=stored)
    assert written
    for article, wanted in zip(written, write(*material, language=spoken), strict=True):
        # In Chinese, the summaries of what is due and of a trip have one form.
        shown = texts(article, lambda text: noted.again(text, [], NOW.date()).removeprefix("On "))
        assert shown == texts(wanted, lambda text: text.removeprefix("On "))
        assert texts(wanted, lambda text: noted.again(text, [], NOW.date())) == texts(wanted)


def test_a_note_names_its_screenshots_as_their_lists_do(speak):
    [article] = write([photo(2, "Anna", "See you.", day=2, **ANNA)], [photo(1, "Anna", "Late.", **ANNA)])
    pairs = [("Anna", "安娜"), ("See you.", "再见。")]

    def shown():
        return texts(article, lambda text: noted.again(text, pairs, NOW.date()))

    assert shown() == texts(article)
    speak("zh")
    assert shown()[0] == "更多关于安娜"
    assert shown()[2].splitlines()[2:] == ["- **11月21日**：Late.", "- **11月23日**：再见。"]


@pytest.mark.parametrize(
    "text",
    ["Rent is due.", "On **Mon 99 Nov**: nothing", "Milk, bread: both", "# A report\n\n- **One**: two", ""],
)
def test_what_these_rules_did_not_write_stays_as_it_is(speak, text):
    speak("zh")
    assert noted.again(text, [], NOW.date()) == text
