"""The token budget of a model's context: how many tokens messages take, and which are sent when not all fit.

Token counts are estimates, on the high side. Each model has its own tokeniser, with tables of megabytes. A
request that is too long is refused as a whole; one that could have been longer only misses its oldest turns.
"""

import copy
import json
import math
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

# Characters per token: English prose has 4 to 5, but JSON, code and names have 3. A Chinese character, kana
# or hangul is at most one token in every current vocabulary; other scripts and emoji are split into pieces.
ASCII_CHARACTERS = 3.5
OTHER_CHARACTERS = 1.3
_CJK = re.compile("[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]")

# A picture of 1568 px: 1,100 (OpenAI's tiles) to 1,600 tokens (Anthropic's width × height / 750).
PICTURE_TOKENS = 1_600
MESSAGE_TOKENS = 8  # role and separators

SHORTEST = 400  # characters; a shorter tool answer is not cut any further
_CUT = "… (cut)"

Messages = list[dict[str, Any]]


def tokens(value: Any) -> int:
    """The estimated tokens of a text, a message of the protocol, or anything else that is sent as JSON."""
    if isinstance(value, str):
        ascii_only, cjk = len(value.encode("ascii", "ignore")), len(_CJK.findall(value))
        others = len(value) - ascii_only - cjk
        return math.ceil(ascii_only / ASCII_CHARACTERS + cjk + others / OTHER_CHARACTERS)
    if isinstance(value, dict) and "role" in value:
        content = value.get("content")
        rest = {name: part for name, part in value.items() if name != "content"}
        parts = content if isinstance(content, list) else [{"text": content or ""}]
        return (
            MESSAGE_TOKENS
            + tokens(json.dumps(rest, ensure_ascii=False))
            + sum(
                PICTURE_TOKENS if part.get("type") == "image_url" else tokens(part.get("text") or "")
                for part in parts
            )
        )
    if isinstance(value, list) and value and isinstance(value[0], dict) and "role" in value[0]:
        return sum(map(tokens, value))
    return tokens(json.dumps(value, ensure_ascii=False))


class Sized(NamedTuple):
    """Messages, and the tokens that they take."""

    messages: Messages
    tokens: int


def first_fitting(versions: Iterable[Messages], most: int) -> Sized | None:
    """The first of `versions` that fits into `most` tokens; later ones are not generated."""
    sized = (Sized(version, tokens(version)) for version in versions)
    return next((version for version in sized if version.tokens <= most), None)


def fit(earlier: list[Sized], present: Messages, most: int) -> Messages:
    """The messages of earlier turns and the present one, within `most` tokens: the oldest turns are dropped
    first, then the ends of long tool answers.

    A present turn that is still too long is returned all the same: the model's server reports it then.
    """
    size = tokens(present)
    first, needed = 0, size + sum(turn.tokens for turn in earlier)
    while first < len(earlier) and needed > most:
        needed -= earlier[first].tokens
        first += 1
    sent = [message for turn in earlier[first:] for message in turn.messages]
    return sent + (present if size <= most else _shortened(present, most))


def _shortened(present: Messages, most: int) -> Messages:
    """The present turn with its longest tool answer halved, repeatedly, until all fits or none is long."""
    present = copy.deepcopy(present)
    answers = [message for message in present if message["role"] == "tool"]
    while answers and tokens(present) > most:
        longest = max(answers, key=lambda message: len(message["content"]))
        content = longest["content"]
        if len(content) < SHORTEST:
            break
        # The last line stays: it closes the frame (`prompts.Frame`).
        head, _, last = content.rpartition("\n")
        longest["content"] = f"{head.removesuffix(_CUT)[: len(head) // 2]}{_CUT}\n{last}"
    return present
