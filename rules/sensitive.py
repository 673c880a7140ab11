"""Recognises in a text what must not leave the house: cards, bank accounts, identity numbers, one-time codes,
passwords, keys, recovery phrases.

Every kind rests on a form that little else has (a check digit, a prefix, a list of words) or on a word that
names it right beside it. A number alone is nothing: an order number passes the check of a card one time in
ten. So a card needs the prefix of an issuer or a card's word as well, and nothing that names another number.

The text was read from a picture, so letters that look like digits count as digits, blanks inside a number do
not matter, and a value may be on the lines below its label. All of it takes linear time.

The words of recovery phrases are the English list of BIP-39, unchanged from
https://github.com/trezor/python-mnemonic (MIT licence, © 2013-2016 Pavol Rusnak), in `bip39-english.txt`.
"""

import bisect
import functools
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Literal, get_args

import msgspec

Kind = Literal[
    "card",
    "iban",
    "national_id",
    "one_time_code",
    "password",
    "api_key",
    "private_key",
    "recovery_phrase",
]
KINDS: tuple[str, ...] = get_args(Kind)
MAX_CHARACTERS = 200_000  # looked at; what is stored for a photo has half of that


class Finding(msgspec.Struct, frozen=True):
    """A piece of a line that is sensitive: the line's index, and the first and the last character, exclusive.
    What goes over several lines has a finding for each.
    """

    kind: str
    line: int
    start: int
    end: int


def find(lines: Sequence[str]) -> list[Finding]:
    """What is sensitive in `lines`, in their order."""
    text = _Text("\n".join(line.replace("\n", " ") for line in lines))
    found = {
        Finding(kind, *piece)
        for kind, finder in _FINDERS.items()
        for start, end in finder(text)
        for piece in text.pieces(start, end)
    }
    return sorted(found, key=lambda one: (one.line, one.start, one.end, one.kind))


def kinds(text: str) -> list[str]:
    """The kinds of what is sensitive in `text`, in the order of `KINDS`."""
    searched = _Text(text)
    return [kind for kind, finder in _FINDERS.items() if any(True for _ in finder(searched))]


# A place in the text: the first character and the one after the last.
Span = tuple[int, int]

# Full-width forms and the look-alikes of other scripts, each one character, so that places stay the same.
_SAME = str.maketrans(
    {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}
    | dict.fromkeys(map(ord, "\u3000\u00a0\u2002\u2003\u2009\u202f\t\r\f\v"), " ")
    | dict.fromkeys(map(ord, "‐‑‒–—−﹣"), "-")
    | dict.fromkeys(map(ord, "×Χ"), "X")
    | dict.fromkeys(map(ord, "“”"), '"')
    | {ord("‘"): "'", ord("’"): "'", ord("。"): ".", ord("【"): "[", ord("】"): "]"}
)
_ALIKE = "OoQDIil|!SBZ"
_DIGITS = str.maketrans(_ALIKE, "000011111582")
_LETTERS = str.maketrans("01582", "OISBZ")
_D = rf"[0-9{_ALIKE}]"


class _Text:
    """A text in the form that the expressions expect, with the places of its lines."""

    def __init__(self, text: str):
        self.text = text[:MAX_CHARACTERS].translate(_SAME)
        self._starts = [0, *(match.end() for match in re.finditer(r"\n", self.text))]

    def line_of(self, place: int) -> int:
        return bisect.bisect_right(self._starts, place) - 1

    def span(self, line: int) -> Span:
        """The place of a line, without its break."""
        following = line + 1
        end = self._starts[following] - 1 if following < len(self._starts) else len(self.text)
        return self._starts[line], end

    def lines_below(self, place: int, most: int) -> Iterator[Span]:
        first = self.line_of(place) + 1
        return (self.span(line) for line in range(first, min(first + most, len(self._starts))))

    def around(self, start: int, end: int, *, above: int, below: int = 0) -> str:
        """The lines of a piece, with so many lines above and below, 200 characters in each direction."""
        first, last = max(0, self.line_of(start) - above), self.line_of(end) + below
        top = self._starts[first]
        bottom = self.span(min(last, len(self._starts) - 1))[1]
        return self.text[max(top, start - 200) : min(bottom, end + 200)]

    def label(self, start: int) -> str:
        """What is before a value: the beginning of its line, or the line above where there is none."""
        line = self.line_of(start)
        before = self.text[max(self._starts[line], start - 200) : start]
        if line and sum(map(str.isalpha, before)) < 2:
            top, bottom = self.span(line - 1)
            before = f"{self.text[max(top, bottom - 200) : bottom]} {before}"
        return before

    def pieces(self, start: int, end: int) -> Iterator[tuple[int, int, int]]:
        for line in range(self.line_of(start), self.line_of(max(start, end - 1)) + 1):
            top, bottom = self.span(line)
            if max(start, top) < min(end, bottom):
                yield line, max(start, top) - top, min(end, bottom) - top


# ------------------------------------------------------------------------------------------------------ cards

