"""Dev mode without a key: what foreign web pages can send is refused. With a key nothing changes."""

import dataclasses

import pytest

from app import create_app
from tests.support.beginning import begin
from tests.support.client import detail

SKILL = b'{"id": "foreign", "name": "n", "system_prompt": "p"}'
ALLOWED = "https://web.example"
OF_THIS_MACHINE = (
    {},
    {"Host": "localhost:8000"},
    {"Host": "127.0.0.1"},
    {"Host": "[::1]:8000", "Sec-Fetch-Site": "same-origin"},
    {"Sec-Fetch-Site": "none"},
    {"Sec-Fetch-Site": "same-site", "Origin": "http://localhost:5173"},
    {"Sec-Fetch-Site": "cross-site", "Origin": ALLOWED},
)
FOREIGN = (
    {"Host": "rebound.evil.example"},
    {"Host": "localhost.evil.example:8000"},
    {"Host": "192.168.1.7:8000"},
    {"Host": "localhost@evil.example"},
    {"Host": "[::1"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"},
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {"Origin": "https://localhost.evil.example"},
)


@pytest.fixture
def without_key(settings):
    begin(settings)
    running = dataclasses.replace(settings, dev_mode=True, api_key=None, cors_origins=(ALLOWED,))
    return create_app(running).test_client()


@pytest.fixture
def with_key(settings):
    begin(settings)
    running = dataclasses.replace(settings, dev_mode=True, api_key="mine")
    return create_app(running).test_client()


@pytest.mark.parametrize("headers", OF_THIS_MACHINE, ids=str)
def test_without_a_key_requests_of_this_machine_are_answered(without_key, headers):
    assert without_key.get("/api/photos", headers=headers).status_code == 200
    assert without_key.post("/api/data/clear", headers=headers, json={}).status_code == 400


@pytest.mark.parametrize("headers", FOREIGN, ids=str)
def test_without_a_key_requests_of_foreign_pages_are_refused(without_key, headers):
    assert "localhost" in detail(without_key.get("/api/photos", headers=headers), 401)
    detail(without_key.post("/api/skills", headers=headers, json={}), 401)
    detail(without_key.get("/api/nothing", headers=headers), 401)


@pytest.mark.parametrize("headers", FOREIGN, ids=str)
def test_the_open_paths_are_answered_to_everybody(without_key, headers):
    assert without_key.get("/api/health", headers=headers).status_code == 200


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", None]
)
def test_without_a_key_a_json_body_needs_its_content_type(without_key, kind):
    answer = without_key.post("/api/skills", data=SKILL, content_type=kind)

    assert "application/json" in detail(answer, 400)
    assert without_key.post("/api/skills", data=SKILL, content_type="application/json").status_code == 200


def test_without_a_key_a_request_without_a_body_needs_no_content_type(without_key):
    assert without_key.put("/api/dynamics/read-all").status_code == 200


@pytest.mark.parametrize("headers", FOREIGN, ids=str)
def test_with_a_key_nothing_of_this_is_checked(with_key, headers):
    headers = {**headers, "Authorization": "Bearer mine"}

    assert with_key.get("/api/photos", headers=headers).status_code == 200
    answer = with_key.post("/api/skills", headers=headers, data=SKILL, content_type="text/plain")
    assert answer.status_code == 200
