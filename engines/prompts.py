"""The instructions for models, and the frames around data in them.

Text from a screenshot, a web page, a tool or an old memory is data to the model, never an instruction. No
wording guarantees that, but a frame helps: such text is put between two lines with a marker that is random in
every turn, so that no text from outside can close its frame, and the system prompt explains the marker. What
must hold whatever a model does is enforced elsewhere, by the checks in front of memories and tools.

Two kinds of instructions are elsewhere: the descriptions of tools, which are part of their declarations
(`assistant/tools.py`), and the system prompts of skills, which belong to the person (`assistant/skills.py`).
"""

import base64
import json
import secrets
import tomllib
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from engines import articles
from engines.articles import MOST_ARTICLES, Material
from engines.findings import CATEGORIES, INTENTS
from engines.reading import MEMORY_CATEGORIES, MEMORY_TYPES
from engines.records import TYPES, Form
from text import cut

LANGUAGES = {"zh": "Simplified Chinese", "en": "English"}
MAX_FILE_NAME = 200  # characters that the model sees
MAX_READ = 4_000  # characters of the text that was read; a screen of a phone has a few hundred

_TEXTS: dict[str, str] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
PERSONA = _TEXTS["persona"]
REMEMBERED = "What is remembered about the person, which may matter now or not:"

LOOKED_UP = "What a search of the screenshots found for this message:"
READ_ON_PICTURE = "What a program has read in the picture:"
NO_PICTURE = "[A picture was attached here. It is not shown any more.]"
ANSWER_NOW = "Answer now, in text. No more tools can be called."

CONNECTION_TEST = "A test of the connection. Which word is in the picture? Answer with it alone."
BLIND_TEST = [
    {"role": "user", "content": "This is a test of the connection. Answer with the single word: ok"}
]


class Frame:
    """A random marker for the data of one turn. Whoever wrote the data does not know it."""

    def __init__(self) -> None:
        self.marker = secrets.token_hex(8)

    def around(self, text: str) -> str:
        """`text` between two lines that hold the marker. In the text, a space replaces it: without one, what
        is before and after it could join into another marker.
        """
        return f"<data {self.marker}>\n{text.replace(self.marker, ' ')}\n</data {self.marker}>"


def analysis(
    jpegs: Sequence[bytes],
    name: str,
    language: str,
    *,
    text: str = "",
    taken: datetime | None = None,
    detail: bool = False,
) -> list[dict[str, Any]]:
    """The messages that ask for the findings in a picture, which may be in several parts that overlap. `name`
    is its file name, or "". `language` is `zh` or `en`. With the `text` that was read on it, the model only
    writes down what that lacks. `taken` is when it was taken, in local time. With `detail`, the server is
    asked to show the model every detail.
    """
    system = _TEXTS["analysis"].format(
        visible_text=_TEXTS["missing_text"] if text else _TEXTS["all_text"],
        categories=", ".join(CATEGORIES),
        intents=", ".join(INTENTS),
        memory_categories=", ".join(MEMORY_CATEGORIES),
        language=LANGUAGES[language],
        records="\n".join(map(_described, TYPES)),
        taken=_TEXTS["taken"].format(taken=taken.isoformat(sep=" ", timespec="minutes")) if taken else "",
    )
    about = (
        f"The picture. Its file name: {json.dumps(name[:MAX_FILE_NAME], ensure_ascii=False)}"
        if name
        else "The picture."
    )
    if len(jpegs) > 1:
        about += _TEXTS["in_parts"].format(parts=len(jpegs))
    shown = [{"type": "text", "text": about}, *(picture(jpeg, detail=detail) for jpeg in jpegs)]
    if text:
        frame = Frame()
        system += f"\n\n{_TEXTS['read'].format(marker=frame.marker)}"
        shown.append({"type": "text", "text": frame.around(cut(text, MAX_READ))})
    return [{"role": "system", "content": system}, {"role": "user", "content": shown}]


def chat(frame: Frame, *, persona: str, remembered: list[str], now: datetime) -> str:
    """The system prompt of a turn: `persona` (a skill's, or `PERSONA`), rules, and memories in `frame`."""
    parts = [
        persona,
        _TEXTS["chat"].format(now=now.isoformat(sep=" ", timespec="minutes"), marker=frame.marker),
    ]
    if remembered:
        parts.append(f"{REMEMBERED}\n{frame.around(json.dumps(remembered, ensure_ascii=False))}")
    return "\n\n".join(parts)