_CARD_WORD = re.compile(
    r"(?<![a-z])(?:card|visa|master ?card|amex|american ?express|union ?pay|discover|maestro|debit|credit"
    r"|cvv2?|cvc2?|valid ?thru|good ?thru|karte|kreditkarte|carte)(?![a-z])"
    r"|卡号|银行卡|信用卡|储蓄卡|借记卡|贷记卡|银联|有效期|卡片",
    re.IGNORECASE,
)
# What names a number that is no card's.
_OTHER_NUMBER = re.compile(
    r"(?<![a-z])(?:orders?|tracking|track|shipment|waybill|parcel|invoice|reference|ref|transaction|trace|serial"
    r"|s/n|sn|imei|meid|iccid|isbn|ean|upc|sku|barcode|booking|ticket|receipt|policy|member|membership|loyalty"
    r"|customer|meter|case|contract|model|part|batch|lot|uuid|phone|tel|mobile|fax|version|build|id)(?![a-z])"
    r"|订单|单号|流水|交易号|编号|序列号|凭证|条码|条形码|设备|运单|快递|手机|电话|版本|商品|货号|会员|合同|发票",
    re.IGNORECASE,
)
_GROUP = re.compile(rf"(?<![A-Za-z0-9]){_D}{{1,19}}(?![A-Za-z0-9])")
_BETWEEN_GROUPS = re.compile(r"[ ·•-]{0,3}\n?[ ·•-]{0,3}")
_MOST_GROUPS = 7


def _cards(text: _Text) -> Iterator[Span]:
    # The end of an IBAN may have the check digit of a card.
    others = [*_ibans(text), *_residents(text)]
    for chain in _chains(text.text, others):
        first = 0
        while first < len(chain):
            last = next(
                (last for last in _card_ends(chain, first) if _is_card(text, chain[first:last])), None
            )
            if last is None:
                first += 1
            else:
                yield chain[first].start(), chain[last - 1].end()
                first = last


def _chains(text: str, others: Sequence[Span]) -> Iterator[list[re.Match[str]]]:
    """Groups of digits that follow each other, with nothing between them but blanks and dashes;
    without those in `others`.
    """
    chain: list[re.Match[str]] = []
    starts = sorted(others)
    for group in _GROUP.finditer(text):
        if not any(map(str.isdigit, group[0])):
            continue
        before = bisect.bisect_right(starts, (group.start(), len(text))) - 1
        if before >= 0 and group.start() < starts[before][1]:
            continue
        if chain and not _BETWEEN_GROUPS.fullmatch(text, chain[-1].end(), group.start()):
            yield chain
            chain = []
        chain.append(group)
    if chain:
        yield chain


def _card_ends(chain: list[re.Match[str]], first: int) -> Iterator[int]:
    length = 0
    for last in range(first, min(first + _MOST_GROUPS, len(chain))):
        length += len(chain[last][0])
        if length > 19:
            return
        if length >= 13:
            yield last + 1


def _is_card(text: _Text, groups: list[re.Match[str]]) -> bool:
    read = "".join(group[0] for group in groups)
    digits = read.translate(_DIGITS)
    if sum(map(str.isdigit, read)) < len(read) - 3 or not luhn(digits):
        return False
    start, end = groups[0].start(), groups[-1].end()
    label = text.label(start)
    lengths = [len(group[0]) for group in groups]
    usual = len(lengths) == 1 or lengths in ([4, 6, 5], [4, 6, 4], [6, 13], [4, 4, 4, 4, 3])
    usual = usual or (len(digits) == 16 and not any(length % 4 for length in lengths))
    if "\n" in text.text[start:end] and any(length != 4 for length in lengths[:-1]):
        return False
    named = bool(_CARD_WORD.search(label))
    if not named and _OTHER_NUMBER.search(label):
        return False
    named = named or bool(_CARD_WORD.search(text.around(start, end, above=3, below=3)))
    if usual and issued(digits):
        return True
    # Days and amounts on one line are shorter groups.
    return named and len(set(digits)) > 1 and min(lengths[:-1], default=len(digits)) > 2


def luhn(digits: str) -> bool:
    """Whether the last digit is the check digit of ISO/IEC 7812."""
    doubled = (2 * int(digit) for digit in digits[-2::-2])
    return not (sum(map(int, digits[-1::-2])) + sum(n - 9 if n > 9 else n for n in doubled)) % 10


def issued(digits: str) -> bool:
    """Whether a card's number begins with the prefix of an issuer and has the length that it uses."""
    two, three, four, length = int(digits[:2]), int(digits[:3]), int(digits[:4]), len(digits)
    return (
        (digits[0] == "4" and length in (13, 16, 19))  # Visa
        or ((51 <= two <= 55 or 2221 <= four <= 2720) and length == 16)  # Mastercard
        or (two in (34, 37) and length == 15)  # American Express
        or ((four == 6011 or 644 <= three <= 659) and length in (16, 19))  # Discover
        or ((300 <= three <= 305 or two in (36, 38, 39)) and length == 14)  # Diners Club
        or (3528 <= four <= 3589 and length in (16, 19))  # JCB
        or ((two == 62 or four == 9558 or 810 <= three <= 817) and 16 <= length <= 19)  # UnionPay
        or (2200 <= four <= 2204 and length in (16, 19))  # Mir
        or (four in (5018, 5020, 5038, 5893, 6304, 6759, 6761, 6762, 6763) and 13 <= length <= 19)  # Maestro
    )


# ------------------------------------------------------------------------------------------------------ IBANs

