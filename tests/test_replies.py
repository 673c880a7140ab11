"""What the chat answers without a model: the lines that answer a question, or that nothing was found."""

import json
import re
from datetime import timedelta

import pytest

import agenda
import database
import readings
import records
from app import create_app
from clock import local_time, utc_now
from database import db
from engines.lines import Line, Page
from engines.records import Field, Record, checked
from models import Analysis, Message
from rules import questions
from tests.support.client import Client
from tests.support.library import NOW, Library

SCREENS = {
    "flight": (
        "Booking confirmed\nLisbon to Porto\nTAP 1926\nDeparture\nSat 14 Nov 2026, 09:35\nSeat\n14C\n"
        "Gate closes 09:05\nTotal\n€84.50",
        "TAP",
    ),
    "rent": (
        "Transfers\nRent November\n950,00 EUR\nTo: Marta Keller\n3 Nov 2026\n"
        "Electricity\n61,20 EUR\n4 Nov 2026",
        "Bank",
    ),
    "lunch": (
        "Anna\nLunch on Friday?\nYes, at Café Central, Herrengasse 14\n12:30 works for me\nSee you there",
        "Messages",
    ),
    "parcel": (
        "Your parcel is on its way\nTracking number\nJD0147700012345\nArrives tomorrow by 18:00",
        "Parcels",
    ),
    "train": ("行程单\nG7 上海虹桥 至 北京南\n11月20日 08:12 开\n二等座 553元\n检票口 15A", "铁路12306"),
    "meeting": ("会议通知\n主题：预算评审\n时间：周三下午3点\n地点：三号楼二层会议室\n联系人：王芳", "邮箱"),
    "weather": ("Porto\nSunny\n21°\nTomorrow\nRain\n17°", "Weather"),
    "recipe": ("Pumpkin soup\n1 pumpkin\n2 onions\nSimmer for 25 minutes\nServes 4", "Cookbook"),
    "game": ("Level 12\nScore 3400\nNext flight in 5 minutes\nTake the plane", "Sky Game"),
}  # fmt: skip


# What they say as records: texts, amounts as a number and a currency, lists of texts.
RECORDS = {
    "boarding": (
        "Boarding\nNW 482\nBergen Hamburg\n4 Dec 2026\nDeparture 07:10\nGate C12",
        "FlightReservation",
        {
            "number": "NW482", "from": "Bergen", "to": "Hamburg", "departureTime": "2026-12-04T07:10",
            "gate": "C12",
        },
    ),
    "market": (
        "Green Market\nTotal 23.80",
        "Receipt",
        {"seller": "Green Market", "total": ("23.80", "EUR"), "date": "2026-11-03"},
    ),
    "market again": (
        "Green Market\nTotal 41.20",
        "Receipt",
        {"seller": "Green Market", "total": ("41.20", "EUR"), "date": "2026-11-09"},
    ),
    "market before": (
        "Green Market\nTotal 7.00",
        "Receipt",
        {"seller": "Green Market", "total": ("7.00", "EUR"), "date": "2026-10-30"},
    ),
    "doctor": (
        "Dr. Okafor\nThursday, December 10, 2026 at 16:40\nPlease bring the booklet",
        "Appointment",
        {"startTime": "2026-12-10T16:40", "with": "Dr. Okafor"},
    ),
    "locker": (
        "丰巢\n取件码 8-1-3307\n南门",
        "ParcelDelivery",
        {"carrier": "丰巢", "pickupCode": "8-1-3307"},
    ),
    "card": (
        "Mina Castellanos\n+34 611 22\nmina@estudio.example",
        "Contact",
        {"name": "Mina Castellanos", "telephone": "+3461122", "email": "mina@estudio.example"},
    ),
    "stew": (
        "番茄牛腩\n食材\n牛腩\n洋葱",
        "Recipe",
        {"name": "番茄牛腩", "recipeIngredient": ["牛腩", "洋葱"]},
    ),
    "group": ("Hiking group\nMeet at the north gate\nWho has the map?\nPriya has it", "", {}),
}  # fmt: skip


