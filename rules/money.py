"""Records of money: receipts, bills, transfers, subscriptions, and the price of a product."""

import re

from engines.lines import Line
from engines.records import Record
from rules.accounts import ibans
from rules.layout import Row, is_chinese, letters, plain, weight
from rules.moments import Moment
from rules.pairs import FORMED, NAMED, Value, Where
from rules.prices import Price
from rules.subjects import about, any_of, evidence, is_heading, mentioned, subject, words_of
from rules.view import Draft, View

_BESIDE: tuple[Where, ...] = ("colon", "rest", "right", "below")
STRICT: tuple[Where, ...] = ("colon", "rest", "right", "below", "above")
EXPECTED = 0.25  # chance of a balance, from which on sums alone are no receipt
_QUANTITY = re.compile(
    r"^(\d{1,3}) ?[x×] ?|[ (]{0,3}[x×] ?(\d{1,3})\)?$|^(\d{1,2}) (?=[A-Z])| (\d{1,3}) ?[x×]$"
)
_CARD = re.compile(
    rf"(?<!\w)(?:{any_of('cards')})(?!\w)(?:[ •*·.x]{{1,20}}\d{{4}}(?!\d)| ending in \d{{4}})?"
)
_NAME = r"[A-ZÀ-Ý][\w.' -]{1,40}?"
_END = rf"(?=$|[.,!]| (?:{any_of('sent', 'behind')}) )"
_SENT = re.compile(
    rf"(?:{any_of('sent', 'gave')})(?P<amount> .{{1,24}}?) to (?P<to>{_NAME}){_END}"
    rf"|(?P<from>{_NAME}) (?:{any_of('sent', 'gives')})(?P<received> .{{1,24}}?){_END}"
    rf"|(?:{any_of('sent', 'got')})(?P<got> .{{1,24}}?) from (?P<by>{_NAME}){_END}"
)


def receipt(view: View) -> Record | None:
    """What was bought and paid, with its total."""
    pairs, items = view.pairs, _items(view)
    shown = evidence(view, "receipt") + pairs.has("total") + (len(items) > 1) + (mentioned(view) is not None)
    if shown < 2 or is_due(view) or evidence(view, "transfer") > 2 + pairs.has("seller") + len(items):
        return None
    total = pairs.find("total", amount_in(view), _BESIDE) or pairs.find("amount", amount_in(view), _BESIDE)
    total = total or _said(view, "total")
    is_paid = pairs.has("seller", "payment_method", "order") or mentioned(view) is not None
    if total is None and (is_paid or items):
        total = largest(view) or (_only(view) if is_paid else None)
    if total is None or not (is_paid or pairs.has("total") or items):
        return None
    if view.types.get("Balance", 0.0) > EXPECTED and not is_paid and evidence(view, "receipt") < 2:
        return None  # what was spent in a month
    draft = Draft(view)
    put_price(draft, "total", total)
    named = pairs.text("seller") if pairs.has("seller") else None
    seller = named if named is not None and weight(named.text) >= 2 else about(view)
    if seller is None:
        return None
    draft.add("seller", plain(seller.text), seller.lines, seller.text)
    _put_day(view, draft, "date")
    method = pairs.find("payment_method", _method, NAMED) or _card(view)
    draft.put("paymentMethod", method)
    draft.put("orderNumber", pairs.find(("order", "invoice_number"), _number, FORMED))
    if items:
        draft.add("items", [item for item, _ in items], [line for _, row in items for line in row.lines])
    return draft.record("Receipt", 0.8)


def invoice(view: View) -> Record | None:
    """A bill that is to be paid."""
    pairs = view.pairs
    if not is_due(view):
        return None
    due = (
        pairs.find("due", amount_in(view), STRICT)
        or _said(view, "due")
        or pairs.find(("total", "amount"), amount_in(view), _BESIDE)
        or largest(view)
        or _only(view)
    )
    if due is None or due[0].value.startswith("-"):
        return None
    draft = Draft(view)
    put_price(draft, "totalPaymentDue", due)
    named = pairs.find("provider", _company, ("colon", "right", "below"))
    provider = named[1] if named else about(view)
    if provider is None:
        return None
    draft.add("provider", plain(provider.text), provider.lines, provider.text)
    day = pairs.find("due_date", view.moments.day, FORMED)
    if day is not None:
        draft.add("paymentDueDate", f"{day[0].day}", day[1].lines, day[1].text)
    draft.put("accountId", pairs.find("account", _number, FORMED))
    draft.put("confirmationNumber", pairs.find("invoice_number", _number, FORMED))
    return draft.record("Invoice", 0.8)


