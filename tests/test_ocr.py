"""How a picture is cut for the detector, and how the lines it finds are put in order."""

import io
import platform
import subprocess
import sys
import types

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from engines import ocr
from engines.lines import Line
from settings import ROOT
from tests.support.drawing import draw


class Scripted:
    """An engine that finds what it is told, in each tile."""

    name = "scripted"

    def __init__(self, *lines):
        self.tiles = []
        self._lines = lines

    def lines(self, tile, detector_side):
        self.tiles.append(tile.size)
        return self._lines


def line(text, left, top, right=None, bottom=None, confidence=0.9):
    return Line(text, confidence, left, top, right or left + 20 * len(text), bottom or top + 30)


def ordered(*lines):
    return [one.text for one in ocr.reading_order(list(lines))]


def pattern(width, height):
    image = Image.new("RGB", (width, height), "white")
    image.paste("black", (0, 0, width // 2, height // 2))
    return image


@pytest.mark.parametrize(
    ("size", "strips", "side"),
    [
        ((1080, 2400), 1, 960),  # phones
        ((1179, 2556), 1, 960),
        ((1440, 3200), 2, 960),
        ((1920, 1080), 1, 960),  # desktops
        ((2560, 1440), 2, 1280),
        ((3840, 2160), 3, 1600),
        ((1080, 1080), 1, 960),
        ((1080, 12_000), 6, 960),  # a long capture
        ((7680, 1080), 4, 1600),  # several screens
        ((50, 50), 1, 960),
        ((5, 4000), 0, 960),
    ],
)
def test_a_picture_is_read_in_as_few_strips_as_its_text_allows(size, strips, side):
    chosen, plan = ocr.plan(*size)
    assert (len(plan), chosen) == (strips, side)


@given(st.integers(8, 9000), st.integers(8, 9000))
def test_strips_cover_the_picture_and_overlap(width, height):
    _, strips = ocr.plan(width, height)
    assert {(strips[0].left, strips[0].top), (strips[-1].right, strips[-1].bottom)} == {
        (0, 0),
        (width, height),
    }
    tops = sorted({strip.top for strip in strips})
    bottoms = sorted({strip.bottom for strip in strips})
    assert all(below <= above - ocr.OVERLAP for above, below in zip(bottoms, tops[1:], strict=False))
    assert all(
        0 <= strip.left < strip.right <= width and 0 <= strip.top < strip.bottom <= height for strip in strips
    )


def test_a_square_is_padded_for_the_detector():
    engine = Scripted()
    ocr.read(pattern(900, 900), engine)
    assert engine.tiles == [(1200, 900)]


def test_a_strip_without_a_mark_is_not_sent_to_the_engine():
    engine = Scripted()
    done = []
    ocr.read(Image.new("RGB", (1080, 6000), "white"), engine, after_strip=lambda: done.append(True))
    assert engine.tiles == []
    assert len(done) == 3


class Turned:
    """An engine that reads a picture well only when it is turned: a tile's text by its size, and then in
    order.
    """

    name = "turned"

    def __init__(self, **confidences):
        self._confidences = {name: iter(some) for name, some in confidences.items()}
        self.tiles = 0

    def lines(self, tile, detector_side):
        self.tiles += 1
        wide = tile.width > tile.height
        confidence = next(self._confidences["wide" if wide else "tall"])
        if wide:
            return [
                line(f"Card {n} {confidence}", 10, 20 + 60 * n, 110, 40 + 60 * n, confidence) for n in (0, 1)
            ]
        return [line("Garbage", 20 + 60 * n, 10, 40 + 60 * n, 110, confidence) for n in (0, 1)]


def test_a_picture_on_its_side_is_read_from_both_sides_and_placed_as_it_is():
    engine = Turned(tall=[0.9], wide=[0.72, 0.99])
    page = ocr.read(pattern(300, 600), engine)

    assert engine.tiles == 3
    assert {one.text for one in page.lines} == {"Card 0 0.99", "Card 1 0.99"}
    first = next(one for one in page.lines if one.text.startswith("Card 0"))
    assert (first.left, first.top, first.right, first.bottom) == (20, 490, 40, 590)
    assert (page.width, page.height) == (300, 600)


def test_a_picture_on_its_head_or_mirrored_is_read_so_too():
    engine = Turned(wide=[0.75, 0.99, 0.6])
    page = ocr.read(pattern(600, 300), engine)

    assert engine.tiles == 3
    places = {one.text: (one.left, one.top, one.right, one.bottom) for one in page.lines}
    assert places == {"Card 0 0.99": (490, 260, 590, 280), "Card 1 0.99": (490, 200, 590, 220)}


def test_a_picture_that_is_read_surely_is_read_once():
    engine = Turned(wide=[0.97])
    ocr.read(pattern(600, 300), engine)
    assert engine.tiles == 1


def test_icons_marks_and_guesses_are_no_text():
    icons = [line("个", 0, 0), line("X", 50, 0), line("•••", 90, 0)]
    page = ocr.read(
        pattern(400, 800),
        Scripted(*icons, line("Maybe", 0, 50, confidence=0.2), line("7", 0, 100), line("Inbox", 0, 150)),
    )
    assert [one.text for one in page.lines] == ["7", "Inbox"]


def test_the_lines_of_a_row_go_from_left_to_right():
    assert ordered(
        line("$12.00", 600, 102), line("Groceries", 20, 100), line("Rent", 20, 200), line("$450.00", 600, 199)
    ) == [
        "Groceries",
        "$12.00",
        "Rent",
        "$450.00",
    ]


def test_the_pieces_of_a_line_are_joined():
    assert ordered(line("jumps over", 210, 100), line("quick fox", 20, 101)) == ["quick fox jumps over"]
    assert ordered(line("明天上午", 20, 100, 180), line("九点开会", 182, 100, 340)) == ["明天上午九点开会"]


def test_a_paragraph_is_not_torn_apart_by_what_stands_beside_it():
    article = [
        line(text, 20, 100 + 40 * at, 620)
        for at, text in enumerate(("The council has", "approved the plan", "for the new bridge"))
    ]
    beside = [line("Weather", 900, 104), line("Sports", 900, 150), line("Traffic", 900, 185)]
    text = " ".join(ordered(*article, *beside))
    assert "The council has approved the plan for the new bridge" in text
    assert "Weather" in text
    assert "Traffic" in text


def test_every_line_appears_once_in_the_reading_order():
    lines = [line(f"line {x} {y}", 300 * x, 35 * y) for x in range(4) for y in range(20)]
    found = [text for joined in ordered(*lines) for text in joined.split("line ")[1:]]
    assert sorted(text.strip() for text in found) == sorted(one.text.removeprefix("line ") for one in lines)


def test_tesseract_is_read_through_its_table(tmp_path):
    head = "level\tpage_num\tblock_num\tpar_num\tline_num\tword_num\tleft\ttop\twidth\theight\tconf\ttext"
    rows = [
        "1\t1\t0\t0\t0\t0\t0\t0\t540\t960\t-1\t",
        "5\t1\t1\t1\t1\t1\t10\t20\t80\t30\t96.0\tDentist",
        "5\t1\t1\t1\t1\t2\t100\t22\t40\t30\t90.0\ton",
        "5\t1\t1\t1\t2\t1\t10\t80\t60\t30\t70.0\t明天",
        "5\t1\t1\t1\t2\t2\t75\t80\t60\t30\t70.0\t上午",
    ]
    program = tmp_path / "tesseract"
    program.write_text(
        f"#!{sys.executable}\nimport sys\n"
        "if '--list-langs' in sys.argv:\n"
        "    print('List of available languages (2):', 'eng', 'chi_sim', sep='\\n')\nelse:\n"
        "    assert sys.stdin.buffer.read(2) == b'BM'\n    sys.stdin.buffer.read()\n"
        "    assert sys.argv[1:5] == ['stdin', 'stdout', '-l', 'eng+chi_sim']\n"
        f"    print({chr(10).join([head, *rows])!r})\n"
    )
    program.chmod(0o755)
    page = ocr.read(Image.open(io.BytesIO(draw())), ocr.Tesseract(str(program)))
    assert page.lines == [Line("Dentist on", 0.93, 10, 20, 140, 52), Line("明天上午", 0.7, 10, 80, 135, 110)]


def test_only_models_that_come_with_the_package_are_loaded():
    with pytest.raises(ValueError, match="medium"):
        ocr.Paddle("medium")


def test_each_of_two_models_is_loaded_once_for_a_phones_screens(monkeypatch):
    made = []

    class Model:
        def __init__(self, *, model_size, threads, det_max_side):
            made.append((model_size, det_max_side))

        def ocr(self, bitmap):
            place = {"topLeftCoord": (10, 10), "bottomRightCoord": (90, 40)}
            return {"bounds": {0: {"text": "Tota1", "confidence": 0.5} | place}}

    monkeypatch.setitem(sys.modules, "faster_paddle", types.SimpleNamespace(OcrEngine=Model))
    monkeypatch.setattr(ocr, "_resident", lambda: 0)
    engine, _ = ocr._load("both", "")
    for _ in range(2):
        assert len(ocr.read(Image.effect_noise((1080, 2400), 50).convert("RGB"), engine).lines) == 1
    assert made == [("tiny", 960), ("small", 480)]


@pytest.mark.parametrize(
    ("seen", "read"),
    [
        ("Type your message..", "Type your message..."),
        ("搜索订阅.. ", "搜索订阅..."),
        ("See all ...", "See all ..."),
        ("1..10", "1..10"),
        ("The end.", "The end."),
    ],
)
def test_two_dots_at_the_end_of_a_line_are_an_ellipsis(monkeypatch, seen, read):
    place = {"topLeftCoord": (10, 10), "bottomRightCoord": (90, 40)}
    model = types.SimpleNamespace(
        ocr=lambda bitmap: {"bounds": {0: {"text": seen, "confidence": 0.9} | place}}
    )
    monkeypatch.setitem(
        sys.modules, "faster_paddle", types.SimpleNamespace(OcrEngine=lambda **settings: model)
    )
    [line] = ocr.Paddle("small").lines(Image.new("RGB", (100, 50)), 960)
    assert line.text == read


@pytest.mark.skipif(platform.machine() != "x86_64", reason="only x86 is slow with denormal numbers")
def test_denormal_numbers_are_zero_in_the_process_and_in_its_later_threads():
    program = (
        "import threading; from engines import ocr; tiny = 5e-320\n"
        "ocr._skip_denormals(); print(tiny * 1.0)\n"
        "threading.Thread(target=lambda: print(tiny * 1.0)).start()"
    )
    shown = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    assert shown.split() == ["0.0", "0.0"]


def test_the_process_loads_nothing_that_it_does_not_need():
    program = "import sys, engines.ocr; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()

    own = {path.stem for path in ROOT.glob("*.py")} | {
        package.parent.name for package in ROOT.glob("*/__init__.py")
    }
    of_ours = {name for name in loaded if name.partition(".")[0] in own}
    needed = {
        "colours",
        "engines",
        "engines.codes",
        "engines.lines",
        "engines.ocr",
        "engines.twopass",
        "errors",
        "heif",
        "pictures",
        "text",
    }
    assert of_ours == needed


def test_columns_of_vertical_text_are_read_from_the_right():
    columns = [
        line("夜半钟声到客船", 100, 300, 150, 900),
        line("江枫渔火对愁眠", 300, 300, 350, 900),
        line("月落乌啼霜满天", 500, 300, 550, 900),
    ]

    assert ordered(line("枫桥夜泊", 100, 100), *columns, line("张继", 100, 1000)) == [
        "枫桥夜泊", "月落乌啼霜满天", "江枫渔火对愁眠", "夜半钟声到客船", "张继",
    ]  # fmt: skip


def test_two_screens_in_one_picture_are_read_one_after_the_other():
    left = [
        line("9:41", 60, 30),
        line("Notes", 60, 150),
        *(line(f"left {n}", 60, 300 + 90 * n) for n in range(9)),
    ]
    right = [
        line("9:41", 1160, 30),
        line("Tasks", 1160, 150),
        *(line(f"right {n}", 1160, 300 + 90 * n, 2000) for n in range(9)),
    ]
    low = [line("Add", 60, 2100), line("Add", 1160, 2100, 2100)]

    texts = ordered(*left, *right, *low)

    assert texts[:3] == ["9:41", "Notes", "left 0"]
    assert texts.index("left 8") < texts.index("Tasks") < texts.index("right 0")


def test_a_list_with_times_at_the_right_is_one_screen():
    rows = [(line(f"name {n}", 60, 300 + 200 * n), line("9:41", 900, 300 + 200 * n)) for n in range(8)]

    assert ordered(*(one for row in rows for one in row))[:4] == ["name 0", "9:41", "name 1", "9:41"]