def record(kind, fields):
    """A record with these fields, as it is stored."""

    def value(given):
        if isinstance(given, tuple):
            return {"value": given[0], "currency": given[1]}
        if isinstance(given, dict):
            return [{"name": name, "amount": amount} for name, amount in given.items()]
        return [{"name": one} for one in given] if isinstance(given, list) else given

    texts = [
        Field(name, value(given), given if isinstance(given, str) else "") for name, given in fields.items()
    ]
    return checked(Record(kind, texts))


# What is under way, in years to come.
UNDER_WAY = {
    "ordered": (
        "Harbor Books\nOrder number 302-7741902-118\nThank you for your order",
        "Receipt",
        {"seller": "Harbor Books", "total": ("23.80", "EUR"), "orderNumber": "302-7741902-118"},
    ),
    "sent": (
        "Harbor Books\nOrder 302-7741902-118\nOut for delivery\nJD0147700012345",
        "ParcelDelivery",
        {"carrier": "DHL", "orderNumber": "302-7741902-118", "trackingNumber": "JD0147700012345"},
    ),
    "locker": (
        "顺丰速运\nSF1029384756\n快件已签收",
        "ParcelDelivery",
        {"carrier": "顺丰速运", "trackingNumber": "SF1029384756"},
    ),
    "water": (
        "City Water\nAmount due 48.10\n1 Dec 2090",
        "Invoice",
        {"provider": "City Water", "totalPaymentDue": ("48.10", "EUR"), "paymentDueDate": "2090-12-01"},
    ),
    "later": (
        "NW 482\nBergen Hamburg\nDeparture 4 Dec 2091 07:10",
        "FlightReservation",
        {"number": "NW482", "from": "Bergen", "to": "Hamburg", "departureTime": "2091-12-04T07:10"},
    ),
    "sooner": (
        "NW 77\nHamburg Bergen\nDeparture 2 Dec 2091 18:20\nGate C12",
        "FlightReservation",
        {
            "number": "NW77", "from": "Hamburg", "to": "Bergen", "departureTime": "2091-12-02T18:20",
            "gate": "C12",
        },
    ),
    "sooner again": (
        "NW 77\nHamburg Bergen\nDeparture 2 Dec 2091 18:20\nSeat 14A",
        "FlightReservation",
        {"number": "NW77", "from": "Hamburg", "to": "Bergen", "departureTime": "2091-12-02T18:20"},
    ),
    "past": (
        "NW 12\nDeparture 2 Dec 2019 18:20",
        "FlightReservation",
        {"number": "NW12", "from": "Hamburg", "to": "Oslo", "departureTime": "2019-12-02T18:20"},
    ),
    "train": (
        "G7\n上海虹桥 北京南\n2091年11月20日 08:12 开",
        "TrainReservation",
        {"number": "G7", "from": "上海虹桥", "to": "北京南", "departureTime": "2091-11-20T08:12"},
    ),
}  # fmt: skip


@pytest.fixture
def under_way(tmp_path):
    """As `asked`, about what is under way."""
    library = Library(tmp_path / "data")
    yield from asking(library, filed(library, UNDER_WAY))


@pytest.fixture
def asked(tmp_path):
    """`asked(question, conversation_id)`: the answer, the screenshots that it names, the conversation."""
    library = Library(tmp_path / "data")
    names = {
        library.add(text, app_name=app, summary=text.split("\n")[0]): name
        for name, (text, app) in SCREENS.items()
    }
    yield from asking(library, names | filed(library, RECORDS))


