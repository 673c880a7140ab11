"""Records of how much there is: accounts, portfolios and budgets, with an amount or a list of them."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from engines.lines import Line
from engines.records import Record
from rules import rows
from rules.headings import heading, is_day, is_title
from rules.layout import LARGE, plain
from rules.lists import ENTRY, SURE
from rules.money import STRICT, amount_in, is_due, largest, put_price
from rules.pairs import Value
from rules.subjects import evidence, subject
from rules.view import Draft, View

LARGER = 1.3  # times the height of a text or an amount that one goes before
LEAST = 0.1  # chance of a name that has an amount
REACH = 2.0  # heights between a name and its amount
CERTAIN = 0.88  # of reading, below which a text names nothing
# An amount with a unit behind it, and the sign between its groups or before its decimals.
_SUM = re.compile(r"[-+−~≈]? ?\d[\d.,']{2,18}(?: ?[^\W\d]{1,5})?")
_PARTED = re.compile(r"[.,]\d{2}|\d'\d{3}")


class _Held(NamedTuple):
    """What an entry of an account is called, its amount as it is written, and their lines."""

    name: str
    amount: str
    lines: tuple[Line, ...]


def balance(view: View) -> Record | None:
    """How much there is: an account, a portfolio, a budget."""
    pairs = view.pairs
    is_account = view.kind == "accounts" and (
        bool(view.types) or not evidence(view, "receipt") + evidence(view, "flight")
    )
    if not (is_account and view.types) and (
        not (evidence(view, "balance") or is_account)
        or is_due(view)
        or pairs.has("beneficiary", "order", "departure", "tracking")
    ):
        return None
    found = pairs.find("balance", amount_in(view), STRICT)
    if is_account:
        found = found or pairs.find("total", amount_in(view), STRICT)
        large = largest(view)
        if large and (found is None or large[1].lines[0].height > LARGER * found[1].lines[-1].height):
            found = large
    shown = found[1] if found is not None else _main(view) if is_account else None
    price = found[0] if found is not None else view.money.amount(shown.text) if shown is not None else None
    chances = rows.chances(view.layout, "accounts")
    entries = [one for one in _listed(view, chances) if shown is None or one.lines[-1] not in shown.lines]
    if shown is None and not entries:
        return None
    draft = Draft(view)
    label = _label_of(view, shown) if shown is not None else None
    whole = heading(view.layout, view.kind, view.app)
    # On a statement, whose it is says more than "Balance"; on a screen of an app, which the vote knows, less.
    if not view.types and shown is not None and label is not None and not _is_over(view, label, shown):
        label = subject(view, lambda text: not any(text in one.name for one in entries)) or label
    is_caption = shown is not None and shown.where == "above" and whole is not None
    if label is not None and not (view.types and is_caption):
        draft.add("name", plain(label.text), label.lines, label.text)
    elif whole is not None:
        draft.add("name", whole.text, whole.lines)
    if price is not None and shown is not None:
        put_price(draft, "amount", (price, shown))
    elif label is not None and shown is not None:
        entries.insert(0, _Held(plain(label.text)[:ENTRY], shown.text.strip(), (*label.lines, *shown.lines)))
    if draft.record("Balance") is not None and rows.chosen(chances).chance < SURE:
        entries = []
    listed = [{"name": one.name, "amount": one.amount} for one in entries]
    draft.add("entries", listed, [line for one in entries for line in one.lines])
    return draft.record("Balance", 0.7)


def _main(view: View) -> Value | None:
    """The first of the amounts that are set large, else one with a usual label, also in a unit that is no
    currency.
    """
    large = (line for line in view.layout.lines if line.height >= LARGE * view.layout.median)
    first = next((line for line in large if _is_sum_of(view, line.text)), None)
    if first is not None:
        return Value(first.text, (first,), "rest", "")
    named = view.pairs.find("balance", lambda text: text if _is_sum_of(view, text) else None, STRICT)
    return named[1] if named else None


def _line_of(view: View, value: Value) -> Line:
    """The line of an amount, among which may be its label's."""
    return next((one for one in value.lines if _is_sum_of(view, one.text)), value.lines[-1])


def _is_over(view: View, label: Value, value: Value) -> bool:
    """Whether an amount is set large, and what names it is above it or no usual label."""
    line = _line_of(view, value)
    return line.height >= LARGE * view.layout.median and (label.lines[0].top < line.top or not value.label)


def _is_sum_of(view: View, text: str) -> bool:
    """Whether a text is an amount and little else, also in a unit that is no currency."""
    text = text.strip()
    return view.money.amount(text) is not None or (
        _SUM.fullmatch(text) is not None and _PARTED.search(text) is not None and not view.moments.day(text)
    )


def _label_of(view: View, value: Value) -> Value | None:
    """What an amount is called: by the text before it on its line, or closest above or below it."""
    line = _line_of(view, value)
    if value.label:
        own = next((one for one in value.lines if one is not line), line)
        return Value(value.label, (own,), "rest", "")
    price = view.money.price(line.text)
    before = plain(line.text[: price.start]) if price is not None else ""
    if is_title(before, 4):
        return Value(before.rstrip(":： "), (line,), "rest", "")
    near = [
        (abs(gap), other)
        for other in view.layout.lines
        if is_title(plain(other.text))
        and other.confidence >= CERTAIN
        and not view.money.prices(other.text)
        and (
            abs(other.left - line.left) < line.height
            or abs(other.left + other.right - line.left - line.right) < 2 * line.height
        )
        and -0.3 * line.height
        < (gap := max(line.top - other.bottom, other.top - line.bottom))
        < (2 if other.top < line.top else 1) * line.height
    ]
    best = min(near, key=lambda one: one[0], default=None)
    return Value(plain(best[1].text), (best[1],), "above", "") if best else None


def _listed(view: View, chances: Sequence[tuple[float, Line]]) -> list[_Held]:
    """The entries of a list that have an amount, each amount once, with the likeliest name near it."""
    sums = [line for line in view.layout.lines if _is_sum_of(view, line.text)]
    taken = set(map(id, sums))
    found: dict[int, tuple[float, _Held]] = {}  # by the amount
    for chance, name in chances:
        own = None if id(name) in taken else _held(view, name, sums)
        if own is not None and chance > found.get(id(own.lines[-1]), (0.0,))[0]:
            found[id(own.lines[-1])] = (chance, own)
    held = [one for chance, one in found.values() if chance >= LEAST]
    return sorted(held, key=lambda one: (one.lines[0].top, one.lines[0].left))


def _held(view: View, name: Line, sums: list[Line]) -> _Held | None:
    """A name with the amount behind it on its line, or else the nearest at its right, below or above."""
    if not is_title(plain(name.text), 2) or is_day(name.text):
        return None
    price = view.money.price(name.text)
    before = plain(name.text[: price.start]).rstrip(":： ") if price is not None else ""
    if price is not None and is_title(before, 2):
        return _Held(before[:ENTRY], name.text[price.start :].strip(), (name,))
    near = [
        (abs(line.top + line.bottom - name.top - name.bottom) / 2, line.left, line)
        for line in sums
        if line.right > name.left
        and abs(line.top + line.bottom - name.top - name.bottom) < 2 * REACH * name.height
    ]
    amount = min(near, default=None, key=lambda one: one[:2])
    return _Held(rows.name_of(name)[:ENTRY], amount[2].text.strip(), (name, amount[2])) if amount else None
