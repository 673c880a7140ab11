# ruff: noqa: E501 - a screen is a line or two, however long
"""Drawn screens that show something sensitive (banks, wallets, messengers, mails, terminals, settings), and
screens that only look so (order numbers, phone numbers, tracking codes, versions, ISBNs, prices), in English and
Chinese.

`sensitive_screens` and `look_alikes` draw from a seed. While rules are tuned, another seed is used than in the
tests, so that the tests measure rules on values that nobody has seen:

    .venv/bin/python -m tests.support.screens SEED FOLDER [HOW MANY]

reads that many screens of each sort with the real OCR, keeps what was read in FOLDER for the next time, and
prints recall and precision for each kind, and each screen that was judged wrongly. Every value is made up.
"""

import base64
import hashlib
import io
import json
import random
import string
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from PIL import Image, ImageDraw

from rules import sensitive
from tests.support import fonts

WIDTH = 600
MARGIN = 28
LATIN = (fonts.SANS, fonts.CHINESE, fonts.BOLD)
MONO = (fonts.MONO, fonts.MONO_BOLD)
THEMES = (
    ("#ffffff", "#111111", "#6b7280"),
    ("#f4f5f7", "#1f2937", "#4b5563"),
    ("#111827", "#f3f4f6", "#9ca3af"),
    ("#000000", "#e5e5e5", "#a3a3a3"),
)
WORDS = (Path(sensitive.__file__).parent / "bip39-english.txt").read_text().split()


@dataclass
class Screen:
    """A drawn screen: what is on it, and the kinds of what is sensitive there."""

    name: str
    kinds: frozenset[str]
    secrets: list[str] = field(default_factory=list)
    rows: list[tuple] = field(default_factory=list)
    theme: tuple = THEMES[0]
    latin: str = LATIN[0]

    def picture(self) -> bytes:
        """The screen as a PNG file."""
        image = Image.new("RGB", (WIDTH, 1_200), self.theme[0])
        canvas, top = ImageDraw.Draw(image), 30
        for row in self.rows:
            top = _draw(canvas, row, top, self.theme, self.latin)
        out = io.BytesIO()
        image.crop((0, 0, WIDTH, min(1_200, top + 30))).save(out, "PNG")
        return out.getvalue()

    @property
    def text(self) -> str:
        """What is drawn, a row a line."""
        return "\n".join(str(piece) for row in self.rows for piece in row[1:] if isinstance(piece, str))


def sensitive_screens(seed: int, count: int) -> list[Screen]:
    """So many screens with something sensitive, of all kinds alike."""
    return [_made(SENSITIVE, seed, number) for number in range(count)]


def look_alikes(seed: int, count: int) -> list[Screen]:
    """So many screens with nothing sensitive."""
    return [_made(HARMLESS, seed + 1_000_000, number) for number in range(count)]


# ------------------------------------------------------------------------------------------------ the drawing


def _face(text: str, latin: str, size: int):
    return fonts.font(latin if text.isascii() else fonts.CHINESE, size)


