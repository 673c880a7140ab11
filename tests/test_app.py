"""The frame: who is let in, in what order a request is judged, and the one error body."""

import dataclasses
import io
import re

import pytest
from PIL import Image

import database
from analysis.pool import Worker
from app import create_app, serve
from errors import StartRefused
from locks import FolderLock
from settings import VERSION
from tests.support.client import Client, detail
from tests.support.drawing import draw


def app_with(settings, **changes):
    return create_app(dataclasses.replace(settings, **changes))


@pytest.mark.parametrize(
    ("path", "body"),
    [("/", {"name": "Snaplore", "version": VERSION, "status": "running"}), ("/api/health", {"status": "ok"})],
)
def test_the_two_open_paths_need_no_key(app, path, body):
    answer = app.test_client().get(path)

    assert answer.status_code == 200
    assert answer.json == body


def test_the_front_page_varies_by_what_the_client_prefers(app):
    assert "Accept" in app.test_client().get("/").headers["Vary"]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("get", "/api/photos"),
        ("get", "/api/nothing"),
        ("get", "/nothing"),
        ("put", "/api/photos"),
        ("get", "/api/photos?page=x"),
        ("post", "/api/health"),
    ],
)
def test_without_the_key_everything_else_is_401_before_404_405_and_400(app, method, path):
    answer = getattr(app.test_client(), method)(path)

    assert "Authorization: Bearer" in detail(answer, 401)
    assert answer.headers["WWW-Authenticate"] == "Bearer"


@pytest.mark.parametrize(
    "header",
    [
        "",
        "Bearer",
        "Bearer ",
        "Bearer wrong",
        "Basic {key}",
        "{key}",
        "Bearer {key}x",
        "Bearer x{key}",
        "Bearer {key} x",
    ],
)
def test_a_missing_or_wrong_key_is_401(app, header):
    answer = app.test_client().get("/api/photos", headers={"Authorization": header.format(key=app.api_key)})

    detail(answer, 401)


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
def test_the_name_of_the_scheme_is_case_insensitive(app, scheme):
    answer = app.test_client().get("/api/photos", headers={"Authorization": f"{scheme} {app.api_key}"})

    assert answer.status_code == 200


@pytest.mark.parametrize("key", ["päßword", "密钥", "naïve key", "\udce9raw"])
def test_keys_that_are_not_ascii_work_in_the_encodings_that_clients_use(settings, key):
    client = app_with(settings, api_key=key).test_client()
    spellings = {key.encode("utf-8", "surrogateescape")}
    if key.isprintable() and max(key) <= "\xff":
        spellings.add(key.encode("latin-1"))
    for spelling in spellings:
        environ = {"HTTP_AUTHORIZATION": f"Bearer {spelling.decode('latin-1')}"}
        assert client.get("/api/photos", environ_overrides=environ).status_code == 200
    detail(client.get("/api/photos", environ_overrides={"HTTP_AUTHORIZATION": "Bearer \xff\xfe"}), 401)
    database.close_connections()


def test_a_service_without_a_key_makes_one_and_keeps_it(settings):
    first, second = create_app(settings).api_key, create_app(settings).api_key

    assert first == second
    assert len(first) >= 32


def test_a_configured_key_replaces_the_generated_one(settings):
    generated = create_app(settings).api_key
    client = app_with(settings, api_key="mine").test_client()

    assert client.get("/api/photos", headers={"Authorization": "Bearer mine"}).status_code == 200
    detail(client.get("/api/photos", headers={"Authorization": f"Bearer {generated}"}), 401)


def test_dev_mode_without_a_key_lets_everybody_in_and_with_a_key_does_not(settings):
    assert app_with(settings, dev_mode=True).test_client().get("/api/photos").status_code == 200
    detail(app_with(settings, dev_mode=True, api_key="mine").test_client().get("/api/photos"), 401)


