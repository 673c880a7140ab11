"""Access keys and private keys in a text: by how services begin theirs (`words/keys.toml`), by their form, by
the word beside them, and in addresses.

The beginnings are those of well-known services. What is random and long beside "API key", "secret" or
"Bearer" is a key whoever made it; without a word and a beginning, it is a hash or an id, of which screens are
full.
"""

import base64
import binascii
import re
import urllib.parse
from collections.abc import Iterator

from rules import checks, wordlists
from rules.labels import Labels, is_excluded, is_made, is_random, transitions, words
from rules.searched import Span, Text, fold
from rules.wordlists import START, any_in

_TABLE = wordlists.table("keys")
_KEY_WORD = Labels("key")
_PRIVATE_WORD = Labels("private_key")
_RECOVERY_WORD = Labels("recovery")
# What makes a key one that everybody may see, or no key at all.
_PUBLIC = Labels("public")


def api_keys(text: Text) -> Iterator[Span]:
    yield from _by_beginning(text)
    for form in _FORMS:
        for found in form.finditer(text.text):
            if sum(map(str.isdigit, found[0])) and transitions(found[0]) > 3:
                yield found.span()
    for form in _WEBHOOKS:
        for found in form.finditer(text.text):
            yield found.span()
    yield from _in_addresses(text)
    yield from _by_label(text)
    yield from _by_own_name(text)


# ----------------------------------------------------------------------------------------- by their beginning


def _as_read(prefix: str) -> str:
    """An expression for the beginning of a key as it is read from a picture."""
    alike = {
        "-": "[-_ ]",
        "_": "[-_ ]",
        "l": "[l1I]",
        "I": "[I1l]",
        "1": "[1lI]",
        "0": "[0Oo]",
        "O": "[O0]",
        "o": "[o0O]",
        "k": "[kK]",
        ".": r"\. ?",
    }
    return "".join(alike.get(one, re.escape(one)) for one in prefix[:-1]) + (
        "[-_ ]?" if prefix[-1] in "-_" and len(prefix) > 4 else alike.get(prefix[-1], re.escape(prefix[-1]))
    )


_PREFIXES = sorted(
    ((_as_read(prefix), least) for prefix, least in _TABLE["prefixes"].items()),
    key=lambda one: -len(one[0]),
)
_KEY = re.compile("|".join(rf"(?:{prefix})" for prefix, _ in _PREFIXES))
_KEY_LENGTHS = [(re.compile(prefix), least) for prefix, least in _PREFIXES]
_KEY_PART = re.compile(r"[A-Za-z0-9_./+=~|-]{1,800}")
_KEY_GAP = re.compile(r" |\n[ ]{0,4}")


def _by_beginning(text: Text) -> Iterator[Span]:
    for start in _KEY.finditer(text.text):
        if text.text[start.start() - 1 : start.start()].isalnum() and start.start():
            continue
        least = max((length for prefix, length in _KEY_LENGTHS if prefix.fullmatch(start[0])), default=30)
        end, read = start.end(), ""
        for _ in range(4):  # a key is broken by blanks that were read into it, and by the end of a line
            part = _KEY_PART.match(text.text, end)
            if part is None or (read and (len(part[0]) < 4 or not _continues(read, part[0]))):
                break
            read, end = read + part[0], part.end()
            gap = _KEY_GAP.match(text.text, end)
            if gap is None or _is_key(start[0], read, least):
                break
            end = gap.end()
        if _is_key(start[0], read, least):
            yield start.start(), min(end, len(text.text))


def _continues(read: str, part: str) -> bool:
    """Whether the next piece may belong to a broken key: words of a sentence do not."""
    return transitions(part) > 0 or (
        transitions(read) > 2
        and not (part.isalpha() and (part.islower() or part.istitle()) and len(part) < 14)
    )