def memories(said: str, answered: str) -> list[dict[str, Any]]:
    """The messages that ask for memories of a turn."""
    frame = Frame()
    system = _TEXTS["memories"].format(marker=frame.marker, categories=", ".join(MEMORY_CATEGORIES))
    asked = f"The person wrote:\n{frame.around(said)}\n\nThe assistant answered:\n{frame.around(answered)}"
    return [{"role": "system", "content": system}, {"role": "user", "content": asked}]


def notes(material: Material, language: str) -> list[dict[str, Any]]:
    """The messages that ask for articles about what is new, written in `language` (`zh` or `en`)."""
    frame = Frame()
    system = _TEXTS["notes"].format(
        marker=frame.marker,
        most=MOST_ARTICLES,
        categories=", ".join(articles.CATEGORIES),
        language=LANGUAGES[language],
    )
    sections: list[tuple[str, Sequence[articles.Item]]] = [
        ("New screenshots", material.photos),
        ("New messages of conversations between the person and their assistant", material.conversations),
        ("What is known about the person", material.memories),
        ("Your recent notes", material.notes),
    ]
    parts = [f"It is {material.now.isoformat(sep=' ', timespec='minutes')} UTC."]
    for title, items in sections:
        if items:
            parts += [f"{title}, a line each:", frame.around("\n".join(map(articles.shown, items)))]
    asked = "\n".join(parts)
    return [{"role": "system", "content": system}, {"role": "user", "content": asked}]


def connection_test(jpeg: bytes) -> list[dict[str, Any]]:
    """The messages that ask for the word in a drawn picture."""
    return [{"role": "user", "content": [{"type": "text", "text": CONNECTION_TEST}, picture(jpeg)]}]


def picture(jpeg: bytes, *, detail: bool = False) -> dict[str, Any]:
    """A JPEG as a part of a message; with `detail`, one that the server does not make smaller."""
    address = {"url": f"data:image/jpeg;base64,{base64.b64encode(jpeg).decode()}"}
    return {"type": "image_url", "image_url": {**address, "detail": "high"} if detail else address}


def _described(name: str) -> str:
    """A type of records with its fields, for a model."""
    fields = (f"{field}{_form(form)}" for field, form in TYPES[name].fields.items())
    return f"  {name}: {', '.join(fields)}"


def _form(form: Form) -> str:
    if form.kind == "list":
        return f" (list of {', '.join(form.keys)})"
    return f" ({form.kind})" if form.kind in ("amount", "day", "time") else ""


def _object(**properties: Any) -> dict[str, Any]:
    """The schema of an object as strict servers demand it: every field is required, and no other allowed."""
    fields = list(properties)
    return {"type": "object", "properties": properties, "required": fields, "additionalProperties": False}


def _list_of(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


_STRING, _NUMBER = {"type": "string"}, {"type": "number"}
# The answer that the prompt `analysis` asks for, for servers that hold a model to a schema.
FINDINGS_SCHEMA = _object(
    app_name=_STRING,
    content_category={"type": "string", "enum": list(CATEGORIES)},
    intent={"type": "string", "enum": list(INTENTS)},
    title=_STRING,
    summary=_STRING,
    entities=_list_of(_object(type=_STRING, value=_STRING)),
    confidence=_NUMBER,
    visible_text=_STRING,
    memories=_list_of(
        _object(
            content=_STRING,
            category={"type": "string", "enum": list(MEMORY_CATEGORIES)},
            memory_type={"type": "string", "enum": list(MEMORY_TYPES)},
            importance=_NUMBER,
        )
    ),
    records=_list_of(
        _object(
            type={"type": "string", "enum": list(TYPES)},
            fields=_list_of(
                _object(
                    name=_STRING,
                    value={
                        "anyOf": [
                            _STRING,
                            _object(value=_STRING, currency=_STRING),
                            _list_of(_list_of(_STRING)),
                        ]
                    },
                    text=_STRING,
                )
            ),
        )
    ),
)