def filed(library, screens):
    """The names by id of these screens, stored with their records, taken an hour after the one before."""
    names = {}
    for number, (name, (text, kind, fields)) in enumerate(screens.items()):
        photo_id = library.add(text.replace("\t", "\n"), taken=NOW + number * timedelta(hours=1))
        names[photo_id] = name
        lines = [
            Line(cell, 0.99, 60 + 250 * place, 60 * at, 260 + 250 * place, 60 * at + 40)
            for at, row in enumerate(text.split("\n"))
            for place, cell in enumerate(row.split("\t"))
        ]
        with database.scope(), db.atomic():
            readings.save(photo_id, Page(1080, 2400, lines), reader="made-up")
        if kind:
            with database.scope(), db.atomic():
                stored = records.encoded([record(kind, fields)])
                Analysis.update(records=stored).where(Analysis.photo == photo_id).execute()
                records.file([photo_id])
    return names


def asking(library, names):
    client = Client(create_app(library.settings))

    def ask(question, conversation_id=""):
        body = {"message": question} | ({"conversation_id": conversation_id} if conversation_id else {})
        answer = client.post("/api/chat/send", json=body).json
        content = answer["message"]["content"]
        cited = [names[int(number)] for number in re.findall(r"#(\d+)", content)]
        return content, cited, answer["conversation_id"]

    yield ask
    database.close_store()


@pytest.mark.parametrize(
    ("question", "name", "quoted"),
    [
        ("When does my flight to Porto leave from Lisbon?", "flight", "Sat 14 Nov 2026, 09:35"),
        ("How much was the flight from Lisbon to Porto?", "flight", "€84.50"),
        ("What did I pay for rent?", "rent", "950,00 EUR"),
        ("How much is the electricity?", "rent", "61,20 EUR"),
        ("Where do I meet Anna for lunch?", "lunch", "Herrengasse 14"),
        ("What is the tracking number of my parcel?", "parcel", "JD0147700012345"),
        ("When do the parcels arrive?", "parcel", "tomorrow by 18:00"),
        ("去北京的火车几点开？", "train", "08:12"),
        ("北京南的车票多少钱？", "train", "553元"),
        ("预算评审会议在哪里？", "meeting", "三号楼二层会议室"),
        ("预算评审找谁？", "meeting", "王芳"),
        ("how long does the pumpkin soup simmer", "recipe", "25 minutes"),
    ],
)
def test_the_lines_that_answer_are_quoted(asked, question, name, quoted):
    content, cited, _ = asked(question)
    assert cited[:1] == [name], content
    assert quoted in content


@pytest.mark.parametrize(
    ("question", "name", "value"),
    [
        ("When does my flight to Hamburg leave?", "boarding", "Fri 4 Dec 07:10"),
        ("Which gate is NW 482?", "boarding", "C12"),
        ("When do I see Dr. Okafor?", "doctor", "Thu 10 Dec 16:40"),
        ("丰巢的取件码是多少？", "locker", "8-1-3307"),
        ("What's Mina's email?", "card", "mina@estudio.example"),
        ("Mina Castellanos's phone number?", "card", "+3461122"),
    ],
)
def test_a_record_answers_with_its_value_first_and_then_its_screenshot(asked, question, name, value):
    content, cited, _ = asked(question)
    assert content.splitlines()[0] == f"**{value}**", content
    assert cited[:1] == [name]


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("How much did I spend at Green Market in November 2026?", "**€65.00** From 2 records:"),
        ("How much did I spend at Green Market altogether?", "**€72.00** From 3 records:"),
        ("我在 Green Market 一共花了多少钱？", "**€72.00** 来自 3 条记录："),
        ("How many receipts do I have?", "3 records:"),
        ("How many screenshots mention Green Market?", "3 screenshots:"),
        ("How many screenshots do I have?", f"{len(SCREENS) + len(RECORDS)} screenshots:"),
    ],
)
def test_sums_and_counts_are_those_of_all_records_and_screenshots(asked, question, answer):
    content, _, _ = asked(question)
    assert " ".join(content.split("\n\n")[: 1 + ("**" in answer)]) == answer


def test_what_a_list_has_is_a_list(asked):
    content, cited, _ = asked("番茄牛腩要哪些食材？")
    assert cited == ["stew"]
    assert content.splitlines()[2:] == ["- 牛腩", "- 洋葱"]


