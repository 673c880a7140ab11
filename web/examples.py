"""Examples of the published contract: the value that each field is shown with.

An example of a shape is made from those of its fields, so that nothing is written twice and every example is
valid. A field has its example from its own declaration (`Meta(examples=[…])`), from its values where they are
listed, or from the table here, by its name. `tests/test_openapi.py` names each text that has none, and holds
every example against its schema.
"""

from typing import Any

from settings import NAME, VERSION

LEFT_OUT = object()  # of a field that an example is clearer without

# Field -> its example; `Shape.field` or `operationId.field` where the name alone means something else there.
FIELDS: dict[str, Any] = {
    "AnalysisDetail.llm_response": '{"app_name": "Mail", "content_category": "finance"}',
    "BatchResult.error": LEFT_OUT,
    "BatchResult.id": 12,
    "BroadcastSent.message": "Sent",
    "BroadcastText.title": "Snaplore",
    "Cleared.message": "Deleted",
    "ConfigurationFields.api_key_set": True,
    "Correction.word": "invoce",
    "ConversationDetail.id": "4f2ab8",
    "ConversationDetail.title": "When is my train?",
    "ConversationItem.id": "4f2ab8",
    "ConversationItem.title": "When is my train?",
    "Device.device_id": "pixel_8",
    "DeliveryFields.answer": 200,
    "DeliveryFields.event": "photo.analysed",
    "DeliveryFields.message_id": "msg_2c41f0",
    "DeliveryFields.next_at": None,
    "DeliveryFields.problem": "",
    "DeliveryFields.status": "delivered",
    "DynamicDetail.category": "reminder",
    "DynamicDetail.summary": "The invoice of City Power is due on 1 December.",
    "DynamicDetail.title": "Invoice due on Tuesday",
    "DynamicItem.category": "reminder",
    "DynamicItem.summary": "The invoice of City Power is due on 1 December.",
    "DynamicItem.title": "Invoice due on Tuesday",
    "FunctionCall.name": "search_knowledge_base",
    "Identity.name": NAME,
    "MarkedRead.message": "Marked as read",
    "AgendaFields.kind": "departure",
    "AgendaFields.ends_at": None,
    "AgendaFields.starts_at": "2026-12-04T09:42:00",
    "AgendaFields.title": "ICE 708 to Hamburg",
    "AllMarkedRead.message": "Marked as read",
    "MemoryFields.content": "The electricity comes from City Power.",
    "MemoryFields.source_type": "screenshot",
    "MessageFields.tool_calls": None,
    "MessageFields.tool_name": None,
    "ModelChange.api_key": "the key",
    "NewArticle.title": "Invoice due on Tuesday",
    "NewFeed.url": "http://192.168.1.20:8000/feed/…/agenda.ics",
    "NewSearch.name": "Invoices",
    "NewServer.description": "Tools of the house",
    "NewServer.id": "house",
    "NewServer.name": "House",
    "NewServer.url": "https://mcp.example/mcp",
    "NewWebhook.name": "Home Assistant",
    "NewWebhook.secret": "whsec_…",
    "NewWebhook.url": "https://home.example/api/webhook/snaplore",
    "NewShare.url": "http://192.168.1.20:8000/s/…",
    "NewSkill.description": "Sums up in three lines",
    "NewSkill.id": "three_lines",
    "NewSkill.name": "Three lines",
    "PairingFields.url": "http://192.168.1.20:8000/#/pair/7KQ2MPXW",
    "PendingCall.id": "call_1",
    "PhotoHits.nearest": [],
    "PhotoChanges.kept": True,
    "PhotoChanges.summary": "City Power asks for 82.40 EUR.",
    "Preset.name": "openai",
    "PresetKey.api_key": "the key",
    "RecipeFields.content": "curl -H 'Authorization: Bearer snp_…' -F file=@screenshot.png …",
    "RecipeFields.filename": "",
    "RecipeFields.name": "curl",
    "RecipeFields.actions": [],
    "RecipeValue.name": "URL",
    "RecipeValue.value": "http://192.168.1.20:8000/api/photos/upload",
    "Registered.message": "Registered",
    "Registration.token": "https://push.example/pixel_8",
    "DeviceFields.token": "https://push.example/pixel_8",
    "SavedSearch.name": "Invoices",
    "SensitivePhoto.sensitive": ["card"],
    "ServerChange.description": "Tools of the house",
    "ServerChange.name": "House",
    "ServerChange.url": "https://mcp.example/mcp",
    "ServerFields.description": "Tools of the house",
    "ServerFields.id": "house",
    "ServerFields.name": "House",
    "ServerFields.url": "https://mcp.example/mcp",
    "SkillChange.description": "Sums up in three lines",
    "SkillChange.name": "Three lines",
    "SkillDetail.description": "Sums up in three lines",
    "SkillDetail.id": "three_lines",
    "SkillDetail.name": "Three lines",
    "SkillItem.description": "Sums up in three lines",
    "SkillItem.id": "three_lines",
    "SkillItem.name": "Three lines",
    "Stack.photo_ids": [12, 11],
    "Statistics.errors": 0,
    "TestSent.message": "Sent",
    "TokenRequest.scope": "read",
    "ToolCall.id": "call_1",
    "Uploaded.message": "Uploaded",
    "WatchedFailure.name": "2026/broken.png",
    "WatchedFailure.problem": "unsupported image",
    "WebhookChange.name": "Home Assistant",
    "WebhookFields.failing_since": None,
    "WebhookFields.name": "Home Assistant",
    "WebhookFields.problem": "",
    "WebhookFields.url": "https://home.example/api/webhook/snaplore",
    "WebhookRequest.name": "Home Assistant",
    "WebhookRequest.url": "https://home.example/api/webhook/snaplore",
    "access_add_recipe.kind": "sharex",
    "chat_send_with_file.message": "What does this say?",
    "llm_apply.name": "openai",
    "show_contract": {"openapi": "3.1.0"},
    "words_list_sensitive.ids": "12,11",
    # By the name alone.
    "action": "trash",
    "address": "http://192.168.1.20:8000",
    "analysis_status": "done",
    "app": "Mail",
    "app_name": "Mail",
    "app_version": "1.4.0",
    "arguments": '{"query": "train"}',
    "base_url": "https://api.openai.com/v1",
    "best": 12,
    "body": "Dinner is ready",
    "certificate": None,
    "by_category": {"reminder": 1},
    "ca_fingerprint": "5E:0C:2F:93:…:A1",
    "call_id": "call_1",
    "categories": {"finance": 1},
    "category": "finance",
    "category_distribution": {"finance": 1},
    "code": "7KQ2MPXW",
    "confidence": 0.9,
    "content": "The train leaves at 9:42 [12].",
    "content_category": "finance",
    "conversation_id": "4f2ab8",
    "deleted_at": None,
    "description": "Sums up in three lines",
    "detail": "Photo not found",
    "device_id": "pixel_8",
    "device_model": "Pixel 8",
    "device_name": "Pixel 8",
    "dynamic_id": 3,
    "file_size": 184_320,
    "file_timestamp": "1795246264123",
    "file_timestamps": "1795246264123,1795246267456",
    "filename": "screenshot.png",
    "error_message": None,
    "fingerprint": "B3:77:10:4E:…:9D",
    "folder": "/home/pi/Pictures/Screenshots",
    "grade": "probable",
    "height": 0.02,
    "height:integer": 2400,
    "icon": "📝",
    "id": 12,
    "ids": 12,
    "importance": 0.6,
    "intent": "reminder",
    "intent_distribution": {"reminder": 1},
    "kind": "sharex",
    "last_message": "The train leaves at 9:42",
    "last_synced_ts_ms": 1_795_246_264_123,
    "left": 0.08,
    "limit": 20,
    "local_ids": "1000012,1000013",
    "local_media_store_id": "1000012",
    "matched": "invoice",
    "max_context_tokens": 922_000,
    "memory_id": 5,
    "message": "When is my train?",
    "message_id": 41,
    "mime_type": "image/png",
    "mime_types": "image/png,image/jpeg",
    "missing": 99,
    "model": "gpt-6.1-terra",
    "name": "My laptop",
    "names": "192.168.1.20",
    "note": "Paid by Anna",
    "own": [],
    "original_path": "photos/2026/11/5f0c.bin",
    "original_timestamp": "1795246264123",
    "page_size": 20,
    "pending_calls": LEFT_OUT,
    "photo_filename": "screenshot.png",
    "photo_id": 12,
    "photo_ids": 12,
    "platform": "android",
    "presets": {
        "openai": {
            "provider": "openai",
            "base_url": "https://api.openai.com/v1",
            "model": "gpt-6.1-terra",
            "max_context_tokens": 922_000,
        }
    },
    "provider": "openai",
    "purpose": "analysis",
    "q": "invoice",
    "quote": "Fri 4 Dec 09:42 ICE 708 Hamburg",
    "qr": "<svg>…</svg>",
    "query": "invoice app:Mail",
    "retention_days": 30,
    "rotation_days": 90,
    "scope": "read",
    "score": 0.8,
    "search_id": 2,
    "sensitive": [],
    "sensitive_kinds": {"card": 1},
    "server": "mcp.example",
    "server_id": "house",
    "since_ms": "1795246264123",
    "skill_id": "summarize",
    "snippet": "Invoice 2026-118, due 1 December",
    "source_type": "screenshot",
    "stack": None,
    "status": "done",
    "steps": "Paste the line into a terminal.",
    "storage_free_bytes": 24_000_000_000,
    "storage_used_bytes": 310_000_000,
    "summary": "City Power asks for 82.40 EUR by 1 December.",
    "system_prompt": "You sum up in three lines.",
    "tag": "bills",
    "tags": "bills",
    "temperature": 0.3,
    "text": "Invoice 2026-118\nDue: 1 December 2026",
    "thumbnail_path": "thumbnails/2026/11/5f0c.bin",
    "timestamps": "1795246264123,1795246270456",
    "title": "Invoice of City Power",
    "secret": "…",
    "token": "snp_…",
    "token_id": 4,
    "tool": "search_knowledge_base",
    "tool_calls": "[]",
    "tool_name": "search_knowledge_base",
    "top": 0.31,
    "url": "http://192.168.1.20:8000",
    "version": VERSION,
    "width": 0.42,
    "width:integer": 1080,
    "word": "invoice",
}

