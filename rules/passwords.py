"""Passwords in a text: what follows the word for one, on its line, below it or in its column, what commands
and addresses hold, and what joins a Wi-Fi.

A value is judged as a whole: it is none when it is a mask, a day, a word of forms and help texts, or what
programs write in its place. How random it has to be depends on what links it with its label: after a colon
nearly everything is one, after a blank or below only what is made as passwords are.
"""

import re
from collections.abc import Iterator

from rules.labels import Labels, is_excluded, is_made, is_phrase, transitions
from rules.searched import Span, Text, fold
from rules.wordlists import END, START, any_in, any_of, listed

_PASSWORD = Labels("password")
_PIN = Labels("pin")
_LOGIN = Labels("login")
_OTHER_CODE = Labels("other_code")
_ONE_TIME = Labels("code")

_LINKS = any_of(map(fold, listed("labels", "links")), START, END)
# What is between a label and its value, on the folded text.
_ASSIGNED = re.compile(
    rf"""["'`*_)\]]{{0,3}}(?: ?\([^()\n]{{1,30}}\))?[^\S\n]{{0,3}}(?:[^:=\n.;,]{{1,40}}?)??(?:{_LINKS}"""
    rf"""|:=|[=-]>|→|[:=>])[: ]?["'`\[]{{0,2}}[^\S\n]{{0,3}}["'`]{{0,2}}"""
)
_VALUE = re.compile(r"[!-~À-ɏА-яЁё]{4,64}")
_PHRASE = re.compile(r"[A-Za-z]{3,14}(?:[ -][A-Za-z]{3,14}){2,11}(?=[ .\"']{0,3}$)", re.MULTILINE)
_SPACED = re.compile(r"[ \"'>|]{1,4}([!-~]{6,64})")
_TOGETHER = re.compile(r"([!-~]{6,64})[ ]{0,3}$", re.MULTILINE)
_APP_PASSWORD = re.compile(r"[^\w\n]{0,3}([a-z]{4}(?:[ -][a-z]{4}){3})(?![a-z])")
_PIN_VALUE = re.compile(
    r"(?:[ ]?\([^()\n]{1,24}\))?[ ]{0,2}(?:[:=#]"
    rf"|{any_in('passwords', 'before_pin')}(?![a-z]))?"
    r"[ :]{0,2}(\d{4,8}|\d(?: \d){3,7})[#*]?(?![0-9A-Za-z]|[.,:/-]\d)"
)
_WIFI = re.compile(r"WIFI:(?:[^\n;]{0,64};){0,6}P:([^;\n]{1,64})", re.IGNORECASE)
_COMMANDS = (
    re.compile(
        any_in("passwords", "programs", START, END)
        + r"[^\n]{0,100}? -{1,2}(?:p|P|a|w|pass|password|passwd|pw)[ =]?['\"]?(?!ass)"
        r"([^\s'\"-][^\s'\"]{3,63})"
    ),
    re.compile(rf"(?<![\w-])--?{any_in('passwords', 'options')}[ =]['\"]?([^\s'\"$<{{][^\s'\"]{{5,120}})"),
    re.compile(
        any_in("passwords", "fetching", START, END)
        + r"[^\n]{0,160}? (?:-u|--user|-a|--auth)[ =]?['\"]?[^\s'\":]{1,60}:([^\s'\"]{4,80})"
    ),
    re.compile(
        r"(?<![a-z])(?:login|user)[ ]{1,3}[^\s:]{1,60}[ ]{1,3}(?:password|pass|pw)[ ]{1,3}([^\s]{4,80})"
    ),
    re.compile(r"(?<![a-z])net use [^\n]{1,120}?/user:[^\s]{1,60} ([^\s]{4,64})"),
    re.compile(
        r"(?<![a-z])(?:echo|printf) ['\"]?([^\s'\"]{4,64})['\"]? ?\| ?" + any_in("passwords", "reading")
    ),
)
_USER_INFO = re.compile(
    r"(?<![A-Za-z0-9])[a-zA-Z][a-zA-Z0-9+.-]{1,24}[ ]?:[ ]?//[ ]?[^\s/@:]{0,80}:([^\s/@]{3,120})@[^\s]{2,}"
)
_PAIR = re.compile(r"[ :=]{1,3}([^\s:/|,;]{2,60})(?: ?[/|,;:] ?| {1,3})([!-~]{4,64})")
# "jane@example.com / …", and "… is the password".
_MAIL_PAIR = re.compile(
    r"(?<![\w.@])[\w.+-]{1,64}@[\w-]{1,60}(?:\.[\w-]{1,30}){1,4}(?: ?[/|:;] ?| {2,6}| - )([!-~]{6,64})"
)
_BEFORE = re.compile(
    rf"(?<![!-~])[\"'(]?([!-~]{{6,64}}?)[\"')]?,? {any_in('passwords', 'named_behind')}"
    r"(?: [a-z'-]{1,12}){0,3} ?$",
    re.IGNORECASE,
)
_LENGTH = re.compile(rf" ?(?:-|to|bis|–)? ?\d{{0,2}} ?{any_in('passwords', 'lengths')}")
_COUNTED = re.compile(f" ?{any_in('passwords', 'counted')}")
REACH_BELOW = 4  # lines: under a label, or under the last of a row of labels
MOST_LABEL = 44  # characters of a line that is a label and nothing else


