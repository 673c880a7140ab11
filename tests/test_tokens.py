"""Tokens and pairing: who may call what, and how a device gets its token."""

import concurrent.futures
import dataclasses
import io
import json
import re
from datetime import timedelta

import pytest

import access
import database
import models
from clock import utc_now
from tests.support.client import detail
from tests.support.service import Service, together

SCOPES = ("upload", "read", "full", "feed")

# Each operation of the contract that needs the key, and the scopes of the tokens that may call it.
TABLE = """
POST   /api/photos/upload                                     upload      full
POST   /api/photos/upload-batch                               upload      full
GET    /api/photos                                                   read full
GET    /api/photos/{photo_id}                                        read full
GET    /api/photos/{photo_id}/image                                  read full
GET    /api/photos/{photo_id}/thumbnail                              read full
GET    /api/photos/{photo_id}/lines                                  read full
GET    /api/photos/apps                                              read full
GET    /api/photos/timeline                                          read full
GET    /api/photos/{photo_id}/state                           upload read full
PATCH  /api/photos/{photo_id}                                             full
DELETE /api/photos/{photo_id}                                             full
POST   /api/photos/{photo_id}/trash                                       full
POST   /api/photos/{photo_id}/restore                                     full
POST   /api/photos/trash/empty                                            full
POST   /api/photos/batch                                                  full
POST   /api/photos/export                                                 full
GET    /api/photos/tags                                              read full
GET    /api/photos/sensitive                                         read full
GET    /api/photos/duplicates                                        read full
GET    /api/photos/expiring                                          read full
POST   /api/photos/expiring/keep                                          full
GET    /api/photos/devices                                           read full
GET    /api/photos/sync-state                                 upload read full
POST   /api/photos/sync-state                                 upload      full
GET    /api/search                                                   read full
GET    /api/searches                                                 read full
POST   /api/searches                                                      full
POST   /api/searches/{search_id}/opened                                   full
DELETE /api/searches/{search_id}                                          full
POST   /api/photos/{photo_id}/opened                                      full
GET    /api/search/related                                           read full
GET    /api/records                                                  read full
GET    /api/records/types                                            read full
GET    /api/photos/{photo_id}/proposals                                   full
POST   /api/photos/{photo_id}/proposals                                   full
GET    /api/records.csv                                              read full
GET    /api/records.jsonld                                           read full
GET    /api/threads                                                  read full
GET    /api/threads/{thread_id}                                      read full
DELETE /api/threads/{thread_id}/photos/{photo_id}                         full
DELETE /api/threads/apart/{photo_id}                                      full
GET    /api/agenda                                                   read full
POST   /api/agenda/{item_id}/dismiss                                      full
DELETE /api/agenda/{item_id}/dismiss                                      full
GET    /api/analysis                                                 read full
POST   /api/analysis/{photo_id}/reprocess                                 full
GET    /api/stats                                                    read full
GET    /api/agenda                                                   read full
POST   /api/agenda/{item_id}/dismiss                                      full
DELETE /api/agenda/{item_id}/dismiss                                      full
POST   /api/chat/send                                                     full
POST   /api/chat/send-with-file                                           full
POST   /api/chat/conversations/{conversation_id}/calls/{call_id}          full
GET    /api/chat/conversations                                       read full
GET    /api/chat/conversations/{conversation_id}                     read full
GET    /api/chat/conversations/{conversation_id}/messages            read full
GET    /api/chat/conversations/{conversation_id}/messages/{message_id}/attachment read full
DELETE /api/chat/conversations/{conversation_id}                          full
GET    /api/dynamics                                                 read full
GET    /api/dynamics/stats                                           read full
GET    /api/dynamics/{dynamic_id}                                    read full
PUT    /api/dynamics/{dynamic_id}/read                                    full
PUT    /api/dynamics/read-all                                             full
PUT    /api/dynamics/{dynamic_id}/pin                                     full
DELETE /api/dynamics/{dynamic_id}                                         full
POST   /api/dynamics/trigger                                              full
GET    /api/memories                                                 read full
GET    /api/memories/stats                                           read full
DELETE /api/memories/{memory_id}                                          full
GET    /api/config/llm                                                    full
PUT    /api/config/llm
GET    /api/config/llm/presets                                            full
POST   /api/config/llm/presets/{name}/apply
POST   /api/config/llm/test
GET    /api/usage                                                         full
POST   /api/push/register                                     upload      full
GET    /api/push/devices                                                  full
DELETE /api/push/devices/{device_id}                                      full
POST   /api/push/test                                                     full
POST   /api/push/broadcast                                                full
GET    /api/feeds                                                         full
POST   /api/feeds                                                         full
DELETE /api/feeds/{feed_id}                                               full
GET    /api/photos/{photo_id}/redaction                                   full
POST   /api/photos/{photo_id}/redacted                                    full
POST   /api/photos/{photo_id}/shares                                      full
GET    /api/shares                                                        full
DELETE /api/shares/{share_id}                                             full
GET    /api/webhooks
POST   /api/webhooks
PATCH  /api/webhooks/{webhook_id}
DELETE /api/webhooks/{webhook_id}
POST   /api/webhooks/{webhook_id}/test
GET    /api/webhooks/{webhook_id}/deliveries
POST   /api/webhooks/{webhook_id}/deliveries/{delivery_id}/send
GET    /api/skills                                                        full
GET    /api/skills/{skill_id}                                             full
POST   /api/skills                                                        full
PUT    /api/skills/{skill_id}                                             full
DELETE /api/skills/{skill_id}                                             full
GET    /api/mcp-servers                                                   full
POST   /api/mcp-servers
PUT    /api/mcp-servers/{server_id}
DELETE /api/mcp-servers/{server_id}
GET    /api/data/stats                                                    full
GET    /api/data/retention                                                full
PUT    /api/data/retention
GET    /api/data/codes                                                    full
PUT    /api/data/codes
GET    /api/data/retention/preview                                        full
GET    /api/addresses                                                     full
PUT    /api/network
GET    /api/data/keys                                                     full
GET    /api/data/export
POST   /api/data/clear
GET    /api/watch                                                         full
GET    /api/tokens
POST   /api/tokens
PATCH  /api/tokens/{token_id}
DELETE /api/tokens/{token_id}
POST   /api/pairing
POST   /api/recipes/{kind}
"""
ROWS = {
    (method, path): set(scopes)
    for method, path, *scopes in (line.split() for line in TABLE.strip().splitlines())
}


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


