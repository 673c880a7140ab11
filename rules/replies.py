"""The embedded model's turns in a chat, by plain rules: it searches for the words of a question, reads the
best screenshots, and answers with the value or the lines that it finds.

It uses the same protocol as a remote model: it receives messages and tools, calls a tool, receives the
result, and answers with a text. What a question asks for is in `rules/questions.py`, which lines answer it
in `rules/quotes.py`, and what the answer says in `rules/answers.py` and `rules/ahead.py`.
"""

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from rules import facts, questions, wordlists
from rules.ahead import planned, planned_text, steps, told, under_way
from rules.answers import (
    AGENDA,
    READ,
    RECORDS,
    SAVE,
    SEARCH,
    SHOWN,
    THREADS,
    Call,
    Reply,
    answered,
    call,
    found_text,
    memories_text,
    others_text,
    results_of,
    taken_text,
    texts_of,
)
from rules.questions import Question

MAX_SINGLE = 4  # words that are searched for one by one
MOST_READ = 5  # screenshots in which the answer is looked for
MOST_TAKEN = 12  # screenshots of a time
MAX_READ = 1_500  # characters of an attached picture's text that an answer repeats

_ASKS = [
    rf"\s*(?:{polite}){{0,2}}(?:{asking})[\s:：，,]*(?P<content>.+)"
    for polite, asking in wordlists.table("questions")["remember"]
]
_REMEMBER = re.compile(_ASKS[0], re.IGNORECASE | re.DOTALL)
_REMEMBER_CHINESE = re.compile(_ASKS[1], re.DOTALL)
_NAMED = re.compile(r"#(\d+) \*\*")


def reply(
    messages: list[dict[str, Any]], offered: set[str], remembered: Sequence[str], read: Callable[[str], str]
) -> Reply:
    """A text, or calls of some of the `offered` tools.

    `messages` are those of the protocol; the tools' answers after the last user message belong to this turn.
    `remembered` are memories that may matter. `read` returns the text on a picture, given its data URL.
    """
    place = max(number for number, message in enumerate(messages) if message["role"] == "user")
    question, pictures = _text_and_pictures(messages[place])
    answers = [
        _read_answer(message["content"]) for message in messages[place + 1 :] if message["role"] == "tool"
    ]
    asked = questions.understand(question, _earlier(messages[:place]))
    texts = texts_of(question)
    if not answers and SAVE in offered and (content := _to_remember(question)):
        return Reply(calls=[call(SAVE, content=content, memory_type="long_term")])
    if not answers and not pictures and questions.greets(question):
        return Reply(texts["greeting"])
    before = _named_before(messages[:place])
    left_out = before if asked.is_other else set()
    kept = before if asked.follows and not asked.is_other else set()
    started = under_way(asked, _earlier(messages[:place])) if not pictures else None
    period = questions.agenda_period(question)
    if AGENDA in offered and period is not None and not (pictures or asked.subject or started):
        if not answers:
            return Reply(calls=[call(AGENDA, **({"period": period} if period else {}))])
        return planned(question, answers[-1], texts)
    since = questions.saved_since(question)
    if SEARCH in offered and since and not pictures:
        if not answers:
            return Reply(calls=[call(SEARCH, since=since, limit=MOST_TAKEN)])
        return Reply(taken_text(answers[-1], texts))
    if started is not None and {RECORDS, THREADS, AGENDA} <= offered:
        calls = steps(started)
        if not answers:
            return Reply(calls=calls)
        if len(answers) == len(calls):
            own = left_out if started is not asked else set()
            if (said := told(started, answers, texts, own)) is not None:
                return said
        answers = answers[len(calls) :]
    if SEARCH in offered and not pictures:
        if not answers:
            return Reply(calls=_searches(asked, question) + (_listings(asked) if RECORDS in offered else []))
        if READ in offered and (calls := _readings(answers, left_out, kept)):
            return Reply(calls=calls)
    parts = [_picture_text(read(picture), texts) for picture in pictures]
    answer = answered(asked, answers, texts, left_out, kept)
    parts += [memories_text(asked, remembered, texts), answer.text]
    return Reply("\n\n".join(filter(None, parts)) or texts["nothing"], [], answer.sources)


