"""What a person's question asks for, by plain rules: the words that must be on a screenshot, and whether a
date, an amount, a name, a place or a number is wanted.

A question such as "and when?" has no words of its own. It goes on about the subject of the question before.
"""

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from rules import wordlists
from rules.entities import CLOCK, MONTH, NUMBER, SIGN

Wish = Literal["", "when", "long", "amount", "who", "where", "number"]

MAX_QUESTION = 2_000  # characters that are read
MOST_EARLIER = 4  # questions in which a subject is looked for
MOST_WORDS = 12

_TABLE = wordlists.table("questions")
_QUESTION_WORDS, _ACTIONS, _KINDS, _FOLLOWING = (
    wordlists.words(_TABLE[name]) for name in ("asking", "actions", "things", "following")
)
_WORD = re.compile(r"[^\W_]+(?:['’.@:/_-][^\W_]+)*")

_CHINESE = re.compile("[\u4e00-\u9fff]")
_CHINESE_QUESTION_WORDS = re.compile(
    "请问|请|帮我|给我|告诉我|查一下|查找|搜索|找一下|找找|找到|看看|我想知道|知道|有没有|是不是|在哪里|在哪儿|哪里|哪儿|哪个|哪些|哪天|哪位|哪|"
    "什么时候|什么时间|什么地方|什么|多久|多长时间|怎么样|怎么|为什么|多少钱|多少|几点|几号|几月|是谁|谁|截图|图片|照片|保存|存过|看过|有关|关于|相关|我的|我们|我|你|"
    "的|了|吗|呢|吧|是|有|在|和|与|里|中|上|要|会|能|那个|这个|那|这|它|他|她|呀|啊|还|又|一共|总共|花了|花|付了|付|买了|买|定了|订了"
)
_CHINESE_VERBS: str = _TABLE["chinese_verbs"]
_CHINESE_KINDS: list[str] = _TABLE["chinese_things"].split()
_CHINESE_FOLLOWING = re.compile("^(?:那|它|他|她|这|还|然后)|(?:它|那个|这个)")

_WISHES: tuple[tuple[Wish, re.Pattern[str]], ...] = (
    ("amount", re.compile(r"\bhow much\b|\b(?:price|cost|costs|amount|total|pay|paid|spend|spent)\b|多少钱|价格|金额|一共|总共|花了|费用", re.I)),
    ("long", re.compile(r"\bhow long\b|多久|多长时间", re.I)),
    ("when", re.compile(r"\bwhen\b|\bwhat (?:time|day|date)\b|\bhow late\b|什么时候|什么时间|几点|几号|哪天|几月|日期", re.I)),
    ("where", re.compile(r"\bwhere\b|\b(?:address|place|gate|platform|seat)\b|哪里|哪儿|什么地方|地址|地点|登机口|检票口|座位", re.I)),
    ("who", re.compile(r"\bwho(?:se|m)?\b|\bwith whom\b|谁|哪位", re.I)),
    ("number", re.compile(r"\bhow many\b|\b(?:number|code|phone|tracking|id)\b|多少|号码|几个|验证码|取件码|单号|电话", re.I)),
)  # fmt: skip

_DAYS = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*|today|tomorrow|yesterday|tonight|今天|明天|昨天|后天|今晚|(?:周|星期|礼拜)[一二三四五六日天]"
_ANSWERS: dict[Wish, re.Pattern[str]] = {
    "when": re.compile(
        rf"\b(?:{_DAYS})\b|{_DAYS[_DAYS.index('今天') :]}|(?<!\d){CLOCK}|\b{MONTH}\b|\d{{1,2}}月|\d{{1,2}} ?(?:am|pm)\b|\b(?:19|20)\d\d\b"
        r"|\d{1,2}[./-]\d{1,2}|\d{1,2}[点號号日]",
        re.I,
    ),
    "long": re.compile(r"\d ?(?:min|hour|h\b|day|week|month|year|分钟|小时|天|周|个月|年)", re.I),
    "amount": re.compile(rf"{SIGN} ?{NUMBER}|{NUMBER} ?(?:€|£|¥|￥|元|块|USD|EUR|GBP|CNY|RMB|JPY)|(?<!\d)\d{{1,7}}[.,]\d\d(?!\d)"),
    "who": re.compile(r"(?:^|[\s:：])[A-Z][a-z]+(?: [A-Z][a-z]+){0,3}|@\w|先生|女士|老师|(?:发件人|收件人|联系人|姓名)"),
    "where": re.compile(
        r"\b(?:street|road|avenue|lane|square|st\.|rd\.|ave|platz|stra(?:ss|ß)e|gate|terminal|platform|floor|room|seat|station|airport|hotel"
        r"|hall|building)\b|\d{1,4} [A-Z][a-z]+|[省市区县路街道号楼室站厅]|酒店|机场|航站楼|登机口|检票口",
        re.I,
    ),
    "number": re.compile(r"\d"),
}  # fmt: skip

_LABELS: dict[Wish, list[str]] = _TABLE["labels"]


