"""A store of analysed screenshots without files, for tests of the search."""

from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

import msgspec

import database
import lexicon
import search
from database import db
from models import Analysis, Photo, Vocabulary
from photos import Filters
from settings import Settings
from tests.support.beginning import begin

NOW = datetime(2026, 11, 21, 12)

# The tools of a chat that are part of the service, in their order.
BUILT_IN = [
    "search_knowledge_base",
    "get_screenshot",
    "agenda",
    "list_records",
    "list_threads",
    "web_search",
    "save_memory",
]


class Library:
    """A store with screenshots in it."""

    def __init__(self, folder: Path) -> None:
        self.settings = Settings(data_dir=folder)
        begin(self.settings)
        database.open_store(self.settings)

    def add(
        self,
        visible_text: str = "",
        *,
        app_name: str = "",
        summary: str = "",
        entities: Iterable[str] = (),
        category: str = "other",
        intent: str = "note",
        device_id: str = "pixel",
        taken: datetime = NOW,
    ) -> int:
        with database.scope(), db.atomic():
            number = Photo.select().count() + 1
            photo = Photo.create(
                device_id=device_id, filename="a.png", original_path=f"o{number}",
                thumbnail_path=f"t{number}",
                mime_type="image/png",
                file_size=1, width=1, height=1, original_timestamp=taken,
                created_at=NOW, sha256=b"", key_generation=1,
            )  # fmt: skip
            values = msgspec.json.encode([{"type": "code", "value": value} for value in entities]).decode()
            Analysis.create(
                photo=photo, device_id=device_id, status="done", app_name=app_name,
                content_category=category, intent=intent,
                summary=summary, entities=values, visible_text=visible_text, created_at=NOW, due_at=NOW,
            )  # fmt: skip
            lexicon.index(photo.id)
            return int(photo.id)

    def analyse_again(self, photo_id, visible_text):
        with database.scope(), db.atomic():
            lexicon.remove(photo_id)
            Analysis.update(visible_text=visible_text).where(Analysis.photo == photo_id).execute()
            lexicon.index(photo_id)

    def find(self, text, *, limit=20, guarded=False, **filters):
        with database.scope():
            return search.find(text, Filters(**filters), limit=limit, guarded=guarded, now=NOW)

    def ids(self, text, **options):
        return [hit.photo_id for hit in self.find(text, **options).items]

    def vocabulary(self):
        with database.scope():
            return {row.term: row.documents for row in Vocabulary.select() if not row.term.startswith("@")}