# The account number after country and check digits, by the registry of SWIFT (release 97): how many digits
# (n), capitals (a) or either (c).
_REGISTRY = """\
AD8n12c AE19n AL8n16c AT16n AZ4a20c BA16n BE12n BG4a6n8c BH4a14c BI23n BR23n1a1c BY4c4n16c CH5n12c CR18n
CY8n16c CZ20n DE18n DJ23n DK14n DO4c20n EE16n EG25n ES20n FI14n FK2a12n FO14n FR10n11c2n GB4a14n GE2a16n
GI4a15c GL14n GR7n16c GT24c HN4a20n HR17n HU24n IE4a14n IL19n IQ4a15n IS22n IT1a10n12c JO4a4n18c KW4a22c
KZ3n13c LB4n20c LC4a24c LI5n12c LT16n LU3n13c LV4a13c LY21n MC10n11c2n MD20c ME18n MK3n10c2n MN16n MR23n
MT4a5n18c MU4a19n3a NI4a20n NL4a10n NO11n OM3n16c PK4a16c PL24n PS4a21c PT21n QA4a21c RO4a16c RS18n
RU14n15c SA2n18c SC4a20n3a SD14n SE20n SI15n SK20n SM1a10n12c SO19n ST21n SV4a20n TL19n TN20n TR6n16c
UA6n19c VA18n VG4a16n XK16n YE4a4n18c"""
ACCOUNTS = {
    entry[:2]: "".join(int(number) * kind for number, kind in re.findall(r"(\d{1,2})([nac])", entry))
    for entry in _REGISTRY.split()
}
_IBAN_START = re.compile(rf"(?:(?<![A-Za-z0-9])|(?<=IBAN))([A-Z][A-Z0-9]) ?({_D}{{2}})(?=[ -]?[A-Za-z0-9|])")
_IBAN_NEXT = re.compile(r"[ .-]{0,2}\n?[ ]{0,2}([A-Za-z0-9|])")
_FLIPS = dict(zip("O0I1S5B8Z2", "0O1I5S8B2Z", strict=True))


def _ibans(text: _Text) -> Iterator[Span]:
    end = 0
    for start in _IBAN_START.finditer(text.text):
        account = ACCOUNTS.get(start[1].translate(_LETTERS))
        if account is None or start.start() < end:
            continue
        read = [start[1].translate(_LETTERS), start[2].translate(_DIGITS)]
        place = start.end()
        for kind in account:
            following = _IBAN_NEXT.match(text.text, place)
            if following is None:
                break
            character = following[1]
            read.append(
                character.translate(_DIGITS)
                if kind == "n"
                else (character.upper().translate(_LETTERS) if kind == "a" else character.upper())
            )
            place = following.end()
        else:
            number = "".join(read)
            whole = not text.text[place : place + 1].isascii() or not text.text[place : place + 1].isalnum()
            if whole and any(map(checked_by_97, _spellings(number, account))):
                end = place
                yield start.start(), place


def checked_by_97(iban: str) -> bool:
    """Whether the check digits of an IBAN are right (ISO 7064, mod 97-10)."""
    moved = iban[4:] + iban[:4]
    if not (moved.isascii() and moved.isalnum()):
        return False
    return int("".join(str(int(character, 36)) for character in moved)) % 97 == 1


def _spellings(iban: str, account: str) -> Iterator[str]:
    """The number as it was read, and with each letter that looks like a digit as the other one."""
    yield iban
    for place, kind in enumerate(account, 4):
        if kind == "c" and iban[place] in _FLIPS:
            yield f"{iban[:place]}{_FLIPS[iban[place]]}{iban[place + 1 :]}"


# ------------------------------------------------------------------------------------------- identity numbers

_RESIDENT = re.compile(rf"(?<![0-9A-Za-z]){_D}{{2}}[ ]?(?:{_D}[ -]?){{15}}[0-9Xx{_ALIKE}](?![0-9A-Za-z])")
# Numbers that are only sure beside the word that names them: the word, the form, and what else must hold.
_ID_WORD = (
    (
        r"(?<![a-z])(?:ssn|social ?security)(?![a-z])|社会安全号",
        rf"(?<![0-9A-Za-z-])({_D}{{3}})[- ]({_D}{{2}})[- ]({_D}{{4}})(?![0-9A-Za-z-])",
        lambda value: _possible_ssn(value),
    ),
    (
        r"(?<![a-z])(?:national ?insurance|ni ?(?:number|no)|nino)(?![a-z])",
        r"(?<![0-9A-Za-z])[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z] ?\d{2} ?\d{2} ?\d{2} ?[A-D](?![0-9A-Za-z])",
        None,
    ),
    (
        r"(?<![a-z])(?:passport|reisepass|passeport|pasaporte)(?![a-z])|护照|通行证",
        r"(?<![0-9A-Za-z])(?=[A-Z0-9]{0,3}\d{5})[A-Z0-9]{7,10}(?![0-9A-Za-z])",
        None,
    ),
    (
        r"(?<![a-z])(?:driver'?s? ?licen[cs]e|driving ?licen[cs]e|dl ?(?:no|number)|führerschein)(?![a-z])"
        r"|驾驶证",
        r"(?<![0-9A-Za-z])(?=[A-Z0-9]{0,8}\d{4})[A-Z0-9]{7,18}(?![0-9A-Za-z])",
        None,
    ),
    (
        r"(?<![a-z])(?:aadhaar|aadhar)(?![a-z])",
        r"(?<![0-9A-Za-z])\d{4} ?\d{4} ?\d{4}(?![0-9A-Za-z])",
        None,
    ),
    (
        r"steuer-?id|steuerliche identifikation|steueridentifikation|tax ?id(?:entification)?(?![a-z])",
        r"(?<![0-9A-Za-z])[1-9]\d ?\d{3} ?\d{3} ?\d{3}(?![0-9A-Za-z])|(?<![0-9-])\d{2}-\d{7}(?![0-9-])",
        None,
    ),
    (
        r"(?<![a-z])(?:dni|nie|documento nacional)(?![a-z])",
        r"(?<![0-9A-Za-z])[XYZ\d]\d{7}-?[A-Z](?![0-9A-Za-z])",
        None,
    ),
    (
        r"(?<![a-z])(?:codice fiscale|pan ?(?:card|no|number))(?![a-z])",
        r"(?<![0-9A-Za-z])(?:[A-Z]{6}\d{2}[A-Z]\d{2}[A-Z]\d{3}[A-Z]|[A-Z]{5}\d{4}[A-Z])(?![0-9A-Za-z])",
        None,
    ),
    (
        r"(?<![a-z])(?:social insurance number|national id(?:entity)?|identity card|id ?card|personalausweis"
        r"|hkid|sécurité sociale)(?![a-z])|身份[证證]|证件号|統一編號",
        r"(?<![0-9A-Za-z])(?:[A-Z]{1,2}\d{6} ?\(?[0-9A]\)?|[A-Z][12]\d{8}|\d{15}|\d{3} \d{3} \d{3}"
        r"|[12] ?\d{2} ?\d{2} ?\d{2} ?\d{3} ?\d{3} ?\d{2}|[A-Z0-9]{9}(?<=\d))(?![0-9A-Za-z])",
        lambda value: sum(map(str.isdigit, value)) >= 5,
    ),
)  # fmt: skip
_IDS: tuple[tuple[re.Pattern[str], re.Pattern[str], Callable[[str], bool] | None], ...] = tuple(
    (re.compile(word, re.IGNORECASE), re.compile(form), holds) for word, form, holds in _ID_WORD
)
ID_REACH = 120  # characters after the word in which its number is, over at most two lines


