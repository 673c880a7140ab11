"""What a person's question asks for, by plain rules: the words that must be on a screenshot, and whether a
date, an amount, a name, a place or a number is wanted.

A question such as "and when?" has no words of its own. It goes on about the subject of the question before.
"""

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

import terms
from rules import wordlists
from rules.entities import CLOCK, MONTH, NUMBER, SIGN
from writings import figures

Wish = Literal["", "when", "long", "amount", "who", "where", "link", "number", "count"]

MAX_QUESTION = 2_000  # characters that are read
MOST_EARLIER = 4  # questions in which a subject is looked for
MOST_WORDS = 12

_TABLE = wordlists.table("questions")
_QUESTION_WORDS, _ACTIONS, _KINDS, _FOLLOWING = (
    wordlists.words(_TABLE[name]) for name in ("asking", "actions", "things", "following")
)
_OTHER = wordlists.words(_TABLE["other"])
_CALENDAR = wordlists.words(_TABLE["weekdays"]) | figures.MONTHS.keys()
_QUESTION_WORDS |= wordlists.words(_TABLE["sum"])
# What people call the fields and the types of records.
FIELDS: dict[str, str] = _TABLE["fields"]
TYPES: dict[str, str] = _TABLE["types"]
THREADS: dict[str, str] = _TABLE["threads"]
_CHINESE_FIELDS = frozenset(name for names in FIELDS.values() for name in names.partition("|")[2].split())
_WORD = re.compile(r"[^\W_]+(?:['’.@:/_-][^\W_]+)*")

_CHINESE = re.compile("[\u4e00-\u9fff]")
_CHINESE_QUESTION_WORDS = re.compile(
    "|".join(sorted(_TABLE["chinese_asking"].split(), key=len, reverse=True))
)
_CHINESE_BEFORE, _CHINESE_BEHIND = _TABLE["chinese_before"], _TABLE["chinese_behind"]
_CHINESE_VERBS: str = _TABLE["chinese_verbs"]
_CHINESE_KINDS: list[str] = _TABLE["chinese_things"].split()
_CHINESE_FOLLOWING = re.compile("^(?:那|它|他|她|这|还|然后)|(?:它|那个|这个)")
_LATIN = re.compile(f"([A-Za-z]+)({'|'.join(_TABLE['chinese_codes'].split())})")  # BV号: the number called BV
_WANTING = re.compile(f"({'|'.join(_TABLE['chinese_kept'].split())})|{_TABLE['chinese_between']}")
_IS_PAID = re.compile(r"^(?:is|are|was|were|has|have) .*\bpaid\b")
_LATER = re.compile(r"\bnext (?:week|month|year)\b|下一?个?(?:星期|礼拜|周|月)")
_CODE = re.compile(r"[A-Za-z0-9]+(?:-[A-Za-z0-9]+)*")
LEAST_CODE = 5  # characters of a number that names an order or a parcel
_DIGITS = re.compile(r"\d(?:[ ()/.-]{0,2}\d)*")  # of one number, as phone numbers are written
MAX_ANSWERING = 300  # characters of a line
AMONG_OTHERS, RELATIVE = 0.9, 0.6  # how well what is wished for answers among other words, and "today"
_POSSESSIVE = re.compile(r"['’]s?$")

_WISHES: tuple[tuple[Wish, re.Pattern[str]], ...] = (
    # The first word decides: "who paid" asks for no amount.
    ("who", re.compile(r"^\W*(?:and )?who\b", re.I)),
    ("when", re.compile(r"^\W*(?:and )?(?:when|what (?:time|day|date))\b", re.I)),
    ("where", re.compile(r"^\W*(?:and )?where\b", re.I)),
    ("count", re.compile(r"\bhow many (?:of my )?(?:screen ?shots?|pictures?|photos?|images?)\b|多少张|几张", re.I)),
    ("amount", re.compile(r"\bhow much\b|\b(?:price|cost|costs|amount|total|pay|paid|spend|spent)\b|多少钱|价格|金额|一共|总共|花了|费用|费(?:是|要)?多少", re.I)),
    ("long", re.compile(r"\bhow long\b|多久|多长时间", re.I)),
    ("when", re.compile(r"\bwhen\b|\bwhat (?:time|day|date)\b|\bhow late\b|什么时候|什么时间|几点|几号|哪天|几月|日期", re.I)),
    ("link", re.compile(r"\b(?:web ?site|web ?page|home ?page|url|link|domain|(?:web|ip) address)\b|网址|网站|链接|域名", re.I)),
    ("where", re.compile(r"\bwhere\b|\b(?:address|place|gate|platform|seat)\b|哪里|哪儿|什么地方|地址|地点|登机口|检票口|座位", re.I)),
    ("who", re.compile(r"\bwho(?:se|m)?\b|\bwith whom\b|谁|哪位", re.I)),
    ("number", re.compile(r"\bhow many\b|\b(?:number|code|phone|tracking|id)\b|多少|号码|几个|验证码|取件码|单号|电话", re.I)),
)  # fmt: skip