@pytest.fixture
def token_of(client):
    """The secret of a new token of a scope."""

    def make(scope, name="a device"):
        answer = client.post("/api/tokens", json={"name": name, "scope": scope})
        assert answer.status_code == 200
        return answer.json["token"]

    return make


# --------------------------------------------------------------------------------------------------- scopes


def test_the_table_is_the_contracts(client):
    published = {
        (method.upper(), path): set(operation["x-token-scopes"])
        for path, operations in client.get("/api/openapi.json").json["paths"].items()
        for method, operation in operations.items()
        if operation.get("security") != []
    }

    assert published == ROWS


@pytest.mark.parametrize("scope", SCOPES)
def test_a_token_may_call_what_its_scope_allows_and_nothing_else(client, token_of, scope):
    headers = bearer(token_of(scope))
    wrong = []
    for (method, path), scopes in ROWS.items():
        address = re.sub(
            r"\{(?:conversation_id)\}",
            "a1",
            # Ids of rows are numbers: with another text, the path would be unknown.
            re.sub(r"\{(?!device|skill|server|call|conversation)\w+_id\}", "1", path),
        )
        call = getattr(client, method.lower())
        answer = call(re.sub(r"\{\w+\}", "any", address), headers=headers)
        if (answer.status_code == 403) == (scope in scopes) or answer.status_code == 401:
            wrong.append(f"{method} {path}: {answer.status_code}")
        if answer.status_code == 403:
            assert detail(answer, 403)

    assert wrong == []


def test_the_owners_key_may_do_everything_and_an_unknown_path_is_404_for_a_token(client, token_of):
    assert client.get("/api/tokens").status_code == 200
    assert client.get("/api/nothing", headers=bearer(token_of("read"))).status_code == 404


