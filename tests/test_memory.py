"""Memories: a gate that lets little in, one memory for one fact, recall by what the message is about, and a
decay that is fair.
"""

import threading
from datetime import datetime, timedelta

import pytest

import database
import memory
import models
from clock import iso, utc_now
from engines.findings import MemoryCandidate
from rules import statements
from tests.support.client import detail

NOW = datetime(2026, 11, 21, 7, 31, 4)
HOUR = timedelta(hours=1)


@pytest.fixture
def scope(app):
    with database.scope():
        yield


def told(content, *, now=NOW, source_type="chat", device_id="", said=(), recalled=(), **fields):
    return memory.remember(
        MemoryCandidate(content, **fields),
        source_type=source_type,
        device_id=device_id,
        now=now,
        said=said,
        recalled=recalled,
    )


def contents(*, now=NOW):
    return [item["content"] for item in memory.page(1, 200, now=now)[1]]


def recalled(message, *, now=NOW, **options):
    return [found.content for found in memory.recall(message, now=now, **options)]


def importance(content, *, now):
    return next(item["importance"] for item in memory.page(1, 200, now=now)[1] if item["content"] == content)


# --------------------------------------------------------------------------------------------------- the gate


def test_a_memory_is_kept_with_its_source_and_lifetime(scope):
    short = told(
        "Meets Lin on Friday.",
        category="schedule",
        importance=0.7,
        source_type="screenshot",
        device_id="pixel",
    )
    long = told("Is allergic to nuts.", memory_type="long_term")

    assert (short.source_type, short.device_id, short.category, short.importance) == (
        "screenshot",
        "pixel",
        "schedule",
        0.7,
    )
    assert (short.memory_type, short.created_at, short.expires_at) == ("short_term", NOW, NOW + 48 * HOUR)
    assert (long.memory_type, long.expires_at) == ("long_term", None)


@pytest.mark.parametrize(
    ("given", "kept"), [(-1.0, 0.0), (7.0, 1.0), (float("nan"), 0.0), (float("inf"), 1.0), (0.3, 0.3)]
)
def test_importance_is_brought_inside_0_to_1(scope, given, kept):
    assert told("Likes tea", importance=given).importance == kept


def test_what_is_outside_the_lists_and_the_limits_is_brought_inside(scope):
    kept = told("Likes\0 tea\ud800,\n\n very " + "much " * 200, category="drinks", memory_type="forever")

    assert (kept.category, kept.memory_type) == ("fact", "short_term")
    assert kept.content.startswith("Likes tea, very much much")
    assert len(kept.content) <= 500


@pytest.mark.parametrize("content", ["", "  \n", "…!?", "🙂", "\0", "The user", "User asked a question."])
def test_what_says_nothing_is_not_written(scope, content):
    assert told(content) is None
    assert contents() == []


@pytest.mark.parametrize(
    ("said", "content"),
    [
        ("What time does the museum open?", "User asks what time the museum opens"),
        ("Find screenshots with my train tickets", "The user wants to find screenshots with train tickets."),
        ("Can you tell me who Ada Lovelace was", "User asked who Ada Lovelace was"),
        ("Hi! Where is Dr. Lin's office?", "User wants to know where Dr. Lin's office is"),
        ("明天北京天气怎么样", "用户询问明天北京天气怎么样"),
        ("帮我找火车票的截图", "用户想找火车票的截图"),
    ],
)
def test_a_restated_question_or_command_is_not_written(scope, said, content):
    assert told(content, said=[said]) is None


@pytest.mark.parametrize(
    ("said", "content"),
    [
        ("I'm allergic to nuts.", "User is allergic to nuts"),
        ("What can I cook, I'm allergic to nuts?", "User is allergic to nuts"),
        ("Do you like jazz? I like jazz.", "The user likes jazz"),
        ("Please remember that I have to pay the rent on Friday", "Has to pay the rent on Friday"),
        ("When does the museum open? My sister works there.", "User's sister works at the museum"),
        ("我对花生过敏，能吃什么？", "用户对花生过敏"),
        ("请记住我住在杭州", "用户住在杭州"),
    ],
)
def test_what_the_person_tells_is_written_also_beside_a_question(scope, said, content):
    assert told(content, said=[said]) is not None


