"""Importing from other libraries by their documented APIs: Immich and Karakeep.

A page of the list is read, then each picture of it, as it is stored. What is stored already is recognised by
its id there, and not fetched again. Nothing is written there.

Sources: Immich, open-api/immich-openapi-specs.json (searchAssets, downloadAsset); Karakeep,
packages/open-api/karakeep-openapi-spec.json (/bookmarks, /assets/{assetId}).
"""

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote, urlsplit

import msgspec

import database
import net
import uploads
from clock import parse_time, to_epoch_ms, utc_now
from errors import BadInput, SnaploreError
from models import Photo
from settings import MEGABYTE
from text import storable
from upkeep import archives, importing
from upkeep.archives import Item
from upkeep.importing import Said

PAGE = 250  # pictures whose facts are asked for at once
SECONDS = 300.0  # for a call
MOST_ANSWER = 64 * MEGABYTE  # of a page of the list


class _Asset(msgspec.Struct, rename="camel"):
    """A picture of Immich: AssetResponseDto."""

    id: str
    original_file_name: str
    file_created_at: str = ""
    is_favorite: bool = False
    is_trashed: bool = False
    exif_info: dict[str, Any] | None = None
    tags: list[dict[str, Any]] = []


class _Assets(msgspec.Struct, rename="camel"):
    items: list[_Asset]
    next_page: str | None = None
    total: int = 0


class _Found(msgspec.Struct):
    assets: _Assets


class _Content(msgspec.Struct, rename="camel"):
    type: str
    asset_type: str = ""
    asset_id: str = ""
    file_name: str | None = None


class _Bookmark(msgspec.Struct, rename="camel"):
    """A bookmark of Karakeep."""

    id: str
    content: _Content
    created_at: str = ""
    title: str | None = None
    note: str | None = None
    favourited: bool = False
    tags: list[dict[str, Any]] = []


class _Bookmarks(msgspec.Struct, rename="camel"):
    bookmarks: list[_Bookmark]
    next_cursor: str | None = None