def _draw(canvas, row: tuple, top: int, theme: tuple, latin: str) -> int:
    """Draw a row; returns where the next one begins."""
    _, ink, faint = theme
    match row:
        case ("title", text):
            canvas.text((MARGIN, top), text, fill=ink, font=_face(text, latin, 34))
            return top + 62
        case ("big", text):
            face = _face(text, latin, 46)
            canvas.text(((WIDTH - face.getlength(text)) / 2, top + 8), text, fill=ink, font=face)
            return top + 84
        case ("text", text):
            face = _face(text, latin, 24)
            for line in _wrapped(text, face, WIDTH - 2 * MARGIN):
                canvas.text((MARGIN, top), line, fill=ink, font=face)
                top += 36
            return top + 14
        case ("mono", text):
            face = fonts.font(MONO[len(text) % 2], 20)
            most = int((WIDTH - 2 * MARGIN) / face.getlength("m"))
            for line in text.split("\n"):
                for start in range(0, max(1, len(line)), most):
                    canvas.text((MARGIN, top), line[start : start + most], fill=ink, font=face)
                    top += 30
            return top + 8
        case ("pair", label, value):
            canvas.text((MARGIN, top), label, fill=faint, font=_face(label, latin, 24))
            face = _face(value, latin, 24)
            canvas.text((WIDTH - MARGIN - face.getlength(value), top), value, fill=ink, font=face)
            return top + 56
        case ("stacked", label, value):
            canvas.text((MARGIN, top), label, fill=faint, font=_face(label, latin, 20))
            canvas.text((MARGIN, top + 30), value, fill=ink, font=_face(value, latin, 26))
            return top + 84
        case ("card", text):
            canvas.rounded_rectangle((MARGIN, top, WIDTH - MARGIN, top + 150), 20, fill="#1e3a8a")
            canvas.text((MARGIN + 30, top + 60), text, fill="#ffffff", font=fonts.font(latin, 34))
            return top + 176
        case ("grid", columns, *cells):
            width = (WIDTH - 2 * MARGIN) / columns
            for number, cell in enumerate(cells):
                across, down = number % columns, number // columns
                place = (MARGIN + across * width, top + down * 52)
                canvas.rectangle((*place, place[0] + width - 10, place[1] + 44), outline=faint)
                canvas.text((place[0] + 12, place[1] + 8), cell, fill=ink, font=_face(cell, latin, 22))
            return top + 52 * -(-len(cells) // columns) + 16
        case ("boxes", digits):
            for number, digit in enumerate(digits):
                left = MARGIN + 40 + number * 76
                canvas.rectangle((left, top, left + 60, top + 74), outline=faint)
                canvas.text((left + 17, top + 12), digit, fill=ink, font=fonts.font(latin, 42))
            return top + 100
    raise ValueError(row[0])


def _wrapped(text: str, face, most: float) -> Iterable[str]:
    line = ""
    for piece in text.split(" ") if text.isascii() else _pieces(text):
        joined = f"{line} {piece}" if line and text.isascii() else line + piece
        if line and face.getlength(joined) > most:
            yield line
            joined = piece
        line = joined
    yield line


def _pieces(text: str) -> Iterable[str]:
    """Chinese characters one by one, and what is between them whole."""
    word = ""
    for character in text:
        if character.isascii() and character != " ":
            word += character
            continue
        if word:
            yield word
        word = ""
        yield character
    if word:
        yield word


def _made(makers: tuple, seed: int, number: int) -> Screen:
    draw = random.Random(f"{seed}/{number}")
    # A kind is a row of makers; they take turns, so that each is drawn equally often.
    name, kinds, make = makers[number % len(makers)]
    draw_rows = make(draw)
    secrets, rows = draw_rows
    latin = draw.choice(LATIN)
    return Screen(f"{name} {number}", frozenset(kinds), secrets, rows, draw.choice(THEMES), latin)


# ------------------------------------------------------------------------------------------------- the values


def _digits(draw: random.Random, count: int, first: str = "") -> str:
    return first + "".join(draw.choice(string.digits) for _ in range(count - len(first)))


def luhn(body: str) -> str:
    """`body` and its check digit."""
    for check in string.digits:
        total = 0
        for place, digit in enumerate(reversed(body + check)):
            value = int(digit) * (1 + place % 2)
            total += value - 9 if value > 9 else value
        if total % 10 == 0:
            return body + check
    raise AssertionError


def card(draw: random.Random) -> str:
    first, length = draw.choice(
        [("4", 16), ("4", 16), ("51", 16), ("55", 16), ("2345", 16), ("37", 15), ("6011", 16), ("62", 16),
         ("62", 19), ("3530", 16)]
    )  # fmt: skip
    return luhn(_digits(draw, length - 1, first))


def grouped(number: str, by: str = " ") -> str:
    if len(number) == 15:
        return by.join((number[:4], number[4:10], number[10:]))
    return by.join(number[place : place + 4] for place in range(0, len(number), 4))


IBANS = {"DE": "n" * 18, "GB": "aaaa" + "n" * 14, "FR": "n" * 23, "NL": "aaaa" + "n" * 10, "ES": "n" * 20,
         "AT": "n" * 16, "IT": "a" + "n" * 22, "CH": "n" * 17, "PL": "n" * 24, "BE": "n" * 12}  # fmt: skip


def iban(draw: random.Random) -> str:
    country = draw.choice(list(IBANS))
    account = "".join(
        draw.choice(string.digits if one == "n" else "ABCDEFGHKLMNPRSTUVWXY") for one in IBANS[country]
    )
    number = int("".join(str(int(one, 36)) for one in f"{account}{country}00"))
    return f"{country}{98 - number % 97:02}{account}"


def resident(draw: random.Random) -> str:
    region = draw.choice(("110105", "310104", "440305", "510107", "330106", "420111"))
    body = f"{region}{draw.randint(1955, 2006)}{draw.randint(1, 12):02}{draw.randint(1, 28):02}{_digits(draw, 3)}"
    return body + "10X98765432"[sum(int(one) * pow(2, 17 - place) for place, one in enumerate(body)) % 11]


def ssn(draw: random.Random) -> str:
    return f"{draw.randint(100, 665):03}-{draw.randint(10, 99)}-{draw.randint(1000, 9999)}"


def password(draw: random.Random) -> str:
    words = (
        "Tulip",
        "river",
        "Falcon",
        "meadow",
        "Copper",
        "winter",
        "Marble",
        "quartz",
        "Harbor",
        "thunder",
    )
    return draw.choice((
        lambda: f"{draw.choice(words)}{_digits(draw, 4)}{draw.choice('!#$%&')}",
        lambda: f"{draw.choice(words)}{draw.choice('#@$')}{_digits(draw, 3)}",
        lambda: "".join(draw.choice(string.ascii_letters + string.digits) for _ in range(11)) + _digits(draw, 1),
        lambda: f"{draw.choice(words)}-{draw.choice(words)}-{_digits(draw, 2)}",
        lambda: f"{draw.choice(words).lower()}{_digits(draw, 4)}",
    ))()  # fmt: skip


_MIXED = string.ascii_letters + string.digits


def _run(draw: random.Random, count: int, of: str = _MIXED) -> str:
    return "".join(draw.choice(of) for _ in range(count))


def key(draw: random.Random) -> str:
    return draw.choice((
        lambda: f"sk-proj-{_run(draw, 40)}",
        lambda: f"sk-ant-api03-{_run(draw, 40)}",
        lambda: f"AKIA{_run(draw, 16, string.ascii_uppercase + '234567')}",
        lambda: f"ghp_{_run(draw, 36)}",
        lambda: f"glpat-{_run(draw, 20)}",
        lambda: f"xoxb-{_digits(draw, 12)}-{_digits(draw, 12)}-{_run(draw, 24)}",
        lambda: f"AIza{_run(draw, 35)}",
        lambda: f"sk_live_{_run(draw, 24)}",
        lambda: f"hf_{_run(draw, 34)}",
        lambda: f"npm_{_run(draw, 36)}",
        lambda: f"LTAI{_run(draw, 20)}",
        lambda: f"SG.{_run(draw, 22)}.{_run(draw, 43)}",
        lambda: f"eyJhbGciOiJIUzI1NiJ9.eyJ{_run(draw, 30)}.{_run(draw, 43)}",
    ))()  # fmt: skip


def pem(draw: random.Random) -> str:
    name = draw.choice(("RSA ", "EC ", "OPENSSH ", "", "ENCRYPTED "))
    body = base64.b64encode(draw.randbytes(180)).decode()
    rows = [body[place : place + 44] for place in range(0, len(body), 44)]
    return "\n".join((f"-----BEGIN {name}PRIVATE KEY-----", *rows, f"-----END {name}PRIVATE KEY-----"))


def phrase(draw: random.Random) -> list[str]:
    return [draw.choice(WORDS) for _ in range(draw.choice((12, 12, 12, 24)))]


def code(draw: random.Random) -> str:
    return _digits(draw, draw.choice((6, 6, 6, 6, 4, 8)))


def phone(draw: random.Random) -> str:
    return draw.choice((
        f"1{draw.choice('3578')}{_digits(draw, 9)}", f"+1 415 555 {_digits(draw, 4)}", f"+49 30 {_digits(draw, 7)}",
        f"400-{_digits(draw, 3)}-{_digits(draw, 4)}", f"(212) 555-{_digits(draw, 4)}",
    ))  # fmt: skip


def tracking(draw: random.Random) -> str:
    return draw.choice((f"SF{_digits(draw, 13)}", f"YT{_digits(draw, 13)}", _digits(draw, 12, "7"),
                        f"1Z{_run(draw, 16, string.ascii_uppercase + string.digits)}",
                        f"RR{_digits(draw, 9)}CN"))  # fmt: skip


def isbn(draw: random.Random) -> str:
    body = f"978{_digits(draw, 9)}"
    check = -sum(int(one) * (1 + 2 * (place % 2)) for place, one in enumerate(body)) % 10
    plain = f"{body}{check}"
    return draw.choice((plain, f"{plain[:3]}-{plain[3]}-{plain[4:8]}-{plain[8:12]}-{plain[12]}"))


def price(draw: random.Random) -> str:
    return f"{draw.choice('$€£¥')}{draw.randint(1, 4_000):,}.{draw.randint(0, 99):02}"


def _name(draw: random.Random) -> str:
    return draw.choice(("Anna Berg", "David Miller", "Mia Novak", "James Lee", "Laura Rossi", "Tom Baker"))


def _day(draw: random.Random) -> str:
    return f"2026-{draw.randint(1, 12):02}-{draw.randint(1, 28):02}"


Rows = tuple[list[str], list[tuple]]

# -------------------------------------------------------------------------------------------- what is sensitive


def _pair(draw: random.Random, label: str, value: str) -> tuple:
    return (draw.choice(("pair", "stacked")) if len(value) < 26 else "stacked", label, value)


def _card_en(draw: random.Random) -> Rows:
    number = card(draw)
    shown = draw.choice((grouped(number), grouped(number), number, grouped(number, "-")))
    bank = draw.choice(("Harbor Bank", "My cards", "Wallet", "Payment method", "Checkout"))
    rows = draw.choice((
        [("title", bank), ("card", grouped(number)), ("pair", "Valid thru", "08/29"), ("pair", "Holder", _name(draw))],
        [("title", bank), _pair(draw, "Card number", shown), ("pair", "Expiry date", "11/28"),
         ("pair", "Security code", _digits(draw, 3)), ("text", "Pay now")],
        [("title", "Anna"), ("text", f"Here is the card for the hotel: {shown}"), ("text", "exp 04/28, thanks!")],
        [("title", bank), ("text", "Debit Mastercard"), ("stacked", "Number", shown), ("stacked", "Balance", price(draw))],
    ))  # fmt: skip
    return [number], rows


def _card_zh(draw: random.Random) -> Rows:
    number = card(draw)
    shown = draw.choice((grouped(number), grouped(number), number))
    rows = draw.choice((
        [("title", "我的银行卡"), ("card", grouped(number)), ("pair", "有效期", "08/29"), ("pair", "持卡人", "王小明")],
        [("title", "添加银行卡"), _pair(draw, "卡号", shown), ("pair", "手机号", phone(draw)), ("text", "下一步")],
        [("title", "妈妈"), ("text", f"把钱转到这个卡里：{shown}"), ("text", "建设银行，户名李华")],
        [("title", "账户详情"), ("stacked", "储蓄卡", shown), ("pair", "余额", f"¥{draw.randint(100, 90_000):,}.00")],
    ))  # fmt: skip
    return [number], rows


def _iban_en(draw: random.Random) -> Rows:
    number = iban(draw)
    shown = draw.choice((grouped(number), grouped(number), number))
    rows = draw.choice((
        [("title", "Account details"), ("stacked", "Account holder", _name(draw)), ("stacked", "IBAN", shown),
         ("stacked", "BIC", "DEUTDEFF")],
        [("title", "Invoice 2026-118"), ("text", "Please transfer the amount to:"), ("text", f"IBAN: {shown}"),
         ("pair", "Amount", price(draw))],
        [("title", "Inbox"), ("text", f"Hi {_name(draw)}, my account is {shown}. Thank you for the rent!")],
        [("title", "New transfer"), ("stacked", "To", _name(draw)), ("stacked", "Account number", shown),
         ("pair", "Reference", f"Rent {_day(draw)}")],
    ))  # fmt: skip
    return [number], rows


def _iban_zh(draw: random.Random) -> Rows:
    number = iban(draw)
    shown = grouped(number)
    rows = draw.choice((
        [("title", "国际汇款"), ("stacked", "收款人", _name(draw)), ("stacked", "收款账号", shown), ("pair", "币种", "EUR")],
        [("title", "房东"), ("text", "这是我的德国账户："), ("text", shown), ("text", "请在月底前转账")],
        [("title", "账户信息"), ("stacked", "IBAN", shown), ("stacked", "开户行", "柏林分行")],
    ))  # fmt: skip
    return [number], rows


def _id_en(draw: random.Random) -> Rows:
    number = draw.choice((ssn(draw), ssn(draw), f"C{_digits(draw, 8)}"))
    if number[0] == "C":
        rows = [
            ("title", "Travel documents"),
            _pair(draw, "Passport number", number),
            ("pair", "Expires", _day(draw)),
        ]
        return [number], rows
    rows = draw.choice((
        [("title", "Tax return"), ("stacked", "Name", _name(draw)), ("stacked", "Social Security number", number)],
        [("title", "Messages"), ("text", f"My SSN is {number}, please keep it safe")],
        [("title", "Benefits"), _pair(draw, "SSN", number), ("pair", "Date of birth", "1988-03-12")],
    ))  # fmt: skip
    return [number], rows


def _id_zh(draw: random.Random) -> Rows:
    number = resident(draw)
    rows = draw.choice((
        [("title", "实名认证"), ("pair", "姓名", "王小明"), ("stacked", "身份证号", number), ("text", "下一步")],
        [("title", "居民身份证"), ("text", "姓名 李华"), ("text", "公民身份号码"), ("text", number)],
        [("title", "群聊"), ("text", f"订票用我的身份证：{number}"), ("text", "收到")],
        [("title", "乘车人"), ("pair", "成人", "张伟"), _pair(draw, "证件号码", number)],
    ))  # fmt: skip
    return [number], rows


def _otp_en(draw: random.Random) -> Rows:
    number = code(draw)
    spaced = f"{number[:3]} {number[3:]}" if len(number) == 6 else number
    app = draw.choice(("Northmail", "Harbor Bank", "PixelSocial", "Wallet", "Cloudbox"))
    rows = draw.choice((
        [("title", "Messages"), ("text", f"Your {app} verification code is {number}. Do not share it with anyone.")],
        [("title", "Messages"), ("text", f"{number} is your {app} verification code. It expires in 10 minutes.")],
        [("title", app), ("text", "Use this one-time code to sign in"), ("big", spaced), ("text", "Valid for 5 minutes")],
        [("title", app), ("text", "Enter the verification code"), ("text", f"We sent it to {phone(draw)}"),
         ("boxes", number)],
        [("title", "Inbox"), ("text", f"{app} security code: {number}"), ("text", "If this was not you, call us.")],
        [("title", "Authenticator"), ("text", f"{app}: anna@example.com"), ("big", f"{number[:3]} {(number + '738')[3:6]}")],
        [("title", "Messages"), ("text", f"Your code is {number}. {app} will never ask for it.")],
        [("title", "Notifications"), ("text", f"{app}: OTP {number} for your payment of {price(draw)}")],
    ))  # fmt: skip
    return [number], rows


def _otp_zh(draw: random.Random) -> Rows:
    number = code(draw)
    app = draw.choice(("招商银行", "淘宝网", "微信支付", "铁路12306", "云相册"))
    rows = draw.choice((
        [("title", "短信"), ("text", f"【{app}】验证码{number}，用于登录，5分钟内有效，请勿泄露。")],
        [("title", "短信"), ("text", f"【{app}】您的验证码为：{number}，请勿告诉他人。客服电话95588")],
        [("title", "信息"), ("text", f"{number}（登录验证码），请在10分钟内完成验证【{app}】")],
        [("title", "输入验证码"), ("text", "已发送至 138****5678"), ("boxes", number)],
        [("title", app), ("text", "动态密码"), ("big", number), ("text", "60秒后失效")],
        [("title", "通知"), ("text", f"校验码 {number} ，您正在修改手机号，如非本人操作请忽略。")],
    ))  # fmt: skip
    return [number], rows


def _password_en(draw: random.Random) -> Rows:
    value = password(draw)
    rows = draw.choice((
        [("title", "Passwords"), ("stacked", "Website", "mail.example.com"), ("stacked", "User name", "anna.berg"),
         ("stacked", "Password", value)],
        [("title", "Wi-Fi"), ("pair", "Network", "Fritz-Guest"), ("pair", "Password", value)],
        [("title", "Tom"), ("text", f"The Wi-Fi password is {value}"), ("text", "thanks!")],
        [("title", "Welcome"), ("text", "User: anna.berg@example.com"), ("text", f"Password: {value}"),
         ("text", "Please change it after your first login.")],
        [("mono", f"$ cat .env\nDB_HOST=localhost\nDB_USER=app\nDB_PASSWORD={value}\n$")],
        [("title", "Router"), ("stacked", "Admin password", value), ("stacked", "Firmware", "7.57.1")],
        [("title", "Notes"), ("text", f"bike lock PIN: {_digits(draw, 4)}"), ("text", "buy milk")],
    ))  # fmt: skip
    return [value], rows


def _password_zh(draw: random.Random) -> Rows:
    value = password(draw)
    rows = draw.choice((
        [("title", "无线网络"), ("pair", "名称", "TP-LINK_5G"), ("pair", "密码", value)],
        [("title", "群聊"), ("text", f"WiFi密码：{value}"), ("text", "好的谢谢")],
        [("title", "账号信息"), ("stacked", "用户名", "xiaoming"), ("stacked", "登录密码", value)],
        [("title", "邮件"), ("text", f"您的初始密码为 {value} ，请尽快修改。")],
        [("title", "备忘录"), ("text", f"保险箱密码：{_digits(draw, 6)}"), ("text", "记得买牛奶")],
    ))  # fmt: skip
    return [value], rows


def _key_en(draw: random.Random) -> Rows:
    value = key(draw)
    rows = draw.choice((
        [("title", "API keys"), ("text", "Copy this key now, it is shown only once."), ("mono", value), ("text", "Done")],
        [("mono", f"$ export API_KEY={value}\n$ python main.py\nlistening on :8000")],
        [("mono", f'config = {{\n  "key": "{value}",\n  "timeout": 30\n}}')],
        [("title", "Tom"), ("text", "here is the token for the server"), ("mono", value)],
    ))  # fmt: skip
    return [value], rows


def _key_zh(draw: random.Random) -> Rows:
    value = key(draw)
    rows = draw.choice(
        (
            [
                ("title", "密钥管理"),
                ("text", "请立即复制，关闭后无法再次查看"),
                ("mono", value),
                ("text", "完成"),
            ],
            [("title", "同事"), ("text", "这是接口的密钥"), ("mono", value), ("text", "收到")],
        )
    )
    return [value], rows


def _pem_en(draw: random.Random) -> Rows:
    value = pem(draw)
    rows = draw.choice((
        [("mono", f"$ cat id_key\n{value}\n$")],
        [("title", "Deploy key"), ("mono", value), ("text", "Copy")],
        [("title", "Export private key"), ("text", "Never share this with anyone."),
         ("mono", _run(draw, 64, "0123456789abcdef"))],
    ))  # fmt: skip
    return [value], rows


def _pem_zh(draw: random.Random) -> Rows:
    value = pem(draw)
    rows = draw.choice(
        (
            [("title", "服务器密钥"), ("mono", value), ("text", "复制")],
            [
                ("title", "导出私钥"),
                ("text", "请勿截图，妥善保管"),
                ("mono", _run(draw, 64, "0123456789abcdef")),
            ],
        )
    )
    return [value], rows


def _numbered(draw: random.Random, words: list[str]) -> list[str]:
    form = draw.choice(("{} {}", "{}. {}", "{}.{}", "{1}"))
    return [form.format(number, word) for number, word in enumerate(words, 1)]


def _phrase_en(draw: random.Random) -> Rows:
    words = phrase(draw)
    rows = draw.choice((
        [("title", "Secret recovery phrase"), ("text", "Write down these words in order."),
         ("grid", draw.choice((2, 3)), *_numbered(draw, words))],
        [("title", "Your wallet"), ("grid", 3, *_numbered(draw, words)), ("text", "I have saved it")],
        [("title", "Notes"), ("text", "seed phrase"), ("text", " ".join(words))],
        [("mono", "$ wallet new\n" + "\n".join(" ".join(words[place : place + 4]) for place in range(0, len(words), 4)))],
    ))  # fmt: skip
    return [" ".join(words)], rows


def _phrase_zh(draw: random.Random) -> Rows:
    words = phrase(draw)
    rows = draw.choice((
        [("title", "备份助记词"), ("text", "请按顺序抄写，切勿截图"), ("grid", draw.choice((2, 3)), *_numbered(draw, words))],
        [("title", "钱包"), ("text", "助记词"), ("text", " ".join(words)), ("text", "我已备份")],
    ))  # fmt: skip
    return [" ".join(words)], rows


SENSITIVE: tuple[tuple[str, tuple[str, ...], Callable[[random.Random], Rows]], ...] = (
    ("card en", ("card",), _card_en),
    ("card zh", ("card",), _card_zh),
    ("iban en", ("iban",), _iban_en),
    ("iban zh", ("iban",), _iban_zh),
    ("id en", ("national_id",), _id_en),
    ("id zh", ("national_id",), _id_zh),
    ("code en", ("one_time_code",), _otp_en),
    ("code zh", ("one_time_code",), _otp_zh),
    ("password en", ("password",), _password_en),
    ("password zh", ("password",), _password_zh),
    ("key en", ("api_key",), _key_en),
    ("key zh", ("api_key",), _key_zh),
    ("pem en", ("private_key",), _pem_en),
    ("pem zh", ("private_key",), _pem_zh),
    ("phrase en", ("recovery_phrase",), _phrase_en),
    ("phrase zh", ("recovery_phrase",), _phrase_zh),
)

# ------------------------------------------------------------------------------------------ what only looks so


def _order_en(draw: random.Random) -> Rows:
    number = draw.choice((_digits(draw, 16, "4"), _digits(draw, 17, "11"), f"{_digits(draw, 3)}-{_digits(draw, 7)}-{_digits(draw, 7)}",
                          luhn(_digits(draw, 15, "4")), luhn(_digits(draw, 15, "55"))))  # fmt: skip
    return [], draw.choice((
        [("title", "Your order"), _pair(draw, "Order number", number), ("pair", "Total", price(draw)), ("text", "Buy again")],
        [("title", "Receipt"), _pair(draw, "Transaction ID", number), ("pair", "Date", _day(draw)), ("pair", "Paid", price(draw))],
        [("title", "Inbox"), ("text", f"Thank you! Your order #{number} has been shipped on {_day(draw)}.")],
    ))  # fmt: skip


def _order_zh(draw: random.Random) -> Rows:
    number = draw.choice(
        (
            _digits(draw, 19, "4"),
            _digits(draw, 28, "4200001"),
            _digits(draw, 18, "2"),
            luhn(_digits(draw, 15, "62")),
        )
    )
    return [], draw.choice((
        [("title", "订单详情"), ("stacked", "订单编号", number), ("pair", "实付款", f"¥{draw.randint(5, 900)}.00"), ("pair", "下单时间", _day(draw))],
        [("title", "账单详情"), ("stacked", "交易单号", number), ("stacked", "商户单号", _digits(draw, 20))],
        [("title", "转账成功"), ("pair", "流水号", number[:16]), ("pair", "金额", "200.00元")],
    ))  # fmt: skip


def _phone_en(draw: random.Random) -> Rows:
    return [], draw.choice((
        [("title", "Contacts"), *(("pair", _name(draw), phone(draw)) for _ in range(4))],
        [("title", _name(draw)), ("stacked", "mobile", phone(draw)), ("stacked", "work", phone(draw)), ("text", "Block caller")],
        [("title", "Two-factor authentication"), ("text", "We will send a verification code to"), ("text", phone(draw)), ("text", "Continue")],
        [("title", "Recent calls"), *(("pair", phone(draw), "14:3" + _digits(draw, 1)) for _ in range(4))],
    ))  # fmt: skip


def _phone_zh(draw: random.Random) -> Rows:
    return [], draw.choice((
        [("title", "通讯录"), *(("pair", name, phone(draw)) for name in ("张伟", "李娜", "王芳"))],
        [("title", "登录"), ("text", "验证码将发送至"), ("text", phone(draw)), ("text", "获取验证码"), ("text", "登录即同意用户协议")],
        [("title", "短信"), ("text", "【银行】请勿泄露验证码，如有疑问请致电95588。"), ("pair", "昨天", "10:24")],
        [("title", "客服"), ("text", f"请拨打{phone(draw)}，工作时间9:00-18:00")],
    ))  # fmt: skip


def _parcel_en(draw: random.Random) -> Rows:
    return [], draw.choice((
        [("title", "Parcel locker"), ("text", "Your pickup code"), ("big", _digits(draw, 6)), ("text", "Locker 14, open until 20:00")],
        [("title", "Delivery"), _pair(draw, "Tracking number", tracking(draw)), ("pair", "Arrives", _day(draw))],
        [("title", "Messages"), ("text", f"Your parcel is ready. Pickup code: {_digits(draw, 6)}. Station {draw.randint(2, 30)}.")],
        [("title", "Shipment"), ("text", f"{tracking(draw)} left the depot at 14:20"), ("text", "In transit")],
    ))  # fmt: skip


def _parcel_zh(draw: random.Random) -> Rows:
    return [], draw.choice((
        [("title", "取件通知"), ("text", "取件码"), ("big", f"{draw.randint(1, 20)}-{draw.randint(1, 9)}-{_digits(draw, 4)}"), ("text", "菜鸟驿站")],
        [("title", "短信"), ("text", f"【菜鸟驿站】您的快递已到，取件码{_digits(draw, 6)}，请及时领取。")],
        [("title", "快递详情"), ("stacked", "运单号", tracking(draw)), ("text", "派送中 快递员13" + _digits(draw, 9))],
        [("title", "外卖"), ("text", f"取餐码 {_digits(draw, 4)}"), ("text", "请到柜台取餐")],
    ))  # fmt: skip


def _version_en(draw: random.Random) -> Rows:
    number = f"{draw.randint(1, 20)}.{draw.randint(0, 30)}.{draw.randint(0, 9)}"
    return [], draw.choice((
        [("title", "About"), ("pair", "Version", number), ("pair", "Build", _digits(draw, 8)), ("pair", "Model", "SM-G991B")],
        [("title", "About phone"), ("stacked", "IMEI", luhn(_digits(draw, 14, "35"))), ("stacked", "Serial number", _run(draw, 12, string.ascii_uppercase + string.digits)),
         ("stacked", "ICCID", luhn(_digits(draw, 18, "8949")))],
        [("mono", f"$ git log --oneline\n{_run(draw, 7, '0123456789abcdef')} Fix login\n{_run(draw, 40, '0123456789abcdef')}\n$ node --version\nv{number}")],
        [("mono", f"commit {_run(draw, 40, '0123456789abcdef')}\nAuthor: anna <anna@example.com>\nDate: {_day(draw)} 14:20:11\nsha256 {_run(draw, 64, '0123456789abcdef')}")],
        [("title", "Certificate"), ("mono", f"-----BEGIN CERTIFICATE-----\n{_run(draw, 44)}\n{_run(draw, 44)}\n-----END CERTIFICATE-----")],
        [("title", "SSH keys"), ("mono", f"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA{_run(draw, 40)} anna@laptop")],
    ))  # fmt: skip


def _version_zh(draw: random.Random) -> Rows:
    return [], draw.choice((
        [("title", "关于手机"), ("pair", "版本号", f"{draw.randint(1, 14)}.{draw.randint(0, 9)}.{draw.randint(0, 30)}"), ("stacked", "序列号", _run(draw, 14, string.ascii_uppercase + string.digits)), ("stacked", "IMEI", luhn(_digits(draw, 14, "86")))],
        [("title", "软件更新"), ("text", f"版本 {draw.randint(1, 9)}.{draw.randint(0, 9)}.{_digits(draw, 4)} 已可用"), ("pair", "大小", "482.6 MB")],
        [("title", "存储空间"), ("pair", "已用", "38.2 GB"), ("pair", "照片", f"{draw.randint(1000, 9999)} 张"), ("pair", "缓存", "1024 MB")],
    ))  # fmt: skip


def _book_en(draw: random.Random) -> Rows:
    return [], draw.choice((
        [("title", "Book details"), _pair(draw, "ISBN", isbn(draw)), ("pair", "Pages", _digits(draw, 3, "4")), ("pair", "Price", price(draw))],
        [("title", "Library"), ("text", "The Quiet River"), ("text", f"ISBN {isbn(draw)}"), ("pair", "Due", _day(draw))],
        [("title", "Product"), ("stacked", "EAN", _digits(draw, 13, "40")), ("stacked", "Part number", f"{_run(draw, 3, string.ascii_uppercase)}-{_digits(draw, 6)}"), ("pair", "In stock", "42")],
    ))  # fmt: skip


def _book_zh(draw: random.Random) -> Rows:
    return [], [
        ("title", "图书"),
        ("stacked", "ISBN", isbn(draw)),
        ("pair", "定价", f"{draw.randint(20, 90)}.00元"),
        ("pair", "页数", _digits(draw, 3, "3")),
    ]


def _price_en(draw: random.Random) -> Rows:
    return [], draw.choice((
        [("title", "Cart"), *(("pair", name, price(draw)) for name in ("Shoes", "Lamp", "Kettle")), ("pair", "Total", price(draw)), ("text", "Promo code SAVE2026 applied")],
        [("title", "Statement"), *(("pair", f"{_day(draw)} Grocery", f"-{price(draw)}") for _ in range(4)), ("text", "Card ending in " + _digits(draw, 4))],
        [("title", "Stocks"), *(("pair", name, f"{draw.randint(10, 4000)}.{_digits(draw, 2)}") for name in ("ACME", "NORD", "PIX"))],
        [("title", "Gift card"), ("text", f"Your voucher code: {_run(draw, 4, string.ascii_uppercase)}-{_digits(draw, 4)}-{_digits(draw, 4)}"), ("pair", "Value", price(draw))],
    ))  # fmt: skip


def _price_zh(draw: random.Random) -> Rows:
    return [], draw.choice((
        [("title", "购物车"), *(("pair", name, f"¥{draw.randint(9, 4000)}.00") for name in ("键盘", "台灯", "水壶")), ("text", "优惠码：SAVE2026")],
        [("title", "账单"), *(("pair", f"{_day(draw)} 超市", f"-{draw.randint(9, 900)}.00") for _ in range(4)), ("text", "尾号" + _digits(draw, 4) + "的储蓄卡")],
        [("title", "理财"), ("pair", "总资产", f"{draw.randint(1, 90)},{_digits(draw, 3)}.{_digits(draw, 2)}"), ("pair", "昨日收益", "12.08")],
    ))  # fmt: skip


def _login_en(draw: random.Random) -> Rows:
    return [], draw.choice((
        [("title", "Sign in"), ("stacked", "Email", "anna@example.com"), ("stacked", "Password", "••••••••••"), ("text", "Forgot password?"), ("text", "Sign in")],
        [("title", "Security"), ("pair", "Password", f"Changed {_day(draw)}"), ("pair", "Two-step verification", "On"), ("pair", "Recovery phone", phone(draw)), ("pair", "Passkeys", "2 devices")],
        [("title", "Create account"), ("text", "Your password must be at least 8 characters long and contain a digit."), ("stacked", "Password", ""), ("text", "Continue")],
        [("mono", "password = getpass.getpass()\nuser = os.environ['USER']\npassword: str = None\nif password == other:\n    login(password)")],
        [("title", "Tom"), ("text", "Did you change the password for the router?"), ("text", f"Yes, at 14:20. Ask Mia, she is in room {_digits(draw, 4, '1')}.")],
        [("title", "Settings"), ("pair", "API keys", "3 active"), ("pair", "Key", "sk-...x4Qz"), ("text", "Create new secret key")],
    ))  # fmt: skip


def _login_zh(draw: random.Random) -> Rows:
    return [], draw.choice((
        [("title", "登录"), ("stacked", "手机号", phone(draw)), ("stacked", "密码", "••••••••"), ("text", "忘记密码？"), ("text", "登录")],
        [("title", "账号与安全"), ("pair", "登录密码", "已设置"), ("pair", "支付密码", "修改"), ("pair", "手机号", "138****5678")],
        [("title", "设置密码"), ("text", "密码长度为8-20位，须包含字母和数字"), ("text", "请输入密码"), ("text", "确认")],
        [("title", "提示"), ("text", "密码错误，您还可以尝试3次"), ("text", f"如需帮助请联系客服 {phone(draw)}")],
    ))  # fmt: skip


def _prose_en(draw: random.Random) -> Rows:
    return [], draw.choice((
        [("title", "News"), ("text", "The river rose again on Friday, and the city closed two bridges. About 1,200 people left their homes before the evening."), ("pair", "Published", _day(draw))],
        [("title", "Explore"), ("grid", 3, *draw.sample(["Art", "Music", "Sport", "Travel", "Food", "Game", "Movie", "Photo", "School", "Nature", "Health", "Science", "Business", "Animals", "Fashion"], 12))],
        [("title", "Wallet guide"), ("text", "A seed phrase is a list of 12 words. Never show your recovery phrase to anyone, and never type your private key on a website.")],
        [("title", "Flight"), ("pair", "Booking reference", _run(draw, 6, string.ascii_uppercase)), ("pair", "Confirmation code", _run(draw, 5, string.ascii_uppercase) + "7"), ("pair", "Seat", "14C"), ("pair", "Gate", "B22")],
        [("title", "Calendar"), ("text", f"Meeting ID: {_digits(draw, 3)} {_digits(draw, 4)} {_digits(draw, 4)}"), ("pair", "When", f"{_day(draw)} 09:30")],
        [("mono", f"08:1{_digits(draw, 1)}:22 GET /api/photos 200 {_digits(draw, 4)}\n08:12:24 id=550e8400-e29b-41d4-a716-{_digits(draw, 12)}\nerror code: {_digits(draw, 4)}")],
        [("title", "Weather"), ("pair", "Today", "14 / 22"), ("pair", "Pressure", "1013 hPa"), ("pair", "ZIP code", _digits(draw, 5))],
    ))  # fmt: skip


def _prose_zh(draw: random.Random) -> Rows:
    return [], draw.choice((
        [("title", "新闻"), ("text", "周五河水再次上涨，市政府关闭了两座桥，约1200人在傍晚前离开了家。"), ("pair", "发布", _day(draw))],
        [("title", "钱包教程"), ("text", "助记词由12个单词组成，请勿告诉任何人，也不要把私钥输入任何网站。")],
        [("title", "会议"), ("text", f"会议号：{_digits(draw, 3)}-{_digits(draw, 3)}-{_digits(draw, 3)}"), ("pair", "时间", f"{_day(draw)} 14:30")],
        [("title", "火车票"), ("pair", "车次", "G" + _digits(draw, 3, "1")), ("pair", "座位", "05车12A"), ("pair", "检票口", "B7"), ("stacked", "订单号", f"E{_digits(draw, 9)}")],
        [("title", "天气"), ("pair", "今天", "14 / 22"), ("pair", "邮政编码", _digits(draw, 6)), ("pair", "湿度", "63%")],
        [("title", "优惠券"), ("text", f"兑换码：{_digits(draw, 8)}"), ("text", "满100减20，有效期至2026-12-31")],
    ))  # fmt: skip


HARMLESS: tuple[tuple[str, tuple[str, ...], Callable[[random.Random], Rows]], ...] = (
    ("order en", (), _order_en),
    ("order zh", (), _order_zh),
    ("phone en", (), _phone_en),
    ("phone zh", (), _phone_zh),
    ("parcel en", (), _parcel_en),
    ("parcel zh", (), _parcel_zh),
    ("version en", (), _version_en),
    ("version zh", (), _version_zh),
    ("book en", (), _book_en),
    ("book zh", (), _book_zh),
    ("price en", (), _price_en),
    ("price zh", (), _price_zh),
    ("login en", (), _login_en),
    ("login zh", (), _login_zh),
    ("prose en", (), _prose_en),
    ("prose zh", (), _prose_zh),
)

# ------------------------------------------------------------------------------------------------ the measure


def read(screens: Iterable[Screen], folder: Path | None = None) -> list[tuple[Screen, list[str]]]:
    """Each screen with the lines that the real OCR reads on it; what was read before is taken from `folder`."""
    from rules.embedded import LocalModel

    model = LocalModel(ocr_model="small", language="en")
    result = []
    try:
        for screen in screens:
            picture = screen.picture()
            kept = folder / f"{hashlib.sha256(picture).hexdigest()[:24]}.json" if folder else None
            if kept and kept.exists():
                lines = json.loads(kept.read_text())
            else:
                lines = [line.text for line in model.read(io.BytesIO(picture))[0].lines]
                if kept:
                    kept.write_text(json.dumps(lines))
            result.append((screen, lines))
    finally:
        model.close()
    return result


def measure(found: Iterable[tuple[Screen, list[str]]]) -> dict[str, tuple[int, int, int]]:
    """For each kind: how many screens were found rightly, overlooked, and taken for it wrongly."""
    counts: Counter[tuple[str, str]] = Counter()
    for screen, lines in found:
        seen = set(sensitive.kinds("\n".join(lines)))
        counts.update(("found", kind) for kind in seen & screen.kinds)
        counts.update(("overlooked", kind) for kind in screen.kinds - seen)
        counts.update(("wrong", kind) for kind in seen - screen.kinds)
    return {
        kind: (counts["found", kind], counts["overlooked", kind], counts["wrong", kind])
        for kind in sensitive.KINDS
    }


def main(seed: str, folder: str, count: str = "600") -> None:
    kept = Path(folder)
    kept.mkdir(parents=True, exist_ok=True)
    screens = [*sensitive_screens(int(seed), int(count)), *look_alikes(int(seed), int(count))]
    found = read(screens, kept)
    for screen, lines in found:
        seen = set(sensitive.kinds("\n".join(lines)))
        if seen != screen.kinds:
            print(f"\n{screen.name}: {sorted(screen.kinds)} taken for {sorted(seen)}; {screen.secrets}")
            print("    " + "\n    ".join(lines))
    print()
    for kind, (right, overlooked, wrong) in measure(found).items():
        recall, precision = right / max(1, right + overlooked), right / max(1, right + wrong)
        print(
            f"{kind:16} {right:4} found, {overlooked:2} overlooked, {wrong:2} wrong: {recall:.3f} {precision:.3f}"
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