@pytest.mark.slow
def test_an_upload_token_sees_the_state_of_its_own_uploads_only(client, token_of, make_photo, work_queue):
    mine, other = bearer(token_of("upload")), bearer(token_of("upload"))
    photo = client.post(
        "/api/photos/upload",
        headers=mine,
        data={"file": (io.BytesIO(make_photo()), "a.png"), "device_id": "phone"},
    ).json["id"]
    batch = client.post(
        "/api/photos/upload-batch",
        headers=mine,
        data={"files": (io.BytesIO(make_photo(text="other")), "b.png"), "device_id": "phone"},
    ).json["results"][0]["id"]
    of_owner = client.upload(make_photo(text="third")).json["id"]

    assert client.get(f"/api/photos/{photo}/state", headers=mine).json["status"] == "pending"
    assert client.get(f"/api/photos/{batch}/state", headers=mine).status_code == 200
    for headers, hidden in ((other, photo), (mine, of_owner), (mine, 99)):
        detail(client.get(f"/api/photos/{hidden}/state", headers=headers), 404)
    work_queue()
    state = client.get(f"/api/photos/{photo}/state", headers=mine).json
    assert state == {"photo_id": photo, "status": "done", "error_message": None}


# --------------------------------------------------------------------------------------------------- tokens


def test_a_token_is_shown_once_and_only_its_digest_is_stored(client, token_of):
    secret = token_of("read", name="Tablet")

    assert re.fullmatch(r"snp_[A-Za-z0-9_-]{43}", secret)
    listed = client.get("/api/tokens").json["tokens"]
    assert [(token["name"], token["scope"], token["last_used_at"]) for token in listed] == [
        ("Tablet", "read", None)
    ]
    assert secret not in json.dumps(listed)
    with database.scope():
        rows = database.db.execute_sql("SELECT * FROM tokens").fetchall()
    assert secret not in repr(rows)
    assert secret[4:] not in repr(rows)


def test_the_list_says_when_a_token_was_last_used_and_by_which_device(client, token_of, make_photo):
    headers = bearer(token_of("full"))
    client.post("/api/photos/sync-state", headers=headers, data={"device_id": "pixel"})
    send(client, headers, make_photo(), device_id="other")

    token = client.get("/api/tokens").json["tokens"][0]
    assert token["last_used_at"] is not None
    assert token["device_id"] == "pixel"


def test_the_first_device_that_registers_for_push_is_the_tokens(client, token_of):
    headers = bearer(token_of("upload"))
    client.post("/api/push/register", headers=headers, json={"device_id": "tablet-1", "token": "t"})

    assert client.get("/api/tokens").json["tokens"][0]["device_id"] == "tablet-1"


def test_a_busy_token_writes_once_a_minute(client, token_of):
    headers, now = bearer(token_of("read")), utc_now()
    authorization = headers["Authorization"]
    uses = []
    for seconds in (0, 30, 59, 61):
        access.holder(authorization, now=now + timedelta(seconds=seconds))
        uses.append(client.get("/api/tokens").json["tokens"][0]["last_used_at"])

    assert uses[0] == uses[1] == uses[2] != uses[3]


def test_a_revoked_token_is_401_at_once_and_its_id_is_not_given_again(client, token_of):
    secret = token_of("full")
    token = client.get("/api/tokens").json["tokens"][0]
    assert client.get("/api/photos", headers=bearer(secret)).status_code == 200

    assert client.delete(f"/api/tokens/{token['id']}").status_code == 200
    detail(client.get("/api/photos", headers=bearer(secret)), 401)
    detail(client.delete(f"/api/tokens/{token['id']}"), 404)
    token_of("full")
    assert client.get("/api/tokens").json["tokens"][0]["id"] > token["id"]


