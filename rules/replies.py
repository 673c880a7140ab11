"""The embedded model's answers in a chat, by plain rules: it searches for the words of a question, reads the
best screenshots, and quotes the lines that answer.

It uses the same protocol as a remote model: it receives messages and tools, calls a tool, receives the
result, and answers with a text. What a question asks for is in `rules/questions.py`, which lines answer it
in `rules/quotes.py`.
"""

import json
import re
import secrets
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from rules import questions, quotes, wordlists
from rules.questions import Question
from text import one_line, shortened

SEARCH, READ, SAVE, AGENDA = "search_knowledge_base", "get_screenshot", "save_memory", "agenda"
Call = dict[str, Any]  # of a tool, as the protocol has it

MAX_SINGLE = 4  # words that are searched for one by one
SHOWN = 5  # screenshots that an answer names
MAX_SHOWN = 240  # characters of each
MOST_READ = 3  # screenshots in which the answer is looked for
CLEAR = 1.15  # times as good as the next one: the answer is a single quotation
MAX_READ = 1_500  # characters of an attached picture's text that an answer repeats

_REMEMBER = re.compile(
    r"\s*(?:please\s+)?(?:remember|note|keep in mind)(?:\s+that)?[\s:,]+(?P<content>.+)",
    re.IGNORECASE | re.DOTALL,
)
_REMEMBER_CHINESE = re.compile(
    r"\s*(?:请)?(?:帮我)?(?:记住|记下|记得|记一下)[\s:：，,]*(?P<content>.+)", re.DOTALL
)

_TEXTS = wordlists.table("sentences")


def reply(
    messages: list[dict[str, Any]], offered: set[str], remembered: Sequence[str], read: Callable[[str], str]
) -> tuple[str, list[Call]]:
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
    texts = _texts(question)
    if not answers and SAVE in offered and (content := _to_remember(question)):
        return "", [_call(SAVE, content=content, memory_type="long_term")]
    period = questions.agenda_period(question)
    if AGENDA in offered and period is not None and not pictures:
        if not answers:
            return "", [_call(AGENDA, **({"period": period} if period else {}))]
        return _agenda_text(answers[-1], texts), []
    if SEARCH in offered and not pictures:
        if not answers:
            return "", _searches(asked, question)
        if READ in offered and (calls := _readings(answers)):
            return "", calls
    parts = [_picture_text(read(picture), texts) for picture in pictures]
    parts += [_memories_text(asked, remembered, texts), _answer_text(asked, answers, texts)]
    return "\n\n".join(filter(None, parts)) or texts["nothing"], []


def from_results(question: str, results: Sequence[str]) -> str:
    """An answer made of what tools found, for a model that gives none. `results` are their JSON texts, in the
    order of their calls.
    """
    texts = _texts(question)
    answers = [_read_answer(result) for result in results]
    useful = [answer for answer in answers if answer.get("results")]
    if not useful:
        return _results_text(answers[-1:], texts) or texts["nothing"]
    screenshots = [answer for answer in useful if answer.get("tool") in (SEARCH, READ)]
    saved = [answer for answer in useful if answer.get("tool") == SAVE]
    planned = [answer for answer in useful if answer.get("tool") == AGENDA]
    others = [answer for answer in useful if answer.get("tool") not in (SEARCH, READ, SAVE, AGENDA)]
    parts = [_results_text([answer], texts) for answer in saved]
    parts += [_agenda_text(answer, texts) for answer in planned]
    parts += [_results_text(screenshots, texts), _others_text(others, texts)]
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
        return [_call(SEARCH, query=word, limit=SHOWN) for word in longest]
    return []


def _searches(asked: Question, question: str) -> list[Call]:
    """Searches for all words together, and for their stems where these differ."""
    words = asked.wanted or [question.strip()]
    stems = [questions.stem(word) for word in words]
    queries = dict.fromkeys((" ".join(words), " ".join(stems)))
    return [_call(SEARCH, query=query, limit=SHOWN) for query in queries]


def _readings(answers: list[dict[str, Any]]) -> list[Call]:
    """Calls that read the best screenshots of the searches; none when they were read or nothing was found."""
    if any(answer.get("tool") == READ for answer in answers):
        return []
    found = [
        result["id"] for answer in answers if answer.get("tool") == SEARCH for result in _results(answer)
    ]
    return [_call(READ, id=number) for number in list(dict.fromkeys(found))[:MOST_READ]]


def _results(answer: dict[str, Any]) -> list[dict[str, Any]]:
    """The results of a search that name a screenshot."""
    return [result for result in answer.get("results") or [] if isinstance(result.get("id"), int)]


def _texts(question: str) -> dict[str, str]:
    texts: dict[str, str] = _TEXTS["zh" if questions.is_chinese(question) else "en"]["reply"]
    return texts


def _earlier(messages: list[dict[str, Any]]) -> list[str]:
    """What the person has asked before."""
    return [_text_and_pictures(message)[0] for message in messages if message["role"] == "user"]


def _call(name: str, **arguments: Any) -> Call:
    function = {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)}
    return {"id": f"call_{secrets.token_hex(8)}", "type": "function", "function": function}


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