def _is_key(prefix: str, read: str, least: int) -> bool:
    """Whether what was read after a beginning is as random as a key. Words with hyphens are not."""
    letters, digits = sum(map(str.isalpha, read)), sum(map(str.isdigit, read))
    mixed = digits >= 1 or prefix.startswith("AK") or transitions(read) > len(read) // 5
    short = prefix.rstrip("-_ ").isalpha() and len(prefix) < 4  # "sk-", "key-"
    enough = transitions(read) >= (3 if short or len(prefix) < 4 else 1)
    return len(read) >= least and mixed and letters >= 2 and len(set(read)) >= 8 and enough


_FORMS = tuple(
    re.compile(rf"(?<![A-Za-z0-9_-])(?:{form})(?![A-Za-z0-9])") for form in _TABLE["forms"].values()
)
_WEBHOOKS = tuple(re.compile(form, re.IGNORECASE) for form in _TABLE["webhooks"].values())

# ----------------------------------------------------------------------------------------------- in addresses

_NAMES, _SHORT, _NAMES_END, _WAYS = (
    tuple(wordlists.entries(_TABLE["parameters"][part])) for part in ("names", "short", "ends", "ways")
)
_ADDRESS = re.compile(
    r"(?<![A-Za-z0-9])(?:[a-z][a-z0-9+.-]{1,20}: ?//|www\."
    r"|[a-z0-9-]{1,60}\.[a-z0-9.-]{2,60}/)[^\s\"'<>]{6,1200}",
    re.IGNORECASE,
)
_PARAMETER = re.compile(r"[?&;#]([A-Za-z0-9_.-]{1,60})=([^&;#\s]{4,800})")
_STRING_FIELD = re.compile(
    rf"{START}{any_in('keys', 'connections')}[ ]?=[ ]?([^;\s\"']{{6,200}})", re.IGNORECASE
)


def _in_addresses(text: Text) -> Iterator[Span]:
    for address in _ADDRESS.finditer(text.text):
        end = address.end()
        read = address[0]
        following = re.compile(r"\n[ ]{0,4}([A-Za-z0-9_%.&=~/+-]{6,400})(?=\s|$)").match(text.text, end)
        if following is not None and "=" in read[-120:] + following[1]:
            read += following[1]
        if any(_is_secret_parameter(name, value) for name, value in _PARAMETER.findall(read)):
            yield address.span()
            continue
        way, _, _ = re.sub(r"^[a-z][a-z0-9+.-]{1,20}: ?//", "", read, flags=re.IGNORECASE).partition("?")
        parts = re.split(r"[/#]", way.lower())
        for number, part in enumerate(re.split(r"[/#]", way)):
            if (
                number
                and is_random(part, 20)
                and any(word in before for before in parts[1:number] for word in _WAYS)
            ):
                yield address.span()
                break
    for field in _STRING_FIELD.finditer(text.text):
        if not is_excluded(field[1]) and (is_made(field[1]) or is_random(field[1])):
            yield field.span(1)


def _is_secret_parameter(name: str, value: str) -> bool:
    plain = urllib.parse.unquote(value)
    name = name.lower()
    known = name in _NAMES or name.endswith(_NAMES_END)
    if not known or is_excluded(plain):
        return False
    if name in _SHORT:
        return len(plain) >= 4
    return (
        is_random(plain, 12)
        or (len(plain) >= 12 and transitions(plain) > 3)
        or (plain.isdigit() and len(plain) >= 24)
    )


# --------------------------------------------------------------------------------------------- by their label

_BETWEEN = re.compile(
    r"""["'`*_)\]]{0,3}(?: ?\([^()\n]{1,30}\))?[ ]{0,3}(?:[^:=\n"]{0,44}?(?::=|[=-]>|→|[:=]))?[ ]{0,3}"""
    + any_in("keys", "links")
    + rf"""?[: ]{{0,3}}["'`\[]{{0,2}}(?:{any_in("keys", "schemes")}[ ]{{1,3}})?["'`]?"""
)
_RANDOM = re.compile(r"[A-Za-z0-9_.~+/=|:-]{8,800}")
_BEARER = re.compile(r"(?<![A-Za-z])(?:[Bb]earer|BEARER)[: ]{1,3}([A-Za-z0-9_.~+/=-]{12,800})")
_BASIC = re.compile(r"(?<![A-Za-z])[Bb]asic[ ]{1,3}([A-Za-z0-9+/]{8,200}={0,2})")
_GAP = re.compile(r"[ ]?\n?[ ]{0,3}")
KEY_LINES_BELOW = 3


