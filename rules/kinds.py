"""Which kind of screen a page is: a conversation, a payment, an article, a ticket, settings and so on.

Evidence is weighed for each kind: words by their place (a word in the header or alone on a
line counts more than one in a sentence), and the layout: bubbles, a column of amounts or of times at the
right, an address bar, running text. The kind with the most evidence is chosen if that is `ENOUGH`. Most
kinds belong to the contract's category `other`; they are there so that a screen of settings which names
every feature of a messenger is not taken for a conversation.

Words are listed for English and Chinese, simplified and traditional, with some German.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

from engines.lines import Line
from rules.entities import CLOCK, MONTH, NUMBER, SIGN
from rules.layout import Layout, is_chinese, is_clock, weight

ENOUGH = 3.0
HEADER, ALONE, INSIDE = 1.6, 1.0, 0.55  # by what a word's weight is multiplied, by its place
LONG_MESSAGE = 400  # letters, Chinese ones counted double; longer blocks of a wide screen are an article's
MOST_OF_WORDS = 7.0  # evidence from words alone; each further word of a kind counts less

# The contract's category of each kind.
CATEGORY = {
    "conversation": "chat", "conversations": "chat",
    "payment": "finance", "accounts": "finance",
    "lock_screen": "notification", "notices": "notification", "code": "notification",
    "post": "social_media", "video": "social_media", "profile": "social_media",
    "article": "webpage", "page": "webpage",
    "settings": "other", "weather": "other", "calendar": "other", "tasks": "other", "map": "other",
    "ticket": "other", "parcel": "other", "shop": "other", "mail": "other", "music": "other", "game": "other",
    "health": "other", "source": "other", "form": "other", "files": "other", "recipe": "other",
    "note": "other", "contacts": "other", "meeting": "other", "network": "other", "translation": "other",
    "home_screen": "other",
}  # fmt: skip


class Verdict(NamedTuple):
    """The kind of a screen, "" when nothing has enough evidence; how much it has, and its category."""

    kind: str
    evidence: float
    category: str


def recognise(layout: Layout, votes: Mapping[str, float] | None = None) -> Verdict:
    """The kind of a screen. `votes` is further evidence for kinds, from whatever else compares texts."""
    evidence = _by_words(layout)
    for kind, amount in _by_layout(layout, evidence).items():
        evidence[kind] = evidence.get(kind, 0) + amount
    for kind, amount in (votes or {}).items():
        evidence[kind] = evidence.get(kind, 0) + amount
    best = max(evidence, key=lambda kind: evidence[kind], default="")
    if not best or evidence[best] < ENOUGH:
        return Verdict("", max(0.0, evidence.get(best, 0.0)), "other")
    return Verdict(best, evidence[best], CATEGORY[best])


# ------------------------------------------------------------------------------------------------------ words

# Of each kind: phrases by weight. A phrase with a mark counts only alone on a line ("=") or in a header
# ("#").
_SEEDS: dict[str, dict[float, str]] = {
    "conversation": {
        3.5: (
            "=message|=type a message|=type a message...|=write a message|=send message"
            "|=send a message|=text message|=enter a message|=enter message|=new message"
            "|=imessage|=send email message|=ask anything|=say something|=message..."
            "|=type message|=rcs message|=sms message|=按住说话|=按住 说话|=发送消息|=输入消息"
            "|=发消息|=发送短信|=说点什么|=輸入訊息|=nachricht|=nachricht schreiben|is typing"
            "|对方正在输入|last seen"
        ),
        2: (
            "end-to-end encrypted|voice message|已读|已送达|语音通话|视频通话|撤回了一条"
            "|消息免打扰|=online|=在线|active now|=delivered|=replied|text message,"
        ),
        1: "=reply|=forward|=today|=you|voice call|video call|=表情|=语音",
    },
    "conversations": {
        3: (
            "#whatsapp|#telegram|#signal|#wechat|#discord|#slack|#qq|#line|#钉钉|#飞书"
            "|#chats|#messages|#conversations|=new chat|=new conversation|=start chat|=all chats"
            "|=direct messages|#messenger|#微信|#聊天|#消息|search conversations|search chats"
            "|search messages|=new group|=archived chats"
        ),
        2: (
            "=chats|=calls|=groups|=通讯录|=群聊|=聊天|saved messages|[图片]|[语音]|[表情]|[视频]"
            "|[photo]|voice message|=conversations|=private messages|=新聊天|=文件传输助手"
        ),
        1: ("you:|=contacts|=发现|=channels|=archived|=rooms|=people|photo|sticker|missed call"),
    },
    "payment": {
        3: (
            "支付成功|付款成功|转账成功|交易成功|payment successful|payment sent|payment received"
            "|you sent|you paid|amount due|amount paid|total paid|order total|grand total"
            "|=subtotal|收款方|付款方式|支付方式|红包|实付|transaction id|paid with|invoice"
            "|转账给|已存入零钱|you received|zahlung|rechnung"
        ),
        2: (
            "=total|合计|应付|总计|receipt|发票|订单号|交易单号|billed to|due date|payment method"
            "|付款时间|转账时间|=tax|thank you for shopping|还款|到账|收款|transfer to|money sent"
            "|tip|余额宝"
        ),
        1: "visa|mastercard|iban|paypal|alipay|payment|付款|支付|money|transfer",
    },
    "accounts": {
        3: (
            "=transactions|#transactions|latest transactions|recent transactions|=expenses"
            "|#expenses|#budget|#accounts|available balance|current balance|total balance"
            "|account balance|=balance|账户余额|可用余额|本月支出|本月收入|#账单|#预算|#我的钱包"
            "|my wallet|#wallet|#portfolio|net worth|资产|自选|monthly spending|checking account"
            "|savings account|you spent|you saved|spending limit|=ausgaben|=einnahmen|umsätze"
            "|add expense|add income|money goes|income vs|add transaction|new transaction"
            "|transaktion|transaktionen|expenses grouped|budgets|entries grouped by category"
            "|yearly subscriptions|monthly subscriptions|总资产|cash flow"
        ),
        2: (
            "=income|=expense|支出|收入|=transfers|=transfer|转账|理财|基金|股票|=stocks|balance"
            "|budget|=savings|=spending|账单|信用卡|credit card|debit card|贷款|行情|沪深|bitcoin"
            "|ethereum|subscriptions|left of|=kontostand|payee|expenses|=withdrawal|=deposit|预算"
            "|账户|钱包|konto|betrag|spent|account"
        ),
        1: (
            "groceries|salary|rent|shopping|工资|餐饮|交通|食品|=food|=gifts|restaurant|transport"
            "|=insurance|=taxes|bills|utilities|investments|=cash|category|categories|礼品|运输"
            "|=bank|购物|average|拆分"
        ),
    },
    "notices": {
        3.2: (
            "=clear all|=全部清除|=清除全部|=通知中心|=notification center|#notification center"
            "|no new notifications|no older notifications|silent notifications|=通知管理"
            "|不重要的通知|=manage notifications|#消息通知|#notifications|#通知|#alerts|#alert"
            "|=mark all as read|#系统通知|#push notifications"
        ),
        2: (
            "=notifications|new login|您的快递|=系统通知|=物流通知|=账号安全|liked your"
            "|has shipped|is out for delivery|账户安全|即将到期|骑手|请及时|logged in"
            "|backup failed|backup completed|backup successful|ssh login|ssh-login|is running"
            "|reminder:|notifications|new follower|missed call"
        ),
        1: (
            "failed|succeeded|completed|warning|restarted|已完成|失败|成功|已签收|已发货|提醒"
            "|警报|alert|提醒您|updated|successfully finished|unreachable|expires|reboot|down"
            "|online"
        ),
    },
    "code": {
        3.2: (
            "verification code|security code|one-time code|one-time password|one-time passcode"
            "|login code|验证码|校验码|动态码|取件码|驗證碼|取货码|your code|do not share"
            "|never share"
        ),
        1: "请勿告诉|minutes|分钟内有效|【",
    },
    "post": {
        3: (
            "#post|#thread|#timeline|#home timeline|#feed|#小红书|#微博|#explore|=retweet|=boost"
            "|=reposts|retweeted|boosted|reblogged|转发微博|朋友圈|热搜|=for you|#favorites"
            "|=upvote|view all comments|liked by|#comments|=sponsored|posts you|#all posts"
            "|#new post|fediverse|mastodon|#trending|=toot|#帖子|#动态|超话|=favourite"
            "|see new posts|quote post|write a comment|leave a comment|add a comment"
        ),
        2: (
            "likes|reposts|boosts|upvotes|retweets|favorites|favourites|comments|=评论|=转发"
            "|=点赞|点赞|followers|=关注|=推荐|hashtags|=reply|=share|=subscribed|community"
            "|communities|帖子|笔记|=hot|=active|=local|federated|social|photos and videos|posts"
            "|附近|动态|话题|subreddit|=all comments|replied|edit profile"
        ),
        1: ("reply|replies|share|comment|评论|收藏|分享|post|profile|=发现|=收藏|=like|follow|liked|回复|赞"),
    },
    "video": {
        3: (
            "subscribers|订阅者|弹幕|#youtube|#bilibili|=shorts|=danmaku|投币|=简介|播放列表"
            "|up next|watch later|=稍后再看|=subscribe|views|次观看|播放|观看次数|=videos"
            "|=playlist"
        ),
        1: (
            "=share|=download|=save|comments|=点赞|=收藏|评论|=live|直播|channel|追番|投稿"
            "|days ago|years ago|粉丝|months ago|recommended|推荐|热门"
        ),
    },
    "profile": {
        3: "=followers|=following|粉丝|=edit profile|关注了|获赞|=posts|joined|个人主页",
        1: "posts|followers|following|follows you|=about|=media|=replies|关注",
    },
    "article": {
        3: (
            "min read|from wikipedia|free encyclopedia|维基百科|維基百科|责任编辑|阅读全文"
            "|阅读原文|来源：|來源：|百度百科|table of contents|references|all rights reserved"
            "|published on|read more on|=abstract|read later|related articles|continue reading"
            "|photo credit|(credit:|zum artikel"
        ),
        2: (
            "wikipedia|encyclopedia|written by|记者|编辑：|发布时间|reading time|news|=enlarge"
            "|article|本文|前言|摘要|illustration|copyright|subscribe to our newsletter|author"
            "|blog|posted by|read in"
        ),
        1: ("by|published|updated|according to|research|study|报道|据|介绍|图片|magazine|journal|source"),
    },
    "page": {
        3: (
            "accept cookies|accept all cookies|cookie settings|cookie policy|skip to content"
            "|skip to main content|icp备|版权所有|privacy policy|terms of service|people also ask"
            "|about this result|=all images|pull requests|forgot password|forgot password?"
            "|create an account|search results|网页|private search"
        ),
        2: (
            "https://|http://|www.|=sign in|terms of use|=log in|=images|=news|隐私政策|用户协议"
            "|web search|read more|add to cart|sign in to|=home page|=menu|workflows|repository"
            "|browser"
        ),
        1: "=contact us|=about us|=search|=products|=pricing|=docs",
    },
    "settings": {
        4: (
            "#settings|#preferences|#appearance|#设置|#設定|#einstellungen|#通用|#外观|#主题"
            "|#general|#behavior|#behaviour|#notification settings|#account settings|#display"
            "|#privacy|#about|#language|#user interface|#playback|#account and security"
            "|#customize|#import/export|#import & export|#authentication|#conversation details"
            "|#advanced|#options|#permissions|#configuration|#显示|#显示帖子|#note display"
            "|#accessibility|#sync"
        ),
        2: (
            "=theme|=themes|=language|=dark mode|=dark theme|=night mode|=font size|=主题|=语言"
            "|=深色模式|=字体大小|=外观|=通用|=隐私|=关于|=关于我们|=账号与安全|=appearance"
            "|=general|=privacy|=security|=about|=accessibility|=dynamic colors|follow system"
            "|system default|跟随系统|=storage|=display|=sound|=bluetooth|=backup|=notifications"
            "|=消息通知|退出登录|=logout|=log out|=sign out|color customization|=preferences"
            "|=battery|=settings|=设置|版本|customize colors|show icons|=behavior"
            "|change date and time format|=dark|=light"
        ),
        1: (
            "enable|disabled|default|customize|show|hide|automatic|automatically|use|selected:"
            "|启用|显示|自动|默认|禁用|配置|configure|when|update|permission|password protect"
            "|版本|version|manage|account|import|export|options"
        ),
    },
    "weather": {
        3: (
            "partly cloudy|mostly sunny|mostly cloudy|feels like|hourly forecast|daily forecast"
            "|空气质量|uv index|降水概率|湿度|体感温度|多云|forecast|humidity|紫外线|clear sky"
            "|#weather|#天气|wettervorhersage|precipitation|light rain|未来七天|逐小时|gefühlt"
        ),
        1: (
            "wind|晴|小雨|阴|sunny|cloudy|rain|snow|sunrise|sunset|日出|日落|air quality|°|风"
            "|high|low|pressure"
        ),
    },
    "calendar": {
        3: (
            "new event|#calendar|#日程|#日历|add event|=all-day|=all day|edit event|=agenda"
            "|创建日程|新建日程|#schedule|no reminder|=全天|#agenda|#today's events"
        ),
        2: (
            "mon tue wed|日 一 二|一 二 三|=january|=february|=march|=april|=june|=july|=august"
            "|=september|=october|=november|=december|appointment|会议室|=event|=birthdays|周会"
            "|standup|lunch with|conference|weekly|日程"
        ),
        1: ("meeting|am|pm|=mon|=tue|=wed|=thu|=fri|=sat|=sun|会议|生日|event|calendar|repeat"),
    },
    "tasks": {
        3: (
            "add task|new task|#tasks|#to-do|#todo|#待办|#任务|添加待办|add a task|=to-do|overdue"
            "|checklist|#my day|#reminders|总任务|=未完成|=已完成|#inbox tasks|add item"
            "|#shopping list|checked items|待办|#概览|#lists|synchronization"
        ),
        2: (
            "due|=tomorrow|=priority|优先级|截止|=completed|=done|任务|to-do|reminder|task|=ideas"
            "|=tags|=places|packing"
        ),
        1: "buy|call|today|今天|明天|=work|=home|=urgent|紧急|pick up|list|tags",
    },
    "map": {
        3: (
            "开始导航|fastest route|=directions|=drive|=transit|=驾车|=公交|=步行|=骑行|arrive by"
            "|红绿灯|我的位置|your location|=walk|turn left|turn right|=路线|导航|#地图|traffic"
            "|=start navigation|打车"
        ),
        2: ("公里|(mi)|mi)|km)|=start|nearby|附近|route|路线|地铁站|exit|blvd|avenue|street|地址"),
        1: "km|min|分钟|street|road|路|号|=restaurants|=hotels",
    },
    "ticket": {
        3.5: (
            "boarding pass|=boarding|登机牌|登机口|=gate|=seat|检票口|座位|booking reference"
            "|电子票|#your reservation|=flight|航班|车次|乘车人|票价|check-in|check-out"
            "|confirmation number|二等座|=passenger|departure|电影票|取票|e-ticket|admit one|入住"
            "|离店|reservation|booking confirmed|#ticket|#tickets|boarding time|itinerary"
        ),
        2: (
            "terminal|platform|站台|发车|出发|到达|depart|arrive|guests|guest|hotel|酒店|flight"
            "|gate|seat|改签|退票"
        ),
        1: "→|date|time|confirmed|passenger|乘客|adults|room|row",
    },
    "parcel": {
        3.5: (
            "运单号|物流详情|派送中|已揽收|已签收|tracking number|out for delivery|in transit"
            "|正在派件|快递员|estimated delivery|package|delivered to|转运中心|包裹|驿站|shipment"
            "|#物流|parcel"
        ),
        1: "快递|送达|carrier|courier|order|到达|track|delivery",
    },
    "shop": {
        3: (
            "加入购物车|立即购买|add to cart|buy now|待付款|待收货|我的订单|=待评价|优惠券|满减"
            "|包邮|月销|free shipping|#my orders|order details|=cart|#cart|购物车|in stock"
            "|add to bag|product|proceed to checkout|=客服|loyalty card|add card|价格|nutri-score"
            "|% match|food category|shopping list|grocery store|shoe store|clothing store"
        ),
        2: (
            "发货|已完成|商品|店铺|reviews|stars|returns|size|color|offer|discount|% off|sale"
            "|评价|brand|sku|=options|card id"
        ),
        1: "order|订单|price|¥|shop|store|compare|库存|barcode",
    },
    "mail": {
        3.5: (
            "#inbox|=compose|=收件箱|#收件箱|=outbox|=drafts|=sent mail|=reply all|写邮件|to me"
            "|抄送|=unified inbox|=all mail|kind regards|best regards|unread emails|#posteingang"
            "|发件人|=spam|emails|your emails|=sent|=junk|=回复全部"
        ),
        1.5: (
            "=reply|=forward|dear|attachment|attached|subject|=archive|inbox|email|mail"
            "|=important|=回复|=转发|=starred|附件|hi all"
        ),
    },
    "music": {
        3: (
            "词：|曲：|=your library|歌词|now playing|#spotify|#网易云音乐|单曲|专辑|=lyrics"
            "|shuffle|podcast|episodes|playlist|作词|作曲|=album|=artist|=artists|=albums|=songs"
            "|正在播放|#音乐|#music|=queue|听书"
        ),
        1: "song|album|播放|歌手|=play|artist|search|=library|speed|sleep timer",
    },
    "game": {
        3: (
            "victory|game over|level complete|=胜利|=失败|next level|high score|返回大厅|再来一局"
            "|战绩|=new game|=score|you win|you lose|通关|=defeat|play again|best combo|=coins"
            "|=金币|complete!"
        ),
        1: "level|score|coins|金币|rank|评分|=play|=continue|combo|moves|points|关卡|排位",
    },
    "health": {
        3: (
            "heart rate|=steps|步数|=calories|睡眠|心率|kcal|=distance|=workout|=sleep|bpm|卡路里"
            "|血压|=weight|体重|活动记录|=activity|=hydration|运动"
        ),
        1: "goal|km|min|pace|目标|步|公里|steps|average|today",
    },
    "source": {
        3: (
            "def |import |return |function(|=> {|git |utf-8|npm |sudo |#include|public class"
            "|const |console.log|ln 1|traceback|pip install|$ git|pytest|select * from|curl "
            "|http request|javascript|scripting"
        ),
        1: "error:|();|print(|var |&&|commit|branch|modified:",
    },
    "form": {
        3: (
            "=sign in|=log in|=login|=username|=password|=create account|forgot email?"
            "|=continue with google|=sign up|=登录|=注册|忘记密码|=cancel|subscribe to"
            "|enter your password|=用户名|=密码|welcome to|get started|=next|#welcome|=submit"
            "|at least one character|ignore characters|=passphrase|密码|enter your username"
            "|username|=agree and continue"
        ),
        1: (
            "password|email or phone|=取消|=ok|=确定|=save|=done|=skip|name|=cancel|=add|enter"
            "|=保存|select|description"
        ),
    },
    "files": {
        3: (
            "=internal storage|internal shared storage|/storage/|=download|=downloads"
            "|=permissions|folders|files|properties|文件夹|=documents|=folder|文件管理|mib|#files"
            "|下载|=trackers|remote|zim|upload|=all files|peers|最近文件"
        ),
        1: "size|items|gb|mb|kb|modified|大小|type|path|文件|storage|b/s|name|file|kib",
    },
    "recipe": {
        3.5: (
            "=ingredients|ingredients:|=食材|=步骤|=method|=directions|serves|烹饪时间|做法"
            "|tablespoons|tsp|=用料|prep time|cook time|菜谱|食谱|servings|tablespoon|cloves"
        ),
        1: ("minutes|onion|garlic|salt|鸡蛋|盐|分钟|oil|cup|butter|simmer|番茄|难度|flour|olive"),
    },
    "note": {
        3: (
            "#notes|#备忘录|#笔记|#note|=all notes|=new note|search all notes|#packing list"
            "|edited|字|=uncategorized|=新建笔记|=all favourites|读书笔记|key points:|=formatting"
            "|notes"
        ),
        1: "list|ideas|想法|tags|folder|bold|text|note|favourites|清单",
    },
    "contacts": {
        3: (
            "=call history|=contacts|#contacts|=dialpad|#dialpad|calling...|dialing...|=联系人"
            "|=通话记录|=favorites|=recents|incoming call|来电|=拨号|=mute|=speaker|=voicemail"
            "|=hold|=new conversation|=new contact|=suggestions"
        ),
        1: "mobile|call|phone|contact|手机|电话",
    },
    "meeting": {
        3: (
            "会议号|加入会议|会议详情|=join meeting|meeting id|passcode|发起人|=腾讯会议|zoom.us"
            "|join the call"
        ),
        1: "会议|时间|密码|meeting|host",
    },
    "network": {
        3: (
            "#wi-fi|#wlan|=wi-fi|=connected|已连接|=hotspot|vpn|=saved networks|#bluetooth"
            "|speed test|scan qr code|ip address|=forget|ping|download mbps|=secured|access point"
        ),
        1: "network|password|router|signal|connected|saved|ssid",
    },
    "translation": {
        3: (
            "=translate|#翻译|#translate|=definitions|例句|=朗读|=detect language|=synonyms"
            "|dictionary|词典|=translations|释义"
        ),
        1: ("english|中文|英语|chinese|noun|verb|arabic|german|adjective|french|spanish|translation"),
    },
}

_PHRASES: dict[str, list[tuple[str, float, str]]] = {}
for _kind, _weights in _SEEDS.items():
    for _weight, _phrases in _weights.items():
        for _phrase in _phrases.split("|"):
            _mark = _phrase[0] if _phrase[0] in "=#" and len(_phrase) > 1 else ""
            _PHRASES.setdefault(_phrase.removeprefix(_mark) if _mark else _phrase, []).append(
                (_kind, _weight, _mark)
            )
_LONGEST = max(map(len, _PHRASES))
_MAX_TEXT = 20_000  # characters that are compared with the phrases


_IN_SENTENCES = frozenset({"code"})  # messages, whose words are in sentences


def _by_words(layout: Layout) -> dict[str, float]:
    """The evidence of the words for each kind."""
    best: dict[tuple[str, str], float] = {}
    read = 0
    headers = {id(line) for line in layout.headers[:1]}
    for line in [*_caption_lines(layout), *layout.lines]:
        text = line.text[:400]
        read += len(text)
        if read > _MAX_TEXT:
            break
        folded = " ".join(text.casefold().split())
        alone = _bare(folded)
        is_header = id(line) in headers
        for phrase in _phrases_in(folded, alone):
            for kind, worth, mark in _PHRASES[phrase]:
                whole = phrase == alone
                if (mark == "=" and not whole) or (mark == "#" and not (is_header and whole)):
                    continue
                place = HEADER if is_header and whole and mark != "#" else ALONE if whole or mark else INSIDE
                # In a long sentence, a word says little about the screen.
                if kind in _IN_SENTENCES:
                    place = ALONE
                elif not whole and len(folded) > 60:
                    place *= 0.6
                key = (kind, phrase)
                best[key] = max(best.get(key, 0), worth * place)
    amounts: dict[str, list[float]] = {}
    for (kind, _), amount in best.items():
        amounts.setdefault(kind, []).append(amount)
    return {kind: _together(found) for kind, found in amounts.items()}


def _together(amounts: list[float]) -> float:
    """The evidence of several words: each further one counts a tenth less than the one before."""
    total, share = 0.0, 1.0
    for amount in sorted(amounts, reverse=True):
        total += amount * share
        share *= 0.88
    return min(MOST_OF_WORDS, total)


def _phrases_in(text: str, alone: str) -> set[str]:
    """The known phrases in a line: Latin ones as whole words, Chinese ones anywhere."""
    found = {alone} if alone in _PHRASES else set()
    for start in _STARTS.finditer(text):
        at = start.start()
        for first in _BY_START.get(text[at : at + 2], ()):
            if text.startswith(first, at) and _is_whole(text, at, at + len(first)):
                found.add(first)
    return found


_BY_START: dict[str, list[str]] = {}
for _phrase in _PHRASES:
    _BY_START.setdefault(_phrase[:2] if len(_phrase) > 1 else _phrase, []).append(_phrase)
for _phrase in [one for one in _PHRASES if len(one) == 1]:
    del _BY_START[_phrase]  # a single character counts only alone
# Where a phrase may begin: at a Chinese character, at a sign, or at the first letter of a word.
_STARTS = re.compile(r"[\u2e80-\u9fff\uff00-\uffef]|[^\w\s]|(?<![a-z0-9])[a-z0-9äöü]")


def _is_whole(text: str, start: int, end: int) -> bool:
    """Whether Latin letters at the ends of a found phrase are the ends of words."""
    after = text[end : end + 1]
    last = text[end - 1 : end]
    return not (last.isascii() and last.isalpha() and after.isascii() and after.isalpha())


def _bare(text: str) -> str:
    """A line without counters and icons around its words: "chats (3)" is "chats"."""
    text = text.strip(" \t·•*|>›»<←→▼√×〉+☰=-_…。，,:：")
    if text.endswith((")", "）")):
        head = text[:-1].rstrip("0123456789+ ")
        if head.endswith(("(", "（")):
            text = head[:-1].rstrip()
    return text


def _caption_lines(layout: Layout) -> list[Line]:
    """The caption of a framed screen as a line without a place."""
    return [Line(layout.caption, 1.0, 0, 0, 0, 0)] if layout.caption else []


# ----------------------------------------------------------------------------------------------------- layout

AGO = (
    r"now|just now|today|yesterday|\d{1,3} ?(?:s|m|min|mins|h|hr|hrs|d|w|y|mo)\.?(?: ago)?"
    r"|\d{1,3} (?:minute|hour|day|week|month|year)s? ago|\d{1,2} (?:minutes?|hours?)(?= ?$)"
    r"|jetzt|gestern|vor \d{1,3} \w{1,8}\.?"
    r"|刚刚|剛剛|现在|現在|昨天|前天|今天|\d{1,3} ?(?:秒|分钟|分鐘|小时|小時|天|周|个月)前"
)
_DAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day|(?:周|星期|週)[一二三四五六日天]"
WHEN_RIGHT = re.compile(
    rf"\W{{0,3}}(?:{AGO}|{_DAY}|{CLOCK}(?: ?[ap]m)?|\d{{1,2}}[-/.月]\d{{1,2}}日?"
    rf"|{MONTH}\.? \d{{1,2}}(?:, \d{{4}})?|\d{{1,2}} {MONTH}\.?|\d{{4}}-\d{{2}}-\d{{2}})\W{{0,4}}",
    re.IGNORECASE,
)
# The header of a notification: "Calendar · 5m". No name of a sender begins with a number or is a handle.
_HEADED = re.compile(
    rf"^(?!\W{{0,3}}\d|[ur]/|.{{0,30}}@)(.{{2,40}}?) ?[·•・∙] ?(?:{AGO})\W{{0,3}}$", re.IGNORECASE
)
AMOUNT_RIGHT = re.compile(
    rf"[-+−]? ?(?:{SIGN} ?{NUMBER}|{NUMBER} ?(?:€|£|元|USD|EUR|CNY)|{NUMBER}[.,]\d\d)|[-+−] ?{NUMBER}"
)
MONEY = re.compile(rf"{SIGN} ?\d|\d ?(?:€|£|元)")
_HANDLE = re.compile(r"(?:^|[\s(])@\w[\w.]{1,40}")
_HASHTAG = re.compile(r"(?:^|\s)[#＃][^\W\d_]\w")
_COUNTED = re.compile(
    r"(?:^|[^\w.])\d[\d.,]{0,11} ?[km]? (?:likes?|comments?|reposts?|retweets?|boosts?|quotes"
    r"|favou?rites|upvotes?|replies|shares)\b|\d ?万?\+? ?(?:点赞|赞|条?评论|转发|获赞|收藏)"
    r"|(?:点赞|赞|评论|转发|收藏) ?\(?\d",
    re.IGNORECASE,
)
_VIEWED = re.compile(
    r"\d[\d.,]{0,11} ?[kmb]? (?:views|subscribers)\b|\d ?万? ?(?:播放|弹幕|次观看|观看|粉丝)", re.IGNORECASE
)
_ENDS_IN_CLOCK = re.compile(rf"{CLOCK}(?: ?[ap]m)?\W{{0,6}}$", re.IGNORECASE)
_SENTENCE_ENDS = frozenset(".?!。？！…")
_YEAR = re.compile(r"(?:19|20)\d\d")
# Other lists with times at the right.
_ALSO_DATED = (
    "mail",
    "notices",
    "tasks",
    "calendar",
    "files",
    "music",
    "video",
    "article",
    "contacts",
    "note",
    "weather",
)
_LENGTH = re.compile(r"\d{1,2}:\d\d ?/ ?\d{1,2}:\d\d")
_ADDRESS = re.compile(
    r"\W{0,6}(?:https?://\S{3,}|(?:[\w-]{1,63}\.){1,6}(?:com|org|net|io|dev|cn|de|uk|edu|gov|fr|jp|app|co)(?:[/?]\S*)?)"
    r"(?:\W.{0,4})?",
    re.IGNORECASE,
)
_VOTED = re.compile(r"(?:u|r)/\w{3,}|\d{1,9} ?[·•] ?\d{1,9}[hdmw]\b")
_BYLINE = re.compile(
    r"(?:by|von|par|por) [A-Z][\w.'-]{1,30} [A-Z][\w.'-]{1,30}|(?:来源|作者|编辑|文)[:：/]|·\s?\d{1,2} min"
)
_CODE_LINE = re.compile(
    r"[{};]\s{0,4}$|^\s{0,12}(?:def|class|import|return|if|for|const|let|var|func|\$) |\w\(.{0,60}\)[:;]?$"
)
_DAY_OF_MONTH = re.compile(r"[1-9]|[12][0-9]|3[01]")
_TEMPERATURE = re.compile(r"-?\d{1,3} ?(?:°|℃|℉|C\b)|H:\d{1,3}")


def _by_layout(layout: Layout, words: Mapping[str, float]) -> dict[str, float]:
    """The evidence of places and forms for each kind, as far as `words` do not speak against it."""
    lines = layout.lines
    texts = [line.text for line in lines]
    found: dict[str, float] = {}

    def add(kind: str, amount: float) -> None:
        found[kind] = found.get(kind, 0) + amount

    calm = words.get("settings", 0) < 4  # a screen of settings has few forms of its own
    left, right = layout.bubbles
    said_left = [block for block in left if weight(block.text) >= 6]
    said_right = [block for block in right if weight(block.text) >= 6]
    if calm and said_left and said_right and len(said_left) + len(said_right) >= 3:
        clocks = sum(_ENDS_IN_CLOCK.search(text[-16:]) is not None for text in texts)
        sentences = sum(block.text.rstrip()[-1:] in _SENTENCE_ENDS for block in [*said_left, *said_right])
        # On a wide screen, two columns of text look like two speakers.
        columns = (
            layout.width > layout.height and max(weight(block.text) for block in layout.blocks) > LONG_MESSAGE
        )
        if not columns and (clocks or layout.width < layout.height or words.get("conversation", 0) >= 1):
            add("conversation", 1.8 + 0.4 * min(4, clocks) + 0.3 * min(3, len(said_right)))
            add("conversation", 0.25 * min(4, sentences))
    dated = layout.values(WHEN_RIGHT)
    if calm and len(dated) >= 3:
        # Who wrote is a short name; what has a year beside it is an article, a file or a task.
        recent = [row for row in dated if len(row.first.text) <= 28 and not _YEAR.search(row.last.text)]
        wrapped = sum(len(block.lines) >= 2 for block in layout.body)
        if len(recent) >= 3 and 3 * wrapped <= len(recent) + 2:
            others = max((words.get(kind, 0) for kind in _ALSO_DATED), default=0)
            add("conversations", (2.4 if len(recent) < 5 else 3.1) - (1.5 if others >= 3 else 0))
        for kind, amount in (("notices", 1.2), ("mail", 1.0)):
            if words.get(kind, 0) >= 0.5:
                add(kind, amount)
    below = sum(
        len(row.lines) == 1 and WHEN_RIGHT.fullmatch(row.first.text.strip()) is not None
        for row in layout.rows
    )
    if (
        calm
        and below >= 4
        and sum(text.rstrip().endswith(("?", "!", "？", "！", "。")) for text in texts) >= 2
    ):
        add("conversations", 3.1)
    paid = layout.values(AMOUNT_RIGHT)
    money = sum(MONEY.search(text) is not None for text in texts)
    if len(paid) >= 3 and (
        money >= 1 or sum("." in row.last.text or "," in row.last.text for row in paid) >= 3
    ):
        add("accounts", 2.5 if money >= 2 else 1.6)
    if money >= 4:
        add("accounts", 1.4)
    if money >= 1 and layout.heading is None and words.get("payment", 0) >= 1:
        add("payment", 0.6)
    if any(line.height >= 1.45 * layout.median and MONEY.search(line.text) for line in lines):
        for kind in ("payment", "accounts"):
            if words.get(kind, 0) >= 1:
                add(kind, 1.6)
        if words.get("shop", 0) >= 1:
            add("shop", 1.6)
    senders = sum(headed(text) != "" for text in texts)
    add("notices", min(4.5, 3.2 * senders))
    if is_lock_screen(layout):
        add("lock_screen", 3.5 + min(2, senders))
    elif any(line.height >= 2.2 * layout.median and is_clock(line.text) for line in lines) and senders:
        add("lock_screen", 3)
    handles = sum(_HANDLE.search(text) is not None for text in texts)
    counted = sum(_COUNTED.search(text) is not None for text in texts)
    viewed = sum(_VIEWED.search(text) is not None for text in texts)
    tagged = sum(_HASHTAG.search(text) is not None for text in texts)
    voted = sum(_VOTED.search(text) is not None for text in texts)
    if calm:
        add("post", min(3.4, 1.5 * min(2, handles) + 0.4 * max(0, handles - 2)))
        add("post", min(4.0, 2.4 * counted) + min(1.6, 0.8 * tagged) + min(2.5, 1.0 * voted))
        add("video", min(3.6, 2.0 * viewed) + (1.5 if any(map(_LENGTH.search, texts)) else 0))
    running = layout.paragraphs
    long = sum(weight(block.text) for block in running)
    if long >= 200 and len(running) >= 1 and not (said_left and said_right):
        add("article", min(3.0, long / 200))
    if any(_BYLINE.search(text) for text in texts[:14]):
        add("article", 1.4)
    if layout.heading is not None and long >= 200:
        add("article", 0.8)
    edges = (
        line
        for line in layout.all_lines
        if line.bottom < layout.top + 0.16 * layout.height or line.top > 0.9 * layout.height
    )
    if any(_ADDRESS.fullmatch(line.text.strip()[:200]) for line in edges):
        add("page", 3.0 + 0.6 * (words.get("article", 0) + found.get("article", 0)))
    code = sum(_CODE_LINE.search(text[:200]) is not None for text in texts)
    if code >= 4 and code * 3 >= len(texts):
        add("source", 3.5)
    if sum(_TEMPERATURE.search(text) is not None for text in texts) >= 4:
        add("weather", 3)
    if sum(_DAY_OF_MONTH.fullmatch(text.strip()) is not None for text in texts) >= 14:
        add("calendar", 3.5)
    grid = [
        row
        for row in layout.rows
        if len(row.lines) >= 3 and all(2 <= len(one.text) <= 12 for one in row.lines)
    ]
    if len(grid) >= 3 and 3 * len(grid) >= 2 * len(layout.rows) - 3:
        add("home_screen", 3.2)
    return {kind: amount for kind, amount in found.items() if amount}


_DOTS = re.compile(r"[·•・∙]")


def headed(text: str, *, with_address: bool = False) -> str:
    """The sender in the header of a notification, "" when a text is none. The bell or the arrow behind the
    time may have been read as one character. With an address, as in "Anna · anna@example.org · now", it is
    one on a lock screen only; elsewhere it is a post.
    """
    text = text[:80].rstrip()
    if with_address and "@" in text:
        first, *_, last = _DOTS.split(text)
        return first.strip() if WHEN_RIGHT.fullmatch(last.strip()) and "@" not in first else ""
    match = _HEADED.match(text)
    if match is None and (text[-2:-1] == " " or is_chinese(text[-1:])):
        match = _HEADED.match(text[:-1])
    return match[1] if match else ""


def is_lock_screen(layout: Layout) -> bool:
    """Whether there is a clock in digits far larger than the other text, and a date close to it."""
    clock = next(
        (line for line in layout.all_lines if is_clock(line.text) and line.height >= 2.2 * layout.median),
        None,
    )
    if clock is None:
        return False
    near = (
        line
        for line in layout.all_lines
        if line is not clock and abs(line.top - clock.bottom) < 3 * clock.height
    )
    return any(_DATED.search(line.text[:80]) for line in near)


_DATED = re.compile(rf"{MONTH}|\d月|周[一二三四五六日]|星期", re.IGNORECASE)
