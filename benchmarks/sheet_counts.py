"""How much of the drawn sheets (`sheets.py`) the rules read rightly: types, fields, agenda entries, the total
with its currency and the day of receipts and bills, and the cells of tables.

    .venv/bin/python -m benchmarks.sheet_counts [judging]

prints the counts by type and by layout; of the half for tuning also what is wrong. The half for judging is
only counted: whoever changes the rules does not look at its sheets.
"""

import sys
from collections import Counter
from collections.abc import Callable

from benchmarks.recorded import is_equal, words
from benchmarks.sheet_layouts import JUDGING, TUNING
from benchmarks.sheets import PAPERS, TAKEN, Sheet, picture, sheets
from engines.lines import Page
from engines.records import Record
from rules.judge import judge
from rules.occasions import occasions
from rules.totals import is_doubtful

# What a receipt and a bill are asked for.
ASKED = ("total", "date", "totalPaymentDue", "paymentDueDate")


def count(sheet: Sheet, page: Page) -> tuple[Counter[str], list[str]]:
    """What is right of a sheet, and what is wrong."""
    found = judge(
        page, analyser="judged", language="zh" if sheet.language == "zh" else "en", taken=TAKEN
    ).records
    counts: Counter[str] = Counter(sheets=1, fields=len(sheet.fields))
    wrong: list[str] = []
    record = found[0] if found else None
    if record is None or record.type != sheet.type:
        wrong.append(f"type {record.type if record else 'none'}")
        counts["found"] += len(record.fields) if record else 0
    else:
        counts["types"] += 1
        for field in record.fields:
            counts["found"] += 1
            if field.name in sheet.fields and is_equal(field.value, sheet.fields[field.name]):
                counts["right"] += 1
            else:
                wrong.append(f"{field.name}={field.value!r} not {sheet.fields.get(field.name)!r}")
        there = {field.name for field in record.fields}
        wrong += [f"{name} missing ({value})" for name, value in sheet.fields.items() if name not in there]
    if sheet.type in PAPERS:
        counts += _paper(sheet, record, page)
    counts += _cells(sheet, record)
    held = occasions(page, TAKEN, found)
    counts["events"], counts["events found"] = len(sheet.events), len(held)
    starts = {one.starts_at: one for one in held}
    for start, title in sheet.events:
        if start in starts:
            counts["events right"] += 1
            wanted = words(title)
            is_titled = 2 * len(wanted & words(starts[start].title)) >= len(wanted)
            counts["titled"] += is_titled
            if not is_titled:
                wrong.append(f"event title {starts[start].title!r} not {title!r}")
        else:
            wrong.append(f"event missing {start}")
    wrong += [
        f"event extra {one.starts_at} {one.title!r}"
        for one in held
        if one.starts_at not in {start for start, _ in sheet.events}
    ]
    return counts, wrong


def _paper(sheet: Sheet, record: Record | None, page: Page) -> Counter[str]:
    """Whether total, currency and day of a receipt or bill are right; if one is wrong, whether the record is
    marked as doubtful. The time of a day is counted with the fields.
    """
    found = {field.name: field.value for field in record.fields if field.name in ASKED} if record else {}
    given = {name: _day(value) if isinstance(value, str) else value for name, value in found.items()}
    drawn = {name: _day(value) for name, value in sheet.fields.items() if name in ASKED}
    right = all(name in given and is_equal(given[name], value) for name, value in drawn.items())
    wrong = any(name not in drawn or not is_equal(value, drawn[name]) for name, value in given.items())
    marked = record is not None and is_doubtful(record, "\n".join(line.text for line in page.lines))
    return Counter(papers=1, papers_right=right, papers_wrong=wrong and not marked)


def _day(text: str) -> str:
    """A day without its time; any other text as it is."""
    return text[:10] if text[10:11] == "T" else text


def _cells(sheet: Sheet, record: Record | None) -> Counter[str]:
    """The cells of a table that were drawn, found and found rightly, each with its column."""
    lists = [field.value for field in record.fields if isinstance(field.value, list)] if record else []
    drawn, found = _squeezed(sheet.cells), _squeezed(lists[0] if sheet.cells and lists else [])
    return Counter(
        tables=bool(sheet.cells), drawn=drawn.total(), read=found.total(), same=(drawn & found).total()
    )


def _squeezed(table: list[dict[str, str]]) -> Counter[tuple[str, str]]:
    return Counter((key, "".join(text.split())) for row in table for key, text in row.items())


def shown(counts: Counter[str]) -> str:
    """Counts in a line."""
    return (
        f"type {counts['types']} of {counts['sheets']}, fields {counts['right']} of {counts['fields']}, "
        f"precision {counts['right'] / max(1, counts['found']):.3f}; agenda {counts['events right']} of "
        f"{counts['events']}, precision {counts['events right'] / max(1, counts['events found']):.3f}, "
        f"titled {counts['titled']}"
        + (
            f"; total and day {counts['papers_right']} of {counts['papers']}, wrong {counts['papers_wrong']}"
            if counts["papers"]
            else ""
        )
        + (
            f"; {counts['tables']} tables, F1 {2 * counts['same'] / (counts['drawn'] + counts['read']):.3f}"
            if counts["tables"]
            else ""
        )
    )


def report(
    layouts: tuple[str, ...],
    *,
    with_wrong: bool = False,
    read: Callable[[bytes], Page] | None = None,
    types: tuple[str, ...] = (),
    every: int = 1,
) -> Counter[str]:
    """Print the counts by type, and return their sum. `read` reads drawn pictures; `every` takes a sample."""
    total: Counter[str] = Counter()
    by_type: dict[str, Counter[str]] = {}
    by_layout: dict[str, Counter[str]] = {}
    for number, sheet in enumerate(sheets(layouts, types=types)):
        if number % every:
            continue
        counts, wrong = count(sheet, read(picture(sheet)) if read else sheet.page)
        total += counts
        by_type.setdefault(sheet.type, Counter()).update(counts)
        by_layout.setdefault(sheet.name.split("-")[2], Counter()).update(counts)
        if with_wrong and wrong:
            print(sheet.name, *wrong, sep="\n    ")
    for name, counts in (*by_type.items(), *by_layout.items(), ("all", total)):
        print(f"{name:30}{shown(counts)}")
    return total


if __name__ == "__main__":
    if sys.argv[1:2] == ["judging"]:
        report(JUDGING)
    else:
        report(TUNING, with_wrong=True, types=tuple(sys.argv[1:]))