def passwords(text: Text) -> Iterator[Span]:
    for code in _WIFI.finditer(text.text):
        yield code.span(1)
    for code in _USER_INFO.finditer(text.text):
        if not is_excluded(code[1]):
            yield code.span(1)
    for form in _COMMANDS:
        for value in form.finditer(text.text):
            if not is_excluded(value[1]) and (is_made(value[1]) or transitions(value[1])):
                yield value.span(1)
    labels = [label for label in _PASSWORD.find(text) if not _is_other(text, label)]
    for label in labels:
        yield from _password(text, label)
    for label in _PIN.find(text):
        if not _is_other(text, label):
            yield from _pin(text, label)
    for label in _LOGIN.find(text):
        yield from _pair(text, label)
    for pair in _MAIL_PAIR.finditer(text.text):
        if is_made(pair[1]) and (_has_sign_and_digit(pair[1]) or transitions(pair[1]) > 1):
            yield pair.span(1)
    for label in labels:
        for value in _BEFORE.finditer(
            text.text, max(text.span(text.line_of(label[0]))[0], label[0] - 90), label[0]
        ):
            if is_made(value[1]) and (_has_sign_and_digit(value[1]) or transitions(value[1]) > 1):
                yield value.span(1)


def _is_other(text: Text, label: Span) -> bool:
    """Whether a label is part of one for a one-time code, or of a pickup code and the like."""
    start, end = label
    if _OTHER_CODE.are_in(text, start - 12, start):
        return True
    around = max(0, start - 16), min(len(text.text), end + 12)
    return any(
        first <= start and end <= last and (first, last) != label
        for first, last in _ONE_TIME.find(text, *around)
    )


def _password(text: Text, label: Span) -> Iterator[Span]:
    end = label[1]
    line_end = text.rest(end)[1]
    link = _ASSIGNED.match(text.folded, end, min(line_end, end + 64))
    if link is not None:
        phrase = _PHRASE.match(text.text, link.end(), line_end)
        value = _VALUE.match(text.text, link.end())
        if phrase is not None and is_phrase(phrase[0]):
            yield phrase.span()
            return
        if value is not None:
            if _is_assigned(value[0], text.text[value.end() : value.end() + 12], link[0]):
                yield value.span()
            return
        if text.text[link.end() : line_end].strip(" \"'"):
            return
        for top, _ in text.lines_below(end - 1, 1):
            value = _VALUE.match(text.text, top + len(re.match(r"[ \"'`]{0,3}", text.text[top : top + 3])[0]))  # type: ignore[index]
            if value is not None and is_made(value[0]) and transitions(value[0]) > 1:
                yield value.span()
                return
    spaced = _SPACED.match(text.text, end)
    if spaced is not None:
        at_end = not text.text[spaced.end() : line_end].strip(" .\"')")
        if is_made(spaced[1]) and (at_end or transitions(spaced[1]) > 1 or _has_sign_and_digit(spaced[1])):
            yield spaced.span(1)
        return
    together = _TOGETHER.match(text.text, end) if text.text[end - 1] > "\u0e00" else None
    if together is not None and is_made(together[1]):
        yield together.span(1)
        return
    yield from _below(text, label)


def _has_sign_and_digit(value: str) -> bool:
    return any(map(str.isdigit, value)) and any(one in "!@#$%^&*+=?~" for one in value)


