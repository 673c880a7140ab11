"""Whether the parts of a record agree: items and the total above which they stand."""

import itertools
from decimal import Decimal

from engines.records import Record
from rules.prices import Money

MOST_EXTRA = 12  # amounts of a screenshot that are tried


def is_doubtful(record: Record, text: str = "") -> bool:
    """Whether the items of a receipt, all of which have a price, do not add up to its total. Prices are those
    of the row, or of one piece. A tax, a fee or a discount explains the difference if its amount, or that of
    two of them together, is in `text`, that of the screenshot. Else something was misread; what, nobody
    knows, so nothing is corrected.
    """
    total, items = record.amount("total"), record.get("items")
    if total is None or not isinstance(items, list):
        return False
    prices = [_price(item.get("price", ""), total[1]) for item in items]
    if not prices or None in prices:
        return False
    known = [price for price in prices if price is not None]
    pieces = [_pieces(item.get("quantity", "")) for item in items]
    by_piece = sum((price * count for price, count in zip(known, pieces, strict=True)), Decimal(0))
    missing = {total[0] - sum(known, Decimal(0)), total[0] - by_piece}
    return 0 not in missing and not _explained(missing, text, total[0], known)


def _explained(missing: set[Decimal], text: str, total: Decimal, prices: list[Decimal]) -> bool:
    """Whether amounts of the text, one or two of them, make a difference. Those of the total, of the items
    and of a subtotal are none of these.
    """
    money = Money(text)
    found = {amount for line in text.splitlines() if (amount := _amount(money, line))}
    extra = sorted(found - {total, *prices, sum(prices, Decimal(0))})[:MOST_EXTRA]
    signed = [*extra, *(-one for one in extra)]
    pairs = {one + other for one, other in itertools.combinations(signed, 2)} - {Decimal(0)}
    return not missing.isdisjoint({*signed, *pairs})


def _amount(money: Money, line: str) -> Decimal | None:
    price = money.amount(line) or money.price(line)
    return abs(Decimal(price.value)) if price is not None else None


def _price(text: str, currency: str) -> Decimal | None:
    """An item's price, which has the total's currency where it names none."""
    found = Money(f"{text} {currency}").amount(text)
    return Decimal(found.value) if found is not None else None


def _pieces(quantity: str) -> int:
    digits = quantity.strip(" x×")
    return int(digits) if digits.isdecimal() and len(digits) < 5 else 1
