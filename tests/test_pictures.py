"""Hostile and unusual pictures: one is accepted if it decodes in full, and its copies are small and clean."""

import functools
import io
import struct
import threading
import zlib
from datetime import datetime

import pytest
from PIL import Image, ImageDraw, ImageFile

import pictures
from errors import Unavailable, UnsupportedImage
from tests.support import heif
from tests.support.drawing import draw


def examine(content: bytes) -> pictures.Examined:
    return pictures.examine(io.BytesIO(content))


def encode(image: Image.Image, format: str, **options) -> bytes:
    out = io.BytesIO()
    image.save(out, format, **options)
    return out.getvalue()


def opened(content: bytes) -> Image.Image:
    return Image.open(io.BytesIO(content))


def png_claiming(width: int, height: int, frames: int = 1) -> bytes:
    """A PNG of a few bytes whose header claims this size, and so many frames."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + (chunk(b"acTL", struct.pack(">II", frames, 0)) if frames > 1 else b"")
        + chunk(b"IDAT", zlib.compress(b"\0" * 100))
        + chunk(b"IEND", b"")
    )


def gif_claiming(width: int, height: int, frames: int) -> bytes:
    """A GIF whose frames of one pixel each are shown on a canvas of this size."""
    frame = b"," + struct.pack("<HHHHB", 0, 0, 1, 1, 0) + b"\x02\x02\x44\x01\x00"
    return b"GIF89a" + struct.pack("<HHBBB", width, height, 0x80, 0, 0) + bytes(6) + frame * frames + b";"


@pytest.mark.parametrize(
    ("format", "mime_type"),
    [
        *(("PNG", "image/png"), ("JPEG", "image/jpeg"), ("WEBP", "image/webp"), ("GIF", "image/gif")),
        ("AVIF", "image/avif"),
    ],
)
def test_the_formats_are_recognised_by_their_bytes(format, mime_type):
    found = examine(draw(format=format, size=(300, 700)))

    assert (found.mime_type, found.width, found.height) == (mime_type, 300, 700)


@pytest.mark.parametrize("format", ["TIFF", "BMP", "ICO", "PPM"])
def test_other_picture_formats_are_refused(format):
    with pytest.raises(UnsupportedImage, match="not a JPEG, PNG, WebP, GIF, HEIC or AVIF"):
        examine(draw(format=format, size=(64, 64)))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\0",
        b"<!doctype html><script>alert(1)</script>",
        b'<svg xmlns="http://www.w3.org/2000/svg"/>',
        b"%PDF-1.7\n",
        b"\x89PNG\r\n\x1a\n",
        b"GIF89a",
        b"\xff\xd8\xff",
        b"\0\0\0\x18ftypheic\0\0\0\0mif1heic",
        b"\0\0\0\x18ftypavif\0\0\0\0mif1avif",
    ],
)
def test_what_is_no_picture_is_refused(content):
    with pytest.raises(UnsupportedImage):
        examine(content)


# The last two bytes of a GIF only end its blocks and the file: without them its picture is still whole.
@pytest.mark.parametrize(
    ("format", "part"),
    [
        *((f, p) for f in ("PNG", "JPEG", "WEBP") for p in (0.1, 0.5, 0.9, -1, -2)),
        *((f, p) for f in ("GIF", "HEIC", "AVIF") for p in (0.1, 0.5, 0.9)),
        ("HEIC", -1),
    ],
)
def test_a_picture_that_is_cut_off_anywhere_is_refused(format, part):
    whole = heif.WORDS if format == "HEIC" else draw(format=format)
    cut = whole[:part] if isinstance(part, int) else whole[: int(len(whole) * part)]

    with pytest.raises(UnsupportedImage):
        examine(cut)


@pytest.mark.parametrize("format", ["GIF", "WEBP", "PNG"])
def test_an_animation_is_accepted_whole_and_refused_when_a_late_frame_is_cut_off(format):
    frames = [Image.effect_noise((80, 60), 90).convert("RGB") for _ in range(6)]
    whole = encode(frames[0], format, save_all=True, append_images=frames[1:])

    assert examine(whole).width == 80
    with pytest.raises(UnsupportedImage):
        examine(whole[: int(len(whole) * 0.8)])


@pytest.mark.parametrize("format", ["GIF", "WEBP", "PNG"])
def test_an_animation_is_limited_by_the_pixels_of_all_its_frames(format, monkeypatch):
    frames = [Image.effect_noise((80, 60), 90).convert("RGB") for _ in range(6)]
    whole = encode(frames[0], format, save_all=True, append_images=frames[1:])

    monkeypatch.setattr(pictures, "MAX_ANIMATION_PIXELS", 6 * 80 * 60)
    assert examine(whole).width == 80
    monkeypatch.setattr(pictures, "MAX_ANIMATION_PIXELS", 6 * 80 * 60 - 1)
    for read in (pictures.examine, pictures.for_model, pictures.decode):
        with pytest.raises(UnsupportedImage, match="all frames together"):
            read(io.BytesIO(whole))


@pytest.mark.parametrize(
    ("size", "frames", "limit"),
    [
        ((3_990, 3_990), 60, "250 megapixels in all frames together"),
        # Five of them took 700 MB to decode.
        ((7_070, 7_070), 5, "16 megapixels in each frame of an animation"),
        ((4_001, 4_000), 2, "16 megapixels in each frame of an animation"),
    ],
)
@pytest.mark.parametrize("claiming", [gif_claiming, png_claiming])
def test_too_large_an_animation_is_refused_before_a_frame_is_decoded(
    claiming, size, frames, limit, monkeypatch
):
    def load(self):
        raise AssertionError("a frame was decoded")

    monkeypatch.setattr(ImageFile.ImageFile, "load", load)
    with pytest.raises(UnsupportedImage, match=f"^file: more than {limit}$"):
        examine(claiming(*size, frames))


@pytest.mark.slow
def test_a_large_picture_that_waits_too_long_for_another_is_refused_for_now(monkeypatch):
    monkeypatch.setattr(pictures, "LARGE_PATIENCE", 0.05)
    large, small = draw(size=(4_000, 3_000)), draw(size=(300, 400))
    with pictures._one_large_picture:
        at_once = functools.partial(pictures.decode, patience=0.05)
        for read in (pictures.examine, pictures.for_model, at_once):
            with pytest.raises(Unavailable, match="Another large picture is being read") as refused:
                read(io.BytesIO(large))
            assert refused.value.retry_after > 0
        assert examine(small).width == 300
        waiting = threading.Thread(target=pictures.parts_for_model, args=(io.BytesIO(large),))
        waiting.start()
        waiting.join(0.3)
        assert waiting.is_alive()
    waiting.join(90)
    assert not waiting.is_alive()
    assert examine(large).width == 4_000


def test_more_than_a_thousand_frames_are_refused():
    frames = [Image.new("P", (2, 2), number % 250) for number in range(1_001)]

    with pytest.raises(UnsupportedImage, match="1000 frames"):
        examine(encode(frames[0], "GIF", save_all=True, append_images=frames[1:], optimize=False))


def test_a_decompression_bomb_is_refused_by_its_header():
    with pytest.raises(UnsupportedImage, match="50 megapixels"):
        examine(png_claiming(8_000, 7_000))
    with pytest.raises(UnsupportedImage, match="megapixels"):
        examine(png_claiming(60_000, 60_000))


@pytest.mark.slow
def test_a_jpeg_may_have_more_pixels_because_it_is_decoded_at_a_fraction():
    assert examine(encode(Image.new("L", (9_000, 8_000)), "JPEG")).width == 9_000
    with pytest.raises(UnsupportedImage, match="50 megapixels"):
        examine(encode(Image.new("L", (9_000, 8_000)), "JPEG", progressive=True))
    with pytest.raises(UnsupportedImage, match="120 megapixels"):
        examine(encode(Image.new("L", (12_000, 11_000)), "JPEG"))


@pytest.mark.parametrize("mode", ["CMYK", "L", "YCbCr"])
def test_jpegs_of_every_colour_model_get_a_thumbnail(mode):
    thumbnail = opened(examine(draw(mode=mode, format="JPEG")).thumbnail)

    assert (thumbnail.format, thumbnail.mode) == ("JPEG", "RGB")
    assert thumbnail.getpixel((5, 5))[0] > 240


def test_a_grey_picture_of_sixteen_bits_keeps_its_brightness():
    thumbnail = opened(examine(encode(Image.new("I;16", (300, 200), 0x8000), "PNG")).thumbnail)

    assert abs(thumbnail.getpixel((9, 9))[0] - 128) < 4


@pytest.mark.parametrize("mode", ["P", "1", "LA", "RGBA", "PA"])
def test_palettes_and_transparency_end_on_white(mode):
    source = (
        Image.new("RGBA", (300, 200), (10, 20, 30, 0))
        if mode in ("RGBA", "LA", "PA", "P")
        else Image.new("1", (300, 200), 1)
    )
    content = encode(source.quantize() if mode in ("P", "PA") else source.convert(mode), "PNG")

    assert opened(examine(content).thumbnail).getpixel((9, 9)) == (255, 255, 255)


def test_the_orientation_in_the_metadata_is_applied():
    exif = Image.Exif()
    exif[0x0112] = 6  # upright after a rotation by 90° clockwise
    source = Image.new("RGB", (400, 100), "white")
    source.paste("red", (0, 0, 200, 100))

    found = examine(encode(source, "JPEG", exif=exif, quality=95))
    thumbnail = opened(found.thumbnail)

    assert (found.width, found.height) == (100, 400)
    assert thumbnail.size == (100, 400)
    assert thumbnail.getpixel((50, 20))[1] < 60
    assert thumbnail.getpixel((50, 380))[1] > 200


@pytest.mark.parametrize("size", [(1080, 2400), (4000, 3000), (6000, 40), (1, 5000), (1, 1), (513, 512)])
def test_a_thumbnail_is_at_most_512_pixels_long_and_keeps_its_shape(size):
    thumbnail = opened(examine(draw(size=size)).thumbnail)

    assert max(thumbnail.size) == min(512, max(size))
    assert abs(thumbnail.width / max(thumbnail.size) - size[0] / max(size)) < 0.02


def test_the_pictures_for_thumbnail_and_model_carry_no_metadata():
    exif = Image.Exif()
    exif[0x010F] = "SecretCameraMaker"
    exif.get_ifd(0x8825)[1] = "N"  # GPS
    content = draw(format="JPEG", size=(3000, 2000), exif=exif, comment=b"SecretCameraMaker")
    for made in (examine(content).thumbnail, pictures.for_model(io.BytesIO(content))):
        assert b"SecretCameraMaker" not in made
        assert not opened(made).getexif()

    assert b"SecretCameraMaker" in content
    assert opened(pictures.for_model(io.BytesIO(content))).size == (1568, 1045)


def test_a_picture_with_a_script_behind_it_is_a_picture():
    assert examine(draw() + b"<script>alert(1)</script>").mime_type == "image/png"


def test_a_jpeg_with_further_pictures_behind_it_is_a_jpeg():
    two = encode(
        Image.new("RGB", (300, 200)), "MPO", save_all=True, append_images=[Image.new("RGB", (100, 50))]
    )

    assert examine(two)[:3] == ("image/jpeg", 300, 200)


@pytest.mark.slow
def test_a_large_picture_is_reduced_without_changing_what_is_on_it():
    source = Image.new("RGBA", (4100, 3900), (0, 0, 0, 0))
    source.paste((255, 0, 0, 255), (0, 0, 2050, 3900))
    thumbnail = opened(examine(encode(source, "PNG", compress_level=1)).thumbnail)

    assert thumbnail.size == (512, 487)
    assert thumbnail.getpixel((100, 470))[1] < 40
    assert min(thumbnail.getpixel((400, 470))) > 240


@pytest.mark.parametrize(
    ("taken", "offset", "expected"),
    [
        ("2024:03:01 12:00:00", "+02:00", datetime(2024, 3, 1, 10)),
        ("nonsense", "+02:00", None),
        (None, None, None),
    ],
)
def test_the_time_a_picture_was_taken_is_read_from_its_metadata(taken, offset, expected):
    exif = Image.Exif()
    if taken:
        exif.get_ifd(0x8769).update({0x9003: taken, 0x9011: offset})

    assert pictures.taken_at(io.BytesIO(draw(format="JPEG", exif=exif))) == expected


@pytest.mark.parametrize(
    ("format", "mode"),
    [("JPEG", "RGB"), ("JPEG", "CMYK"), ("PNG", "RGB"), ("PNG", "P"), ("WEBP", "RGB"), ("GIF", "P")],
)
def test_a_decoded_picture_outlives_its_file(format, mode):
    with io.BytesIO(draw(format=format, mode=mode, size=(300, 400))) as file:
        decoded = pictures.decode(file)

    assert (decoded.mode, decoded.size) == ("RGB", (300, 400))
    assert min(decoded.getpixel((5, 5))) > 240


def test_a_jpeg_beyond_the_ordinary_limit_is_decoded_at_half_its_size():
    assert pictures.decode(io.BytesIO(encode(Image.new("RGB", (9_000, 6_000)), "JPEG"))).size == (
        4_500,
        3_000,
    )


@pytest.mark.slow
def test_an_opaque_picture_looks_the_same_with_and_without_an_alpha_channel():
    drawn = Image.effect_noise((900, 1600), 60).convert("RGB")
    plain, opaque = (encode(image, "PNG") for image in (drawn, drawn.convert("RGBA")))

    assert examine(plain).thumbnail == examine(opaque).thumbnail


def test_what_shines_through_is_white_in_both_copies():
    picture = Image.new("RGBA", (1200, 1700), (255, 0, 0, 255))
    picture.paste((0, 0, 0, 0), (0, 0, 1200, 850))
    content = encode(picture, "PNG")

    for copy in (examine(content).thumbnail, pictures.for_model(io.BytesIO(content))):
        image = opened(copy)
        upper, lower = (image.getpixel((image.width // 2, image.height * part // 8)) for part in (1, 7))
        assert min(upper) > 250
        assert (lower[0] > 245, lower[1] < 10) == (True, True)


def test_a_long_picture_is_sent_in_parts_that_overlap_and_can_be_read():
    page = Image.new("RGB", (1080, 9000), "white")
    pen = ImageDraw.Draw(page)
    for top in range(0, 9000, 100):
        pen.rectangle((0, top, 1080, top + 49), fill=(top // 40, 0, 0))
    parts = [opened(part) for part in pictures.parts_for_model(io.BytesIO(encode(page, "PNG")))]

    assert 2 < len(parts) <= pictures.MOST_PARTS
    # A text of 21 pixels arrives with 14 at least.
    scales = [part.width / 1080 for part in parts]
    assert min(scales) > 14 / 21
    shown = sum(part.height / scale for part, scale in zip(parts, scales, strict=True))
    assert shown > 9000 * 1.05  # they overlap
    assert all(max(part.size) <= pictures.MODEL_SIDE for part in parts)
    first, last = (part.getpixel((5, 5)) for part in (parts[0], parts[-1]))
    assert first[0] < 20 < last[0]


@pytest.mark.slow
def test_parts_are_bounded_in_number_and_size_and_a_screen_is_one():
    noise = Image.effect_noise((1000, 45_000), 90).convert("RGB")
    parts = pictures.parts_for_model(io.BytesIO(encode(noise, "PNG")))
    assert len(parts) == pictures.MOST_PARTS
    assert sum(map(len, parts)) < 6_000_000
    screen = encode(Image.new("RGB", (1080, 2400)), "PNG")
    assert pictures.parts_for_model(io.BytesIO(screen)) == [pictures.for_model(io.BytesIO(screen))]
    wide = encode(Image.new("RGB", (3000, 900)), "PNG")
    assert len(pictures.parts_for_model(io.BytesIO(wide))) == 2
