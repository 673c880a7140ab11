"""The embedded analyser through its public surface: real pictures, a real OCR process, and processes that
misbehave.
"""

import io
import json
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from PIL import Image, ImageDraw, ImageFont

from engines import prompts
from errors import AnswerUnusable, ProviderDown, ProviderRefused, Unreadable
from rules import embedded
from settings import ROOT
from tests.support import fonts, heif
from tests.support.drawing import draw

DEADLINE = 30  # seconds that a condition may take to come true on a busy machine

READY = """
import json, os, signal, sys, time
def send(body):
    sys.stdout.buffer.write(len(body).to_bytes(4, "big") + body)
    sys.stdout.buffer.flush()
def receive():
    return sys.stdin.buffer.read(int.from_bytes(sys.stdin.buffer.read(8), "big"))
"""
SAYS_READY = READY + 'send(b\'{"engine": "small"}\')\n'


@pytest.fixture(scope="module")
def model():
    """One analyser for the tests that leave its process as it was. The small model is slower, and no better
    in these tests.
    """
    model = embedded.LocalModel(ocr_model="tiny", language="en")
    yield model
    model.close()


@pytest.fixture
def make_model():
    """Analysers of a test's own."""
    made = []

    def make(**options):
        made.append(embedded.LocalModel(**{"ocr_model": "tiny", "language": "en", **options}))
        return made[-1]

    yield make
    for model in made:
        model.close()


@pytest.fixture
def child_program(tmp_path, monkeypatch):
    """Put a program in the place of the OCR process."""

    def install(source):
        program = tmp_path / "child.py"
        program.write_text(source)
        monkeypatch.setattr(embedded, "CHILD", (sys.executable, str(program)))

    return install


def analyse(model, content, **options):
    return model.analyse(io.BytesIO(content), **options)


def children(parent="self"):
    """The processes started by `parent` that have not ended, by number."""
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            number, rest = status.read_text().split(" (", 1)
        except (FileNotFoundError, ProcessLookupError):
            continue
        state, of = rest.rsplit(") ", 1)[1].split()[:2]
        if int(of) == (os.getpid() if parent == "self" else parent) and state != "Z":
            found.append(int(number))
    return set(found)


def running(number):
    """Also while threads of it still are, though it is dead itself: until then nobody can collect it."""
    try:
        dead = Path(f"/proc/{number}/stat").read_text().rsplit(") ", 1)[1][0] == "Z"
        return not dead or len(list(Path(f"/proc/{number}/task").iterdir())) > 1
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_until(condition):
    until = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.01)


def paragraph(size, lines, font_size, position=(20, 20)):
    image = Image.new("RGB", size, "white")
    font = ImageFont.load_default(size=font_size)
    for number, line in enumerate(lines):
        ImageDraw.Draw(image).text(
            (position[0], position[1] + number * font_size * 2), line, fill="black", font=font
        )
    out = io.BytesIO()
    image.save(out, "PNG")
    return out.getvalue()


def test_the_text_is_read_line_by_line(model):
    found = analyse(model, draw("Dentist appointment\nFriday 14:30\nBring the insurance card"))
    assert found.visible_text.splitlines() == [
        "Dentist appointment",
        "Friday 14:30",
        "Bring the insurance card",
    ]
    assert found.intent == "reminder"
    assert found.title == "Dentist appointment Friday 14:30: Bring the insurance card"
    assert found.summary == "Screen “Dentist appointment” with Friday 14:30 and Bring the insurance card."
    assert 0 < found.confidence <= 0.5
    assert found.usage.calls == 0
    seen = json.loads(found.raw)
    assert (seen["analyser"], seen["lines"]) == ("local/tiny", 3)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("format", "options"),
    [("JPEG", {"quality": 90}), ("WEBP", {}), ("GIF", {}), ("PNG", {"mode": "RGBA"}), ("AVIF", {})],
)
def test_every_stored_format_is_read(model, format, options):
    assert "Dentist on Friday" in analyse(model, draw(format=format, **options)).visible_text


