"""What makes the page installable: its manifest, icons and service worker, and the address to which other
apps share pictures.

These parts hold nothing of the person, and browsers fetch them without the key. They have addresses of their
own because a browser accepts them from nowhere else.

The address for sharing has a random part. A browser lets any website send a form with a file to any address,
and the service worker would save it as the person's own. Only the browser itself and pages of the service
can read the manifest, which names the address.
"""

import functools
import hashlib
import json
from typing import Any

import flask

from settings import NAME
from web.dashboard import TEMPLATES

FOLDER = TEMPLATES / "installed"
ICONS = ("icon-192.png", "icon-512.png", "icon-maskable-512.png", "apple-touch-icon.png")
# What browsers show when they offer the installation: `make pictures` makes them. No page loads them.
SCREENSHOTS = {"screenshot-wide.png": (960, 600), "screenshot-narrow.png": (390, 844)}
COLOUR, BACKGROUND = "#0b6b5d", "#edece5"
PICTURES = ("image/png", "image/jpeg", "image/webp", "image/gif", "image/heic", "image/avif")

SHARE = "share/"  # and the random part

# Its addresses are relative to its own, because a proxy may put the service below a path.
MANIFEST: dict[str, Any] = {
    "name": NAME,
    "short_name": NAME,
    "description": "Find anything in your screenshots.",
    "start_url": "./",
    "scope": "./",
    "display": "standalone",
    "theme_color": COLOUR,
    "background_color": BACKGROUND,
    "icons": [
        {"src": "icon-192.png", "sizes": "192x192", "type": "image/png"},
        {"src": "icon-512.png", "sizes": "512x512", "type": "image/png"},
        {"src": "icon-maskable-512.png", "sizes": "512x512", "type": "image/png", "purpose": "maskable"},
    ],
    "screenshots": [
        {
            "src": name,
            "sizes": f"{width}x{height}",
            "type": "image/png",
            "form_factor": "wide" if width > height else "narrow",
        }
        for name, (width, height) in SCREENSHOTS.items()
    ],
    # What a long press on the icon offers.
    "shortcuts": [
        {"name": "Agenda", "url": "./#/agenda"},
        {"name": "Chat", "url": "./#/chat"},
        {"name": "Settings", "url": "./#/settings"},
    ],
    "share_target": {
        "method": "POST",
        "enctype": "multipart/form-data",
        "params": {"files": [{"name": "files", "accept": list(PICTURES)}]},
    },
}


def manifest(share_part: str) -> flask.Response:
    """The web app manifest. Other sites may not load it, nor run it as a script."""
    target = {**MANIFEST["share_target"], "action": SHARE + share_part}
    content = json.dumps({**MANIFEST, "share_target": target}).encode()
    answer = _cached(content, "application/manifest+json")
    answer.headers["Cross-Origin-Resource-Policy"] = "same-origin"
    return answer


def service_worker() -> flask.Response:
    """The script that runs beside the page. Its policy lets it talk to this service only."""
    answer = _cached(_content("service-worker.js"), "text/javascript")
    answer.headers["Content-Security-Policy"] = "default-src 'none'; connect-src 'self'"
    return answer


def icon(name: str) -> flask.Response:
    """One of `ICONS` or `SCREENSHOTS`."""
    return _cached(_content(name), "image/png")


def shared_without_worker(part: str = "") -> flask.Response:
    """A share that no service worker has received: nothing is stored, and the page is opened."""
    return flask.Response(status=303, headers={"Location": "../" if part else "./"})


def sign_out() -> flask.Response:
    """Have the browser forget what it has cached of this service. It needs no key: that may be revoked."""
    return flask.Response(status=204, headers={"Clear-Site-Data": '"cache"'})


def _cached(content: bytes, media_type: str) -> flask.Response:
    """`content`, which browsers keep and ask for again each time."""
    answer = flask.Response(content, mimetype=media_type)
    answer.headers["Cache-Control"] = "no-cache"
    answer.set_etag(hashlib.sha256(content).hexdigest()[:32])
    answer.make_conditional(flask.request.environ)
    return answer


@functools.cache
def _content(name: str) -> bytes:
    return (FOLDER / name).read_bytes()
