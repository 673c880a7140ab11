"""The embedded model's answers from screenshots that its tools have found: the value of a record or of a
label, the lines that answer, sums and counts, or that nothing was found.
"""

import json
import re
import secrets
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

import terms
from engines.findings import Source
from engines.records import Record, checked
from rules import facts, questions, quotes, templates, wordlists
from rules.questions import Question
from text import one_line, shortened

SEARCH, READ, SAVE, AGENDA = "search_knowledge_base", "get_screenshot", "save_memory", "agenda"
RECORDS, THREADS = "list_records", "list_threads"
Call = dict[str, Any]  # of a tool, as the protocol has it

SHOWN = 5  # screenshots that an answer names
MAX_SHOWN = 240  # characters of each
MOST_NEAR = 3  # screenshots that are only near in meaning
LABELLED = 0.8  # how well the value of a label answers that the question names
UNREAD = 0.7  # how much of its score a screenshot has of which only a snippet is known
OTHER_THING = 0.8  # the same for one that has not what the question calls the thing
CLEAR = 1.15  # times as good as the next one: the answer is a single quotation

_MANY = re.compile(wordlists.table("questions")["many"])
_TEXTS = wordlists.table("sentences")


class Reply(NamedTuple):
    """A text with where it is from, or calls of tools."""

    text: str = ""
    calls: list[Call] = []  # noqa: RUF012 - nobody appends to it
    sources: list[Source] = []  # noqa: RUF012


def call(name: str, **arguments: Any) -> Call:
    function = {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)}
    return {"id": f"call_{secrets.token_hex(8)}", "type": "function", "function": function}


def texts_of(question: str) -> dict[str, str]:
    texts: dict[str, str] = _TEXTS["zh" if questions.is_chinese(question) else "en"]["reply"]
    return texts


def answered(
    asked: Question,
    answers: list[dict[str, Any]],
    texts: dict[str, str],
    left_out: set[int],
    kept: Collection[int] = (),
) -> Reply:
    """What answers, from records before lines, with its screenshots; or that nothing was found. Screenshots
    in `left_out` are not asked for; `kept` ones, which the question goes on about, come first.
    """
    searches = [answer for answer in answers if answer.get("tool") == SEARCH]
    read = {result["id"]: result for answer in answers for result in of_tool(answer, READ)}
    listed = {result["id"]: result for answer in answers for result in of_tool(answer, RECORDS)}
    if not searches or (not read and any(answer.get("error") for answer in answers)):
        return Reply(found_text(answers, texts))
    if counted := _counted(asked, answers, texts):
        return counted
    found = {result["id"]: result for answer in searches for result in results_of(answer)}
    candidates = [_judged(asked, result) for result in (listed | found | read).values()]
    candidates = sorted(
        (one for one in candidates if one.quote.score > 0 and one.result["id"] not in left_out),
        key=lambda one: (one.result["id"] not in kept, -one.score),
    )
    candidates = [one for one in candidates if _is_certain(asked, one)]
    if not candidates:
        return Reply(_near_text(searches, texts))
    first, others = candidates[0], candidates[1:]
    near = [one for one in others if first.score < CLEAR * one.score and first.result["id"] not in kept]
    total = max(answer.get("total", 0) for answer in searches)
    if near and not (first.value and all(one.value == first.value for one in near)):
        shown = [one for one in candidates[:SHOWN] if one.value or not first.value]
        lines = [_short(one, texts) for one in shown]
        if (more := total - len(lines)) > 0 and not first.value:
            lines.append(texts["more"].format(more=more))
        return Reply("\n".join([texts["several"], "", *lines]), [], list(map(_source, shown)))
    return Reply("\n\n".join(_single(asked, first, texts)), [], [_source(first)])