def test_a_line_that_asks_does_not_answer(asked):
    content, _, _ = asked("Who has the map?")
    assert "> Priya has it" in content


def test_the_other_one_is_another_screenshot(asked):
    _, cited, conversation = asked("Which gate is NW 482?")
    assert cited[0] == "boarding"
    content, cited, _ = asked("and the other one?", conversation)
    assert "boarding" not in cited, content


def test_the_same_is_asked_of_another_thing(asked):
    _, _, conversation = asked("How much is the electricity?")
    content, cited, _ = asked("and the rent?", conversation)
    assert cited[:1] == ["rent"]
    assert "950,00 EUR" in content


@pytest.mark.parametrize(
    "question",
    [
        "When is my flight to Oslo?",
        "How much did I spend at Red Market?",
        "When is my appointment with Dr. Weiss?",
        "韵达的取件码是多少？",
        "Which flight did I take to Reykjavik?",
        "When is my dentist appointment?",
        "How much did the new bicycle cost?",
        "Where did I park the car?",
        "我的护照号码是多少？",
        "牙医预约是几点？",
        "What did Peter say about the house?",
    ],
)
def test_where_only_common_words_match_nothing_was_found(asked, question):
    content, cited, _ = asked(question)
    assert cited == [], content
    assert re.search("nothing|没有找到", content)


def test_a_quotation_has_its_neighbours_and_no_window_around_a_word(asked):
    content, _, _ = asked("How much is the electricity?")
    assert [line for line in content.splitlines() if line.startswith("> ")] == [
        "> 3 Nov 2026",
        "> Electricity",
        "> 61,20 EUR",
        "> 4 Nov 2026",
    ]


def test_a_question_that_several_screenshots_answer_has_a_short_list(asked):
    content, cited, _ = asked("Anything about Porto?")
    assert sorted(cited) == ["flight", "weather"]
    assert len(content.splitlines()) <= 5


def test_a_date_that_does_not_stand_there_is_not_made_up(asked):
    content, cited, _ = asked("When did I cook the pumpkin soup?")
    assert cited == ["recipe"]
    assert "No date stands beside it. The screenshot was taken on 2026-11-21." in content


@pytest.mark.parametrize(
    ("first", "next_question", "name", "quoted"),
    [
        ("When does my flight from Lisbon leave?", "And how much was it?", "flight", "€84.50"),
        ("When does my flight from Lisbon leave?", "which seat?", "flight", "14C"),
        ("去北京的火车几点开？", "多少钱？", "train", "553元"),
        ("预算评审会议是什么时候？", "那在哪里？", "meeting", "三号楼二层会议室"),
    ],
)
def test_a_question_that_goes_on_keeps_the_subject(asked, first, next_question, name, quoted):
    _, cited, conversation = asked(first)
    assert cited[:1] == [name]
    content, cited, _ = asked(next_question, conversation)
    assert cited[:1] == [name], content
    assert quoted in content


def test_a_new_subject_is_not_mixed_with_the_one_before(asked):
    _, _, conversation = asked("When does my flight from Lisbon leave?")
    content, cited, _ = asked("How much is the rent?", conversation)
    assert cited[:1] == ["rent"]
    assert "950,00 EUR" in content


@pytest.mark.parametrize("question", ["?", "。。。", "and", "x" * 9_000, "它" * 3_000, "when " * 2_000, "#1"])
def test_any_question_has_an_answer(asked, question):
    assert asked(question)[0]


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("What did I save this week?", "screenshots from then|saved no screenshot in that time"),
        ("我这周保存了什么？", "张截图|这段时间没有保存截图"),
        ("Which bills and deadlines are coming up?", "agenda"),
        ("最近有哪些账单和截止日期？", "日程"),
        ("Find the address of the restaurant I saved", "I found nothing"),
        ("找一下我保存的餐厅地址", "没有找到"),
    ],
)
def test_the_prompts_that_the_page_offers_are_answered(asked, question, words):
    content, _, _ = asked(question)
    assert re.search(words, content)


