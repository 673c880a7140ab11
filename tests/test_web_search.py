"""The providers are played on loopback ports, over real sockets; DuckDuckGo's page is read by the installed
ddgs, as it is.
"""

import contextlib
import dataclasses
import functools
import html
import json
import subprocess
import sys
import traceback
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

import pytest
from ddgs.engines import ENGINES

import net
from assistant import web_search
from assistant.web_search import Result, SearchFailed
from errors import BadInput
from settings import ROOT
from tests.support import fake_llm

TAVILY_KEY = "tvly-very-secret"
BRAVE_KEY = "brave-very-secret"
NAMES = ("searxng", "tavily", "brave", "duckduckgo")
PAGES = [
    Result("Cats", "https://cats.example/", "All about cats."),
    Result("猫 – 维基百科", "http://zh.example/wiki?id=猫", "猫是一种动物。"),
]


@dataclasses.dataclass(frozen=True)
class Asked:
    """One question that a provider got."""

    verb: str
    path: str
    headers: dict[str, str]  # names in lower case
    body: bytes

    @property
    def parameters(self) -> dict[str, list[str]]:
        """Those of the address, of a form, or of a JSON object."""
        if self.headers.get("content-type") == "application/json":
            return json.loads(self.body)
        return parse_qs(urlsplit(self.path).query or self.body.decode())


class FakeProvider(fake_llm.FakeLLM):
    """The server that the other tests use, for any verb and any body."""

    def __init__(self, name: str):
        super().__init__()
        self.name = name
        self._server.RequestHandlerClass = functools.partial(_Handler, self)

    def forget(self) -> None:
        """What was asked, and what is queued."""
        self.requests.clear()
        self._queue.clear()

    def find(self, *pages: Result) -> None:
        """Queue an answer with these results, as this provider writes them."""
        self.give([{"title": page.title, "url": page.url, "snippet": page.snippet} for page in pages])

    def give(self, entries: Any) -> None:
        """Queue an answer with these entries of `title`, `url` and `snippet`, which may have any value."""
        if self.name == "duckduckgo":
            rows = [
                f'<div class="result__body"><h2>{html.escape(e["title"])}</h2>'
                f'<a href="{html.escape(e["url"])}">{html.escape(e["snippet"])}</a></div>'
                for e in entries
            ]
            self.reply(f"<html><meta charset='utf-8'><body>{''.join(rows)}</body></html>".encode())
            return
        field = "description" if self.name == "brave" else "content"
        if isinstance(entries, list):
            entries = [
                {field if k == "snippet" else k: v for k, v in e.items()} if isinstance(e, dict) else e
                for e in entries
            ]
        self.reply({"web": {"results": entries}} if self.name == "brave" else {"results": entries})


