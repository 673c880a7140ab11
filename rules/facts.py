"""The field of a record that answers a question: what the question names, as "gate", or the first one of the
kind that it wishes for, as the departure for "when".
"""

from collections.abc import Collection, Sequence
from typing import NamedTuple

import terms
from engines.records import TYPES, Field, Record
from rules import questions, templates, wordlists
from rules.questions import Question

NAMED, WISHED = 1.0, 0.6  # how well a field answers: the question names it, or only a kind of field

# The kinds of fields that answer, and the names of those of text.
_KINDS = {"when": ("day", "time"), "amount": ("amount",)}
_TEXTS: dict[str, list[str]] = {
    wish: names.split() for wish, names in wordlists.table("questions")["answering"].items()
}


class Fact(NamedTuple):
    """A value in words, the words as they are on the screenshot, and how well it answers."""

    value: str
    text: str
    worth: float
    type: str = ""
    field: str = ""


def answer(asked: Question, records: Sequence[Record], language: str) -> Fact | None:
    """What the records of a screenshot answer; None where no field does."""
    named = questions.names_of(questions.FIELDS, asked.text)
    for record in records:
        if entry := _of_entry(asked, record):
            return entry
        fields = {field.name: field for field in record.fields}
        of_type = [name for name in named if name in TYPES[record.type].fields]
        # "Which gate does it leave from": the gate is asked for.
        of_type = [name for name in of_type if _is_pointed_at(asked, name)] or of_type
        if of_type:
            longest = max(named[name] for name in of_type)
            found = [fields[name] for name in of_type if named[name] == longest and name in fields]
            worth = NAMED
        else:
            found = [field for field in record.fields if _is_wished(asked, record, field)]
            worth = WISHED
        for field in found:
            if field.name == questions.SAID and not is_about(asked, [record]):
                continue  # somebody else's
            value = _worded(record, field, language)
            if value and not (isinstance(field.value, str) and value.casefold() in asked.text):
                return Fact(value, field.text, worth, record.type, field.name)
    return None


def names(record: Record) -> str:
    """What a record may be called, so that "my train" means one on which no word is "train"."""
    return questions.TYPES.get(record.type, "").replace("|", " ").replace(",", " ")


def is_about(asked: Question, records: Sequence[Record]) -> bool:
    """Whether a record says one of the words of a question outside of its lists, or its type is called so."""
    wanted = questions.pieces(asked.wanted)
    return not wanted or any(says(records, {word}) for word in wanted)


def says(records: Sequence[Record], words: Collection[str]) -> bool:
    """Whether records say all these words outside of their lists, or their types are called so."""
    said = " ".join(f"{_said(record)} {names(record)}" for record in records)
    return all(questions.is_on(word, said) for word in words)


def types_in(asked: Question) -> list[str]:
    """The types of records that a question names."""
    return list(questions.names_of(questions.TYPES, asked.text))


def _of_entry(asked: Question, record: Record) -> Fact | None:
    """The amount of the one entry of a list that a question names, as of an item on a receipt."""
    if asked.wish != "amount":
        return None
    others, wanted = _said(record), questions.pieces(asked.wanted)
    for field in record.fields:
        for entry in field.value if isinstance(field.value, list) else ():
            name, amount = next(iter(entry.values())), entry.get("price") or entry.get("amount")
            folded = terms.fold(name).casefold()
            own = {word for word in wanted if questions.is_on(word, folded)}
            left = wanted - own
            is_named = any(not questions.is_on(word, others) for word in own)
            if amount and is_named and all(questions.is_on(word, others) for word in left):
                return Fact(amount, f"{name}\n{amount}", NAMED)
    return None


def _said(record: Record) -> str:
    """What a record says outside of its lists, folded."""
    fields = [field for field in record.fields if not isinstance(field.value, list)]
    return terms.fold(" ".join(f"{field.text} {field.value}" for field in fields)).casefold()


def _is_pointed_at(asked: Question, field: str) -> bool:
    return any(
        f"{word} {name}" in asked.text
        for name in questions.all_names(questions.FIELDS[field])
        for word in ("which", "what")
    )


def _is_wished(asked: Question, record: Record, field: Field) -> bool:
    kind = TYPES[record.type].fields[field.name].kind
    if questions.wants_entries(asked):
        return kind == "list"
    texts = _TEXTS.get(asked.wish, [])
    named = questions.names_of(questions.FIELDS, asked.text).keys() & set(texts)
    return kind in _KINDS.get(asked.wish, ()) or field.name in (named or texts)


def _worded(record: Record, field: Field, language: str) -> str:
    if isinstance(field.value, list):
        return "\n".join(f"- {': '.join(entry.values())}" for entry in field.value)
    if isinstance(field.value, str) and TYPES[record.type].fields[field.name].kind in (
        "text",
        "code",
        "link",
    ):
        return field.value
    return templates.worded(record, field.name, "", language)
