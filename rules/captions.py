"""Title and summary of a screen, as a person would write them: one short line, and one sentence.

They are made of its record (`rules/templates.py`). A screen without one is named by its heading
(`rules/headings.py`), with what it begins with where the heading alone names nothing; its summary is the kind
of screen and its heading, with the first paragraph, the labelled values or the first entries. What is quoted
is quoted as it was read, whole paragraphs instead of single lines, and never the status bar.
"""

import re
from collections.abc import Sequence

from engines.findings import MAX_TITLE, Entity
from engines.records import Record
from rules import contents, naming, sensitive, templates, wordlists, writings
from rules.headings import Heading, heading, is_day
from rules.layout import wide
from rules.lists import Entry, entries, notices_of
from rules.templates import SUMMARY_LENGTH, enumerated
from rules.view import View
from text import one_line, shortened

SAID, QUOTED = 150, 72  # characters of a text, of an entry
HEADS = 3  # of several notifications in a title
MORE, ALSO = 6, 10  # texts behind a summary, and characters of the words before them
LISTED = 3  # entries of a list, with fewer of which it has none
VALUES = 3  # entries or values in a summary
MOST_SAID = 3  # entries with what is below each
MESSAGES, MESSAGE = 3, 58  # of a conversation, the newest, in a summary; characters of each

_NOTIFIED = ("lock_screen", "notices")
# Records of screens that are named by their texts: what they list is not what they are called.
_SHOWN = frozenset(["Article", "Balance", "CalendarView", "SettingsPage", "SocialMediaPosting", "TaskList"])
_LISTS = frozenset(["Balance", "SettingsPage"])  # records that have a part of what their screens have
_WORD = re.compile(r"[^\W\d_\u2e80-\u9fff]+|[\u2e80-\u9fff]|\d+")
_KEY = re.compile(r"[\w+/=-]{22}", re.ASCII)  # of a wallet or a device: nobody reads it
_SENTENCES = wordlists.table("sentences")


def title(view: View, records: Sequence[Record], language: str) -> str:
    """The line that a person would give the screenshot, at most `MAX_TITLE` characters; "" when it has no
    words.
    """
    if view.kind in _NOTIFIED and (notices := notices_of(view.layout)):
        said = _of_notices(notices, language)
    elif not records or records[0].type in _SHOWN:
        said = _of_app(view.app, _chosen(view, language), language)
    else:
        said = _of_list(view, records[0], language)
        if records[0].type == "MessageList":
            said = _of_app(view.app, said, language)
    return shortened(one_line(said), MAX_TITLE)


def summary(view: View, records: Sequence[Record], named: str, category: str, language: str) -> str:
    """One or two sentences about the screen whose title is `named`, at most `SUMMARY_LENGTH` characters."""
    if not view.layout.all_lines:
        return _texts(language)["no_text"]
    found, is_notice = _heading(view), view.kind in ("lock_screen", "notices", "code")
    sentence = _notified(view, language) if is_notice else ""
    if not sentence and records:
        sentence = _spoken(view, records[0], language) or templates.summary(records[0], language)
        if not is_notice and records[0].type != "Conversation" and _repeats(sentence, named):
            sentence = _told(view, found, language) or sentence
    said = templates.finished(sentence or _facts(view, found, category, language), view.app, language)
    if is_notice or (records and records[0].type not in _LISTS):
        return said
    more = _parts(view, found, said)
    also = _texts(language)["also"].format(said=said, entries=enumerated(more, language, MORE))
    return also if more else said


def of_code(entity: Entity, language: str) -> str:
    """Title and summary of a picture that shows a code and no text."""
    return shortened(one_line(_texts(language)["code"].format(said=entity.value)), MAX_TITLE)