_DAYS = r"(?:Mon|Tues?|Wed(?:nes)?|Thu(?:rs?)?|Fri|Sat(?:ur)?|Sun)(?:days?)?|today|tomorrow|yesterday|tonight|今天|明天|昨天|后天|今晚|(?:周|星期|礼拜)[一二三四五六日天]"
_DAY_NAMED = re.compile(_DAYS, re.I)
_IP = r"(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?![\d.])"
_ANSWERS: dict[Wish, re.Pattern[str]] = {
    "when": re.compile(
        rf"\b(?:{_DAYS})\b|{_DAYS[_DAYS.index('今天') :]}|(?<!\d){CLOCK}|\b{MONTH}\b|\d{{1,2}}月|\d{{1,2}} ?(?:am|pm)\b|\b(?:19|20)\d\d\b"
        r"|\d{1,2}[./-]\d{1,2}|\d{1,2}[点號号日]|^\d{1,2}(?= (?-i:[A-Z])[^\W\d]+$)",
        re.I,
    ),
    "long": re.compile(r"\d ?(?:min|hour|h\b|day|week|month|year|分钟|小时|天|周|个月|年)", re.I),
    "amount": re.compile(rf"{SIGN} ?{NUMBER}|{NUMBER} ?(?:€|£|¥|￥|元|块|USD|EUR|GBP|CNY|RMB|JPY)|(?<!\d)\d{{1,7}}[.,]\d\d(?!\d)|^\d{{1,7}}[.,]\d(?= ?(?:\(|$))|^[-+−]\d[\d.,]*$"),
    "who": re.compile(r"(?:^|[\s:：])[A-Z][a-z]+(?: [A-Z][a-z]+){0,3}|@\w|先生|女士|老师|(?:发件人|收件人|联系人|姓名)"),
    "where": re.compile(
        r"\b(?:street|road|avenue|lane|square|st\.|rd\.|ave|platz|stra(?:ss|ß)e|gate|terminal|platform|floor|room|seat|station|airport|hotel"
        rf"|hall|building|caf[eé]|restaurant|bar)\b|(?-i:\b(?:at|in) (?:the )?[A-Z]|\d{{1,4}} (?!{MONTH})[A-Z][a-z]+)"
        r"|[a-zß-ÿ](?:weg|allee|gasse|ufer|damm|stra(?:ss|ß)e|platz) ?\d|[省市区县路街道号楼室站厅]|酒店|机场|航站楼|登机口|检票口"
        rf"|[\w.]@\w|{_IP}",
        re.I,
    ),
    "link": re.compile(rf"https?:\S*|(?<![@\w.-])[\w-]+(?:\.[\w-]+)*\.[a-z]{{2,12}}(?:/\S*|\b(?![.@]))|{_IP}", re.I),
    "number": re.compile(r"\d+"),
}  # fmt: skip

# English ones are beginnings of words.
_LABELS: dict[Wish, re.Pattern[str]] = {
    wish: re.compile("|".join(rf"\b{re.escape(one)}" if one.isascii() else one for one in names))
    for wish, names in _TABLE["labels"].items()
}
UNITS: dict[str, str] = _TABLE["units"]
DIGITS: dict[str, int] = _TABLE["digits"]
_GREETINGS = wordlists.words(_TABLE["greetings"])
_GREETINGS_CHINESE = re.compile("|".join(sorted(_TABLE["greetings_chinese"].split(), key=len, reverse=True)))
_SAVING = wordlists.words(_TABLE["saving"])
# Words that a screenshot may have for a word of a question.
SAME: dict[str, list[str]] = {word: names.split() for word, names in _TABLE["same"].items()}
LABELS: list[str] = _TABLE["label_forms"]
LEFT: list[str] = _TABLE["left"]
PLANNED: dict[str, str] = _TABLE["planned"]