@pytest.mark.parametrize("question", ["Hello", "Thank you!", "你好", "谢谢"])
def test_small_talk_has_one_honest_sentence(asked, question):
    content, cited, _ = asked(question)
    assert not cited
    assert "\n" not in content
    assert ("Ask me about" in content) or ("可以问我" in content)


@pytest.mark.parametrize(
    ("question", "period"),
    [
        ("What is on my agenda in December?", "12"),
        ("Any appointments in March 2027?", "2027-03"),
        ("12月有什么安排？", "12"),
        ("What is due this week?", "this_week"),
        ("Which bills are coming up?", ""),
        ("What did I buy in December?", None),
    ],
)
def test_a_question_about_the_agenda_names_its_time(question, period):
    assert questions.agenda_period(question) == period


@pytest.mark.parametrize(
    ("question", "since"),
    [
        ("What did I save this week?", "this_week"),
        ("Show me the screenshots from today", "today"),
        ("我今天保存了什么？", "today"),
        ("What did I spend this week?", ""),
        ("这个月花了多少钱？", ""),
    ],
)
def test_a_question_about_everything_that_was_saved_names_its_time(question, since):
    assert questions.saved_since(question) == since


@pytest.mark.parametrize(
    ("question", "value"),
    [
        ("Which seat do I have on the flight to Porto?", "14C"),
        ("预算评审的地点？", "三号楼二层会议室"),
    ],
)
def test_the_value_of_a_label_stands_alone(asked, question, value):
    content, _, _ = asked(question)
    assert value in content.split("\n\n")[0]


@pytest.mark.parametrize(
    ("question", "name", "value"),
    [
        ("Where is my parcel?", "sent", "out for delivery"),
        ("包裹到哪了？", "sent", "派送中"),
        ("What is the state of order 302-7741902-118?", "sent", "out for delivery"),
        ("订单302-7741902-118到哪了？", "sent", "派送中"),
        ("Has my order from Harbor Books shipped?", "sent", "out for delivery"),
        ("顺丰的包裹到了吗？", "locker", "已送达"),
        ("Is the water bill paid?", "water", "due"),
        ("City Water 的账单付了吗？", "water", "待付款"),
    ],
)
def test_the_state_of_what_is_under_way_stands_first_with_the_line_that_says_it(
    under_way, question, name, value
):
    content, cited, _ = under_way(question)
    assert cited == [name], content
    assert content.startswith("**")
    assert value in content.splitlines()[0]
    if name == "sent":
        assert content.endswith("> Out for delivery")


def test_what_is_not_under_way_is_looked_for_as_before(under_way):
    for question in ("Where is my parcel from Red Market?", "绿色商店的包裹到哪了？"):
        content, cited, _ = under_way(question)
        assert cited == [], content


@pytest.mark.parametrize(
    ("question", "value", "follow_up", "other"),
    [
        ("Which flight is next?", "NW 77", "And the other one?", "NW 482"),
        ("我的下一个航班是哪个？", "NW 77", "另一个呢？", "NW 482"),
    ],
)
def test_the_next_of_several_is_the_soonest_and_the_other_one_is_another(
    under_way, question, value, follow_up, other
):
    content, _, conversation = under_way(question)
    assert value in content.splitlines()[0]
    content, cited, _ = under_way(follow_up, conversation)
    assert cited == ["later"]
    assert other in content.splitlines()[0]


@pytest.mark.parametrize(
    ("question", "value"),
    [
        ("Which train is next?", "G7"),
        ("下一班火车是几点？", "08:12"),
        ("Which gate does my next flight leave from?", "C12"),
        ("When is my next flight?", "2 Dec"),
    ],
)
def test_what_is_asked_of_the_next_one_stands_first(under_way, question, value):
    content, _, _ = under_way(question)
    assert value in content.splitlines()[0], content


@pytest.mark.parametrize(
    "question", ["What is my next trip?", "next trip", "下一个行程", "我的下一趟旅程是什么？"]
)
def test_the_next_trip_is_the_soonest_of_flights_trains_and_buses(under_way, question):
    content, cited, _ = under_way(question)
    assert "G7" in content.splitlines()[0], content
    assert cited == ["train"]