def _results_text(answers: list[dict[str, Any]], texts: dict[str, str]) -> str:
    if not answers:
        return ""
    last = answers[-1]
    if error := last.get("error"):
        return texts["failed"].format(error=error)
    results = [result for answer in answers for result in answer.get("results", [])]
    if last.get("tool") == SAVE:
        return texts["saved"].format(content=results[0]["snippet"])
    if not results:
        return texts["nothing"]
    # Screenshots that several searches have found come first.
    times = Counter(result["id"] for result in results)
    found = sorted(
        {result["id"]: result for result in results}.values(), key=lambda result: -times[result["id"]]
    )
    lines = [_line(result, texts) for result in found[:SHOWN]]
    if (more := max(len(found), *(answer.get("total", 0) for answer in answers)) - len(lines)) > 0:
        lines.append(texts["more"].format(more=more))
    return "\n".join([texts["found"], "", *lines])


def _line(result: dict[str, Any], texts: dict[str, str]) -> str:
    quote = shortened(one_line(str(result.get("snippet") or result.get("summary") or "")), MAX_SHOWN)
    return f"- {_name(result, texts)}: {quote}"


def _others_text(answers: list[dict[str, Any]], texts: dict[str, str]) -> str:
    """The results of the web search and of MCP servers: a title, a snippet and perhaps an address each."""
    lines = []
    for result in [result for answer in answers for result in answer["results"]][:SHOWN]:
        heading = f"**{one_line(str(result.get('title', '')))}**"
        if address := result.get("url"):
            heading += f" ({address})"
        lines.append(f"- {heading}: {shortened(one_line(str(result.get('snippet', ''))), MAX_SHOWN)}")
    return "\n".join([texts["elsewhere"], "", *lines]) if lines else ""


def _agenda_text(answer: dict[str, Any], texts: dict[str, str]) -> str:
    """What the agenda has, each with its day and its screenshot."""
    if error := answer.get("error"):
        return texts["failed"].format(error=error)
    results = _results(answer)
    if not results:
        return texts["free"]
    lines = [
        f"- {str(result.get('starts_at', '')).replace('T', ' ')}: **{result.get('title')}** (#{result['id']})"
        for result in results
    ]
    if (more := answer.get("total", 0) - len(lines)) > 0:
        lines.append(texts["more"].format(more=more))
    return "\n".join([texts["agenda"], "", *lines])


def _picture_text(text: str, texts: dict[str, str]) -> str:
    if not text.strip():
        return texts["blank"]
    quoted = "\n".join(f"> {line}" for line in text.strip()[:MAX_READ].splitlines())
    return f"{texts['picture']}\n\n{quoted}"


def _answer_text(asked: Question, answers: list[dict[str, Any]], texts: dict[str, str]) -> str:
    """The lines that answer, with their screenshots; or that nothing was found."""
    searches = [answer for answer in answers if answer.get("tool") == SEARCH]
    read = {
        result["id"]: result
        for answer in answers
        if answer.get("tool") == READ
        for result in _results(answer)
    }
    if not searches or (not read and any(answer.get("error") for answer in answers)):
        return _results_text(answers, texts)
    found = {result["id"]: result for answer in searches for result in _results(answer)}
    quoted = [
        (quotes.best(asked, _text_of(result)), result)
        for number, result in (found | read).items()
        if number in found
    ]
    quoted = sorted((pair for pair in quoted if pair[0].score > 0), key=lambda pair: -pair[0].score)
    if not quoted:
        return _near_text(searches, texts)
    (first, on), others = quoted[0], quoted[1:]
    total = max(answer.get("total", 0) for answer in searches)
    if others and first.score < CLEAR * others[0][0].score:
        lines = [_quoted_line(quote, result, texts) for quote, result in quoted[:SHOWN]]
        if (more := total - len(lines)) > 0:
            lines.append(texts["more"].format(more=more))
        return "\n".join([texts["several"], "", *lines])
    parts = [texts["on"].format(name=_name(on, texts)), "\n".join(f"> {line}" for line in first.lines)]
    if not first.has_wish and (sentence := texts.get(f"no {asked.wish}")):
        parts.append(sentence.format(day=_day(on)))
    if others:
        parts.append(
            texts["also"].format(names=", ".join(_name(result, texts) for _, result in others[:SHOWN]))
        )
    return "\n\n".join(parts)


def _near_text(searches: list[dict[str, Any]], texts: dict[str, str]) -> str:
    """What is close in meaning, if anything probably is; else that nothing was found."""
    near = [result for answer in searches for result in answer.get("closest_in_meaning") or []]
    near = list({result["id"]: result for result in near if result.get("grade") == "probable"}.values())
    if not near:
        return texts["nothing"]
    return "\n".join([texts["near"], "", *(_line(result, texts) for result in near[:MOST_READ])])


def _text_of(result: dict[str, Any]) -> str:
    return str(result.get("visible_text") or result.get("snippet") or result.get("summary") or "")


def _quoted_line(quote: quotes.Quote, result: dict[str, Any], texts: dict[str, str]) -> str:
    return f"- {_name(result, texts)}: {shortened(' / '.join(quote.lines), MAX_SHOWN)}"


def _name(result: dict[str, Any], texts: dict[str, str]) -> str:
    day = f" ({day})" if (day := _day(result)) else ""
    return f"#{result.get('id')} **{result.get('title') or texts['untitled']}**{day}"


def _day(result: dict[str, Any]) -> str:
    return str(result.get("taken") or "")[:10]


def _memories_text(asked: Question, remembered: Sequence[str], texts: dict[str, str]) -> str:
    """The memories that share a word with the question; some are recalled only for their importance."""
    wanted = {questions.stem(word).casefold() for word in asked.wanted}
    known = [text for text in remembered if any(word in text.casefold() for word in wanted if len(word) > 1)]
    return "\n".join([texts["remembered"], "", *(f"- {text}" for text in known)]) if known else ""