def test_a_renamed_token_works_as_before(client, token_of):
    secret = token_of("read", name="Android")
    token = client.get("/api/tokens").json["tokens"][0]

    renamed = client.patch(f"/api/tokens/{token['id']}", json={"name": "Anna's phone"})
    assert renamed.json == {**token, "name": "Anna's phone"}
    assert client.get("/api/photos", headers=bearer(secret)).status_code == 200
    assert client.get("/api/tokens").json["tokens"][0]["name"] == "Anna's phone"
    for name in ("", "x" * 101, None):
        assert detail(client.patch(f"/api/tokens/{token['id']}", json={"name": name}), 400).startswith(
            "name: "
        )
    detail(client.patch(f"/api/tokens/{token['id'] + 1}", json={"name": "a"}), 404)


@pytest.mark.parametrize(
    "authorization",
    [
        "Bearer snp_",
        "Bearer snp_" + "a" * 43,
        "Bearer snp_ümlaut",
        "Basic snp_x",
        "snp_x",
        "Bearer snp_" + "a" * 7000,
    ],
)
def test_what_is_no_token_is_401(client, token_of, authorization):
    token_of("full")
    answer = client.open.get(
        "/api/photos", headers={"Authorization": authorization.encode("utf-8").decode("latin-1")}
    )
    assert answer.status_code == 401


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"scope": "read"}, "name"),
        ({"name": "", "scope": "read"}, "name"),
        ({"name": "x" * 101, "scope": "read"}, "name"),
        ({"name": "a"}, "scope"),
        ({"name": "a", "scope": "owner"}, "scope"),
    ],
)
def test_a_token_needs_a_name_and_a_scope(client, body, field):
    assert detail(client.post("/api/tokens", json=body), 400).startswith(f"{field}: ")


def test_there_is_a_limit_of_tokens(client, token_of, monkeypatch):
    monkeypatch.setattr(access, "MOST_TOKENS", 2)
    token_of("read"), token_of("read")

    assert "revoke one" in detail(client.post("/api/tokens", json={"name": "a", "scope": "read"}), 400)


def test_a_registered_device_id_is_accepted_as_it_is(client, make_photo):
    phone = "samsung_SM-G991B_b4:2e"
    detail(client.upload(make_photo(), device_id=phone), 400)
    detail(client.get("/api/photos/sync-state", query_string={"device_id": phone}), 400)
    client.post("/api/push/register", json={"device_id": phone, "token": "t"})

    assert client.upload(make_photo(), device_id=phone).status_code == 200
    form = {"files": (io.BytesIO(make_photo(text="b")), "b.png"), "device_id": phone}
    assert client.post("/api/photos/upload-batch", data=form).json["uploaded"] == 1
    state = client.get("/api/photos/sync-state", query_string={"device_id": phone}).json
    assert (state["device_id"], state["total_synced"]) == (phone, 2)
    assert (
        client.post("/api/photos/sync-state", data={"device_id": phone, "since_ms": "0"}).status_code == 200
    )
    assert client.get("/api/photos", query_string={"device_id": phone}).json["total"] == 2


# --------------------------------------------------------------------------------------------------- devices


def send(client, headers, picture, **fields):
    form = {"file": (io.BytesIO(picture), "a.png"), **fields}
    return client.post("/api/photos/upload", headers=headers, data=form)


def test_an_upload_token_is_of_the_first_device_that_it_sends(client, token_of, make_photo):
    headers = bearer(token_of("upload"))
    assert send(client, headers, make_photo("a"), device_id="pixel").status_code == 200

    batch = {"files": (io.BytesIO(make_photo("b")), "b.png"), "device_id": "tablet"}
    refused = (
        send(client, headers, make_photo("b"), device_id="tablet"),
        client.post("/api/photos/upload-batch", headers=headers, data=batch),
        client.get("/api/photos/sync-state?device_id=tablet", headers=headers),
        client.post("/api/photos/sync-state", headers=headers, data={"device_id": "tablet"}),
        client.post("/api/push/register", headers=headers, json={"device_id": "tablet", "token": "t"}),
    )
    assert {detail(answer, 403) for answer in refused} == {"This token is of the device `pixel` only."}
    assert client.get("/api/photos/sync-state?device_id=pixel", headers=headers).status_code == 200
    # An upload that names no device is of none.
    assert send(client, headers, make_photo("c")).status_code == 200
    assert client.get("/api/photos").json["total"] == 2


