"""Records of what is looked up: a code to sign in with, a network with its password, somebody's address."""

import re

from engines.records import Record
from rules.entities import NO_NAME, entities_of_codes
from rules.layout import plain, weight
from rules.lists import entries, name_list
from rules.onetime import one_time_codes
from rules.pairs import FORMED, NAMED
from rules.subjects import any_of, evidence, subject
from rules.travel import put_address
from rules.view import Draft, View

_SENDER = re.compile(r"[\[【]([^\]】]{2,30})[\]】]|^([A-Z][\w&.'+ -]{1,30}?)(?=: | - )|^G-(?=\d{6})")
_NAME = r"[A-Z][\w&.'+-]{1,20}(?: [A-Z][\w&.'+-]{1,20}){0,2}"
_YOUR = re.compile(
    rf"(?:[Yy]our|the) (?P<name>{_NAME}) (?:[a-z-]+ ){{0,3}}?{any_of('codes', 'behind')}(?!\w)"
    rf"|{any_of('codes', 'before')} (?P<after>{_NAME})"
    rf"|{any_of('codes', 'opens')} (?:your )?(?P<at>{_NAME})"
)
_UNIT = any_of("durations", "units")
_FOR = re.compile(
    rf"(?:{any_of('durations', 'before')}) ?(?P<time>\d{{1,3}} ?(?:{_UNIT}))(?![a-z])"
    rf"|(?P<within>(?<!\d)\d{{1,3}} ?(?:{_UNIT}))(?={any_of('durations', 'after')})"
)
LEAST_CONTACTS = 2  # of a list
_PHONE = re.compile(r"\+?\(?\d[\d ()./-]{5,20}\d")
_MAIL = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,5}")


def one_time_code(view: View) -> Record | None:
    """A code to sign in or to confirm with."""
    text = view.text
    spans = list(one_time_codes(text))
    if (
        not spans
        or evidence(view, "parcel") > 2
        or view.pairs.has("flight", "departure", "checkin", "checkout")
    ):
        return None
    start, end = spans[0]
    code = " ".join(text.text[start:end].split())
    if not re.fullmatch(r"[A-Za-z0-9 -]{3,24}", code):
        return None
    draft = Draft(view)
    squeezed = code.replace(" ", "")
    lines = [line for line in view.page.lines if squeezed in line.text.replace(" ", "")][:1]
    draft.add("code", code, lines, code)
    near = [
        line
        for line in view.layout.lines
        if lines and abs(line.top - lines[0].top) < 0.2 * view.layout.height
    ]
    for line in near:
        named = _YOUR.search(line.text) or _sender(line.text, code)
        if named is not None and (name := next((one for one in named.groups() if one), "")):
            draft.add("service", name.strip(), [line], name)
            break
    draft.name_app("service")
    for block in view.layout.blocks:
        valid = _FOR.search(block.text) if any(line in near for line in block.lines) else None
        if valid is not None:
            span = re.sub(r"(?<=\d) (?=[\u4e00-\u9fff])", "", valid["time"] or valid["within"])
            draft.add("validFor", span, block.lines, span)
            break
    return draft.record("OneTimeCode", 0.85)


def _sender(text: str, code: str) -> re.Match[str] | None:
    """Who sends a message with a code: "Cloudbox: your code is 123456", but not "Code: 123456"."""
    found = _SENDER.search(text)
    rest = text[found.end() :].strip(" :-") if found else ""
    return None if rest.startswith(code) or not any(map(str.isalpha, rest)) else found


def wifi(view: View) -> Record | None:
    """A wireless network and its password, written or as a code to scan."""
    draft = Draft(view)
    encoded = entities_of_codes([line.text for line in view.page.encoded], view.page.codes)
    for entity, lines in ((entity, view.page.encoded) for entity in encoded):
        if entity.type == "wifi" and entity.value != NO_NAME:
            draft.add("ssid", entity.value, lines, entity.value)
        if entity.type == "password":
            draft.add("password", entity.value, lines, entity.value)
    if evidence(view, "wifi") >= 1:
        password = view.pairs.find("password", _secret, ("colon", "rest", "right", "below"))
        name = view.pairs.find("ssid", _network, NAMED)
        if name is not None and (password is not None or view.pairs.has("password")):
            draft.add("ssid", name[0], name[1].lines, name[0])
            draft.put("password", password)
    return draft.record("WifiNetwork", 0.85)


def _secret(text: str) -> str | None:
    text = text.strip()
    return text if 4 <= len(text) <= 63 and " " not in text and not re.fullmatch(r"[•*·●∙x]+", text) else None


def _network(text: str) -> str | None:
    text = plain(text)
    return text if 1 < len(text) <= 32 and weight(text) >= 1 else None


def contact(view: View) -> Record | None:
    """Somebody's card: a name with a phone number, a mail or an address."""
    pairs = view.pairs
    phone = pairs.find("telephone", _phone, FORMED)
    mail = pairs.find("email", _mail, FORMED)
    labelled = (phone is not None) + (mail is not None) + pairs.has("address")
    if evidence(view, "contact") < 2 or labelled < 1 or len(view.layout.lines) > 40:
        return None
    if pairs.has("total", "order", "departure", "checkin", "password", "tracking", "booking", "due", "date"):
        return None
    name = pairs.find("name", lambda text: text if weight(text) >= 3 and len(text) < 50 else None, NAMED)
    named = name[1] if name else subject(view)
    if named is None:
        return None
    draft = Draft(view)
    draft.add("name", plain(named.text), named.lines, named.text)
    draft.put("telephone", phone)
    draft.put("email", mail)
    put_address(view, draft, "address")
    return draft.record("Contact", 0.7)


def contacts(view: View) -> Record | None:
    """A list of contacts, or the page of one, which may be without labels."""
    if view.kind != "contacts":
        return None
    draft, named = Draft(view), subject(view)
    if named is not None:
        draft.add("name", plain(named.text), named.lines, named.text)
    for name, found_in in (("telephone", _phone), ("email", _mail)):
        places = [(value, line) for line in view.layout.lines if (value := found_in(line.text))]
        if len({value for value, _ in places}) == 1:
            draft.add(name, places[0][0], [places[0][1]])
    if (one := draft.record("Contact")) is not None:
        return one
    draft = Draft(view)
    title = name_list(view, draft, "contacts")
    listed = entries(view.layout, view.kind, title)
    if len(listed) >= LEAST_CONTACTS:
        tops = [*(one.lines[0].top for one in listed), view.page.height]
        entered = [
            {"name": one.name} | _number_between(view, tops[at], tops[at + 1])
            for at, one in enumerate(listed)
        ]
        draft.add("entries", entered, [line for one in listed for line in one.lines])
    return draft.record("Contact")


def _number_between(view: View, top: int, end: int) -> dict[str, str]:
    """The first phone number on the lines between two heights."""
    numbers = (_phone(line.text) for line in view.layout.lines if top <= line.top < end)
    return next(({"telephone": number} for number in numbers if number), {})


def _phone(text: str) -> str | None:
    match = _PHONE.search(text)
    return match[0] if match and 7 <= sum(map(str.isdigit, match[0])) <= 15 else None


def _mail(text: str) -> str | None:
    match = _MAIL.search(text)
    return match[0] if match else None
