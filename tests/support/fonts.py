"""The fonts of drawn pictures: those inside PyMuPDF, so that a picture is the same on every machine, whatever
is installed there.
"""

import io
from functools import cache

import pymupdf
from PIL import ImageFont

# Names of PyMuPDF. https://pymupdf.readthedocs.io/en/latest/font.html
SANS, BOLD, MONO, MONO_BOLD = "helv", "hebo", "cour", "cobo"
CHINESE = "china-s"  # Droid Sans Fallback, which has Latin letters as well


@cache
def font(name: str, size: int) -> ImageFont.FreeTypeFont:
    """A font of this height in pixels."""
    return ImageFont.truetype(io.BytesIO(pymupdf.Font(name).buffer), size)