def from_results(question: str, results: Sequence[str]) -> str:
    """An answer made of what tools found, for a model that gives none. `results` are their JSON texts, in the
    order of their calls.
    """
    texts = texts_of(question)
    answers = [_read_answer(result) for result in results]
    useful = [answer for answer in answers if answer.get("results")]
    if not useful:
        return found_text(answers[-1:], texts) or texts["nothing"]
    screenshots = [answer for answer in useful if answer.get("tool") in (SEARCH, READ)]
    saved = [answer for answer in useful if answer.get("tool") == SAVE]
    planned = [answer for answer in useful if answer.get("tool") == AGENDA]
    others = [answer for answer in useful if answer.get("tool") not in (SEARCH, READ, SAVE, AGENDA)]
    parts = [found_text([answer], texts) for answer in saved]
    language = "zh" if questions.is_chinese(question) else "en"
    parts += [planned_text(answer, texts, language) for answer in planned]
    parts += [found_text(screenshots, texts), others_text(others, texts)]
    return "\n\n".join(filter(None, parts))


def next_searches(question: str, answers: list[dict[str, Any]]) -> list[Call]:
    """The searches for a model that calls no tools itself: first for the words of the question together, and
    if nothing is found, for each. `answers` are the results of the searches so far.
    """
    asked = questions.understand(question)
    if not answers:
        return _searches(asked, question)
    searched = all(answer.get("tool") == SEARCH and not answer.get("results") for answer in answers)
    if searched and len(answers) <= 2 and len(asked.words) > 1:
        longest = sorted(asked.words, key=len, reverse=True)[:MAX_SINGLE]
        return [call(SEARCH, query=word, limit=SHOWN) for word in longest]
    return []


def _searches(asked: Question, question: str) -> list[Call]:
    """Searches for all words together, and for their stems where these differ."""
    words = asked.wanted or [question.strip()]
    stems = [questions.stem(word) for word in words]
    queries = dict.fromkeys((" ".join(words), " ".join(stems)))
    if asked.wish == "count" and not asked.wanted:
        queries = {"": None}  # all of them
    return [call(SEARCH, query=query, limit=SHOWN) for query in queries]


def _listings(asked: Question) -> list[Call]:
    """The call that lists the records that a question is about: those of a type, or those to sum up."""
    types = facts.types_in(asked)
    if not types and not questions.wants_sum(asked):
        return []
    arguments = {"period": questions.span_of(asked.text), "type": types[0] if types else ""}
    if questions.wants_sum(asked):
        arguments["text"] = " ".join(word for word in asked.wanted if not questions.span_of(f"in {word}"))
    given = {name: value for name, value in arguments.items() if value}
    return [call(RECORDS, limit=SHOWN, **given)]


def _named_before(messages: list[dict[str, Any]]) -> set[int]:
    """The screenshot that the last answer is about, which is named first."""
    said = (one["content"] for one in reversed(messages) if one["role"] == "assistant" and one.get("content"))
    named = _NAMED.search(str(next(said, "")))
    return {int(named[1])} if named else set()


def _readings(answers: list[dict[str, Any]], left_out: set[int], kept: set[int]) -> list[Call]:
    """Calls that read the best screenshots of the searches, after `kept` ones; none when they were read or
    nothing was found.
    """
    if any(answer.get("tool") == READ for answer in answers):
        return []
    found = [
        result["id"] for answer in answers if answer.get("tool") == SEARCH for result in results_of(answer)
    ]
    found = [number for number in dict.fromkeys([*kept, *found]) if number not in left_out]
    return [call(READ, id=number) for number in found[:MOST_READ]]


def _earlier(messages: list[dict[str, Any]]) -> list[str]:
    """What the person has asked before."""
    return [_text_and_pictures(message)[0] for message in messages if message["role"] == "user"]


def _text_and_pictures(message: dict[str, Any]) -> tuple[str, list[str]]:
    content = message["content"]
    if isinstance(content, str):
        return content, []
    texts = [part["text"] for part in content if part["type"] == "text"]
    return "\n".join(texts), [part["image_url"]["url"] for part in content if part["type"] == "image_url"]


def _to_remember(message: str) -> str:
    """What a message asks to remember, or "". A question is no such request."""
    match = _REMEMBER.fullmatch(message) or _REMEMBER_CHINESE.fullmatch(message)
    return match["content"].strip() if match and not message.rstrip().endswith(("?", "？")) else ""


def _read_answer(content: str) -> dict[str, Any]:
    """The JSON of a tool's answer, inside its frame; an empty object when it was cut."""
    try:
        answer: dict[str, Any] = json.loads(content[content.index("{") : content.rindex("}") + 1])
    except ValueError:
        return {}
    return answer


def _picture_text(text: str, texts: dict[str, str]) -> str:
    if not text.strip():
        return texts["blank"]
    quoted = "\n".join(f"> {line}" for line in text.strip()[:MAX_READ].splitlines())
    return f"{texts['picture']}\n\n{quoted}"