class Library:
    """A library at an address. Close it, or use it as a context."""

    name = ""

    def __init__(self, address: str, key: str):
        host = urlsplit(address).hostname or ""
        # The person who runs the command has named this host.
        self._client = net.Client(net.Guard(allowed_hosts=(host,)))
        self._address = address.rstrip("/").removesuffix("/api")
        self._headers = self._with_key(key)

    def __enter__(self) -> "Library":
        return self

    def __exit__(self, *_problem: object) -> None:
        self._client.close()

    def items(self, device_id: str) -> Iterator[Item]:
        """Every picture of a list's pages. Raises `SnaploreError` when the list cannot be read."""
        raise NotImplementedError

    def _with_key(self, key: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {key}"}

    def _call(self, method: str, path: str, body: Any, shape: type[Any]) -> Any:
        """An answer of the API as `shape`. Raises `BadInput`, `net.CallFailed`."""
        with self._client.open(
            method, f"{self._address}{path}", body,
            headers=self._headers, deadline=SECONDS, max_bytes=MOST_ANSWER,
        ) as answer:  # fmt: skip
            self._check(answer)
            content = answer.read()
        try:
            return msgspec.json.decode(content, type=shape)
        except msgspec.DecodeError:
            raise BadInput(f"{self._address} does not answer like {self.name}") from None

    def _check(self, answer: net.Answer) -> None:
        if answer.status in (401, 403):
            raise BadInput(f"{self.name} refuses the key")
        if answer.status != 200:
            raise BadInput(f"{self.name} answers {answer.status}")

    def _item_at(self, path: str, name: str, said: Said) -> Item:
        def receive() -> importing.Received | None:
            modified = to_epoch_ms(said.taken or utc_now()) / 1000
            with self._client.open(
                "GET", f"{self._address}{path}",
                headers={**self._headers, "Accept": "*/*"},
                deadline=SECONDS, max_bytes=uploads.MAX_FILE + MEGABYTE,
            ) as answer:  # fmt: skip
                self._check(answer)
                return importing.received(answer, name, modified)

        return Item(f"{self.name}/{_line(name)}", receive, said)


class Immich(Library):
    name = "Immich"

    def _with_key(self, key: str) -> dict[str, str]:
        return {"x-api-key": key}

    def items(self, device_id: str) -> Iterator[Item]:
        page: str | None = "1"
        while page:
            wanted = {"page": int(page), "size": PAGE, "type": "IMAGE", "withExif": True, "order": "asc"}
            found = self._call("POST", "/api/search/metadata", wanted, _Found).assets
            known = _known(device_id, [f"immich:{asset.id}" for asset in found.items])
            for asset in found.items:
                yield self._item(asset, known)
            page = found.next_page if found.next_page and found.next_page.isdecimal() else None

    def _item(self, asset: _Asset, known: set[str]) -> Item:
        note = str((asset.exif_info or {}).get("description") or "").strip()
        local_id = f"immich:{asset.id}"[:256]
        left_out = archives.ALREADY_THERE if local_id in known else ""
        said = Said(
            taken=_time(asset.file_created_at),
            kept=asset.is_favorite,
            tags=_tags(asset.tags, "value"),
            texts={"note": storable(note)[:10_000]} if note else {},
            local_id=local_id,
            left_out="it is in the trash of Immich" if asset.is_trashed else left_out,
        )
        path = f"/api/assets/{quote(asset.id, safe='')}/original"
        return self._item_at(path, asset.original_file_name, said)


class Karakeep(Library):
    name = "Karakeep"

    def items(self, device_id: str) -> Iterator[Item]:
        cursor = ""
        while True:
            after = f"&cursor={quote(cursor, safe='')}" if cursor else ""
            path = f"/api/v1/bookmarks?limit=100&includeContent=false{after}"
            found = self._call("GET", path, None, _Bookmarks)
            known = _known(device_id, [f"karakeep:{one.content.asset_id}" for one in found.bookmarks])
            for bookmark in found.bookmarks:
                yield self._item(bookmark, known)
            if not found.next_cursor or found.next_cursor == cursor:
                return
            cursor = found.next_cursor

    def _item(self, bookmark: _Bookmark, known: set[str]) -> Item:
        content = bookmark.content
        local_id = f"karakeep:{content.asset_id}"[:256]
        left_out = archives.ALREADY_THERE if local_id in known else ""
        if (content.type, content.asset_type) != ("asset", "image"):
            left_out = f"it is a {content.asset_type or content.type}, not a picture"
        texts = {"title": (bookmark.title or "")[:200], "note": (bookmark.note or "")[:10_000]}
        said = Said(
            taken=_time(bookmark.created_at),
            kept=bookmark.favourited,
            tags=_tags(bookmark.tags, "name"),
            texts={name: storable(text) for name, text in texts.items() if text.strip()},
            local_id=local_id,
            left_out=left_out,
        )
        name = content.file_name or bookmark.title or bookmark.id
        return self._item_at(f"/api/v1/assets/{quote(content.asset_id, safe='')}", name, said)


LIBRARIES: Mapping[str, type[Library]] = {"immich": Immich, "karakeep": Karakeep}


def _known(device_id: str, ids: list[str]) -> set[str]:
    """Those of these ids that photos of the device have already. Opens a scope."""
    with database.scope():
        rows = Photo.select(Photo.local_media_store_id).where(
            (Photo.device_id == device_id) & Photo.local_media_store_id.in_(ids)
        )
        return {row.local_media_store_id for row in rows}


def _time(written: str) -> Any:
    try:
        return parse_time(written, field="time")
    except SnaploreError:
        return None


def _tags(tags: list[dict[str, Any]], field: str) -> list[str]:
    """At most 30 tags of at most 50 characters, as a photo may have."""
    names = (storable(str(tag.get(field) or "")).strip()[:50] for tag in tags)
    return list(dict.fromkeys(name for name in names if name))[:30]


def _line(name: str) -> str:
    return "".join(sign for sign in name[:200] if sign.isprintable())