def _by_label(text: Text) -> Iterator[Span]:
    for found in _BEARER.finditer(text.text):
        if is_random(found[1], 12):
            yield found.span(1)
    for found in _BASIC.finditer(text.text):
        if _is_basic(found[1]):
            yield found.span(1)
    for start, end in _KEY_WORD.find(text):
        if _is_public(text, start, end):
            continue
        link = _BETWEEN.match(text.text, end)
        place = link.end() if link else end
        linked = any(one in text.text[end:place] for one in "=:→>为是は")
        value = _value(text, place, linked=linked)
        weak = fold(text.text[start:end]) in words("weak_key")
        if (
            weak
            and not linked
            and text.text[slice(*text.span(text.line_of(start)))].strip(" :") != text.text[start:end]
        ):
            continue  # a word of a sentence
        if value is None and not text.text[place : text.rest(end)[1]].strip(" :=\"'()"):
            value = _value_below(text, end) or _value_before(text, start)
        if value is not None:
            yield value


def _is_public(text: Text, start: int, end: int) -> bool:
    """Whether the word right before a label, or right after it, says that everybody may see the key."""
    before = any(last >= start - 2 for _, last in _PUBLIC.find(text, max(0, start - 24), start))
    return before or any(
        first <= end + 2 for first, _ in _PUBLIC.find(text, end, min(end + 24, text.rest(end)[1]))
    )


def _value(text: Text, place: int, *, linked: bool) -> Span | None:
    """The key at a place, with what of it is on the next line, or behind a blank that was read into it."""
    part = _RANDOM.match(text.text, place)
    if part is None:
        return None
    end, read = part.end(), part[0]
    if is_excluded(read):
        return None
    for _ in range(3):
        gap = _GAP.match(text.text, end)
        following = _RANDOM.match(text.text, gap.end()) if gap and gap[0] else None
        if following is None or not transitions(following[0]) or not transitions(read) or ":" in following[0]:
            break
        read, end = read + following[0], following.end()
        if len(read) > 120:
            break
    whole = is_random(part[0], 12 if linked else 16)
    if whole:
        return place, max(part.end(), end)
    if is_random(read, 20):
        return place, end
    # "client_secret = …" with a short value.
    made = (
        linked
        and part[0] == part[0].strip(".:")
        and len(part[0]) >= 8
        and transitions(part[0]) >= 3
        and is_made(part[0])
    )
    return part.span() if made else None


def _value_below(text: Text, end: int) -> Span | None:
    for top, bottom in text.lines_below(end - 1, KEY_LINES_BELOW):
        line = text.text[top:bottom]
        value = line.strip(" \"'`,;")
        start = top + line.find(value)
        if _RANDOM.match(value) and (is_random(value.replace(" ", ""), 16) and value.count(" ") < 3):
            return _value(text, start, linked=True) or (start, start + len(value))
    return None


def _value_before(text: Text, start: int) -> Span | None:
    """A key before its label, on its line or on the one above, where nothing else stands."""
    line = text.line_of(start)
    top = text.span(line)[0]
    for first, last in (
        (top, start),
        *([text.span(line - 1)] if line and not text.text[top:start].strip() else []),
    ):
        value = text.text[first:last].strip(" \"'`,;")
        if " " not in value and is_random(value, 20):
            place = first + text.text[first:last].find(value)
            return place, place + len(value)
    return None


def _is_basic(value: str) -> bool:
    """Whether this is user name and password of HTTP (RFC 7617)."""
    try:
        plain = base64.b64decode(value + "=" * (-len(value) % 4), validate=True)
    except (ValueError, binascii.Error):
        return False
    return b":" in plain and all(32 <= one < 127 for one in plain)