def is_due(view: View) -> bool:
    """Whether something is to be paid by a day, or is due. Several such days are those of a list: of loans,
    of tasks.
    """
    pairs = view.pairs
    days = {day.begins for day, _ in pairs.each("due_date", view.moments.day, FORMED)}
    if len(days) > 1:
        return False
    has_day = bool(days)
    has_due = (pairs.find("due", amount_in(view), STRICT) or _said(view, "due")) is not None
    if pairs.find("payment_method", _method, NAMED) is not None and not has_day:
        return False
    return evidence(view, "invoice") >= 1 and (has_day or has_due)


def transfer(view: View) -> Record | None:
    """Money that went from one to another."""
    pairs = view.pairs
    if evidence(view, "transfer") < 1 or is_due(view) or len(view.money.prices(view.layout.content)) > 6:
        return None
    if evidence(view, "flight") > 3 or evidence(view, "subscription") > evidence(view, "transfer"):
        return None
    draft, is_said = Draft(view), False
    for line in view.layout.lines:
        if (sent := _SENT.search(line.text[:200])) is not None:
            price = view.money.price(sent["amount"] or sent["received"] or sent["got"] or "")
            name = sent["to"] or sent["from"] or sent["by"]
            if price is not None:
                is_said = True
                draft.add("amount", price.normal(), [line], sent[0])
                draft.add("beneficiary" if sent["to"] else "sender", name.strip(), [line], name)
    amount = (
        pairs.find("amount", amount_in(view), STRICT)
        or pairs.find("total", amount_in(view), _BESIDE)
        or largest(view)
    )
    if amount is not None:
        put_price(draft, "amount", amount)
    elif not is_said:
        return None
    for name in ("beneficiary", "sender"):
        for found in pairs.each(name, _person, ("colon", "rest", "right", "below")):
            # "to the" and "from now" begin sentences; "received from" does not.
            is_name = found[1].where != "rest" or " " in found[1].label or is_chinese(found[1].label[-1])
            if is_name and not view.moments.day(found[0]):
                draft.put(name, found)
    iban = _iban(view)
    if iban is not None:
        draft.add("iban", iban[0].replace(" ", ""), iban[1], iban[0])
    draft.put("reference", pairs.find("reference", lambda text: text if len(text) <= 140 else None, NAMED))
    _put_day(view, draft, "date")
    return draft.record("MoneyTransfer", 0.75)


def subscription(view: View) -> Record | None:
    """What is paid for again and again."""
    pairs = view.pairs
    shown = evidence(view, "subscription") + pairs.has("renewal") + pairs.has("billing_period")
    renews = pairs.find("renewal", view.moments.day, FORMED)
    period = _period(view)
    if shown < 2 or (renews is None and period is None) or is_due(view) or evidence(view, "product") > 1:
        return None
    prices = view.money.prices(view.layout.content)
    if len({price.value for price in prices}) > 2:
        return None  # plans to choose from
    draft = Draft(view)
    price = pairs.find("price", amount_in(view), _BESIDE) or largest(view) or _only(view)
    if price is not None:
        put_price(draft, "price", price)
    if renews is not None:
        draft.add("renewalDate", f"{renews[0].day}", renews[1].lines, renews[1].text)
    if period is not None:
        draft.add("billingPeriod", period[0], period[1].lines, period[1].text)
    named = pairs.find("provider", _company, ("colon", "right"))
    provider = named[1] if named else about(view)
    if provider is not None:
        draft.add("provider", plain(provider.text), provider.lines, provider.text)
    return draft.record("Subscription", 0.75) if price or renews else None


