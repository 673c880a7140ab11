"""The settings table: read once, checked at start, secrets never shown."""

import dataclasses

import pytest

from errors import StartRefused
from settings import Settings, variable


def test_an_empty_environment_gives_the_documented_defaults():
    settings = Settings.from_environ({})

    assert settings.retention_days == 30
    assert settings.address == "127.0.0.1:8000"
    assert settings.encryption is True
    assert settings.api_key is None
    assert settings.language == "zh"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SNAPLORE_RETENTION_DAYS", "soon"),
        ("SNAPLORE_RETENTION_DAYS", "-1"),
        ("SNAPLORE_RETENTION_DAYS", "１０"),
        ("SNAPLORE_ANALYSIS_WORKERS", "0"),
        ("SNAPLORE_LANGUAGE", "fr"),
        ("SNAPLORE_DEV_MODE", "yes"),
        ("SNAPLORE_ENCRYPTION", "1"),
        ("SNAPLORE_OCR_MODEL", "medium"),
        ("SNAPLORE_BIND", "8000"),
        ("SNAPLORE_BIND", "127.0.0.1:99999"),
        ("SNAPLORE_LLM_BASE_URL", "api.example.com"),
        ("SNAPLORE_LLM_BASE_URL", "https://[half"),
        ("SNAPLORE_CORS_ORIGINS", "https://a.example/path"),
        ("SNAPLORE_LLM_ALLOWED_HOSTS", "10.0.0.0/99"),
        ("SNAPLORE_LLM_ALLOWED_HOSTS", "ollama.lan:11434"),
        ("SNAPLORE_TRUSTED_PROXIES", "many"),
    ],
)
def test_a_value_that_cannot_be_read_refuses_the_start_and_names_its_variable(name, value):
    with pytest.raises(StartRefused) as refusal:
        Settings.from_environ({name: value})

    assert str(refusal.value).startswith(f"{name}: must ")
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("environ", "language"),
    [
        ({"LANG": "en_GB.UTF-8"}, "en"),
        ({"LANG": "zh_CN.UTF-8"}, "zh"),
        ({"LANG": "zh"}, "zh"),
        ({"LANG": "de_DE@euro"}, "en"),
        ({"LANG": "C.UTF-8"}, "zh"),
        ({"LANG": "POSIX"}, "zh"),
        ({"LANG": ""}, "zh"),
        ({"LC_ALL": "en_US.UTF-8", "LANG": "zh_CN.UTF-8"}, "en"),
        ({"LC_MESSAGES": "zh_TW", "LANG": "en_US.UTF-8"}, "zh"),
        ({"LC_ALL": "C.UTF-8", "LANG": "en_US.UTF-8"}, "en"),
        ({"SNAPLORE_LANGUAGE": "zh", "LANG": "en_US.UTF-8"}, "zh"),
        ({"SNAPLORE_LANGUAGE": " ", "LANG": "en_US.UTF-8"}, "en"),
    ],
)
def test_without_a_language_the_persons_locale_decides(environ, language):
    assert Settings.from_environ(environ).language == language


def test_an_empty_variable_counts_as_unset():
    assert Settings.from_environ({"SNAPLORE_RETENTION_DAYS": " "}).retention_days == 30


def test_lists_are_split_and_trimmed():
    settings = Settings.from_environ({"SNAPLORE_CORS_ORIGINS": "https://a.example , http://b.example:81,"})

    assert settings.cors_origins == ("https://a.example", "http://b.example:81")


def test_no_secret_is_in_the_repr_of_the_settings():
    secrets = {field.name for field in dataclasses.fields(Settings) if field.metadata["secret"]}
    environ = {variable(name): "https://hush.example/hush" for name in secrets}

    assert {"api_key", "llm_api_key", "push_webhook_secret", "tavily_api_key", "brave_api_key"} <= secrets
    assert "hush" not in repr(Settings.from_environ(environ))


@pytest.mark.parametrize(
    ("bind", "loopback"),
    [
        ("127.0.0.1:1", True),
        ("[::1]:1", True),
        ("localhost:1", True),
        ("0.0.0.0:1", False),
        ("pi.local:1", False),
    ],
)
def test_a_loopback_address_is_distinguished_from_an_open_one(bind, loopback):
    assert Settings.from_environ({"SNAPLORE_BIND": bind}).binds_to_loopback is loopback
