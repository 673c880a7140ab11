"""Which lines are read a second time, and how their second reading gets back to its place."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from engines import twopass
from engines.lines import Line
from rules.embedded import LocalModel
from tests.support.drawing import draw

SIZE = (400, 800)


def line(text, top=100, confidence=0.5, *, left=50, right=250, height=30):
    return Line(text, confidence, left, top, right, top + height)


class Models:
    """A fast model that finds what it is told, and an exact one that reads each piece of a sheet, which is
    known by its colour.
    """

    def __init__(self, *lines):
        self.tile = Image.new("RGB", SIZE, "white")
        self.sheets = []
        self._lines = lines
        self._colours = {(1 + number, 0, 0): one for number, one in enumerate(lines)}
        for colour, one in self._colours.items():
            self.tile.paste(colour, (one.left, one.top, one.right, one.bottom))

    def fast(self, tile, side):
        return list(self._lines)

    def exact(self, sheet, side):
        self.sheets.append((sheet.size, side))
        found = []
        for colour, one in self._colours.items():
            box = Image.eval(sheet.split()[0], lambda red, wanted=colour[0]: 255 * (red == wanted)).getbbox()
            if box and one.text != "unreadable":
                found.append(Line(f"exact {one.text}", 0.99, *box))
        return found

    def read(self):
        return list(twopass.TwoPasses(self.fast, self.exact).lines(self.tile, 960))


def test_what_the_fast_model_is_sure_of_is_read_once():
    models = Models(line("Inbox", confidence=0.99), line("收件箱", 200, 0.99), line("x", 300))
    assert [one.text for one in models.read()] == ["Inbox", "收件箱", "x"]
    assert models.sheets == []


def test_short_lines_digits_and_chinese_are_doubted_sooner_and_icons_never():
    sure = {
        "The newest of your messages": 0.97,
        "The code of your order is 48": 0.98,
        "收件箱里最新的消息都在这里了吧": 0.98,
        "Inbox": 0.99,
        "7": 0.99,
        "x": 0,
        " 个 ": 0,
    }
    assert {text: _least_believed(text) for text in sure} == sure


def _least_believed(text):
    return next(
        percent / 100
        for percent in range(101)
        if not twopass.is_doubtful(line(text, confidence=percent / 100))
    )


def test_a_doubtful_line_gets_its_second_reading_at_its_place():
    models = Models(line("Total"), line("Inbox", 300, 0.99), line("EUR 42", 600))
    found = {one.text: one for one in models.read()}

    assert found.keys() == {"exact Total", "Inbox", "exact EUR 42"}
    total = found["exact Total"]
    assert (total.left, total.top, total.right, total.bottom) == (50, 100, 250, 130)
    assert total.confidence == 0.99
    [(size, side)] = models.sheets
    assert size[0] == SIZE[0]
    assert size[1] < 150
    assert side == 480


def test_what_the_exact_model_does_not_find_stays_as_it_was_read():
    assert [one.text for one in Models(line("unreadable")).read()] == ["unreadable"]


def test_the_surer_reading_counts():
    engine = twopass.TwoPasses(
        lambda tile, side: [line("50/250 XP", confidence=0.94)],
        lambda sheet, side: [Line("501250 XP", 0.9, 5, 5, 205, 35)],
    )
    assert [one.text for one in engine.lines(Image.new("RGB", SIZE), 960)] == ["50/250 XP"]


def test_a_neighbour_in_the_surroundings_of_a_line_is_not_taken_for_it():
    tight = [line("one", 100), line("two", 131), line("three", 162)]
    assert sorted(one.text for one in Models(*tight).read()) == ["exact one", "exact three", "exact two"]


def test_pieces_of_a_line_are_put_together():
    halves = [Line("Grand", 0.9, 20, 10, 100, 40), Line("total", 0.8, 110, 10, 210, 40)]
    engine = twopass.TwoPasses(lambda tile, side: [line("Crand tota1")], lambda sheet, side: reversed(halves))
    [found] = engine.lines(Image.new("RGB", SIZE), 960)
    assert found.text == "Grand total"
    assert 0.8 < found.confidence < 0.9


def test_pieces_are_further_apart_than_the_words_of_a_line():
    [pieces] = twopass._sheets([line("one", 100, right=130), line("two", 300, right=130)], *SIZE, 300)
    assert pieces[1].left - pieces[0].right > 30


def test_a_sheet_of_a_wide_tile_is_reduced_no_more_than_the_tile_and_takes_no_more_memory():
    sheets = []
    engine = twopass.TwoPasses(
        lambda tile, side: [line(str(row), 60 * row, right=1_800) for row in range(17)],
        lambda sheet, side: sheets.append((sheet.size, side)) or [],
    )
    assert len(list(engine.lines(Image.new("RGB", (1_920, 1_080)), 960))) == 17
    assert len(sheets) > 1
    assert all(size[0] == 1_920 and size[1] <= 360 and side == 960 for size, side in sheets)


@given(
    st.lists(st.tuples(st.integers(0, 300), st.integers(0, 700), st.integers(1, 100), st.integers(1, 100)))
)
def test_no_sheet_is_too_high_and_each_line_is_on_one(places):
    lines = [Line("text", 0.5, left, top, left + wide, top + high) for left, top, wide, high in places]
    sheets = list(twopass._sheets(lines, *SIZE, 300))
    pieces = [piece for sheet in sheets for piece in sheet]
    assert sorted(piece.line.top for piece in pieces) == sorted(one.top for one in lines)
    assert all(piece.bottom <= 300 and piece.right <= SIZE[0] for piece in pieces)
    for sheet in sheets:
        for number, one in enumerate(sheet):
            for other in sheet[:number]:
                assert (
                    one.left >= other.right
                    or other.left >= one.right
                    or one.top >= other.bottom
                    or other.top >= one.bottom
                )


@pytest.mark.slow
def test_the_child_reads_with_both_models():
    model = LocalModel(ocr_model="both", language="en")
    try:
        page, engine = model.read(io.BytesIO(draw()))
        alone = LocalModel(ocr_model="small", language="en")
        try:
            expected, _ = alone.read(io.BytesIO(draw()))
        finally:
            alone.close()
    finally:
        model.close()
    assert engine == "both"
    assert [one.text for one in page.lines] == [one.text for one in expected.lines]