def _repeats(sentence: str, title: str) -> bool:
    """Whether a sentence has hardly a word that the title lacks."""
    words = set(_WORD.findall(sentence.casefold()))
    return len(words - set(_WORD.findall(title.casefold()))) <= min(2, len(words) // 4)


def _heading(view: View) -> Heading | None:
    return heading(view.layout.main, view.kind, view.app)


def _texts(language: str) -> dict[str, str]:
    found: dict[str, str] = _SENTENCES[language]["caption"]
    return found


def _of_list(view: View, record: Record, language: str) -> str:
    """The title by the template of the record's type, with what the bar says above a list of messages."""
    said = templates.title(record, language)
    head = _heading(view) if record.type == "MessageList" else None
    if head is None or not head.generic or not head.lines or head.lines[0] not in view.layout.headers[:2]:
        return said
    listed = templates.worded(record, "entries", "head", language)
    if head.text.casefold() == view.app.casefold() or not listed:
        return said
    if listed.startswith(head.text):
        return listed
    return _texts(language)["named"].format(title=head.text, entries=listed)


def _of_notices(found: Sequence[Entry], language: str) -> str:
    """The app of a notification and what it says, or what each of several is headed."""
    texts = _texts(language)
    if len(found) == 1:
        return texts["notification"].format(app=found[0].name, said=found[0].said).strip(":： ")
    heads = [one.said.partition(": ")[0] or one.name for one in found]
    return texts["notices"].format(entries=enumerated(heads, language, HEADS))


def _chosen(view: View, language: str) -> str:
    """The texts of a screen that a person would put in its title, as one; no secret is among them."""
    texts = _texts(language)
    found = naming.parts(view.layout, view.kind, view.app)
    open_ = (part for part in found if not _KEY.search(part.text) and not sensitive.kinds(part.text))
    said = [part.text for part in naming.chosen(open_)]
    if sensitive.kinds(" ".join(said)):
        said = said[:1]
    if not said:
        return ""
    if len(said) == 1 and view.kind == "post" and said[0].casefold() == view.app.casefold():
        return texts["feed"].format(app=said[0])
    if view.kind == "profile" and len(said) == 1:
        return texts["profile"].format(name=said[0])
    behind = texts["comma"].join(said[1:])
    return texts["named"].format(title=said[0].rstrip(":："), entries=behind) if behind else said[0]


def _parts(view: View, found: Heading | None, known: str) -> list[str]:
    """The values of a screen, or else its first entry and its largest texts, as far as `known`, its summary,
    lacks them and has room behind it. A secret is none of them.
    """
    layout = view.layout.main
    listed = contents.values(layout, view.kind)
    if len(listed) < 2:
        names = [entry.name for entry in contents.named(layout, view.kind, found)]
        listed = names[: len(names) >= LISTED] + contents.worded(layout, found)
    parts: list[str] = []
    for part in listed:
        said = "  ".join([known, *parts])
        if len(parts) == MORE or wide(f"{said}  {part}") > SUMMARY_LENGTH - ALSO:
            continue
        if (
            not is_day(part)
            and not _KEY.search(part)
            and not _repeats(part, said)
            and not sensitive.kinds(f"{said} {part}")
        ):
            parts.append(part)
    return parts


def _of_app(app: str, title: str, language: str) -> str:
    """A title with the app before it where a person would not know it from the title."""
    if not title or app.casefold() in title.casefold():
        return title
    return _texts(language)["of_app"].format(app=app, title=title)


def _spoken(view: View, record: Record, language: str) -> str:
    """The newest messages of a conversation, after with whom it is; "" of anything else."""
    said = writings.messages(view)[-MESSAGES:] if record.type == "Conversation" else []
    if len(said) < 2:
        return ""
    texts = _texts(language)
    quoted = texts["comma"].join(texts["quote"].format(shortened(text, MESSAGE)) for text in said)
    whom = templates.worded(record, "participant", "", language)
    return texts["chat" if whom else "chat_alone"].format(whom=whom, said=quoted)


def _told(view: View, found: Heading | None, language: str) -> str:
    """The text of a screen to read, or its labelled values where there are some."""
    layout = view.layout.main
    if contents.is_running(layout):
        return contents.sentence(layout, found, SAID)
    values = contents.values(layout, view.kind)
    return enumerated(values, language, VALUES) if len(values) >= 2 else ""


def _facts(view: View, found: Heading | None, category: str, language: str) -> str:
    """A sentence about a screen without a record: its kind and its heading, with what it says beside that."""
    texts, screens = _texts(language), _SENTENCES[language]["screen"]
    layout = view.layout.main
    name, screen = found.text if found else "", str(screens.get(view.kind) or screens[category])
    entered = _entered(view, found, language)
    is_text = contents.is_running(layout) or len(entered) < 2
    if is_text and (about := contents.sentence(layout, found, SAID)) and about not in name:
        return texts["named"].format(title=name, entries=about) if name else about
    named = texts["screen"].format(screen=screen, name=name) if name else screen
    return (
        texts["has"].format(screen=named, entries=enumerated(entered, language, VALUES)) if entered else named
    )


def _entered(view: View, found: Heading | None, language: str) -> list[str]:
    """What a screen has: its labelled values, its entries, or its other texts."""
    layout, texts = view.layout.main, _texts(language)
    values = contents.values(layout, view.kind)
    if len(values) >= 2:
        return values
    named = contents.named(layout, view.kind, found)
    said = [
        texts["named"].format(title=one.name, entries=shortened(one.said, QUOTED))
        for one in named
        if one.said
    ]
    if len(named) >= 2 and 2 * len(said) >= len(named):
        return said[:MOST_SAID]
    entries = [shortened(one.name, QUOTED) for one in named]
    return entries if len(entries) >= 2 else values or contents.worded(layout, found)


def _notified(view: View, language: str) -> str:
    texts = _texts(language)
    found = notices_of(view.layout) or [entry for entry in entries(view.layout, view.kind) if entry.said]
    if len(found) == 1:
        return texts["notice"].format(app=found[0].name, said=found[0].said or found[0].name)
    named = [f"{one.name} – {shortened(one.said, 60)}" if one.said else one.name for one in found[:3]]
    return texts["notices"].format(entries=("; " if language == "en" else "；").join(named)) if named else ""
