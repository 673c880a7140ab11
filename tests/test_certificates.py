"""The own certificate authority: what it certifies and what it cannot, who accepts its certificates, and
their renewal while the service runs.
"""

import collections
import contextlib
import dataclasses
import datetime
import functools
import hashlib
import http.client
import http.server
import ipaddress
import plistlib
import re
import shutil
import ssl
import subprocess
import threading

import pytest
import requests
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509 import verification
from playwright.sync_api import Error as PlaywrightError
from playwright.sync_api import expect

import database
from app import create_app
from clock import utc_now
from errors import Conflict
from models import store_value, stored_value
from settings import ROOT
from tests.support.client import detail
from tests.support.drawing import draw
from tests.support.service import PATIENCE, Clients, Service, eventually
from tests.support.trust import SecureService
from tls import addresses, authority, certificates

NOW = datetime.datetime(2026, 11, 22, 12, 0)
NAMES = ["pi", "pi.local", "localhost"]
OWN = [*NAMES, "192.168.1.20", "127.0.0.1", "::1", "fd00::7"]


@pytest.fixture(scope="module")
def ca():
    return certificates.make_ca("pi", NAMES, now=NOW)


@pytest.fixture(scope="module")
def server(ca):
    return certificates.issue(ca, OWN, now=NOW)


def forged(ca, *names, monkeypatch, now=NOW):
    """A certificate that a thief of the CA's key would make."""
    with monkeypatch.context() as unlimited:
        unlimited.setattr(certificates, "permitted", lambda name, constraints: True)
        return certificates.issue(ca, names, now=now)


def verified(ca, server, name, moment=NOW):
    """Whether `cryptography` accepts the chain for a host name or an address."""
    store = verification.Store([x509.load_pem_x509_certificate(ca.certificate.encode())])
    try:
        subject = x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        subject = x509.DNSName(name)
    verifier = verification.PolicyBuilder().store(store).time(moment).build_server_verifier(subject)
    try:
        verifier.verify(x509.load_pem_x509_certificate(server.certificate.encode()), [])
    except verification.VerificationError:
        return False
    return True


def signed(ca, common, names, *, is_ca=False):
    """A certificate with any content, as whoever has the key of `ca` can make it."""
    authority = x509.load_pem_x509_certificate(ca.certificate.encode())
    authority_key = serialization.load_pem_private_key(ca.key.encode(), None)
    key = ec.generate_private_key(ec.SECP256R1())
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, common)]))
        .issuer_name(authority.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(NOW - datetime.timedelta(hours=1))
        .not_valid_after(NOW + datetime.timedelta(days=30))
        .add_extension(x509.BasicConstraints(ca=is_ca, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.public_key()), critical=False
        )
        .add_extension(
            x509.KeyUsage(True, False, False, False, False, is_ca, is_ca, False, False), critical=True
        )
    )
    if names:
        alternatives = x509.SubjectAlternativeName([x509.DNSName(name) for name in names])
        builder = builder.add_extension(alternatives, critical=False)
    made = builder.sign(authority_key, hashes.SHA256())
    plain = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return certificates.Issued(
        made.public_bytes(serialization.Encoding.PEM).decode(), key.private_bytes(*plain).decode()
    )


def openssl_accepts(folder, ca, server, name, *, between=None):
    """Whether openssl accepts the chain. `between` is a CA, signed by `ca`, that has signed `server`."""
    for file, issued in (("ca.pem", ca), ("server.pem", server), ("between.pem", between or ca)):
        (folder / file).write_text(issued.certificate)
    kind = "-verify_ip" if re.fullmatch(r"[0-9.]+|.*:.*", name) else "-verify_hostname"
    at = str(int(NOW.replace(tzinfo=datetime.UTC).timestamp()))
    command = ["openssl", "verify", "-x509_strict", "-purpose", "sslserver", "-attime", at, kind, name]
    files = ["-CAfile", "ca.pem", "-untrusted", "between.pem", "server.pem"]
    return subprocess.run([*command, *files], cwd=folder, capture_output=True, check=False).returncode == 0