def test_dev_mode_on_an_open_address_without_a_key_is_warned_about_loudly(settings, caplog):
    app_with(settings, dev_mode=True)
    assert not caplog.records
    app_with(settings, dev_mode=True, bind="0.0.0.0:8000")

    assert "DEV MODE WITHOUT A KEY" in caplog.text


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("get", "/api/nothing", 404),
        ("get", "/api/photos/none", 404),
        ("get", "/api/photos/-1", 404),
        ("get", "/api/photos/1", 404),
        ("get", f"/api/photos/{2**63}", 404),
        ("delete", f"/api/photos/{2**63}", 404),
        ("get", f"/api/photos/{2**63 - 1}/image", 404),
        ("delete", "/api/photos", 405),
        ("post", "/api/stats", 405),
        ("get", "/api/photos?page_size=0", 400),
    ],
)
def test_every_failure_has_the_one_body_and_a_request_id(client, method, path, status):
    answer = getattr(client, method)(path)

    detail(answer, status)
    assert re.fullmatch("[0-9a-f]{16}", answer.headers["X-Request-ID"])
    if status == 405:
        assert "GET" in answer.headers["Allow"]


def test_an_internal_error_shows_no_trace_and_the_log_has_it_under_the_request_id(
    app, client, caplog, monkeypatch
):
    def fail():
        raise ValueError("the private reason")

    monkeypatch.setitem(app.view_functions, "analysis.stats", fail)
    answer = client.get("/api/stats")

    assert "private" not in detail(answer, 500)
    assert answer.headers["X-Request-ID"] in caplog.text
    assert "the private reason" in caplog.text


def test_a_full_disk_is_507_with_a_sentence(app, client, monkeypatch, caplog):
    def fail():
        raise OSError(28, "No space left on device")

    monkeypatch.setitem(app.view_functions, "analysis.stats", fail)

    assert "disk is full" in detail(client.get("/api/stats"), 507)


def test_a_data_folder_that_stays_locked_is_503_with_a_time_to_come_again(app, client, monkeypatch):
    monkeypatch.setattr(FolderLock.shared.__wrapped__, "__defaults__", (0.05,))
    import threading

    locked, done = threading.Event(), threading.Event()

    def hold():
        with database.store().lock.exclusive():
            locked.set()
            done.wait(90)

    holder = threading.Thread(target=hold)
    holder.start()
    locked.wait(90)
    try:
        answer = client.get("/api/photos")
        health = app.test_client().get("/api/health")
    finally:
        done.set()
        holder.join()

    detail(answer, 503)
    assert int(answer.headers["Retry-After"]) >= 1
    assert health.status_code == 200
    assert client.get("/api/photos").status_code == 200


def test_a_preflight_from_an_allowed_origin_needs_no_key_and_others_do(settings):
    client = app_with(settings, cors_origins=("https://web.example",)).test_client()
    asks = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}

    allowed = client.options("/api/photos/upload", headers={"Origin": "https://web.example", **asks})
    other = client.options("/api/photos/upload", headers={"Origin": "https://evil.example", **asks})

    assert allowed.status_code == 200
    assert allowed.headers["Access-Control-Allow-Origin"] == "https://web.example"
    detail(other, 401)
    assert "Access-Control-Allow-Origin" not in other.headers
    detail(client.get("/api/photos", headers={"Origin": "https://web.example"}), 401)


def test_without_configured_origins_no_page_of_another_origin_may_read(client):
    assert (
        "Access-Control-Allow-Origin"
        not in client.get("/api/photos", headers={"Origin": "https://web.example"}).headers
    )


def test_an_oversized_body_is_413_and_read_to_its_end(client):
    def answer(size):
        return client.post("/api/skills", data=b"{}".ljust(size), content_type="application/json")

    assert detail(answer(1_048_576), 400) == "id: is missing"
    assert "1 MB" in detail(answer(1_048_577), 413)


def test_a_setting_that_refuses_raises_for_a_caller_with_settings(settings):
    with pytest.raises(StartRefused):
        app_with(settings, master_key_file=settings.data_dir / "nowhere")


@pytest.mark.parametrize("entry_point", [create_app, serve])
def test_the_entry_point_turns_a_refusal_into_one_line(monkeypatch, entry_point):
    monkeypatch.setenv("SNAPLORE_RETENTION_DAYS", "soon")

    with pytest.raises(SystemExit) as end:
        entry_point()
    assert (
        str(end.value)
        == "Snaplore cannot start: SNAPLORE_RETENTION_DAYS: must be a whole number from 0 to 36500"
    )


