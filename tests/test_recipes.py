"""Recipes for other programs: each is checked by the program's own rules, or run against a service."""

import hashlib
import io
import json
import os
import re
import subprocess
import uuid
from typing import get_args

import pytest

from tests.support.client import detail
from tests.support.drawing import draw
from tests.support.service import Service
from tests.support.trust import SecureService
from web import recipes

# From the sources of HTTP Shortcuts: what its import requires (`Shortcut.validate`, the value lists).
METHODS = {"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE"}
BODIES = {"custom_text", "form_data", "x_www_form_urlencode", "file"}
# From the documentation of ShareX's custom uploaders.
SHAREX_FIELDS = {
    *("Version", "Name", "DestinationType", "RequestMethod", "RequestURL", "Parameters", "Headers", "Body"),
    *("Arguments", "FileFormName", "Data", "URL", "ThumbnailURL", "DeletionURL", "ErrorMessage"),
}


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with Service(tmp_path_factory.mktemp("recipes")) as service:
        yield service


def asked(service, kind):
    answer = service.call("POST", f"/api/recipes/{kind}")
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.fixture
def programs(tmp_path):
    """A folder for the PATH with screenshot programs that draw; `curl` is the real one."""
    picture = tmp_path / "shot.png"
    picture.write_bytes(draw(text="from a program"))
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, script in {
        "flameshot": f'[ "$1 $2" = "gui --raw" ] && cat {picture}',
        "slurp": "echo 10,10 200x100",
        "grim": f'[ "$2" = "10,10 200x100" ] && [ "$3" = - ] && cat {picture}',
        "spectacle": f'for last; do :; done; cp {picture} "$last"',
    }.items():
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["flameshot", "spectacle", "grim", "curl", "macos"])
def test_a_line_for_a_shell_uploads_with_a_token_of_its_own(service, programs, tmp_path, kind):
    recipe = asked(service, kind)
    (tmp_path / "screenshot.png").write_bytes(draw(text=kind))
    before = service.get("/api/photos")["total"]

    done = subprocess.run(
        ["sh", "-c", recipe["content"], "sh", "screenshot.png"],
        cwd=tmp_path,
        env={"PATH": f"{programs}:{os.environ['PATH']}", "no_proxy": "*"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout)["dedup"] is False
    assert service.get("/api/photos")["total"] == before + 1
    token = service.get("/api/tokens")["tokens"][0]
    assert (token["name"], token["scope"]) == (recipe["name"], "upload")
    assert token["device_id"]


def test_an_import_of_http_shortcuts_keeps_its_rules_and_what_it_sends_is_accepted(service):
    recipe = asked(service, "http-shortcuts")
    base = json.loads(recipe["content"])
    (category,) = base["categories"]
    (shortcut,) = category["shortcuts"]

    assert base["version"] <= 81
    for entry in (category, shortcut, *shortcut["parameters"]):
        assert uuid.UUID(entry["id"])
    assert 0 < len(shortcut["name"]) <= 50
    assert len(shortcut["description"]) <= 200
    assert shortcut["method"] in METHODS
    assert shortcut["requestBodyType"] in BODIES
    assert shortcut["retryPolicy"] in {"none", "wait_for_internet"}
    assert shortcut["authentication"] in {"none", "basic", "digest", "bearer"}
    assert shortcut["responseHandling"]["uiType"] in {"window", "dialog", "toast"}
    assert shortcut["responseHandling"]["successOutput"] in {"message", "response", "none"}
    assert shortcut["responseHandling"]["failureOutput"] in {"detailed", "simple", "none"}
    # The app adds brackets to the name of a field with several files.
    device, files = shortcut["parameters"]
    answer = service.knock(
        shortcut["method"],
        shortcut["url"].removeprefix(service.url),
        headers={"Authorization": f"Bearer {shortcut['authToken']}"},
        data={device["key"]: device["value"]},
        files=[(f"{files['key']}[]", (f"{n}.png", draw(text=f"shared {n}"), "image/png")) for n in range(2)],
    )
    assert answer.json()["uploaded"] == 2


def test_an_uploader_of_sharex_keeps_its_rules_and_what_it_sends_is_accepted(service):
    recipe = asked(service, "sharex")
    uploader = json.loads(recipe["content"])

    assert recipe["filename"].endswith(".sxcu")
    assert uploader.keys() <= SHAREX_FIELDS
    assert re.fullmatch(r"\d+\.\d+\.\d+", uploader["Version"])
    assert uploader["Body"] == "MultipartFormData"
    answer = service.knock(
        uploader["RequestMethod"],
        uploader["RequestURL"].removeprefix(service.url),
        headers=uploader["Headers"],
        data=uploader["Arguments"],
        files={uploader["FileFormName"]: ("image.png", draw(text="ShareX"))},
    )
    shown = uploader["URL"].replace("{json:id}", str(answer.json()["id"]))
    assert re.fullmatch(rf"{service.url}/#/photo/\d+", shown)


def test_the_steps_for_ios_name_every_value(service):
    details, repeat, contents = asked(service, "ios")["actions"]
    value = {field["name"]: field["value"] for field in contents["values"]}
    typed = {field["name"] for field in contents["values"] if field["typed"]}

    assert {field["name"] for field in details["values"]} >= {"Show in Share Sheet", "Receive"}
    assert repeat["values"][0]["value"] == "Shortcut Input"
    assert typed == value.keys() - {"Method", "Request Body", "Form, File: value"}
    assert value["Headers: Text"].startswith("Bearer snp_")
    sent = service.knock(
        value["Method"],
        value["URL"].removeprefix(service.url),
        headers={value["Headers: Key"]: value["Headers: Text"]},
        data={value["Form, Text: Key"]: value["Form, Text: value"]},
        files={value["Form, File: Key"]: ("IMG_0001.PNG", draw(text="iPhone"))},
    )
    assert sent.status_code == 200


@pytest.fixture(scope="module")
def secure(tmp_path_factory):
    with SecureService(tmp_path_factory.mktemp("secure")) as service:
        yield service


def test_http_shortcuts_gets_the_fingerprint_of_the_certificate_that_the_service_shows(secure):
    recipe = asked(secure, "http-shortcuts")
    shortcut = json.loads(recipe["content"])["categories"][0]["shortcuts"][0]
    with secure.connection() as connection:
        shown = hashlib.sha256(connection.getpeercert(binary_form=True)).hexdigest()

    # The rule of the app: 40 or 64 hexadecimal digits. It compares the first certificate of the chain.
    assert shortcut["certificateFingerprint"] == shown
    assert shortcut["url"].startswith("https://127.0.0.1:")
    expires_at = secure.get("/api/addresses")["certificate"]["expires_at"]
    assert expires_at[:10] in recipe["steps"][-1]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["curl", "ios", "sharex"])