# A service's own name, then what is random: "acme_live_8fK2…". Names of files and of what is public are
# longer words.
_OWN_NAME = re.compile(
    r"(?<![A-Za-z0-9_./=%@-])([a-z][a-z0-9]{1,11}(?:_[a-z0-9]{1,8}){0,3}_)([A-Za-z0-9]{22,120})(?![A-Za-z0-"
    r"9_./-])"
)
_NOT_SECRET = (
    "pk",
    "pub",
    "public",
    "sha",
    "md5",
    "img",
    "file",
    "build",
    "cache",
    "commit",
    "rev",
    "id",
    "cs",
    "pi",
    "ch",
    "cus",
    "evt",
    "in",
    "sub",
    "price",
    "prod",
    "req",
)


def _by_own_name(text: Text) -> Iterator[Span]:
    for found in _OWN_NAME.finditer(text.text):
        name = found[1].split("_")
        if (
            not set(name) & set(_NOT_SECRET)
            and transitions(found[2]) >= len(found[2]) // 4
            and is_random(found[2], 22)
        ):
            yield found.span()


# ----------------------------------------------------------------------------------------------- private keys

_PEM = re.compile(r"BEGIN ?(?:[A-Z0-9]{2,12} ){0,3}(?:ENCRYPTED )?PRIVATE ?KEY(?: ?BLOCK)?", re.IGNORECASE)
_FILES = re.compile(any_in("keys", "files"), re.IGNORECASE)
_HEX = re.compile(r"(?<![0-9A-Za-z])(?:0[xX])?[0-9a-fA-FOolI]{60,66}(?![0-9A-Za-z])")
_PRIVATE_VALUE = re.compile(
    r"(?<![0-9A-Za-z])(?:(?:0[xX])?[0-9a-fA-FOolI]{60,66}|[5KL][1-9A-HJ-NP-Za-km-z]{49,52}"
    r"|[xyzt]prv[0-9A-Za-z]{60,120}|[1-9A-HJ-NP-Za-km-z]{86,90}|[A-Za-z0-9+/]{42,43}=)"
    r"(?![0-9A-Za-z])"
)
# Without a word: the forms of wallets are their own (base 58), those of Nostr and of extended keys, too.
_WIF = re.compile(
    r"(?<![0-9A-Za-z])(?:5[HJK][1-9A-HJ-NP-Za-km-z]{49}|[KL][1-9A-HJ-NP-Za-km-z]{51}"
    r"|6P[1-9A-HJ-NP-Za-km-z]{56}|[xyzt]prv[1-9A-HJ-NP-Za-km-z]{60,112}"
    r"|nsec1[a-z0-9]{56,60})(?![0-9A-Za-z])"
)
_WIREGUARD = re.compile(
    r"(?:Private|Preshared|Pre-shared) ?Key ?[=:]? ?\n?([A-Za-z0-9+/]{40,44} ?=?)", re.IGNORECASE
)
_BASE64 = re.compile(r"[A-Za-z0-9+/=]{16,}")
_TRANSACTION = Labels("transaction")
_JOINED = re.compile(
    r"(?<=[0-9A-Fa-f]{8})[ ]?\n?[ ]?(?=[0-9A-Fa-f]{2})|(?<=[0-9A-Za-z+/]{16})\n(?=[0-9A-Za-z+/]{4})"
)
_PEM_END = re.compile(
    r"END[ \n]{0,2}(?:[A-Z0-9]{2,12}[ \n]{1,2}){0,3}PRIVATE[ \n]{0,2}KEY[^\n]{0,10}", re.IGNORECASE
)
PEM_REACH = 8_000
KEY_LINES = 6
KEY_REACH = 600  # characters


