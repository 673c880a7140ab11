"""What lets a device trust this service: the page `/ca` with steps for each system, and the certificate of
the own certificate authority (CA) as a file and as a profile of Apple's systems.

They are open without the key, because a device needs them before it can sign in safely, and they are served
over plain http as well: a page that a browser warns of is no place to learn how to end the warning. Whoever
can change what is sent on the way could give out a CA of his own, so the page tells people to compare the
fingerprint with what `./snaplore tls status` prints.
"""

import base64
import functools
import hashlib
import plistlib
import ssl
import uuid

import flask
import jinja2

from errors import NotFound
from settings import NAME
from tls import certificates
from web import dashboard, page_texts

PATHS = {"ca": "/ca", "ca_file": "/ca.crt", "ca_profile": "/ca.mobileconfig"}  # by endpoint
MISSING = "This service has no certificate authority of its own: `./snaplore tls init` makes one."
POLICY = (
    "default-src 'none'; style-src {style}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "img-src 'self'"
)
# Payload identifiers of profiles are in the form of a reversed host name.
PROFILE = "snaplore.ca"
# The systems of the page, each with words of which its browsers' User-Agent contains one. The first that fits
# counts: Android's contains "Linux" as well.
SYSTEMS = {
    "ios": ("iPhone", "iPad", "iPod"),
    "android": ("Android",),
    "windows": ("Windows",),
    "macos": ("Macintosh",),
    "linux": ("Linux", "X11", "CrOS"),
}


def page(ca: str | None) -> flask.Response:
    """The steps for each system, those of the asking one opened, in the browser's language."""
    request = flask.request
    facts = certificates.facts(_present(ca))
    language = page_texts.language(dashboard.language_of(request))
    agent = request.headers.get("User-Agent", "")
    fitting = (system for system, words in SYSTEMS.items() if any(word in agent for word in words))
    text = _template().render(
        name=NAME,
        language=language.tag,
        t=lambda word: language.texts["trust"][word],
        system=next(fitting, ""),
        firefox="Firefox" in agent,
        facts=facts,
        paths={name: path.removeprefix("/") for name, path in PATHS.items()},
        here=f"https://{request.host}{request.script_root}/",
    )
    answer = flask.Response(text, mimetype="text/html")
    style = text.partition("<style>")[2].partition("</style>")[0]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    answer.headers["Content-Security-Policy"] = POLICY.format(style=f"'sha256-{digest}'")
    answer.headers["Referrer-Policy"] = "no-referrer"
    answer.vary.update(("Accept-Language", "Cookie", "User-Agent"))
    return answer


def file(ca: str | None) -> flask.Response:
    """The certificate, PEM, which every system reads under this name. Firefox offers to install it."""
    answer = flask.Response(_present(ca), content_type="application/x-x509-ca-cert")
    answer.headers["Content-Disposition"] = 'inline; filename="snaplore-ca.crt"'
    return answer


def profile(ca: str | None) -> flask.Response:
    """The certificate as a configuration profile, which Apple's systems offer to install."""
    der = ssl.PEM_cert_to_DER_cert(_present(ca))
    fingerprint = hashlib.sha256(der).hexdigest()
    title = f"{NAME} CA"

    def payload(kind: str, what: str, **more: object) -> dict[str, object]:
        # The same certificate has the same ids, so a second installation replaces the first.
        return {
            "PayloadType": kind,
            "PayloadVersion": 1,
            "PayloadIdentifier": f"{PROFILE}.{fingerprint[:16]}{what}",
            "PayloadUUID": str(uuid.uuid5(uuid.NAMESPACE_OID, fingerprint + what)).upper(),
            "PayloadDisplayName": title,
            **more,
        }

    root = payload(
        "com.apple.security.root",
        ".root",
        PayloadCertificateFileName="snaplore-ca.crt",
        PayloadContent=der,
    )
    whole = payload(
        "Configuration",
        "",
        PayloadContent=[root],
        PayloadDescription=f"Lets this device trust your {NAME}.",
        PayloadRemovalDisallowed=False,
    )
    return flask.Response(plistlib.dumps(whole), content_type="application/x-apple-aspen-config")


def _present(ca: str | None) -> str:
    if ca is None:
        raise NotFound(MISSING)
    return ca


@functools.cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(dashboard.TEMPLATES / "trust"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html")
