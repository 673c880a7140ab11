"""Cleaning and shortening texts that come from people, models, pictures and the web.

Such a text is made storable once, where it enters, and made short where it is shown. Each function takes
linear time.
"""

CUT_MARK = " […]"


def encodable(text: str) -> str:
    """`text` without lone surrogates: halves of characters, which cannot be written as UTF-8 (an emoji that
    was cut in two).
    """
    return text.encode("utf-8", "ignore").decode("utf-8")


def storable(text: str) -> str:
    """`text` without NUL and lone surrogates. SQLite's driver refuses the latter, and its functions cut a
    text off at a NUL.
    """
    return encodable(text.replace("\0", ""))


def one_line(text: str) -> str:
    """`text` without white space at its ends, and with one blank for each run of white space inside."""
    return " ".join(text.split())


def shortened(text: str, most: int) -> str:
    """`text`, or its beginning and an ellipsis, together at most `most` characters. There is no white space
    before the ellipsis.
    """
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"


def cut(text: str, most: int) -> str:
    """`text`, or its first `most` characters and `CUT_MARK`, by which a model sees that there was more."""
    return text if len(text) <= most else f"{text[:most]}{CUT_MARK}"


def fraction(value: float) -> float:
    """`value` as a number from 0 to 1: what lies outside is moved to the nearest of the two, and NaN is 0."""
    # `not value > 0` also catches NaN, which min and max would let through.
    return 0.0 if not value > 0 else min(1.0, float(value))