def test_a_heic_is_read_in_its_own_size(model):
    found = analyse(model, heif.WORDS)

    assert found.visible_text.splitlines() == ["Boarding pass", "Gate 27"]
    assert (found.page.width, found.page.height) == (640, 360)


def test_a_picture_on_its_side_is_read_upright(model):
    image = Image.open(io.BytesIO(draw())).transpose(Image.Transpose.ROTATE_90)
    exif = Image.Exif()
    exif[0x0112] = 6
    out = io.BytesIO()
    image.save(out, "PNG", exif=exif)
    assert "Dentist on Friday" in analyse(model, out.getvalue()).visible_text


@pytest.mark.slow
@pytest.mark.parametrize("size", [(1, 1), (1, 3000), (3000, 1), (50, 50), (1080, 2400)])
def test_a_picture_without_text_is_an_answer_too(model, size):
    found = analyse(model, draw("", size=size))
    assert (found.visible_text, found.content_category, found.intent, found.entities) == (
        "",
        "other",
        "ignore",
        [],
    )
    assert found.summary == "No text was found in the picture."
    assert found.confidence <= 0.1


@pytest.mark.slow
def test_a_long_capture_is_read_in_full_and_nothing_twice(model):
    lines = [f"Paragraph {number} of the story" for number in range(100, 190)]
    found = analyse(model, paragraph((720, 5600), lines, 30))
    assert found.visible_text.splitlines() == lines


