"""The texts of the page: each is there in every language and is used, and each script gets what it shows."""

import re

import pytest

from web import dashboard, page_texts

ENGLISH = page_texts.language("en").texts
OTHERS = [language for language in page_texts.LANGUAGES if language != "en"]
SCRIPT = "\n".join(
    path.read_text(encoding="utf-8") for path in sorted((dashboard.TEMPLATES / "script").rglob("*.js"))
)
TRUST = (dashboard.TEMPLATES / "trust" / "page.html").read_text(encoding="utf-8")


def keys(texts):
    return {f"{view}.{word}" for view, words in texts.items() for word in words}


def places(text):
    return sorted(re.findall(r"\{(\w+)\}", text))


@pytest.mark.parametrize("language", OTHERS)
def test_a_language_has_every_text_of_english_and_no_other(language):
    assert keys(page_texts.language(language).texts) == keys(ENGLISH)


@pytest.mark.parametrize("language", page_texts.LANGUAGES)
def test_a_text_says_something_and_has_the_places_of_the_english_one(language):
    texts = page_texts.language(language).texts
    assert not [key for view, words in texts.items() for key, text in words.items() if not text.strip()]
    different = [
        f"{view}.{word}"
        for view, words in texts.items()
        for word, text in words.items()
        if places(text) != places(ENGLISH[view][word])
    ]
    assert not different


def test_a_text_that_is_shown_is_there():
    shown = {
        key
        for call in re.findall(r"\bt\(([^()`]*)", SCRIPT)
        for key in re.findall(r'"([a-z]\w*\.\w+)"', call)
    } | set(re.findall(r'\b(?:title|label): "(\w+\.\w+)"', SCRIPT))
    assert len(shown) > 300
    assert not shown - keys(ENGLISH)
    computed = {
        view for found in re.findall(r'\bt\(`(\w+)\.\$|\bterm\("(\w+)"', SCRIPT) for view in found if view
    }
    assert len(computed) > 20
    assert not computed - ENGLISH.keys()
    assert set(re.findall(r'\b(?:t|step)\("(\w+)"', TRUST)) == ENGLISH["trust"].keys()


def test_a_text_that_is_there_is_shown():
    assert keys(ENGLISH) - keys(page_texts.used(SCRIPT, ENGLISH)) == {
        f"trust.{word}" for word in ENGLISH["trust"]
    }


def test_a_script_gets_the_texts_that_it_names_and_those_of_the_views_whose_words_are_computed():
    texts = {
        "chat": {"title": "Chat", "send": "Send"},
        "status": {"done": "Done", "error": "Failed"},
        "category": {"finance": "Finance"},
        "skills": {"add": "Add a skill", "name": "Name"},
    }
    script = """
      t("chat.title"), t(`status.${state}`), show("skills");
      function show(group) { t(`${group}.add`); }
    """
    assert page_texts.used(script, texts) == {
        "chat": {"title": "Chat"},
        "status": {"done": "Done", "error": "Failed"},
        "skills": {"add": "Add a skill"},
    }
    assert page_texts.used('term("category", value)', texts) == {"category": {"finance": "Finance"}}
    assert page_texts.without(texts, {"chat": {"title": "Chat"}, "category": {"finance": "Finance"}}) == {
        "chat": {"send": "Send"},
        "status": {"done": "Done", "error": "Failed"},
        "skills": {"add": "Add a skill", "name": "Name"},
    }
