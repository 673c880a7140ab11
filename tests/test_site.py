"""The site of the documents (`make site`), as a newcomer uses it: from the first page to an answer in two
clicks, by the page of questions, and by the search.
"""

import re
import subprocess

import pytest
from playwright.sync_api import expect

from settings import ROOT

PYTHON = ROOT / "release/.venv-site/bin/python"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PYTHON.exists(), reason="`make site` installs what makes the site"),
]
FIRST_HITS = 5
# Written before the answers were looked for: the words that a newcomer searches for, and what the section
# that answers the question must say.
QUESTIONS = {
    1: ("requirements", ["Linux", "Python 3.11"]),
    2: ("demo", ["serve --demo"]),
    3: ("install debian package", ["apt install"]),
    4: ("pair a phone", ["QR code"]),
    5: ("google takeout", ["Takeout", "Immich"]),
    6: ("encrypted at rest", ["key"]),
    7: ("remote model provider", ["provider"]),
    8: ("where is my api key", ["show-api-key"]),
    9: ("lost master key", ["keys/master.key", "Keep a copy"]),
    10: ("backup", ["snaplore backup"]),
    11: ("move to another machine", ["restore", "master-key-file"]),
    12: ("update", ["migrates", "apt install"]),
    13: ("delete after 30 days", ["30 days"]),
    14: ("openai api key", ["SNAPLORE_LLM_API_KEY"]),
    15: ("https", ["tls init"]),
    16: ("nginx", ["proxy_pass"]),
    17: ("memory raspberry pi", ["MB"]),
    18: ("several people", ["snaplore@anna"]),
    19: ("claude code mcp", ["/mcp"]),
    20: ("disk is full", ["507"]),
}
# The text from the heading that the address names, or else the page's first one, to the next heading.
SECTION = """() => {
    const named = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const heading = named ?? document.querySelector("article h1");
    const texts = [heading.innerText];
    for (let next = heading.nextElementSibling; next; next = next.nextElementSibling) {
        if (/^H[1-6]$/.test(next.tagName) && (!named || next.tagName <= heading.tagName)) break;
        texts.push(next.innerText);
    }
    return texts.join("\\n");
}"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    made = tmp_path_factory.mktemp("site")
    subprocess.run([PYTHON, "-m", "release.pages", made], cwd=ROOT, check=True, timeout=300)
    return (made / "index.html").as_uri()


@pytest.fixture(scope="module")
def page(chromium, site):
    """The site from the disk, which asks for nothing on the network."""
    context = chromium.new_context(viewport={"width": 1280, "height": 800}, offline=True)
    page = context.new_page()
    page.set_default_timeout(10_000)
    wanted = []
    page.on("request", lambda request: wanted.append(request.url))
    yield page
    context.close()
    assert not [url for url in wanted if not url.startswith(("file:", "blob:", "data:", "about:"))]


def read_questions():
    lines = (ROOT / "docs/questions.md").read_text(encoding="utf-8").splitlines()
    return {int(found[1]): found[2] for line in lines if (found := re.match(r"([0-9]+)\. ([^?]*\?)", line))}


def test_every_question_of_the_page_is_tried():
    assert read_questions().keys() == QUESTIONS.keys()


@pytest.mark.parametrize("number", QUESTIONS)
def test_a_question_is_answered_after_two_clicks(page, site, number):
    page.goto(site)
    page.get_by_role("navigation").get_by_role("link", name="Questions", exact=True).first.click()
    question = page.locator("article li").nth(number - 1)
    expect(question).to_contain_text(read_questions()[number])
    said = ""
    for link in question.get_by_role("link").all():
        link.click()
        page.wait_for_load_state()
        # A link to a page, and not to a place on it, leads to all of it.
        said += page.evaluate(SECTION) if "#" in page.url else page.locator("article").inner_text()
        page.go_back()
    assert [word for word in QUESTIONS[number][1] if word not in said] == []


@pytest.mark.parametrize("number", QUESTIONS)
def test_a_hit_of_the_search_answers_the_question(page, site, number):
    words, answers = QUESTIONS[number]
    page.goto(site)
    page.locator("input[name=query]").fill(words)
    links = page.locator(f".md-search-result__item:nth-child(-n+{FIRST_HITS}) a:visible")
    expect(links.first).to_be_visible()
    addresses = [re.sub(r"\?[^#]*", "", link.get_attribute("href")) for link in links.all()]
    said = []
    for address in addresses:
        page.goto(address)
        said.append(page.evaluate(SECTION))
    assert any(all(word in text for word in answers) for text in said), addresses
