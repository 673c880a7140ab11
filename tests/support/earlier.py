"""Data folders as earlier versions left them, for tests of what an update makes of them.

`go_back(settings, "0023")` puts the folder of that migration in place, and returns what its own version
answered about it: path -> JSON. The folders are in `tests/support/earlier/`, without encryption, because a
zip packs them to a fifth then. With encryption, `go_back` encrypts the database; the pictures stay as they
are, like files from before it was switched on.

The code of that version made them:

    .venv/bin/python -m tests.support.earlier

drives a real service, with a scripted model and the real reader, and writes the folder of the newest
migration in a minute or more. The folder of a version that was released is never made again.
"""

import json
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import sqlcipher3

import crypto
import database
from clock import utc_now
from settings import Settings
from tests.support.drawing import draw
from tests.support.fake_llm import FINDINGS, FakeLLM, Request
from tests.support.service import Service, eventually

FOLDERS = Path(__file__).parent / "earlier"
NEWEST = sorted(database.MIGRATIONS.glob("[0-9]*"))[-1].name[:4]

QUERIES = (
    "",
    "ferry",
    "harbour ticket",
    "tikcet",
    '"gate 4"',
    "发票",
    "tag:holiday",
    "is:kept",
    "has:date",
    "is:unread",
    "is:sensitive",
    "app:Ferries",
    "my own title",
    "volcano",
)
DESCRIPTIONS = ("a journey by boat", "something to cook")

FERRY = (
    "Harbour Ferries\nYour ticket to Hiiumaa\n"
    "Departure: 14 May 2027, 18:40\nGate 4, deck B\nBooking QX7-11982"
)
SCREENS = {  # text on the picture -> what the model says about it
    FERRY: {"app_name": "Ferries", "summary": "A ferry ticket to Hiiumaa, gate 4.", "intent": "reminder"},
    f"{FERRY}\nUpdated a minute ago": {"app_name": "Ferries", "summary": "The ferry ticket, updated."},
    "Tomato soup\n1 kg tomatoes, 2 onions\nSimmer for 30 minutes": {
        "app_name": "Kitchen", "summary": "A recipe of tomato soup.", "content_category": "webpage",
        "intent": "reference",
    },
    "Invoice 2027-077\nTotal 128.50 EUR\nDue on 3 June 2027": {
        "app_name": "发票夹", "summary": "发票，六月三日到期。", "content_category": "finance",
        "visible_text": "发票 2027-077\n合计 128.50",
    },
    "My bank\nCard number 4532 0151 1283 0366\nValid until 08/33": {"app_name": "Bank", "summary": "A card."},
    "Maria\nShall we meet at eight?\nYes, at the usual place": {
        "app_name": "Chat", "summary": "Maria suggests to meet.", "content_category": "chat",
        "intent": "note",
    },
    "Settings\nDisplay\nBattery\nStorage": {
        "app_name": "Settings", "summary": "The settings.", "intent": "ignore",
    },
    "Weather\nExeter 17 degrees\nPartly cloudy": {"app_name": "Weather", "summary": "Weather in Exeter."},
    "": {"app_name": "Gallery", "summary": "An empty screen.", "visible_text": ""},
}  # fmt: skip


def go_back(settings: Settings, version: str) -> dict[str, Any]:
    """Make the data folder of `settings` that of `version`, a migration's number. Returns what that version
    answered: path -> JSON.
    """
    with zipfile.ZipFile(FOLDERS / f"{version}.zip") as packed:
        answers: dict[str, Any] = json.loads(packed.read("answers.json"))
        packed.extractall(settings.data_dir, [name for name in packed.namelist() if name != "answers.json"])
    if settings.encryption:
        _encrypt(settings)
    return answers


def _encrypt(settings: Settings) -> None:
    keys = settings.data_dir / "keys"
    plain = crypto.KeyStore(keys, None).read()
    ring = crypto.new_key_ring(encrypted=True, now=utc_now(), after=plain)
    for copy in keys.iterdir():
        copy.unlink()
    master_key = (
        crypto.read_master_key(settings.master_key_file)
        if settings.master_key_file
        else crypto.make_master_key(keys / "master.key")
    )
    source = settings.data_dir / plain.database_file
    connection = sqlcipher3.connect(str(source))
    connection.execute(
        "ATTACH ? AS encrypted KEY ?",
        (str(settings.data_dir / ring.database_file), database.passphrase(ring)),
    )
    connection.execute("SELECT sqlcipher_export('encrypted')")
    connection.close()
    source.unlink()
    crypto.KeyStore(keys, master_key).write(ring)


# ------------------------------------------------------------------------------------------------- making one


def make() -> Path:
    """Write the folder of the newest migration. Returns its path."""
    with tempfile.TemporaryDirectory() as folder, FakeLLM(_answer) as fake:
        options = {
            "encryption": "false", "language": "en", "dev_mode": "true", "read_locally": "true",
            "llm_base_url": fake.url, "llm_model": "scripted", "llm_api_key": "sk-secret",
        }  # fmt: skip
        with Service(Path(folder), **options) as service:
            _fill(service)
            eventually(
                lambda: _count(service, "meanings_due WHERE maker = 'local'") == 0,
                "vectors are made",
                patience=90,
            )
            asked = ["/api/photos?trash=true", *(f"/api/search/related?q={text}" for text in DESCRIPTIONS)]
            local = {path: service.get(path) for path in asked}
            service.stop()
            service.start(embeddings="vectors-1")
            eventually(lambda: _count(service, "meanings_due") == 0, "the provider's vectors", patience=90)
            service.stop()
            service.start(embeddings="")
            answers = {**local, **{path: service.get(path) for path in _paths(service)}}
            service.stop()
            return _pack(service.data, answers)