needs_openssl = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")


# ---------------------------------------------------------------------------------------------- certificates


@pytest.mark.parametrize("name", OWN)
def test_the_certificate_is_valid_for_each_of_its_names(ca, server, name):
    assert verified(ca, server, name)
    assert not verified(ca, server, "other.local")


@needs_openssl
def test_openssl_accepts_the_chain_by_its_strict_rules(ca, server, tmp_path):
    assert all(openssl_accepts(tmp_path, ca, server, name) for name in OWN)
    assert not openssl_accepts(tmp_path, ca, server, "other.local")


@needs_openssl
@pytest.mark.parametrize("name", ["example.com", "pi.local.example.com", "notpi", "8.8.8.8", "2001:db8::1"])
def test_a_stolen_ca_can_certify_no_name_outside_of_its_constraints(ca, tmp_path, monkeypatch, name):
    stolen = forged(ca, name, monkeypatch=monkeypatch)

    assert not verified(ca, stolen, name)
    assert not openssl_accepts(tmp_path, ca, stolen, name)
    assert "may not certify" in certificates.problem(ca, stolen)


@needs_openssl
@pytest.mark.parametrize(
    ("common", "names"),
    [
        ("example.com", []),  # the name only where old programs look for it
        ("pi", ["pi", "example.com"]),
        ("pi", ["*.example.com"]),
        ("pi", ["pi.example"]),
        ("pi", ["localhost.example.com"]),
        ("pi", ["xn--pi-hia.com"]),
    ],
)
def test_openssl_refuses_whatever_else_a_thief_of_the_ca_signs(ca, tmp_path, common, names):
    assert openssl_accepts(tmp_path, ca, signed(ca, "pi", ["pi"]), "pi")

    stolen = signed(ca, common, names)

    for name in {common, *names}:
        assert not openssl_accepts(tmp_path, ca, stolen, name.replace("*", "www"))


@needs_openssl
def test_openssl_refuses_what_a_ca_below_the_ca_signs(ca, tmp_path):
    between = signed(ca, "A second CA", [], is_ca=True)

    for name in ("pi", "example.com"):
        assert not openssl_accepts(tmp_path, ca, signed(between, name, [name]), name, between=between)


def test_the_ca_certifies_no_other_ca(ca):
    """Otherwise the constraints could be left behind."""
    read = x509.load_pem_x509_certificate(ca.certificate.encode())
    limits = read.extensions.get_extension_for_class(x509.BasicConstraints)
    assert (limits.critical, limits.value.ca, limits.value.path_length) == (True, True, 0)
    assert read.extensions.get_extension_for_class(x509.NameConstraints).critical


def test_the_names_that_are_asked_for_and_not_permitted_are_left_out(ca):
    issued = certificates.issue(ca, ["pi", "example.com", "8.8.8.8", "nas.home.arpa"], now=NOW)
    assert certificates.facts(issued.certificate).names == ("pi", "nas.home.arpa")


def test_a_certificate_is_short_enough_for_apple_and_names_its_purpose(ca, server):
    read = x509.load_pem_x509_certificate(server.certificate.encode())
    assert read.not_valid_after_utc - read.not_valid_before_utc <= datetime.timedelta(days=397)
    purpose = read.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(purpose) == [x509.oid.ExtendedKeyUsageOID.SERVER_AUTH]
    assert isinstance(read.public_key().curve, ec.SECP256R1)
    assert not verified(ca, server, "pi", NOW + datetime.timedelta(days=398))


@pytest.mark.parametrize("name", ["", "a b", "pi/x", "-pi", "x" * 300, "a..b", "*.example.com", "ä"])
def test_what_is_no_name_is_refused(name):
    with pytest.raises(ValueError, match="neither"):
        certificates.spelled(name)


