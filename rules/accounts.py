"""Payment cards and bank accounts in a text: numbers with check digits in whatever groups they are written,
and numbers beside the word that names them.

A number alone is nothing: an order number passes the check of a card one time in ten. So a card needs the
prefix of an issuer and a card's groups, or a card's word; what names another number right before it excuses a
number that is not written as cards are.
"""

import bisect
import itertools
import re
from collections.abc import Iterator, Sequence

from rules import checks, identity, wordlists
from rules.labels import Labels
from rules.searched import ALIKE, DIGITS, LETTERS, D, Span, Text

# ------------------------------------------------------------------------------------------------------ cards

_CARD_WORD = Labels("card_words")
_CARD_NUMBER = Labels("card_number")
_CARD_CHECK = Labels("card_check")
_OTHER_NUMBER = Labels("other_number")
_GROUP = re.compile(rf"(?<![A-Za-z0-9]){D}{{1,19}}(?![A-Za-z0-9])")
_BETWEEN_GROUPS = re.compile(r"[ ·•_-]{0,3}\n?[ ·•_-]{0,3}|[ ]?[./,][ ]?")
_PARTLY = re.compile(wordlists.any_in("identity", "partly"))
_MOST_GROUPS = 19
_DIRECT = 24  # characters between a label and the number that it names


def cards(text: Text) -> Iterator[Span]:
    # The end of an IBAN may have the check digit of a card.
    others = [*ibans(text), *identity.residents(text)]
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
    yield from _card_checks(text)


def _chains(text: str, others: Sequence[Span]) -> Iterator[list[re.Match[str]]]:
    """Groups of digits that follow each other, with nothing between them but blanks and signs; without those
    in `others`.
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


def _is_card(text: Text, groups: list[re.Match[str]]) -> bool:
    read = "".join(group[0] for group in groups)
    digits = read.translate(DIGITS)
    if sum(map(str.isdigit, read)) < len(read) - 3 or not checks.luhn(digits) or len(set(digits)) < 2:
        return False
    start, end = groups[0].start(), groups[-1].end()
    lengths = [len(group[0]) for group in groups]
    signs = {text.text[one.end() : two.start()].strip(" ") for one, two in itertools.pairwise(groups)}
    alike = len(signs - {"\n"}) < 2
    fours = len(digits) == 16 and len(groups) == 4 and set(lengths) == {4}
    direct = _names_directly(text, start)
    if direct and issued(digits) and "\n\n" not in text.text[start:end]:
        return True
    if not alike or ("\n" in signs and any(length != 4 for length in lengths[:-1])):
        return False
    if fours and issued(digits):
        return True  # whatever else is named before it
    if signs & {".", "/", ","}:
        return False  # days, amounts
    usual = (
        len(lengths) == 1
        or lengths in ([4, 6, 5], [4, 6, 4], [6, 13], [4, 4, 4, 4, 3])
        or set(lengths) == {1}
    )
    usual = usual or (len(digits) == 16 and not any(length % 4 for length in lengths))
    named = any(
        _CARD_WORD.are_in(text, *span) or _CARD_NUMBER.are_in(text, *span) for span in text.before(start)
    )
    if not named and _names_another(text, start):
        return False
    named = named or _CARD_WORD.are_in(text, *text.around(start, end, above=3, below=3))
    named = named or _CARD_NUMBER.are_in(text, *text.around(start, end, above=3, below=3))
    # Numbers of 13, 14 and 19 digits are seldom cards.
    if usual and issued(digits) and (named or len(digits) in (15, 16)):
        return True
    return named and len(set(digits)) > 1 and min(lengths[:-1], default=len(digits)) > 2


def _names_directly(text: Text, start: int) -> bool:
    """Whether a card's number is announced right before: "Card number:"."""
    for top, bottom in text.before(start):
        for _, end in _CARD_NUMBER.find(text, top, bottom):
            between = text.folded[end : min(start, end + 200)]
            if start - end <= _DIRECT and not any(map(str.isdigit, between)) and not _PARTLY.search(between):
                return True
    return False


def _names_another(text: Text, start: int) -> bool:
    """Whether what is before a number says that it is another one: "order", without a number of its own
    between.
    """
    for top, bottom in text.before(start):
        for _, end in _OTHER_NUMBER.find(text, top, bottom):
            if sum(map(str.isdigit, text.text[end:start])) < 4:
                return True
    return False


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
        or (two in (60, 65, 81, 82) and length == 16)  # RuPay
        or (four in (5018, 5020, 5038, 5893, 6304, 6759, 6761, 6762, 6763) and 13 <= length <= 19)  # Maestro
    )