# Status -> the sentence of an error, where its meaning in the contract is not one.
ERRORS = {
    400: "page_size: must be between 1 and 100",
    401: "The API key is missing or wrong: send it as `Authorization: Bearer <key>`",
    403: "A token of the scope `upload` may not do this.",
    404: "Photo not found",
    409: "A skill with this id exists already",
    413: "The request is larger than the 1 MB that this path accepts.",
    503: "The service is busy. Please come again in a moment.",
}


class Examples:
    """Makes examples of schemas whose components are `schemas`. `missing` collects the texts without one, as
    `Shape.field`.
    """

    def __init__(self, schemas: dict[str, Any]):
        self._schemas = schemas
        self.missing: set[str] = set()

    def of(self, schema: dict[str, Any], owner: str, field: str = "") -> Any:
        """The example of `schema`, which belongs to a field of the shape or operation `owner`."""
        if "$ref" in schema:
            owner = schema["$ref"].rpartition("/")[2]
            return self.of(self._schemas[owner], owner)
        if "examples" in schema:
            return schema["examples"][0]
        names = (f"{owner}.{field}", f"{field}:{schema.get('type')}", field) if field else (owner,)
        found = [FIELDS[name] for name in names if name in FIELDS]
        if schema.get("type") == "array":
            whole = next((value for value in found if isinstance(value, list) or value is LEFT_OUT), None)
            return [self.of(schema["items"], owner, field)] if whole is None else whole
        if "anyOf" in schema:
            if found and (found[0] is None or names[0] in FIELDS):
                return found[0]
            kinds = [kind for kind in schema["anyOf"] if kind.get("type") != "null"]
            return self.of(kinds[0], owner, field)
        if "const" in schema or "enum" in schema:
            values = schema.get("enum") or [schema["const"]]
            return next((value for value in found if value in values), values[-1])
        if "properties" in schema:
            made = {name: self.of(kind, owner, name) for name, kind in schema["properties"].items()}
            return {name: value for name, value in made.items() if value is not LEFT_OUT}
        if found:
            return found[0]
        return self._plain(schema, f"{owner}.{field}")

    def _plain(self, schema: dict[str, Any], name: str) -> Any:
        """The example of a value whose name has none. Numbers and truth values need none."""
        low, high = schema.get("minimum", 1), schema.get("maximum", 1)
        plain = {"integer": max(low, min(1, high)), "number": max(low, min(0.5, high)), "boolean": False}
        if schema.get("type") in plain:
            return plain[schema["type"]]
        self.missing.add(name)
        return {} if schema.get("type") == "object" else "text"
