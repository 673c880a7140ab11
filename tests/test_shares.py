"""Sharing a picture: what is sensitive is painted over in the pixels, as a file and by a link that ends."""

import contextlib
import hashlib
import io
from datetime import timedelta

import pytest
from PIL import Image

import database
import readings
from benchmarks import described, redacted
from clock import utc_now
from database import db
from engines.lines import Line, Page
from errors import NotFound
from models import Share
from outlets import shares
from rules.embedded import LocalModel
from tests.support.client import Client
from tests.support.drawing import draw
from tests.support.service import Service

# A card's number of the networks' own tests; it passes the check digit.
CARD = Page(
    800,
    400,
    [
        Line("My cards", 0.99, 40, 30, 300, 70),
        Line("Card number: 4242 4242 4242 4242", 0.99, 40, 150, 760, 190),
        Line("Lunch on Friday", 0.99, 40, 300, 400, 340),
    ],
)


@pytest.fixture
def shared_photo(client):
    """A photo, 800 × 400 and red all over, that was read as `CARD`."""
    red = io.BytesIO()
    exif = Image.Exif()
    exif[0x010E] = "made at home"
    Image.new("RGB", (800, 400), (200, 0, 0)).save(red, "JPEG", quality=95, exif=exif)
    photo_id = client.upload(red.getvalue(), filename="private name.jpg").json["id"]
    read(photo_id)
    return photo_id


def read(photo_id, page=CARD):
    with database.scope(), db.atomic():
        readings.save(photo_id, page, reader="small")


def opened(answer):
    assert answer.status_code == 200, answer.text
    assert answer.mimetype == "image/jpeg"
    return Image.open(io.BytesIO(answer.data))


def is_black(picture, x, y):
    return max(picture.getpixel((x, y))) < 40


def stranger(client):
    """A client without a key."""
    return client.app.test_client()


def with_token(client, token):
    other = Client(client.app)
    other.headers = {"Authorization": f"Bearer {token}"}
    return other


def path_of(new):
    return "/s/" + new.json["url"].rpartition("/s/")[2]


def test_the_secret_is_painted_over_in_the_pixels_and_nothing_else_is(client, shared_photo):
    picture = opened(client.post(f"/api/photos/{shared_photo}/redacted", json={}))
    assert picture.size == (800, 400)
    # "Card number: " is 13 of 33 characters.
    assert all(is_black(picture, x, 170) for x in (330, 400, 600, 755))
    assert not any(is_black(picture, x, y) for x, y in ((60, 170), (60, 50), (60, 320), (700, 320)))
    assert not picture.getexif()
    assert b"made at home" not in client.post(f"/api/photos/{shared_photo}/redacted", json={}).data


def test_what_is_found_is_listed_with_its_places(client, shared_photo):
    boxes = client.get(f"/api/photos/{shared_photo}/redaction").json["boxes"]
    assert [box["kind"] for box in boxes] == ["card"]
    assert 0.3 < boxes[0]["left"] < 0.42
    assert boxes[0]["left"] + boxes[0]["width"] >= 760 / 800


def test_a_person_paints_over_other_places_or_none(client, shared_photo):
    place = {"left": 0.0, "top": 0.0, "width": 0.25, "height": 0.25}
    picture = opened(client.post(f"/api/photos/{shared_photo}/redacted", json={"redact": [place]}))
    assert is_black(picture, 100, 50)
    assert not is_black(picture, 400, 170)
    picture = opened(client.post(f"/api/photos/{shared_photo}/redacted", json={"redact": "none"}))
    assert not is_black(picture, 100, 50)
    assert not is_black(picture, 400, 170)


def test_what_was_said_to_be_harmless_is_not_painted_over(client, shared_photo):
    assert client.patch(f"/api/photos/{shared_photo}", json={"sensitive": []}).status_code == 200
    assert client.get(f"/api/photos/{shared_photo}/redaction").json == {"boxes": []}


def test_a_photo_that_was_not_read_is_not_shared_as_safe(client):
    photo_id = client.upload(draw("one")).json["id"]
    for answer in (
        client.post(f"/api/photos/{photo_id}/redacted", json={}),
        client.post(f"/api/photos/{photo_id}/shares", json={}),
        client.get(f"/api/photos/{photo_id}/redaction"),
    ):
        assert answer.status_code == 409
        assert "not read yet" in answer.json["detail"]
    assert client.post(f"/api/photos/{photo_id}/shares", json={"redact": "none"}).status_code == 200


