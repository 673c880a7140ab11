"""Drives a running service through the package `made`, which openapi-python-client makes of its contract.

Arguments: the service's address, a token, and a picture's path. Prints what the test compares, as JSON.
"""

import io
import json
import sys
import time
from pathlib import Path

from made import AuthenticatedClient
from made.api.analysis_and_statistics import analysis_show_state
from made.api.chat import chat_send_message, chat_send_with_file
from made.api.photos import photos_image, photos_index, photos_show, photos_thumbnail, photos_upload
from made.api.search import search_find
from made.models import ChatSendWithFileBody, MessageBody, PhotosUploadBody
from made.types import File

url, token, path = sys.argv[1:]
picture = Path(path).read_bytes()


def file() -> File:
    return File(io.BytesIO(picture), "screenshot.png", "image/png")


with AuthenticatedClient(url, token, raise_on_unexpected_status=True) as client:
    uploaded = photos_upload.sync(client=client, body=PhotosUploadBody(file(), device_id="python"))
    while (state := analysis_show_state.sync(uploaded.id, client=client)).status != "done":
        assert state.status != "error", state.error_message
        time.sleep(0.05)
    listed = photos_index.sync(client=client, device_id="python")
    found = search_find.sync(client=client, q="library")
    answered = chat_send_message.sync(client=client, body=MessageBody("What is due?"))
    seen = chat_send_with_file.sync(
        client=client, body=ChatSendWithFileBody(message="And this?", file=file())
    )
    image = photos_image.sync(uploaded.id, client=client).payload.read()
    thumbnail = photos_thumbnail.sync_detailed(uploaded.id, client=client)
    assert thumbnail.parsed.payload.read().startswith(b"\xff\xd8")
    print(
        json.dumps(
            {
                "listed": [item.id for item in listed.items],
                "found": [item.id for item in found.items],
                "uploaded": uploaded.id,
                "answers": [answered.message.content, seen.message.content],
                "same": image == picture,
                "thumbnail": thumbnail.headers["Content-Type"],
                "refused": photos_show.sync(999, client=client).detail,
            }
        )
    )