def test_an_upload_token_that_squats_on_a_phones_ids_takes_nothing_from_it(client, token_of, make_photo):
    squatter = bearer(token_of("upload"))
    phone = {"device_id": "pixel", "local_media_store_id": "78"}
    send(client, squatter, make_photo("noise"), original_timestamp="4102444800000", **phone)

    stored = client.upload(make_photo("the real one"), **phone).json
    assert stored["dedup"] is False
    assert client.get(f"/api/photos/{stored['id']}").json["local_media_store_id"] == "78"


def test_the_sync_state_of_a_device_is_closed_to_an_upload_token_that_others_came_before(
    client, token_of, make_photo
):
    ours = make_photo("the owner's picture")
    client.upload(ours, device_id="pixel", original_timestamp="1700000000000", device_name="Pixel 8")
    before = client.get("/api/photos/sync-state?device_id=pixel").json
    stranger = bearer(token_of("upload", name="Pixel 8"))  # made by hand, not paired

    year_2100 = {"device_id": "pixel", "since_ms": "4102444800000", "device_name": "mine"}
    for answer in (
        client.get("/api/photos/sync-state?device_id=pixel", headers=stranger),
        client.post("/api/photos/sync-state", headers=stranger, data=year_2100),
        client.post("/api/push/register", headers=stranger, json={"device_id": "pixel", "token": "t"}),
    ):
        assert "used by others" in detail(answer, 403)
    again = send(
        client, stranger, ours, device_id="pixel", device_name="mine", original_timestamp="4102444800000"
    )
    assert again.json["dedup"] is False  # it learns nothing about the owner's photo
    assert send(client, stranger, ours, device_id="pixel").json["dedup"] is True
    after = client.get("/api/photos/sync-state?device_id=pixel").json
    assert after["last_synced_timestamp"] == before["last_synced_timestamp"]
    assert client.get("/api/photos/devices").json["devices"][0]["device_name"] == "Pixel 8"


def paired(client, **body):
    code = begun(client, scope="upload", **body)["code"]
    return bearer(redeem(client, code).get_json()["token"])


@pytest.mark.parametrize("again", [{"name": "Anna's Pixel"}, {"name": "other", "device_id": "pixel"}])
def test_a_phone_that_is_paired_anew_takes_its_device_over(client, make_photo, again):
    old = paired(client, name="Anna's Pixel")
    first = send(client, old, make_photo(), device_id="pixel", local_media_store_id="1").json["id"]

    new = paired(client, **again)
    stored = send(client, new, make_photo(), device_id="pixel", local_media_store_id="9").json
    assert (stored["id"], stored["dedup"]) == (first, True)
    assert client.get(f"/api/photos/{first}/state", headers=new).status_code == 200
    assert client.post("/api/photos/sync-state", headers=new, data={"device_id": "pixel"}).status_code == 200
    detail(client.get("/api/photos/sync-state?device_id=pixel", headers=old), 401)
    assert len(client.get("/api/tokens").json["tokens"]) == 1


def test_a_phone_that_used_the_owners_key_keeps_its_photos_when_it_is_paired(client, make_photo):
    first = client.upload(make_photo(), device_id="pixel", device_name="Pixel 8").json["id"]
    code = begun(client, scope="upload")["code"]
    token = bearer(redeem(client, code, device_name="Pixel 8").get_json()["token"])

    assert send(client, token, make_photo(), device_id="pixel").json == {
        "id": first,
        "filename": "screenshot.png",
        "dedup": True,
        "message": "Already exists (dedup)",
    }


def test_a_token_that_is_paired_under_another_name_has_the_device_once_the_older_one_is_revoked(
    client, make_photo
):
    send(client, paired(client, name="Anna's Pixel"), make_photo(), device_id="pixel")
    new = paired(client, name="Pixel, new")
    detail(client.get("/api/photos/sync-state?device_id=pixel", headers=new), 403)

    older = client.get("/api/tokens").json["tokens"][-1]
    client.delete(f"/api/tokens/{older['id']}")
    assert client.get("/api/photos/sync-state?device_id=pixel", headers=new).status_code == 200
    assert send(client, new, make_photo(), device_id="pixel").json["dedup"] is True