def test_a_code_with_something_sensitive_is_painted_over_whole(client):
    photo_id = client.upload(draw("scan me", size=(800, 400))).json["id"]
    code = Line("WIFI:T:WPA;S:home;P:correct-horse-9;;", 1.0, 100, 100, 300, 300)
    read(photo_id, Page(800, 400, [Line("scan me", 0.99, 40, 30, 300, 70), code]))
    picture = opened(client.post(f"/api/photos/{photo_id}/redacted", json={}))
    assert all(is_black(picture, x, y) for x, y in ((105, 105), (200, 200), (295, 295)))


CELLS = (("5", 200), ("3", 280), ("3", 440), ("0", 520), ("4", 600))  # and one between that was not read


def test_a_digit_in_a_cell_that_was_not_read_is_painted_over_with_the_others(client):
    photo_id = client.upload(draw("code", size=(800, 400))).json["id"]
    cells = [Line(digit, 0.99, left, 160, left + 30, 200) for digit, left in CELLS]
    read(photo_id, Page(800, 400, [Line("Enter the verification code", 0.99, 40, 30, 500, 70), *cells]))
    picture = opened(client.post(f"/api/photos/{photo_id}/redacted", json={}))
    assert all(is_black(picture, x, 180) for x in (140, 215, 375, 535, 615, 690))
    assert not is_black(picture, 60, 180)


def test_a_link_shows_the_picture_alone_to_whoever_has_it(client, shared_photo):
    new = client.post(f"/api/photos/{shared_photo}/shares", json={})
    answer = stranger(client).get(path_of(new))
    assert is_black(opened(answer), 600, 170)
    assert answer.headers["Cache-Control"] == "no-store"
    assert "noindex" in answer.headers["X-Robots-Tag"]
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    assert "private" not in answer.headers["Content-Disposition"]
    assert b"made at home" not in answer.data
    assert "ETag" not in answer.headers
    [listed] = client.get("/api/shares").json["shares"]
    assert (listed["photo_id"], listed["views"], listed["redacted"]) == (shared_photo, 1, 1)
    assert listed["last_viewed_at"] is not None


def test_only_the_digest_of_a_link_is_stored(client, shared_photo):
    secret = path_of(client.post(f"/api/photos/{shared_photo}/shares", json={})).rpartition("/")[2]
    assert len(secret) == 43
    with database.scope():
        row = Share.get()
    assert secret.encode() not in bytes(row.digest)
    assert len(row.digest) == 32


@pytest.mark.parametrize("ending", ["ended", "expired", "trashed", "deleted", "seen", "unknown"])
def test_a_link_that_has_ended_is_the_same_404_as_one_that_never_was(client, shared_photo, ending):
    new = client.post(f"/api/photos/{shared_photo}/shares", json={"max_views": 2})
    link = path_of(new)
    assert stranger(client).get(link).status_code == 200
    match ending:
        case "ended":
            assert client.delete(f"/api/shares/{new.json['id']}").status_code == 200
            assert client.delete(f"/api/shares/{new.json['id']}").status_code == 404
        case "expired":
            with database.scope():
                Share.update(expires_at=utc_now() - timedelta(seconds=1)).execute()
        case "trashed":
            assert (
                client.post("/api/photos/batch", json={"ids": [shared_photo], "action": "trash"}).status_code
                == 200
            )
        case "deleted":
            assert client.delete(f"/api/photos/{shared_photo}").status_code == 200
        case "seen":
            assert stranger(client).get(link).status_code == 200
        case "unknown":
            link = "/s/" + "A" * 43
    answer = stranger(client).get(link)
    assert answer.status_code == 404
    assert answer.json["detail"] == "There is nothing at this path."
    assert client.get("/api/shares").json["shares"] == [] or ending == "unknown"


def test_links_last_between_a_minute_and_thirty_days(client, shared_photo):
    path = f"/api/photos/{shared_photo}/shares"
    for seconds, status in ((59, 400), (60, 200), (30 * 86_400, 200), (30 * 86_400 + 1, 400)):
        answer = client.post(path, json={"expires_in": seconds})
        assert answer.status_code == status, seconds
        if status == 400:
            assert "expires_in" in answer.json["detail"]


@pytest.mark.parametrize(
    "redact",
    ["some", [{"left": 0.1}], [{"left": 2, "top": 0, "width": 1, "height": 1}], [1], 7, None],
)
def test_unreadable_places_are_refused_by_name(client, shared_photo, redact):
    answer = client.post(f"/api/photos/{shared_photo}/redacted", json={"redact": redact})
    assert answer.status_code == 400
    assert any(name in answer.json["detail"] for name in ("redact", "top", "left"))


def test_a_link_ends_with_the_token_that_made_it(client, shared_photo):
    token = client.post("/api/tokens", json={"name": "tablet", "scope": "full"}).json
    tablet = with_token(client, token["token"])
    link = path_of(tablet.post(f"/api/photos/{shared_photo}/shares", json={}))
    assert stranger(client).get(link).status_code == 200
    assert client.delete(f"/api/tokens/{token['id']}").status_code == 200
    assert stranger(client).get(link).status_code == 404