def _residents(text: _Text) -> Iterator[Span]:
    return (found.span() for found in _RESIDENT.finditer(text.text) if resident(found[0]))


def _identity_numbers(text: _Text) -> Iterator[Span]:
    yield from _residents(text)
    for word, form, holds in _IDS:
        for cue in word.finditer(text.text):
            bottom = max((end for _, end in text.lines_below(cue.end(), 2)), default=len(text.text))
            number = form.search(text.text, cue.end(), min(bottom, cue.end() + ID_REACH))
            if number is not None and (holds is None or holds(number[0])):
                yield number.span()


def resident(read: str) -> bool:
    """Whether this is the number of a Chinese resident (GB 11643: a day of birth, and ISO 7064 mod 11-2)."""
    plain = re.sub(r"[ -]", "", read)
    digits, check = plain[:-1].translate(_DIGITS), plain[-1].upper()
    if len(plain) != 18 or sum(map(str.isdigit, plain)) < 14 or digits[0] in "09":
        return False
    year, month, day = int(digits[6:10]), int(digits[10:12]), int(digits[12:14])
    if not (1900 <= year <= 2099 and 1 <= month <= 12 and 1 <= day <= 31):
        return False
    rest = sum(int(digit) * (1 << 17 - place) for place, digit in enumerate(digits)) % 11
    return (check if check == "X" else check.translate(_DIGITS)) == "10X98765432"[rest]


def _possible_ssn(value: str) -> bool:
    area, group, serial = re.sub(r"[ -]", " ", value).translate(_DIGITS).split(" ")
    return area not in ("000", "666") and area[0] != "9" and group != "00" and serial != "0000"


# --------------------------------------------------------------------------------------------- one-time codes

