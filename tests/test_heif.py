"""HEIC and AVIF: decoded in a child process with few rights, upright and in plain colours. Hostile files, and
a child that fails in any way, cost nobody but the one upload.
"""

import io
import random
import struct
import subprocess
import sys
import threading
from datetime import datetime

import pytest
from PIL import Image, ImageCms

import heif as decoder
import pictures
from errors import Unavailable, UnsupportedImage
from settings import ROOT
from tests.support import heif
from tests.support.client import detail
from tests.support.drawing import draw

RED, BLUE, WHITE = (255, 0, 0), (0, 0, 255), (255, 255, 255)


def examine(content: bytes) -> pictures.Examined:
    return pictures.examine(io.BytesIO(content))


def corners(content: bytes) -> tuple[str, ...]:
    """The colours at the top left, top right, bottom left and bottom right of the decoded picture."""
    image = pictures.decode(io.BytesIO(content))
    right, bottom = image.width - 4, image.height - 4
    names = {RED: "red", BLUE: "blue", WHITE: "white"}
    found = [image.getpixel(place) for place in ((3, 3), (right, 3), (3, bottom), (right, bottom))]
    return tuple(
        next(
            (
                name
                for colour, name in names.items()
                if all(abs(a - b) < 9 for a, b in zip(pixel, colour, strict=True))
            ),
            "?",
        )
        for pixel in found
    )


def avif(image=None, **options) -> bytes:
    out = io.BytesIO()
    if image is None:
        image = Image.new("RGB", (300, 200), "white")
        image.paste("red", (0, 0, 150, 200))
        image.paste("blue", (0, 100, 150, 200))
    image.save(out, "AVIF", speed=10, **options)
    return out.getvalue()


UPRIGHT = ("red", "white", "blue", "white")
COUNTER_CLOCKWISE = ("white", "white", "red", "blue")
MIRRORED = ("white", "red", "white", "blue")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("content", "size", "shown"),
    [
        (heif.heic(), (64, 64), UPRIGHT),
        (heif.heic(columns=3, rows=2), (192, 128), UPRIGHT),
        (heif.heic([heif.turned(1)], columns=3, rows=2), (128, 192), COUNTER_CLOCKWISE),
        (heif.heic([heif.mirrored(1)]), (64, 64), MIRRORED),
        (heif.heic(brands=(b"mif1", b"miaf", b"heic")), (64, 64), UPRIGHT),
        (heif.heic(brands=(b"msf1", b"hevc", b"heic")), (64, 64), UPRIGHT),
    ],
    ids=["one tile", "a grid", "a grid, turned", "mirrored", "a general brand", "the brand of a sequence"],
)
def test_a_heic_is_shown_as_its_container_says(content, size, shown):
    found = examine(content)

    assert (found.mime_type, found.width, found.height) == ("image/heic", *size)
    assert Image.open(io.BytesIO(found.thumbnail)).size == size
    assert corners(content) == shown


@pytest.mark.slow
def test_the_same_picture_in_another_format_has_the_same_perceptual_hash():
    image, png = pictures.decode(io.BytesIO(heif.heic(columns=3, rows=6))), io.BytesIO()
    image.save(png, "PNG")

    hashes = {examine(content).perceptual_hash for content in (heif.heic(columns=3, rows=6), png.getvalue())}
    assert len(hashes) == 1
    assert any(hashes.pop())


@pytest.mark.slow
def test_an_avif_is_shown_as_its_container_says():
    turned = Image.Exif()
    turned[0x0112] = 8
    content = avif(exif=turned)

    assert examine(content)[:3] == ("image/avif", 200, 300)
    assert corners(content) == COUNTER_CLOCKWISE


@pytest.mark.slow
def test_of_several_pictures_the_first_is_read():
    frames = [Image.new("RGB", (80, 60), colour) for colour in ("red", "blue", "blue")]
    content = avif(frames[0], save_all=True, append_images=frames[1:])

    assert examine(content).width == 80
    assert set(corners(content)) == {"red"}


@pytest.mark.parametrize("content", [heif.TRANSPARENT, avif(Image.new("RGBA", (300, 200), (10, 20, 30, 0)))])
def test_transparency_ends_on_white(content):
    assert Image.open(io.BytesIO(examine(content).thumbnail)).getpixel((290, 100)) == WHITE


def test_ten_bits_keep_their_brightness():
    half, red = (pictures.decode(io.BytesIO(heif.TEN_BITS)).getpixel((x, 100)) for x in (20, 280))

    assert all(abs(value - 128) < 4 for value in half)
    assert all(abs(value - wanted) < 9 for value, wanted in zip(red, RED, strict=True))


