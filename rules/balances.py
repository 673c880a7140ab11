"""Records of how much there is: accounts, portfolios and budgets, with an amount or a list of them."""

import itertools
import re
from typing import NamedTuple

from engines.lines import Line
from engines.records import Record
from rules.headings import heading, is_title
from rules.layout import LARGE, plain
from rules.lists import ENTRY, entry_rows, name_of
from rules.money import STRICT, amount_in, is_due, is_sum, largest, priced, put_price
from rules.pairs import Value
from rules.prices import Price
from rules.subjects import evidence, subject
from rules.view import Draft, View

MAX_AMOUNT = 20  # characters of an amount and little else
HEAD = 0.25  # of the height: where the name of an account is
LARGER = 1.2  # times the height of an amount with a label: one that goes before it
SURE = 0.88  # confidence of reading, below which a text names nothing
REACH = 4  # heights below the last entry of a list in which its amount may be
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
    entries = [
        _Held(name, row.last.text.strip(), row.lines)
        for name, price, row in priced(view)
        if not is_sum(view, row) and (found is None or price.value != found[0].value)
    ]
    if found is None and is_account and len(entries) < 3:
        entries = _held(view) or _tiles(view)
        found = _first_large(view) if len(entries) < 2 else None
        entries = entries or _single(view)
    if found is None and not entries:
        return None
    draft = Draft(view)
    shown = found[1] if found is not None else None
    if shown is None and len(entries) == 1:
        shown = Value(entries[0].amount, entries[0].lines[:1], "rest", "")
    label = _label_of(view, shown) if shown is not None else None
    named = label if is_account and shown is not None and _is_over(view, label, shown) else None
    named = named or _in_head(view, entries) or label
    whole = heading(view.layout, view.kind, view.app)
    if named is not None:
        draft.add("name", plain(named.text), named.lines, named.text)
    elif whole is not None:
        draft.add("name", whole.text, whole.lines)
    if found is not None:
        put_price(draft, "amount", found)
    listed = [{"name": one.name, "amount": one.amount} for one in entries]
    draft.add("entries", listed, [line for one in entries for line in one.lines])
    return draft.record("Balance", 0.7)


def _line_of(view: View, value: Value) -> Line:
    """The line of an amount, among which may be its label's."""
    return next((one for one in value.lines if view.money.prices(one.text)), value.lines[-1])


def _is_over(view: View, label: Value | None, value: Value) -> bool:
    """Whether an amount is set large, and what names it is above it or no usual label."""
    line = _line_of(view, value)
    is_above = label is not None and label.lines[0].top < line.top
    return _is_large(view, line) and (is_above or not value.label)


def _is_large(view: View, line: Line) -> bool:
    return line.height >= LARGE * view.layout.median


def _in_head(view: View, entries: list[_Held]) -> Value | None:
    """The name in the head of a list of amounts, which is none of its entries."""
    named = subject(view, lambda text: not any(text in one.name or one.name in text for one in entries))
    highest = view.layout.top + HEAD * view.layout.height
    return named if named is not None and named.lines[0].top < highest else None


def _first_large(view: View) -> tuple[Price, Value] | None:
    """The first of several amounts that are set large."""
    for line in view.layout.lines:
        price = view.money.amount(line.text)
        if price is not None and _is_large(view, line):
            return price, Value(line.text, (line,), "rest", "")
    return None


def _single(view: View) -> list[_Held]:
    """The one large amount in a unit that is no currency."""
    large = [line for line in view.layout.lines if _is_large(view, line) and _is_sum_of(view, line.text)]
    named = _label_of(view, Value(large[0].text, (large[0],), "rest", "")) if large else None
    return [_Held(named.text[:ENTRY], large[0].text.strip(), (large[0], *named.lines))] if named else []


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
        and other.confidence >= SURE
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


def _held(view: View) -> list[_Held]:
    """The entries of a list that have an amount below or beside them; none where most have none."""
    rows = entry_rows(view.layout)
    found = []
    for row, after in itertools.zip_longest(rows, rows[1:]):
        end = after.first.top if after is not None else row.first.bottom + REACH * row.first.height
        lines = [
            line for line in view.layout.lines if row.first.top <= line.top < end and line is not row.first
        ]
        for line in sorted(lines, key=lambda line: not _is_sum_of(view, line.text)):
            prices = view.money.prices(line.text)
            if _is_sum_of(view, line.text) or len(prices) == 1:
                text = (
                    line.text
                    if len(line.text) <= MAX_AMOUNT or not prices
                    else line.text[prices[0].start : prices[0].end]
                )
                found.append(_Held(name_of(row)[:ENTRY], text.strip(), (row.first, line)))
                break
    return found if len(found) >= 2 and 3 * len(found) >= 2 * len(rows) else []


def _tiles(view: View) -> list[_Held]:
    """Amounts beside each other, each above or below what it is."""
    found = []
    for above, below in itertools.pairwise(view.layout.rows):
        for names, amounts in ((above.lines, below.lines), (below.lines, above.lines)):
            pairs = [
                (name, amount)
                for amount in amounts
                if _is_sum_of(view, amount.text)
                for name in names
                if is_title(plain(name.text)) and name.confidence >= SURE
                if abs(name.left + name.right - amount.left - amount.right) < 0.08 * view.layout.width
                or abs(name.left - amount.left) < name.height
            ]
            if len(pairs) >= 2 and not any(_is_sum_of(view, name.text) for name, _ in pairs):
                found += [
                    _Held(plain(name.text)[:ENTRY], amount.text.strip(), (name, amount))
                    for name, amount in pairs
                ]
    return list({one.lines[1].left * 10_000 + one.lines[1].top: one for one in found}.values())