# What a question about the agenda may ask for; "" is everything that is to come.
PERIODS = ("", "today", "tomorrow", "this_week", "next_week", "this_month")
_PERIODS = (
    ("today", re.compile(r"\btoday\b|\btonight\b|今天|今晚|今日")),
    ("tomorrow", re.compile(r"\btomorrow\b|明天|明日")),
    ("next_week", re.compile(r"\bnext week\b|下个?星期|下个?礼拜|下周")),
    ("this_week", re.compile(r"\b(?:this|the) week\b|这个?星期|这个?礼拜|[本这]周")),
    ("this_month", re.compile(r"\b(?:this|the) month\b|[本这]个?月")),
)
_AGENDA = re.compile(
    r"\b(?:due|upcoming|coming up|agenda|deadlines?|appointments?|events?|expir(?:es?|ing)|scheduled?|planned|plans?|happening)\b"
    r"|截止|到期|日程|安排|预约|要做|待办|接下来|行程"
)
# With a period, these ask for it, too.
_AGENDA_VERBS = re.compile(r"\bdo i have\b|\bhave i got\b|\bwhat(?:'s| is) on\b|有什么|有哪些|有事")
# A question with any other word is about something on a screenshot.
_AGENDA_WORDS = frozenset(
    "due upcoming coming up agenda deadline deadlines appointment appointments event events expire expires expiring schedule "
    "scheduled planned plan plans happen happens happening today tonight tomorrow week month next soon".split()
)
_AGENDA_CHINESE = re.compile(
    "截止|到期|日程|安排|预约|要做|待办|接下来|行程|今天|今晚|今日|明天|明日|下个?星期|下个?礼拜|下周|这个?星期|这个?礼拜|[本这]周|[本这]个?月"
    "|什么|哪些|有没有|事情|事|需要|有|要|我|的|会|了|吗|呢|内|都|快|我的|看看|告诉|请"
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

    @property
    def wanted(self) -> list[str]:
        """The words that must be on a screenshot: the subject's and this question's own."""
        return list(dict.fromkeys([*self.subject, *self.words]))[:MOST_WORDS]


def understand(question: str, earlier: Sequence[str] = ()) -> Question:
    """What `question` asks, after the `earlier` ones of its conversation, the latest last."""
    question = question[:MAX_QUESTION]
    wish: Wish = next((wish for wish, pattern in _WISHES if pattern.search(question)), "")
    words, helpful = _words(question)
    if earlier and _goes_on(question, words):
        before = (_wanted(*_words(one[:MAX_QUESTION]))[0] for one in reversed(earlier[-MOST_EARLIER:]))
        if subject := next(filter(None, before), []):
            # "which seat?": what is wished for helps to find the line, and need not be there.
            return Question(wish, [], [*words, *helpful], subject, is_chinese(question))
    return Question(wish, *_wanted(words, helpful), [], is_chinese(question))


def agenda_period(question: str) -> str | None:
    """Which of `PERIODS` a question about the agenda asks for; None for any other question."""
    text = question[:MAX_QUESTION].casefold().replace("’", "'")
    period = next((name for name, named in _PERIODS if named.search(text)), "")
    if not (_AGENDA.search(text) or (period and _AGENDA_VERBS.search(text))):
        return None
    if is_chinese(text):
        only = not any(map(str.isalnum, _AGENDA_CHINESE.sub("", text)))
    else:
        words = {_plain(word) for word in _WORD.findall(text)}
        only = words <= _AGENDA_WORDS | _QUESTION_WORDS and "last" not in words
    return period if only else None


def is_chinese(text: str) -> bool:
    return _CHINESE.search(text) is not None


def _wanted(words: list[str], helpful: list[str]) -> tuple[list[str], list[str]]:
    """A question that has only helpful words wants them."""
    return (words, helpful) if words else (helpful, [])


def _words(question: str) -> tuple[list[str], list[str]]:
    """The words of a question that must be on a screenshot, and those that may."""
    left = _CHINESE_QUESTION_WORDS.sub(" ", question) if is_chinese(question) else question
    words: dict[str, None] = {}
    helpful: dict[str, None] = {}
    for word in _WORD.findall(left)[: 4 * MOST_WORDS]:
        if is_chinese(word):
            thing, kind = _parts(word)
            words |= dict.fromkeys(filter(None, [thing]))
            helpful |= dict.fromkeys(filter(None, [kind]))
        elif _plain(word) in _ACTIONS or _plain(stem(word)) in _KINDS or _plain(word) in _KINDS:
            helpful[word] = None
        elif _plain(word) not in _QUESTION_WORDS:
            words[word] = None
    return list(words)[:MOST_WORDS], list(helpful)[:MOST_WORDS]


def _parts(run: str) -> tuple[str, str]:
    """A run of Chinese as the thing and what it is called: 去北京的火车 has the runs 去北京 and 火车."""
    thing = run.strip(_CHINESE_VERBS)
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


def answers(wish: Wish, line: str) -> bool:
    """Whether a line has something of the kind that is wished for."""
    pattern = _ANSWERS.get(wish)
    return pattern is not None and pattern.search(line[:300]) is not None


def labels(wish: Wish, line: str) -> bool:
    """Whether a line, in lower case, names what is wished for, as "Departure" does a date."""
    return any(label in line for label in _LABELS.get(wish, ()))


def _goes_on(question: str, words: list[str]) -> bool:
    """Whether a question is about the subject of an earlier one: it has no words, or refers to something."""
    if not words:
        return True
    if is_chinese(question):
        return len(words) == 1 and _CHINESE_FOLLOWING.search(question.strip()) is not None
    spoken = [_plain(word) for word in _WORD.findall(question)]
    begins = spoken[:1] == ["and"] or spoken[:2] == ["what", "about"]
    return len(words) <= 2 and (begins or not _FOLLOWING.isdisjoint(spoken))


def _plain(word: str) -> str:
    return word.casefold().replace("’", "'")