@pytest.mark.slow
@pytest.mark.parametrize("size", [(1920, 1080), (2560, 1440), (3840, 2160)])
def test_the_small_text_of_a_large_screen_is_found(model, size):
    lines = ["The invoice total was confirmed", "by the customer account team", "before the project deadline"]
    found = analyse(model, paragraph(size, lines, 16, position=(size[0] // 2 - 100, size[1] // 2)))
    assert found.visible_text.splitlines() == lines


def test_chinese_is_read(model):
    image = Image.new("RGB", (800, 600), "white")
    ImageDraw.Draw(image).text((40, 60), "明天上午九点开会", fill="black", font=fonts.font(fonts.CHINESE, 40))
    out = io.BytesIO()
    image.save(out, "PNG")
    assert "明天上午九点开会" in analyse(model, out.getvalue()).visible_text


def test_the_summary_is_in_the_chosen_language(make_model):
    assert analyse(make_model(language="zh"), draw("", size=(80, 80))).summary == "图片中没有找到文字。"


def test_a_reader_is_read_from_its_start_and_in_small_pieces(model):
    asked = []

    class Watched(io.BytesIO):
        def read(self, size=-1):
            asked.append(size)
            return super().read(size)

    picture = Watched(draw(size=(1080, 2400), format="PNG", compress_level=0))
    picture.seek(1000)
    assert "Dentist" in model.analyse(picture).visible_text
    assert len(asked) > 2
    assert all(0 < size <= embedded.CHUNK for size in asked)


@pytest.mark.slow
def test_threads_share_one_process_and_get_their_own_answers(model):
    analyse(model, draw())
    before = children()
    texts = [f"Ticket {number} for the train" for number in range(4171, 4179)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda text: analyse(model, draw(text)), texts))
    assert [one.visible_text for one in found] == texts
    assert children() == before


@pytest.mark.slow
def test_the_process_knows_nothing_of_the_service(make_model, monkeypatch, tmp_path):
    monkeypatch.setenv("SNAPLORE_LLM_API_KEY", "sk-secret")
    before = children()
    with open(tmp_path / "lock", "w") as lock:
        os.set_inheritable(lock.fileno(), True)
        analyse(make_model(), draw())
        (child,) = children() - before
        assert b"SNAPLORE" not in Path(f"/proc/{child}/environ").read_bytes()
        opened = [os.readlink(entry) for entry in Path(f"/proc/{child}/fd").iterdir()]
        assert str(tmp_path / "lock") not in opened


def test_the_process_is_started_by_the_first_picture_and_ends_when_idle(make_model):
    before = children()
    model = make_model(idle_seconds=0.05)
    assert children() == before
    analyse(model, draw())
    wait_until(lambda: children() == before)
    assert "Dentist" in analyse(model, draw()).visible_text


@pytest.mark.slow
def test_close_ends_the_process_and_no_other_is_started(make_model):
    before = children()
    model = make_model()
    analyse(model, draw())
    assert children() != before
    model.close()
    assert children() == before
    with pytest.raises(ProviderDown):
        analyse(model, draw())


def test_close_interrupts_a_picture_without_blaming_it(make_model, child_program, tmp_path):
    child_program(SAYS_READY + f"receive()\nopen({str(tmp_path / 'reading')!r}, 'w').close()\ntime.sleep(60)")
    model = make_model()
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(analyse, model, draw())
        wait_until((tmp_path / "reading").exists)
        model.close()
        with pytest.raises(ProviderDown):
            answer.result(DEADLINE)


@pytest.mark.slow
def test_nothing_is_left_when_the_service_is_killed():
    program = (
        "import io, sys, threading\nfrom rules import embedded\nfrom tests.support.drawing import draw\n"
        "model = embedded.LocalModel(ocr_model='tiny', language='en')\nmodel.analyse(io.BytesIO(draw()))\n"
        "print('analysed', flush=True)\nthreading.Event().wait()"
    )
    with subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE) as service:
        assert service.stdout.readline() == b"analysed\n"
        (child,) = children(service.pid)
        service.kill()
    wait_until(lambda: not running(child))


@pytest.mark.slow
def test_a_process_that_was_killed_is_replaced(make_model):
    before = children()
    model = make_model()
    analyse(model, draw())
    (child,) = children() - before
    os.kill(child, signal.SIGKILL)
    wait_until(lambda: not running(child))
    assert "Dentist" in analyse(model, draw()).visible_text
    assert child not in children()


@pytest.mark.parametrize(
    "content", [b"", b"GIF89a", b"<svg/>", draw()[:2000]], ids=["empty", "header", "svg", "cut off"]
)
def test_a_picture_that_cannot_be_decoded_fails_alone(model, content):
    analyse(model, draw())
    before = children()
    with pytest.raises(AnswerUnusable, match=r"^The picture cannot be read: [^/]*\.$"):
        analyse(model, content)
    assert children() == before


@pytest.mark.slow
@pytest.mark.parametrize(
    "misbehaviour",
    [
        "receive(); sys.exit(0)",
        "sys.exit(3)",
        "receive(); os.kill(os.getpid(), signal.SIGSEGV)",
        "receive(); send(b'no JSON')",
        "receive(); send(b'{\"lines\": [1, 2]}')",
        "receive(); sys.stdout.buffer.write(b'\\xff' * 4000)",
        "receive(); time.sleep(60)",
        "time.sleep(60)",
        "receive()\nwhile True: send(b''); time.sleep(0.05)",
        "receive(); sys.stdout.buffer.write(b'\\0\\0\\1\\0' + b'{'); sys.stdout.buffer.flush()\n"
        "time.sleep(60)",
    ],
)
def test_a_process_that_fails_costs_one_picture(make_model, child_program, misbehaviour):
    child_program(SAYS_READY + misbehaviour)
    before = children()
    model = make_model(time_limit=2)
    with pytest.raises(AnswerUnusable):
        analyse(model, draw(size=(1080, 2400), compress_level=0))
    assert children() == before
    child_program(SAYS_READY + "receive(); send(b'{}')")
    assert analyse(model, draw()).visible_text == ""


@pytest.mark.slow
def test_a_long_capture_may_take_longer_than_the_limit_while_the_process_shows_life(
    make_model, child_program
):
    child_program(
        SAYS_READY + "receive()\nfor _ in range(14): send(b''); time.sleep(0.5)\nsend(b'{}')\ntime.sleep(60)"
    )
    assert analyse(make_model(time_limit=5), draw()).visible_text == ""


# A child that reads a phone's screen with `tiny` alone, after `SLOW` seconds: an eighth of the limit is slow.
BY_SIZE = (
    READY
    + """
size = sys.argv[1]
send(json.dumps({"engine": size}).encode())
while receive():
    if size != "tiny":
        time.sleep(60)
    time.sleep(SLOW)
    send(json.dumps({"width": 1080, "height": 2400}).encode())
"""
)


@pytest.mark.slow
def test_on_a_machine_that_is_too_slow_for_a_model_the_fast_one_reads(make_model, child_program, caplog):
    child_program("SLOW = 0.3\n" + BY_SIZE)
    model = make_model(ocr_model="both", time_limit=2)
    with pytest.raises(
        AnswerUnusable, match=r"model `both`.* set SNAPLORE_OCR_MODEL=tiny; .*`tiny` reads\.$"
    ):
        analyse(model, draw())
    assert "SNAPLORE_OCR_MODEL=tiny" in caplog.text
    for _ in range(2):
        assert model.read(io.BytesIO(draw()))[1] == "tiny"


@pytest.mark.slow
def test_a_picture_that_takes_too_long_on_a_fast_machine_does_not_change_the_model(make_model, child_program):
    child_program("SLOW = 0\n" + BY_SIZE)
    model = make_model(ocr_model="both", time_limit=1)
    with pytest.raises(AnswerUnusable, match="too long"):
        analyse(model, draw())
    assert model.read(io.BytesIO(draw()))[1] == "tiny"  # so fast that the picture was the cause
    child_program(
        READY + "send(b'{\"engine\": \"both\"}')\nreceive(); send(b'{}')\nreceive(); time.sleep(60)"
    )
    assert model.read(io.BytesIO(draw()))[1] == "both"
    with pytest.raises(AnswerUnusable, match="took too long"):
        analyse(model, draw())
    child_program(READY + "send(b'{\"engine\": \"both\"}')\nreceive(); send(b'{}')")
    assert model.read(io.BytesIO(draw()))[1] == "both"


@pytest.mark.slow
def test_a_machine_that_is_too_slow_for_every_model_is_refused_until_a_picture_is_read(
    make_model, child_program
):
    child_program("SLOW = 60\n" + BY_SIZE)
    model = make_model(ocr_model="both", time_limit=2)  # a child may take a second to start
    for text in ("one", "two", "three", "three"):  # the first one is too slow for `both`
        with pytest.raises(AnswerUnusable):
            analyse(model, draw(text))
    for text in ("four", "two"):
        with pytest.raises(ProviderRefused, match=r"too slow.* analysed again"):
            analyse(model, draw(text))
    child_program(READY + "send(b'{\"engine\": \"tiny\"}')\nreceive(); send(b'{}')")  # the machine has time
    assert model.read(io.BytesIO(draw("four")))[1] == "tiny"
    child_program("SLOW = 60\n" + BY_SIZE)
    with pytest.raises(AnswerUnusable, match="too long"):
        analyse(model, draw("five"))


def test_two_processes_read_two_pictures_at_once(make_model, child_program, tmp_path):
    child_program(
        SAYS_READY + f"receive()\nopen({str(tmp_path)!r} + f'/{{os.getpid()}}', 'w').close()\n"
        f"while len(os.listdir({str(tmp_path)!r})) < 3: time.sleep(0.01)\nsend(b'{{}}')\ntime.sleep(60)"
    )  # each waits for the other; the third entry is the program
    model = make_model(readers=2)
    with ThreadPoolExecutor(2) as pool:
        answers = [pool.submit(analyse, model, draw()) for _ in range(2)]
        assert [answer.result(DEADLINE).visible_text for answer in answers] == ["", ""]


@pytest.mark.parametrize(
    ("cores", "gigabytes", "readers"),
    [(2, 8, 2), (1, 8, 1), (2, 2, 1)],
    ids=["room", "one core", "little memory"],
)
def test_two_read_where_the_machine_has_room(monkeypatch, cores, gigabytes, readers):
    pages = gigabytes * 1024**3 // os.sysconf("SC_PAGE_SIZE")
    sizes = {"SC_PHYS_PAGES": pages, "SC_PAGE_SIZE": os.sysconf("SC_PAGE_SIZE")}
    monkeypatch.setattr(os, "sysconf", sizes.get)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(cores)))
    monkeypatch.setattr(Path, "read_text", lambda path: "0::/unit\n" if path.name == "cgroup" else "max\n")
    assert embedded.fitting_readers() == readers