_CODE_CUE = re.compile(
    r"(?<![a-z])(?:verification|verify|security|authentication|authorization|authorisation|confirmation|log-?in"
    r"|sign-?in|one-?time|2fa|two-factor|sms|guard|identity) ?(?:code|pass ?code|pin)(?![a-z])"
    r"|(?<![a-z])(?:one-?time|sms|dynamic) ?password(?![a-z])"
    r"|(?<![a-z])(?:otp|one-time-code|tac code|backup codes|recovery codes)(?![a-z])"
    r"|(?:验证|校验|动态|随机|一次性|确认|授权|登[录陆]|安全)码|(?:动态|随机|一次性)(?:密码|口令)|备用代码|恢复代码",
    re.IGNORECASE,
)
_WEAK_CODE_CUE = re.compile(
    r"(?<![a-z])(?:your|the|this)(?: [a-z-]{1,20}){0,2} code(?: is|:)|(?<![a-z] )(?<![a-z])code: ?(?=\d)"
    r"|使用代码|(?:您的|你的)代码",
    re.IGNORECASE,
)
_OTHER_CODE = re.compile(
    r"(?<![a-z])(?:pick-?up|parcel|locker|collect|collection|delivery|deliver|courier|package|order|booking"
    r"|reservation|flight|hotel|itinerary|check-?in|coupon|promo|promotion|promotional|discount|voucher|gift|invite"
    r"|invitation|referral|zip|postal|post|area|country|error|exit|status|source|bar|qr|product|dress|class|save"
    r"|% off|checkout|meeting|tax|table|gate|seat|room)(?![a-z])"
    r"|取件|取货|取餐|提货|自提|快递|包裹|驿站|柜|外卖|核销|优惠|兑换|邀请|团购|取票|邮政|订单|预订|航班",
    re.IGNORECASE,
)
_CODE = re.compile(
    rf"(?<![A-Za-z0-9_.,/+*#$€£¥])(?:[A-Z]-)?({_D}(?:[ -]?{_D}){{3,7}}"
    r"|(?=[A-Z]{0,6}\d)(?=\d{0,6}[A-Z])[A-Z0-9]{5,8})"
    r"(?![A-Za-z0-9*]|[.,/:]\d|-\d)"
)
_CODE_ALONE = re.compile(rf"[^\w\n]{{0,3}}(?:[A-Z]-)?({_D}(?:[ -]{{0,3}}{_D}){{3,7}})[^\w\n]{{0,3}}")
_CODES_ALONE = re.compile(
    r"[^\w\n]{0,3}(?:\d{1,2}[.)] ?)?(?:\d{4} ?\d{4}|\d{3} ?\d{3}|[a-z0-9]{4,5}-[a-z0-9]{4,5})\b",
    re.IGNORECASE,
)
_UNIT = re.compile(
    r" ?(?:minutes?|mins?|seconds?|secs?|hours?|days?|digits?|characters?|times|usd|eur|rmb|分钟?|秒"
    r"|小时|天|位|元|年|月|日|次|%|€|个)(?![a-z])",
    re.IGNORECASE,
)
_CALL = re.compile(
    r"(?<![a-z])(?:call|dial|phone|tel|hotline|ending|ends|minutes|since|version|ref|expires)(?![a-z])"
    r"|致电|电话|热线|客服|拨打|尾号|咨询|手机|回复",
    re.IGNORECASE,
)
_CODE_FIRST = re.compile(r"[ ,]{0,2}(?:is|are|as|be|是|为|\(|\[|-|:|作为|\.)", re.IGNORECASE)
_AUTHENTICATOR = re.compile(r"authenticator|身份验证器|两步验证|验证器", re.IGNORECASE)
_TOTP = re.compile(r"(?m)^[^\w\n]{0,3}(\d{3} ?\d{3})[^\w\n]{0,3}(?:\d{1,2}s?)?$")
_TO_ENTER = re.compile(r"(?<![a-z])(?:enter|type|input)(?![a-z])|输入|填写", re.IGNORECASE)
CODE_REACH = 60  # characters between a code and its word on one line
CALL_REACH = 12  # characters before a number in which a word says that it is one to call
CODE_LINES = 4  # below the word: often a sentence about where it was sent to


def _one_time_codes(text: _Text) -> Iterator[Span]:
    for secret in _OTPAUTH.finditer(text.text):
        yield secret.span()
    for cue in _CODE_CUE.finditer(text.text):
        before = text.text[max(0, cue.start() - 12) : cue.start()]
        if _OTHER_CODE.search(before) or (
            cue[0].lower().startswith("confirmation") and _names_other_code(text, cue)
        ):
            continue
        several = "codes" in cue[0].lower() or "代码" in cue[0]
        yield from _backup_codes(text, cue) if several else _codes_beside(text, cue)
    for cue in _WEAK_CODE_CUE.finditer(text.text):
        if not _names_other_code(text, cue):
            yield from _codes_after(text, cue)
    if _AUTHENTICATOR.search(text.text):
        for code in _TOTP.finditer(text.text):
            yield code.span(1)


def _names_other_code(text: _Text, cue: re.Match[str]) -> bool:
    return bool(_OTHER_CODE.search(text.around(cue.start(), cue.end(), above=1)))


def _codes_beside(text: _Text, cue: re.Match[str]) -> Iterator[Span]:
    found = list(_codes_after(text, cue)) or list(_codes_before(text, cue))
    yield from found or _codes_below(text, cue)


def _codes_after(text: _Text, cue: re.Match[str]) -> Iterator[Span]:
    """The first number after the word on its line, unless a word between says that it is another one."""
    bottom = text.span(text.line_of(cue.end() - 1))[1]
    bottom = min(bottom, cue.end() + CODE_REACH)
    for code in _CODE.finditer(text.text, cue.end(), bottom + 1):
        between = text.text[cue.end() : code.start()]
        if _CALL.search(between) or (any(map(str.isdigit, between)) and between[-2:].strip() != ":"):
            return
        if _is_code(code[1]) and code.end() <= bottom + 1 and not _UNIT.match(text.text, code.end()):
            yield code.span(1)
            return


def _codes_before(text: _Text, cue: re.Match[str]) -> Iterator[Span]:
    top = text.span(text.line_of(cue.start()))[0]
    for code in _CODE.finditer(text.text, max(top, cue.start() - CODE_REACH), cue.start()):
        between = text.text[code.end() : cue.start()]
        ahead = text.text[max(top, code.start() - CALL_REACH) : code.start()]
        if _is_code(code[1]) and _CODE_FIRST.match(between) and not _CALL.search(f"{ahead}\n{between}"):
            yield code.span(1)