def _is_certain(asked: Question, one: "_Candidate") -> bool:
    """Whether a screenshot says what is asked. For a day or an amount, a screenshot of the thing in question
    is enough, which may have none; for entries, the list of that name.
    """
    if questions.wants_part(asked) and one.fact is None:  # "which gate"
        parts = questions.pieces(asked.sought)
        if not any(questions.is_on(part, one.said) for part in parts):
            return False
    if one.value or one.quote.has_wish:
        return True
    if asked.wish in ("when", "amount") or (asked.wish == "" and questions.wants_entries(asked)):
        things = questions.pieces(questions.things_in(asked))
        return not things or any(questions.is_on(thing, one.said) for thing in things)
    # What is beside a name also answers what a person says.
    named = questions.names_of(questions.FIELDS, asked.text).keys() - {questions.SAID}
    return asked.wish == "count" or (asked.wish == "" and (bool(asked.sought) or not named))


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
    said: str  # all that is known of it, folded
    is_thing: bool  # it has what the question calls the thing, as "meeting"

    @property
    def score(self) -> float:
        of_line = LABELLED if self.quote.value else facts.WISHED if self.quote.own else 0.0
        is_read = self.fact is not None or "visible_text" in self.result
        score = self.quote.score + max(self.fact.worth if self.fact else 0.0, of_line)
        return score * (1.0 if is_read else UNREAD) * (1.0 if self.is_thing else OTHER_THING)

    @property
    def value(self) -> str:
        """What answers, by itself; "" where only lines do."""
        return self.fact.value if self.fact else self.quote.value


def _judged(asked: Question, result: dict[str, Any]) -> _Candidate:
    records = records_of(result)
    language = "zh" if asked.is_chinese else "en"
    about = [str(result.get(name) or "") for name in ("title", "app", "summary")] + [day_of(result)]
    about += [facts.names(record) for record in records]
    text = (
        ""
        if "visible_text" in result
        else "\n".join(field.text for record in records for field in record.fields)
    )
    quote = quotes.best(asked, text or _text_of(result), " ".join(about))
    fact = facts.answer(asked, records, language)
    is_elsewhere = not facts.says(records, quote.own) or (
        quote.is_beside and not facts.is_about(asked, records)
    )
    if fact and fact.worth < LABELLED and (quote.value or is_elsewhere):
        fact = None  # the question names the label or the line, and no field of a record
    said = terms.fold(" ".join([*about, text or _text_of(result)])).casefold()
    things = questions.pieces(questions.things_in(asked))
    return _Candidate(
        result, quote, fact, said, not things or any(questions.is_on(one, said) for one in things)
    )


def _single(asked: Question, one: _Candidate, texts: dict[str, str]) -> list[str]:
    """The answer of one screenshot: the value first, then where it is."""
    name = name_of(one.result, texts)
    if one.fact is not None and "\n" in one.fact.value:
        return [texts["entries"].format(name=name), one.fact.value]
    if one.fact is not None:
        quoted = one.fact.text or " / ".join(one.quote.lines)
        return with_value(one.fact.value, name, [quoted] if quoted else [], texts)
    parts = with_value(one.quote.value, name, one.quote.lines, texts)
    has_answer = one.quote.value or one.quote.has_wish
    if not has_answer and (sentence := texts.get(f"no {asked.wish}")):
        parts.append(sentence.format(day=day_of(one.result)))
    return parts


def _counted(asked: Question, answers: list[dict[str, Any]], texts: dict[str, str]) -> Reply | None:
    """How many screenshots there are, or the sum of what their records say; None where neither is asked for
    or nothing was found.
    """
    if asked.wish == "count":
        found = {result["id"]: result for answer in answers for result in of_tool(answer, SEARCH)}
        total = max((answer.get("total", 0) for answer in answers if answer.get("tool") == SEARCH), default=0)
        lines = [_line(result, texts) for result in list(found.values())[:SHOWN]]
        return Reply("\n".join([texts["count"].format(count=total), "", *lines])) if total else None
    listing = next((answer for answer in answers if answer.get("tool") == RECORDS), {})
    sums = listing.get("sums") or []
    count = _MANY.search(asked.text) is not None and all(
        questions.names_of(questions.TYPES, word.casefold()) for word in asked.wanted
    )
    if not (results := results_of(listing)) or not ((questions.wants_sum(asked) and sums) or count):
        return None
    if not count and not all(facts.is_about(asked, records_of(result)) for result in results):
        return None  # an entry of a list has the words, and the amount is that of the whole
    lines = [f"- {listed_name(result)}" for result in results]
    sources = [source for result in results for source in _amounts(result)]
    if (more := listing.get("total", 0) - len(lines)) > 0:
        lines.append(texts["more"].format(more=more))
    if count:
        text = "\n".join([texts["records"].format(count=listing.get("total", 0)), "", *lines])
        return Reply(text, [], sources)
    total = " + ".join(templates.money(one) for one in sums)
    number = sum(one.get("count", 0) for one in sums)
    if number == 1 and len(results) == 1:
        return Reply(f"**{total}**\n\n{listed_name(results[0])}", [], sources)
    return Reply("\n".join([texts["sum"].format(sum=total, count=number), "", *lines]), [], sources)


