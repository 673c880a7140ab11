"""Finds what people copy out of a text: links, addresses, codes, amounts, phone numbers, dates and times.

Every pattern takes linear time on hostile text: repetitions are bounded, or cannot match the same characters
in two ways.
"""

import re
from collections.abc import Callable

from engines.findings import Entity
from text import one_line

CLOCK = r"(?:[01]?\d|2[0-3])[:：][0-5]\d"
SIGN = r"(?:US\$|HK\$|NT\$|CN¥|[$€£¥￥])"
# The number of groups is bounded, so that a page full of digits is not split in every possible way.
NUMBER = r"(?:\d{1,3}(?:[,.' ]\d{3}){1,5}(?:[.,]\d{1,2})?|\d{1,15}(?:[.,]\d{1,2})?)(?!\d)"
MONTH = (
    r"(?:Jan(?:uary|uar)?|Feb(?:ruary|ruar)?|Mar(?:ch)?|März|Apr(?:il)?|May|Mai|June?|Juni|July?|Juli"
    r"|Aug(?:ust)?|Sept?(?:ember)?|O[ck]t(?:ober)?|Nov(?:ember)?|De[cz](?:ember)?)"
)


def entities_in(text: str) -> list[Entity]:
    """The entities in `text`, each once, ordered by kind: codes, links, email addresses, amounts, phone
    numbers, dates, times.
    """
    found: dict[tuple[str, str], Entity] = {}
    for kind, pattern, accepts in _ENTITIES:
        for match in pattern.finditer(text):
            value = one_line(match[1] if pattern.groups else match[0])
            if accepts(value):
                value = value.rstrip(".,;:!?)，。")
                found.setdefault((kind, value.casefold()), Entity(kind, value))
    return list(found.values())


def _uncut(value: str) -> bool:
    return not value.endswith(("..", "…"))


def _with_digit(value: str) -> bool:
    return any(character.isdigit() for character in value)


def _dialable(value: str) -> bool:
    """E.164 allows 15 digits; fewer than 7 are too often something else."""
    return 7 <= sum(character.isdigit() for character in value) <= 15


def _possible_date(value: str) -> bool:
    """False for a numeric date that has no month from 1 to 12 or no day from 1 to 31, in whatever order."""
    numbers = [int(number) for number in re.findall(r"\d+", value)]
    if len(numbers) < 3 or not re.fullmatch(r"[\d./-]+", value):
        return True
    month_and_day = numbers[1:] if numbers[0] > 31 else numbers[:2]
    return 1 <= min(month_and_day) <= 12 and max(month_and_day) <= 31


# A code is recognised by a word on its line or on the line above, or by a form that nothing else has.
_CODE_WORD = (
    r"(?:(?:验证|校验|动态|取件|取货|提货|提取)码|(?:订单|运单|快递单)号码?"
    r"|(?i:(?:verification|security|one-time|booking) code|one-time pass(?:word|code)|passcode"
    r"|confirmation (?:code|number)|(?:tracking|order) (?:number|no\.?)|order id|booking reference))"
)
_TLD = r"(?:com|org|net|io|dev|app|cn|de|uk|fr|jp|eu|info|ai|gov|edu|tv|xyz|hk|tw)"
_NO_URL = r"\s<>\"'，。；、（）【】《》…"
_ENTITIES: tuple[tuple[str, re.Pattern[str], Callable[[str], bool]], ...] = (
    (
        "code",
        re.compile(
            rf"{_CODE_WORD}(?: ?(?:is|为|是))?[\s:：#]{{0,3}}([A-Z0-9][A-Z0-9-]{{2,30}}[A-Z0-9])(?![A-Za-z])"
        ),
        _with_digit,
    ),
    (
        "code",
        re.compile(r"(?<![\w.])(\d{4,8}|[A-Z]-\d{6})(?= (?i:is your) |[（(]?(?:验证码|动态码|校验码))"),
        _with_digit,
    ),
    # Tracking numbers: UPS, SF Express, YTO, JD, and the postal form of the UPU (S10).
    (
        "code",
        re.compile(
            r"(?<![A-Za-z\d])(?:1Z[\dA-Z]{16}|(?:SF|YT|JD[A-Z]?)\d{12,15}|[A-Z]{2}\d{9}[A-Z]{2})(?![A-Za-z\d])"
        ),
        _with_digit,
    ),
    (
        "link",
        re.compile(
            rf"https?://[^{_NO_URL}]{{4,}}"
            rf"|(?<![\w@./-])(?:[a-z0-9][a-z0-9-]{{0,62}}\.){{1,8}}{_TLD}(?![\w@-]|\.\w|\.\.)"
            rf"(?:/[^{_NO_URL}]*)?",
            re.IGNORECASE,
        ),
        _uncut,
    ),
    # Not after an @: the fediverse writes user names so.
    (
        "email",
        re.compile(
            r"(?<![@\w.+-])[\w+-]+(?:\.[\w+-]+)*@(?:[a-z0-9-]+\.)+[a-z]{2,}(?!\w|\.\.)",
            re.IGNORECASE | re.ASCII,
        ),
        _uncut,
    ),
    (
        "amount",
        re.compile(
            rf"(?<![\w.])[-+−]? ?{SIGN} ?{NUMBER}(?: ?[万亿])?"
            rf"|(?<![\w.,])[-+−]?{NUMBER} ?(?:€|£|¥|￥|[万亿]?元|块钱"
            r"|(?:USD|EUR|GBP|CNY|RMB|JPY|HKD)\b|美元|欧元|英镑|日元|港元|港币)"
        ),
        _with_digit,
    ),
    (
        "phone",
        re.compile(
            # International, then China, then North America.
            r"(?<![\w.+-])(?:\+\d{1,3}[ -]?(?:\(\d{1,4}\)[ -]?)?\d{1,4}(?:[ -]?\d{2,4}){1,4}"
            r"|(?:86[ -]?)?1[3-9]\d[ -]?\d{4}[ -]?\d{4}|\(?0\d{2,3}\)?[ -]\d{7,8}|400[ -]\d{3}[ -]\d{4}"
            r"|(?:\(\d{3}\) ?|\d{3}[-.])\d{3}[-.]\d{4})(?![\w-])"
        ),
        _dialable,
    ),
    (
        "date",
        re.compile(
            r"(?<![\d./-])(?:\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[./]\d{1,2}[./](?:19|20)\d{2})(?!\d)"
            r"|(?<!\d)(?:\d{4}年 ?)?\d{1,2}月 ?\d{1,2}[日号]"
            rf"|\b{MONTH}\.? \d{{1,2}}(?:st|nd|rd|th)?(?![\d:])(?:,? (?:19|20)\d{{2}}\b)?"
            rf"|\b\d{{1,2}}(?:st|nd|rd|th|\.)? {MONTH}\b\.?(?:,? (?:19|20)\d{{2}}\b)?"
        ),
        _possible_date,
    ),
    (
        "time",
        re.compile(
            rf"(?<![\d:.,]){CLOCK}(?::[0-5]\d)?(?: ?[ap]m\b)?(?![\d:])|(?<![\d:.,])(?:1[0-2]|[1-9]) ?[ap]m\b"
            r"|(?:上午|下午|晚上|早上|中午|凌晨) ?\d{1,2}[点时](?:半|\d{1,2}分?)?",
            re.IGNORECASE,
        ),
        _with_digit,
    ),
)
WHEN = re.compile(
    "|".join(pattern.pattern for kind, pattern, _ in _ENTITIES if kind in ("date", "time")), re.IGNORECASE
)
