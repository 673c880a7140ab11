"""The words that say what a day on a screen is for, in English and Chinese with some German: "due",
"departs", 截止, 取件. Others show that it is for nothing that is to come: "posted", "born", 下单.

Texts are folded (`days.folded`). A word is `weak` where it is on many screens for other reasons, such as
"dinner": then only a day that certainly is to come counts.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

BEHIND = frozenset("前之以")  # how a Chinese word begins that is right behind its day


class Cue(NamedTuple):
    """A word that says what a day is for. `kind` is "" where it is for nothing that is to come; one that is
    `weak` needs a day to come.
    """

    start: int
    end: int
    kind: str
    weak: bool


def cues_in(text: str, is_travel: bool) -> Iterator[Cue]:
    """The cues in a folded text, in its order; of those that overlap, the longest."""
    found = [
        Cue(*match.span(), kind, weak) for kind, weak, pattern in _CUES for match in pattern.finditer(text)
    ]
    if is_travel:
        found += [Cue(*match.span(), "", False) for match in _ARRIVAL.finditer(text)]
    end = 0
    for cue in sorted(found, key=lambda one: (one.start, -one.end, one.kind != "")):
        if cue.start >= end:
            end = cue.end
            yield cue


def of_label(label: str, is_travel: bool) -> Cue | None:
    """The cue of a folded label: one that says that nothing is to come, or else the last."""
    cues = [cue for cue in cues_in(label, is_travel) if not cue.kind or label[cue.start] not in BEHIND]
    return next((cue for cue in cues if not cue.kind), None) or (cues[-1] if cues else None)


def _words(latin: str, chinese: str) -> re.Pattern[str]:
    """Any of these alternatives, in any case; Latin ones as whole words."""
    return re.compile(rf"(?<![a-z])(?:{latin})(?![a-z])|{chinese}", re.IGNORECASE)


_BY = "(?:之前|以前|前)(?:来|到)?"  # after a day
_CUES: tuple[tuple[str, bool, re.Pattern[str]], ...] = (
    (
        "",
        False,
        _words(
            r"posted|published|updated?|edited|created|modified|issued?|issue date|date of issue|born"
            r"|birth(?:day|date)?"
            r"|date of birth|dob|paid|ordered|order (?:placed|date)|placed|purchased|shipped|delivered"
            r"|received|sent|last"
            r"|previous(?:ly)?|since|joined|founded|copyright|©|version|build|releas(?:e|ed|e notes)"
            r"|downloaded|photos? taken"
            r"|transactions?(?: date)?|statement(?: date)?|billing period|was|were|had|closed|arrived"
            r"|cancell?ed|every|each"
            r"|repeats?|ago|log-?in|logged|seen|viewed|signed|established|built|started|met"
            r"|yesterday|history|minutes|notes|opening hours|hours|missed(?: call)?|call ended"
            r"|last message|deals|fell|said|recorded|reviewed|finished|completed|backup|read"
            r"|sunrise|sunset|results"
            r"|duration|registered|added|opened|left|went|changed|uploaded|as of|photos from|thanks for"
            r"|logged in|sign-?in|departed",
            r"下单(?:时间)?|支付(?:时间)?|付款时间|创建(?:时间)?|发布(?:于|时间)?|更新(?:时间)?|编辑|签收|揽收|出生(?:日期)?"
            r"|生日(?![会聚派])|签发(?:日期)?|开票(?:日期)?|注册(?:时间)?|上次|登录|交易(?:时间)?|转账(?:时间)?|到账|退款|发货(?:时间)?"
            r"|入库(?:时间)?|到柜(?:时间)?|领取时间|账单日|成立|拍摄|开户(?:日期)?|昨[天日晚]|前天|去年|来自|阅读|播放|评论|营业(?:时间)?"
            r"|送信|上架(?:时间)?|发表|完成时间|成交|快件已|始建|记者|停用|消费|截至|完成|入职|最近|回放|上[周个]|每[周天日月年逢]|预约创建|发生",
        ),
    ),
    ("", False, re.compile(r"(?:^|[·•|-] ?)[Bb]y [A-Z][\w.'-]{1,20} [A-Z]")),
    (
        "departure",
        False,
        _words(
            r"depart(?:s|ing|ure|ures)?(?: (?:date|time))?|boarding(?: time)?|boards|takes? off|take-?off"
            r"|sails"
            r"|abfahrt|abflug",
            r"出发(?:时间|日期)?|登机(?:时间)|登机(?![口牌])|起飞(?:时间)?|发车(?:时间)?|开车(?:时间)?|乘车(?:日期|时间)|启程"
            r"|(?<=[\d点半分])开(?![会始放户票学业盘播场奖机发通启具立幕演课考])",
        ),
    ),
    (
        "departure",
        True,
        _words("flight|leaves|train to|ferry|bus to|dep|outbound|inbound", "航班|车次|列车|次列车"),
    ),
    ("departure", True, re.compile(r"(?<![A-Z\d])[A-Z]{2} ?\d{3,4}(?![\d-])|(?<![A-Za-z])[GDCKTZ]\d{1,4}次")),
    (
        "pickup",
        False,
        _words(
            r"(?:held|hold)(?: for you)? until|pick(?:ed)? ?-?up(?: (?:by|until|from|before))?"
            r"|ready for (?:collection|pick-?up)"
            r"|collect(?: by| until)?"
            r"|collection(?: (?:by|until|from))?",
            rf"(?:{_BY})?(?:取件|取走|取出|取货|领取|自提|提货)(?:时间|截止)?(?!码)|请取件[到至]",
        ),
    ),
    (
        "delivery",
        False,
        _words(
            r"deliver(?:y|s|ed by)|delivery (?:date|window|on|by)|arriv(?:es?|ing)(?: by| on)?"
            r"|out for delivery|be with you",
            rf"(?:{_BY})?(?:送达|派送|配送|到货)",
        ),
    ),
    (
        "expiry",
        False,
        _words(
            r"expir(?:es?|y|ed|ation|ing)(?: (?:date|on|in))?|exp\.? date|date of expiry|valid(?: (?:until"
            r"|till|thru|through|to|for|from))?"
            r"|use (?:by|before)|best before|redeem by|available until|(?:offer|trial|sale|subscription"
            r"|plan|membership|promotion)s? ends?(?: on)?|ends? on"
            r"|renews(?: on)?|renewal(?: date)?|lapses?(?: on)?|haltbar bis|mhd|gültig bis",
            rf"有效期[至到限]?|到期(?:日|时间)?|过期|失效|清零|作废|(?:{_BY})?有效(?:[至到]|日期)?|使用期限|{_BY}使用|续费",
        ),
    ),
    ("expiry", True, _words("ends?", "截到")),
    (
        "deadline",
        False,
        _words(
            r"due(?! (?:to|diligence)(?![a-z]))(?: (?:date|by|on))?|payment due(?: date)?|deadline"
            r"|payable(?: by)?|pay (?:by|before)|submi(?:t|ssions?|tted)(?: (?:by|before|close))?"
            r"|clos(?:es?|ing)(?: (?:on|date))?|register by|registration closes|rsvp(?: by)?|respond by"
            r"|reply by|apply by|return by"
            r"|last day|no later than|latest by|book by|order by|enrol by|enroll by|fällig|next (?:payment"
            r"|bill|instal?lment)(?: due)?|auto-?pay(?: scheduled for| on)?|return window closes"
            r"|cancel (?:by|before)",
            rf"截止(?:日期?|时间)?|最后还款日|到期还款日|还款日期?|应还日期?|还书日期?|自动还款|扣款(?:日期?)?|死线|缴费(?:截止日?)?|还款"
            rf"|{_BY}(?:[^\d\s,。;]{{0,2}}(?:缴|交|付|还|提交|回复|完成|报名|支付))?(?![面后天往端台方])"
            r"|最晚|最迟|逾期",
        ),
    ),
    (
        "appointment",
        False,
        _words(
            r"appointments?(?: (?:date|time))?|appt|reserv(?:ation|ed)|booked for|check-?up|consultation"
            r"|interview|haircut"
            r"|vaccination|viewing",
            r"预约(?:时间|日期)?|就诊(?:时间|日期)?|挂号|复诊|面试(?:时间)?|面谈|体检|看诊|看病|手术|理发",
        ),
    ),
    ("appointment", True, _words("dentist|doctor", "牙医|牙科")),
    (
        "event",
        False,
        _words(
            r"meeting|starts?|begins?|kick-?off|doors(?: open)?|webinar|invit(?:ation|ed)"
            r"|check[- ]?in(?: date)?"
            r"|check[- ]?out(?: date)?|rescheduled to|moved to|postponed to",
            r"开会|会议(?:时间)?|开始(?:时间)?|举[行办]|召开|开[场幕播演学课业考]|上映|活动(?:时间|日期)|家长会|考试(?:时间|日期)?"
            r"|入住(?:日期|时间)?|离店(?:日期|时间)?|退房(?:日期|时间)?|集合(?:时间)?|展览(?:时间)?|演出(?:时间)?|比赛(?:时间)?",
        ),
    ),
    (
        "event",
        True,
        _words(
            r"meet(?: up)?|opens|airs|premieres|maintenance|outage|holidays?|graduation|session|visit"
            r"|booked in|let's|how about|what about|shall we|catch up|call me|zoom|are you free"
            r"|free (?:on|at|for)|coming|scheduled for|out of office|want to|wanna|join|come|trip|itinerary"
            r"|stay|your booking|term|semester|practice|training|launch|conference|concert|festival"
            r"|exhibition|party|wedding"
            r"|dinner|lunch|breakfast|coffee|drinks|brunch"
            r"|movie|film|match|class|lesson|course|workshop|exam|test|screening|show|gig|game night"
            r"|ceremony|sync|stand-?up|call"
            r"|event|when|date (?:and|&) time|reminder|join us|see you|rehearsal|practice|lecture|seminar"
            r"|tour|barbecue|picnic",
            r"例会|聚会|聚餐|吃饭|见面|碰头|婚礼|讲座|培训|直播|电影|值班|上课|演唱会|生日会|报到|场次|日程|提醒"
            r"|改到|改期|推迟到|延期到|邀请|典礼|仪式|停[电水气]|检修|维护|开售|开抢|抢票|预售|放假|假期|答辩|年会|团建|晚会|首映|开庭|宣讲"
            r"|打球|火锅|聚一?聚|唱歌|爬山|逛街|健身|喝|约(?![为占等定合])|[吗吧呗](?=[?。!,]|$)|一起|出游|旅行|行程"
            r"|见(?![面过到证解])|(?<![\u4e00-\u9fff])(?:时间|日期)(?![\u4e00-\u9fff])|观影时间|放映时间",
        ),
    ),
)
_ARRIVAL = _words("arriv(?:es?|als?|ing)(?: time)?", "到达(?:时间)?|抵达(?:时间)?")
TRAVEL = _words(
    r"boarding|flight|airport|gate|terminal|airlines?|train|railway|coach|platform|ferry",
    "航班|登机|列车|车次|铁路|航站楼|检票",
)
TICKET = _words(
    r"seats?|row|screen|admit one|tickets?|venue|rsvp|invitation|event details|add to calendar|guests"
    r"|organi[sz]er|attendees"
    r"|going|interested",
    "座位|影厅|取票|入场|检票|日程|场馆|添加到日历|参会人|排\\d",
)
CANCELLED = _words(r"(?:been|was|is|were|are) cancell?ed|cancell?ed:", "已取消|被取消|取消了")
EVENING = _words("tonight|evening|dinner|party|drinks|movie|pm", "今晚|明晚|晚上|晚饭|晚餐")
EXPIRED = _words("expired", "已过期|已到期|已失效")
TIMES = _words("boarding|depart(?:s|ure)|doors|check-in", "登机|起飞|出发|发车")
# Whose plan it is, in a sentence.
YOURS = _words("you|your|yours|we|us|our|i|my|me|please|ihr|sie|dein", "你|您|我|咱|请|家长|大家|同学")
UNTIL = re.compile(
    r"(?<![a-z])(?:until|till?|through|by|before|no later than|bis(?: zum)?)(?: the)?\s{0,2}$", re.IGNORECASE
)
LASTS = _words("valid|available|offers?|coupon|voucher|pass|points|open|gültig", "有效|优惠")
# The whole label of a ticket's day, and of its time.
DAY_LABEL = re.compile(r"(?:day|date|when|日期|时间)[ :]{0,3}", re.IGNORECASE)
TIME_LABEL = re.compile(r"(?:(?:start )?time|starts?(?: at)?|(?:开始|开场)?时间)[ :]{0,3}", re.IGNORECASE)
DATED = _words("date|day|on|from|when|starts?|ends?|time", "日期?$|时间")
