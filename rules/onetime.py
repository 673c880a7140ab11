"""One-time codes in a text: to sign in, to confirm, to back up, and the secrets of authenticators.

A code is a short number beside a word that names it. "Code" alone names postcodes and coupons as well, so it
counts only where the message is one about signing in. What lies between word and number decides whether they
belong together; a full-width comma ends a part of a sentence and stands in no number.
"""

import re
from collections.abc import Iterator

from rules.labels import Labels, is_excluded, transitions
from rules.searched import DIGITS, D, Span, Text
from rules.wordlists import END, START, any_in, listed

_CODE_WORD = Labels("code")
_ANY_CODE = Labels("any_code")
_SIGN_IN = Labels("sign_in")
_YOURS = Labels("yours")
_SENDERS = Labels("senders")
_ENTER = Labels("enter")
_OTHER_CODE = Labels("other_code")
_BACKUP_CODES = Labels("backup_codes")
_TOTP_WORD = Labels("totp")

_END = r"(?![A-Za-z0-9*@]|[.:/]\d(?! ?(?:m|分|h|s|M))|,\d{3}(?!\d)|-\d)"
_CODE = re.compile(
    rf"(?<![A-Za-z0-9_.,/+*$€£¥-])(?<![0-9][ -])(?:[A-Z]{{1,3}}-)?({D}(?:[ -]?{D}){{3,7}}"
    r"|(?=[A-Z]{0,7}\d)(?=\d{0,7}[A-Z])[A-Z0-9]{5,8}|(?=[A-Z]{0,3}\d"
    r"|[A-Z]{0,3}-[A-Z]{0,3}\d)[A-Z0-9]{3,4}-[A-Z0-9]{3,4})" + _END
)
# Right after its word and a colon, a code may have letters of any kind.
_SPELLED = re.compile(
    rf"[ \"']{{0,3}}(?:\([^()\n]{{1,24}}\) ?)?(?:[:=]|{any_in('onetime', 'spelled')}(?![a-z])[: ]?)"
    r"[ \"'\[(]{0,3}([A-Za-z0-9]{3,10}(?:-[A-Za-z0-9]{3,8}){0,4})(?![A-Za-z0-9@._*])"
)
_CODE_ALONE = re.compile(
    rf"[^\w\n]{{0,3}}(?:[A-Z]-)?({D}(?:[ -]{{0,3}}{D}){{3,7}}|[A-Z0-9]{{3,4}}-[A-Z0-9]{{3,4}}"
    rf"|[A-Z0-9]{{5,8}})[^\w\n]{{0,3}}"
)
_CODES_ALONE = re.compile(
    r"[^\w\n]{0,3}(?:\d{1,2}[.)] ?)?(?:\d{4}[ -]?\d{4}|\d{3}[ -]?\d{3}"
    r"|[a-z0-9]{4,6}[ -][a-z0-9]{4,6}(?:[ -][a-z0-9]{4,6}){0,4}|[a-z0-9]{8,12})(?![a-z0-9])",
    re.IGNORECASE,
)
_UNIT = re.compile(rf" ?(?:{any_in('onetime', 'units')}|[%€])(?![a-z])", re.IGNORECASE)
_CALL = re.compile(any_in("onetime", "call", START, END), re.IGNORECASE)
_CODE_FIRST = re.compile(
    rf"[ ,;\"')\]]{{0,3}}(?:{any_in('onetime', 'named_behind', end=END)}|[(\[:.;\n-])", re.IGNORECASE
)
_AUTHENTICATOR = re.compile(any_in("onetime", "authenticators"), re.IGNORECASE)
_TOTP = re.compile(r"(?m)^[^\w\n]{0,3}(\d{3} ?\d{3})[^\w\n]{0,3}(?:\d{1,2}s?)?$")
# What ends right before a code that belongs to "code".
_LINKED = re.compile(
    rf"(?:{any_in('onetime', 'linked', START)}|[:=-])[ :]{{0,2}}[\"'\[(]?$|^[ \"'\[(]{{0,4}}$", re.IGNORECASE
)
_TO_ENTER = re.compile(any_in("onetime", "to_enter", START), re.IGNORECASE)
_OTPAUTH = re.compile(r"otpauth(?:-migration)?://[^\s]{8,300}", re.IGNORECASE)
_BASE32 = re.compile(
    r"(?<![A-Za-z0-9])(?:[A-Z2-7]{4}[ -]?){3,15}[A-Z2-7]{1,4}={0,6}(?![A-Za-z0-9])"
    r"|(?<![A-Za-z0-9])(?:[a-z2-7]{4}[ -]){3,15}[a-z2-7]{1,4}(?![A-Za-z0-9])"
    r"|(?<![A-Za-z0-9])[a-z2-7]{16,64}(?![A-Za-z0-9])"
)
# Words that name codes of bookings, doors and licences too.
_OFTEN_OTHERS = tuple(listed("onetime", "often_others"))
CODE_REACH = 90  # characters between a code and its word on one line
CALL_REACH = 12  # characters before a number in which a word says that it is one to call
CODE_LINES = 6  # below the word: often a sentence about where it was sent to
TOTP_REACH = 160
TOTP_LENGTHS = (16, 24, 26, 32, 40, 52, 56, 64)  # of 10, 15, 16, 20, 25, 32, 35, 40 bytes