def test_no_secret_is_in_a_repr(ca, server):
    whole = repr(authority.Stored(ca, [], server)) + repr(ca)
    assert "PRIVATE" not in whole


# -------------------------------------------------------------------------------------------- what is stored


def test_init_names_the_port_that_the_service_listens_on(settings):
    app = create_app(dataclasses.replace(settings, bind="127.0.0.1:8744"))
    made = app.test_cli_runner().invoke(args=["tls", "init"])
    database.close_store()
    assert "Set SNAPLORE_BIND=0.0.0.0:8744 " in made.output


def test_init_makes_a_certificate_for_this_machine_once(app, cli):
    made = cli.invoke(args=["tls", "init", "--name", "Snap.Example.org"])
    assert made.exit_code == 0, made.output
    assert addresses.names()[0] in made.output
    assert "snap.example.org" in made.output
    again = cli.invoke(args=["tls", "init"])
    assert again.exit_code == 1
    assert "already" in again.output
    status = cli.invoke(args=["tls", "status"]).output
    fingerprint = re.search(r"([0-9A-F]{2}:){31}[0-9A-F]{2}", made.output)[0]
    assert fingerprint in status
    assert fingerprint not in cli.invoke(args=["tls", "init", "--anew"]).output


def test_init_names_what_is_no_name(cli):
    refused = cli.invoke(args=["tls", "init", "--name", "no name"])
    assert refused.exit_code == 1
    assert "'no name'" in refused.output


def test_a_clock_that_has_not_been_set_makes_no_ca(app):
    with database.scope(), pytest.raises(Exception, match="clock"):
        authority.init([], now=datetime.datetime(1970, 1, 3))


def begun(**options):
    with database.scope():
        return authority.init([], now=NOW, **options)


def renewed(now):
    with database.scope():
        return authority.renew(now=now)


def test_a_certificate_is_renewed_30_days_before_its_end_and_the_ca_stays(app):
    first = begun()
    ends = certificates.facts(first.server.certificate).ends

    assert renewed(ends - datetime.timedelta(days=31)) is None
    second = renewed(ends - datetime.timedelta(days=29))
    assert second.ca == first.ca
    assert second.server.key != first.server.key
    assert renewed(ends - datetime.timedelta(days=29)) is None


def test_a_certificate_from_the_future_is_renewed(app):
    begun()
    assert renewed(NOW - datetime.timedelta(hours=12)) is None
    with database.scope():
        authority.renew(now=NOW + datetime.timedelta(days=300), forced=True)
    assert certificates.facts(renewed(NOW).server.certificate).begins <= NOW


def test_near_the_end_of_the_ca_nothing_is_renewed_again_and_again(app):
    ends = certificates.facts(begun().ca.certificate).ends
    last = ends - datetime.timedelta(days=10)
    assert certificates.facts(renewed(last).server.certificate).ends == ends
    assert renewed(last) is None


def test_outside_of_the_time_of_the_ca_nothing_is_renewed(app):
    ends = certificates.facts(begun().ca.certificate).ends
    for moment in (datetime.datetime(1970, 1, 1), ends + datetime.timedelta(days=1)):
        assert renewed(moment) is None
        with database.scope(), pytest.raises(Conflict, match="the clock"):
            authority.renew(now=moment, forced=True)


def test_a_new_address_of_the_machine_is_certified_and_one_that_is_gone_stays(app, monkeypatch):
    monkeypatch.setattr(addresses, "own_addresses", lambda: ["192.168.1.20", "127.0.0.1"])
    begun()
    monkeypatch.setattr(addresses, "own_addresses", lambda: ["127.0.0.1"])
    assert renewed(NOW) is None
    monkeypatch.setattr(addresses, "own_addresses", lambda: ["10.1.1.1", "127.0.0.1"])
    assert "10.1.1.1" in certificates.facts(renewed(NOW).server.certificate).names
    assert renewed(NOW) is None


