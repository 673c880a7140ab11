"""Skills: the four defaults and the person's own; a deleted default stays deleted."""

import dataclasses
import tomllib

import msgspec
import pytest

from app import create_app
from assistant import skills
from tests.support.client import Client, detail

OWN = {"id": "cook", "name": "Cook", "description": "Recipes", "system_prompt": "You cook.", "icon": "🍲"}


def ids(client):
    return [skill["id"] for skill in client.get("/api/skills").json["skills"]]


def test_the_four_defaults_are_created_on_the_first_listing(client):
    listed = client.get("/api/skills").json["skills"]

    assert [skill["id"] for skill in listed] == ["summarize", "reminders", "research", "stock"]
    assert all(set(skill) == {"id", "name", "description", "icon"} for skill in listed)
    assert ids(client) == ["summarize", "reminders", "research", "stock"]


def test_a_default_can_be_read_before_any_listing(client):
    assert client.get("/api/skills/research").json["system_prompt"]


@pytest.mark.parametrize(("language", "name"), [("en", "Summary"), ("zh", "内容总结")])
def test_the_defaults_are_in_the_configured_language(settings, language, name):
    client = Client(create_app(dataclasses.replace(settings, language=language)))

    assert client.get("/api/skills").json["skills"][0]["name"] == name


def test_both_languages_have_the_same_defaults_in_full():
    defaults = tomllib.loads(skills.DEFAULTS.read_text("utf-8"))

    assert set(defaults) == {"en", "zh"}
    assert [skill["id"] for skill in defaults["en"]] == [skill["id"] for skill in defaults["zh"]]
    for skill in (*defaults["en"], *defaults["zh"]):
        assert msgspec.convert(skill, skills.NewSkill).system_prompt.strip() == skill["system_prompt"]


def test_a_deleted_default_stays_deleted_and_a_changed_one_changed(client, settings):
    ids(client)
    assert client.delete("/api/skills/stock").json == {"message": "Deleted"}
    client.put("/api/skills/research", json={"name": "Digging"})
    later = Client(create_app(settings))

    assert ids(later) == ["summarize", "reminders", "research"]
    assert later.get("/api/skills/research").json["name"] == "Digging"
    detail(later.get("/api/skills/stock"), 404)


def test_an_own_skill_is_made_shown_changed_and_deleted(client):
    assert client.post("/api/skills", json=OWN).json == {**OWN, "enabled": True}
    assert client.get("/api/skills/cook").json == {**OWN, "enabled": True}
    changed = client.put("/api/skills/cook", json={"description": "", "unknown": 1}).json
    assert changed == {**OWN, "description": "", "enabled": True}
    assert "cook" in ids(client)
    assert client.delete("/api/skills/cook").status_code == 200
    detail(client.delete("/api/skills/cook"), 404)


def test_a_disabled_skill_is_not_listed_but_can_be_enabled_again(client):
    client.post("/api/skills", json=OWN)
    client.put("/api/skills/cook", json={"enabled": False})
    assert "cook" not in ids(client)
    assert client.get("/api/skills/cook").json["enabled"] is False
    client.put("/api/skills/cook", json={"enabled": True})

    assert "cook" in ids(client)


def test_disabled_skills_are_listed_on_request_and_marked(client):
    ids(client)
    client.put("/api/skills/reminders", json={"enabled": False})
    listed = client.get("/api/skills?include_disabled=true").json["skills"]

    assert [(skill["id"], skill["enabled"]) for skill in listed] == [
        ("summarize", True), ("reminders", False), ("research", True), ("stock", True)
    ]  # fmt: skip
    assert all(set(skill) == {"id", "name", "description", "icon", "enabled"} for skill in listed)
    without = client.get("/api/skills?include_disabled=false").json["skills"]
    assert [set(skill) for skill in without] == [{"id", "name", "description", "icon"}] * 3
    assert (
        detail(client.get("/api/skills?include_disabled=maybe"), 400)
        == "include_disabled: must be true or false"
    )


def test_listing_all_skills_creates_the_defaults_too(client):
    assert len(client.get("/api/skills?include_disabled=true").json["skills"]) == 4


def test_an_id_that_is_taken_is_409_also_one_of_a_default(client):
    client.post("/api/skills", json=OWN)
    detail(client.post("/api/skills", json=OWN), 409)
    ids(client)

    detail(client.post("/api/skills", json={**OWN, "id": "stock"}), 409)


def test_an_own_skill_under_the_id_of_a_default_is_kept(client):
    client.post("/api/skills", json={**OWN, "id": "stock"})

    assert sorted(ids(client)) == ["reminders", "research", "stock", "summarize"]
    assert client.get("/api/skills/stock").json["name"] == "Cook"


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"id": "has space"}, "id: must be 1 to 64 letters"),
        ({"id": 5}, "id: must be"),
        ({"name": ""}, "name: must not be empty"),
        ({"system_prompt": "x" * 32_769}, "system_prompt: must be at most 32,768 characters"),
        ({"description": None}, "description: must be a text"),
        ({"system_prompt": "a\0b"}, "system_prompt: must not contain a NUL character"),
    ],
)
def test_an_invalid_skill_is_400_and_names_the_field(client, change, sentence):
    assert detail(client.post("/api/skills", json={**OWN, **change}), 400).startswith(sentence)


@pytest.mark.parametrize("missing", ["id", "name", "system_prompt"])
def test_the_required_fields_are_required(client, missing):
    fields = {name: value for name, value in OWN.items() if name != missing}

    assert detail(client.post("/api/skills", json=fields), 400) == f"{missing}: is missing"


@pytest.mark.parametrize("body", ["[]", "{", '"text"', "\xff", "[" * 100_000])
def test_a_body_other_than_a_json_object_is_400(client, body):
    assert detail(client.post("/api/skills", data=body, content_type="application/json"), 400).startswith(
        "body: "
    )


def test_a_change_of_an_unknown_skill_is_404(client):
    detail(client.put("/api/skills/nobody", json={"name": "x"}), 404)
    detail(client.put("/api/skills/nobody"), 404)
