"""The embedded model's answers in a chat, by plain rules: it searches for the words of a question, reads the
best screenshots, and quotes the lines that answer.

It uses the same protocol as a remote model: it receives messages and tools, calls a tool, receives the
result, and answers with a text. What a question asks for is in `rules/questions.py`, which lines answer it
in `rules/quotes.py`.

More than 550 lines, because each kind of question is answered in the same few forms.
"""

import json
import re
import secrets
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

from engines.findings import Source
from engines.records import Record, checked
from rules import facts, questions, quotes, templates, wordlists
from rules.questions import Question
from text import one_line, shortened

SEARCH, READ, SAVE, AGENDA = "search_knowledge_base", "get_screenshot", "save_memory", "agenda"
RECORDS, THREADS = "list_records", "list_threads"
Call = dict[str, Any]  # of a tool, as the protocol has it

MAX_SINGLE = 4  # words that are searched for one by one
SHOWN = 5  # screenshots that an answer names
MAX_SHOWN = 240  # characters of each
MOST_READ = 3  # screenshots in which the answer is looked for
MOST_TAKEN = 12  # screenshots of a time
LABELLED = 0.8  # how well the value of a label answers that the question names
CLEAR = 1.15  # times as good as the next one: the answer is a single quotation
MAX_READ = 1_500  # characters of an attached picture's text that an answer repeats

_REMEMBER = re.compile(
    r"\s*(?:please\s+)?(?:remember|note|keep in mind)(?:\s+that)?[\s:,]+(?P<content>.+)",
    re.IGNORECASE | re.DOTALL,
)
_REMEMBER_CHINESE = re.compile(
    r"\s*(?:请)?(?:帮我)?(?:记住|记下|记得|记一下)[\s:：，,]*(?P<content>.+)", re.DOTALL
)

_NAMED = re.compile(r"#(\d+) \*\*")
_MANY = re.compile(r"\bhow many\b|多少|几")
_TEXTS = wordlists.table("sentences")


class Reply(NamedTuple):
    """A text with where it is from, or calls of tools."""

    text: str = ""
    calls: list[Call] = []  # noqa: RUF012 - nobody appends to it
    sources: list[Source] = []  # noqa: RUF012


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
    texts = _texts(question)
    if not answers and SAVE in offered and (content := _to_remember(question)):
        return Reply(calls=[_call(SAVE, content=content, memory_type="long_term")])
    if not answers and not pictures and questions.greets(question):
        return Reply(texts["greeting"])
    period = questions.agenda_period(question)
    if AGENDA in offered and period is not None and not (pictures or asked.subject):
        if not answers:
            return Reply(calls=[_call(AGENDA, **({"period": period} if period else {}))])
        return _agenda(question, answers[-1], texts)
    since = questions.saved_since(question)
    if SEARCH in offered and since and not pictures:
        if not answers:
            return Reply(calls=[_call(SEARCH, since=since, limit=MOST_TAKEN)])
        return Reply(_taken_text(answers[-1], texts))
    left_out = _named_before(messages[:place]) if asked.is_other else set()
    started = _started(asked, _earlier(messages[:place])) if not pictures else None
    if started is not None and {RECORDS, THREADS} <= offered:
        own = left_out if started is not asked else set()
        if not answers:
            return Reply(calls=[_step(started)])
        if answers[-1].get("tool") in (RECORDS, THREADS) and len(answers) == 1:
            told = _progress(started, answers[0], texts, own) or _coming(started, answers[0], texts, own)
            if told is not None:
                return told
        answers = answers[1:]
    if SEARCH in offered and not pictures:
        if not answers:
            return Reply(calls=_searches(asked, question) + (_listings(asked) if RECORDS in offered else []))
        if READ in offered and (calls := _readings(answers, left_out)):
            return Reply(calls=calls)
    parts = [_picture_text(read(picture), texts) for picture in pictures]
    answer = _answer(asked, answers, texts, left_out)
    parts += [_memories_text(asked, remembered, texts), answer.text]
    return Reply("\n\n".join(filter(None, parts)) or texts["nothing"], [], answer.sources)


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
    language = "zh" if questions.is_chinese(question) else "en"
    parts += [_agenda_text(answer, texts, language) for answer in planned]
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
    if asked.wish == "count" and not asked.wanted:
        queries = {"": None}  # all of them
    return [_call(SEARCH, query=query, limit=SHOWN) for query in queries]


def _listings(asked: Question) -> list[Call]:
    """The call that lists the records that a question is about: those of a type, or those to sum up."""
    types = facts.types_in(asked)
    if not types and not questions.wants_sum(asked):
        return []
    arguments = {"period": questions.span_of(asked.text), "type": types[0] if types else ""}
    if questions.wants_sum(asked):
        arguments["text"] = " ".join(word for word in asked.wanted if not questions.span_of(f"in {word}"))
    given = {name: value for name, value in arguments.items() if value}
    return [_call(RECORDS, limit=SHOWN, **given)]