def test_one_reads_where_a_control_group_leaves_little_memory(monkeypatch):
    limits = {"/proc/self/cgroup": "0::/system.slice/snaplore.service\n",
              "/sys/fs/cgroup/system.slice/snaplore.service/memory.max": "max\n",
              "/sys/fs/cgroup/system.slice/memory.max": f"{1024**3}\n"}  # fmt: skip
    monkeypatch.setattr(os, "sysconf", lambda name: 4096**2)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 1})
    monkeypatch.setattr(Path, "read_text", lambda path: limits.get(str(path), "max"))
    assert embedded.fitting_readers() == 1


def test_the_models_are_loaded_before_the_first_picture_is_read(make_model, child_program):
    child_program(SAYS_READY + "while receive(): send(b'{}')")
    before = children()
    model = make_model(readers=2)
    model.prepare()
    (child,) = children() - before
    analyse(model, draw())
    assert children() - before == {child}


@pytest.mark.slow
def test_an_error_of_the_picture_is_not_hidden(make_model):
    class Sealed(io.BytesIO):
        def read(self, size=-1):
            raise Unreadable("The stored picture fails its authentication.")

    model = make_model()
    with pytest.raises(Unreadable):
        model.analyse(Sealed(draw()))
    assert "Dentist" in analyse(model, draw()).visible_text