@pytest.mark.slow
def test_a_picture_for_hdr_screens_is_neither_pale_nor_dark():
    """White of SDR is at 58 % of the signal of PQ, and becomes white again."""
    nclx = b"colrnclx" + struct.pack(">HHHB", 9, 16, 9, 0x80)
    content = avif(Image.new("RGB", (64, 64), (148, 148, 148)))
    place = content.index(b"colrnclx")
    as_pq = content[:place] + nclx + content[place + len(nclx) :]

    assert pictures.decode(io.BytesIO(content)).getpixel((9, 9))[0] < 160
    assert min(pictures.decode(io.BytesIO(as_pq)).getpixel((9, 9))) > 245


@pytest.mark.slow
def test_the_profile_of_a_wide_screen_is_turned_into_srgb():
    srgb = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    assert corners(avif(icc_profile=srgb)) == UPRIGHT
    assert corners(avif(icc_profile=b"no profile" * 20)) == UPRIGHT


@pytest.mark.slow
def test_the_time_is_read_and_no_metadata_leaves():
    exif = Image.Exif()
    exif[0x010F] = "SecretCameraMaker"
    exif.get_ifd(0x8769).update({0x9003: "2024:03:01 12:00:00", 0x9011: "+02:00"})
    content = avif(exif=exif.tobytes())

    assert pictures.taken_at(io.BytesIO(content)) == datetime(2024, 3, 1, 10)
    assert pictures.taken_at(io.BytesIO(heif.WORDS)) is None
    assert pictures.taken_at(io.BytesIO(heif.WORDS[:300])) is None
    assert b"SecretCameraMaker" in content
    for made in (pictures.as_jpeg, pictures.for_model):
        assert b"SecretCameraMaker" not in made(io.BytesIO(content))


def claiming(content: bytes, width: int, height: int) -> bytes:
    """`content` with another size in its header."""
    place = content.index(b"ispe") + 8
    return content[:place] + struct.pack(">II", width, height) + content[place + 8 :]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (heif.heic(size=(8_000, 7_000)), "50 megapixels"),
        (claiming(avif(), 8_000, 7_000), "50 megapixels"),
        (heif.heic(size=(7_000, 7_000)), "damaged"),
        (heif.heic(size=(32, 32)), "damaged"),
        (heif.heic(size=(2**31, 2**31)), "damaged"),
        (claiming(avif(), 2**32 - 1, 2**32 - 1), "damaged"),
        (heif.heic(columns=3, rows=2, whole=(1_800, 1_000)), "damaged"),
        (heif.heic(columns=255, rows=255, whole=(64, 64)), "damaged"),
        (heif.derived_from_itself(), "damaged"),
        (heif.heic(brands=(b"avif", b"mif1")), "damaged"),
        (heif.heic(tile=b"\0" * 58), "damaged"),
        (heif.heic(brands=(b"mif1", b"miaf")), "not a JPEG"),
        (b"\0\0\0\x18ftypisom\0\0\0\0isomavc1" + bytes(1_000), "not a JPEG"),
    ],
)
def test_a_hostile_file_is_refused(content, reason):
    with pytest.raises(UnsupportedImage, match=reason):
        examine(content)


def test_a_file_that_crashes_the_decoder_costs_nobody_else():
    """One byte, the depth of the colours, makes libde265 of pi-heif 1.4.0 read outside of its memory."""
    crashing = bytearray(heif.WORDS)
    crashing[197] = 255

    with pytest.raises(UnsupportedImage):
        examine(bytes(crashing))
    assert examine(heif.WORDS).width == 640