@pytest.fixture
def planned(tmp_path):
    """As `asked`, about what lines name for the days to come: nothing of it is a record."""
    library, today = Library(tmp_path / "data"), local_time(utc_now())
    names = {}
    for name, line, days in (
        ("rent", "Rent is due on {day:%d %B %Y}", 4),
        ("dentist", "Dentist appointment on {day:%d %B %Y} at 09:20", 1),
        ("choir", "Choir: event on {day:%d %B %Y} at 19:30", 9),
    ):
        text = line.format(day=today + timedelta(days=days))
        photo_id = library.add(text, taken=utc_now())
        page = Page(1080, 2400, [Line("Note", 0.99, 60, 300, 400, 350), Line(text, 0.99, 60, 400, 900, 450)])
        with database.scope(), db.atomic():
            readings.save(photo_id, page, reader="made-up")
            agenda.renew(photo_id, page, now=utc_now())
        names[photo_id] = name
    yield from asking(library, names)


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("What's next?", "dentist"),
        ("What comes next?", "dentist"),
        ("下一个是什么？", "dentist"),
        ("What is my next appointment?", "dentist"),
        ("下一个预约是什么时候？", "dentist"),
        ("What is my next deadline?", "rent"),
        ("What's my next event?", "dentist"),
        ("What do I have tomorrow?", "dentist"),
        ("明天有什么安排？", "dentist"),
    ],
)
def test_what_comes_next_is_one_event_of_the_agenda(planned, question, name):
    content, cited, _ = planned(question)
    assert cited == [name], content


def test_what_comes_next_stands_first_with_the_line_that_says_so(planned):
    content, _, _ = planned("What's next?")
    assert re.match(r"\*\*\w{3} \d+ \w{3},? 09:20 · Dentist", content), content
    assert re.search(r"\n> Dentist appointment on .* 09:20$", content), content


def test_where_nothing_of_a_kind_is_to_come_no_screenshot_is_quoted(planned):
    content, cited, _ = planned("What is my next bill?")
    assert cited == ["rent"], content  # a payment that is due
    content, cited, _ = planned("When is my next flight?")
    assert cited == [], content


def test_all_that_is_to_come_is_a_list(planned):
    assert planned("What is coming up?")[1] == ["dentist", "rent", "choir"]


# What has the words of questions that ask for something else.
BESIDE = {
    "kitty": (
        "Hut weekend\nAll expenses\n€63.10\nBread\n€3.10\nPaid by Ana\nCake\n€40.00\nPaid by Ana\n"
        "Lanterns\n€20.00\nPaid by Tomasz",
        "Balance",
        {
            "name": "Hut weekend", "amount": ("63.10", "EUR"),
            "entries": {"Bread": "€3.10", "Cake": "€40.00", "Lanterns": "€20.00"},
        },
    ),
    "invitation": ("Harvest feast\nWe celebrate with friends\nMonstrous cakes\nJanuary 23, 2027", "", {}),
    "offices": ("About us\nOffices are in Geneva, Nairobi\nand Vienna since 1999", "", {}),
    "pump": ("Rivergate fuel\n1,009\nHarbour street 7, 10407 Rivergate", "", {}),
    "tortilla": ("玉米饼\n准备\n10分钟\n烤制\n25分钟\n玉米面 400克", "", {}),
    "forum": (
        "Cats everywhere\nkittens@pets.example\n22.3k members\npuppies@pets.example\n12.1k members", "", {},
    ),
    "sums": ("Savings plan\nResult (dollars)\n303.58", "", {}),
    "chats": (
        "Harbour choir\nNow\nbrought candles and blankets for everyone\nRequest\nPuzzlebot\n9:12:05 AM\n"
        "Puzzlebot: the second riddle today\nis about bridges", "", {},
    ),
    "profile": (
        "Otter Weaver\n@otter@pond.example\nBaskets since 1999\notterweaver.example\n6 Favorites", "", {},
    ),
    "alerts": ("Alerts\nBackup finished\nLogin of squirrel from 10.20.30.7", "", {}),
    "drive": ("Coast drive\nDrivers\nDistance\n4\n812 km\nFuel\n21/03/1999\n55.5 (Ana → Bo)", "", {}),
    "allowance": (
        "Holiday allowance\n€61.20left of €300\n€300", "Product",
        {"name": "Holiday allowance", "price": ("300", "EUR")},
    ),
    "month": ("Namedays\nMay\n14 Ingrid\nJune\n02 Matteo\n30 Yusuf", "", {}),
}  # fmt: skip