# What a question about the agenda may ask for; "" is everything that is to come.
AHEAD = "ahead"  # from this minute on
PERIODS = ("", AHEAD, "today", "tomorrow", "this_week", "next_week", "this_month")
SINCE = ("today", "this_week", "this_month")  # in which something may have been saved
_PERIODS = (
    ("today", re.compile(r"\btoday\b|\btonight\b|今天|今晚|今日")),
    ("tomorrow", re.compile(r"\btomorrow\b|明天|明日")),
    ("next_week", re.compile(r"\bnext week\b|下个?星期|下个?礼拜|下周")),
    ("this_week", re.compile(r"\b(?:this|the) week\b|这个?星期|这个?礼拜|[本这]周")),
    ("this_month", re.compile(r"\b(?:this|the) month\b|[本这]个?月")),
)
_SPANS = (
    ("this_month", re.compile(r"\bthis month\b|[本这]个?月")),
    ("last_month", re.compile(r"\blast month\b|上个?月")),
    ("this_year", re.compile(r"\bthis year\b|今年")),
)
_YEAR = re.compile(r"(?<!\d)20\d\d(?!\d)")
_MONTH_NAMED = re.compile(
    rf"\b(?:in|of|during|for|since) ({'|'.join(sorted(figures.MONTHS, key=len, reverse=True))})\b"
)
_MONTH_CHINESE = re.compile(r"(?<!\d)(\d{1,2})月(?!\d)")
_AGENDA = re.compile(
    r"\b(?:due|upcoming|coming up|agenda|deadlines?|appointments?|events?|expir(?:es?|ing)|scheduled?|planned|plans?|happening)\b"
    r"|截止|到期|日程|安排|预约|要做|接下来|行程"
)
# With a period, these ask for it, too.
_AGENDA_VERBS = re.compile(r"\bdo i have\b|\bhave i got\b|\bwhat(?:'s| is) on\b|有什么|有哪些|有事")
# A question with any other word is about something on a screenshot.
_AGENDA_WORDS = frozenset(
    "due upcoming coming up agenda deadline deadlines appointment appointments event events expire expires expiring schedule "
    "scheduled planned plan plans come comes coming happen happens happening today tonight tomorrow week month next soon"
    " bill bills invoice invoices payments date dates".split()
)
_AGENDA_CHINESE = re.compile(
    "截止|到期|日程|安排|预约|要做|待办|接下来|行程|今天|今晚|今日|明天|明日|下个?星期|下个?礼拜|下周|这个?星期|这个?礼拜|[本这]周|[本这]个?月"
    r"|账单|日期|最近|缴费|[的和]|\d{1,2}月|下一?[个趟班场次]|时候|几点|哪天"
    "|什么|哪些|有没有|事情|事|需要|有|要|我|的|是|会|了|吗|呢|内|都|快|我的|看看|告诉|请"
)


class Question(NamedTuple):
    """What is asked. `words` must be on a screenshot, and `subject` are those of an earlier question that
    this one goes on about; `helpful` ones need not.
    """

    wish: Wish
    words: list[str]
    helpful: list[str]
    subject: list[str]
    is_chinese: bool
    text: str = ""  # as it was asked, in small letters
    is_other: bool = False  # about another screenshot than that of the answer before

    @property
    def wanted(self) -> list[str]:
        """The words that must be on a screenshot: the subject's and this question's own."""
        return list(dict.fromkeys([*self.subject, *self.words]))[:MOST_WORDS]


def understand(question: str, earlier: Sequence[str] = ()) -> Question:
    """What `question` asks, after the `earlier` ones of its conversation, the latest last."""
    question = question[:MAX_QUESTION]
    text = question.casefold().replace("’", "'")
    words, helpful = _words(question)
    if earlier and _goes_on(question, words):
        before = _subject(earlier)
        is_other = names_one(text, _TABLE["other"], _TABLE["other_chinese"])
        anew = _begins_anew(question)
        wish = _wish(question)
        if not wish and (anew or is_other):
            wish = next(filter(None, map(_wish, reversed(earlier[-MOST_EARLIER:]))), "")
        own = [word for word in words if not (_OTHER & {_plain(word)} or names_of(FIELDS, _plain(word)))]
        if before and not (own and anew):
            # "which seat?": what is wished for helps to find the line, and need not be there.
            return Question(wish, [], [*words, *helpful], before, is_chinese(question), text, is_other)
        if own:  # "and the electricity?": of what was asked before, only the wish stays
            return Question(wish, own, [*helpful, *before], [], is_chinese(question), text, is_other)
    return Question(_wish(question), *_wanted(words, helpful), [], is_chinese(question), text)