def _period(view: View) -> tuple[str, Value] | None:
    """How often is paid, as it is written."""
    named = view.pairs.find("billing_period", _is_period, NAMED)
    if named is not None:
        return named
    for line in view.layout.lines:
        found = _is_period(line.text)
        if found is not None:
            return found, Value(found, (line,), "rest", "")
    return None


def _is_period(text: str) -> str | None:
    folded = text.casefold()
    for name in ("month", "year", "week"):
        for word in words_of("periods", name):
            place = folded.find(word.casefold())
            if place >= 0 and not folded[place + len(word) : place + len(word) + 1].isalpha():
                return (
                    text[place : place + len(word)].strip(" /")
                    if word[0] == "/"
                    else text[place : place + len(word)]
                )
            if place >= 0 and is_chinese(word[-1]):
                return text[place : place + len(word)].strip("/")
    return None


def _written(price: Price, row: Row) -> str:
    return row.last.text.strip()


def product(view: View) -> Record | None:
    """A product with its price, as a shop shows it."""
    prices = view.money.prices(view.layout.content)
    if (
        view.kind == "video"
        or not evidence(view, "product")
        or not 1 <= len(prices) <= 8
        or view.pairs.has("total", "order")
    ):
        return None
    price, named = largest(view), subject(view)
    if price is None or named is None:
        return None
    draft = Draft(view)
    draft.add("name", plain(named.text), named.lines, named.text)
    put_price(draft, "price", price)
    seller = view.pairs.text("seller")
    if seller is not None and plain(seller.text) != plain(named.text):
        draft.add("seller", seller.text, seller.lines)
    return draft.record("Product", 0.7)


# ----------------------------------------------------------------------------------------------------- parts


def amount_in(view: View):  # type: ignore[no-untyped-def]
    return view.money.amount


def _said(view: View, name: str) -> tuple[Price, Value] | None:
    """The amount right behind its label in a sentence: "the amount of $40.20 is due"."""

    def read(text: str) -> Price | None:
        price = view.money.price(text[:60])
        return price if price is not None and sum(map(str.isalnum, text[: price.start])) <= 4 else None

    found = view.pairs.find(name, read, ("inside", "rest"))
    if found is None:
        return None
    price, value = found
    return price, value._replace(text=value.text[price.start : price.end].strip())


def put_price(draft: Draft, name: str, found: tuple[Price, Value]) -> None:
    draft.add(name, found[0].normal(), found[1].lines, found[1].text)


def _put_day(view: View, draft: Draft, name: str) -> None:
    day = view.pairs.find(("paid_on", "date"), view.moments.day, ("colon", "rest", "right", "below"))
    if day is not None and not day[0].clock:
        clock = view.pairs.find("time", view.moments.clock, ("colon", "rest", "right", "below"))
        if clock is not None and clock[0].day is None:
            day = (
                day[0]._replace(clock=clock[0].clock),
                Value(day[1].text, (*day[1].lines, *clock[1].lines), "right", ""),
            )
    day = day or _day_said(view)
    if day is not None and day[0].day is not None:
        draft.add(name, day[0].begins, day[1].lines, day[1].text)


def _day_said(view: View) -> tuple[Moment, Value] | None:
    """The first day on the screen, one of a month before a weekday. A sentence may go on in the line
    below.
    """
    found = [
        (moment, block.lines)
        for block in view.layout.blocks
        if (moment := view.moments.day(block.text)) is not None
    ]
    if not found:
        return None
    moment, lines = min(found, key=lambda one: not one[0].exact)
    own = [line for line in lines if view.moments.day(line.text) is not None] or lines
    return moment, Value(own[0].text, tuple(own), "rest", "")


def largest(view: View) -> tuple[Price, Value] | None:
    """The amount that is set largest, if it is alone on its line."""
    found = [
        (price, line) for line in view.layout.lines if (price := view.money.amount(line.text)) is not None
    ]
    tall = max((line.height for _, line in found), default=0)
    large = [(price, line) for price, line in found if line.height >= 0.9 * tall]
    if not large or (len(large) > 1 and len({price.value for price, _ in large}) > 1):
        return None
    return large[0][0], Value(large[0][1].text, (large[0][1],), "rest", "")


