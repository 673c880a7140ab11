"""Records of parcels: where one is, when it comes, and the code that opens the locker."""

import re

from engines.records import Record
from rules.layout import plain, weight
from rules.pairs import FORMED, NAMED, Value, Where
from rules.searched import fold
from rules.subjects import any_of, evidence, words_of
from rules.view import Draft, View

_BESIDE: tuple[Where, ...] = ("colon", "rest", "right", "below", "inside")
# What nothing else looks like: UPU S10, UPS, DHL, SF, YTO, JD, Amazon Logistics, USPS, Hermes.
_FORMS = re.compile(
    r"(?<![A-Z0-9])(?:1Z[0-9A-Z]{16}|[A-Z]{2} ?\d{3} ?\d{3} ?\d{3} ?[A-Z]{2}|JJD\d{15,20}|JVGL\d{14,18}"
    r"|(?:SF|YT|JT|JDV?[A-Z]{0,2})\d{11,15}|TB[ABCM]\d{12}|9[2-5]\d{2}(?: ?\d{4}){4} ?\d{2}|H\d{19})"
    r"(?![A-Z0-9])"
)
_TRACKING = re.compile(r"(?=(?:[A-Z]*[ -]?\d){6})[A-Z0-9](?:[A-Z0-9]|[ -](?=[A-Z0-9]{2})){6,38}")
_PICKUP = re.compile(r"(?=[A-Z0-9# -]*\d)[A-Z0-9]{1,8}(?:[ -][A-Z0-9]{1,6}){0,3}")
_CARRIER = re.compile(rf"(?<![A-Za-z0-9_])(?:{any_of('carriers')})(?![A-Za-z0-9_])")
_LINK = re.compile(r"https?://[^\s<>\"'，。；、（）]{6,200}")


def parcel(view: View) -> Record | None:
    """A parcel on its way, or waiting."""
    pairs, carrier = view.pairs, _carrier(view)
    shown = evidence(view, "parcel")
    if shown < 1 or view.money.prices(view.layout.content)[6:]:
        return None
    shown += carrier is not None
    draft = Draft(view)
    if (number := _tracking(view)) is not None:
        draft.add("trackingNumber", number[0], number[1].lines, number[0])
    draft.put("pickupCode", pairs.find("pickup_code", pickup_code, FORMED))
    arrives = pairs.find("arrival_day", view.moments.day, _BESIDE) if shown >= 2 or number else None
    if arrives is not None:
        moment, lines = arrives[0], arrives[1].lines
        draft.add("expectedArrival", moment.begins, lines, arrives[1].text)
        draft.add("expectedArrivalUntil", moment.ends, lines, arrives[1].text)
    draft.put("carrier", pairs.find("carrier", _short, NAMED) or carrier)
    draft.put("orderNumber", pairs.find("order", _order, FORMED))
    draft.put("seller", pairs.find("seller", _short, NAMED))
    draft.put("status", pairs.find("status", _short, NAMED) or _status(view))
    draft.put("deliveryAddress", pairs.find("delivery_address", _address, NAMED))
    for line in view.page.lines:
        link = _LINK.search(line.text)
        if link is not None and ("track" in link[0] or (number is not None and number[0] in link[0])):
            draft.add("trackingUrl", link[0].rstrip(".,"), [line], link[0])
    return draft.record("ParcelDelivery", 0.85 if number is not None else 0.7)


def _tracking(view: View) -> tuple[str, Value] | None:
    found = view.pairs.find("tracking", tracking_number, FORMED)
    if found is not None:
        return found
    for line in view.layout.lines:
        if match := _FORMS.search(line.text):
            return match[0], Value(match[0], (line,), "rest", "")
    return None


def tracking_number(text: str) -> str | None:
    """The number of a parcel at the beginning of a text."""
    match = _TRACKING.match(text.strip(" :：#"))
    if match is None or re.fullmatch(r"(?:19|20)\d\d-\d\d-\d\d.*", match[0]):
        return None
    return match[0].strip(" -") if sum(map(str.isdigit, match[0])) >= 6 else None


def pickup_code(text: str) -> str | None:
    """The code that opens a locker, at the beginning of a text."""
    match = _PICKUP.match(text.strip(" :：#"))
    if match is None or len(match[0]) < 3 or text[match.end() : match.end() + 1] in (":", "："):
        return None
    return match[0].strip(" -")


def _carrier(view: View) -> tuple[str, Value] | None:
    for line in view.layout.all_lines:
        if found := _CARRIER.search(line.text):
            return found[0], Value(found[0], (line,), "rest", "")
    return None


def _status(view: View) -> tuple[str, Value] | None:
    """A line that is the state of a parcel, the largest of them."""
    states = {fold(word) for word in words_of("statuses")}
    found = [line for line in view.layout.lines if fold(plain(line.text)).strip(" .!。！") in states]
    best = max(found, key=lambda line: line.height, default=None)
    return (plain(best.text), Value(best.text, (best,), "rest", "")) if best else None


def _order(text: str) -> str | None:
    match = re.match(r"#?((?=[\w-]*\d)[A-Z0-9][\w-]{3,31})(?=$|[\s,;，。])", text.strip(" :：#"))
    return match[1] if match else None


def _short(text: str) -> str | None:
    return plain(text) if weight(text) >= 2 and len(text) <= 60 else None


def _address(text: str) -> str | None:
    return text if weight(text) >= 4 and len(text) <= 160 else None
