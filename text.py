"""Cleaning and shortening texts that come from people, models, pictures and the web.

Each text is made storable once, where it enters, and shortened where it is shown. Every function takes linear
time.
"""

CUT_MARK = " […]"


def encodable(text: str) -> str:
    """`text` without lone surrogates, the halves of an emoji cut in two, which UTF-8 cannot encode."""
    return text.encode("utf-8", "ignore").decode("utf-8")


def storable(text: str) -> str:
    """`text` without NUL and lone surrogates.

    SQLite's driver refuses lone surrogates, and SQLite's functions stop at a NUL.
    """
    return encodable(text.replace("\0", ""))


def one_line(text: str) -> str:
    """`text` trimmed, with one space for each run of white space."""
    return " ".join(text.split())


def shortened(text: str, most: int) -> str:
    """`text`, or its beginning, trimmed, and an ellipsis: at most `most` characters in all."""
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"


def cut(text: str, most: int) -> str:
    """`text`, or its first `most` characters and `CUT_MARK`, which shows a model that the text goes on."""
    return text if len(text) <= most else f"{text[:most]}{CUT_MARK}"


def fraction(value: float) -> float:
    """`value` clamped to 0…1; NaN becomes 0."""
    # `not value > 0` also catches NaN, which min and max would let through.
    return 0.0 if not value > 0 else min(1.0, float(value))