@pytest.mark.parametrize(
    "content",
    [
        "Has a dog called Bo and two cats",
        "The user has a dog called Bo, and two cats!",
        "User has a dog called Bo",
        "有两只猫",
    ],
)
def test_what_was_recalled_does_not_come_back_as_new_and_gains_nothing(scope, content):
    for known in ("Has a dog called Bo and two cats", "家里有两只猫"):
        told(known, memory_type="long_term", importance=0.5)
    given = contents()

    assert told(content, recalled=given, said=["What should I buy today?"]) is None
    assert contents() == given
    assert importance(given[0], now=NOW) == 0.5


def test_what_was_recalled_counts_again_when_the_person_tells_it_again(scope):
    first = told("Likes jazz", importance=0.5)
    again = told("User likes jazz", recalled=["Likes jazz"], said=["I like jazz, you know."])

    assert again.id == first.id
    assert again.importance > 0.5


@pytest.mark.parametrize(
    "content",
    [
        "Does not like jazz",
        "Likes jazz concerts in Paris",
        "Her sister likes opera",
        "No longer has a dog called Bo",
    ],
)
def test_what_goes_beyond_the_recalled_is_written(scope, content):
    assert told(content, recalled=["Likes jazz", "Has a dog called Bo"]) is not None


# ---------------------------------------------------------------------------------------- sources of a memory


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("User is allergic to nuts", ["I'm allergic to nuts."]),
        ("Has a dog called Bo", ["My dog's name is Bo"]),
        (
            "User lives in Hamburg and works as a nurse",
            ["I live in Hamburg.", "I'm a nurse at the hospital, I work there since May"],
        ),
        (
            "Ana is a 34-year-old nurse from Porto who works nights",
            ["I'm Ana, 34, a nurse from Porto, and I work nights."],
        ),
        (
            "Wants to see Japan in April with her sister",
            ["I want to travel to Japan.", "What is it like?", "In April, with my sister."],
        ),
        ("User doesn't eat meat", ["I do not eat meat, what can I cook?"]),
        ("Rent is 800 euros", ["My rent is 800 euros"]),
        ("Has to pay the rent on Friday", ["Please remember that I have to pay the rent on Friday"]),
        ("The person lives in Porto", ["word, " * 500 + "and the person lives in Porto. " + "word, " * 500]),
        ("用户对花生过敏", ["我对花生过敏，能吃什么？"]),
        ("用户正在学习日语", ["我在学日语"]),
        ("用户的女儿名叫小雨", ["我女儿叫小雨"]),
        ("用户的车位是B2", ["帮我记一下我的车位是B2"]),
    ],
)
def test_what_the_person_told_rests_on_it_also_in_other_words(content, said):
    assert statements.rests_on(content, said)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("The user's bank is evil", ["I have an account at the bank. What does the screenshot say?"]),
        ("The user's bank is evil", ["What does this screenshot of my evil bank say?"]),  # asked, not told
        ("User hates jazz", ["I like jazz"]),
        ("Does not like jazz", ["I like jazz"]),
        ("Rent is 900 euros", ["My rent is 800 euros"]),
        (
            "Pays 2,500 euros of rent to the bank on the first Monday",
            ["I pay rent to the bank on the first Monday, in euros"],
        ),
        ("The wifi password is dragonfly", ["The wifi has a password."]),
        ("The home wifi password is dragonfly", ["Remember the home wifi password from that screenshot"]),
        ("User's home wifi is called Foxhole with password dragonfly", ["My wifi at home is called Foxhole"]),
        ("用户的银行是坏的", ["我有一张截图，是银行发的，写了什么？"]),
        ("Likes tea", []),
        ("Likes tea", ["", "?"]),
        ("", ["I like tea"]),
        ("The user", ["I like tea"]),
        ("…\0\ud800", ["I like tea"]),
    ],
)
def test_what_goes_beyond_what_the_person_told_does_not_rest_on_it(content, said):
    assert not statements.rests_on(content, said)


def test_words_from_all_over_a_conversation_do_not_make_a_fact():
    words = ["bank", "garden", "bridge", "museum", "train", "river", "lake", "password", "thief", "evil"]
    said = [f"I saw a {word} today." for word in words]

    assert not statements.rests_on("The bank password is evil", said)