def test_commands_get_the_application_with_its_data_closed_and_the_server_with_it_open(monkeypatch, tmp_path):
    monkeypatch.setenv("SNAPLORE_DATA_DIR", str(tmp_path / "data"))

    assert not create_app().is_open
    assert not (tmp_path / "data").exists()
    assert serve().is_open
    database.close_connections()


def test_client_addresses_come_from_the_trusted_proxies_only(settings):
    app = app_with(settings, trusted_proxies=1, dev_mode=True)
    seen = []
    app.before_request(lambda: seen.append(__import__("flask").request.remote_addr))
    app.test_client().get("/api/health", headers={"X-Forwarded-For": "6.6.6.6, 7.7.7.7"})
    plain = app_with(settings, dev_mode=True)
    plain.before_request(lambda: seen.append(__import__("flask").request.remote_addr))
    plain.test_client().get("/api/health", headers={"X-Forwarded-For": "6.6.6.6"})

    assert seen == ["7.7.7.7", "127.0.0.1"]


def test_no_secret_stands_in_the_log_of_a_whole_day(settings, caplog):
    caplog.set_level("DEBUG")
    app = app_with(
        settings,
        api_key="the-service-key",
        llm_api_key="the-model-key",
        llm_base_url="http://localhost:9/v1",
        dev_mode=True,
    )
    client = Client(app)
    client.upload(draw())
    client.get("/api/photos")
    client.get("/api/nothing", headers={"Authorization": "Bearer the-wrong-key"})

    for secret in (
        "the-service-key",
        "the-model-key",
        "the-wrong-key",
        str(database.store().ring.database_key.hex()),
    ):
        assert secret not in caplog.text


def test_a_failed_analysis_is_a_line_of_the_log_that_does_not_repeat_what_the_model_said(
    remote, fake_llm, clock, caplog
):
    caplog.set_level("INFO")
    client = Client(create_app(remote))
    client.upload(draw("quicksilver"), "divorce-papers.png")
    fake_llm.default = lambda request: "no findings, but zanzibar"
    assert Worker(remote, clock=clock).work()

    lines = [record.getMessage() for record in caplog.records if record.name in ("photos", "analysis.pool")]
    assert [line.partition(",")[0] for line in lines if "analysed" in line] == [
        "photo 1 analysed: AnswerUnusable"
    ]
    assert not [word for word in ("quicksilver", "divorce", "zanzibar") if word in caplog.text]
    database.close_connections()


@pytest.mark.parametrize(
    "path",
    [
        "/.well-known/oauth-protected-resource",
        "/.well-known/oauth-authorization-server/mcp",
        "/mcp/.well-known/openid-configuration",
        "/register",
    ],
)
def test_no_client_is_told_that_there_is_oauth(app, path):
    for call in (app.test_client().get, app.test_client().post):
        assert "nothing at this path" in detail(call(path), 404)
    assert app.test_client().get("/api/photos").status_code == 401


def test_an_answer_within_the_limit_names_no_time_to_come_again(client):
    answer = client.get("/mcp")
    assert answer.status_code == 405
    made = client.post("/api/feeds", json={"kind": "notes"}).json
    answer = client.get(made["url"].partition("localhost")[2])
    assert answer.status_code == 200
    assert "Retry-After" not in answer.headers
    assert "X-RateLimit-Remaining" in answer.headers


def test_the_manifest_offers_views_of_the_page(app):
    manifest = app.test_client().get("/manifest.webmanifest").json
    views = {one["url"] for one in manifest["shortcuts"]}
    assert views == {"./#/agenda", "./#/chat", "./#/settings"}


def test_the_manifest_shows_the_page_on_a_desktop_and_on_a_phone_in_small_pictures(app):
    client = app.test_client()
    shown = client.get("/manifest.webmanifest").json["screenshots"]
    assert {one["form_factor"] for one in shown} == {"wide", "narrow"}
    for one in shown:
        answer = client.get(f"/{one['src']}")
        picture = Image.open(io.BytesIO(answer.data))
        assert (answer.content_type, "{}x{}".format(*picture.size)) == (one["type"], one["sizes"])
        assert len(answer.data) < 100_000