def _codes_below(text: _Text, cue: re.Match[str]) -> Iterator[Span]:
    """A line below that is nothing but a code, or digits in boxes, a line each; or the line above.

    Of digits in boxes, some are often not read, where they are to be entered. Elsewhere one is a dot.
    The keys of a keypad begin in their order.
    """
    single: list[Span] = []
    for top, bottom in text.lines_below(cue.end() - 1, CODE_LINES + 8):
        line = text.text[top:bottom].strip()
        if len(line) == 1 and line.translate(_DIGITS).isdigit():
            single.append((top, bottom))
            continue
        if single:
            break
        if text.line_of(top) - text.line_of(cue.end() - 1) > CODE_LINES:
            break
        code = _CODE_ALONE.fullmatch(text.text, top, bottom)
        if code is not None and _is_code(code[1]):
            yield code.span(1)
            return
    asked = _TO_ENTER.search(text.around(cue.start(), cue.end(), above=0))
    if (1 if asked else 4) <= len(single) <= 8:
        read = "".join(text.text[top:bottom].strip() for top, bottom in single).translate(_DIGITS)
        if not (len(read) > 2 and read in "1234567890"):
            yield single[0][0], single[-1][1]
        return
    number = text.line_of(cue.start())
    if number and cue.start() - text.span(number)[0] < 30:
        code = _CODE_ALONE.fullmatch(text.text, *text.span(number - 1))
        if code is not None and _is_code(code[1]):
            yield code.span(1)


def _backup_codes(text: _Text, cue: re.Match[str]) -> Iterator[Span]:
    for top, bottom in text.lines_below(cue.end() - 1, 20):
        code = _CODES_ALONE.match(text.text, top, bottom)
        if code is not None and any(map(str.isdigit, code[0])):
            yield code.span()


def _is_code(read: str) -> bool:
    plain = re.sub(r"[ -]", "", read)
    digits = sum(map(str.isdigit, plain))
    if read.count("-") > 1:  # a day
        return False
    if plain.isalnum() and plain.isupper() and not plain.isdigit():
        return digits >= 2 or digits >= len(plain) - 1
    return 4 <= len(plain) <= 8 and digits >= len(plain) - 1


# -------------------------------------------------------------------------------------------------- passwords

_LABEL = re.compile(
    r"(?<![A-Za-z0-9])(?:(?:app|admin|root|user|db|login|new|old|temporary|initial|default|wi-?fi|wlan|network"
    r"|account|current|master|unlock|door|card|sim)[ _-]{0,2}|[A-Za-z0-9_]{0,30}_)?"
    r"(?:pass ?w[o0]rd|pass ?code|passwd|pwd|pass ?phrase"
    r"|passwort|kennwort|contraseña|mot de passe|pin(?: code)?"
    r"|puk|pass(?=[:=]))(?![A-Za-z])"
    r"|(?:登[录陆]|支付|初始|默认|临时|管理员|无线|网络|新|旧|原|锁屏|开门|门锁|解压|交易|查询|WiFi|Wi-Fi|WIFI)?"
    r"(?<!动态)(?<!一次性)(?<!验证)(?<!取件)(?:密码|口令)",
    re.IGNORECASE,
)
_ASSIGNED = re.compile(
    r"""["']?(?: (?:\([^()\n]{1,20}\)|for [\w.@ -]{1,30}|of [\w.@ -]{1,30}))?"""
    r""" ?(?:[:=]|(?:is|was|为|是)[: ]?) ?["']?([^\s"',;，；]{4,64})""",
    re.IGNORECASE,
)
_SPACED_VALUE = re.compile(r"[ ]{1,3}(\S{6,64})[ ]{0,3}$|(?<=码) ?([!-~]{6,64})[ ]{0,3}$", re.MULTILINE)
_APP_PASSWORD = re.compile(r"[^\w\n]{0,3}([a-z]{4}(?:[ -][a-z]{4}){3})\b")
_MADE = re.compile(r"(?=[!-~]{0,63}\d)[!-~]{6,64}")
_MASK = re.compile(r"[*•·●xX._-]{3,}|(?:…|\.\.)")
_NO_PASSWORD = re.compile(
    r"(?:https?:|www\.|/|\\|\$|<|\{|\[|\(|[a-z_.]{1,40}[(\[]|process\.|(?:env|null|none|true|false|must|should|required|incorrect"
    r"|wrong|invalid|weak|strong|not|changed|reset|expired|protected|the|a|an|your|set|same|too|at|on|off|very|never"
    r"|optional|forgot|show|hide|enter|change|update|using|used|last|only|hidden|saved)(?![a-z0-9]))",
    re.IGNORECASE,
)
_DATE_OR_CLOCK = re.compile(r"\d{1,4}([-/.:])\d{1,2}(?:\1\d{1,4})?")


# What QR codes hold that join a network, or give an authenticator its secret.
_WIFI = re.compile(r"WIFI:(?:[^\n;]{0,64};){0,6}P:([^;\n]{1,64})", re.IGNORECASE)
_OTPAUTH = re.compile(r"otpauth(?:-migration)?://[^\s]{8,300}", re.IGNORECASE)


def _passwords(text: _Text) -> Iterator[Span]:
    for code in _WIFI.finditer(text.text):
        yield code.span(1)
    for label in _LABEL.finditer(text.text):
        if _OTHER_CODE.search(text.text[max(0, label.start() - 12) : label.start()]):
            continue
        value = _ASSIGNED.match(text.text, label.end())
        if value is not None:
            if _is_assigned(value[1], text.text[value.end() : value.end() + 1]):
                yield value.span(1)
            continue
        spaced = _SPACED_VALUE.match(text.text, label.end())
        if spaced is not None:
            group = 1 if spaced[1] else 2
            if _is_made(spaced[group], digits_alone=8):
                yield spaced.span(group)
            continue
        yield from _passwords_below(text, label)