@pytest.fixture
def beside(tmp_path):
    library = Library(tmp_path / "data")
    yield from asking(library, filed(library, BESIDE))


@pytest.mark.parametrize(
    ("question", "name", "value"),
    [
        ("How much was the cake?", "kitty", "**€40.00**"),
        ("How much did I spend on cake?", "kitty", "**€40.00**"),
        ("How much was the hut weekend?", "kitty", "**€63.10**"),
        ("Who paid for the lanterns?", "kitty", "Tomasz"),
        ("When is the harvest feast?", "invitation", "January 23, 2027"),
        ("玉米饼要烤制多久？", "tortilla", "25分钟"),
        ("做玉米饼需要多少玉米面？", "tortilla", "400克"),
        ("How many members does puppies have?", "forum", "12.1k members"),
        ("What was the result of the savings plan?", "sums", "**303.58**"),
    ],
)
def test_what_the_question_names_is_answered_and_not_what_stands_beside_it(beside, question, name, value):
    content, cited, _ = beside(question)
    assert cited == [name], content
    assert value in content


@pytest.mark.parametrize(
    ("question", "line"),
    [
        ("Who brought candles and blankets?", "Harbour choir"),
        ("When did Puzzlebot last write?", "9:12:05 AM"),
        ("What is the website of Otter Weaver?", "otterweaver.example"),
        ("From which address did squirrel log in?", "Login of squirrel from 10.20.30.7"),
        ("How many kilometres was the coast drive?", "812 km"),
        ("How much was the fuel of the coast drive?", "55.5 (Ana → Bo)"),
        ("When is Matteo's nameday?", "02 Matteo"),
        ("How much of the holiday allowance is left?", "€61.20left of €300"),
    ],
)
def test_the_line_that_is_cited_has_what_is_wished_for(beside, question, line):
    content, _, _ = beside(question)
    assert cited_lines() == [line], content


@pytest.mark.parametrize(
    "question",
    [
        "How many miles was the coast drive?",
        "How much was the train to Vienna?",
        "What is the phone number of the Rivergate fuel station?",
        "What is the phone number of Rivergate?",
        "玉米饼需要哪些材料？",
    ],
)
def test_what_has_a_word_of_the_question_only_is_no_answer(beside, question):
    content, cited, _ = beside(question)
    assert cited == [], content


def test_the_other_parcel_is_another_one(under_way):
    _, cited, conversation = under_way("Where is my parcel?")
    assert cited == ["sent"]
    content, cited, _ = under_way("and the other one?", conversation)
    assert cited == ["locker"]
    assert "delivered" in content


