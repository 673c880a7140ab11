"""What the client prints of screenshots and of the agenda, and how it draws pictures.

The answers may be those of any server, and the texts in them those of any screenshot, so each is looked at
before it is used, and goes through `texts` before it is printed. What is sensitive stays covered until
`--reveal` asks for it, as in the dashboard.
"""

import os
import shutil
import sys
from collections.abc import Mapping
from datetime import date
from typing import Any

import click

from settings import MEGABYTE
from terminal import pictures, texts
from terminal.failures import Failed
from terminal.service import Service

MOST_ORIGINAL = 8 * MEGABYTE  # that is fetched to be drawn
NARROWEST, WIDEST = 40, 100  # columns of text


def dicts(answer: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """The objects of a list in an answer, which may be that of any server."""
    listed = answer.get(name)
    return [item for item in listed if isinstance(item, dict)] if isinstance(listed, list) else []


def _texts(item: Mapping[str, Any], name: str) -> list[str]:
    """The texts of a list in an answer."""
    listed = item.get(name)
    return [texts.safe(text) for text in listed] if isinstance(listed, list) else []


def sensitive(item: Mapping[str, Any]) -> str:
    """What is sensitive on it, in words; empty when nothing is."""
    return ", ".join(_texts(item, "sensitive")).replace("_", " ")


def _veil(item: Mapping[str, Any]) -> str:
    return f"sensitive ({sensitive(item)}): --reveal shows it"


def _title(item: Mapping[str, Any]) -> str:
    return next(
        (text for name in ("title", "summary", "filename") if (text := texts.safe(item.get(name)))), ""
    )


def _facts(item: Mapping[str, Any], *fields: str) -> str:
    """Where and when it is from, and how it was sorted, in one line."""
    facts = [
        *(texts.safe(item.get(field)) for field in fields),
        texts.local_time(item.get("original_timestamp")),
        "kept" if item.get("kept") is True else "",
        *(f"#{tag}" for tag in _texts(item, "tags")),
    ]
    return " · ".join(filter(None, facts))


def _width() -> int:
    return max(NARROWEST, min(WIDEST, shutil.get_terminal_size().columns))


def print_hit(hit: Mapping[str, Any], *, revealed: bool) -> None:
    is_veiled = bool(sensitive(hit)) and not revealed
    title = _veil(hit) if is_veiled else _title(hit)
    click.echo(f"{texts.safe(hit.get('id')):>6}  {click.style(title, bold=True)}")
    click.secho(f"        {_facts(hit, 'app_name')}", dim=True)
    if not is_veiled:
        matched = _texts(hit, "matched")
        for line in texts.wrapped(texts.safe(hit.get("snippet")), _width() - 8):
            click.echo(f"        {texts.emphasised(line, matched)}")


def near_misses(found: Mapping[str, Any]) -> list[str]:
    """A line for each word of a search that is on no screenshot, with those that were taken for it."""
    lines = []
    for corrected in dicts(found, "corrected"):
        word, matched = texts.safe(corrected.get("word")), _texts(corrected, "matched")
        if word and matched:
            lines.append(f"No screenshot has “{word}” itself. Near it: {', '.join(matched)}")
    return lines


def print_photo(photo: Mapping[str, Any], *, revealed: bool) -> None:
    is_veiled = bool(sensitive(photo)) and not revealed
    click.secho(_veil(photo) if is_veiled else _title(photo), bold=True)
    found = photo.get("analysis")
    analysis = found if isinstance(found, dict) else {}
    sorted_as = {name: analysis.get(name) for name in ("app_name", "content_category", "intent")}
    number = texts.safe(photo.get("id"))
    click.secho(f"{number} · {_facts({**photo, **sorted_as}, *sorted_as, 'device_name')}", dim=True)
    if is_veiled:
        return
    for name in ("summary", "note"):
        for line in texts.wrapped(texts.safe(photo.get(name)), _width()):
            click.echo(line)
    click.echo()


def print_agenda(items: list[dict[str, Any]], *, revealed: bool) -> None:
    day = ""
    for item in items:
        if (starts := texts.safe(item.get("starts_at"))[:10]) != day:
            day = starts
            click.secho(_day(day), bold=True)
        title = _veil(item) if sensitive(item) and not revealed else texts.safe(item.get("title"))
        kind, photo = texts.safe(item.get("kind")), texts.safe(item.get("photo_id"))
        click.echo(f"  {_hours(item):13}  {title}  {click.style(f'{kind} #{photo}', dim=True)}")


def print_records(answer: Mapping[str, Any], *, revealed: bool) -> None:
    """Records as a table, with their sums below."""
    listed = dicts(answer, "records")
    types = [texts.safe(record.get("type")) for record in listed]
    width = max(map(len, types), default=0)
    for record, kind in zip(listed, types, strict=True):
        is_veiled = bool(sensitive(record)) and not revealed
        fact = _veil(record) if is_veiled else texts.safe(record.get("line")) or "–"
        doubt = "  ? items do not add up" if record.get("doubtful") is True and not is_veiled else ""
        day, photo = texts.safe(record.get("day")), texts.safe(record.get("photo_id"))
        click.echo(f"{day}  {kind:{width}}  {fact}{doubt}  {click.style(f'#{photo}', dim=True)}")
    for total in dicts(answer, "sums"):
        value, currency, count = (texts.safe(total.get(name)) for name in ("value", "currency", "count"))
        click.secho(f"{value} {currency} in {count}", bold=True)


def draw(service: Service, photo: Mapping[str, Any], rows: int) -> None:
    """Draw a photo, in a terminal that can. A picture that cannot be had is no reason to fail."""
    protocol = pictures.protocol(os.environ) if sys.stdout.isatty() else None
    place, size = f"/api/photos/{texts.safe(photo.get('id'))}", photo.get("file_size")
    if protocol is None:
        return
    try:
        drawn = pictures.drawn(service.picture(f"{place}/thumbnail"), protocol, rows)
        if drawn is None and photo.get("mime_type") == "image/png" and isinstance(size, int):
            small = size <= MOST_ORIGINAL
            drawn = pictures.drawn(service.picture(f"{place}/image"), protocol, rows) if small else None
    except Failed as problem:
        click.echo(problem.message, err=True)
        return
    if drawn is not None:
        click.echo(drawn)


def _day(day: str) -> str:
    """A day as a heading: its name where it is near, and its date."""
    try:
        found = date.fromisoformat(day)
    except ValueError:
        return day
    near = {0: "Today, ", 1: "Tomorrow, ", -1: "Yesterday, "}.get((found - date.today()).days, "")
    return f"{near}{found:%a %Y-%m-%d}"


def _hours(item: Mapping[str, Any]) -> str:
    """When it is, on its day."""
    begins, ends = texts.safe(item.get("starts_at")), texts.safe(item.get("ends_at"))
    if item.get("all_day") is True:
        return "all day" if ends[:10] in ("", begins[:10]) else f"until {ends[:10]}"
    return f"{begins[11:16]}–{ends[11:16]}" if ends[:10] == begins[:10] else begins[11:16]