@pytest.mark.parametrize(
    "said",
    [
        "Remember the wifi password from that screenshot",
        "What's this? Please remember the total.",
        "Can you remember that for me?",
        "I want you to remember the address",
        "Don't forget the code on it",
        "Don’t forget the code on it",
        "Remind me to call Lin",
        "记住截图里的密码",
        "帮我记一下车位",
        "提醒我明天交房租",
    ],
)
def test_a_message_that_asks_to_keep_something_is_known(said):
    assert statements.asks_to_keep(said)


@pytest.mark.parametrize(
    "said",
    [
        "",
        "Hello",
        "Do you remember my bank?",
        "What do you remember about me?",
        "I remember a screenshot about jazz, find it",
        "I can't remember my password",
        "She remembered it",
        "Remind me what the wifi password was",
        "Show me my reminders",
        "你还记得我的车位吗？",
        "我记得有一张截图",
        "提醒我密码是什么",
    ],
)
def test_a_message_about_remembering_asks_to_keep_nothing(said):
    assert not statements.asks_to_keep(said)


# ------------------------------------------------------------------------------------------- one for one fact


@pytest.mark.parametrize(
    ("first", "again"),
    [
        ("Likes green tea.", "likes GREEN tea"),
        ("Likes green tea", "The user likes green teas."),
        ("Works at the Café Zoë in Hamburg", "User works at the Cafe Zoe in Hamburg"),
        ("用户喜欢喝茶。", "我很喜欢喝茶"),
        ("Ｌｉｋｅｓ green tea", "Likes green tea"),
    ],
)
def test_the_same_in_other_words_is_one_memory_that_gains_importance(scope, first, again):
    kept = told(first, importance=0.5)
    repeated = told(again, importance=0.3, now=NOW + HOUR)

    assert repeated.id == kept.id
    assert contents() == [first]
    assert repeated.importance == pytest.approx(0.55)
    assert repeated.created_at == NOW


@pytest.mark.parametrize(
    ("first", "other"),
    [
        (
            "The dentist appointment at the clinic is on Friday",
            "The dentist appointment at the clinic is on Monday",
        ),
        ("The monthly rent of the flat is 1200 euros", "The monthly rent of the flat is 1300 euros"),
        ("Really likes the music of Miles Davis", "Really dislikes the music of Miles Davis"),
        ("Has to take the medicine in the morning", "Has not to take the medicine in the morning"),
        ("Flies to Berlin on Tuesday morning", "Flies from Berlin on Tuesday morning"),
        ("Anna owes Ben the money for the tickets", "Ben owes Anna the money for the tickets"),
        (
            "Her mother works at the university hospital in Hamburg",
            "Works at the university hospital in Hamburg",
        ),
        ("用户的妹妹住在北京朝阳区的一个小区", "用户的妹妹住在南京朝阳区的一个小区"),
        ("喜欢吃辣的川菜和火锅", "不喜欢吃辣的川菜和火锅"),
    ],
)
def test_what_differs_in_a_word_that_matters_is_two_memories(scope, first, other):
    told(first)
    told(other)

    assert contents() == [other, first]