def _subject(earlier: Sequence[str]) -> list[str]:
    """The words of the latest question that has some."""
    found = (_wanted(*_words(one[:MAX_QUESTION]))[0] for one in reversed(earlier[-MOST_EARLIER:]))
    return next(filter(None, found), [])


def _wish(question: str) -> Wish:
    return next((wish for wish, pattern in _WISHES if pattern.search(question)), "")


def names_one(text: str, words: str, chinese: str = "") -> bool:
    """Whether a text in small letters has one of these English words as a whole word, or of these Chinese ones."""
    return any(re.search(rf"\b{re.escape(word)}\b", text) for word in words.split()) or any(
        word in text for word in chinese.split()
    )


def wants_sum(asked: Question) -> bool:
    """Whether the sum of several amounts is asked for."""
    return asked.wish == "amount" and names_one(asked.text, _TABLE["sum"], _TABLE["sum_chinese"])


def thread_of(asked: Question) -> str:
    """The type of the order, parcel or bill whose state is asked for; "" where none is."""
    is_wished = asked.wish in ("", "where") or _IS_PAID.search(asked.text) is not None
    if not is_wished or "state" not in names_of(_TABLE["asks"], asked.text):
        return ""
    return next(iter(names_of(THREADS, asked.text)), "")


def wants_next(asked: Question) -> bool:
    """Whether the next one of several to come is asked for."""
    return "next" in names_of(_TABLE["asks"], _LATER.sub("", asked.text))


def wants_first(text: str) -> bool:
    """Whether a text in small letters asks for one thing to come, and not for all of them."""
    return "first" in names_of(_TABLE["asks"], _LATER.sub("", text))


def types_ahead(asked: Question) -> list[str]:
    """The types of records of which the next one may be asked for: "trip" names several."""
    named = names_of(TYPES, asked.text)
    several = [types.split() for types in names_of(_TABLE["several"], asked.text)]
    return list(named) or [name for types in several for name in types]


def names_in(asked: Question) -> list[str]:
    """The words of a question about something that goes on by which that is known: its number, else all that
    say neither what it is nor what is asked.
    """
    codes = [code for code in _CODE.findall(asked.text) if any(map(str.isdigit, code))]
    if codes := [code for code in codes if len(code) >= LEAST_CODE]:
        return codes
    tables = (THREADS, TYPES, FIELDS, _TABLE["asks"])
    return [word for word in asked.wanted if not any(names_of(table, _plain(word)) for table in tables)]


def wants_entries(asked: Question) -> bool:
    """Whether what a list has is asked for: by its name, or as "which models"."""
    if asked.wish:
        return False
    if names_one(asked.text, _TABLE["entries"], _TABLE["entries_chinese"]):
        return True
    words = [_plain(word) for word in _WORD.findall(asked.text)]
    several = words[1] if words[:1] in (["which"], ["what"]) and len(words) > 1 else ""
    return stem(several) != several and several not in _QUESTION_WORDS


def things_in(asked: Question) -> list[str]:
    """What a question calls the thing that it is about, as "train" or 材料."""
    return [word for word in asked.helpful if _is_thing(word) or word in _CHINESE_FIELDS]


def pieces(words: Sequence[str]) -> set[str]:
    """What is looked for in texts: the stems of words, and of Chinese runs the pairs of characters by which
    the search finds them, so that a run need not stand as a whole.
    """
    found = set()
    for word in words:
        folded = terms.fold(word).casefold()
        found.update(terms.cut(folded) if is_chinese(folded) else [stem(folded)])
    return found


def is_on(word: str, text: str) -> bool:
    """Whether a folded text has a word of the question, or another word for it."""
    return word in text or any(other in text for other in SAME.get(word, ()))


def names_of(table: dict[str, str], text: str) -> dict[str, int]:
    """The keys of a table of names that a text in small letters has, each with the length of the longest one.
    A value has English names, and Chinese ones behind a bar.
    """
    found: dict[str, int] = {}
    spoken = f" {' '.join(_WORD.findall(text))} "
    for key, names in table.items():
        english, _, chinese = names.partition("|")
        lengths = [len(name) for name in english.strip().split(", ") if f" {name} " in spoken]
        lengths += [2 * len(name) for name in chinese.split() if name in text]
        if lengths:
            found[key] = max(lengths)
    return found


def all_names(names: str) -> list[str]:
    """The names in a value of such a table."""
    english, _, chinese = names.partition("|")
    return [*filter(None, english.strip().split(", ")), *chinese.split()]


