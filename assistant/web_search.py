"""The assistant's web search: a primary provider, and a secondary that is asked when the first fails or finds
nothing.

They are the first two of those that are configured, in this order: a SearXNG of the operator's, Tavily,
Brave, and DuckDuckGo, which takes no key and so is always there. Not more than two, so that a person knows
who gets to see the questions, and that a chat waits for twice the deadline at most.

SearXNG's address is the operator's own setting and may be on the LAN and plain http: its guard trusts just
that host. Tavily and Brave have fixed addresses; their keys are bound to them and are in no repr, log or
sentence, and nor is what was asked.

DuckDuckGo has no API. `ddgs` reads its page for browsers without JavaScript and has an HTTP stack of its own,
in Rust, which passes for a browser: the one call that does not go through `net`. What `net` sees to is set
here as far as it can be: one deadline, no redirects, no cookies from one search to the next, no proxy of the
environment. The size of the page is bounded by the deadline alone; it comes from one fixed host, over TLS.
ddgs' engine is driven directly: the class `DDGS` around it takes a proxy from the environment, asks any other
engine when it does not know the one it is told, and calls a refusal "no results".

Titles and snippets are somebody's web page: cleaned here, and framed as data where a model gets them.
"""

import contextlib
import html
import logging
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, cast
from urllib.parse import urlencode, urlsplit

import msgspec

import net
from engines import reading
from errors import BadInput, SnaploreError
from settings import Settings
from text import one_line, shortened

# In dev mode, which opens http://localhost, a server of one's own can stand in for them.
TAVILY_URL = "https://api.tavily.com/search"
BRAVE_URL = "https://api.search.brave.com/res/v1/web/search"
DDGS_ENGINE = "duckduckgo"

PROVIDER_SECONDS = 10.0  # they answer in 1 to 5; a SearXNG gives its own engines 3
MAX_ANSWER_BYTES = 2 * 1024 * 1024  # 50 results of a SearXNG, with all it says about them, are a tenth of it
MAX_RESULTS = 20  # Tavily and Brave give no more at once

# Brave and Tavily refuse questions over 400 characters, Brave also those over 50 words. A byte takes up to
# three characters of an address, which may have 2,048.
MAX_QUERY = 400
MAX_QUERY_WORDS = 50
MAX_QUERY_BYTES = 600

MAX_TITLE = 200  # what is longer is a list of keywords
MAX_SNIPPET = 1_000  # Tavily's are as long as that; five of them cost a model some 1,300 tokens