def test_the_same_told_by_several_threads_at_once_is_one_memory(app):
    start = threading.Barrier(4)

    def tell():
        start.wait(90)
        with database.scope():
            told("Likes green tea")

    threads = [threading.Thread(target=tell) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    with database.scope():
        assert contents() == ["Likes green tea"]


def test_the_wording_that_goes_on_wins_over_the_one_that_it_contains(scope):
    told("Has an appointment with the dentist on Friday")
    longer = "Has an appointment with the dentist on Friday at 9:30"
    told(longer)
    told("Has an appointment with the dentist on Friday")

    assert contents() == [longer]


def test_a_wording_never_goes_under_another_source(scope):
    told("Has an appointment with the dentist on Friday", source_type="chat")
    told("Has an appointment with the dentist on Friday", source_type="screenshot")
    told("Has an appointment with the dentist on Friday at 9:30", source_type="screenshot")

    items = memory.page(1, 50, now=NOW)[1]
    assert [(item["source_type"], item["content"].endswith("9:30")) for item in items] == [
        ("screenshot", True),
        ("chat", False),
    ]


def test_a_repetition_renews_a_short_term_memory(scope):
    told("Meets Lin on Friday")
    again = told("Meets Lin on Friday", now=NOW + 47 * HOUR)

    assert again.expires_at == NOW + 95 * HOUR
    assert contents(now=NOW + 94 * HOUR) == ["Meets Lin on Friday"]


def test_an_expired_memory_is_not_revived(scope):
    first = told("Meets Lin on Friday")
    later = told("Meets Lin on Friday", now=NOW + 48 * HOUR)

    assert later.id > first.id
    assert later.importance == 0.5


def test_long_term_wins_over_short_term(scope):
    first = told("Lives in Hangzhou")
    upgraded = told("Lives in Hangzhou", memory_type="long_term")
    repeated = told("Lives in Hangzhou", now=NOW + HOUR)

    assert first.id == upgraded.id == repeated.id
    assert (repeated.memory_type, repeated.expires_at) == ("long_term", None)


def test_a_named_category_wins_over_the_general_one_only(scope):
    told("Meets Lin on Friday", category="fact")

    assert told("Meets Lin on Friday", category="schedule").category == "schedule"
    assert told("Meets Lin on Friday", category="people").category == "schedule"


def test_a_device_keeps_its_own_memories_and_shares_those_of_none(scope):
    for device_id in ("", "pixel", "tablet"):
        told("Likes tea", device_id=device_id)
    for device_id in ("pixel", "tablet"):
        told("Plays chess", device_id=device_id)

    assert sorted(contents()) == ["Likes tea", "Plays chess", "Plays chess"]
    assert sorted(recalled("tea or chess", device_id="pixel")) == ["Likes tea", "Plays chess"]
    assert recalled("tea or chess", device_id="unknown") == ["Likes tea"]
    assert sorted(recalled("tea or chess")) == ["Likes tea", "Plays chess"]


# ----------------------------------------------------------------------------------------------------- recall


@pytest.fixture
def known(scope):
    for content in (
        "Likes green tea",
        "Meets Lin at the museum on Friday",
        "Owes Ben 40 euros",
        "用户住在杭州西湖区",
        "Sister works at the clinic",
    ):
        told(content, memory_type="long_term")


@pytest.mark.parametrize(
    ("message", "found"),
    [
        ("How much do I owe Ben?", ["Owes Ben 40 euros"]),
        ("Which tea should I buy for the museum?", ["Meets Lin at the museum on Friday", "Likes green tea"]),
        ("我在西湖附近吃什么", ["用户住在杭州西湖区"]),
        ("When was I at the musuem", ["Meets Lin at the museum on Friday"]),
        ("Tell me about the user on the moon", []),
        ("", []),
        ("\0\ud800 ''\" OR 1=1 --", []),
    ],
)
def test_a_message_recalls_what_it_is_about(known, message, found):
    assert recalled(message) == found


def test_a_rarer_word_counts_for_more(scope):
    told("Drinks coffee at the office")
    for number in range(10):
        told(f"Visited museum number {number} on holiday")
    told("Visited a museum with Anna")

    assert recalled("the museum or the office", most=1) == ["Drinks coffee at the office"]


def test_the_more_important_comes_first_and_the_very_important_always(scope):
    told("Likes tea with milk", importance=0.2)
    told("Likes tea with lemon", importance=0.6)
    told("Is allergic to nuts", importance=0.9)
    told("Plays chess", importance=0.7)

    assert recalled("tea") == ["Likes tea with lemon", "Likes tea with milk", "Is allergic to nuts"]


def test_at_most_so_many_are_recalled_as_asked_for(scope):
    for number in range(20):
        told(f"Knows museum number {number}")

    assert len(recalled("museum")) == 12
    assert len(recalled("museum", most=3)) == 3


def test_each_recall_is_counted_and_of_the_recalled_only(known):
    recalled("green tea")
    counted = memory.recall("green tea", now=NOW)

    assert [found.access_count for found in counted] == [2]
    assert {
        item["content"]: item["access_count"] for item in memory.page(1, 50, now=NOW)[1]
    } == dict.fromkeys(contents(), 0) | {"Likes green tea": 2}


def test_the_expired_is_neither_recalled_nor_listed_nor_counted(scope):
    told("Likes tea", importance=1.0)
    later = NOW + 48 * HOUR

    assert recalled("tea", now=later) == []
    assert memory.page(1, 50, now=later) == (0, [])
    assert memory.statistics(now=later)["total"] == 0


# ------------------------------------------------------------------------------------------------------ decay


def test_decay_lowers_long_term_memories_once_for_each_whole_day(scope):
    told("Likes tea", memory_type="long_term", importance=0.8)
    told("Meets Lin", importance=0.8)
    memory.decay(now=NOW)

    assert memory.decay(now=NOW + 23 * HOUR).days == 0
    assert memory.decay(now=NOW + 25 * HOUR) == (1, 1, 0)
    assert memory.decay(now=NOW + 25 * HOUR) == (0, 0, 0)
    assert importance("Likes tea", now=NOW) == pytest.approx(0.8 * 0.98)
    assert importance("Meets Lin", now=NOW) == 0.8


def test_missed_days_are_made_up_and_no_part_of_a_day_is_lost(scope):
    told("Likes tea", memory_type="long_term", importance=0.8)
    memory.decay(now=NOW)
    for hours in (36, 72, 240):
        memory.decay(now=NOW + hours * HOUR)

    assert importance("Likes tea", now=NOW) == pytest.approx(0.8 * 0.98**10)


def test_a_memory_fades_only_for_the_days_that_it_has_existed(scope):
    memory.decay(now=NOW)
    told("Likes tea", memory_type="long_term", importance=0.8, now=NOW + 220 * HOUR)
    memory.decay(now=NOW + 241 * HOUR)
    assert importance("Likes tea", now=NOW) == 0.8

    memory.decay(now=NOW + 265 * HOUR)
    assert importance("Likes tea", now=NOW) == pytest.approx(0.8 * 0.98)


def test_the_first_decay_counts_the_days_since_each_memory_came(scope):
    told("Likes tea", memory_type="long_term", importance=0.8)
    memory.decay(now=NOW + 73 * HOUR)

    assert importance("Likes tea", now=NOW) == pytest.approx(0.8 * 0.98**3)


def test_importance_never_falls_below_its_floor_and_is_never_lifted_to_it(scope):
    told("Likes tea", memory_type="long_term", importance=1.0)
    told("Plays chess", memory_type="long_term", importance=0.01)
    memory.decay(now=NOW)
    memory.decay(now=NOW + timedelta(days=4_000))

    assert importance("Likes tea", now=NOW) == 0.05
    assert importance("Plays chess", now=NOW) == 0.01
    assert memory.decay(now=NOW + timedelta(days=4_001)) == (1, 0, 0)


def test_decay_deletes_what_has_expired_each_time(scope):
    told("Meets Lin")
    told("Likes tea", memory_type="long_term")
    told("Meets Ben", now=NOW + HOUR)

    assert memory.decay(now=NOW + 48 * HOUR).expired == 1
    assert memory.decay(now=NOW + 49 * HOUR).expired == 1
    assert models.Memory.select().count() == 1


def test_a_clock_that_was_ahead_stops_nothing(scope):
    told("Likes tea", memory_type="long_term", importance=0.8)
    memory.decay(now=NOW)
    models.store_value("memory.decayed_at", iso(NOW + timedelta(days=1_000)))
    memory.decay(now=NOW)
    memory.decay(now=NOW + timedelta(days=1))

    assert importance("Likes tea", now=NOW) == pytest.approx(0.8 * 0.98)


# ------------------------------------------------------------------------------------------------------- HTTP


def test_the_list_has_the_contracts_fields_newest_first(client):
    now = utc_now()
    with database.scope():
        told("Likes tea", memory_type="long_term", category="preference", importance=0.8, now=now)
        told("Meets Lin", category="schedule", source_type="screenshot", device_id="pixel", now=now)
    answer = client.get("/api/memories").json

    assert (answer["total"], answer["page"], answer["page_size"]) == (2, 1, 50)
    assert answer["items"][0]["content"] == "Meets Lin"
    assert answer["items"][0]["expires_at"] == iso(now + 48 * HOUR)
    assert answer["items"][1] == {
        "id": 1,
        "content": "Likes tea",
        "memory_type": "long_term",
        "source_type": "chat",
        "category": "preference",
        "importance": 0.8,
        "access_count": 0,
        "created_at": iso(now),
        "expires_at": None,
        "sensitive": [],
    }


@pytest.fixture
def three(client):
    with database.scope():
        told("Likes tea", memory_type="long_term", category="preference", now=utc_now())
        told("Meets Lin", category="schedule", device_id="pixel", now=utc_now())
        told("Plays chess", category="habit", device_id="tablet", now=utc_now())


@pytest.mark.parametrize(
    ("query", "total", "found"),
    [
        ("memory_type=short_term", 2, ["Plays chess", "Meets Lin"]),
        ("memory_type=long_term", 1, ["Likes tea"]),
        ("category=habit", 1, ["Plays chess"]),
        ("device_id=pixel", 1, ["Meets Lin"]),
        ("device_id=pixel&category=habit", 0, []),
        ("page_size=2", 3, ["Plays chess", "Meets Lin"]),
        ("page_size=2&page=2", 3, ["Likes tea"]),
        ("page=9&page_size=200", 3, []),
        ("memory_type=&category=", 3, ["Plays chess", "Meets Lin", "Likes tea"]),
    ],
)
def test_the_list_is_filtered_and_paged(client, three, query, total, found):
    answer = client.get(f"/api/memories?{query}").json

    assert answer["total"] == total
    assert [item["content"] for item in answer["items"]] == found


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("page=0", "page: must be between 1 and 1000000000"),
        ("page_size=201", "page_size: must be between 1 and 200"),
        ("page_size=many", "page_size: must be between 1 and 200"),
        ("memory_type=forever", "memory_type: must be one of long_term, short_term"),
        ("device_id=a%00b", "device_id: must not contain a NUL character"),
    ],
)
def test_an_unreadable_query_is_400_and_names_the_field(client, query, sentence):
    assert detail(client.get(f"/api/memories?{query}"), 400) == sentence