def mutated(whole: bytes, chance: random.Random) -> bytes:
    """`whole` with flipped bits, a wrong size of a box, a part twice, zeros, another end, or none."""
    content, end = bytearray(whole), len(whole)
    place = chance.randrange(12, end - 64)
    match chance.randrange(6):
        case 0:
            for _ in range(chance.choice((1, 3, 20))):
                content[chance.randrange(12, end)] ^= 1 << chance.randrange(8)
        case 1:
            named = chance.choice((b"meta", b"iloc", b"ispe", b"hvcC", b"mdat", b"ipma", b"iprp", b"infe"))
            size = content.find(named) - 4
            content[size : size + 4] = chance.choice((0, 1, 7, 2**31 - 1, 2**32 - 1)).to_bytes(4, "big")
        case 2:
            content[place:place] = content[place : place + 64] * chance.choice((1, 5))
        case 3:
            content[place : place + 64] = bytes(64)
        case 4:
            data = content.find(b"mdat") + 4
            content[data:] = content[data : data + 20] + chance.randbytes(end - data - 20)
        case _:
            del content[place:]
    return bytes(content)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_mutated_files_are_stored_whole_or_refused(client, seed):
    chance = random.Random(seed)
    wholes = [heif.WORDS, heif.TRANSPARENT, heif.TEN_BITS, heif.heic([heif.turned(1)], columns=3, rows=2)]
    stored = refused = 0
    for whole in wholes * 3:
        content = mutated(whole, chance)
        answer = client.upload(content, "IMG_0001.HEIC")
        if answer.status_code != 200:
            assert "file: " in detail(answer, 400)
            refused += 1
            continue
        stored += 1
        photo = f"/api/photos/{answer.json['id']}"
        assert client.get(f"{photo}/image").data == content
        shown = Image.open(io.BytesIO(client.get(f"{photo}/image?format=jpeg").data))
        assert shown.width * shown.height <= pictures.MAX_PIXELS
        assert client.get(f"{photo}/thumbnail").status_code == 200

    assert stored
    assert refused
    assert client.upload(heif.WORDS + bytes(1), "IMG_0002.HEIC").status_code == 200


# What a child can do wrong, as a program in its place. Each reads the picture first.
TAKE = "import sys, os, time; source = sys.stdin.buffer; source.read(int.from_bytes(source.read(8), 'big'));"
GOOD_HEADER = r"""b'\0\0\0\x18{"width":64,"height":64}'"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "program",
    [
        "raise SystemExit(1)",
        f"{TAKE} os.abort()",
        f"{TAKE} os.write(1, bytes(4))",
        rf"{TAKE} os.write(1, b'\xff' * 1000)",
        rf"{TAKE} os.write(1, b'\0\0\0\x04null')",
        rf"""{TAKE} os.write(1, b'\0\0\0\x18{{"width":-1,"height":64}}')""",
        f"{TAKE} os.write(1, {GOOD_HEADER}); source.read(4)",
        f"{TAKE} os.write(1, {GOOD_HEADER}); source.read(4); os.write(1, {GOOD_HEADER} + b'abc')",
        rf"""{TAKE} os.write(1, {GOOD_HEADER}); source.read(4);"""
        r""" os.write(1, b'\0\0\0\x1c{"width":6400,"height":6400}' + bytes(1000))""",
    ],
)
def test_a_child_that_fails_costs_one_picture(monkeypatch, program):
    with monkeypatch.context() as patched:
        patched.setattr(decoder, "CHILD", (sys.executable, "-c", program))
        with pytest.raises(UnsupportedImage, match="the decoder failed"):
            examine(heif.heic())
    assert examine(heif.heic()).width == 64


def test_a_child_that_hangs_is_ended_and_the_picture_may_come_again(monkeypatch):
    monkeypatch.setattr(decoder, "CHILD", (sys.executable, "-c", f"{TAKE} time.sleep(3600)"))
    monkeypatch.setattr(decoder, "SECONDS", 0.5)
    with pytest.raises(Unavailable, match="took too long") as refused:
        examine(heif.heic())
    assert refused.value.retry_after > 0


def test_a_child_that_the_kernel_kills_for_its_memory_costs_no_picture(monkeypatch):
    monkeypatch.setattr(decoder, "CHILD", (sys.executable, "-c", f"{TAKE} os.kill(os.getpid(), 9)"))
    with pytest.raises(Unavailable, match="no memory"):
        examine(heif.heic())


@pytest.mark.slow
def test_a_child_that_only_computes_is_ended_by_the_processors_limit(monkeypatch):
    program = f"import heif; heif.CPU_SECONDS = 1; heif._give_up_rights(); {TAKE}\nwhile True: pass"
    monkeypatch.setattr(decoder, "CHILD", (sys.executable, "-c", program))
    with pytest.raises(UnsupportedImage, match="takes too long"):
        examine(heif.heic())


def test_a_system_without_another_process_asks_to_come_again(monkeypatch):
    monkeypatch.setattr(decoder, "CHILD", ("/nonexistent/python",))
    with pytest.raises(Unavailable, match="cannot be decoded at the moment"):
        examine(heif.heic())


def test_an_installation_without_a_decoder_says_so(monkeypatch):
    program = "import sys; sys.modules['pi_heif'] = None; import pictures; import heif;"
    program += " heif.serve('HEIC', pictures._rendered)"
    monkeypatch.setattr(decoder, "CHILD", (sys.executable, "-c", program))
    with pytest.raises(UnsupportedImage, match="no decoder"):
        examine(heif.heic())


@pytest.mark.slow
def test_while_it_decodes_the_child_can_open_nothing_and_take_little():
    program = """