# Cells beside each other have a tab between them.
TABLES = {
    "speeds": (
        "Line log\nMay 4, 2031 9:00 AM\nDownload\tUpload\tDelay\n81.5 Mbps\t12.7 Mbps\t17 ms\n"
        "May 5, 2031 9:00 AM\nDownload\tUpload\tDelay\n64.1 Mbps\t9.9 Mbps\t22 ms", "", {},
    ),
    "ledger": (
        "账本\n编号\t金额\t日期\t备注\n1\t¥18.00\t2031-05-04\t面条\n2\t¥26.00\t2031-05-04\t出租车\n"
        "3\t¥77.00\t2031-05-04\t雨伞", "", {},
    ),
    "depot": (
        "Depot\nGoods\tSupplier\tState\tShelf\nRope\tTarn Ltd\topen\tB\nBuoys\tHelm & Son\tchecked\tC\n"
        "Edit\tSails\tWren Works\topen\tD", "", {},
    ),
    "calls": ("Recents\nOlga Petit\n11:20 AM\t06:41\nTariq Bell\n3:05 PM\t48:12", "", {}),
    "plans": (
        "Plans\nLunch with Ines\n10:15 AM - 11:00 AM\nFerry to Skagen\n7:40 PM at Terminal 9", "", {},
    ),
    "months": ("Latest\nAug Lodging August\t-$450.00\nAug Kayak\t-$30.00", "", {}),
    "chat": ("Ines Moreau\n7:28 PM\nThe ferry was late\nSee you there", "Chat", {
        "participant": "Ines Moreau", "lastMessage": "See you there",
    }),
    "party": ("Garden party\nTent\nPaid by Tariq\t€61.00\nLanterns\nPaid by Olga\t€20.00", "", {}),
    "shop": ("Lantern shop\nLanterns, box of ten\nPaid by card\t€13.00", "", {}),
    "model": ("Models\nheron-3-7b\nSize: 4.25 GB\n19:02", "", {}),
    "letters": ("Letters\nOlaf Lind\n20 min\nThe boat is painted\nGreta\n1 hour\nSee you in harbour", "", {}),
    "evening": ("Edit event\nLantern evening\nJanuary 23 (Tue)\n08:30 PM", "", {}),
    "jobs": ("潜水教练\n月薪 8千\n蓝湾公司\n地址\t海滨路 9 号", "", {}),
}  # fmt: skip


@pytest.fixture
def tables(tmp_path):
    library = Library(tmp_path / "data")
    yield from asking(library, filed(library, TABLES))


def cited_lines():
    """What the citations of the last answer quote."""
    with database.scope():
        said = Message.select(Message.citations).order_by(Message.id.desc()).get().citations
    return [one["text"] for one in json.loads(said or "[]")]


@pytest.mark.parametrize(
    ("question", "line"),
    [
        ("How fast was the upload on May 5?", "9.9 Mbps"),
        ("What was the delay on 4 May 2031?", "17 ms"),
        ("出租车花了多少钱？", "¥26.00"),
        ("How long did I talk with Tariq Bell?", "48:12"),
        ("Which terminal does the ferry to Skagen leave from?", "7:40 PM at Terminal 9"),
        ("How much was the lodging in August?", "-$450.00"),
        ("潜水教练的工资是多少？", "月薪 8千"),
        ("What is the state of the buoys?", "checked"),
        ("Who is the supplier of the sails?", "Wren Works"),
        ("How big is heron?", "4.25 GB"),
        ("What time does the Lantern evening start?", "08:30 PM"),
    ],
)
def test_a_value_is_found_in_its_row_and_column(tables, question, line):
    content, _, _ = tables(question)
    assert cited_lines() == [line], content


def test_a_question_that_goes_on_is_answered_from_the_same_screenshot_first(tables):
    content, cited, conversation = tables("Who paid for the tent?")
    assert (cited, "Tariq" in content) == (["party"], True), content
    content, cited, _ = tables("And for the lanterns?", conversation)
    assert (cited, "Olga" in content) == (["party"], True), content


@pytest.mark.parametrize(
    "question",
    [
        "How much was the lodging in June?",
        "What did Tariq Bell say about the harvest?",
        "Which gate does the ferry to Skagen leave from?",
        "How long did I talk with Greta Lind?",
    ],
)
def test_what_is_of_another_month_person_or_kind_is_no_answer(tables, question):
    content, cited, _ = tables(question)
    assert cited == [], content


def test_what_somebody_says_is_what_stands_below_the_name(tables):
    content, cited, _ = tables("What did Olaf Lind write?")
    assert (cited, "The boat is painted" in content, "Letters" in content) == (["letters"], True, False), (
        content
    )
