"""Pictures in terminals that can show them: by kitty's graphics protocol, or by iTerm2's inline images.

Which one a terminal speaks is read from the environment, because to ask the terminal would mean to wait for
its answer. Within tmux and screen, the environment is that of the terminal around them, which they do not let
through, so nothing is drawn there.

Sources: sw.kovidgoyal.net/kitty/graphics-protocol and iterm2.com/documentation-images.html.
"""

import base64
import io
from collections.abc import Mapping
from typing import Literal

Protocol = Literal["kitty", "iterm"]

CHUNK = 4_096  # bytes of base64 that kitty takes at once
PNG = b"\x89PNG\r\n\x1a\n"
MOST_PIXELS = 4_000_000  # of a thumbnail, which has 512 × 512 at most
FIRST_KONSOLE = 220_400  # that speaks kitty's protocol: 22.04


def protocol(environ: Mapping[str, str]) -> Protocol | None:
    """What the terminal speaks, or None."""
    term, program = environ.get("TERM", ""), environ.get("TERM_PROGRAM", "")
    if environ.get("TMUX") or term.startswith(("tmux", "screen")) or term == "dumb":
        return None
    konsole = environ.get("KONSOLE_VERSION", "")
    if program in ("iTerm.app", "WezTerm", "mintty") or environ.get("LC_TERMINAL") == "iTerm2":
        return "iterm"
    if term in ("xterm-kitty", "xterm-ghostty") or program == "ghostty" or environ.get("KITTY_WINDOW_ID"):
        return "kitty"
    return "kitty" if konsole.isdigit() and int(konsole[:6]) >= FIRST_KONSOLE else None


def drawn(picture: bytes, protocol: Protocol, rows: int) -> str | None:
    """What draws `picture`, a JPEG or a PNG, `rows` lines high. None: the terminal cannot show its format."""
    if protocol == "iterm":
        text = base64.b64encode(picture).decode()
        size = f"size={len(picture)};height={rows};preserveAspectRatio=1"
        return f"\x1b]1337;File=inline=1;{size}:{text}\a"
    png = picture if picture.startswith(PNG) else _as_png(picture)
    if png is None:
        return None
    text = base64.b64encode(png).decode()
    chunks = [text[at : at + CHUNK] for at in range(0, len(text), CHUNK)]
    # q=2: the terminal sends no answer, which the next program would read as typed.
    heads = [f"a=T,f=100,q=2,r={rows},m={int(len(chunks) > 1)}"]
    heads += [f"q=2,m={int(number < len(chunks))}" for number in range(2, len(chunks) + 1)]
    return "".join(f"\x1b_G{head};{chunk}\x1b\\" for head, chunk in zip(heads, chunks, strict=True))


def _as_png(jpeg: bytes) -> bytes | None:
    """A thumbnail as a PNG, the only format that kitty takes. None where Pillow is missing."""
    try:
        from PIL import Image  # in the service's environment; the client works without it
    except ImportError:
        return None
    try:
        with Image.open(io.BytesIO(jpeg), formats=("JPEG",)) as opened:
            if opened.width * opened.height > MOST_PIXELS:
                return None
            png = io.BytesIO()
            opened.convert("RGB").save(png, "PNG")
            return png.getvalue()
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return None