@pytest.mark.parametrize("scope", ["upload", "read"])
def test_tokens_that_may_not_change_anything_share_nothing(client, shared_photo, scope):
    token = client.post("/api/tokens", json={"name": "frame", "scope": scope}).json["token"]
    frame = with_token(client, token)
    assert frame.post(f"/api/photos/{shared_photo}/shares", json={}).status_code == 403
    assert frame.get("/api/shares").status_code == 403


def test_clean_up_forgets_links_that_have_ended(client, cli, shared_photo):
    client.post(f"/api/photos/{shared_photo}/shares", json={})
    client.post(f"/api/photos/{shared_photo}/shares", json={})
    with database.scope():
        Share.update(expires_at=utc_now() - timedelta(seconds=1)).where(Share.id == 1).execute()
    assert cli.invoke(args=["jobs", "cleanup"]).exit_code == 0
    with database.scope():
        assert [row.id for row in Share.select()] == [2]


def test_a_turned_picture_is_painted_where_it_is_seen(client):
    turned = io.BytesIO()
    exif = Image.Exif()
    exif[0x0112] = 6  # shown turned by 90 degrees
    Image.new("RGB", (400, 200), (200, 0, 0)).save(turned, "JPEG", exif=exif)
    photo_id = client.upload(turned.getvalue()).json["id"]
    place = {"left": 0.0, "top": 0.0, "width": 1.0, "height": 0.1}
    picture = opened(client.post(f"/api/photos/{photo_id}/redacted", json={"redact": [place]}))
    assert picture.size == (200, 400)
    assert is_black(picture, 100, 20)
    assert not is_black(picture, 100, 200)


# Method, path, headers: ways to get at anything else with the address of a link. `{secret}` is what the
# address carries, `{id}` the shared photo, `{other}` another one, `{share}` the link's id.
WAYS = [
    # the secret in the place of a key
    ("GET", "/api/photos", {"Authorization": "Bearer {secret}"}),
    ("GET", "/api/photos", {"Authorization": "Basic {secret}"}),
    ("GET", "/api/photos", {"X-API-Key": "{secret}"}),
    ("GET", "/api/photos", {"Cookie": "key={secret}; session={secret}; token={secret}"}),
    ("GET", "/api/photos?key={secret}&token={secret}&api_key={secret}", {}),
    ("GET", "/api/photos/{id}", {"Authorization": "Bearer {secret}"}),
    ("GET", "/api/photos/{id}/image", {"Authorization": "Bearer {secret}"}),
    ("GET", "/api/photos/{id}/thumbnail", {"Authorization": "Bearer {secret}"}),
    ("GET", "/api/photos/{id}/lines", {"Authorization": "Bearer {secret}"}),
    ("GET", "/api/photos/{id}/redaction", {"Authorization": "Bearer {secret}"}),
    ("POST", "/api/photos/{id}/redacted", {"Authorization": "Bearer {secret}"}),
    ("POST", "/api/photos/{id}/shares", {"Authorization": "Bearer {secret}"}),
    ("DELETE", "/api/photos/{id}", {"Authorization": "Bearer {secret}"}),
    ("GET", "/api/search?q=lunch", {"Authorization": "Bearer {secret}"}),
    ("GET", "/api/records.csv", {"Authorization": "Bearer {secret}"}),
    ("GET", "/api/shares", {"Authorization": "Bearer {secret}"}),
    ("DELETE", "/api/shares/{share}", {"Authorization": "Bearer {secret}"}),
    ("POST", "/api/tokens", {"Authorization": "Bearer {secret}"}),
    ("GET", "/api/export", {"Authorization": "Bearer {secret}"}),
    ("POST", "/mcp", {"Authorization": "Bearer {secret}"}),
    ("POST", "/api/chat/send", {"Authorization": "Bearer {secret}"}),
    # longer, shorter and other addresses
    ("GET", "/s/{secret}/", {}),
    ("GET", "/s/{secret}/image", {}),
    ("GET", "/s/{secret}/lines", {}),
    ("GET", "/s/{secret}.json", {}),
    ("GET", "/s/{secret}/../../api/photos", {}),
    ("GET", "/s/{secret}%2F..%2F..%2Fapi%2Fphotos", {}),
    ("GET", "/s/..%2fapi%2fphotos", {}),
    ("GET", "/s/{secret}%00", {}),
    ("GET", "/s/{secret}%20", {}),
    ("GET", "/s/{secret}{secret}", {}),
    ("GET", "/s/{shorter}", {}),
    ("GET", "/s/{swapped}", {}),
    ("GET", "/s/{digest}", {}),
    ("GET", "/s/{share}", {}),
    ("GET", "/s/%25", {}),
    ("GET", "/s/' OR 1=1 --", {}),
    ("GET", "/s/", {}),
    ("GET", "/s", {}),
    # other methods and headers on the link itself
    ("POST", "/s/{secret}", {}),
    ("PUT", "/s/{secret}", {}),
    ("PATCH", "/s/{secret}", {}),
    ("DELETE", "/s/{secret}", {}),
    ("HEAD", "/s/{secret}", {}),
    ("GET", "/s/{secret}?photo_id={other}&id={other}", {}),
    ("GET", "/s/{secret}?redact=none&boxes=[]&format=png&original=1", {}),
    ("GET", "/s/{secret}", {"X-HTTP-Method-Override": "DELETE"}),
    ("GET", "/s/{secret}", {"X-Original-URL": "/api/photos", "X-Rewrite-URL": "/api/photos"}),
    ("GET", "/s/{secret}", {"Range": "bytes=0-99999999"}),
    ("GET", "/s/{secret}", {"Accept": "application/json"}),
    ("GET", "/s/{secret}", {"Accept": "text/html", "X-Forwarded-Prefix": "/api"}),
    ("GET", "/s/{secret}", {"If-None-Match": "*", "If-Modified-Since": "Sat, 01 Jan 2000 00:00:00 GMT"}),
]