def test_a_machine_without_an_engine_is_told_so(make_model, child_program):
    child_program(
        READY
        + """send(b'{"problem": "faster-paddle cannot be loaded (ImportError), """
        + """and Tesseract is not installed"}')"""
    )
    with pytest.raises(ProviderRefused, match="Tesseract is not installed"):
        analyse(make_model(), draw())


def test_an_old_processor_gets_tesseract_where_it_is_installed(make_model, child_program, monkeypatch):
    child_program(
        READY + "if sys.argv[1]: os.kill(os.getpid(), signal.SIGILL)\n"
        """send(b'{"engine": "tesseract"}'); receive()\n"""
        """send(b'{"width": 9, "height": 9, "lines": [["Dentist", 0.9, 0, 0, 9, 9]]}')"""
    )
    monkeypatch.setattr(embedded.shutil, "which", lambda name: f"/usr/bin/{name}")
    found = analyse(make_model(), draw())
    assert (found.visible_text, json.loads(found.raw)["analyser"]) == ("Dentist", "local/tesseract")
    monkeypatch.setattr(embedded.shutil, "which", lambda name: None)
    with pytest.raises(ProviderRefused, match="processor"):
        analyse(make_model(), draw())


def test_a_start_that_fails_is_tried_again_later(make_model, child_program):
    child_program("raise SystemExit(1)")
    model = make_model()
    with pytest.raises(ProviderDown):
        analyse(model, draw())
    child_program(SAYS_READY + "receive(); send(b'{}')")
    assert analyse(model, draw()).visible_text == ""


def test_a_memory_is_told_as_it_was_given(make_model):
    asked = [{"role": "user", "content": "What about peanuts?"}]

    answer = make_model().complete(asked, remembered=["Is allergic to peanuts.", "Likes jazz."])

    assert answer.text == "I remember:\n\n- Is allergic to peanuts."


def test_what_a_skill_writes_is_not_taken_for_a_memory(make_model):
    skill = f'{prompts.REMEMBERED}\nfirst line\n["peanuts"]\nlast line'
    asked = [{"role": "system", "content": skill}, {"role": "user", "content": "What about peanuts?"}]

    assert "remember" not in make_model().complete(asked).text


def test_the_service_never_loads_the_engine(model):
    analyse(model, draw())
    assert "faster_paddle" not in sys.modules


@pytest.mark.slow
def test_no_thread_is_left_after_close(make_model):
    before = threading.active_count()
    model = make_model()
    analyse(model, draw())
    model.close()
    wait_until(lambda: threading.active_count() <= before)