def _started(asked: Question, earlier: list[str]) -> Question | None:
    """The question about what is under way or comes next: this one, or the one that it goes on about."""
    for one in [asked, *(questions.understand(text) for text in reversed(earlier) if asked.is_other)]:
        if questions.thread_of(one) or (questions.wants_next(one) and facts.types_in(one)):
            return one
    return None


def _step(asked: Question) -> Call:
    """The call that answers such a question."""
    if kind := questions.thread_of(asked):
        text = " ".join(questions.names_in(asked))
        return _call(THREADS, type=kind, **({"text": text} if text else {}))
    return _call(RECORDS, type=facts.types_in(asked)[0], period="ahead", limit=MOST_TAKEN)


def _progress(
    asked: Question, answer: dict[str, Any], texts: dict[str, str], left_out: set[int]
) -> Reply | None:
    """How far orders, parcels and bills are; None where there is none. Of what is over only the newest."""
    states = wordlists.table("news")["zh" if asked.is_chinese else "en"]
    found = [
        one for one in _of_tool(answer, THREADS) if one["id"] not in left_out and one.get("state") in states
    ]
    if not found:
        return None
    shown = [one for one in found if one["is_open"]][:SHOWN] or found[:1]
    said = [states["title"].format(name=one["title"], state=states[one["state"]]) for one in shown]
    sources = [
        Source(one["id"], text, list(filter(None, [one["snippet"]])))
        for one, text in zip(shown, said, strict=True)
    ]
    names = [_name({**one, "title": one["screenshot"]}, texts) for one in shown]
    if len(shown) > 1:
        lines = [f"- {name}: **{text}**" for name, text in zip(names, said, strict=True)]
        return Reply("\n".join([texts["several"], "", *lines]), [], sources)
    parts = _with_value(said[0], names[0], filter(None, [shown[0]["snippet"]]), texts)
    return Reply("\n\n".join(parts), [], sources)


def _coming(
    asked: Question, answer: dict[str, Any], texts: dict[str, str], left_out: set[int]
) -> Reply | None:
    """The next record of those that are to come; None where there is none. `left_out` are screenshots of one
    that is not asked for, which others may be of, too.
    """
    results = _of_tool(answer, RECORDS)
    before = {one["title"] for one in results if one["id"] in left_out}
    one = next((one for one in results if one["title"] not in before), None)
    records = _records_of(one) if one is not None else []
    if one is None or not records:
        return None
    language = "zh" if asked.is_chinese else "en"
    fact = facts.answer(asked, records, language)
    is_field = fact is not None and fact.worth == facts.NAMED and fact.field != "number"
    value = fact.value if fact is not None and is_field else templates.line(records[0], language)
    name = fact.field if fact is not None else ""
    words = [field.text for record in records for field in record.fields if field.name == name][:1]
    source = Source(one["id"], value, words, records[0].type, name)
    parts = _with_value(value, _name(one, texts), map(one_line, words), texts)
    return Reply("\n\n".join(parts), [], [source])


def _named_before(messages: list[dict[str, Any]]) -> set[int]:
    """The screenshot that the last answer is about, which is named first."""
    said = (one["content"] for one in reversed(messages) if one["role"] == "assistant" and one.get("content"))
    named = _NAMED.search(str(next(said, "")))
    return {int(named[1])} if named else set()


def _readings(answers: list[dict[str, Any]], left_out: set[int]) -> list[Call]:
    """Calls that read the best screenshots of the searches; none when they were read or nothing was found."""
    if any(answer.get("tool") == READ for answer in answers):
        return []
    found = [
        result["id"] for answer in answers if answer.get("tool") == SEARCH for result in _results(answer)
    ]
    found = [number for number in dict.fromkeys(found) if number not in left_out]
    return [_call(READ, id=number) for number in found[:MOST_READ]]


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


def _agenda(question: str, answer: dict[str, Any], texts: dict[str, str]) -> Reply:
    """What is in the agenda; of the kinds only that the question names."""
    kinds = questions.names_of(questions.PLANNED, question.casefold())
    results = [result for result in _results(answer) if not kinds or result.get("kind") in kinds]
    if kinds and not answer.get("error"):
        answer = {**answer, "results": results, "total": len(results)}
    sources = [
        Source(result["id"], str(result.get("title") or ""), [str(result.get("snippet") or "")])
        for result in results
    ]
    language = "zh" if questions.is_chinese(question) else "en"
    return Reply(_agenda_text(answer, texts, language), [], sources)


