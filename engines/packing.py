"""The lines of a page as a few hundred bytes, which is how they are stored, and back.

The boxes are whole pixels, column by column as differences to the line before: most lines begin at the left
edge of the one above and are as high, so that a number mostly takes one byte. The texts are deflated with a
dictionary of words that screens show, in UTF-8 or UTF-16, whichever takes less: a Chinese character is two
bytes in UTF-16, and three in UTF-8.

A packed page is:

- one byte, the number of this form and of the encoding (an index of `ENCODINGS`)
- four bytes, the CRC-32 of everything else: zlib alone would not notice every damage
- varints: the number of lines, then the columns, signed numbers in zigzag form: left, top, height, width, and
  what the confidence lacks to 100 %
- the texts, a line a row, as a raw deflate stream with the dictionary

Unpacking takes linear time and bounded memory, whatever the bytes are. The dictionary belongs to the form: it
never changes.
"""

import itertools
import zlib
from collections.abc import Iterable, Sequence

from engines.lines import Line
from text import fraction, storable

MAX_LINES = 5_000  # 50 megapixels of small text have half of that
MAX_CHARACTERS = 100_000
MAX_BYTES = 4 * (MAX_CHARACTERS + MAX_LINES)  # in either encoding
MAX_NUMBER = 1 << 35  # a varint of five bytes
ENCODINGS = ("utf-8", "utf-16-be")

# The commonest last: what is near the end takes the fewest bits.
_WORDS = """\
Januar Februar März Oktober Dezember Montag Dienstag Mittwoch Donnerstag Freitag Samstag Sonntag heute
gestern
Einstellungen Nachricht Suchen Speichern Abbrechen Löschen Bearbeiten Hinzufügen Schließen Weiter Zurück
Teilen
Anmelden Benutzername Passwort Verbindung Gerät Ordner Datei nicht und oder eine einen werden wurde Sie
der die
接收 连接 网络 蓝牙 电池 存储 空间 缓存 版本 更新 检查 关于 隐私 政策 用户 协议 账号 登录 注册 密码 手机号
验证码 请输入 昵称 头像
首页 推荐 热门 最新 全部 分类 排行 视频 直播 图片 照片 相册 音乐 文件 文档 文件夹 下载 上传 分享 收藏 点赞
评论 转发 回复 关注 粉丝
消息 通知 提醒 聊天 群聊 联系人 通讯录 朋友圈 语音 通话 发送 撤回 已读 在线 昨天 今天 明天 前天 刚刚
分钟前 小时前 天前 星期 周一 周二 周三
周四 周五 周六 周日 月 日 年 上午 下午 晚上 凌晨 支付 付款 收款 转账 余额 账单 交易 收入 支出 金额 订单
商品 价格 优惠 购物车 地址 快递 物流
取件 签收 退款 银行 信用卡 理财 基金 预约 会议 航班 车次 登机 检票 酒店 地图 导航 路线 公里 天气 多云 温度
任务 日程 日历 待办 完成 未完成 进行中
开始 结束 时间 日期 截止 添加 新建 编辑 修改 删除 保存 取消 确定 确认 返回 下一步 上一步 关闭 打开 启用
禁用 开启 自动 手动 默认 自定义 选择 搜索
筛选 排序 设置 通用 外观 主题 深色 浅色 模式 语言 字体 大小 显示 隐藏 标题 内容 详情 更多 帮助 反馈 我的
你的 我们 他们 这个 那个 什么 怎么 可以 没有
不是 需要 使用 支持 功能 问题 因为 所以 但是 如果 已经 还是 就是 一个 一下 自己 知道 现在 以及 或者 进行
通过 的是 了吗 这是 不了 在这 ，我 。你 的 是 在 了 和 有
Wednesday Thursday Tuesday Saturday Monday Friday Sunday September November December February October
January
August March April June July Sept Aug Oct Nov Dec Feb Jan Mar Apr Jun Jul Mon, Tue, Wed, Thu, Fri, Sat,
Sun,
yesterday Yesterday today Today tomorrow Tomorrow minutes ago hours ago days ago min ago just now weeks
months
https://www. https://github.com/ http:// .org/ .com/ @gmail.com .html Wikipedia encyclopedia article
references
notification Notifications application Applications information Information development Development
available
subscription Subscriptions transaction Transactions international connection Connected Disconnected
Bluetooth
verification code Your verification security Security authentication password Password username Username
account
Account Sign in Sign up Log in Log out email address Email phone number Privacy Policy Terms of Service
Copyright
settings Settings General Appearance Language Display Dark mode Theme Default Automatic Custom Advanced
About Help
Feedback Version Update Updates Download Downloads Upload Import Export Backup Restore Storage Battery
Network
Search Filter Sort Share Copy Paste Edit Delete Remove Cancel Save Done Close Open Next Back Continue
Create Add
New Send Reply Forward Favorites Favourites Bookmark Likes Comments Comment Followers Following Posts Post
Photos
Videos Video Music Files Folder Folders Documents Image Gallery Camera Calendar Event Events Reminder
Meeting Tasks
Task Contacts Contact Messages Message Chats Chat Calls Group online Online Type a message last seen Home
Library
Explore Profile Menu More View all See all Show Hide Select Enable Disable Enabled Disabled Allow
Permission
payment Payment Total total amount Amount balance Balance Income Expenses Expense Budget Invoice Receipt
order
Order Price price Shipping delivery Delivery Address Date Time Location Status Pending Completed Complete
Failed
Success Error Warning Loading No results found Please enter your Are you sure you want to Something went
wrong
between because through without another different important following example including government
university
business company service community problem project question research history language american english
chinese
should would could about which their there these those other after before where while still first people
world
years system number place right great might every under never again think being thing found since right
against
want need know like make made work time this that they them then than from have been were what when will
with your
you can use are not but for all one out our more into over only also just how its has had was his her she
him
tion ation ing the and ment able ness ight ould ence ance ally ther ever with this that from have your you
for
 in the  of the  to the  on the  for the  and the  to be  is a  of a  in a  with the  by the  that the  it
is
10:00 12:00 00:00 2024 2025 2026 2023-  - $0.00 0.00 100% 1.0. GB MB KB ... :// · the of and to in a is
for on
"""
_DICTIONARIES = tuple(_WORDS.encode(encoding) for encoding in ENCODINGS)