@pytest.mark.parametrize(("method", "path", "headers"), WAYS)
def test_nothing_else_is_reached_with_the_address_of_a_link(client, shared_photo, method, path, headers):
    other = client.upload(draw("another screenshot")).json["id"]
    new = client.post(f"/api/photos/{shared_photo}/shares", json={})
    secret = path_of(new).rpartition("/")[2]
    known = {
        "secret": secret, "shorter": secret[:-1], "swapped": secret.swapcase(), "id": shared_photo,
        "digest": hashlib.sha256(secret.encode()).hexdigest(), "other": other, "share": new.json["id"],
    }  # fmt: skip
    body = {} if method in ("POST", "PUT", "PATCH") else None
    answer = stranger(client).open(
        path.format(**known),
        method=method,
        headers={name: value.format(**known) for name, value in headers.items()},
        json=body,
    )
    if answer.status_code < 400 and answer.data:
        # The only thing there is: the picture, painted over.
        assert path.startswith("/s/{secret}")
        picture = opened(answer)
        assert picture.size == (800, 400)
        assert is_black(picture, 600, 170)
    assert client.get(f"/api/photos/{shared_photo}").status_code == 200
    assert [one["id"] for one in client.get("/api/shares").json["shares"]] == [new.json["id"]]
    assert opened(stranger(client).get(path_of(new))).size == (
        800,
        400,
    )  # what was tried is a link that works


@pytest.mark.slow
def test_a_link_is_dead_in_every_worker_once_it_was_ended(tmp_path):
    with Service(tmp_path, "-w", "2") as service:
        photo_id = service.upload(draw("a picture for a friend"))["id"]

        def answers():
            """The statuses of the link, from each worker: the other one is stopped meanwhile."""
            for other in service.workers:
                other.suspend()
                yield service.knock("GET", link).status_code
                other.resume()

        for how in ("ended", "deleted"):
            path = f"/api/photos/{photo_id}/shares"
            new = service.call("POST", path, json={"redact": "none"}).json()
            link = "/s/" + new["url"].rpartition("/s/")[2]
            assert list(answers()) == [200, 200]
            gone = f"/api/shares/{new['id']}" if how == "ended" else f"/api/photos/{photo_id}"
            assert service.call("DELETE", gone).status_code == 200
            assert list(answers()) == [404, 404], how


@pytest.mark.parametrize(("before", "alive"), [(0.001, True), (0.0, False), (-0.001, False)])
def test_a_link_is_dead_at_its_second(client, shared_photo, before, alive):
    new = client.post(f"/api/photos/{shared_photo}/shares", json={"expires_in": 60})
    secret = path_of(new).rpartition("/")[2]
    with database.scope():
        ends = Share.get().expires_at
        if alive:
            assert shares.seen(secret, now=ends - timedelta(seconds=before))[0] == shared_photo
        else:
            with pytest.raises(NotFound):
                shares.seen(secret, now=ends - timedelta(seconds=before))


@pytest.mark.slow
def test_nothing_of_a_recognised_secret_is_read_again_after_redaction(tmp_path):
    """A part of `benchmarks/redacted.py`, which has 300 screens."""
    with (
        described.service(tmp_path) as app,
        contextlib.closing(LocalModel(ocr_model="both", language="en")) as model,
    ):
        found = list(redacted.results(app, model, 16))
    assert [(one.name, one.left) for one in found if one.left] == []
    assert sum(one.recognised for one in found) >= 14
