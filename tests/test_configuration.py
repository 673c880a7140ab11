"""The model's configuration at runtime: over the environment field by field, for every process, and no key to
a stranger.
"""

import dataclasses

import pytest

import database
import models
from analysis.pool import Worker
from app import create_app
from engines import configuration
from settings import Settings
from tests.support.client import Client, detail
from tests.support.drawing import draw

PUBLIC = "https://93.184.216.34/v1"  # an address, so that no name is looked up


@pytest.fixture
def open_client(settings):
    """A client of a service in dev mode, which may be pointed at a server on this machine."""
    return Client(create_app(dataclasses.replace(settings, dev_mode=True, api_key="mine")))


def put(client, **fields):
    return client.put("/api/config/llm", json=fields)


def test_with_nothing_configured_the_provider_is_local(client):
    assert client.get("/api/config/llm").json == {
        "provider": "local",
        "base_url": "",
        "model": "ocr-both",
        "max_context_tokens": 32_768,
        "temperature": 0.0,
        "api_key_set": False,
    }


def test_a_change_is_shown_as_it_is_in_force_and_never_shows_the_key(client):
    answer = put(client, base_url=PUBLIC, api_key="sk-hidden", model="eyes", temperature=0.7)

    assert answer.json == client.get("/api/config/llm").json
    assert answer.json == {
        "provider": "custom",
        "base_url": PUBLIC,
        "model": "eyes",
        "max_context_tokens": 32_768,
        "temperature": 0.7,
        "api_key_set": True,
    }
    assert "sk-hidden" not in answer.get_data(as_text=True)


def test_a_stored_field_wins_over_the_environment_and_the_others_stay(settings):
    client = Client(
        create_app(
            dataclasses.replace(
                settings, llm_base_url=PUBLIC, llm_model="from-environment", llm_api_key="sk-env"
            )
        )
    )
    assert client.get("/api/config/llm").json["model"] == "from-environment"
    changed = put(client, model="stored").json
    back = put(client, model="").json

    assert (changed["model"], changed["base_url"], changed["api_key_set"]) == ("stored", PUBLIC, True)
    assert back["model"] == "from-environment"


def test_a_change_survives_a_restart(app, settings):
    put(Client(app), base_url=PUBLIC, api_key="sk-kept", model="eyes")

    assert Client(create_app(settings)).get("/api/config/llm").json["model"] == "eyes"
    with database.scope():
        assert configuration.current(settings).api_key == "sk-kept"


def test_another_process_sees_a_change_within_the_minute(client, settings, monkeypatch):
    put(client, base_url=PUBLIC, model="old")
    with database.scope():
        configuration.current(settings)
        models.store_value(
            "llm", configuration.Stored(base_url=PUBLIC, model="new")
        )  # as another process would

        assert configuration.current(settings).model == "old"
        monkeypatch.setattr(configuration, "CACHE_SECONDS", 0.0)
        assert configuration.current(settings).model == "new"


def test_what_another_process_was_told_is_shown_at_once(client):
    put(client, base_url=PUBLIC, model="old")
    with database.scope():
        models.store_value("llm", configuration.Stored(base_url=PUBLIC, model="new"))

    assert client.get("/api/config/llm").json["model"] == "new"


@pytest.mark.parametrize("other", ["https://93.184.216.35/v1", "https://93.184.216.34:8443/v1"])
def test_a_key_never_travels_to_another_origin(client, settings, other):
    put(client, base_url=PUBLIC, api_key="sk-first")
    assert put(client, base_url=other).json["api_key_set"] is False
    assert put(client, base_url=PUBLIC).json["api_key_set"] is False


def test_another_path_of_the_same_origin_keeps_the_key(client):
    put(client, base_url=PUBLIC, api_key="sk-first")

    assert put(client, base_url="https://93.184.216.34/v2").json["api_key_set"] is True


def test_the_environments_key_does_not_go_to_a_stored_address(settings):
    client = Client(create_app(dataclasses.replace(settings, llm_base_url=PUBLIC, llm_api_key="sk-env")))

    assert put(client, base_url="https://93.184.216.35/v1").json["api_key_set"] is False
    assert put(client, base_url="").json["api_key_set"] is True


def test_a_stored_key_does_not_follow_the_environments_address(settings):
    first = Client(create_app(dataclasses.replace(settings, llm_base_url=PUBLIC)))
    assert put(first, api_key="sk-stored").json["api_key_set"] is True
    moved = Client(create_app(dataclasses.replace(settings, llm_base_url="https://93.184.216.35/v1")))

    assert moved.get("/api/config/llm").json["api_key_set"] is False


def test_the_provider_local_returns_to_the_embedded_model_over_the_environment(settings):
    client = Client(create_app(dataclasses.replace(settings, llm_base_url=PUBLIC, llm_model="eyes")))

    assert put(client, provider="local").json["provider"] == "local"
    assert put(client, base_url=PUBLIC).json["provider"] == "custom"


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"base_url": "http://93.184.216.34/v1"}, "base_url: "),
        ({"base_url": "http://localhost:11434/v1"}, "base_url: "),
        ({"base_url": "https://10.0.0.1/v1"}, "base_url: "),
        ({"base_url": "https://user:pass@93.184.216.34/"}, "base_url: "),
        ({"base_url": "ftp://x"}, "base_url: "),
        ({"provider": "custom"}, "base_url: "),
        ({"api_key": "sk-without-address"}, "base_url: "),
        ({"base_url": PUBLIC, "api_key": "zwei Wörter"}, "api_key: "),
        ({"temperature": 3}, "temperature: must be between 0"),
        ({"temperature": "warm"}, "temperature: must be between 0"),
        ({"model": 5}, "model: must be a text"),
        ({"model": "x" * 300}, "model: must be at most 256 characters"),
    ],
)
def test_a_change_that_cannot_be_taken_is_400_and_changes_nothing(client, fields, sentence):
    assert detail(put(client, **fields), 400).startswith(sentence)
    assert client.get("/api/config/llm").json["provider"] == "local"