def _taken_text(answer: dict[str, Any], texts: dict[str, str]) -> str:
    """The screenshots of a time, the newest first."""
    if error := answer.get("error"):
        return texts["failed"].format(error=error)
    results = _results(answer)
    if not results:
        return texts["none taken"]
    lines = [f"- {_name(result, texts)}" for result in results]
    if (more := answer.get("total", 0) - len(lines)) > 0:
        lines.append(texts["more"].format(more=more))
    count = max(answer.get("total", 0), len(results))
    return "\n".join([texts["taken"].format(count=count), "", *lines])


def _agenda_text(answer: dict[str, Any], texts: dict[str, str], language: str) -> str:
    """What the agenda has, each with its day and its screenshot."""
    if error := answer.get("error"):
        return texts["failed"].format(error=error)
    results = _results(answer)
    if not results:
        return texts["free"]
    lines = [
        f"- {templates.when(str(result.get('starts_at', '')), language)}: {_listed_name(result)}"
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


def _answer(
    asked: Question, answers: list[dict[str, Any]], texts: dict[str, str], left_out: set[int]
) -> Reply:
    """What answers, from records before lines, with its screenshots; or that nothing was found. Screenshots
    in `left_out` are not asked for.
    """
    searches = [answer for answer in answers if answer.get("tool") == SEARCH]
    read = {result["id"]: result for answer in answers for result in _of_tool(answer, READ)}
    listed = {result["id"]: result for answer in answers for result in _of_tool(answer, RECORDS)}
    if not searches or (not read and any(answer.get("error") for answer in answers)):
        return Reply(_results_text(answers, texts))
    if counted := _counted(asked, answers, texts):
        return counted
    found = {result["id"]: result for answer in searches for result in _results(answer)}
    candidates = [_judged(asked, result) for result in (listed | found | read).values()]
    candidates = sorted(
        (one for one in candidates if one.quote.score > 0 and one.result["id"] not in left_out),
        key=lambda one: -one.score,
    )
    candidates = [one for one in candidates if _is_certain(asked, one)]
    if not candidates:
        return Reply(_near_text(searches, texts))
    first, others = candidates[0], candidates[1:]
    near = [one for one in others if first.score < CLEAR * one.score]
    total = max(answer.get("total", 0) for answer in searches)
    if near and not (first.value and all(one.value == first.value for one in near)):
        shown = [one for one in candidates[:SHOWN] if one.value or not first.value]
        lines = [_short(one, texts) for one in shown]
        if (more := total - len(lines)) > 0 and not first.value:
            lines.append(texts["more"].format(more=more))
        return Reply("\n".join([texts["several"], "", *lines]), [], list(map(_source, shown)))
    return Reply("\n\n".join(_single(asked, first, texts)), [], [_source(first)])


def _is_certain(asked: Question, one: "_Candidate") -> bool:
    """Whether a screenshot says what is asked. For a day or an amount, an answer may also say that none is
    there.
    """
    return bool(one.value or one.quote.has_wish) or asked.wish in ("", "count", "when", "amount")


def _source(one: "_Candidate") -> Source:
    photo_id = one.result["id"]
    if one.fact is not None:
        words = one.fact.text.splitlines() or [one.fact.value]
        return Source(photo_id, one_line(one.fact.value), words, one.fact.type, one.fact.field)
    if one.quote.value:
        return Source(photo_id, one.quote.value, [one.quote.value])
    words = [one.quote.answer] if one.quote.answer else one.quote.lines
    return Source(photo_id, " / ".join(words), words)


class _Candidate(NamedTuple):
    """A screenshot that may answer, the lines and the field of a record that do."""

    result: dict[str, Any]
    quote: quotes.Quote
    fact: facts.Fact | None

    @property
    def score(self) -> float:
        worth = self.fact.worth if self.fact else 0.0
        return self.quote.score + max(worth, LABELLED if self.quote.value else 0.0)

    @property
    def value(self) -> str:
        """What answers, by itself; "" where only lines do."""
        return self.fact.value if self.fact else self.quote.value


def _judged(asked: Question, result: dict[str, Any]) -> _Candidate:
    records = _records_of(result)
    language = "zh" if asked.is_chinese else "en"
    about = [str(result.get(name) or "") for name in ("title", "app", "summary")]
    about += [facts.names(record) for record in records]
    text = (
        ""
        if "visible_text" in result
        else "\n".join(field.text for record in records for field in record.fields)
    )
    quote = quotes.best(asked, text or _text_of(result), " ".join(about))
    fact = facts.answer(asked, records, language)
    if fact and fact.worth < LABELLED and quote.value:
        fact = None  # the question names the label, and no field of a record
    return _Candidate(result, quote, fact)


def _records_of(result: dict[str, Any]) -> list[Record]:
    try:
        found = msgspec.convert(result.get("records") or [], list[Record])
    except msgspec.ValidationError:
        return []
    return [record for one in found if (record := checked(one)) is not None]


def _single(asked: Question, one: _Candidate, texts: dict[str, str]) -> list[str]:
    """The answer of one screenshot: the value first, then where it is."""
    name = _name(one.result, texts)
    if one.fact is not None and "\n" in one.fact.value:
        return [texts["entries"].format(name=name), one.fact.value]
    if one.fact is not None:
        quoted = one.fact.text or " / ".join(one.quote.lines)
        return _with_value(one.fact.value, name, [quoted] if quoted else [], texts)
    parts = _with_value(one.quote.value, name, one.quote.lines, texts)
    has_answer = one.quote.value or one.quote.has_wish
    if not has_answer and (sentence := texts.get(f"no {asked.wish}")):
        parts.append(sentence.format(day=_day(one.result)))
    return parts


def _with_value(value: str, name: str, quoted: Iterable[str], texts: dict[str, str]) -> list[str]:
    """The parts of an answer: a value if there is one, the screenshot that says so, and its lines."""
    lines = "\n".join(f"> {line}" for line in quoted)
    return list(filter(None, [value and f"**{value}**", texts["on"].format(name=name), lines]))


def _counted(asked: Question, answers: list[dict[str, Any]], texts: dict[str, str]) -> Reply | None:
    """How many screenshots there are, or the sum of what their records say; None where neither is asked for
    or nothing was found.
    """
    if asked.wish == "count":
        found = {result["id"]: result for answer in answers for result in _of_tool(answer, SEARCH)}
        total = max((answer.get("total", 0) for answer in answers if answer.get("tool") == SEARCH), default=0)
        lines = [_line(result, texts) for result in list(found.values())[:SHOWN]]
        return Reply("\n".join([texts["count"].format(count=total), "", *lines])) if total else None
    listing = next((answer for answer in answers if answer.get("tool") == RECORDS), {})
    sums = listing.get("sums") or []
    count = _MANY.search(asked.text) is not None and all(
        questions.names_of(questions.TYPES, word.casefold()) for word in asked.wanted
    )
    if not (results := _results(listing)) or not ((questions.wants_sum(asked) and sums) or count):
        return None
    lines = [f"- {_listed_name(result)}" for result in results]
    sources = [source for result in results for source in _amounts(result)]
    if (more := listing.get("total", 0) - len(lines)) > 0:
        lines.append(texts["more"].format(more=more))
    if count:
        text = "\n".join([texts["records"].format(count=listing.get("total", 0)), "", *lines])
        return Reply(text, [], sources)
    total = " + ".join(templates.money(one) for one in sums)
    number = sum(one.get("count", 0) for one in sums)
    if number == 1 and len(results) == 1:
        return Reply(f"**{total}**\n\n{_listed_name(results[0])}", [], sources)
    return Reply("\n".join([texts["sum"].format(sum=total, count=number), "", *lines]), [], sources)


def _listed_name(result: dict[str, Any]) -> str:
    return f"#{result['id']} **{result.get('title')}**"


def _amounts(result: dict[str, Any]) -> list[Source]:
    """Where the amount of a listed record is."""
    found = []
    for record in _records_of(result):
        field = next((one for one in record.fields if isinstance(one.value, dict)), None)
        if field is not None:
            words = [field.text or str(field.value)]
            found.append(
                Source(
                    result["id"],
                    templates.worded(record, field.name, "", "en"),
                    words,
                    record.type,
                    field.name,
                )
            )
    return found


def _of_tool(answer: dict[str, Any], tool: str) -> list[dict[str, Any]]:
    return _results(answer) if answer.get("tool") == tool else []


def _near_text(searches: list[dict[str, Any]], texts: dict[str, str]) -> str:
    """What is close in meaning, if anything probably is; else that nothing was found."""
    near = [result for answer in searches for result in answer.get("closest_in_meaning") or []]
    near = list({result["id"]: result for result in near if result.get("grade") == "probable"}.values())
    if not near:
        return texts["nothing"]
    return "\n".join([texts["near"], "", *(_line(result, texts) for result in near[:MOST_READ])])


def _text_of(result: dict[str, Any]) -> str:
    return str(result.get("visible_text") or result.get("snippet") or result.get("summary") or "")


def _short(one: _Candidate, texts: dict[str, str]) -> str:
    said = f"**{one_line(one.value)}**" if one.value else shortened(" / ".join(one.quote.lines), MAX_SHOWN)
    return f"- {_name(one.result, texts)}: {said}"


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
