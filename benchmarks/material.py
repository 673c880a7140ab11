"""Made-up material: texts and pictures of screenshots, and queries, the same in every run.

It contains nobody's data. The words are made of English syllables and drawn by Zipf's law, which real texts
follow: a search index must handle both the few words in every text and the many words in a single one.
"""

import bisect
import functools
import io
import itertools
import random
from typing import Any, NamedTuple

from PIL import Image, ImageDraw, ImageFont

from engines.findings import CATEGORIES, INTENTS, Entity, Findings
from engines.lines import Line, Page

SEED = 20261121
WORDS = 50_000
PHONE = (1080, 2400)

APPS = (
    "Mail", "Chat", "Maps", "Bank", "Calendar", "Notes", "Browser",
    "Shop", "Weather", "Photos", "News", "Music", "Rail", "Taxi",
    "微信", "支付宝", "淘宝", "小红书", "高德地图", "美团",
)  # fmt: skip
CHINESE = (
    "今天 明天 下午 晚上 会议 项目 报告 时间 地点 公司 同事 朋友 家人 孩子 学校 老师 "
    "医院 医生 预约 提醒 快递 包裹 地址 电话 订单 付款 "
    "支付 转账 余额 账单 发票 工资 房租 水电 火车 飞机 航班 酒店 房间 出发 到达 "
    "车站 北京 上海 广州 深圳 天气 温度 下雨 周末 假期 旅行 "
    "照片 视频 音乐 电影 新闻 文章 评论 推荐 收藏 分享 消息 通知 验证 密码 "
    "登录 注册 更新 下载 安装 设置 问题 解决 方案 计划 完成 开始 "
    "结束 取消 确认 联系 客服 优惠 价格 折扣 商品 咖啡 晚餐 餐厅 外卖 "
    "菜单 蔬菜 水果 牛奶 健康 运动 跑步 睡眠 体检 药品 保险 合同 签字"
)

_STARTS = "b br c ch cl cr d dr f fl fr g gr h j k l m n p pl pr qu r s sc sh sl sp st str t th tr v w wh"
_MIDDLES = "a e i o u ai ea ee ie oa oo ou"
_ENDS = "- - ck d l ll m n nd ng nt r rd rm rn rt s sh ss st t th x"
_SUFFIXES = "- - - s ed er ing ly ment ness tion able"


class Query(NamedTuple):
    """A person's query. `term` is an FTS5 query that matches the same photos."""

    kind: str
    text: str
    term: str


