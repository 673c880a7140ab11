"""The colours of HEIC and AVIF pictures as sRGB: profiles, and the brightness of HDR. Used in the process
that decodes them (`heif.py`).
"""

import functools
import io
import math
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL import Image

# ITU-R BT.2100: what the numbers of HDR pictures mean. SDR white is at 203 cd/m² (ITU-R BT.2408).
_PQ, _HLG = 16, 18
_WHITE = 203


def conversion(content: bytes, profile: bytes | None) -> Callable[["Image.Image"], "Image.Image"]:
    """What makes sRGB of an RGB picture with these colours; HDR's brightest parts become white."""
    place = content.find(b"colrnclx", 0, 1_000_000)
    transfer = int.from_bytes(content[place + 10 : place + 12], "big") if place >= 0 else 0
    if transfer in (_PQ, _HLG):
        return lambda image: _in_sdr(image, transfer)
    return functools.partial(in_srgb, profile=profile) if profile else lambda image: image


def in_srgb(image: "Image.Image", profile: bytes) -> "Image.Image":
    from PIL import ImageCms

    try:
        source = ImageCms.ImageCmsProfile(io.BytesIO(profile))
        target = ImageCms.createProfile("sRGB")
        return ImageCms.profileToProfile(image, source, target, outputMode="RGB") or image
    except (ImageCms.PyCMSError, OSError, ValueError, TypeError):
        return image


def _in_sdr(image: "Image.Image", transfer: int) -> "Image.Image":
    """Brightness only: the wider primaries stay, so colours are a little paler than they should be."""
    return image.point([round(255 * _shown(_light(value / 255, transfer))) for value in range(256)] * 3)


def _light(signal_value: float, transfer: int) -> float:
    """Linear light, 1.0 for SDR white, of a signal from 0 to 1."""
    if transfer == _HLG:  # the inverse OETF; 0.75 is the signal of SDR white
        a, b, c = 0.17883277, 0.28466892, 0.55991073
        below = signal_value <= 0.5
        return (signal_value**2 / 3 if below else (math.exp((signal_value - c) / a) + b) / 12) / 0.2650
    m1, m2, c1, c2, c3 = 0.1593017578125, 78.84375, 0.8359375, 18.8515625, 18.6875
    power = signal_value ** (1 / m2)
    return 10_000 * float((max(power - c1, 0) / (c2 - c3 * power)) ** (1 / m1)) / _WHITE


def _shown(light: float) -> float:
    """The sRGB value of linear light, cut at white."""
    light = min(1.0, light)
    return 12.92 * light if light <= 0.0031308 else 1.055 * light ** (1 / 2.4) - 0.055
