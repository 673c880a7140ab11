"""The embedded model's answers about what is under way or to come: orders and parcels from threads, the next
of several from records, and the agenda.
"""

from typing import Any

from engines.findings import Source
from rules import facts, questions, templates, wordlists
from rules.answers import (
    AGENDA,
    RECORDS,
    SHOWN,
    THREADS,
    Call,
    Reply,
    call,
    listed_name,
    name_of,
    of_tool,
    records_of,
    results_of,
    with_value,
)
from rules.questions import Question
from text import one_line

MOST_TAKEN = 12  # records to come that are looked at


def under_way(asked: Question, earlier: list[str]) -> Question | None:
    """The question about what is under way or comes next: this one, or the one that it goes on about."""
    for one in [asked, *(questions.understand(text) for text in reversed(earlier) if asked.is_other)]:
        if questions.thread_of(one) or (questions.wants_next(one) and questions.types_ahead(one)):
            return one
    return None


def steps(asked: Question) -> list[Call]:
    """The calls that answer such a question."""
    if kind := questions.thread_of(asked):
        text = " ".join(questions.names_in(asked))
        return [call(THREADS, type=kind, **({"text": text} if text else {}))]
    types = questions.types_ahead(asked)
    found = [call(RECORDS, type=one, period=questions.AHEAD, limit=MOST_TAKEN) for one in types]
    return [*found, call(AGENDA, period=questions.AHEAD)]


def told(
    asked: Question, answers: list[dict[str, Any]], texts: dict[str, str], left_out: set[int]
) -> Reply | None:
    """What those calls have found; None where that is nothing. `left_out` are screenshots of one that is not
    asked for, which others may be of, too.
    """
    if questions.thread_of(asked):
        return progress(asked, answers[0], texts, left_out)
    listed = [one for answer in answers for one in of_tool(answer, RECORDS)]
    if found := coming(asked, sorted(listed, key=lambda one: one.get("day", "")), texts, left_out):
        return found
    events = [one for answer in answers for one in of_tool(answer, AGENDA) if one["id"] not in left_out]
    kinds = questions.names_of(questions.PLANNED, asked.text)
    is_planned = questions.agenda_period(asked.text) is not None  # and nothing else
    of_any = is_planned and not kinds
    event = next((one for one in events if of_any or one.get("kind") in kinds), None)
    if event is None:
        return Reply(texts["free"]) if is_planned else None
    return first_planned(event, texts, asked.is_chinese)


def progress(
    asked: Question, answer: dict[str, Any], texts: dict[str, str], left_out: set[int]
) -> Reply | None:
    """How far orders, parcels and bills are; None where there is none. Of what is over only the newest."""
    states = wordlists.table("news")["zh" if asked.is_chinese else "en"]
    found = [
        one for one in of_tool(answer, THREADS) if one["id"] not in left_out and one.get("state") in states
    ]
    if not found:
        return None
    shown = [one for one in found if one["is_open"]][:SHOWN] or found[:1]
    said = [states["title"].format(name=one["title"], state=states[one["state"]]) for one in shown]
    sources = [
        Source(one["id"], text, list(filter(None, [one["snippet"]])))
        for one, text in zip(shown, said, strict=True)
    ]
    names = [name_of({**one, "title": one["screenshot"]}, texts) for one in shown]
    if len(shown) > 1:
        lines = [f"- {name}: **{text}**" for name, text in zip(names, said, strict=True)]
        return Reply("\n".join([texts["several"], "", *lines]), [], sources)
    parts = with_value(said[0], names[0], filter(None, [shown[0]["snippet"]]), texts)
    return Reply("\n\n".join(parts), [], sources)


def coming(
    asked: Question, results: list[dict[str, Any]], texts: dict[str, str], left_out: set[int]
) -> Reply | None:
    """The next record of those that are to come, the soonest first; None where there is none."""
    before = {one["title"] for one in results if one["id"] in left_out}
    one = next((one for one in results if one["title"] not in before), None)
    records = records_of(one) if one is not None else []
    if one is None or not records:
        return None
    language = "zh" if asked.is_chinese else "en"
    fact = facts.answer(asked, records, language)
    is_field = fact is not None and fact.worth == facts.NAMED and fact.field != "number"
    value = fact.value if fact is not None and is_field else templates.line(records[0], language)
    name = fact.field if fact is not None else ""
    words = [field.text for record in records for field in record.fields if field.name == name][:1]
    source = Source(one["id"], value, words, records[0].type, name)
    parts = with_value(value, name_of(one, texts), map(one_line, words), texts)
    return Reply("\n\n".join(parts), [], [source])


def planned(question: str, answer: dict[str, Any], texts: dict[str, str]) -> Reply:
    """What is in the agenda; of the kinds only that the question names."""
    kinds = questions.names_of(questions.PLANNED, question.casefold())
    results = [result for result in results_of(answer) if not kinds or result.get("kind") in kinds]
    if kinds and not answer.get("error"):
        answer = {**answer, "results": results, "total": len(results)}
    if results and questions.wants_first(question.casefold()):
        return first_planned(results[0], texts, questions.is_chinese(question))
    sources = [
        Source(result["id"], str(result.get("title") or ""), [str(result.get("snippet") or "")])
        for result in results
    ]
    language = "zh" if questions.is_chinese(question) else "en"
    return Reply(planned_text(answer, texts, language), [], sources)


def first_planned(event: dict[str, Any], texts: dict[str, str], is_chinese: bool) -> Reply:
    """The one event of the agenda that is asked for: its time and its name, and the line that says so."""
    at = templates.when(str(event.get("starts_at", "")), "zh" if is_chinese else "en")
    value, words = f"{at} · {event.get('title')}", [str(event.get("snippet") or "")]
    parts = with_value(value, name_of(event, texts), filter(None, words), texts)
    return Reply("\n\n".join(parts), [], [Source(event["id"], value, words)])


def planned_text(answer: dict[str, Any], texts: dict[str, str], language: str) -> str:
    """What the agenda has, each with its day and its screenshot."""
    if error := answer.get("error"):
        return texts["failed"].format(error=error)
    results = results_of(answer)
    if not results:
        return texts["free"]
    lines = [
        f"- {templates.when(str(result.get('starts_at', '')), language)}: {listed_name(result)}"
        for result in results
    ]
    if (more := answer.get("total", 0) - len(lines)) > 0:
        lines.append(texts["more"].format(more=more))
    return "\n".join([texts["agenda"], "", *lines])