def test_other_programs_are_led_to_the_authority_first(secure, kind):
    assert f"{secure.url}/ca" in asked(secure, kind)["steps"][0]


def test_nothing_is_pinned_where_a_proxy_has_a_certificate_of_its_own(secure):
    recipe = secure.call("POST", "/api/recipes/http-shortcuts", json={"address": "https://snap.example.org"})

    assert "certificateFingerprint" not in recipe.json()["content"]


def test_texts_are_quoted_for_their_shell():
    hostile = recipes.Target("http://h'; touch x; '", "snp_t")

    for kind in ("curl", "flameshot", "grim", "spectacle", "macos"):
        assert "'\"'\"'; touch x" in recipes.made(kind, hostile)["content"]
    assert "'http://h''; touch x; ''/api/photos/upload'" in recipes.made("powershell", hostile)["content"]


@pytest.mark.parametrize("kind", get_args(recipes.Kind))
def test_each_program_names_its_device_so_that_a_repeated_upload_is_one_photo(kind):
    recipe = recipes.made(kind, recipes.Target("http://a.example", "snp_t"))
    assert "device_id" in f"{recipe['content']} {recipe['actions']}"


def test_powershell_finds_the_folder_also_where_onedrive_has_moved_it():
    script = recipes.made("powershell", recipes.Target("http://a.example", "snp_t"))["content"]
    assert "GetFolderPath('MyPictures')" in script
    assert "$HOME" not in script


def test_an_unknown_program_is_404_and_makes_no_token(client):
    assert "sharex" in detail(client.post("/api/recipes/unknown"), 404)
    assert client.get("/api/tokens").json["tokens"] == []


@pytest.mark.slow
def test_a_list_of_files_may_have_brackets(client, make_photo):
    form = {
        "device_id": "a",
        "files[]": [(io.BytesIO(make_photo()), "a.png"), (io.BytesIO(make_photo(text="b")), "b.png")],
    }

    assert client.post("/api/photos/upload-batch", data=form).json["uploaded"] == 2
