import contextlib
import json
import math
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines import reading
from engines.findings import CATEGORIES, INTENTS, MAX_ENTITIES, Entity, MemoryCandidate
from errors import AnswerUnusable

WHOLE = {
    "app_name": "WeChat",
    "content_category": "chat",
    "intent": "reminder",
    "title": "Meeting with Lin",
    "summary": "Lin asks to meet on Friday at 18:30.",
    "entities": [{"type": "person", "value": "Lin"}, {"type": "date", "value": "Friday 18:30"}],
    "confidence": 0.85,
    "visible_text": "Lin\nFriday 18:30?",
    "memories": [
        {
            "content": "Meets Lin on Friday.",
            "category": "schedule",
            "memory_type": "short_term",
            "importance": 0.7,
        }
    ],
}
TEXT = json.dumps(WHOLE)


def read(**fields):
    """The findings in an answer with just these fields."""
    return reading.read_findings(json.dumps(fields))


def test_a_title_is_one_short_line():
    assert read(title="Two\n lines " + "x" * 300).title == "Two lines " + "x" * 109
    assert read(title=None, summary="s").title == ""


def test_a_whole_answer_is_read_field_by_field():
    found = reading.read_findings(TEXT)
    assert (found.app_name, found.content_category, found.intent, found.confidence) == (
        "WeChat",
        "chat",
        "reminder",
        0.85,
    )
    assert (found.title, found.summary) == ("Meeting with Lin", WHOLE["summary"])
    assert found.visible_text == "Lin\nFriday 18:30?"
    assert found.entities == [Entity("person", "Lin"), Entity("date", "Friday 18:30")]
    assert found.memories == [MemoryCandidate("Meets Lin on Friday.", "schedule", "short_term", 0.7)]
    assert found.raw == TEXT


@pytest.mark.parametrize(
    "answer",
    [
        f"```json\n{TEXT}\n```",
        f"```\n{TEXT}\n```",
        f"Here is what I see:\n\n{TEXT}\n\nIs there anything else?",
        f'<think>The user wants {{"summary": "no"}} or so.</think>\n{TEXT}',
        f"The user wants an object.</think>{TEXT}",
        f"[{TEXT}]",
        TEXT[:-1] + ",}",
        TEXT.replace('"', "'").replace("'", '"', 2),
        TEXT.replace('"app_name"', "app_name"),
        TEXT.replace("[{", "[,{"),
        TEXT + "\n" + '{"note": "an afterthought"}',
        "\ufeff" + TEXT,
    ],
)
def test_an_answer_that_is_nearly_json_is_repaired(answer):
    found = reading.read_findings(answer)
    assert (found.app_name, found.content_category, found.summary) == ("WeChat", "chat", WHOLE["summary"])
    assert found.raw == answer


@pytest.mark.parametrize(
    "answer",
    [
        *(
            "",
            "   ",
            "I cannot help with that.",
            "null",
            "true",
            "42",
            '"summary"',
            "[]",
            "{}",
            "[[1, 2], 3]",
            '{"answer": "yes"}',
        ),
        *(
            "<think>" + TEXT,
            "```json\n```",
            "{" * 100,
            "<html><body>502 Bad Gateway</body></html>",
            "\x00\x01\x02",
            "\ud800",
        ),
    ],
)
def test_an_answer_without_any_of_the_fields_is_unusable(answer):
    with pytest.raises(AnswerUnusable, match="not the JSON object"):
        reading.read_findings(answer)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("[" * 100_000, "nested in lists"),
        ('{"a":' * 100_000, "nested in objects"),
        ('{"summary":' * 500 + '"x"' + "}" * 500, "nested, but whole"),
        ('{"summary": ' + "[" * 900 + "]" * 900 + "}", "a list in a field"),
        ('{"entities": ' + '{"a":' * 900 + "1" + "}" * 901, "objects in a field"),
        ("{[" * 50_000, "alternating"),
        ("x" * 10_000_000, "ten megabytes of prose"),
        ('{"summary": "' + "x" * 10_000_000, "ten megabytes, cut off"),
        ('{"confidence": ' + "9" * 100_000 + "}", "a number without an end"),
    ],
)
def test_a_bomb_is_unusable_or_harmless(answer, reason):
    try:
        found = reading.read_findings(answer)
    except AnswerUnusable:
        return
    assert len(found.summary) <= 4_000, reason


def test_ten_megabytes_of_valid_json_are_cut_to_size():
    found = read(
        summary="s" * 5_000_000,
        visible_text="v" * 5_000_000,
        entities=["e"] * 100_000,
        memories=["m"] * 100_000,
    )
    assert (len(found.summary), len(found.visible_text), len(found.entities), len(found.memories)) == (
        4_000,
        100_000,
        100,
        10,
    )