def _answer(request: Request) -> Any:
    if request.path.endswith("/embeddings"):
        data = [
            {"object": "embedding", "index": place, "embedding": _vector(text)}
            for place, text in enumerate(request.body["input"])
        ]
        return {"data": data, "usage": {"prompt_tokens": 7, "total_tokens": 7}}
    text = request.text.lower()
    for shown, findings in reversed(SCREENS.items()):
        lines = shown.lower().split("\n")
        if shown and lines[0] in text and lines[-1] in text:
            return {**FINDINGS, "title": f"About {lines[0]}", "visible_text": shown, **findings}
    if request.images:
        return {**FINDINGS, "entities": [], **SCREENS[""], "memories": []}
    return "The ferry leaves at 18:40."


def _vector(text: str) -> list[float]:
    return [float(1 + (sum(text.encode()) * (place + 3)) % 17) for place in range(64)]


def _fill(service: Service) -> None:
    taken = 1_788_000_000_000  # September 2026, in milliseconds
    ids = []
    for place, text in enumerate(SCREENS):
        fields = {"device_id": "tablet" if place % 3 == 2 else "pixel", "device_name": "A device"}
        when = str(taken + place * 5 * 24 * 3_600_000)
        uploaded = service.upload(draw(text), f"Screenshot_{place}.png", original_timestamp=when, **fields)
        ids.append(uploaded["id"])
    again = service.upload(draw(FERRY, format="JPEG", quality=60), "Screenshot_again.jpg", device_id="pixel")
    service.wait_until_analysed()
    eventually(lambda: _count(service, "analyses WHERE reads_left > 0") == 0, "the pictures are read")
    eventually(lambda: _count(service, "uncompared") == 0, "the pictures are compared")
    ferry, updated, soup, invoice, _, chat, settings, *_ = ids
    words = {"title": "My own title", "note": "Ask about the harbour", "tags": ["Holiday", "boat"]}
    _send(service, "PATCH", f"/api/photos/{ferry}", json={**words, "kept": True})
    _send(
        service, "PATCH", f"/api/photos/{soup}", json={"text": "Tomato soup, corrected", "tags": ["holiday"]}
    )
    _send(service, "PATCH", f"/api/photos/{invoice}", json={"summary": "To pay in June"})
    for photo in (updated, again["id"]):
        _send(service, "POST", f"/api/photos/{photo}/opened")
    _send(service, "POST", f"/api/photos/{settings}/trash")
    _send(service, "POST", "/api/searches", json={"name": "Boats", "query": "tag:holiday"})
    _send(service, "POST", "/api/tokens", json={"name": "Reader", "scope": "read"})
    _send(service, "POST", "/api/feeds", json={"kind": "agenda"})
    server = {"id": "notes", "name": "Notes", "url": "http://localhost:9/mcp", "enabled": False}
    _send(service, "POST", "/api/mcp-servers", json=server)
    _send(service, "POST", "/api/chat/send", json={"message": "When does the ferry leave?"})
    picture = {"file": ("boat.png", draw("A boat"))}
    _send(service, "POST", "/api/chat/send-with-file", data={"message": "And this?"}, files=picture)
    _send(service, "DELETE", f"/api/photos/{chat}")


def _send(service: Service, method: str, path: str, **options: Any) -> None:
    answer = service.call(method, path, **options)
    assert answer.ok, f"{method} {path}: {answer.text}"


def _paths(service: Service) -> list[str]:
    photos = [photo["id"] for photo in service.photos()]
    filters = ("", "device_id=pixel", "app=Ferries", "category=finance", "intent=reminder", "kept=true")
    each = [f"/api/photos/{photo}{part}" for photo in photos for part in ("", "/lines")]
    return [
        *(f"/api/photos?{part}" for part in filters),
        *("/api/photos?order=taken", "/api/photos?stacks=true", "/api/photos?stacks=true&device_id=pixel"),
        *("/api/photos?tag=holiday", "/api/photos/timeline", "/api/photos/timeline?stacks=true"),
        *(
            "/api/photos/tags",
            "/api/photos/apps",
            "/api/photos/devices",
            "/api/photos/sensitive?ids=5",
            "/api/stats",
        ),
        *each,
        *(f"/api/search?q={query}" for query in QUERIES),
        *("/api/searches", "/api/agenda?from=2027-01-01&until=2027-12-31", "/api/tokens"),
        *("/api/chat/conversations", "/api/memories", "/api/dynamics", "/api/data/stats"),
    ]


def _count(service: Service, table: str) -> int:
    """The rows of a table of the running service."""
    (path,) = (service.data / "database").glob("*.db")
    connection = sqlcipher3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])
    finally:
        connection.close()


def _pack(data: Path, answers: dict[str, Any]) -> Path:
    ring = crypto.KeyStore(data / "keys", None).read()
    connection = sqlcipher3.connect(str(data / ring.database_file))
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.execute("VACUUM")
    connection.close()
    FOLDERS.mkdir(exist_ok=True)
    target = FOLDERS / f"{NEWEST}.zip"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as packed:
        packed.writestr("answers.json", json.dumps(answers, ensure_ascii=False, indent=1))
        for path in sorted(data.rglob("*")):
            if path.is_file() and not path.name.endswith(("-wal", "-shm", ".lock")):
                packed.write(path, path.relative_to(data))
    return target


if __name__ == "__main__":
    print(make())