def test_an_address_that_may_not_be_certified_is_shown_and_causes_no_renewal(app, cli, monkeypatch):
    monkeypatch.setattr(addresses, "own_addresses", lambda: ["127.0.0.1"])
    begun()
    monkeypatch.setattr(addresses, "own_addresses", lambda: ["203.0.113.9", "127.0.0.1"])
    assert renewed(NOW) is None
    assert "Left out:    203.0.113.9" in cli.invoke(args=["tls", "status"]).output


def test_the_nightly_job_renews(app, cli):
    with database.scope():
        authority.init([], now=utc_now() - datetime.timedelta(days=380))
    assert "the certificate was renewed" in cli.invoke(args=["jobs", "rotate-keys"]).output
    assert "certificate" not in cli.invoke(args=["jobs", "rotate-keys"]).output


def test_without_a_certificate_there_is_nothing_to_renew_or_show(cli):
    assert "tls init" in cli.invoke(args=["tls", "status"]).output
    assert cli.invoke(args=["tls", "renew"]).exit_code == 1


def test_the_check_finds_a_foreign_key_and_an_expired_certificate(app, cli):
    begun()
    with database.scope():
        value = stored_value("tls")
        store_value("tls", {**value, "server": [value["server"][0], value["ca"][1]]})
    found = cli.invoke(args=["check"])
    assert "certificate: 1 wrong: certificate: its private key is another one's" in found.output
    assert cli.invoke(args=["check", "--repair"]).exit_code == 0
    assert "certificate: OK" in cli.invoke(args=["check"]).output
    with database.scope():
        store_value("tls", {**value, "ca": [value["ca"][0], value["server"][1]]})
    found = cli.invoke(args=["check", "--repair"])
    assert "tls init --anew" in found.output
    assert found.exit_code == 1


def test_a_damaged_value_is_reported_and_replaced_on_demand(app, cli):
    begun()
    with database.scope():
        store_value("tls", {"ca": 1})
    app.certificate.load()
    assert app.certificate.context is None
    assert "certificate: 1 wrong: cannot be read" in cli.invoke(args=["check"]).output
    assert "--anew" in cli.invoke(args=["tls", "status"]).output
    assert cli.invoke(args=["tls", "init", "--anew"]).exit_code == 0
    assert app.certificate.scheme == "https"


def test_the_keys_are_in_no_readable_file(app, settings):
    stored = begun()
    parts = [line for pem in (stored.ca.key, stored.server.key) for line in pem.encode().splitlines()[1:2]]
    for file in settings.data_dir.rglob("*"):
        if file.is_file():
            content = file.read_bytes()
            assert not any(part in content for part in parts), file


# ------------------------------------------------------------------------------------------------------- /ca


def test_without_a_ca_the_page_is_404_with_a_sentence(app):
    for path in ("/ca", "/ca.crt", "/ca.mobileconfig"):
        found = app.test_client().get(path)
        assert "tls init" in detail(found, 404)


@pytest.fixture
def trusted(app):
    stored = begun()
    app.certificate.load()
    return stored


@pytest.mark.parametrize(
    ("agent", "opened"),
    [
        ("Mozilla/5.0 (iPhone; CPU iPhone OS 19_0 like Mac OS X) Safari/605", "ios"),
        ("Mozilla/5.0 (Linux; Android 16; Pixel 9) Chrome/140", "android"),
        ("Mozilla/5.0 (Android 16; Mobile; rv:140.0) Gecko/140.0 Firefox/140.0", "android"),
        ("Mozilla/5.0 (Windows NT 10.0; Win64; x64) Chrome/140", "windows"),
        ("Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) Safari/605", "macos"),
        ("Mozilla/5.0 (X11; Linux x86_64) Chrome/140", "linux"),
        ("Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0", "firefox"),
    ],
)
def test_the_page_opens_the_steps_for_the_asking_system(app, trusted, agent, opened):
    page = app.test_client().get("/ca", headers={"User-Agent": agent})
    assert re.findall(r'<details name="system" open id="(\w+)"', page.text) == [opened]
    assert certificates.facts(trusted.ca.certificate).fingerprint in page.text.replace("<wbr>", "")
    assert "script" not in page.headers["Content-Security-Policy"]