@pytest.mark.parametrize(
    ("given", "confidence"),
    [
        *(
            ("85%", 0.85),
            (" 85 % ", 0.85),
            ("0.85", 0.85),
            (0.85, 0.85),
            (85, 1.0),
            (1.7, 1.0),
            (1, 1.0),
            (0, 0.0),
            (100, 1.0),
            ("1", 1.0),
            (-3, 0.0),
        ),
        *(
            (1e400, 1.0),
            (10**400, 0.0),
            ("NaN", 0.0),
            (math.nan, 0.0),
            ("high", 0.0),
            (None, 0.0),
            (True, 0.0),
            ([0.9], 0.0),
            ({}, 0.0),
        ),
    ],
)
def test_confidence_is_brought_between_0_and_1(given, confidence):
    assert read(summary="s", confidence=given).confidence == pytest.approx(confidence)


@pytest.mark.parametrize(
    ("given", "entities"),
    [
        ([{"type": "email", "value": "a@b.example"}], [Entity("email", "a@b.example")]),
        (
            {"email": "a@b.example", "phone": ["1", 2]},
            [Entity("email", "a@b.example"), Entity("phone", "1"), Entity("phone", "2")],
        ),
        (["Lin", "Friday"], [Entity("text", "Lin"), Entity("text", "Friday")]),
        ("Lin", [Entity("text", "Lin")]),
        ([{"email": "a@b.example"}], [Entity("email", "a@b.example")]),
        ([{"type": "person", "name": "Lin"}], [Entity("person", "Lin")]),
        ([{"type": "amount", "value": 12.5}], [Entity("amount", "12.5")]),
        ([{"type": "amount", "value": ["1", "2"]}], [Entity("amount", "1"), Entity("amount", "2")]),
        ([{"value": "Lin"}], [Entity("text", "Lin")]),
        ([{"type": None, "value": "Lin"}], [Entity("text", "Lin")]),
        (
            [
                {"type": "person"},
                {"type": "person", "value": None},
                {"type": "person", "value": "  "},
                None,
                7,
            ],
            [Entity("text", "7")],
        ),
        (None, []),
        (False, []),
    ],
)
def test_entities_are_read_from_any_shape(given, entities):
    assert read(summary="s", entities=given).entities == entities


@pytest.mark.parametrize(
    ("given", "memory"),
    [
        ({"content": "Likes tea."}, MemoryCandidate("Likes tea.", "fact", "short_term", 0.5)),
        ("Likes tea.", MemoryCandidate("Likes tea.", "fact", "short_term", 0.5)),
        (
            {
                "content": "Likes tea.",
                "category": "Preference",
                "memory_type": "long-term",
                "importance": "80%",
            },
            MemoryCandidate("Likes tea.", "preference", "long_term", 0.8),
        ),
        (
            {"content": "Likes tea.", "category": "drinks", "memory_type": "forever", "importance": None},
            MemoryCandidate("Likes tea.", "fact", "short_term", 0.5),
        ),
    ],
)
def test_memories_are_read_from_any_shape(given, memory):
    assert read(summary="s", memories=[given, None, {}, {"content": ""}]).memories == [memory]


def test_a_list_of_lines_is_a_text_and_null_is_an_empty_one():
    found = read(visible_text=["one", 2, None, ["three"]], summary=None, app_name=["Mail"])
    assert (found.visible_text, found.summary, found.app_name) == ("one\n2\nthree", "", "Mail")


@pytest.mark.parametrize(
    ("given", "category"),
    [
        ("Social Media", "social_media"),
        ("CHAT", "chat"),
        ("social-media", "social_media"),
        ("meme", "other"),
        (["chat"], "chat"),
    ],
)
def test_a_category_is_recognised_in_other_spellings_and_brought_inside_the_list(given, category):
    assert read(summary="s", content_category=given).content_category == category


def test_half_characters_and_nul_are_dropped_everywhere():
    found = reading.read_findings(
        '{"app_name": "a\\ud83d", "summary": "s\\u0000\\udc00", "visible_text": "v\\ud83d\\ude00",'
        ' "entities": {"k\\ud83d": "e\\udc00"}, "memories": ["m\\ud800\\u0000"]} \ud83d\x00'
    )
    assert (found.app_name, found.summary, found.visible_text) == ("a", "s", "v😀")
    assert found.entities == [Entity("k", "e")]
    assert found.memories[0].content == "m"
    for text in (found.app_name, found.summary, found.visible_text, found.raw):
        text.encode()
        assert "\0" not in text