@pytest.mark.parametrize(
    ("address", "host"),
    [
        ("http://192.168.1.20:11434/v1", "192.168.1.20"),
        ("https://192.168.1.20/v1", "192.168.1.20"),
        ("http://[fd12::20]:11434/v1", "fd12::20"),
        ("http://ollama.lan:11434/v1", "ollama.lan"),
        ("http://localhost:11434/v1", "localhost"),
    ],
)
def test_the_refusal_of_a_model_at_home_names_the_setting_and_its_value_which_allows_it(
    settings, no_names, address, host
):
    known = dataclasses.replace(settings, llm_allowed_hosts=("nas.lan",))
    said = detail(put(Client(create_app(known)), base_url=address), 400)
    assert said.startswith("base_url: must ")

    value = said.rpartition("SNAPLORE_LLM_ALLOWED_HOSTS=")[2]
    assert value == f"nas.lan,{host}"
    allowed = Settings.from_environ({"SNAPLORE_LLM_ALLOWED_HOSTS": value}).llm_allowed_hosts
    ready = Client(create_app(dataclasses.replace(settings, llm_allowed_hosts=allowed)))
    assert put(ready, base_url=address).json["base_url"] == address


def test_the_refusal_of_the_ollama_preset_names_the_setting_too(client):
    said = detail(client.post("/api/config/llm/presets/ollama/apply", json={}), 400)
    assert said == (
        "base_url: must use https://, unless the service is started with SNAPLORE_LLM_ALLOWED_HOSTS=localhost"
    )


def test_there_are_seven_presets(client):
    presets = client.get("/api/config/llm/presets").json["presets"]

    assert len(presets) == 7
    assert all(
        set(preset) == {"provider", "base_url", "model", "max_context_tokens"} for preset in presets.values()
    )


@pytest.fixture
def no_names(monkeypatch):
    """No name resolves, as on a machine that is offline while it is configured."""
    monkeypatch.setattr(
        configuration.net.Guard,
        "_look_up",
        lambda *args: (_ for _ in ()).throw(configuration.net.Unreachable("offline")),
    )


def test_a_preset_brings_address_model_and_context(client, no_names):
    applied = client.post("/api/config/llm/presets/anthropic/apply", json={"api_key": "sk-x"}).json

    assert (applied["provider"], applied["base_url"]) == ("anthropic", "https://api.anthropic.com/v1")
    assert (applied["max_context_tokens"], applied["api_key_set"]) == (1_000_000, True)
    assert client.post("/api/config/llm/presets/openai/apply").json["api_key_set"] is False
    detail(client.post("/api/config/llm/presets/nobody/apply", json={}), 404)


def test_a_presets_name_as_provider_is_enough(client, no_names):
    assert (
        put(client, provider="gemini", api_key="sk-x")
        .json["base_url"]
        .startswith("https://generativelanguage.googleapis.com")
    )


def test_the_local_preset_needs_dev_mode_or_an_allowed_host(client, open_client):
    assert detail(client.post("/api/config/llm/presets/ollama/apply"), 400).startswith("base_url: ")
    assert open_client.post("/api/config/llm/presets/ollama/apply").json["provider"] == "ollama"


def test_a_model_that_is_configured_at_runtime_is_used_at_once(open_client, settings, fake_llm, clock):
    running = dataclasses.replace(settings, dev_mode=True, api_key="mine")
    photo = open_client.upload(draw()).json["id"]
    put(open_client, base_url=fake_llm.url, api_key="sk-runtime", model="eyes")

    assert Worker(running, clock=clock).work()
    assert fake_llm.requests[0].key == "sk-runtime"
    assert fake_llm.requests[0].body["model"] == "eyes"
    assert open_client.get(f"/api/photos/{photo}").json["analysis"]["status"] == "done"


def test_a_changed_configuration_lets_a_refusing_provider_be_asked_again(
    open_client, settings, fake_llm, clock
):
    running = dataclasses.replace(settings, dev_mode=True, api_key="mine")
    photo = open_client.upload(draw()).json["id"]
    put(open_client, base_url=fake_llm.url, api_key="sk-wrong")
    fake_llm.fail(401)
    Worker(running, clock=clock).work()
    assert Worker(running, clock=clock).work() is False
    put(open_client, api_key="sk-right")

    assert Worker(running, clock=clock).work()
    assert fake_llm.requests[-1].key == "sk-right"
    assert open_client.get(f"/api/photos/{photo}").json["analysis"]["status"] == "done"


def test_a_configuration_that_another_process_was_told_is_the_queues_at_once(
    open_client, settings, fake_llm, clock
):
    """Two workers that disagreed about it would each put what the other was refused back into the queue,
    until it is given up.
    """
    running = dataclasses.replace(settings, dev_mode=True, api_key="mine")
    photo = open_client.upload(draw()).json["id"]
    put(open_client, base_url=fake_llm.url, api_key="sk-wrong")
    fake_llm.fail(401)
    Worker(running, clock=clock).work()
    with database.scope():
        right = configuration.Stored(
            base_url=fake_llm.url, api_key="sk-right", key_origin=configuration.net.origin(fake_llm.url)
        )
        models.store_value("llm", right)

    assert Worker(running, clock=clock).work()
    assert [request.key for request in fake_llm.requests] == ["sk-wrong", "sk-right"]
    assert open_client.get(f"/api/photos/{photo}").json["analysis"]["status"] == "done"
