"""The parts of a screen that are found by their places."""

import pytest

from engines.lines import Line, Page
from rules.layout import Layout

SIZE = (1080, 2400)


def layout(*rows, size=SIZE):
    """The layout of a page of rows `(left, top, text)`, or with a height behind them."""
    lines = []
    for left, top, text, *height in rows:
        tall = height[0] if height else 40
        width = sum(tall if letter > "\u2e80" else tall // 2 for letter in text)
        lines.append(Line(text, 0.98, left, top, left + width, top + tall))
    return Layout(Page(*size, lines))


SAID = ((60, 300, "Are you coming tonight?"), (60, 400, "Yes, at eight"))


@pytest.mark.parametrize(
    "text", ["Type a message", "+ Message…", "按住 说话", "Nachricht schreiben", "Ask anything"]
)
def test_the_field_for_a_message_is_at_the_bottom(text):
    assert layout(*SAID, (150, 2200, text)).composer.text == text
    assert layout((150, 160, text), *SAID, (60, 900, "Tomorrow")).composer is None


def test_a_message_that_begins_otherwise_is_no_field():
    assert layout(*SAID, (150, 2200, "Messages")).composer is None


def test_a_dialog_ends_with_its_buttons_and_leaves_out_what_is_behind_it():
    found = layout(
        (40, 160, "Photos", 56),
        (40, 400, "Holidays in the north"),
        (40, 500, "A walk along the river"),
        (160, 1000, "Delete this album?", 52),
        (160, 1090, "Its pictures stay on the device."),
        *((500, 1240, "Cancel"), (760, 1240, "Delete")),
    )

    texts = [line.text for row in found.dialog for line in row.lines]

    assert texts == ["Delete this album?", "Its pictures stay on the device.", "Cancel", "Delete"]


def test_a_form_with_a_button_is_no_dialog():
    assert layout((40, 160, "New note", 56), (40, 500, "Write here"), (40, 2200, "Cancel")).dialog == []


def test_two_screens_in_one_picture_share_no_row():
    found = layout(
        *((60, 30, "9:41"), (60, 150, "Notes", 56), (60, 400, "Call the plumber")),
        *(
            (1160, 30, "9:41"),
            (1160, 150, "Tasks", 56),
            (1160, 400, "Water the plants for Maria"),
            (1900, 2200, "Add"),
        ),
        size=(2160, 2400),
    )

    assert [row.first.text for row in found.rows] == [
        "Notes", "Call the plumber", "Tasks", "Water the plants for Maria", "Add",
    ]  # fmt: skip