# ----------------------------------------------------------------------------------------------- hostile text

SLOW = {
    "values in a row": "{1}" * 250,
    "a number in each": "{1" * 3_999,
    "closing braces": "[" + '"}' * 9_999,
    "braces the wrong way round": ("]{" + "a" * 20) * 249,
    "long words between": ("]{" + "a" * 700) * 249,
    "nested": "[1," * 4_000,
    "quotes": "{" + '"' * 199_999,
    "curly quotes": '{"k":"' + "“a”" * 66_000,
}


@pytest.mark.slow
@pytest.mark.parametrize("text", SLOW.values(), ids=SLOW)
def test_nearly_json_is_repaired_for_seconds_at_most(text):
    begun = time.process_time()
    with contextlib.suppress(AnswerUnusable):
        reading.loose_json(text)
    assert time.process_time() - begun < reading.REPAIR_SECONDS + 1


@pytest.mark.parametrize("text", SLOW.values(), ids=SLOW)
def test_arguments_of_a_tool_are_repaired_for_less(text):
    begun = time.process_time()
    reading.loose_object(text)
    assert time.process_time() - begun < reading.REPAIR_SECONDS_OF_ARGUMENTS + 0.5


def test_arguments_are_repaired_up_to_a_size_and_a_depth():
    assert reading.loose_object("{query: 'tea'}") == {"query": "tea"}
    assert reading.loose_object("{query: '" + "t" * reading.MAX_REPAIRED_ARGUMENTS + "'}") == {}
    assert reading.loose_object('{"query": "' + "t" * reading.MAX_REPAIRED_ARGUMENTS + '"}')
    assert reading.loose_object("{a:" * 64 + "1" + "}" * 64)
    assert reading.loose_object("{a:" * 65 + "1" + "}" * 65) == {}


# --------------------------------------------------------------------------------------------- whatever comes

FIELDS = st.sampled_from([*sorted(reading.EXPECTED_FIELDS), "type", "value", "content", "importance", "x"])
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(), max_size=8)
    | st.sampled_from(["chat", "85%", "\0"])
)
OBJECTS = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(FIELDS, inner, max_size=4),
    max_leaves=12,
)
JUNK = st.text(alphabet='{}[]",:\\ \n`ae1-\ud800', max_size=12)


@st.composite
def nearly_json(draw):
    """What a model sends: an object with a piece cut out, junk put in, and words around it."""
    value = draw(st.just(WHOLE) | st.dictionaries(FIELDS, OBJECTS, max_size=6) | OBJECTS)
    text = json.dumps(value, ensure_ascii=draw(st.booleans()))
    first, last = sorted(draw(st.tuples(st.integers(0, len(text)), st.integers(0, len(text)))))
    if draw(st.booleans()):
        last = first
    return draw(JUNK) + text[:first] + draw(JUNK) + text[last:] + draw(JUNK)


@given(nearly_json())
def test_no_answer_breaks_the_reading_and_all_that_is_read_can_be_kept(answer):
    try:
        found = reading.read_findings(answer)
    except AnswerUnusable:
        return
    texts = [found.app_name, found.summary, found.visible_text, found.raw]
    texts += [part for entity in found.entities for part in (entity.type, entity.value)]

    assert "\0" not in "".join(texts).encode().decode()
    assert found.content_category in CATEGORIES
    assert found.intent in INTENTS
    assert 0 <= found.confidence <= 1
    assert len(found.entities) <= MAX_ENTITIES


@given(nearly_json())
def test_no_answer_breaks_the_reading_of_memories(answer):
    try:
        found = reading.read_memories(answer)
    except AnswerUnusable:
        return
    for memory in found:
        assert 0 < len(memory.content.encode().decode()) <= reading.MAX_MEMORY
        assert memory.category in reading.MEMORY_CATEGORIES
        assert memory.memory_type in reading.MEMORY_TYPES
        assert 0 <= memory.importance <= 1


@given(
    st.dictionaries(FIELDS, st.text(st.characters(exclude_categories=["Cs"]), max_size=20), min_size=1),
    st.sampled_from(["", "Here it is:\n", "<think>No { braces</think>"]),
)
def test_words_around_a_whole_object_change_nothing(fields, before):
    whole = {**fields, "summary": "Lin asks."}
    plain, wrapped = (
        reading.read_findings(text)
        for text in (json.dumps(whole), f"{before}```json\n{json.dumps(whole)}\n```")
    )

    assert wrapped.summary == plain.summary
    assert wrapped.app_name == plain.app_name
