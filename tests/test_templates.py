"""Records in words: their one-line fact, title and summary, in both languages."""

import pytest

from engines.records import TYPES, Field, Record, checked
from rules import templates

VALUES = {
    "text": "Alder Hall",
    "amount": {"value": "1023.80", "currency": "EUR"},
    "day": "2026-11-21",
    "time": "2026-12-04T07:10",
    "code": "NW482",
    "link": "https://example.org/a",
}


def record(kind, **fields):
    return checked(Record(kind, [Field(name.strip("_"), value, "", [0]) for name, value in fields.items()]))


def example(kind):
    """A record with all fields of its type."""
    fields = {
        name: [{key: f"{key} {n}" for key in form.keys} for n in (1, 2)]
        if form.kind == "list"
        else VALUES[form.kind]
        for name, form in TYPES[kind].fields.items()
    }
    return checked(Record(kind, [Field(name, value) for name, value in fields.items()]))


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("kind", TYPES)
def test_every_type_has_words(kind, language):
    found = example(kind)

    words = [made(found, language) for made in (templates.line, templates.title, templates.summary)]

    assert all(words)
    assert not any(mark in text for text in words for mark in "{}[]")
    assert words[2] != words[1]


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("kind", TYPES)
def test_a_record_with_the_fewest_fields_has_a_title_and_a_line(kind, language):
    whole = example(kind)
    for needed in TYPES[kind].needs:
        small = checked(Record(kind, [field for field in whole.fields if field.name in needed]))
        said = templates.title(small, language)

        assert said == said.strip(" ,:，：") != ""
        assert templates.line(small, language)


def test_a_receipt():
    found = record(
        "Receipt", seller="REWE", total={"value": "23.80", "currency": "EUR"}, date="2026-11-21T18:02"
    )

    assert templates.line(found, "en") == "€23.80 · REWE · 21 Nov"
    assert templates.title(found, "en") == "REWE €23.80, 21 Nov"
    assert templates.summary(found, "en") == "Receipt from REWE: €23.80 on Sat 21 Nov 18:02"
    assert templates.title(found, "zh") == "REWE €23.80，11月21日"


def test_a_flight():
    found = record(
        "FlightReservation",
        number="NW482",
        from_="Hamburg",
        to="Lisbon",
        departureTime="2026-12-04T07:10",
        gate="B14",
    )

    assert templates.line(found, "en") == "NW 482 · Hamburg–Lisbon · Fri 4 Dec 07:10"
    assert templates.title(found, "en") == "NW 482 Hamburg–Lisbon, Fri 4 Dec 07:10"
    assert templates.title(found, "zh") == "NW 482 Hamburg–Lisbon，12月4日 周五 07:10"


def test_settings_are_named_by_what_they_are_of():
    found = record("SettingsPage", name="Display", entries=[{"name": "Theme"}, {"name": "Font"}])

    assert templates.title(found, "en") == "Display settings"
    assert templates.title(found, "zh") == "设置：Display、Theme和Font"


def test_a_list_names_its_first_entries():
    names = ["Anna", "Ben", "Chor", "Dora", "Emil", "Fritz"]
    found = record("MessageList", entries=[{"who": name, "what": "Hello"} for name in names])
    few = record("MessageList", entries=[{"who": name} for name in names[:3]])

    assert templates.title(few, "en") == "Chat list: Anna, Ben and Chor"
    assert templates.title(few, "zh") == "聊天列表：Anna、Ben和Chor"
    assert templates.title(found, "en") == "Chat list: Anna, Ben, Chor and more"
    assert (
        templates.summary(found, "en")
        == "List of chats with Anna: Hello, Ben: Hello, Chor: Hello, Dora: Hello and more"
    )


@pytest.mark.parametrize(
    ("value", "currency", "said"),
    [
        ("-1200.5", "EUR", "-€1,200.5"),
        ("12", "CHF", "CHF 12"),
        ("0.99", "USD", "$0.99"),
        (".5", "CNY", "¥0.5"),
    ],
)
def test_amounts(value, currency, said):
    assert templates.money({"value": value, "currency": currency}) == said


def test_a_stored_title_and_summary_with_the_app_and_more_of_the_screen_change_their_language():
    found = record("SettingsPage", name="Display", entries=[{"name": "Theme"}, {"name": "Font"}])
    made = templates.summary(found, "en")

    templates.speak("zh")
    try:
        title, summary = templates.again(
            found, "", f"Harbour – {templates.title(found, 'en')}", f"{made}. Also Size and Colour."
        )
    finally:
        templates.speak("")

    assert title == "Harbour – 设置：Display、Theme和Font"
    assert summary == "设置“Display”：Theme和Font。"


def test_what_a_person_has_added_to_a_title_or_a_summary_is_not_lost_in_another_language():
    found = record("SettingsPage", name="Display", entries=[{"name": "Theme"}, {"name": "Font"}])
    title = f"{templates.title(found, 'en')} (my tablet)"
    summary = f"{templates.summary(found, 'en')}. Ask Ines about it!"

    templates.speak("zh")
    try:
        assert templates.again(found, "", title, summary) == (title, summary)
    finally:
        templates.speak("")
