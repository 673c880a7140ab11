"""Notes about orders, parcels, trips, bookings and bills whose state has changed: "DHL parcel: delivered".

A thread keeps the states that were told of, so each change is told once, whatever is
analysed again. A note is only about what is new: a screenshot of the last days says it. Nothing is told about
a thread with something sensitive on one of its screenshots.
"""

import logging
from datetime import datetime, timedelta

import msgspec
import peewee

import database
import dynamics
import gate
import push
import readings
import threads
from database import db
from engines.articles import Article
from errors import SnaploreError
from outlets import webhooks
from rules import wordlists
from settings import Settings

log = logging.getLogger(__name__)

NEW = timedelta(days=3)  # since the screenshot was taken that says the state
MOST = 20  # threads of one run
CONFIDENCE = 0.5


def write(settings: Settings, *, now: datetime) -> list[str]:
    """Note each thread whose state has changed, push once, and return the titles. Opens its own scopes."""
    with database.scope(), db.atomic():
        changed = threads.untold(now - NEW, MOST)
        written = [title for one in changed if (title := _tell(one, settings, now=now))]
    if written:
        try:
            push.broadcast(settings, push.new_notes(written, settings.language))
        except (SnaploreError, OSError, peewee.DatabaseError) as problem:
            log.warning("notes about threads could not be pushed: %s", problem)
    return written


def _tell(thread_id: int, settings: Settings, *, now: datetime) -> str:
    """Write the note about a thread; returns its title, or "". Its state counts as told in both cases."""
    threads.count_as_told(thread_id)
    thread = threads.get(thread_id, now=now)
    words = wordlists.table("news").get(settings.language, wordlists.table("news")["en"])
    if thread.state not in words or thread.sensitive:
        return ""
    article = _article(thread, words)
    if gate.withholds_any(thread.photo_ids, article.title, article.content):
        return ""
    devices = "SELECT photo_id, device_id FROM shown WHERE photo_id IN (SELECT value FROM json_each(?))"
    given = msgspec.json.encode(article.photo_ids).decode()
    note = dynamics.add(article, dict(db.execute_sql(devices, (given,)).fetchall()), now=now)
    webhooks.record(webhooks.WRITTEN, note.id, now=now)
    return article.title


def _article(thread: threads.Thread, words: dict[str, str]) -> Article:
    page = readings.page(thread.said_on)
    on_page = page is not None and thread.line is not None and thread.line < len(page.lines)
    quote = page.lines[thread.line].text if page is not None and on_page and thread.line is not None else ""
    content = words["content"].format(quote=quote) if quote else words["plain"]
    is_reminder = thread.state in str(wordlists.table("news")["reminders"]).split()
    return Article(
        title=words["title"].format(name=thread.title, state=words[thread.state]),
        content=content,
        category="reminder" if is_reminder else "note",
        confidence=CONFIDENCE,
        photo_ids=[thread.said_on, *(one for one in thread.photo_ids if one != thread.said_on)],
    )
