"""Stored readings in a plainer form: the lines as MessagePack, deflated. The form before, with varints and a
list of common words, is read here for the last time.

Each reading is rewritten, in batches: about a minute for 100,000 photos, in which the log reports the
progress. A damaged reading stays as it is, and `./snaplore check` names it.
"""

import logging
import zlib

import msgspec

log = logging.getLogger(__name__)

BATCH = 500
REPORTED_EVERY = 10_000
MAX_BYTES = 420_000
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


def unpacked(data):
    """The lines of a reading in the form before, each as text, confidence, left, top, right and bottom.
    Raises `ValueError`.
    """
    form, crc, body = data[0], data[1:5], data[5:]
    if form >= len(ENCODINGS) or crc != zlib.crc32(bytes([form]) + body).to_bytes(4, "big"):
        raise ValueError("damaged")
    numbers, place = varints(body, 0, 1)
    count = numbers[0]
    numbers, place = varints(body, place, 5 * count)
    signed = [-((number + 1) >> 1) if number & 1 else number >> 1 for number in numbers]
    columns = [signed[start : start + count] for start in range(0, 5 * count, count or 1)]
    unpacker = zlib.decompressobj(wbits=-15, zdict=_DICTIONARIES[form])
    texts = unpacker.decompress(body[place:], MAX_BYTES).decode(ENCODINGS[form]).split("\n") if count else []
    lines = []
    left = bottom = height = 0
    for text, step_left, step_top, step_height, width, doubt in zip(texts, *columns, strict=True):
        left, height, top = left + step_left, height + step_height, bottom + step_top
        bottom = top + height
        lines.append((text, round(1 - doubt / 100, 2), left, top, left + width, bottom))
    return lines


def varints(body, place, count):
    """The `count` varints from `place` on, and the place behind them. Raises `ValueError`."""
    numbers = []
    number = shift = 0
    while len(numbers) < count:
        if place >= len(body):
            raise ValueError("cut off")
        byte = body[place]
        number |= (byte & 0x7F) << shift
        shift += 7
        place += 1
        if byte < 0x80:
            numbers.append(number)
            number = shift = 0
    return numbers, place


def packed_anew(rows):
    """The rows of a batch as they are to be stored; without those that are damaged."""
    for photo_id, data in rows:
        try:
            yield zlib.compress(msgspec.msgpack.encode(unpacked(data))), photo_id
        except (ValueError, IndexError, zlib.error):
            log.error("the reading of photo %d is damaged, and stays as it is", photo_id)


def up(migrator, db):
    (total,) = db.execute_sql("SELECT count(*) FROM readings").fetchone()
    last = done = 0
    batch = "SELECT photo_id, lines FROM readings WHERE photo_id > ? ORDER BY photo_id LIMIT ?"
    while rows := db.execute_sql(batch, (last, BATCH)).fetchall():
        db.connection().executemany("UPDATE readings SET lines = ? WHERE photo_id = ?", packed_anew(rows))
        last, done = rows[-1][0], done + len(rows)
        if done % REPORTED_EVERY == 0:
            log.info("readings rewritten: %d of %d", done, total)