def agenda_period(question: str) -> str | None:
    """Which of `PERIODS` a question about the agenda asks for; None for any other question."""
    text = question[:MAX_QUESTION].casefold().replace("’", "'")
    period = next((name for name, named in _PERIODS if named.search(text)), "")
    is_first = wants_first(text)
    if not (_AGENDA.search(text) or is_first or (period and _AGENDA_VERBS.search(text))):
        return None
    span = "" if period else span_of(text)
    if is_chinese(text):
        only = not any(map(str.isalnum, _AGENDA_CHINESE.sub("", text)))
    else:
        words = {_plain(word) for word in _WORD.findall(text)}
        words -= {word for word in words if word in figures.MONTHS or word.isdigit()} if span else set()
        only = words <= _AGENDA_WORDS | _QUESTION_WORDS and "last" not in words
    named = period or (span if span[:1].isdigit() else "") or (AHEAD if is_first else "")
    return named if only else None


def greets(question: str) -> bool:
    """Whether nothing is asked: a greeting, or thanks."""
    text = question[:MAX_QUESTION].casefold()
    if is_chinese(text):
        return not any(map(str.isalnum, _GREETINGS_CHINESE.sub("", text)))
    words = [_plain(word) for word in _WORD.findall(text)]
    return bool(words) and _GREETINGS.issuperset(words)


def saved_since(question: str) -> str:
    """The time of a question about everything that was saved in it: "today", "this_week", "this_month" or
    ""; "" for a question about something.
    """
    text = question[:MAX_QUESTION].casefold().replace("’", "'")
    period = next((name for name, named in _PERIODS if named.search(text)), "")
    if period not in SINCE:
        return ""
    if is_chinese(text):
        left = _CHINESE_QUESTION_WORDS.sub("", _AGENDA_CHINESE.sub("", text))
        saves = names_one(text, "", _TABLE["saving_chinese"])
        for word in _TABLE["saving_chinese"].split():
            left = left.replace(word, "")
        return period if saves and not any(map(str.isalnum, left)) else ""
    words = {_plain(word) for word in _WORD.findall(text)}
    is_about_all = words <= _SAVING | _QUESTION_WORDS | _AGENDA_WORDS
    return period if is_about_all and not _SAVING.isdisjoint(words) else ""


def span_of(question: str) -> str:
    """The month or year of a question: "2026-11", "2026", "11" (the latest November), "this_month", "last_month",
    "this_year", or "".
    """
    text = terms.fold(question[:MAX_QUESTION]).casefold()
    for name, pattern in _SPANS:
        if pattern.search(text):
            return name
    year = _YEAR.search(text)
    month = _MONTH_NAMED.search(text) or _MONTH_CHINESE.search(text)
    number = (figures.MONTHS.get(month[1]) or int(month[1])) if month else 0
    if not 0 <= number <= 12:
        return ""
    return "-".join(filter(None, (year[0] if year else "", f"{number:02}" if number else "")))


def is_chinese(text: str) -> bool:
    return _CHINESE.search(text) is not None


def _wanted(words: list[str], helpful: list[str]) -> tuple[list[str], list[str]]:
    """A question that has only helpful words wants the things that they name, else all of them."""
    if words:
        return words, helpful
    things = [word for word in helpful if _is_thing(word)]
    return (things, [word for word in helpful if word not in things]) if things else (helpful, [])


def _is_thing(word: str) -> bool:
    return word in _CHINESE_KINDS or not _KINDS.isdisjoint((_plain(word), _plain(stem(word))))


def _words(question: str) -> tuple[list[str], list[str]]:
    """The words of a question that must be on a screenshot, and those that may."""
    left = question
    if is_chinese(question):
        left = _WANTING.sub(lambda found: found[1] or " ", _CHINESE_QUESTION_WORDS.sub(" ", question))
    words: dict[str, None] = {}
    helpful: dict[str, None] = {}
    for word in _WORD.findall(left)[: 4 * MOST_WORDS]:
        if is_chinese(word):
            thing, kind = _parts(word)
            if thing in _CHINESE_FIELDS:
                thing, kind = "", thing + kind
            elif latin := _LATIN.fullmatch(thing):
                thing, kind = latin[1], latin[2]
            words |= dict.fromkeys(filter(None, [thing]))
            helpful |= dict.fromkeys(filter(None, [kind]))
        elif _plain(word) in _QUESTION_WORDS:
            continue
        else:
            word = _POSSESSIVE.sub("", word)
            is_helpful = _plain(word) in _ACTIONS or _is_thing(word) or _plain(word) in _CALENDAR
            is_helpful = is_helpful or bool(names_of(FIELDS, _plain(word)))
            (helpful if is_helpful else words)[word] = None
    return list(words)[:MOST_WORDS], list(helpful)[:MOST_WORDS]


