"""The assistant's web search: a primary provider, and a secondary that is used when the first fails or finds
nothing.

They are the first two that are configured, in this order: the operator's SearXNG, Tavily, Brave, and
DuckDuckGo, which needs no key and so is always available. There are at most two, so that people know who
receives their queries, and a chat waits for twice the deadline at most.

SearXNG's address is the operator's own setting and may be on the LAN and plain http: its guard trusts only
that host. Tavily and Brave have fixed addresses, and their keys are bound to them. No key and no query
appears in a repr, a log or an error message.

DuckDuckGo has no API. `ddgs` reads its page for browsers without JavaScript, through an HTTP stack of its
own, in Rust, that imitates a browser: the only call that does not go through `net`. The protections of `net`
are set here as far as possible: one deadline, no redirects, no cookies between searches, no proxy of the
environment. Only the deadline limits the size of the page, which comes from one fixed host, over TLS. ddgs'
engine is used directly: its class `DDGS` takes a proxy from the environment, uses any other engine when it
does not know the given one, and reports a refusal as "no results".

Titles and snippets come from web pages: they are cleaned here, and framed as data where a model reads them.
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

# In dev mode, which allows http://localhost, tests replace these with a local server.
TAVILY_URL = "https://api.tavily.com/search"
BRAVE_URL = "https://api.search.brave.com/res/v1/web/search"
DDGS_ENGINE = "duckduckgo"
DUCKDUCKGO_URL = "https://html.duckduckgo.com/html/"  # which ddgs calls

PROVIDER_SECONDS = 10.0  # providers answer in 1 to 5; a SearXNG waits 3 for its engines
MAX_ANSWER_BYTES = 2 * 1024 * 1024  # ten times as much as 50 results of a SearXNG
MAX_RESULTS = 20  # Tavily and Brave return no more per request

# Brave and Tavily refuse queries over 400 characters, Brave also those over 50 words. A byte takes up to
# three characters of a URL, which may have 2,048.
MAX_QUERY = 400
MAX_QUERY_WORDS = 50
MAX_QUERY_BYTES = 600

MAX_TITLE = 200  # longer ones are lists of keywords
MAX_SNIPPET = 1_000  # the length of Tavily's; five of them take some 1,300 tokens

# Control characters but for white space, which becomes a blank; characters that reverse the direction of
# writing, which can make a text look like another one; and halves of surrogate pairs.
_UNSEEN = re.compile("[\0-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_TAG = re.compile(r"</?[A-Za-z][^<>]*>")
_NOT_IN_URL = re.compile(rf"[\s<>\"]|{_UNSEEN.pattern}")

_MEANING = {
    401: " (wrong key)",
    403: " (refused; a SearXNG must allow the format json)",
    429: " (too many requests)",
    432: " (the plan's quota is used up)",
}

log = logging.getLogger(__name__)


class SearchFailed(SnaploreError):
    """No provider answered. The message names each provider and its failure, never a key or the query."""

    status = 502


class Result(msgspec.Struct, frozen=True):
    """A page that was found: title and snippet are one line of clean text each, the URL is http or https."""

    title: str
    url: str
    snippet: str


class Provider(NamedTuple):
    name: str
    address: str  # of its server
    # Takes settings, query, most results and seconds; raises `SnaploreError`.
    ask: Callable[[Settings, str, int, float], list[Result]]


def search(
    query: str, settings: Settings, *, most: int = 5, deadline: float = PROVIDER_SECONDS
) -> list[Result]:
    """At most `most` results; an empty list when a provider answered and none found anything. `deadline` is
    in seconds, for each provider.

    A query that is too long is cut. Raises `BadInput` for an empty one, and `SearchFailed` when no provider
    answered.
    """
    query = _cleaned_query(query)
    chain = providers(settings)
    failures = []
    for provider in chain:
        try:
            results = provider.ask(settings, query, min(most, MAX_RESULTS), deadline)
        except SnaploreError as failure:
            failures.append(f"{provider.name} ({failure.detail})")
            log.warning("web search: %s", failures[-1])
            continue
        if results:
            return results
    if len(failures) == len(chain):
        raise SearchFailed(f"The web search failed: {', '.join(failures)}")
    return []


def providers(settings: Settings) -> list[Provider]:
    """The primary provider and, if there is one, the secondary."""
    chain = (
        (settings.searxng_url, Provider("SearXNG", settings.searxng_url or "", _ask_searxng)),
        (settings.tavily_api_key, Provider("Tavily", TAVILY_URL, _ask_tavily)),
        (settings.brave_api_key, Provider("Brave", BRAVE_URL, _ask_brave)),
        (True, Provider("DuckDuckGo", DUCKDUCKGO_URL, _ask_duckduckgo)),
    )
    return [provider for setting, provider in chain if setting][:2]


def hosts(settings: Settings) -> str:
    """The hosts that may get a query, with commas: the secondary gets it when the primary finds nothing."""
    return ", ".join(net.host(provider.address) for provider in providers(settings))


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
    parameters = {"q": query, "count": most, "result_filter": "web", "text_decorations": "false"}
    url = f"{BRAVE_URL}?{urlencode(parameters)}"
    headers = {"X-Subscription-Token": key.secret}
    answer = _call(net.Guard(dev_mode=settings.dev_mode), "GET", url, headers=headers, deadline=deadline)
    web = answer.get("web", {"results": []})  # missing when nothing was found
    # Brave returns HTML: entities everywhere, and tags around the words of the query.
    found = web.get("results") if isinstance(web, dict) else None
    return _results(found, "description", most, plain=lambda text: html.unescape(_TAG.sub("", text)))


def _ask_duckduckgo(settings: Settings, query: str, most: int, deadline: float) -> list[Result]:
    # Loaded on first use: it takes 18 MB and starts threads, which would not survive gunicorn's fork.
    from ddgs.engines import ENGINES
    from ddgs.exceptions import DDGSException, TimeoutException
    from lxml.etree import LxmlError

    if DDGS_ENGINE not in ENGINES["text"]:
        raise SearchFailed("the installed ddgs does not support it any more")
    try:
        engine = ENGINES["text"][DDGS_ENGINE](timeout=cast(int, deadline))  # fractions work, too
        client = engine.http_client.client
        client.proxy = None  # as an argument, None means the environment's proxy
        client.follow_redirects = False
        found = engine.search(query, region="wt-wt")  # no region; ddgs' own default is the USA
    except TimeoutException:
        raise SearchFailed("no whole answer in time") from None
    except (DDGSException, LxmlError, ValueError):  # a ValueError is lxml's, too; their texts quote the page
        raise SearchFailed("no connection, or an unreadable page") from None
    if found is None:
        raise SearchFailed("it refused to answer, as it does after many requests")
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
    """The JSON object of the response. Raises `SnaploreError`."""
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
        raise SearchFailed("answered with something other than a JSON object")
    return found


def _results(
    found: Any, snippet: str, most: int, *, address: str = "url", plain: Callable[[str], str] = str
) -> list[Result]:
    """The usable results of `found`, a provider's list of objects; those without a valid URL are left out."""
    if not isinstance(found, list):
        raise SearchFailed("answered without a list of results")
    results: list[Result] = []
    for entry in found:
        url = _web_address(entry.get(address)) if isinstance(entry, dict) else None
        if url is not None and len(results) < most:
            title = _line(entry.get("title"), MAX_TITLE, plain) or urlsplit(url).hostname or ""
            results.append(Result(title, url, _line(entry.get(snippet), MAX_SNIPPET, plain)))
    return results


def _cleaned_query(query: str) -> str:
    words = _clean(query).split()[:MAX_QUERY_WORDS]
    cleaned = " ".join(words)[:MAX_QUERY].encode()[:MAX_QUERY_BYTES].decode(errors="ignore").strip()
    if not cleaned:
        raise BadInput("query: must not be empty")
    return cleaned


def _web_address(value: Any) -> str | None:
    """`value` if it is a URL that is safe to open in a browser."""
    if not isinstance(value, str) or len(value) > net.MAX_URL_LENGTH or _NOT_IN_URL.search(value):
        return None
    try:
        parts = urlsplit(value)
    except ValueError:
        return None
    return value if parts.scheme in ("http", "https") and parts.hostname else None


def _line(value: Any, most: int, plain: Callable[[str], str] = str) -> str:
    """`value` as one clean line of at most `most` characters; empty if it is not a string."""
    return shortened(_clean(plain(value)), most) if isinstance(value, str) else ""


def _clean(text: str) -> str:
    return one_line(_UNSEEN.sub("", text))