import os, socket, sys, pictures
import heif
calls = []

def rendered(image, side):
    calls.append(side)
    if len(calls) > 3:  # after the rehearsal
        for name, act in {
            "file": lambda: open("/etc/passwd"), "socket": socket.socket, "process": lambda: os.popen("id"),
            "memory": lambda: bytearray(2_000_000_000),
        }.items():
            try:
                act()
            except (OSError, MemoryError) as problem:
                print(name, file=sys.stderr)
    return pictures._rendered(image, side)

heif.serve("HEIC", rendered)
"""
    content = heif.heic()
    done = subprocess.run(
        [sys.executable, "-c", program],
        input=len(content).to_bytes(8, "big") + content + (32).to_bytes(4, "big"),
        cwd=ROOT,
        env=decoder.ENVIRONMENT,
        capture_output=True,
        check=True,
    )
    assert done.stderr.split() == [b"file", b"socket", b"process", b"memory"]
    assert len(done.stdout) > 32 * 32 * 3  # and the picture is decoded all the same


def test_only_a_few_are_decoded_at_once(monkeypatch):
    monkeypatch.setattr(pictures, "LARGE_PATIENCE", 0.05)
    turns = [decoder._turns.acquire() for _ in range(decoder.CHILDREN)]
    try:
        with pytest.raises(Unavailable, match="Other pictures are being read"):
            examine(heif.heic())
        waiting = threading.Thread(target=pictures.parts_for_model, args=(io.BytesIO(heif.heic()),))
        waiting.start()
        waiting.join(0.2)
        assert waiting.is_alive()
    finally:
        for _ in turns:
            decoder._turns.release()
    waiting.join(90)
    assert not waiting.is_alive()


def test_an_error_of_reading_the_stored_file_is_passed_on():
    class Damaged(io.BytesIO):
        def read(self, size=-1):
            if self.tell() >= decoder.HEAD:
                raise OSError("damaged on the disk")
            return super().read(min(size, decoder.HEAD))

    with pytest.raises(OSError, match="damaged on the disk"):
        pictures.examine(Damaged(heif.WORDS))


@pytest.mark.slow
def test_the_service_never_loads_the_decoder(client):
    answer = client.upload(heif.WORDS, "IMG_0001.HEIC")

    assert answer.json["filename"] == "IMG_0001.HEIC"
    assert "pi_heif" not in sys.modules


@pytest.mark.parametrize(
    ("content", "mime_type"), [(heif.WORDS, "image/heic"), (draw(format="AVIF"), "image/avif")]
)
def test_the_original_is_kept_and_a_jpeg_of_it_is_made_on_request(client, content, mime_type):
    photo_id = client.upload(content, "shot").json["id"]
    photo = client.get(f"/api/photos/{photo_id}").json
    original = client.get(f"/api/photos/{photo_id}/image")
    jpeg = client.get(f"/api/photos/{photo_id}/image?format=jpeg")

    assert photo["mime_type"] == original.mimetype == mime_type
    assert original.data == content
    assert jpeg.mimetype == "image/jpeg"
    assert Image.open(io.BytesIO(jpeg.data)).size == (photo["width"], photo["height"])
    assert jpeg.headers["ETag"] != original.headers["ETag"]
    again = client.get(
        f"/api/photos/{photo_id}/image?format=jpeg", headers={"If-None-Match": jpeg.headers["ETag"]}
    )
    assert (again.status_code, again.data) == (304, b"")


def test_a_picture_that_every_browser_shows_is_not_converted(client, make_photo):
    content = make_photo()
    photo_id = client.upload(content).json["id"]

    assert client.get(f"/api/photos/{photo_id}/image?format=jpeg").data == content
    assert client.get(f"/api/photos/{photo_id}/image?format=gif").status_code == 400


@pytest.mark.slow
def test_a_heic_is_attached_to_a_chat_as_a_jpeg(client):
    form = {"message": "What does it say?", "file": (io.BytesIO(heif.WORDS), "IMG_0001.HEIC")}
    sent = client.post("/api/chat/send-with-file", data=form)
    conversation = f"/api/chat/conversations/{sent.json['conversation_id']}/messages"
    asked = client.get(conversation).json["messages"][0]

    attached = client.get(f"{conversation}/{asked['id']}/attachment")
    assert attached.mimetype == "image/jpeg"
    assert Image.open(io.BytesIO(attached.data)).size == (640, 360)
