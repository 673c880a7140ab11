"""Atom 1.0 (RFC 4287), as text: what a feed reader is given of notes and photos.

Texts of models and screenshots reach the reader as text, or as HTML in which everything of theirs is escaped
and no address is fetched or can be followed.
"""

import html
import re
import xml.etree.ElementTree as tree
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from clock import iso
from settings import NAME, VERSION

MEDIA_TYPE = "application/atom+xml"
NAMESPACE = "http://www.w3.org/2005/Atom"
# What XML 1.0 cannot hold, not even escaped.
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


class Entry(NamedTuple):
    """`name` is unique in this service, `page` is the address behind `#` in the page, `content` is HTML."""

    name: str
    title: str
    page: str
    content: str
    published_at: datetime  # UTC, as is `changed_at`
    changed_at: datetime
    summary: str = ""
    category: str = ""


def document(
    title: str, name: str, entries: Sequence[Entry], *, authority: str, base: str, changed_at: datetime
) -> bytes:
    """A feed. `authority` is a host name that no other service has, for ids that never change (RFC 4151)."""
    feed = tree.Element("feed", xmlns=NAMESPACE)
    _text(feed, "id", _tag(authority, name))
    _text(feed, "title", title)
    _text(feed, "updated", _moment(changed_at))
    _text(tree.SubElement(feed, "author"), "name", NAME)
    _text(feed, "generator", NAME).set("version", VERSION)
    # No link to the feed itself: its address is a secret, and people pass documents on.
    tree.SubElement(feed, "link", rel="alternate", type="text/html", href=f"{base}/")
    for entry in entries:
        node = tree.SubElement(feed, "entry")
        _text(node, "id", _tag(authority, entry.name))
        _text(node, "title", entry.title)
        _text(node, "published", _moment(entry.published_at))
        _text(node, "updated", _moment(entry.changed_at))
        tree.SubElement(node, "link", rel="alternate", type="text/html", href=f"{base}/#/{entry.page}")
        if entry.category:
            tree.SubElement(node, "category", term=entry.category)
        if entry.summary:
            _text(node, "summary", entry.summary)
        _text(node, "content", entry.content).set("type", "html")
    written: bytes = tree.tostring(feed, encoding="utf-8", xml_declaration=True)
    return written


def html_of(markdown: str) -> str:
    """The Markdown of a note as HTML: headings, lists, rules, paragraphs, bold. All else is text."""
    parts: list[str] = []
    listed, paragraph = "", list[str]()

    def end() -> None:
        nonlocal listed
        if paragraph:
            parts.append(f"<p>{'<br>'.join(paragraph)}</p>")
            paragraph.clear()
        if listed:
            parts.append(f"</{listed}>")
            listed = ""

    for line in markdown.splitlines():
        text = line.strip()
        mark, _, rest = text.partition(" ")
        kind = "ul" if mark in ("-", "*", "+") else "ol" if re.fullmatch(r"[0-9]{1,9}[.)]", mark) else ""
        if not text or (len(text) > 2 and set(text) in ({"-"}, {"*"}, {"_"})):
            end()
            parts += ["<hr>"] if text else []
        elif mark in ("#", "##", "###", "####", "#####", "######"):
            end()
            level = min(6, len(mark) + 1)  # the entry's title is above it
            parts.append(f"<h{level}>{_inline(rest)}</h{level}>")
        elif kind and rest:
            if listed != kind:
                end()
                listed = kind
                parts.append(f"<{kind}>")
            parts.append(f"<li>{_inline(rest)}</li>")
        else:
            if listed:
                end()
            paragraph.append(_inline(text))
    end()
    return "".join(parts)


def _inline(text: str) -> str:
    """One line, with what is between `**` bold."""
    # As in Markdown, `&lt;` is a character.
    pieces = html.escape(html.unescape(text)).split("**")
    last = len(pieces) - 1
    return "".join(
        # A mark without a second one is text.
        f"<b>{piece}</b>" if place % 2 and place < last else f"**{piece}" if place % 2 else piece
        for place, piece in enumerate(pieces)
    )


def _tag(authority: str, name: str) -> str:
    return f"tag:{authority},2026:{name}"


def _moment(moment: datetime) -> str:
    return f"{iso(moment)}Z"


def _text(parent: tree.Element, name: str, text: str) -> tree.Element:
    node = tree.SubElement(parent, name)
    node.text = _FORBIDDEN.sub("", text)
    return node