def private_keys(text: Text) -> Iterator[Span]:
    for head in _PEM.finditer(text.text):
        end = max((end for _, end in text.lines_below(head.end() - 1, KEY_LINES)), default=len(text.text))
        body = _BASE64.search(text.text, head.end(), min(max(end, head.end()), head.end() + KEY_REACH))
        if body is not None and any(map(str.isdigit, body[0])) and any(map(str.islower, body[0])):
            foot = _PEM_END.search(text.text, body.end(), body.end() + PEM_REACH)
            yield head.start(), foot.end() if foot else text.reach(body.end(), KEY_LINES, KEY_REACH)
    for head in _FILES.finditer(text.text):
        yield head.start(), text.reach(head.end(), KEY_LINES, KEY_REACH)
    for key in _WIF.finditer(text.text):
        if any(map(str.isdigit, key[0][1:])) and transitions(key[0]) > 8:
            yield key.span()
    for key in _WIREGUARD.finditer(text.text):
        if transitions(key[1]) > 4:
            yield key.span(1)
    for start, end in _PRIVATE_WORD.find(text):
        if _TRANSACTION.are_in(text, max(text.span(text.line_of(start))[0], start - 24), start):
            continue
        stop = text.reach(end, 4, KEY_REACH)
        reach = text.text[end:stop]
        # A long value is broken over lines; without the breaks, it is one word.
        value = _PRIVATE_VALUE.search(_JOINED.sub("", reach))
        if value is not None and transitions(value[0]) > 3:
            named = text.text[end : end + value.start()]
            if not _TRANSACTION.are_in(Text(named), 0, len(named)):
                yield end, stop


# ------------------------------------------------------------------------------------- groups that recover

_SIX_DIGITS = re.compile(r"(?<![0-9A-Za-z-])\d{6}(?:[ ]?[-–][ ]?\n?\d{6}|[ ]?\n?[ ]?\d{6}){7}(?![0-9A-Za-z])")
_GROUPS = re.compile(
    r"(?<![0-9A-Za-z-])(?:[A-Z0-9]{4,6}(?:[ ]?[- ]\n?[ ]?|\n)){3,11}[A-Z0-9]{4,6}(?![0-9A-Za-z-])"
    r"|(?<![0-9A-Za-z-])(?:[A-Za-z0-9]{4,6}[ -]\n?){5,13}[A-Za-z0-9]{4,6}(?![0-9A-Za-z-])"
    r"|(?<![0-9A-Za-z-])(?:[a-z0-9]{4,6}[ -]\n?){3,11}[a-z0-9]{4,6}(?![0-9A-Za-z-])"
    r"|(?<![0-9A-Za-z])(?:\d{5}[ -]?\n?){5,11}\d{5}(?![0-9A-Za-z])"
)
_FILEVAULT = re.compile(r"(?<![0-9A-Z-])[A-Z0-9]{4}(?:-[A-Z0-9]{4}){5,6}(?![0-9A-Za-z-])")
NEAR = 300  # characters between such groups and the word for them


def recovery_keys(text: Text) -> Iterator[Span]:
    """Keys in groups that open a disk or an account again."""
    for key in _SIX_DIGITS.finditer(text.text):
        digits = re.sub(r"\D", "", key[0])
        if len(digits) == 48 and checks.bitlocker(digits):
            yield key.span()
    for key in _FILEVAULT.finditer(text.text):
        if sum(map(str.isdigit, key[0])) > 2 and sum(map(str.isalpha, key[0])) > 5:
            yield key.span()
    for _, end in _RECOVERY_WORD.find(text):
        for key in _GROUPS.finditer(text.text, end, text.reach(end, 8, NEAR)):
            parts = re.split(r"[ \n-]+", key[0])
            numbers, letters = sum(map(str.isdigit, key[0])), sum(map(str.isalpha, key[0]))
            alone = numbers >= 30 and not letters
            turned = sum(1 for part in parts if transitions(part)) >= len(parts) // 3
            if alone or (numbers > 2 and letters > 3 and turned):
                yield key.span()
        yield from _alone_below(text, end)


def _alone_below(text: Text, end: int) -> Iterator[Span]:
    """A long random value right after the word, or alone on a line below it."""
    for top, bottom in ((end, text.rest(end)[1]), *text.lines_below(end - 1, 3)):
        line = text.text[top:bottom]
        value = line.strip(" :=\"'")
        if is_random(value, 20) and " " not in value:
            start = top + line.find(value)
            yield start, start + len(value)


__all__ = ["api_keys", "private_keys", "recovery_keys"]