# --------------------------------------------------------------------------------------------------- pairing


def begun(client, **body):
    answer = client.post("/api/pairing", json=body)
    assert answer.status_code == 200
    return answer.json


def redeem(client, code, **more):
    return client.open.post("/api/pairing/redeem", json={"code": code, **more})


def test_a_code_gives_one_token_without_the_key(client):
    pairing = begun(client, name="Phone", scope="read")

    assert re.fullmatch(r"[2-9A-HJKMNP-Z]{8}", pairing["code"])
    assert pairing["url"] == f"http://localhost/#/pair/{pairing['code']}"
    assert pairing["qr"].startswith("<svg ")
    redeemed = redeem(client, pairing["code"], device_name="Anna's Pixel").get_json()
    assert redeemed["scope"] == "read"
    assert client.get("/api/photos", headers=bearer(redeemed["token"])).status_code == 200
    assert client.get("/api/tokens").json["tokens"][0]["name"] == "Anna's Pixel"
    assert client.app.api_key not in json.dumps(pairing)


def test_the_link_may_name_another_address_of_the_service(client):
    assert begun(client, address="http://192.168.1.20:8000")["url"].startswith(
        "http://192.168.1.20:8000/#/pair/"
    )
    assert begun(client, address="https://[fd00::1]:8443")["url"].startswith("https://[fd00::1]:8443/#/pair/")
    assert begun(client, address="https://a.example/at/home")["url"].startswith(
        "https://a.example/at/home/#/pair/"
    )
    for wrong in (
        "javascript:alert(1)",
        "http://",
        "http://a/b/",
        "http://a/../b",
        "http://a#b",
        "http://a@b",
        "http://a b",
        "//a",
    ):
        assert detail(client.post("/api/pairing", json={"address": wrong}), 400).startswith(
            "address: must be"
        )


def test_a_code_may_be_typed_in_groups_and_small_letters(client):
    code = begun(client, name="Phone")["code"]

    answer = redeem(client, f" {code[:4].lower()}-{code[4:].lower()} ")
    assert answer.get_json()["scope"] == "full"
    assert client.get("/api/tokens").json["tokens"][0]["name"] == "Phone"


def test_every_failed_redemption_is_the_same_401(client, monkeypatch):
    used = begun(client)["code"]
    redeem(client, used)
    old = begun(client)["code"]
    with database.scope():
        models.Pairing.update(expires_at=utc_now() - timedelta(seconds=1)).execute()

    sentences = {detail(redeem(client, code), 401) for code in (used, old, "ABCDEFGH", "!", "x" * 64)}
    assert len(sentences) == 1


def knock(client, address, code="WRONG"):
    return client.open.post(
        "/api/pairing/redeem", json={"code": code}, environ_overrides={"REMOTE_ADDR": address}
    )


@pytest.mark.parametrize(
    ("strangers", "owner"),
    [
        (["203.0.113.9"] * 10, "203.0.113.8"),
        # A household has a /64, and sends from any address of it.
        ([f"2001:db8::{number:x}" for number in range(10)], "2001:db8:0:1::1"),
        ([f"::ffff:203.0.113.{number}" for number in [9] * 10], "::ffff:203.0.113.8"),
    ],
    ids=["IPv4", "IPv6", "IPv4 in IPv6"],
)
def test_ten_redemptions_a_minute_are_tried_for_an_address_and_others_are_not_kept_out(
    client, strangers, owner
):
    code = begun(client)["code"]
    for address in strangers:
        detail(knock(client, address), 401)
    refused = knock(client, strangers[-1], code)
    assert "a minute" in detail(refused, 429)
    assert refused.headers["Retry-After"] == "60"

    assert knock(client, owner, code).status_code == 200


def test_a_header_gives_no_other_address_and_after_a_minute_the_address_may_try_again(client):
    code = begun(client)["code"]
    for number in range(10):
        forged = {"X-Forwarded-For": f"10.0.0.{number}"}
        detail(client.open.post("/api/pairing/redeem", json={"code": "WRONG"}, headers=forged), 401)
    detail(redeem(client, code), 429)

    with database.scope():
        passed = [(by, moment - 60_001) for by, moment in models.stored_value(access.ATTEMPTS)]
        models.store_value(access.ATTEMPTS, passed)
    assert redeem(client, code).status_code == 200