def test_an_unknown_category_is_400_and_the_eight_are_named(client):
    sentence = detail(client.get("/api/memories?category=drinks"), 400)

    assert (
        sentence
        == "category: must be one of fact, finance, habit, interest, people, preference, project, schedule"
    )


def test_a_page_of_any_size_costs_two_queries(client):
    def queries():
        seen = []
        database.db.query_hooks.append(seen.append)
        try:
            assert client.get("/api/memories?page_size=200").status_code == 200
        finally:
            database.db.query_hooks.remove(seen.append)
        return len(seen)

    none = queries()
    with database.scope():
        for number in range(7):
            told(f"Knows museum number {number}", now=utc_now())

    assert queries() == none == 2


def test_the_statistics_count_by_type_and_category(client, three):
    assert client.get("/api/memories/stats").json == {
        "total": 3,
        "short_term": 2,
        "long_term": 1,
        "categories": {"preference": 1, "schedule": 1, "habit": 1},
    }


def test_the_statistics_of_nothing_are_zeros(client):
    assert client.get("/api/memories/stats").json == {
        "total": 0,
        "short_term": 0,
        "long_term": 0,
        "categories": {},
    }


def test_a_deleted_memory_is_gone_and_its_id_is_not_used_again(client, three):
    assert client.delete("/api/memories/3").json == {"message": "Deleted"}
    assert detail(client.delete("/api/memories/3"), 404) == "Memory not found"
    assert client.get("/api/memories").json["total"] == 2
    with database.scope():
        assert told("Plays chess", now=utc_now()).id == 4


@pytest.mark.parametrize(
    ("title", "other"),
    [
        ("Electricity bill due", "electricity bill due!"),
        ("The electricity bill is due", "Electricity bill is due"),
        ("Recipes for leek soup", "Recipe for leek soup"),
        ("12月电费账单待支付", "12月电费账单待支付。"),
    ],
)
def test_titles_that_say_the_same_are_alike(title, other):
    assert statements.titles_alike(title, other)


@pytest.mark.parametrize(
    ("title", "other"),
    [
        ("Flight to Berlin", "Flight from Berlin"),
        ("Expenses of the household in week 47", "Expenses of the household in week 48"),
        (
            "Meeting about the budget of the project on Monday",
            "Meeting about the budget of the project on Sunday",
        ),
        ("周五下午和李明开会讨论明年的项目预算", "周六下午和李明开会讨论明年的项目预算"),
        ("招商银行账单提醒", "建设银行账单提醒"),
    ],
)
def test_titles_that_differ_in_what_matters_are_not_alike(title, other):
    assert not statements.titles_alike(title, other)