class _Handler(fake_llm.Handler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self._fake._take(
            Asked(
                self.command, self.path, {name.lower(): value for name, value in self.headers.items()}, body
            )
        )(self)

    do_GET = do_POST


class Web(NamedTuple):
    searxng: FakeProvider
    tavily: FakeProvider
    brave: FakeProvider
    duckduckgo: FakeProvider

    @property
    def asked(self) -> list[str]:
        """Who was asked anything."""
        return [provider.name for provider in self if provider.requests]


@pytest.fixture(scope="module")
def servers():
    with contextlib.ExitStack() as running:
        yield Web(*(running.enter_context(FakeProvider(name)) for name in NAMES))


@pytest.fixture(autouse=True)
def web(servers, monkeypatch):
    """All four providers on this machine, with nothing to say; no test can reach the real ones."""
    for server in servers:
        server.forget()
    monkeypatch.setattr(web_search, "TAVILY_URL", f"http://localhost:{servers.tavily.port}/search")
    monkeypatch.setattr(web_search, "BRAVE_URL", f"http://localhost:{servers.brave.port}/res/v1/web/search")
    monkeypatch.setattr(
        ENGINES["text"]["duckduckgo"], "search_url", f"http://127.0.0.1:{servers.duckduckgo.port}/html/"
    )
    return servers


@pytest.fixture
def configured(settings, web):
    """`configured("tavily", …)`: settings with just these providers, beside DuckDuckGo, which is always
    there.
    """
    values = {
        "searxng": {"searxng_url": f"http://127.0.0.1:{web.searxng.port}"},
        "tavily": {"tavily_api_key": TAVILY_KEY},
        "brave": {"brave_api_key": BRAVE_KEY},
        "duckduckgo": {},
    }

    def configure(*names):
        chosen = {field: value for name in names for field, value in values[name].items()}
        return dataclasses.replace(settings, dev_mode=True, **chosen)

    return configure


@pytest.mark.parametrize("name", NAMES)
def test_what_a_provider_finds_is_returned_in_its_order(web, configured, name):
    getattr(web, name).find(*PAGES)
    assert web_search.search("cats", configured(name)) == PAGES
    assert web.asked == [name]


@pytest.mark.parametrize(
    ("configured_ones", "expected"),
    [
        ((), ["DuckDuckGo"]),
        (("brave",), ["Brave", "DuckDuckGo"]),
        (("tavily", "brave"), ["Tavily", "Brave"]),
        (("searxng", "brave"), ["SearXNG", "Brave"]),
        (("searxng", "tavily", "brave"), ["SearXNG", "Tavily"]),
    ],
)
def test_the_first_two_that_are_configured_are_primary_and_secondary(configured, configured_ones, expected):
    assert [provider.name for provider in web_search.providers(configured(*configured_ones))] == expected


def test_searxng_is_asked_for_json_under_the_path_that_was_configured(web, configured):
    web.searxng.find(*PAGES)
    settings = dataclasses.replace(
        configured(), dev_mode=False, searxng_url=f"http://127.0.0.1:{web.searxng.port}/searx/"
    )
    assert web_search.search("cats & 猫", settings) == PAGES
    asked = web.searxng.requests[0]
    assert (asked.verb, urlsplit(asked.path).path) == ("GET", "/searx/search")
    assert asked.parameters == {"q": ["cats & 猫"], "format": ["json"]}


def test_tavily_is_asked_with_a_bearer_key(web, configured):
    web.tavily.find(*PAGES)
    web_search.search("cats & 猫", configured("tavily"), most=3)
    asked = web.tavily.requests[0]
    assert (asked.verb, asked.path) == ("POST", "/search")
    assert asked.parameters == {"query": "cats & 猫", "max_results": 3}
    assert asked.headers["authorization"] == f"Bearer {TAVILY_KEY}"


def test_brave_is_asked_with_its_own_header(web, configured):
    web.brave.find(*PAGES)
    web_search.search("cats & 猫", configured("brave"), most=3)
    asked = web.brave.requests[0]
    assert (asked.verb, urlsplit(asked.path).path) == ("GET", "/res/v1/web/search")
    assert (asked.parameters["q"], asked.parameters["count"]) == (["cats & 猫"], ["3"])
    assert asked.headers["x-subscription-token"] == BRAVE_KEY
    assert "authorization" not in asked.headers


def test_duckduckgo_is_asked_without_a_region(web, configured):
    web.duckduckgo.find(*PAGES)
    web_search.search("cats & 猫", configured())
    asked = web.duckduckgo.requests[0]
    assert (asked.verb, asked.path) == ("POST", "/html/")
    assert (asked.parameters["q"], asked.parameters["l"]) == (["cats & 猫"], ["wt-wt"])


@pytest.mark.parametrize(
    ("first", "second"),
    [("searxng", "tavily"), ("searxng", "brave"), ("tavily", "brave"), ("brave", "duckduckgo")],
)
def test_a_key_goes_to_its_own_provider_only(web, configured, first, second):
    getattr(web, first).fail(500)
    getattr(web, second).find(*PAGES)
    settings = dataclasses.replace(configured(first, second), api_key="own-secret", llm_api_key="llm-secret")
    assert web_search.search("cats", settings) == PAGES
    assert web.asked == [first, second]
    secrets = {"tavily": TAVILY_KEY, "brave": BRAVE_KEY, "nobody": "own-secret", "nobody else": "llm-secret"}
    for provider in web:
        for asked in provider.requests:
            own = [provider.name] if provider.name in secrets else []
            assert [owner for owner, secret in secrets.items() if secret in repr(asked)] == own


# What must not be taken for an answer, though it reads like one.
TEMPTING = {
    "results": [{"url": "https://bad.example/"}],
    "web": {"results": [{"url": "https://bad.example/"}]},
}
FAILURES = {
    "429": lambda server: server.fail(429),
    "500": lambda server: server.reply(TEMPTING, status=500),
    "204": lambda server: server.reply(b"", status=204),
    "redirect": lambda server: server.reply(TEMPTING, status=302, headers={"Location": "/again"}),
    "silence": lambda server: server.stay_silent(),
    "broken off": lambda server: server.close_mid_answer(),
}
UNREADABLE = {
    "no JSON": lambda server: server.reply(b"<html>Sorry</html>"),
    "empty": lambda server: server.reply(b""),
    "cut off": lambda server: server.reply(b'{"results": ['),
    "a list": lambda server: server.reply([]),
    "null": lambda server: server.reply(b"null"),
    "other fields": lambda server: server.reply({"web": {"answer": 42}}),
    "wrong type": lambda server: server.reply({"results": {"a": 1}, "web": {"results": "none"}}),
    "nulls": lambda server: server.reply({"results": None, "web": None}),
    "nested": lambda server: server.reply(b'{"results":' + b"[" * 100_000),
    "giant": lambda server: server.reply({"pad": "x" * web_search.MAX_ANSWER_BYTES, **TEMPTING}),
    "giant number": lambda server: server.reply(b'{"results": [' + b"9" * 10_000 + b"]}"),
}
ASKED_BY_JSON = [
    (name, failure) for name in ("searxng", "tavily", "brave") for failure in (*FAILURES, *UNREADABLE)
]


@pytest.mark.parametrize(("name", "failure"), ASKED_BY_JSON)
def test_the_secondary_is_asked_when_the_primary_fails(web, configured, caplog, name, failure):
    (FAILURES | UNREADABLE)[failure](getattr(web, name))
    web.duckduckgo.find(*PAGES)
    deadline = (
        1 if failure == "silence" else web_search.PROVIDER_SECONDS
    )  # enough for the secondary on a busy machine
    assert web_search.search("cats", configured(name), deadline=deadline) == PAGES
    assert len(getattr(web, name).requests) == 1
    assert f"web search: {web_search.providers(configured(name))[0].name} (" in caplog.text


DRIPS = {
    "drip": lambda server: server.drip(),
    "drip in the head": lambda server: server.drip(b"", b"H"),
}


@pytest.mark.parametrize("failure", [*FAILURES, *DRIPS])
def test_the_failures_of_duckduckgo_are_told_in_a_sentence(web, configured, failure):
    (FAILURES | DRIPS)[failure](web.duckduckgo)
    never_whole = failure == "silence" or failure in DRIPS
    with pytest.raises(
        SearchFailed, match="in time" if never_whole else r"^The web search failed: DuckDuckGo \([a-z ,]+\)$"
    ):
        web_search.search("cats", configured(), deadline=1 if never_whole else web_search.PROVIDER_SECONDS)
    assert len(web.duckduckgo.requests) == 1


@pytest.mark.parametrize("page", ["<?xml version='1.0' encoding='utf-8'?><html></html>", " ", "<!-- -->"])
def test_a_page_that_cannot_be_read_is_a_failure_of_duckduckgo(web, configured, page):
    web.duckduckgo.reply(page.encode())
    with pytest.raises(SearchFailed, match="no page that can be read"):
        web_search.search("cats", configured())


def test_a_refusal_of_duckduckgo_is_not_taken_for_an_empty_result(web, configured):
    web.duckduckgo.reply(b"<html><body>Please show that you are a person</body></html>", status=202)
    with pytest.raises(SearchFailed, match="refused"):
        web_search.search("cats", configured())


@pytest.mark.parametrize("name", ["searxng", "tavily", "brave"])
def test_the_secondary_is_asked_when_the_primary_finds_nothing(web, configured, name):
    getattr(web, name).find()
    web.duckduckgo.find(*PAGES)
    assert web_search.search("cats", configured(name)) == PAGES


def test_brave_leaves_the_list_out_when_it_has_found_nothing(web, configured):
    web.brave.reply({"type": "search", "query": {"original": "cats"}})
    web.duckduckgo.fail(500)
    assert web_search.search("cats", configured("brave")) == []


def test_there_is_no_third_provider(web, configured):
    web.searxng.find()
    web.tavily.find()
    assert web_search.search("cats", configured("searxng", "tavily", "brave")) == []
    assert web.asked == ["searxng", "tavily"]


@pytest.mark.parametrize(("broken", "empty"), [("tavily", "brave"), ("brave", "tavily")])
def test_one_that_finds_nothing_is_an_answer_though_the_other_fails(web, configured, broken, empty):
    getattr(web, broken).fail(500)
    getattr(web, empty).find()
    assert web_search.search("cats", configured("tavily", "brave")) == []
    assert web.asked == ["tavily", "brave"]


def test_it_fails_with_everybodys_reason_when_nobody_answers(web, configured):
    web.tavily.fail(429)
    web.brave.stay_silent()
    with pytest.raises(SearchFailed) as caught:
        web_search.search("cats", configured("tavily", "brave"), deadline=1)
    assert caught.value.status == 502
    expected = (
        "The web search failed: Tavily (answered 429 (asked too often)), "
        "Brave (localhost: no whole answer in time)"
    )
    assert caught.value.detail == expected


@pytest.mark.parametrize(("first", "second"), [("searxng", "tavily"), ("brave", "duckduckgo")])
@pytest.mark.parametrize("failure", ["500", "redirect", "silence", "broken off"])
def test_no_failure_tells_a_key_or_the_question(web, configured, caplog, first, second, failure):
    caplog.set_level("INFO")
    FAILURES[failure](getattr(web, first))
    FAILURES[failure](getattr(web, second))
    settings = configured(first, second)
    question = "-".join(
        ("embarrassing", "question")
    )  # so that it is not in the line of this file that the trace shows
    with pytest.raises(SearchFailed) as caught:
        web_search.search(question, settings, deadline=0.3)
    told = (
        "".join(traceback.format_exception(caught.value))
        + repr(caught.value)
        + repr(web_search.providers(settings))
    )
    assert caplog.text.count("web search: ") == 2
    for secret in (question, TAVILY_KEY, BRAVE_KEY):
        assert secret not in told
        assert secret not in caplog.text


@pytest.mark.parametrize("name", NAMES)
def test_a_redirect_is_not_followed(web, configured, name):
    with FakeProvider(name) as elsewhere:
        elsewhere.find(*PAGES)
        getattr(web, name).reply(b"", status=307, headers={"Location": f"http://127.0.0.1:{elsewhere.port}/"})
        web.duckduckgo.fail(500)
        with pytest.raises(SearchFailed):
            web_search.search("cats", configured(name))
        assert elsewhere.connections == 0


def test_only_the_host_of_searxng_is_trusted_beyond_the_rules(web, configured):
    web.searxng.find(*PAGES)
    settings = dataclasses.replace(configured("searxng", "tavily"), dev_mode=False)
    assert web_search.search("cats", settings) == PAGES
    web.searxng.fail(500)
    with pytest.raises(SearchFailed, match=r"Tavily \(address: must use https://\)"):
        web_search.search("cats", settings)
    assert web.asked == ["searxng"]


@pytest.mark.parametrize(
    "url",
    ["http://user:pass-word@127.0.0.1:1", "http://127.1:1", "http://box.lan/" + "x" * net.MAX_URL_LENGTH],
)
def test_an_address_of_searxng_that_cannot_be_called_is_a_failure_like_any_other(
    web, configured, caplog, url
):
    web.duckduckgo.find(*PAGES)
    assert web_search.search("cats", dataclasses.replace(configured(), searxng_url=url)) == PAGES
    assert "SearXNG (address: " in caplog.text
    assert "pass-word" not in caplog.text


@pytest.mark.parametrize("name", ["tavily", "brave"])
@pytest.mark.parametrize("key", ["two words", "line\r\nX-Evil: 1", "ключ"])
def test_a_key_that_cannot_stand_in_a_header_is_a_failure_like_any_other(web, configured, caplog, name, key):
    web.duckduckgo.find(*PAGES)
    settings = dataclasses.replace(configured(), **{f"{name}_api_key": key})
    assert web_search.search("cats", settings) == PAGES
    assert "(api_key: must be printable ASCII without blanks)" in caplog.text
    assert key not in caplog.text
    assert web.asked == ["duckduckgo"]


@pytest.mark.parametrize("name", ["searxng", "tavily", "brave"])
def test_entries_of_wrong_types_are_left_out_or_lose_what_is_wrong(web, configured, name):
    entries = [
        None,
        7,
        "text",
        [],
        {},
        {"title": "No address"},
        {"url": 5},
        {"url": None},
        {"url": ["https://a.example"]},
    ]
    entries += [
        {"url": "https://bare.example/page"},
        {"url": "https://wrong.example/", "title": {"a": 1}, "snippet": [1]},
        {"url": "https://null.example/", "title": None, "snippet": None},
        {"url": "https://good.example/", "title": "Good", "snippet": "Yes", "score": "high"},
    ]
    getattr(web, name).give(entries)
    assert web_search.search("cats", configured(name)) == [
        Result("bare.example", "https://bare.example/page", ""),
        Result("wrong.example", "https://wrong.example/", ""),
        Result("null.example", "https://null.example/", ""),
        Result("Good", "https://good.example/", "Yes"),
    ]


@pytest.mark.parametrize("name", ["searxng", "tavily", "brave"])
def test_texts_become_one_clean_line(web, configured, name):
    text = " a\tb\r\nc \u2028 d\0e\x01\x1b\x7f\x9b\u202ef\u202c\ud83d 猫👩\u200d🔬é "
    getattr(web, name).give([{"title": text, "url": "https://a.example/", "snippet": text}])
    clean = "a b c def 猫👩\u200d🔬é"
    assert web_search.search("cats", configured(name)) == [Result(clean, "https://a.example/", clean)]


def test_html_of_brave_becomes_text(web, configured):
    snippet = (
        "<strong>Cats</strong> &amp; dogs: 3 &lt; 5, &quot;a&#39;b&quot; &#x732b;, "
        "if x<3 then &lt;b&gt; <a href='https://x'>link</a><br/>"
    )
    web.brave.give(
        [{"title": "Rock &amp; <em>roll</em>&#0;&#x202e;", "url": "https://a.example/", "snippet": snippet}]
    )
    [found] = web_search.search("cats", configured("brave"))
    assert found.title == "Rock & roll\ufffd"
    assert found.snippet == 'Cats & dogs: 3 < 5, "a\'b" 猫, if x<3 then <b> link'


@pytest.mark.parametrize("name", ["searxng", "tavily"])
def test_plain_text_that_looks_like_html_stays(web, configured, name):
    page = Result("Vec<T> &amp; Box<T>", "https://a.example/", "if a <b> c: use &lt; here")
    getattr(web, name).find(page)
    assert web_search.search("cats", configured(name)) == [page]


@pytest.mark.parametrize("name", NAMES)
def test_long_texts_are_cut(web, configured, name):
    getattr(web, name).find(Result("t" * 5_000, "https://a.example/", "word " * 5_000))
    [found] = web_search.search("cats", configured(name))
    assert (len(found.title), found.title[-2:]) == (web_search.MAX_TITLE, "t…")
    assert len(found.snippet) <= web_search.MAX_SNIPPET
    assert found.snippet.endswith("word…")


@pytest.mark.parametrize(
    "url",
    [
        *(
            "javascript:alert(1)",
            "data:text/html,x",
            "ftp://a.example/",
            "file:///etc/passwd",
            "//a.example/",
            "/page",
            "a.example",
            "",
        ),
        *(
            "https://",
            "https:///page",
            "http://[::1",
            "https://a.example/with blank",
            "https://a.example/\nline",
            "https://a.example/\0",
        ),
        *(
            "https://a.example/\u202egnp.exe",
            "https://a.example/\ud83d",
            'https://a.example/"onclick=',
            "https://a.example/<b>",
        ),
        "https://a.example/" + "x" * net.MAX_URL_LENGTH,
    ],
)
def test_an_entry_without_a_web_address_is_left_out(web, configured, url):
    web.tavily.give(
        [
            {"title": "Bad", "url": url, "snippet": "x"},
            {"title": "Good", "url": "HTTPS://b.example/ü?a=b#c", "snippet": "x"},
        ]
    )
    assert web_search.search("cats", configured("tavily")) == [
        Result("Good", "HTTPS://b.example/ü?a=b#c", "x")
    ]


@pytest.mark.parametrize("name", NAMES)
def test_there_are_never_more_results_than_wanted(web, configured, name):
    pages = [Result(f"Cats {number}", f"https://a.example/{number}", "x") for number in range(40)]
    getattr(web, name).find(*pages)
    assert web_search.search("cats", configured(name), most=3) == pages[:3]
    getattr(web, name).find(*pages)
    assert web_search.search("cats", configured(name), most=1_000) == pages[: web_search.MAX_RESULTS]


@pytest.mark.parametrize("name", ["searxng", "tavily", "brave"])
@pytest.mark.parametrize(
    ("query", "sent"),
    [
        ("  two\n lines\t\0\x1b\u202e and\ud83d more ", "two lines and more"),
        ("x" * 100_000, "x" * 400),
        ("猫" * 1_000, "猫" * 200),
        ("é" * 299 + "猫" * 50, "é" * 299),
        (" ".join(map(str, range(100))), " ".join(map(str, range(50)))),
    ],
)
def test_a_question_is_cleaned_and_cut_to_what_every_provider_takes(web, configured, name, query, sent):
    getattr(web, name).find(*PAGES)
    assert web_search.search(query, configured(name)) == PAGES
    parameters = getattr(web, name).requests[0].parameters
    assert parameters["query" if name == "tavily" else "q"] == (sent if name == "tavily" else [sent])


@pytest.mark.parametrize("query", ["", " \n\t", "\0", "\ud83d", "\u202e"])
def test_an_empty_question_is_refused_and_nobody_is_asked(web, configured, query):
    with pytest.raises(BadInput, match=r"^query: must not be empty$"):
        web_search.search(query, configured("searxng"))
    assert web.asked == []


def test_proxies_of_the_environment_are_ignored_by_ddgs_too(web, configured, monkeypatch):
    with FakeProvider("proxy") as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "DDGS_PROXY", "PRIMP_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.delenv(name, raising=False)
        web.duckduckgo.find(*PAGES)
        assert web_search.search("cats", configured()) == PAGES
        assert proxy.connections == 0


def test_cookies_of_duckduckgo_are_not_kept(web, configured):
    web.duckduckgo.reply(b"<html><body>Nothing</body></html>", headers={"Set-Cookie": "track=me; Path=/"})
    web.duckduckgo.find(*PAGES)
    assert web_search.search("cats", configured()) == []
    assert web_search.search("cats", configured()) == PAGES
    assert "cookie" not in web.duckduckgo.requests[1].headers


def test_advertisements_of_duckduckgo_are_left_out(web, configured):
    web.duckduckgo.find(Result("Buy cats", "https://duckduckgo.com/y.js?ad_domain=x", "Now"), *PAGES)
    assert web_search.search("cats", configured()) == PAGES


def test_the_installed_ddgs_knows_the_engine():
    assert ENGINES["text"][web_search.DDGS_ENGINE].name == "duckduckgo"


def test_an_engine_that_ddgs_no_longer_has_is_a_failure_and_no_other_is_asked(web, configured, monkeypatch):
    monkeypatch.delitem(ENGINES["text"], web_search.DDGS_ENGINE)
    with pytest.raises(SearchFailed, match="does not know it any more"):
        web_search.search("cats", configured())
    assert web.asked == []


def test_ddgs_is_not_loaded_before_it_is_used():
    program = (
        "import sys\nfrom assistant import web_search\n"
        "print([name for name in ('ddgs', 'primp', 'lxml') if name in sys.modules])"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert loaded.stdout == "[]\n"