def _parts(run: str) -> tuple[str, str]:
    """A run of Chinese as the thing and what it is called: 去北京的火车 has the runs 去北京 and 火车."""
    thing = run.lstrip(_CHINESE_BEFORE).rstrip(_CHINESE_BEHIND).strip(_CHINESE_VERBS)
    kind = next((kind for kind in _CHINESE_KINDS if thing.endswith(kind)), "")
    return thing.removesuffix(kind).strip(_CHINESE_VERBS), kind


def stem(word: str) -> str:
    """An English word without the ending of a plural or a past; any other word as it is. A search then finds
    all forms, since it also finds longer words that begin so.
    """
    for ending, replaced, shortest in (
        ("ies", "", 5),
        ("sses", "ss", 6),
        ("es", "", 6),
        ("s", "", 4),
        ("ing", "", 7),
        ("ed", "", 6),
    ):
        if (
            len(word) >= shortest
            and word.isascii()
            and word.lower().endswith(ending)
            and not word.lower().endswith("ss")
        ):
            return word[: -len(ending)] + replaced
    return word


def answers(asked: Question, line: str) -> float:
    """How well a line has something of the kind that is wished for: 1 where that is most of the line, less
    among other words and for a day that only the picture's own says ("today"), and 0 where it has nothing. A
    name or a number of the question itself answers nothing, and a phone number has several digits.
    """
    pattern = _ANSWERS.get(asked.wish)
    if pattern is None or (asked.wish == "who" and wordlists.is_interface(line)):
        return 0.0
    line = line[:MAX_ANSWERING]
    found = [one[0] for one in pattern.finditer(line)]
    if asked.wish in ("who", "number"):
        fewest = max((DIGITS.get(name, 0) for name in names_of(FIELDS, asked.text)), default=0)
        most = max((sum(map(str.isdigit, one)) for one in _DIGITS.findall(line)), default=0)
        own = {*asked.text.split(), *figures.MONTHS}
        found = [one for one in found if one.strip(" :：").casefold() not in asked.text]
        found = [one for one in found if own.isdisjoint(one.casefold().split())]
        if most < fewest or not _has_unit(asked, line):
            return 0.0
    if not found:
        return 0.0
    if asked.wish == "when" and all(map(_DAY_NAMED.fullmatch, found)):
        return RELATIVE
    said = sum(len(one.strip()) for one in found)
    return 1.0 if 2 * said >= len(line.strip()) else AMONG_OTHERS


def _has_unit(asked: Question, line: str) -> bool:
    """Whether a line has the unit that a question names, beside a number or as its label."""
    named = [key for key in UNITS if names_one(asked.text, *((key,) if key.isascii() else ("", key)))]
    return not named or any(
        re.search(rf"(?:\d ?|^)(?:{unit})(?![^\W\d_])", line, re.I)
        for key in named
        for unit in UNITS[key].split()
    )


def labels(wish: Wish, line: str) -> bool:
    """Whether a line, in lower case, names what is wished for, as "Departure" does a date."""
    pattern = _LABELS.get(wish)
    return pattern is not None and pattern.search(line) is not None


def _goes_on(question: str, words: list[str]) -> bool:
    """Whether a question is about the subject of an earlier one: it has no words, or refers to something."""
    if not words:
        return True
    if is_chinese(question):
        return len(words) == 1 and _CHINESE_FOLLOWING.search(question.strip()) is not None
    spoken = [_plain(word) for word in _WORD.findall(question)]
    return len(words) <= 2 and (_begins_anew(question) or not _FOLLOWING.isdisjoint(spoken))


def _begins_anew(question: str) -> bool:
    """Whether a question names another thing of which the same is wanted: "and the electricity?" """
    spoken = [_plain(word) for word in _WORD.findall(question)]
    if is_chinese(question):
        return re.match("那.+呢[？?]?$", question.strip()) is not None
    refers = not _FOLLOWING.isdisjoint(spoken)
    return not refers and (spoken[:1] == ["and"] or spoken[:2] in (["what", "about"], ["how", "about"]))


def _plain(word: str) -> str:
    return word.casefold().replace("’", "'")
