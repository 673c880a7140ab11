import dataclasses
import threading

import pytest

from engines import configuration
from rules.embedded import LocalModel
from settings import Settings

KEY = "sk-very-secret"


def from_environment(settings):
    """The configuration as long as nothing was set at runtime."""
    return configuration.merged(configuration.Stored(), settings)


def settings_for(url, **values):
    return Settings(dev_mode=True, llm_base_url=url, llm_api_key=KEY, llm_model="eyes-1", **values)


def test_without_a_base_address_the_embedded_analyser_is_the_model(model_for):
    chosen = from_environment(Settings(ocr_model="tiny", llm_api_key=KEY, llm_model="eyes-1"))
    assert (chosen.provider, chosen.model, chosen.base_url, chosen.api_key) == ("local", "ocr-tiny", "", None)
    assert isinstance(model_for(Settings(ocr_model="tiny")), LocalModel)


@pytest.mark.parametrize("name", configuration.PRESETS)
def test_a_known_origin_brings_the_preset(name):
    preset = configuration.PRESETS[name]
    chosen = from_environment(Settings(llm_base_url=preset.base_url + "/"))
    assert (chosen.provider, chosen.model, chosen.max_context_tokens) == (
        name,
        preset.model,
        preset.max_context_tokens,
    )
    assert from_environment(Settings(llm_base_url=preset.base_url, llm_model="other")).model == "other"


def test_there_are_seven_presets_by_their_names():
    assert list(configuration.PRESETS) == [
        "openai",
        "anthropic",
        "gemini",
        "deepseek",
        "qwen",
        "zhipu",
        "ollama",
    ]


@pytest.mark.parametrize(
    "url",
    [
        "https://model.example/v1",
        "https://api.openai.com:8443/v1",
        "https://api.openai.com.example",
        "https://a@b",
    ],
)
def test_any_other_address_is_custom(url):
    assert from_environment(Settings(llm_base_url=url)).provider == "custom"


def test_the_key_is_in_no_repr(model_for):
    settings = settings_for("https://model.example/v1")
    assert KEY not in repr(from_environment(settings))
    assert KEY not in repr(model_for(settings))


def test_there_is_one_model_for_each_configuration(fake_llm, model_for, loaded):
    settings = settings_for(fake_llm.url)
    found = []
    threads = [threading.Thread(target=lambda: found.append(model_for(settings))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len({id(model) for model in found}) == 1
    assert model_for(dataclasses.replace(settings, llm_model="eyes-2")) is not found[0]
    loaded.clear()
    assert model_for(settings) is not found[0]