def _only(view: View) -> tuple[Price, Value] | None:
    """The amount of a sentence, where the screen has no other one."""
    found = [
        (price, Value(line.text[price.start : price.end], (line,), "inside", ""))
        for line in view.layout.lines
        for price in view.money.prices(line.text)
    ]
    return found[0] if len(found) == 1 else None


def _items(view: View) -> list[tuple[dict[str, str], Row]]:
    """What was bought: the rows with a name and a price above the first sum, or those below one."""
    listed: list[list[tuple[dict[str, str], Row]]] = [[]]
    for name, price, row in priced(view):
        if is_sum(view, row):
            listed.append([])
            continue
        if price.value.startswith("-"):
            continue
        quantity = _QUANTITY.search(name)
        item = {"name": plain(_QUANTITY.sub("", name, count=1)) if quantity else name}
        if quantity is not None:
            item["quantity"] = next(group for group in quantity.groups() if group)
        item["price"] = _written(price, row)
        listed[-1].append((item, row))
    return listed[0] or next((items for items in listed if len(items) > 1), [])


def priced(view: View) -> list[tuple[str, Price, Row]]:
    """The rows of a list that have a name at the left and an amount at the right."""
    found = []
    for row in view.layout.rows:
        if len(row.lines) < 2 or row.last.right < 0.6 * view.layout.width:
            continue
        price = view.money.amount(row.last.text)
        name = plain(row.first.text)
        if price is None or weight(name) < 2:
            continue
        if len(row.lines) > 2 and re.fullmatch(r"[x×]? ?\d{1,3} ?[x×]?", row.lines[1].text.strip()):
            name = f"{row.lines[1].text.strip(' x×')}x {name}"
        found.append((name, price, row))
    return found


def is_sum(view: View, row: Row) -> bool:
    """Whether a row begins with a label, with a rate of a tax or a sign behind it, or a heading."""
    return is_heading(plain(row.first.text)) or any(
        label.line is row.first and label.start == 0 and weight(row.first.text[label.end :]) <= 2
        for label in view.pairs.labels
    )


def _method(text: str) -> str | None:
    return text if 2 <= len(text) <= 60 and any(map(str.isalpha, text)) else None


def _card(view: View) -> tuple[str, Value] | None:
    for line in view.layout.lines:
        found = _CARD.search(line.text[:200])
        if found is not None:
            return found[0], Value(found[0], (line,), "rest", "")
    return None


def _number(text: str) -> str | None:
    """A number of an order or a bill: with a digit, without a blank in it, or in groups of digits."""
    match = re.match(
        r"#?((?=[\w./-]*\d)[A-Z0-9][\w./-]{3,31}|\d{2,6}(?: \d{2,6}){1,5})(?=$|[\s,;，。])",
        text.strip(" :：#"),
    )
    if match is None or re.fullmatch(r"\d{1,2}[./-]\d{1,2}[./-]\d{2,4}", match[1]):
        return None
    return match[1].rstrip(".")


def _company(text: str) -> str | None:
    text = plain(text)
    return text if 2 <= len(text) <= 60 and letters(text) > 0.6 and not is_heading(text) else None


def _person(text: str) -> str | None:
    """A name, without the account behind it."""
    name = re.split(r"\s[·•|]\s|\s{2,}|[(（]", plain(text))[0].strip(" ,")
    if not 2 <= len(name) <= 50 or letters(name) < 0.75 or is_heading(name):
        return None
    return name if name[0].isupper() or not name[0].isascii() or name[0] == "@" else None


def _iban(view: View) -> tuple[str, tuple[Line, ...]] | None:
    span = next(ibans(view.text), None)
    if span is None:
        return None
    written = " ".join(view.text.text[slice(*span)].split())
    squeezed = written.replace(" ", "")
    lines = [
        line
        for line in view.layout.lines
        if (text := line.text.replace(" ", ""))
        and (squeezed in text or squeezed[:12] in text or squeezed[-6:] in text)
    ]
    return written, tuple(lines[:2])