def _passwords_below(text: _Text, label: re.Match[str]) -> Iterator[Span]:
    rest = text.text[label.end() : text.span(text.line_of(label.end() - 1))[1]]
    if len(rest.strip(" :=()")) > 12:
        return  # a sentence about passwords
    number = 4 if re.search(r"pin|puk|pass ?code", label[0], re.IGNORECASE) else 8
    for top, bottom in text.lines_below(label.end() - 1, 2):
        line = text.text[top:bottom]
        value = line.strip()
        start = top + line.find(value)
        apps = _APP_PASSWORD.match(text.text, top, bottom)
        if apps is not None:
            yield apps.span(1)
            return
        if _is_made(value, digits_alone=number):
            yield start, start + len(value)
            return
        if len(value) > 3 and value.isalpha():
            return  # the next label


def _is_assigned(value: str, following: str) -> bool:
    """Whether this is a password after "password:"."""
    value = value.rstrip(".,;)]\"'")
    if len(value) < 4 or not value.isascii() or _MASK.match(value) or _NO_PASSWORD.match(value):
        return False
    mixed = any(map(str.isdigit, value)) or not value.isalnum() or not (value.islower() or value.istitle())
    return mixed or following in ("", "\n", '"', "'", ",", ";")


def _is_made(value: str, *, digits_alone: int) -> bool:
    """Whether a text without a sign of it is a password: one word with digits or signs between letters."""
    if not value.isascii() or " " in value or _MASK.search(value) or _NO_PASSWORD.match(value):
        return False
    if _DATE_OR_CLOCK.fullmatch(value) or ("@" in value and "." in value.partition("@")[2]):
        return False
    if value.isdigit():
        return digits_alone <= len(value) <= 16
    letters, digits = any(map(str.isalpha, value)), any(map(str.isdigit, value))
    signs = any(character in "!@#$%^&*_+=?~" for character in value)
    return 6 <= len(value) <= 64 and letters and (digits or signs)


# ------------------------------------------------------------------------------------------------------- keys

# What a key begins with, as it is read too, and how many characters follow at least.
_PREFIXES = (
    (
        r"s[kK][-_](?:proj|ant|or|live|test|svcacct|admin|api)[-_ ]?",
        16,
    ),  # OpenAI, Anthropic, OpenRouter, Stripe
    (r"s[kK]-", 20),
    (r"r[kK][-_ ](?:live|test)[-_ ]?", 16),
    (r"whsec[-_ ]?", 20),
    (r"A[KSR][I1l]A", 14),  # Amazon
    (r"gh[pousr][-_ ]?", 28),  # GitHub
    (r"github[-_ ]pat[-_ ]", 20),
    (r"g[l1I]pat-", 16),
    (r"x[o0]x[abeoprs]-", 16),  # Slack
    (r"A[I1l]za", 28),  # Google
    (r"ya29\.", 20),
    (r"SG\.", 30),
    (r"npm[-_ ]", 30),
    (r"pypi-", 30),
    (r"hf[-_ ]", 28),
    (r"gsk[-_ ]", 30),
    (r"xai-", 30),
    (r"r8[-_ ]", 30),
    (r"d[o0]p[-_ ]v[1lI][-_ ]", 30),
    (r"shp(?:at|ss|pa|ca)[-_ ]", 28),
    (r"tskey-(?:auth|api)?-?", 16),
    (r"dckr[-_ ]pat[-_ ]", 20),
    (r"lin[-_ ]api[-_ ]", 28),
    (r"ntn[-_ ]", 30),
    (r"hvs\.", 20),
    (r"snp[-_ ]", 30),
    (r"PMAK-", 24),
    (r"LTA[I1l]", 12),  # Aliyun
    (r"AK[I1l]D", 28),  # Tencent
    (r"AGE-SECRET-KEY-1", 30),
    (r"ey[JI][A-Za-z0-9_-]{10,500}\. ?ey[JI]", 16),  # a JSON Web Token
    (r"ey[JI](?:hbGc|0eXA|raWQ)[iIl1]", 24),  # the same, broken within its head: {"alg", {"typ" or {"kid"
    (r"\d{8,10}:AA", 28),  # Telegram
)
_KEY = re.compile("|".join(rf"(?<![A-Za-z0-9])(?:{prefix})" for prefix, _ in _PREFIXES))
_KEY_LENGTHS = [(re.compile(prefix), length) for prefix, length in _PREFIXES]
_KEY_PART = re.compile(r"[A-Za-z0-9_./+=-]+")
_KEY_GAP = re.compile(r" |\n[ ]{0,4}")


def _api_keys(text: _Text) -> Iterator[Span]:
    for start in _KEY.finditer(text.text):
        least = next(length for prefix, length in _KEY_LENGTHS if prefix.fullmatch(start[0]))
        end, read = start.end(), ""
        for _ in range(4):  # a key is broken by blanks that were read into it, and by the end of a line
            part = _KEY_PART.match(text.text, end)
            if part is None or (read and len(part[0]) < 4):
                break
            read, end = read + part[0], part.end()
            gap = _KEY_GAP.match(text.text, end)
            if gap is None or _is_key(start[0], read, least):
                break
            end = gap.end()
        if _is_key(start[0], read, least):
            yield start.start(), min(end, len(text.text))


def _is_key(prefix: str, read: str, least: int) -> bool:
    """Whether what was read after a prefix is as random as a key. Words with hyphens are not."""
    letters, digits = sum(map(str.isalpha, read)), sum(map(str.isdigit, read))
    mixed = digits >= 1 or prefix.startswith("AK") or not (read.islower() or read.isupper())
    return len(read) >= least and mixed and letters >= 2 and len(set(read)) >= 8