_THREE = re.compile(
    r"[\"'(:= .#/-]{0,6}(?:\([^()\n]{1,20}\)[: ]{0,3})?(?:is|ist|est|es|为"
    r"|是)?[: ]{0,2}(\d{3,4})(?![0-9A-Za-z]|[.,/:-]\d)"
)
_THREE_ALONE = re.compile(r"[^\w\n]{0,3}(\d{3,4})[^\w\n]{0,3}")


def _card_checks(text: Text) -> Iterator[Span]:
    """The digits on the back of a card, beside the word for them: three, or four where a card is near."""
    for start, end in _CARD_CHECK.find(text):
        found = _THREE.match(text.text, end)
        below = [] if found else list(text.lines_below(end - 1, 2))
        if found is None and len(text.text[slice(*text.rest(end))].strip(" :*()?")) < 4:
            found = next(
                (one for one in (_THREE_ALONE.fullmatch(text.text, *span) for span in below) if one), None
            )
        if found is None:
            continue
        named = text.folded[start:end].startswith(("cv", "cs", "cid"))
        if named or len(found[1]) == 3:
            yield found.span(1)


# --------------------------------------------------------------------------------------------------- accounts

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
_IBAN_START = re.compile(
    rf"(?:(?<![A-Za-z0-9])|(?<=[iI][bB][aA][nN]))([A-Za-z][A-Za-z0-9])[ ]?({D}{{2}})(?=[ ./-]{{0,2}}\n?[A-Z"
    rf"a-z0-9|])"
)
_IBAN_NEXT = re.compile(r"[ ./_-]{0,3}\n?[ ]{0,2}([A-Za-z0-9|])")
_FLIPS = dict(zip("O0I1S5B8Z2", "0O1I5S8B2Z", strict=True))


def bank_accounts(text: Text) -> Iterator[Span]:
    yield from ibans(text)
    yield from _account_numbers(text)


def ibans(text: Text) -> Iterator[Span]:
    end = 0
    for start in _IBAN_START.finditer(text.text):
        account = ACCOUNTS.get(start[1].upper().translate(LETTERS))
        if account is None or start.start() < end:
            continue
        read = [start[1].upper().translate(LETTERS), start[2].translate(DIGITS)]
        place = start.end()
        for kind in account:
            following = _IBAN_NEXT.match(text.text, place)
            if following is None:
                break
            character = following[1]
            read.append(
                character.translate(DIGITS)
                if kind == "n"
                else (character.upper().translate(LETTERS) if kind == "a" else character.upper())
            )
            place = following.end()
        else:
            number = "".join(read)
            whole = not text.text[place : place + 1].isascii() or not text.text[place : place + 1].isalnum()
            if whole and any(map(checks.by_97, _spellings(number, account))):
                end = place
                yield start.start(), place


def _spellings(iban: str, account: str) -> Iterator[str]:
    """The number as it was read, and with each letter that looks like a digit as the other one."""
    yield iban
    for place, kind in enumerate(account, 4):
        if kind == "c" and iban[place] in _FLIPS:
            yield f"{iban[:place]}{_FLIPS[iban[place]]}{iban[place + 1 :]}"


_ACCOUNT = Labels("account")
_ROUTING = Labels("bank")
# What says that an account is one with a shop or for signing in.
_OTHER_ACCOUNT = Labels("other_account")
_ACCOUNT_NUMBER = re.compile(
    r"[\"'(:=#. ]{0,6}(?:\([^()\n]{1,20}\)[: ]{0,3})?(?:is|ist|est|es|为|是|は)?[: ]{0,3}"
    rf"((?:[A-Z]{{2,4}}[ -]?)?{D}(?:[ ./-]?{D}){{5,23}})(?![0-9A-Za-z])"
)
_SURE = ("账号", "帐号", "帳號", "账户号码", "a/c", "acct", "ccc", "rib", "kto")


def _account_numbers(text: Text) -> Iterator[Span]:
    """Six digits and more beside the word for a bank account."""
    for start, end in _ACCOUNT.find(text):
        found = _ACCOUNT_NUMBER.match(text.text, end)
        if found is None and len(text.text[slice(*text.rest(end))].strip(" :()#.")) < 6:
            for top, _ in text.lines_below(end - 1, 2):
                found = found or _ACCOUNT_NUMBER.match(text.text, top)
        if found is None or sum(map(str.isdigit, found[1])) < 6:
            continue
        near = text.around(start, end, above=1)
        weak = text.folded[start:end].strip() in _SURE
        if _OTHER_ACCOUNT.are_in(text, near[0], found.start(1)) or (
            weak and not _ROUTING.are_in(text, *text.around(start, end, above=3, below=3))
        ):
            continue
        yield found.span(1)


__all__ = ["ACCOUNTS", "ALIKE", "bank_accounts", "cards", "ibans", "issued"]
