"""The part of a conversation that is sent: it fits, has no gaps, and no tool's answer lacks its call."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant import context

TEXTS = st.text(alphabet="ab {}\n中é", max_size=200) | st.integers(0, 3_000).map(lambda size: "long " * size)


@st.composite
def turns(draw):
    """A turn in the protocol's form: the person's message, rounds of calls with their results, the answer."""
    messages = [{"role": "user", "content": draw(TEXTS)}]
    if draw(st.booleans()):
        messages[0]["content"] = [
            {"type": "text", "text": messages[0]["content"]},
            {"type": "image_url", "image_url": {"url": "data:"}},
        ]
    for number in range(draw(st.integers(0, 2))):
        call = {"id": f"call{number}", "type": "function", "function": {"name": "find", "arguments": "{}"}}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append(
            {"role": "tool", "tool_call_id": f"call{number}", "content": f"<frame>\n{draw(TEXTS)}\n</frame>"}
        )
    return [*messages, {"role": "assistant", "content": draw(TEXTS)}]


def sized(history):
    return [context.Sized(turn, context.tokens(turn)) for turn in history]


def flat(history):
    return [message for turn in history for message in turn]


@given(earlier=st.lists(turns(), max_size=6), present=turns(), most=st.integers(0, 8_000))
def test_a_fitted_history_is_the_latest_turns_whole_and_the_present_one(earlier, present, most):
    sent = context.fit(sized(earlier), present, most)
    kept = len(sent) - len(present)
    ends = [len(flat(earlier[first:])) for first in range(len(earlier) + 1)]

    assert kept in ends
    assert sent[:kept] == flat(earlier)[len(flat(earlier)) - kept :]
    assert [message["role"] for message in sent[kept:]] == [message["role"] for message in present]
    if context.tokens(present) <= most:
        assert sent[kept:] == present
        assert context.tokens(sent) <= most


@given(earlier=st.lists(turns(), max_size=6), present=turns(), most=st.integers(0, 8_000))
def test_the_turn_that_would_have_come_next_does_not_fit(earlier, present, most):
    sent = context.fit(sized(earlier), present, most)
    dropped = len(flat(earlier)) + len(present) - len(sent)
    last = next(
        (turn for place, turn in enumerate(earlier) if len(flat(earlier[: place + 1])) == dropped), None
    )

    assert (last is None) == (dropped == 0)
    if last is not None and context.tokens(present) <= most:
        assert context.tokens([*last, *sent]) > most


@given(present=turns(), most=st.integers(0, 8_000))
def test_only_the_tools_answers_are_cut_and_their_frames_stay_closed(present, most):
    before = [dict(message) for message in present]
    sent = context.fit([], present, most)

    assert present == before
    for original, message in zip(present, sent, strict=True):
        if message != original:
            assert message["role"] == "tool"
            assert len(message["content"]) < len(original["content"])
            assert message["content"].endswith("\n</frame>")
    tools = [message["content"] for message in sent if message["role"] == "tool"]
    assert context.tokens(sent) <= most or all(len(content) < context.SHORTEST for content in tools)


def test_of_several_versions_the_first_that_fits_is_sent():
    long, short = [{"role": "user", "content": "long " * 100}], [{"role": "user", "content": "short"}]

    assert context.first_fitting([long, short], 1_000).messages == long
    assert context.first_fitting([long, short], 20).messages == short
    assert context.first_fitting([long, short], 5) is None


@pytest.mark.parametrize(
    ("value", "tokens"),
    [
        ("", 0),
        ("a" * 7, 2),
        ("a" * 8, 3),
        ("中" * 5, 5),
        ("中文 ab", 3),
        ("é" * 13, 10),
        ("é" * 14, 11),
        ({"a": 1}, 3),
        ({"role": "user", "content": "a" * 7}, 15),
        ({"role": "user", "content": None}, 13),
        (
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "a" * 7},
                    {"type": "image_url", "image_url": {"url": "data:"}},
                ],
            },
            1615,
        ),
        ([{"role": "user", "content": "a" * 7}] * 2, 30),
        ([], 1),
    ],
)
def test_tokens_are_estimated_by_the_kind_of_character(value, tokens):
    assert context.tokens(value) == tokens


def test_what_fits_to_the_token_is_sent():
    earlier, present = [{"role": "user", "content": "a" * 7}], [{"role": "user", "content": "b" * 7}]

    assert context.fit(sized([earlier]), present, 30) == [*earlier, *present]
    assert context.fit(sized([earlier]), present, 29) == present
    assert context.first_fitting([[*earlier, *present], present], 30).messages == [*earlier, *present]
    assert context.first_fitting([[*earlier, *present], present], 29).messages == present


@pytest.mark.parametrize(
    ("length", "most", "left"),
    [(1_000, 400, 1_000), (1_000, 250, 500), (1_000, 30, 250), (400, 30, 200), (399, 30, 399)],
)
def test_a_tools_answer_is_halved_until_it_fits_or_is_short(length, most, left):
    frame = "\n</frame>"
    answer = {"role": "tool", "tool_call_id": "call", "content": "a" * (length - len(frame)) + frame}
    [sent] = context.fit([], [answer], most)

    cut = sent["content"].removesuffix(frame)
    assert sent["content"].endswith(frame)
    assert abs(len(cut.removesuffix("… (cut)")) - left) < 12
    assert cut.endswith("… (cut)") == (left < length)