_PEM = re.compile(
    r"BEGIN ?(?:RSA|EC|DSA|OPENSSH|ENCRYPTED|PGP|SSH2)? ?(?:ENCRYPTED )?PRIVATE ?KEY(?: ?BLOCK)?"
)
_PUTTY = re.compile(r"PuTTY-User-Key-File|Private-Lines", re.IGNORECASE)
_PRIVATE_WORD = re.compile(r"private[ _]?key|secret[ _]?key|私钥", re.IGNORECASE)
_PRIVATE_VALUE = re.compile(
    r"(?<![0-9A-Za-z])(?:(?:0[xX])?[0-9a-fA-FOolI]{60,66}|[5KL][1-9A-HJ-NP-Za-z]{49,52}|[xyz]prv[0-9A-Za-z]{60,120})"
    r"(?![0-9A-Za-z])"
)
_BASE64 = re.compile(r"[A-Za-z0-9+/=]{16,}")
KEY_LINES = 6
KEY_REACH = 600  # characters


def _private_keys(text: _Text) -> Iterator[Span]:
    for head in _PEM.finditer(text.text):
        end = max((end for _, end in text.lines_below(head.end() - 1, KEY_LINES)), default=len(text.text))
        body = _BASE64.search(text.text, head.end(), min(end, head.end() + KEY_REACH))
        if body is not None and any(map(str.isdigit, body[0])) and any(map(str.islower, body[0])):
            yield head.start(), body.end()
    for head in _PUTTY.finditer(text.text):
        yield head.span()
    for word in _PRIVATE_WORD.finditer(text.text):
        lines = list(text.lines_below(word.end() - 1, 4))
        reach = text.text[word.end() : min(lines[-1][1] if lines else len(text.text), word.end() + KEY_REACH)]
        # A long value is broken over lines; without the breaks, it is one word.
        if _PRIVATE_VALUE.search(_JOINED.sub("", reach)):
            yield word.end(), word.end() + len(reach)


_JOINED = re.compile(
    r"(?<=[0-9A-Fa-f]{8})[ ]?\n?[ ]?(?=[0-9A-Fa-f]{2})|(?<=[0-9A-Za-z]{16})\n(?=[0-9A-Za-z]{4})"
)

# ------------------------------------------------------------------------------------------- recovery phrases

PHRASE_LENGTHS = (12, 15, 18, 21, 24)
LEAST_WORDS = PHRASE_LENGTHS[0]
LEAST_READ = 10  # of twelve words, where the screen says what they are
NAMED_WITHIN = 600  # characters between a word and what says that it is one of a phrase: a large screen
_PHRASE_WORD = re.compile(
    r"(?:recovery|seed|secret|backup|mnemonic) ?(?:recovery )?(?:phrase|words?|seed)|mnemonic|seed ?phrase"
    r"|助记词|恢复短语|种子短语|私密短语|bip-?39",
    re.IGNORECASE,
)
_WORD = re.compile(r"[A-Za-z]+|[\u4e00-\u9fff]+")


def _recovery_phrases(text: _Text) -> Iterator[Span]:
    names = [found.start() for found in _PHRASE_WORD.finditer(text.text)]
    run: list[tuple[re.Match[str], bool]] = []  # the words in order, and whether each is of the list
    named = False
    for word in _WORD.finditer(text.text):
        if word[0] in ("l", "I", "i"):
            continue  # the number 1 of a list
        known = _is_listed(word[0])
        if not run:  # a whole conversation may name a phrase somewhere
            nearest = bisect.bisect_left(names, word.start() - NAMED_WITHIN)
            named = nearest < len(names) and names[nearest] < word.end() + NAMED_WITHIN
        if known or (named and run and run[-1][1]):  # one that was misread, between two of the list
            run.append((word, known))
            continue
        yield from _phrase(run, named)
        run = []
    yield from _phrase(run, named)


def _phrase(run: list[tuple[re.Match[str], bool]], named: bool) -> Iterator[Span]:
    while run and not run[-1][1]:
        run.pop()
    known = sum(one for _, one in run)
    if named:
        # Ten of twelve in a row: in prose, every other word may be on the list.
        starts = range(max(1, len(run) - LEAST_WORDS + 1))
        enough = len(run) >= LEAST_WORDS - 1 and any(
            sum(one for _, one in run[start : start + LEAST_WORDS]) >= LEAST_READ for start in starts
        )
    else:  # wallets write small letters, lists of topics do not
        enough = known >= LEAST_WORDS and all(word[0].islower() for word, _ in run)
    # A list of the same few words is none, nor is prose, in which some words come back.
    if enough and len({word[0].lower() for word, _ in run}) >= len(run) * 3 // 4:
        yield run[0][0].start(), run[-1][0].end()


def _is_listed(word: str) -> bool:
    return word.lower() in _bip39()


@functools.cache
def _bip39() -> frozenset[str]:
    path = Path(__file__).with_name("bip39-english.txt")
    return frozenset(path.read_text(encoding="ascii").split())


_FINDERS: dict[str, Callable[[_Text], Iterator[Span]]] = {
    "card": _cards,
    "iban": _ibans,
    "national_id": _identity_numbers,
    "one_time_code": _one_time_codes,
    "password": _passwords,
    "api_key": _api_keys,
    "private_key": _private_keys,
    "recovery_phrase": _recovery_phrases,
}