def test_the_page_speaks_both_languages(app, trusted):
    client = app.test_client()
    assert "Trust this service" in client.get("/ca", headers={"Accept-Language": "en-GB"}).text
    chinese = client.get("/ca", headers={"Accept-Language": "zh-CN"}).text
    assert "信任此服务" in chinese
    assert "Trust" not in re.sub(r"“[^”]*”|<[^>]*>|Certificate Trust", "", chinese).split("</style>")[-1]


def test_the_file_and_the_profile_hold_the_ca_and_no_key(app, trusted):
    client = app.test_client()
    file = client.get("/ca.crt")
    assert file.headers["Content-Type"] == "application/x-x509-ca-cert"
    assert file.text == trusted.ca.certificate
    profile = client.get("/ca.mobileconfig")
    assert profile.headers["Content-Type"] == "application/x-apple-aspen-config"
    read = plistlib.loads(profile.data)
    (root,) = read["PayloadContent"]
    assert root["PayloadType"] == "com.apple.security.root"
    assert root["PayloadContent"] == ssl.PEM_cert_to_DER_cert(trusted.ca.certificate)
    assert profile.data == client.get("/ca.mobileconfig").data  # so that it replaces itself


def test_the_addresses_carry_the_fingerprints(client, trusted):
    found = client.get("/api/addresses", base_url="https://localhost").json["certificate"]
    der = ssl.PEM_cert_to_DER_cert(trusted.ca.certificate)
    assert found["ca_fingerprint"].replace(":", "").lower() == hashlib.sha256(der).hexdigest()
    assert found["names"] == list(certificates.facts(trusted.server.certificate).names)


# --------------------------------------------------------------------------------------- the running service


def shown(service):
    """The certificate that a new connection sees."""
    with service.connection() as client:
        return client.getpeercert()["serialNumber"]


@pytest.mark.slow
def test_the_printed_address_the_hint_and_pairing_say_https(tmp_path):
    with SecureService(tmp_path, "--env", "SHOW_API_KEY=1", bind="0.0.0.0:0") as service:
        assert f"Snaplore 0.1.0 at https://127.0.0.1:{service.port}" in service.output
        found = service.get("/api/addresses")
        assert all(address.startswith("https://") for address in found["addresses"])
        paired = service.run("flask", "--app", "app", "pair").stdout
        assert "open https://" in paired
        assert service.call("POST", "/api/pairing", json={}).json()["url"].startswith("https://127.0.0.1")


@pytest.mark.slow
def test_switched_off_the_service_speaks_plain_http(tmp_path):
    with SecureService(tmp_path):
        pass
    with Service(tmp_path, tls="off") as service:
        assert service.knock("GET", "/").ok
        assert service.get("/api/addresses")["certificate"] is None


@pytest.mark.slow
def test_a_restored_backup_has_the_ca_that_devices_trust(tmp_path):
    first = SecureService(tmp_path / "first")
    with first:
        status = first.run("flask", "--app", "app", "tls", "status").stdout
        made = first.run("flask", "--app", "app", "backup", "--with-master-key", str(tmp_path / "all.tar"))
        assert made.returncode == 0, made.stderr
    with Service(tmp_path / "second") as second:
        second.stop()
        assert second.run("flask", "--app", "app", "restore", str(tmp_path / "all.tar")).returncode == 0
        second.start()
        assert second.run("flask", "--app", "app", "tls", "status").stdout == status
        secure = second.url.replace("http:", "https:")
        assert requests.get(f"{secure}/api/health", verify=str(first.authority), timeout=PATIENCE).ok