def one_time_codes(text: Text) -> Iterator[Span]:
    for secret in _OTPAUTH.finditer(text.text):
        yield secret.span()
    yield from _totp_secrets(text)
    for cue in _BACKUP_CODES.find(text):
        yield from _backup_codes(text, cue)
    for cue in _CODE_WORD.find(text):
        named = text.folded[slice(*cue)]
        if _OTHER_CODE.are_in(text, cue[0] - 12, cue[0]) or (
            named.startswith(_OFTEN_OTHERS) and _names_other_code(text, cue, above=3, below=3)
        ):
            continue
        yield from _codes_beside(text, cue)
    for cue in _ANY_CODE.find(text):
        if not _names_other_code(text, cue) and _is_to_sign_in(text, cue):
            linked = [span for span in _codes_after(text, cue) if _LINKED.search(text.text[cue[1] : span[0]])]
            asked = _ends_line(text, cue) or _TO_ENTER.search(text.text[slice(*text.around(*cue, above=0))])
            yield from linked or _codes_before(text, cue) or (_codes_below(text, cue) if asked else ())
    yield from _to_enter(text)
    if _AUTHENTICATOR.search(text.text):
        for code in _TOTP.finditer(text.text):
            yield code.span(1)


def _names_other_code(text: Text, cue: Span, *, above: int = 1, below: int = 0) -> bool:
    return _OTHER_CODE.are_in(text, *text.around(*cue, above=above, below=below))


def _is_to_sign_in(text: Text, cue: Span) -> bool:
    """Whether "code" is about signing in: it is the reader's, of a known sender, or near words about that."""
    start, end = cue
    line = text.span(text.line_of(start))
    beside = max(line[0], start - 30), min(line[1], end + 30)
    if _YOURS.are_in(text, *beside) or _SENDERS.are_in(text, beside[0], start):
        return True
    near = text.around(start, end, above=4, below=2)
    return _SIGN_IN.are_in(text, *near) or (start == line[0] and text.text[end : end + 1] == ":")


def _ends_line(text: Text, cue: Span) -> bool:
    return len(text.text[slice(*text.rest(cue[1]))].strip(" :.;")) == 0


def _codes_beside(text: Text, cue: Span) -> Iterator[Span]:
    yield from (
        _codes_after(text, cue)
        or _spelled_after(text, cue)
        or _codes_before(text, cue)
        or _codes_below(text, cue)
    )


def _codes_after(text: Text, cue: Span) -> list[Span]:
    """The first number after the word on its line, unless a word between says that it is another one."""
    end = cue[1]
    bottom = min(text.rest(end)[1], end + CODE_REACH)
    for code in _CODE.finditer(text.text, end, bottom + 1):
        between = text.text[end : code.start()]
        far = any(map(str.isdigit, between))
        if (far or _CALL.search(between)) and not _LINKED.search(between[-8:]):
            if far and not _CALL.search(between[-CALL_REACH:]):
                continue
            break
        if _is_code(code[1]) and not _UNIT.match(text.text, code.end()):
            return [code.span(1)]
    return []


def _spelled_after(text: Text, cue: Span) -> list[Span]:
    code = _SPELLED.match(text.text, cue[1])
    if code is None or is_excluded(code[1]):
        return []
    value = code[1]
    if len(value) < 4:
        return []
    parts = value.split("-")
    mixed = any(map(str.isdigit, value)) and any(map(str.isalpha, value))
    capitals = value.isupper() and (len(parts) > 1 or _is_unspeakable(value))
    if (
        (mixed and len(value) <= 16)
        or capitals
        or (len(parts) > 2 and value.islower())
        or transitions(value) > 3
    ):
        return [code.span(1)]
    return []


def _is_unspeakable(value: str) -> bool:
    return bool(re.search(r"[BCDFGHJKLMNPQRSTVWXZ]{4}", value)) or not re.search(r"[AEIOUY]", value)