def _amounts(result: dict[str, Any]) -> list[Source]:
    """Where the amount of a listed record is."""
    found = []
    for record in records_of(result):
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


def _near_text(searches: list[dict[str, Any]], texts: dict[str, str]) -> str:
    """What is close in meaning, if anything probably is; else that nothing was found."""
    near = [result for answer in searches for result in answer.get("closest_in_meaning") or []]
    near = list({result["id"]: result for result in near if result.get("grade") == "probable"}.values())
    if not near:
        return texts["nothing"]
    return "\n".join([texts["near"], "", *(_line(result, texts) for result in near[:MOST_NEAR])])


def _short(one: _Candidate, texts: dict[str, str]) -> str:
    said = f"**{one_line(one.value)}**" if one.value else shortened(" / ".join(one.quote.lines), MAX_SHOWN)
    return f"- {name_of(one.result, texts)}: {said}"


def memories_text(asked: Question, remembered: Sequence[str], texts: dict[str, str]) -> str:
    """The memories that share a word with the question; some are recalled only for their importance."""
    wanted = {questions.stem(word).casefold() for word in asked.wanted}
    known = [text for text in remembered if any(word in text.casefold() for word in wanted if len(word) > 1)]
    return "\n".join([texts["remembered"], "", *(f"- {text}" for text in known)]) if known else ""


def found_text(answers: list[dict[str, Any]], texts: dict[str, str]) -> str:
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


def others_text(answers: list[dict[str, Any]], texts: dict[str, str]) -> str:
    """The results of the web search and of MCP servers: a title, a snippet and perhaps an address each."""
    lines = []
    for result in [result for answer in answers for result in answer["results"]][:SHOWN]:
        heading = f"**{one_line(str(result.get('title', '')))}**"
        if address := result.get("url"):
            heading += f" ({address})"
        lines.append(f"- {heading}: {shortened(one_line(str(result.get('snippet', ''))), MAX_SHOWN)}")
    return "\n".join([texts["elsewhere"], "", *lines]) if lines else ""


def taken_text(answer: dict[str, Any], texts: dict[str, str]) -> str:
    """The screenshots of a time, the newest first."""
    if error := answer.get("error"):
        return texts["failed"].format(error=error)
    results = results_of(answer)
    if not results:
        return texts["none taken"]
    lines = [f"- {name_of(result, texts)}" for result in results]
    if (more := answer.get("total", 0) - len(lines)) > 0:
        lines.append(texts["more"].format(more=more))
    count = max(answer.get("total", 0), len(results))
    return "\n".join([texts["taken"].format(count=count), "", *lines])


def _line(result: dict[str, Any], texts: dict[str, str]) -> str:
    quote = shortened(one_line(str(result.get("snippet") or result.get("summary") or "")), MAX_SHOWN)
    return f"- {name_of(result, texts)}: {quote}"


def results_of(answer: dict[str, Any]) -> list[dict[str, Any]]:
    """The results of a search that name a screenshot."""
    return [result for result in answer.get("results") or [] if isinstance(result.get("id"), int)]


def of_tool(answer: dict[str, Any], tool: str) -> list[dict[str, Any]]:
    return results_of(answer) if answer.get("tool") == tool else []


def records_of(result: dict[str, Any]) -> list[Record]:
    try:
        found = msgspec.convert(result.get("records") or [], list[Record])
    except msgspec.ValidationError:
        return []
    return [record for one in found if (record := checked(one)) is not None]


def with_value(value: str, name: str, quoted: Iterable[str], texts: dict[str, str]) -> list[str]:
    """The parts of an answer: a value if there is one, the screenshot that says so, and its lines."""
    lines = "\n".join(f"> {line}" for said in quoted for line in said.splitlines())
    return list(filter(None, [value and f"**{value}**", texts["on"].format(name=name), lines]))


def name_of(result: dict[str, Any], texts: dict[str, str]) -> str:
    day = f" ({day})" if (day := day_of(result)) else ""
    return f"#{result.get('id')} **{result.get('title') or texts['untitled']}**{day}"


def listed_name(result: dict[str, Any]) -> str:
    return f"#{result['id']} **{result.get('title')}**"


def day_of(result: dict[str, Any]) -> str:
    return str(result.get("taken") or "")[:10]


def _text_of(result: dict[str, Any]) -> str:
    return str(result.get("visible_text") or result.get("snippet") or result.get("summary") or "")