class Damaged(ValueError):
    """The bytes are no packed page."""


def pack(lines: Sequence[Line]) -> bytes:
    """The texts and boxes of `lines` in their order, up to `MAX_LINES` lines and `MAX_CHARACTERS` characters.
    A line break in a text becomes a space, and confidences are kept in per cent.
    """
    kept = list(_kept(lines))
    numbers = [len(kept)]
    before = Line("", 0, 0, 0, 0, 0)
    columns: tuple[list[int], ...] = ([], [], [], [], [])
    for line in kept:
        doubt = 100 - round(100 * fraction(line.confidence))
        place = (line.left - before.left, line.top - before.bottom, line.height - before.height, line.width)
        for column, step in zip(columns, (*place, doubt), strict=True):
            column.append(step << 1 if step >= 0 else (-step << 1) - 1)
        before = line
    boxes = b"".join(map(_varint, itertools.chain(numbers, *columns)))
    text = "\n".join(storable(line.text).replace("\n", " ") for line in kept)
    deflated = [_deflated(text, number) for number in range(len(ENCODINGS))]
    encoding = min(range(len(ENCODINGS)), key=lambda number: len(deflated[number]))
    body = boxes + deflated[encoding]
    form = bytes([encoding])
    return form + _checksum(form, body) + body


def unpack(data: bytes) -> list[Line]:
    """The lines that were packed. Raises `Damaged`."""
    texts, numbers = _columns(data)
    lines = []
    count = len(texts)
    left = bottom = height = 0
    columns = (numbers[start : start + count] for start in range(0, 5 * count, count or 1))
    for text, step_left, step_top, step_height, width, doubt in zip(texts, *columns, strict=True):
        left += step_left
        height += step_height
        top = bottom + step_top
        bottom = top + height
        lines.append(Line(text, 1 - doubt / 100, left, top, left + width, bottom))
    return lines


def texts(data: bytes) -> list[str]:
    """The texts of the lines that were packed, in less time than `unpack` takes. Raises `Damaged`."""
    return _columns(data)[0]


def _columns(data: bytes) -> tuple[list[str], list[int]]:
    """The texts of the lines, and the numbers of their boxes, column by column."""
    form, crc, body = data[:1], data[1:5], data[5:]
    if not body or form[0] >= len(ENCODINGS) or crc != _checksum(form, body):
        raise Damaged("it is damaged, or of a newer form")
    count, place = _number_at(body, 0)
    if count > MAX_LINES:
        raise Damaged("it has too many lines")
    numbers, place = _signed_at(body, place, 5 * count)
    texts = _inflated(body[place:], form[0]).split("\n") if count else []
    if len(texts) != count:
        raise Damaged("its texts and boxes differ in number")
    return texts, numbers


def _kept(lines: Iterable[Line]) -> Iterable[Line]:
    characters = 0
    for line in itertools.islice(lines, MAX_LINES):
        characters += len(line.text)
        if characters > MAX_CHARACTERS:
            return
        yield line


def _checksum(form: bytes, body: bytes) -> bytes:
    return zlib.crc32(form + body).to_bytes(4, "big")


def _varint(number: int) -> bytes:
    number = min(number, MAX_NUMBER - 1)
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _number_at(body: bytes, place: int) -> tuple[int, int]:
    """The varint at `place`, and the place behind it."""
    number = 0
    for shift, byte in enumerate(body[place : place + 5]):
        number |= (byte & 0x7F) << 7 * shift
        if byte < 0x80:
            return number, place + shift + 1
    raise Damaged("its boxes are cut off")


def _signed_at(body: bytes, place: int, count: int) -> tuple[list[int], int]:
    """The `count` signed varints from `place` on, and the place behind them."""
    # A search unpacks 20 pages, and a call or an expression for each number would take twice the time.
    numbers: list[int] = []
    number = shift = end = 0
    for end, byte in enumerate(body[place : place + 5 * count], start=place + 1):  # noqa: B007
        if byte > 0x7F and shift < 28:
            number |= (byte & 0x7F) << shift
            shift += 7
            continue
        if byte > 0x7F:
            break  # too long
        number |= byte << shift
        numbers.append(-((number + 1) >> 1) if number & 1 else number >> 1)
        if len(numbers) == count:
            break
        number = shift = 0
    if len(numbers) < count:
        raise Damaged("its boxes are cut off")
    return numbers, end or place


def _deflated(text: str, encoding: int) -> bytes:
    packer = zlib.compressobj(9, wbits=-15, memLevel=9, zdict=_DICTIONARIES[encoding])
    return packer.compress(text.encode(ENCODINGS[encoding])) + packer.flush()


def _inflated(data: bytes, encoding: int) -> str:
    unpacker = zlib.decompressobj(wbits=-15, zdict=_DICTIONARIES[encoding])
    try:
        text = unpacker.decompress(data, MAX_BYTES)
        if not unpacker.eof:
            raise Damaged("its texts are cut off or too long")
        return text.decode(ENCODINGS[encoding])
    except (zlib.error, UnicodeDecodeError) as problem:
        raise Damaged(f"its texts cannot be read ({problem})") from None