def test_thirty_two_threads_try_ten_codes_a_minute_and_not_one_more(app, client):
    client.get("/api/tokens")  # the contract is made before the threads start

    def attempt(_number):
        answer = app.test_client().post("/api/pairing/redeem", json={"code": "WRONG"})
        return answer.status_code

    with concurrent.futures.ThreadPoolExecutor(32) as threads:
        statuses = list(threads.map(attempt, range(160)))

    # 503: the database was busy for so long that the attempt was not judged at all.
    assert statuses.count(401) == 10
    assert set(statuses) <= {401, 429, 503}


def test_a_clock_that_is_set_back_does_not_forget_the_attempts(client, monkeypatch):
    moments = iter([utc_now() + timedelta(seconds=20 - number) for number in range(12)])
    monkeypatch.setattr(access, "utc_now", lambda: next(moments))

    statuses = [redeem(client, "WRONG").status_code for _ in range(12)]
    assert statuses == [401] * 10 + [429] * 2


def test_only_so_many_codes_wait_at_once(client, monkeypatch):
    monkeypatch.setattr(access, "MOST_CODES", 2)
    begun(client), begun(client)

    detail(client.post("/api/pairing", json={}), 429)
    with database.scope():
        models.Pairing.update(expires_at=utc_now() - timedelta(seconds=1)).execute()
    begun(client)


def test_the_terminal_shows_a_code_that_works(client, cli):
    shown = cli.invoke(
        args=["pair", "--name", "Laptop", "--scope", "upload", "--address", "http://192.168.1.5:8000/"]
    )

    assert shown.exit_code == 0, shown.output
    code = re.search(r"http://192\.168\.1\.5:8000/#/pair/([2-9A-Z]{8})", shown.output)[1]
    assert "\u2588" in shown.output
    assert redeem(client, code).get_json()["scope"] == "upload"


def test_the_terminal_never_shows_an_address_that_no_device_can_open(client, cli):
    client.app.settings = dataclasses.replace(client.app.settings, bind="0.0.0.0:8123")
    shown = cli.invoke(args=["pair"])

    assert shown.exit_code == 0, shown.output
    assert re.search(r"http://[^ ]+:8123/#/pair/", shown.output)
    assert "0.0.0.0" not in shown.output


def test_parallel_redemptions_give_one_token_and_a_revoked_one_is_refused_by_both_workers(tmp_path):
    with Service(tmp_path, "-w", "2", api_key="key") as service:
        code = service.call("POST", "/api/pairing", json={"name": "Phone"}).json()["code"]

        def attempt():
            return service.knock("POST", "/api/pairing/redeem", json={"code": code})

        answers = together(*[attempt] * 24)
        statuses = sorted(answer.status_code for answer in answers)
        assert statuses.count(200) == 1
        assert set(statuses) <= {200, 401, 429}
        token = next(answer.json()["token"] for answer in answers if answer.status_code == 200)

        def use():
            return service.knock("GET", "/api/photos", headers=bearer(token)).status_code

        assert set(together(*[use] * 16)) == {200}
        (listed,) = service.get("/api/tokens")["tokens"]
        service.call("DELETE", f"/api/tokens/{listed['id']}")
        assert set(together(*[use] * 16)) == {401}
        assert token not in service.output


@pytest.mark.slow
def test_a_thousand_parallel_redemptions_give_one_token(app, client, monkeypatch):
    monkeypatch.setattr(access, "REDEMPTIONS_A_MINUTE", 10_000)
    code = begun(client)["code"]

    with concurrent.futures.ThreadPoolExecutor(16) as threads:
        answers = list(
            threads.map(
                lambda _: app.test_client().post("/api/pairing/redeem", json={"code": code}), range(1000)
            )
        )

    statuses = [answer.status_code for answer in answers]
    assert statuses.count(200) == 1
    assert set(statuses) <= {200, 401, 503}  # 503: the database is busy
    assert len(client.get("/api/tokens").json["tokens"]) == 1
