"""Records of how much there is: accounts, portfolios and budgets, with an amount or a list of them."""

import itertools
import re
from typing import NamedTuple

from engines.lines import Line
from engines.records import Record
from rules.headings import heading, is_day, is_title
from rules.layout import LARGE, plain
from rules.lists import ENTRY
from rules.money import STRICT, amount_in, is_due, largest, put_price
from rules.pairs import Value
from rules.subjects import evidence, subject
from rules.view import Draft, View

MAX_AMOUNT = 20  # characters of an amount and little else
HEAD = 0.25  # of the height: where the name of an account is
LARGER = 1.3  # times the height of a text or an amount that one goes before
SURE = 0.88  # confidence of reading, below which a text names nothing
REACH = 1.8  # heights above an amount in which its name may be
# An amount with a unit behind it, and the sign between its groups or before its decimals.
_SUM = re.compile(r"[-+−~≈]? ?\d[\d.,']{2,18}(?: ?[^\W\d]{1,5})?")
_COUNT = re.compile(r"[-+−~≈]? ?\d[\d.,']{0,18}")
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
    entries = [one for one in _column(view) if shown is None or one.lines[1] not in shown.lines]
    if price is None and is_account and len(entries) < 3:
        entries = entries or _tiles(view)
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


def _column(view: View) -> list[_Held]:
    """The entries of a list whose amounts are below each other, each with the first text at its left."""
    sums = [line for line in view.layout.lines if _is_sum_of(view, line.text)]
    numbers = [line for line in view.layout.lines if line in sums or _COUNT.fullmatch(line.text.strip())]
    best: list[_Held] = []
    seen: set[int] = set()
    for one in sums:
        if id(one) in seen:
            continue
        column = [
            line
            for line in numbers
            if min(abs(line.right - one.right), abs(line.left - one.left)) < 0.6 * one.height
        ]
        decimal = [line for line in column if line in sums]
        column = decimal if 2 * len(decimal) > len(column) > 2 else column
        seen.update(map(id, column))
        found = [
            _Held(plain(name.text)[:ENTRY], line.text.strip(), (name, line))
            for line in column
            if (name := _name_of(view, line, column)) is not None
        ]
        best = max(best, found, key=len)
    return best if len(best) >= 2 else []


def _name_of(view: View, amount: Line, column: list[Line]) -> Line | None:
    """What names an amount of a column: the first text at its left in its row, one above that which is larger
    and of no other amount, or else the text right above the amount.
    """
    beside: list[Line] = []
    above: list[Line] = []
    for line in view.layout.lines:
        text, at = plain(line.text), (line.top + line.bottom - 2 * amount.top) / (2 * amount.height)
        if not -REACH < at < 1.3 or not is_title(text, 2) or is_day(text) or _is_sum_of(view, text):
            continue
        if line.right <= amount.left:
            (beside if at > -0.8 else above).append(line)
        elif at < 0 and abs(line.left - amount.left) < amount.height:
            above.append(line)
    above = [
        line for line in above if not any(one.top < line.bottom and line.top < one.bottom for one in column)
    ]
    first = min(beside, key=lambda line: (line.left // line.height, line.top), default=None)
    larger = [line for line in above if first is None or line.height > LARGER * first.height]
    return max(larger, key=lambda line: line.top, default=first)


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