def test_a_proxy_that_has_spoken_tls_may_speak_plain_http(tmp_path):
    with SecureService(tmp_path, api_key="key", trusted_proxies=1) as service:
        plain = service.url.replace("https:", "http:") + "/api/photos"
        for scheme, status in (("https", 200), ("http", 400)):
            headers = {**service.bearer, "X-Forwarded-Proto": scheme}
            assert requests.get(plain, headers=headers, timeout=PATIENCE).status_code == status


def quick(folder):
    """The arguments of a gunicorn that looks for a new certificate all the time."""
    path = folder / "quick.py"
    lines = "import tls.authority", "tls.authority.EVERY = 0.1", ""
    path.write_text("\n".join([(ROOT / "gunicorn.conf.py").read_text(), *lines]))
    return "-c", str(path)


@pytest.mark.slow
def test_a_service_that_runs_takes_its_first_certificate_without_a_restart(tmp_path):
    with Service(tmp_path, *quick(tmp_path)) as service:
        assert service.knock("GET", "/").ok
        assert service.run("flask", "--app", "app", "tls", "init").returncode == 0
        eventually(lambda: service.knock("GET", "/", allow_redirects=False).status_code == 307, "https is on")
        (tmp_path / "ca.crt").write_bytes(service.knock("GET", "/ca.crt").content)
        secure = service.url.replace("http:", "https:")
        assert requests.get(f"{secure}/api/health", verify=str(tmp_path / "ca.crt"), timeout=PATIENCE).ok


@pytest.mark.slow
def test_a_renewal_under_load_loses_no_request_in_any_worker(tmp_path):
    with SecureService(tmp_path, *quick(tmp_path), "-w", "2", api_key="key") as service:
        picture = draw()

        def kept():
            """Requests over one connection, for as long as this client runs."""
            session = sessions[threading.get_ident()]
            found = session.get(f"{service.url}/api/photos", headers=service.bearer, timeout=PATIENCE)
            assert found.status_code == 200

        sessions = collections.defaultdict(functools.partial(trusting, service))
        calls = [kept] * 4 + [lambda: service.get("/api/health")] * 3 + [lambda: service.upload(picture)]
        secure = http.client.HTTPSConnection("127.0.0.1", service.port, context=service.context())
        with contextlib.closing(secure) as old, Clients(service, *calls) as clients:
            old.auto_open = False
            old.connect()
            for _ in range(5):
                old.request("GET", "/api/health")  # over a connection that was open before
                assert old.getresponse().read() == b'{"status":"ok"}'
                before, done = shown(service), clients.done
                assert service.run("flask", "--app", "app", "tls", "renew").returncode == 0
                eventually(
                    lambda before=before: all(shown(service) != before for _ in range(10)), "both show it"
                )
                eventually(lambda done=done: clients.done > done + 50, "requests go on")
        assert clients.failures == []


def trusting(service):
    session = requests.Session()
    session.trust_env = False
    session.verify = str(service.authority)
    return session


# -------------------------------------------------------------------------------------------------- Chromium


def browser_home(folder, authority_file):
    """A home folder in whose certificate store the CA is, as the page `/ca` says for Linux."""
    store = folder / "home" / ".pki" / "nssdb"
    store.mkdir(parents=True)
    for command in (
        ["-N", "--empty-password"],
        ["-A", "-t", "C,,", "-n", "Snaplore", "-i", authority_file],
    ):
        subprocess.run(["certutil", "-d", f"sql:{store}", *command], check=True, capture_output=True)
    return folder / "home"


@contextlib.contextmanager
def chromium_at(running, home, *arguments):
    """A page of another Chromium, beside the `running` one, that has this home."""
    browser = running.browser_type.launch(
        executable_path=shutil.which("chromium"),
        args=["--headless=new", *arguments],
        env={"HOME": str(home), "PATH": "/usr/bin:/bin"},
    )
    with contextlib.closing(browser):
        yield browser.new_page()


