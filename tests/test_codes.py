"""Bar and QR codes are read in the OCR process, through the embedded analyser's public surface."""

import io

import pytest
import segno
from PIL import Image, ImageDraw, ImageFont

from rules import embedded


@pytest.fixture(scope="module")
def model():
    model = embedded.LocalModel(ocr_model="tiny", language="en")
    yield model
    model.close()


def screen(content, *, text="", size=(1080, 2400), at=(200, 600), scale=8):
    """A picture with a QR code, and a line of text above it."""
    drawn = io.BytesIO()
    segno.make(content, error="m", micro=False).save(drawn, kind="png", scale=scale)
    image = Image.new("RGB", size, "white")
    image.paste(Image.open(drawn).convert("RGB"), at)
    if text:
        ImageDraw.Draw(image).text((120, 300), text, fill="black", font=ImageFont.load_default(size=56))
    out = io.BytesIO()
    image.save(out, "PNG")
    out.seek(0)
    return out


def entities(found):
    return [(entity.type, entity.value) for entity in found.entities if entity.label]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("https://example.org/t/7?a=ä", [("link", "https://example.org/t/7?a=ä")]),
        (
            r"WIFI:T:WPA;S:Harbor\;Guest;P:blue:whale2026;;",
            [("wifi", "Harbor;Guest"), ("password", "blue:whale2026")],
        ),
        (
            "M1OKAFOR/DANIEL EQX7RTB AMSLISKL 1577 332Y022A",
            [("code", "M1OKAFOR/DANIEL EQX7RTB AMSLISKL 1577 332Y022A")],
        ),
        ("mailto:anna@example.org?subject=Hi", [("email", "anna@example.org")]),
        ("tel:+4930123456", [("phone", "+4930123456")]),
        ("WIFI:", [("wifi", "Wi-Fi")]),
    ],
)
def test_what_a_code_holds_is_an_entity_and_text_that_is_found(model, content, expected):
    found = model.analyse(screen(content, text="Scan to come in"))

    assert entities(found) == expected
    assert found.visible_text.splitlines() == ["Scan to come in", content]
    title = "Wi-Fi Harbor;Guest" if "Harbor" in content else "Scan to come in"
    assert (found.title, found.intent) == (title, "reference")


def test_a_code_is_a_line_at_its_lower_edge(model):
    page = model.analyse(screen("https://example.org", at=(200, 600), scale=10)).page
    (line,) = page.encoded

    assert page.codes == ["QR Code"]
    assert (line.text, line.left // 50, line.bottom > 700) == ("https://example.org", 4, True)
    assert 0 < line.height < 40


def test_the_secret_of_a_one_time_code_is_in_no_entity_title_or_summary(model):
    found = model.analyse(screen("otpauth://totp/Acme:anna?secret=JBSWY3DPEHPK3PXP&issuer=Acme"))

    assert entities(found) == [("code", "totp/Acme:anna")]
    assert "JBSWY3DPEHPK3PXP" not in found.title + found.summary
    assert "JBSWY3DPEHPK3PXP" in found.visible_text  # which passes the gate before anything is sent


def test_a_picture_of_nothing_but_a_code_is_named_after_it(model):
    found = model.analyse(screen("https://example.org/menu"))

    assert (found.title, found.summary) == ("Code: https://example.org/menu",) * 2


@pytest.mark.slow
def test_a_code_far_down_a_long_capture_is_found_once(model):
    found = model.analyse(screen("table 7", size=(1080, 9000), at=(300, 2100)))

    assert entities(found) == [("code", "table 7")]


def test_a_long_content_is_cut(model):
    (code,) = [
        entity
        for entity in model.analyse(screen("x" * 2_000, at=(20, 300), scale=6)).entities
        if entity.label
    ]

    assert 100 < len(code.value) <= 500