# White space apart, which becomes a blank: control characters, what turns the direction of writing around (a
# text could show something else than it says), and halves of surrogate pairs.
_UNSEEN = re.compile("[\0-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_TAG = re.compile(r"</?[A-Za-z][^<>]*>")
_NOT_IN_URL = re.compile(rf"[\s<>\"]|{_UNSEEN.pattern}")

_MEANING = {
    401: " (the key is not taken)",
    403: " (refused; a SearXNG must have json among its formats)",
    429: " (asked too often)",
    432: " (the plan is used up)",
}

log = logging.getLogger(__name__)


class SearchFailed(SnaploreError):
    """No provider answered. The sentence names those that were asked, and why; never a key or the question."""

    status = 502


class Result(msgspec.Struct, frozen=True):
    """A page that was found: one line of clean text each, and an http or https address."""

    title: str
    url: str
    snippet: str


class Provider(NamedTuple):
    name: str
    # Takes the settings, the question, the most results and the seconds; raises `SnaploreError`.
    ask: Callable[[Settings, str, int, float], list[Result]]


def search(
    query: str, settings: Settings, *, most: int = 5, deadline: float = PROVIDER_SECONDS
) -> list[Result]:
    """At most `most` results; none when those who answered found nothing. `deadline` in seconds, for each
    provider.

    An over-long question is cut off. Raises `BadInput` for an empty one, and `SearchFailed` when nobody
    answered.
    """
    query = _question(query)
    asked = providers(settings)
    failures = []
    for provider in asked:
        try:
            results = provider.ask(settings, query, min(most, MAX_RESULTS), deadline)
        except SnaploreError as failure:
            failures.append(f"{provider.name} ({failure.detail})")
            log.warning("web search: %s", failures[-1])
            continue
        if results:
            return results
    if len(failures) == len(asked):
        raise SearchFailed(f"The web search failed: {', '.join(failures)}")
    return []


def providers(settings: Settings) -> list[Provider]:
    """The primary and, if there is one, the secondary."""
    chain = (
        (settings.searxng_url, Provider("SearXNG", _ask_searxng)),
        (settings.tavily_api_key, Provider("Tavily", _ask_tavily)),
        (settings.brave_api_key, Provider("Brave", _ask_brave)),
        (True, Provider("DuckDuckGo", _ask_duckduckgo)),
    )
    return [provider for setting, provider in chain if setting][:2]


def _ask_searxng(settings: Settings, query: str, most: int, deadline: float) -> list[Result]:
    base = settings.searxng_url or ""
    guard = net.Guard(allowed_hosts=[urlsplit(base).hostname or ""])
    url = f"{base.rstrip('/')}/search?{urlencode({'q': query, 'format': 'json'})}"
    answer = _call(guard, "GET", url, deadline=deadline)
    return _results(answer.get("results"), "content", most)


def _ask_tavily(settings: Settings, query: str, most: int, deadline: float) -> list[Result]:
    key = net.Key(settings.tavily_api_key or "", net.origin(TAVILY_URL))
    body = {"query": query, "max_results": most}
    answer = _call(
        net.Guard(dev_mode=settings.dev_mode), "POST", TAVILY_URL, body, key=key, deadline=deadline
    )
    return _results(answer.get("results"), "content", most)


def _ask_brave(settings: Settings, query: str, most: int, deadline: float) -> list[Result]:
    # Checked like a bearer key, though it goes into another header.
    key = net.Key(settings.brave_api_key or "", net.origin(BRAVE_URL))
    question = {"q": query, "count": most, "result_filter": "web", "text_decorations": "false"}
    url = f"{BRAVE_URL}?{urlencode(question)}"
    headers = {"X-Subscription-Token": key.secret}
    answer = _call(net.Guard(dev_mode=settings.dev_mode), "GET", url, headers=headers, deadline=deadline)
    web = answer.get("web", {"results": []})  # left out when nothing was found
    # Brave writes HTML: entities always, tags where the question's words stand.
    return _results(
        web.get("results") if isinstance(web, dict) else None, "description", most, plain=_without_html
    )


def _ask_duckduckgo(settings: Settings, query: str, most: int, deadline: float) -> list[Result]:
    # Some 18 MB, and threads that would not survive gunicorn's fork: loaded where and when it is needed.
    from ddgs.engines import ENGINES
    from ddgs.exceptions import DDGSException, TimeoutException
    from lxml.etree import LxmlError

    if DDGS_ENGINE not in ENGINES["text"]:
        raise SearchFailed("the installed ddgs does not know it any more")
    try:
        engine = ENGINES["text"][DDGS_ENGINE](timeout=cast(int, deadline))  # fractions are taken, too
        client = engine.http_client.client
        client.proxy = None  # as an argument it would mean: the environment's
        client.follow_redirects = False
        found = engine.search(query, region="wt-wt")  # no region; ddgs' own default is the USA
    except TimeoutException:
        raise SearchFailed("no whole answer in time") from None
    except (
        DDGSException,
        LxmlError,
        ValueError,
    ):  # their text quotes what came; lxml refuses some texts by ValueError
        raise SearchFailed("no connection, or no page that can be read") from None
    if found is None:
        raise SearchFailed("it refused to answer, as it does when it is asked often")
    return _results([vars(result) for result in found], "body", most, address="href")


def _call(
    guard: net.Guard,
    method: str,
    url: str,
    body: Any = None,
    *,
    key: net.Key | None = None,
    headers: Mapping[str, str] | None = None,
    deadline: float,
) -> dict[str, Any]:
    """The JSON object that was answered."""
    with (
        contextlib.closing(net.Client(guard)) as client,
        client.open(
            method, url, body, key=key, headers=headers, deadline=deadline, max_bytes=MAX_ANSWER_BYTES
        ) as answer,
    ):
        if answer.status != 200:
            raise SearchFailed(f"answered {answer.status}{_MEANING.get(answer.status, '')}")
        found = reading.from_json(answer.read())
    if not isinstance(found, dict):
        raise SearchFailed("answered something that is no JSON object")
    return found


def _results(
    found: Any, snippet: str, most: int, *, address: str = "url", plain: Callable[[str], str] = str
) -> list[Result]:
    """What can be used of `found`, a provider's list of objects; an entry without a usable address is left
    out.
    """
    if not isinstance(found, list):
        raise SearchFailed("answered without a list of results")
    results: list[Result] = []
    for entry in found:
        url = _web_address(entry.get(address)) if isinstance(entry, dict) else None
        if url is not None and len(results) < most:
            title = _line(entry.get("title"), MAX_TITLE, plain) or urlsplit(url).hostname or ""
            results.append(Result(title, url, _line(entry.get(snippet), MAX_SNIPPET, plain)))
    return results


def _question(query: str) -> str:
    words = _clean(query).split()[:MAX_QUERY_WORDS]
    question = " ".join(words)[:MAX_QUERY].encode()[:MAX_QUERY_BYTES].decode(errors="ignore").strip()
    if not question:
        raise BadInput("query: must not be empty")
    return question


def _web_address(value: Any) -> str | None:
    """`value` if it is an address that a browser may be sent to."""
    if not isinstance(value, str) or len(value) > net.MAX_URL_LENGTH or _NOT_IN_URL.search(value):
        return None
    try:
        parts = urlsplit(value)
    except ValueError:
        return None
    return value if parts.scheme in ("http", "https") and parts.hostname else None


def _line(value: Any, most: int, plain: Callable[[str], str] = str) -> str:
    """Text as one clean line of at most `most` characters; nothing for what is no text."""
    return shortened(_clean(plain(value)), most) if isinstance(value, str) else ""


def _clean(text: str) -> str:
    return one_line(_UNSEEN.sub("", text))


def _without_html(text: str) -> str:
    return html.unescape(_TAG.sub("", text))