def _below(text: Text, label: Span) -> Iterator[Span]:
    """A value on a line below a label, or below the last of several labels in a row."""
    end = label[1]
    rest = text.text[slice(*text.rest(end))]
    before = text.text[text.span(text.line_of(label[0]))[0] : label[0]]
    if len(rest.strip(" :=()*")) > 12 or len(before) > MOST_LABEL:
        return  # a sentence about passwords
    if before.strip() and not rest.strip():
        for top, bottom in text.lines_below(end - 1, REACH_BELOW):
            row = re.search(r"(?<=[ |])([!-~]{6,64})[ |]{0,3}$", text.text[top:bottom][-80:])
            if row and is_made(row[1]) and (_has_sign_and_digit(row[1]) or transitions(row[1]) > 1):
                yield max(top, bottom - 80) + row.start(1), bottom
    digits = 4 if _PIN.are_in(text, *label) else 8
    labels = 0
    for number, (top, bottom) in enumerate(text.lines_below(end - 1, REACH_BELOW)):
        line = text.text[top:bottom]
        value = line.strip(" \"'`")
        start = top + line.find(value)
        apps = _APP_PASSWORD.match(text.text, top, bottom)
        if apps is not None and not apps[1].replace(" ", "").isdigit():
            yield apps.span(1)
            return
        if number < 2 and is_phrase(value, 4) and value.islower():
            yield start, start + len(value)
            return
        if number < 2 or labels == number:
            if is_made(value, digits_alone=digits):
                yield start, start + len(value)
                return
        elif _has_sign_and_digit(value) and is_made(value):
            yield start, start + len(value)
            return
        if len(value) > 3 and value.replace(" ", "").isalpha():
            labels += 1
            if labels > 1:
                break
    above = text.line_of(label[0]) - 1
    if above >= 0 and not before.strip():
        # The label is below its value.
        top, bottom = text.span(above)
        value = text.text[top:bottom].strip()
        if is_made(value) and (_has_sign_and_digit(value) or transitions(value) > 2):
            yield top, bottom


def _is_assigned(value: str, following: str, link: str) -> bool:
    """Whether this is a password after "password:"."""
    plain = value.rstrip(".,;)]\"'")
    if len(plain) < 4 or is_excluded(value) or is_excluded(plain):
        return False
    if _LENGTH.match(fold(following)):
        return False  # how long it has to be
    mixed = any(map(str.isdigit, plain)) or not plain.isalnum() or not (plain.islower() or plain.istitle())
    ends = following[:1] in ("", "\n", '"', "'", ",", ";") or not following.strip(" .").partition("\n")[0]
    sure = ":" in link or "=" in link
    if plain.isalpha() and not sure:
        return ends and (transitions(plain) > 0 or plain.islower()) and len(plain) > 5
    if not any(map(str.isalnum, plain)):
        return False
    if mixed and not any(map(str.isdigit, plain)) and not plain.isalnum():
        return ends or any(one in "!@#$%^&*+=?~" for one in plain)
    return mixed or ends


def _pin(text: Text, label: Span) -> Iterator[Span]:
    value = _PIN_VALUE.match(text.text, label[1])
    link = _ASSIGNED.match(text.folded, label[1], min(text.rest(label[1])[1], label[1] + 64))
    if value is None and link is not None:
        value = _PIN_VALUE.match(text.text, link.end())
    if value is None and len(text.text[slice(*text.rest(label[1]))].strip(" :*()")) < 3:
        for top, bottom in text.lines_below(label[1] - 1, 2):
            value = value or re.compile(r"[^\w\n]{0,3}(\d{4,8}|\d(?: \d){3,5})[^\w\n]{0,3}").fullmatch(
                text.text, top, bottom
            )
    if value is not None and not _COUNTED.match(text.text[value.end() :][:12]):
        yield value.span(1)


def _pair(text: Text, label: Span) -> Iterator[Span]:
    """User name and password on one line after "login"."""
    pair = _PAIR.match(text.text, label[1])
    if pair is None or is_excluded(pair[2]) or pair[1].isdigit():
        return
    made = is_made(pair[2]) and (any(map(str.isdigit, pair[2])) or _has_sign_and_digit(pair[2]))
    if made and not re.fullmatch(r"[\d:.,/-]+", pair[2]):
        yield pair.span(2)


__all__ = ["passwords"]
