"""Pictures with words on them, drawn on the spot."""

import io

from PIL import Image, ImageDraw, ImageFont


def draw(
    text="Dentist on Friday", size=(540, 960), format="PNG", mode="RGB", background="white", **save_options
):
    if format == "PNG":
        save_options.setdefault("compress_level", 1)  # half the time of a drawing
    image = Image.new("RGB", size, background)
    ImageDraw.Draw(image).multiline_text((20, 40), text, fill="black", font=ImageFont.load_default(size=28))
    out = io.BytesIO()
    image.convert(mode).save(out, format, **save_options)
    return out.getvalue()
