"""Whether the parts of a record agree: items and the total above which they stand."""

from decimal import Decimal

from engines.records import Record
from rules.prices import Money


def is_doubtful(record: Record) -> bool:
    """Whether the items of a receipt, all of which have a price, do not add up to its total. Prices are those
    of the row, or of one piece. Something was misread then, or a discount or a fee is among no items; which
    of these, nobody knows, so nothing is corrected.
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
    return total[0] not in (sum(known, Decimal(0)), by_piece)


def _price(text: str, currency: str) -> Decimal | None:
    """An item's price, which has the total's currency where it names none."""
    found = Money(f"{text} {currency}").amount(text)
    return Decimal(found.value) if found is not None else None


def _pieces(quantity: str) -> int:
    digits = quantity.strip(" x×")
    return int(digits) if digits.isdecimal() and len(digits) < 5 else 1
