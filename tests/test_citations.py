"""What an answer rests on: the lines of screenshots that say what it says."""

import json
from types import SimpleNamespace

import pytest

import database
import gate
import readings
from app import create_app
from database import db
from engines.lines import Line, Page
from models import Analysis
from tests.support.client import Client
from tests.support.drawing import draw

TICKET = (
    *("9:41", "Nordwind Air", "Flight NW 482", "Departure", "04 DEC 2026 07:10", "Seat 12A"),
    *("Total €84.50", "Reference 84502211"),
)
BILL = ("9:41", "Northlight Energy", "Amount due $61.20", "Due Dec 7, 2026", "Account 8841-2207")
CARD = ("My cards", "Card number 4242 4242 4242 4242", "Limit €5,000.00")


@pytest.fixture
def house(remote, fake_llm):
    """A service with a remote model: `house.add(lines)` is the id of a photo on which they were read, and
    `house.ask(answer, *ids)` are the citations of an answer, before which the model has read these photos.
    """
    client = Client(create_app(remote))

    def add(lines):
        text = "\n".join(lines)
        photo_id = client.upload(draw(text)).json["id"]
        rows = [
            Line(row, 0.99, 40, 100 * at + 20, 40 + 16 * len(row), 100 * at + 52)
            for at, row in enumerate(lines)
        ]
        with database.scope(), db.atomic():
            readings.save(photo_id, Page(720, 1280, rows), reader="small")
            Analysis.update(visible_text=text, status="done").where(Analysis.photo == photo_id).execute()
            gate.mark(photo_id, text)
        return photo_id

    def ask(answer, *photo_ids):
        calls = [
            {
                "id": f"call_{one}",
                "type": "function",
                "function": {"name": "get_screenshot", "arguments": json.dumps({"id": one})},
            }
            for one in photo_ids
        ]
        if calls:
            fake_llm.answer(None, tool_calls=calls, finish_reason="tool_calls")
        fake_llm.answer(answer)
        reply = client.post("/api/chat/send", json={"message": "Well?"}).json
        stored = client.get(f"/api/chat/conversations/{reply['conversation_id']}").json["messages"]
        assert stored[-1]["citations"] == reply["message"]["citations"]
        assert all(message["citations"] == [] for message in stored[:-1])
        return reply["message"]["citations"]

    return SimpleNamespace(client=client, add=add, ask=ask)


def lines_of(citations, photo_id):
    return sorted(
        {line for citation in citations if citation["photo_id"] == photo_id for line in citation["lines"]}
    )


@pytest.mark.parametrize(
    ("answer", "lines"),
    [
        ("You paid **€84.50** for it.", [6]),
        ("It says “Nordwind Air” on top.", [1]),
        ("Your seat is 12A.", [5]),
        ("You leave on 4 December 2026.", [4]),
        ("航班是 2026年12月4日。", [4]),
        ("> Flight NW 482", [2]),
    ],
)
def test_the_words_of_a_remote_model_are_found_on_the_lines(house, answer, lines):
    ticket = house.add(TICKET)
    citations = house.ask(answer, ticket)
    assert lines_of(citations, ticket) == lines
    box = citations[0]["boxes"][0]
    assert box["top"] == pytest.approx((100 * lines[0] + 20) / 1280, abs=1e-4)
    assert box["left"] == pytest.approx(40 / 720, abs=1e-4)


@pytest.mark.parametrize(
    "answer",
    [
        "It costs about €99.00.",
        "That is a pleasant airline.",
        "Your number is 8450.",  # a part of a longer one
        "It was 9:41.",  # the status bar's clock
        "You leave on 5 December 2026.",
    ],
)
def test_what_is_on_no_line_has_no_citation(house, answer):
    assert house.ask(answer, house.add(TICKET)) == []


def test_an_answer_without_tools_cites_nothing(house):
    house.add(TICKET)
    assert house.ask("You paid **€84.50**.") == []


def test_each_value_is_cited_on_the_screenshot_that_has_it(house):
    ticket, bill = house.add(TICKET), house.add(BILL)
    citations = house.ask("The flight was **€84.50**, the bill is **$61.20**.", ticket, bill)
    assert lines_of(citations, ticket) == [6]
    assert lines_of(citations, bill) == [2]


def test_a_paragraph_that_names_a_screenshot_is_about_that_one(house):
    first, second = house.add(BILL), house.add((*BILL, "Second reminder"))
    citations = house.ask(f"Pay **$61.20** (#{second}).", first, second)
    assert lines_of(citations, first) == []
    assert lines_of(citations, second) == [2]


def test_what_the_gate_withholds_is_not_cited(house):
    card = house.add(CARD)
    assert house.ask("The limit is **€5,000.00**, of 4242 4242 4242 4242.", card) == []
    assert house.client.patch(f"/api/photos/{card}", json={"sensitive": []}).status_code == 200
    assert lines_of(house.ask("The limit is **€5,000.00**.", card), card) == [2]


def test_a_long_answer_has_few_citations(house):
    ids = [house.add((f"Shop {number}", f"Total €{number}.{number}5")) for number in range(11, 21)]
    answer = "\n".join(f"- **€{number}.{number}5**" for number in range(11, 21))
    assert len(house.ask(answer, *ids[:8])) == 6


def test_a_chat_whose_last_answer_cites_a_sensitive_screenshot_is_covered_in_the_list(house):
    """Its words alone may look harmless, as a password does."""
    ticket = house.add(TICKET)
    house.ask("It is **€84.50**.", ticket)
    listed = lambda: house.client.get("/api/chat/conversations").json["conversations"][0]  # noqa: E731
    assert listed()["sensitive"] == []
    with database.scope(), db.atomic():
        gate.mark(ticket, "\n".join(CARD))
    assert listed()["sensitive"] == ["card"]