needs_chromium = pytest.mark.skipif(
    not (shutil.which("certutil") and shutil.which("chromium")),
    reason="chromium or certutil (libnss3-tools) is not installed",
)


@needs_chromium
@pytest.mark.slow
def test_chromium_with_the_ca_opens_the_page_without_a_warning(chromium, tmp_path):
    with (
        SecureService(tmp_path, api_key="key") as service,
        chromium_at(chromium, browser_home(tmp_path, service.authority)) as page,
    ):
        for host in ("localhost", "127.0.0.1"):
            page.goto(f"https://{host}:{service.port}/")
            assert page.title() == "Sign in · Snaplore"
            assert page.evaluate("isSecureContext && navigator.serviceWorker.ready.then(() => true)")
        page.goto(f"http://127.0.0.1:{service.port}/#/search")
        assert page.url.startswith(f"https://127.0.0.1:{service.port}/")


@needs_chromium
@pytest.mark.slow
def test_chromium_with_the_ca_refuses_a_website_that_its_thief_certifies(chromium, tmp_path, monkeypatch):
    ca = certificates.make_ca("pi", NAMES, now=utc_now())
    (tmp_path / "ca.crt").write_text(ca.certificate)
    home = browser_home(tmp_path, tmp_path / "ca.crt")
    for name, problem in (("pi.local", ""), ("bank.example", "ERR_CERT_")):
        stolen = forged(ca, name, monkeypatch=monkeypatch, now=utc_now())
        with website(certificates.server_context(ca, stolen)) as port:
            rule = f"--host-resolver-rules=MAP {name} 127.0.0.1"
            with chromium_at(chromium, home, rule) as page:
                refusal = refused(page, f"https://{name}:{port}/")
                assert problem in refusal if problem else not refusal


def refused(page, address):
    """Why the page does not open; empty when it does."""
    try:
        page.goto(address)
    except PlaywrightError as refusal:
        return str(refusal)
    return ""


@contextlib.contextmanager
def website(context):
    """A server that answers every request, with this certificate. Returns its port."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    serving = threading.Thread(target=server.serve_forever)
    serving.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        serving.join()


class Quiet(http.server.BaseHTTPRequestHandler):
    def do_GET(self):  # the name that http.server calls
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


@needs_chromium
@pytest.mark.slow
def test_over_plain_http_the_page_says_what_does_not_work_and_over_https_how_to_trust(chromium, tmp_path):
    with Service(tmp_path, *quick(tmp_path), api_key="key") as service:
        # Not this machine's own name, for which browsers make an exception.
        with chromium_at(chromium, tmp_path, "--host-resolver-rules=MAP snap.home 127.0.0.1") as page:
            page.add_init_script("if (location.host) localStorage.setItem('snaplore.key', '\"key\"')")
            page.goto(f"http://snap.home:{service.port}/#/settings/devices")
            expect(page.locator(".connect")).to_contain_text("opened over plain http")
            expect(page.locator(".connect")).to_contain_text("./snaplore tls init")
        assert service.run("flask", "--app", "app", "tls", "init").returncode == 0
        (tmp_path / "ca.crt").write_bytes(eventually(lambda: issued(service), "there is a CA"))
        with chromium_at(chromium, browser_home(tmp_path, tmp_path / "ca.crt")) as page:
            page.add_init_script("if (location.host) localStorage.setItem('snaplore.key', '\"key\"')")
            page.goto(f"https://127.0.0.1:{service.port}/#/settings/devices")
            expect(page.locator(".connect")).to_contain_text("because SNAPLORE_BIND says so")
            expect(page.locator(".connect")).not_to_contain_text("plain http")


def issued(service):
    found = service.knock("GET", "/ca.crt")
    return found.content if found.ok else None