class Writer:
    """Writes texts of screenshots, from one sequence of random numbers."""

    def __init__(self, seed: int = SEED):
        self._random = random.Random(seed)
        self.words = _vocabulary()
        self._chinese = CHINESE.split()
        self._word_weights = _zipf(len(self.words))
        self._chinese_weights = _zipf(len(self._chinese))

    def findings(self) -> Findings:
        """The analysis of a made-up screenshot with 60 to 150 words; a third of them is partly Chinese."""
        pick = self._random
        chinese = pick.random() < 0.33
        lines = [self.sentence(pick.randint(5, 9)) for _ in range(pick.randint(8, 16))]
        if chinese:
            lines += [self.chinese(pick.randint(3, 8)) for _ in range(pick.randint(3, 10))]
            pick.shuffle(lines)
        entities = [
            Entity("date", f"2026-{pick.randint(1, 12):02}-{pick.randint(1, 28):02}"),
            Entity("amount", f"{pick.randint(1, 4_000)}.{pick.randint(0, 99):02} EUR"),
            Entity("link", f"https://{self.word()}.example/{self.word()}/{pick.randint(1, 99_999)}"),
        ]
        lines += [entity.value for entity in entities]
        return Findings(
            app_name=pick.choice(APPS),
            content_category=pick.choice(CATEGORIES),
            intent=pick.choice(INTENTS),
            summary=self.sentence(14) + (self.chinese(4) if chinese else ""),
            entities=entities,
            confidence=round(pick.random(), 2),
            visible_text="\n".join(lines),
            page=_page(lines),
            reader="made-up",
        )

    def word(self) -> str:
        return self._random.choices(self.words, cum_weights=self._word_weights)[0]

    def sentence(self, length: int) -> str:
        return (
            " ".join(self._random.choices(self.words, cum_weights=self._word_weights, k=length)).capitalize()
            + "."
        )

    def chinese(self, length: int) -> str:
        return (
            "".join(self._random.choices(self._chinese, cum_weights=self._chinese_weights, k=length)) + "。"
        )

    def queries(self, documents: dict[str, int], texts: list[str], each: int) -> list[Query]:
        """`each` queries of every kind.

        `documents` gives, for each word of the index, the number of documents that contain it; `texts` are
        some of the indexed texts, for phrases.
        """
        plain = sorted(term for term in documents if term.isascii() and term.isalpha() and len(term) > 3)
        plain.sort(key=documents.__getitem__, reverse=True)
        rare, common = plain[len(plain) // 2 :], plain[: max(each, 50)]
        middling = [term for term in plain[: len(plain) // 2] if len(term) > 6] or plain
        queries = []
        for _ in range(each):
            queries += [self._exactly("rare", rare), self._exactly("common", common), self._phrase(texts)]
            queries += [self._misspelt(middling, documents), self._begun(middling), self._in_chinese()]
        return queries

    def _exactly(self, kind: str, terms: list[str]) -> Query:
        term = self._random.choice(terms)
        return Query(kind, term, f'"{term}"')

    def _phrase(self, texts: list[str]) -> Query:
        sentences = [
            line.rstrip(".").split()
            for line in self._random.choice(texts).splitlines()
            if line.isascii() and line.endswith(".")
        ]
        words = self._random.choice(sentences)
        begin = self._random.randrange(len(words) - 1)
        phrase = " ".join(words[begin : begin + 3]).casefold()
        return Query("phrase", f'"{phrase}"', f'"{phrase}"')

    def _misspelt(self, terms: list[str], known: dict[str, int]) -> Query:
        term = self._random.choice(terms)
        spot = self._random.randrange(1, len(term) - 1)
        typed = (f"{term[:spot]}{letter}{term[spot + 1 :]}" for letter in "qxzjkvwyuh")
        return Query("typo", next(word for word in typed if word not in known), f'"{term}"')

    def _begun(self, terms: list[str]) -> Query:
        term = self._random.choice(terms)
        return Query("prefix", term[:-3], f'"{term}"')

    def _in_chinese(self) -> Query:
        text = "".join(
            self._random.choices(
                self._chinese, cum_weights=self._chinese_weights, k=self._random.randint(1, 2)
            )
        )
        return Query("Chinese", text, '"' + " ".join(map("".join, itertools.pairwise(text))) + '"')


def screenshot(writer: Writer, number: int) -> bytes:
    """A PNG like a phone's screenshot: text on plain bars and bubbles. `number` makes its bytes unique.

    It has two dozen lines with about 300 characters, the median of real phone screens.
    """
    width, height = PHONE
    picture = Image.new("RGB", PHONE, "#f4f4f6")
    draw = ImageDraw.Draw(picture)
    title, text = (ImageFont.load_default(size=size) for size in (56, 38))
    draw.rectangle((0, 0, width, 220), fill="#075e54")
    draw.text((48, 110), f"{writer.word().capitalize()} {number}", fill="white", font=title)
    top = 260
    for row in itertools.count():
        lines = [writer.sentence(1 + (row + place) % 3) for place in range(2 + row % 3)]
        bottom = top + 40 + 56 * len(lines)
        if bottom > height - 200:
            break
        left = 40 + 60 * (row % 2)
        draw.rounded_rectangle(
            (left, top, width - 100 + left, bottom), 28, fill="white" if row % 2 else "#dcf8c6"
        )
        for place, line in enumerate(lines):
            draw.text((left + 32, top + 18 + 56 * place), line[:46], fill="#1a1a1a", font=text)
        top = bottom + 28
    draw.rectangle((0, height - 150, width, height), fill="white")
    return png(picture)


def tiny_picture(number: int) -> bytes:
    """A PNG of 628 bytes in a phone's proportions, a different one for each number below 16,777,216."""
    return png(Image.new("RGB", (9, 20), (number >> 16, number >> 8 & 255, number & 255)), compress_level=0)


def unlike(picture: bytes, number: int) -> bytes:
    """The same picture as a file with other bytes, a different one for each number: the analysis of equal
    bytes would be copied. Decoders ignore what follows a picture.
    """
    return picture + number.to_bytes(8, "big")


def noise(width: int, height: int) -> bytes:
    """A PNG of random pixels, which cannot be compressed."""
    pixels = random.Random(SEED).randbytes(width * height * 3)
    return png(Image.frombytes("RGB", (width, height), pixels), compress_level=0)


def png(picture: Image.Image, **options: Any) -> bytes:
    out = io.BytesIO()
    picture.save(out, "PNG", **options)
    return out.getvalue()


def _page(lines: list[str]) -> Page:
    """These lines below each other on the screen of a phone."""
    return Page(
        1080,
        2400,
        [
            Line(line, 1.0, 48, top, min(1060, 48 + 21 * len(line)), top + 42)
            for top, line in zip(range(160, 160 + 72 * len(lines), 72), lines, strict=True)
        ],
    )


def _zipf(count: int) -> list[float]:
    """Cumulative weights by Zipf's law. Mandelbrot's shift flattens the first ranks, as in real texts."""
    return list(itertools.accumulate(1 / (rank + 2.7) for rank in range(1, count + 1)))


@functools.cache
def _vocabulary() -> list[str]:
    """`WORDS` words, the frequent ones first."""
    pick = random.Random(SEED)
    *syllable, suffixes = (
        parts.replace("-", "").split(" ") for parts in (_STARTS, _MIDDLES, _ENDS, _SUFFIXES)
    )
    words: dict[str, None] = {}  # an ordered set, so that every run has the same words
    while len(words) < WORDS:
        syllables = bisect.bisect((0.35, 0.85), pick.random()) + 1
        words["".join(map(pick.choice, syllable * syllables)) + pick.choice(suffixes)] = None
    # In every language, the frequent words are short.
    return sorted(words, key=lambda word: len(word) + 4 * pick.random())