def _codes_before(text: Text, cue: Span) -> list[Span]:
    line = text.line_of(cue[0])
    top = text.span(line)[0]
    if line and cue[0] - top < 30:
        top = text.span(line - 1)[0]  # the sentence was broken
    found = []
    for code in _CODE.finditer(text.text, max(top, cue[0] - CODE_REACH), cue[0]):
        between = text.text[code.end() : cue[0]]
        ahead = text.text[max(top, code.start() - CALL_REACH) : code.start()]
        if text.text[top : code.start()].rstrip()[-1:] in tuple(")+0123456789"):
            continue  # the end of a number to call
        first = _CODE_FIRST.match(between) or len(between.strip()) < 2
        if _is_code(code[1]) and first and not _CALL.search(f"{ahead}\n{between}"):
            found.append(code.span(1))
    return found


def _codes_below(text: Text, cue: Span) -> list[Span]:
    """A line below that is nothing but a code, or digits in boxes, a line each; or the line above.

    Of digits in boxes, some are often not read, where they are to be entered. Elsewhere one is a dot. The
    keys of a keypad begin in their order.
    """
    start, end = cue
    single: list[Span] = []
    for top, bottom in text.lines_below(end - 1, CODE_LINES + 8):
        line = text.text[top:bottom].strip()
        if len(line) == 1 and line.translate(DIGITS).isdigit():
            single.append((top, bottom))
            continue
        if single:
            break
        if text.line_of(top) - text.line_of(end - 1) > CODE_LINES:
            break
        code = _CODE_ALONE.fullmatch(text.text, top, bottom)
        if code is not None and _is_code(code[1]):
            return [code.span(1)]
    asked = _TO_ENTER.search(text.text[slice(*text.around(start, end, above=0))])
    if (1 if asked else 4) <= len(single) <= 8:
        read = "".join(text.text[top:bottom].strip() for top, bottom in single).translate(DIGITS)
        return [] if len(read) > 2 and read in "1234567890" else [(single[0][0], single[-1][1])]
    number = text.line_of(start)
    if number and start - text.span(number)[0] < 30:
        code = _CODE_ALONE.fullmatch(text.text, *text.span(number - 1))
        if code is not None and _is_code(code[1]):
            return [code.span(1)]
    return []


def _to_enter(text: Text) -> Iterator[Span]:
    """ "Use 482913 to log in": a number right after what to do with it, beside what it opens."""
    for _, end in _ENTER.find(text):
        code = _CODE.match(text.text, end + len(re.match(r"[ :]{0,2}", text.text[end : end + 2])[0]))  # type: ignore[index]
        if code is None or not _is_code(code[1]) or _UNIT.match(text.text, code.end()):
            continue
        line_end = min(text.rest(code.end())[1], code.end() + CODE_REACH)
        if _SIGN_IN.are_in(text, code.end(), line_end) and not _names_other_code(text, code.span(1)):
            yield code.span(1)


def _backup_codes(text: Text, cue: Span) -> Iterator[Span]:
    below = list(text.lines_below(cue[1] - 1, 20))
    for top, bottom in ((cue[1], text.rest(cue[1])[1]), *below):
        for code in (
            _CODES_ALONE.finditer(text.text, top, bottom)
            if top == cue[1]
            else filter(None, [_CODES_ALONE.match(text.text, top, bottom)])
        ):
            if sum(map(str.isdigit, code[0])) >= 2 and not is_excluded(code[0]):
                yield code.span()


def _totp_secrets(text: Text) -> Iterator[Span]:
    """The secret of an authenticator, beside its word: base 32."""
    for _, end in _TOTP_WORD.find(text):
        found = _BASE32.search(text.text, end, text.reach(end, 4, TOTP_REACH))
        if found is None:
            continue
        plain = re.sub(r"[ =-]", "", found[0])
        if (
            len(plain) in TOTP_LENGTHS
            and len(set(plain)) >= 8
            and any(map(str.isdigit, plain))
            and any(map(str.isalpha, plain))
        ):
            yield found.span()


def _is_code(read: str) -> bool:
    plain = re.sub(r"[ -]", "", read)
    digits = sum(map(str.isdigit, plain))
    if read.count("-") > 1 and len(plain) != 6:  # a day
        return False
    if re.fullmatch(r"[A-Z0-9]{3,4}-[A-Z0-9]{3,4}", read) and not plain.isdigit():
        return digits >= 1
    if plain.isalnum() and plain.isupper() and not plain.isdigit():
        return digits >= 2 or digits >= len(plain) - 1 or (digits == 1 and _is_unspeakable(plain))
    return 4 <= len(plain) <= 8 and digits >= len(plain) - 1
