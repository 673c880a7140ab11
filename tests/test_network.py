"""Letting phones in at run time: the service listens on the network when its owner says so."""

import socket
from datetime import datetime, timedelta

import pytest
import requests

import database
from settings import ROOT
from tests.support.service import Service, eventually
from tests.support.trust import SecureService
from tls import network
from tls.addresses import Interface
from tls.network import Network

NOW = datetime(2026, 11, 21, 12)
OTHER = "127.0.0.2"  # stands for an address on the network: Linux takes all of 127.0.0.0/8 for its own


class FakeServer:
    """Listens nowhere; `refused` are the addresses that it cannot have."""

    def __init__(self):
        self.listening = []
        self.refused = set()

    def listen_also(self, addresses):
        self.listening = [address for address in addresses if address not in self.refused]
        return self.listening


@pytest.fixture
def stored(app):
    """A scope, in which choices are stored."""
    with database.scope():
        yield


def made(*interfaces, fixed=False):
    server = FakeServer()
    return server, Network(server, 8000, fixed=fixed, own=lambda: list(interfaces))


LAN = Interface("wlan0", ("192.168.1.20", "fd12::20", "2a02::2", "93.184.216.34"), is_default=True)
DOCKER = Interface("docker0", ("172.17.0.1",))
WIRE = Interface("eth0", ("10.0.0.2",))


def test_private_addresses_are_listened_on_and_neither_public_ones_nor_those_of_containers(stored):
    server, own = made(DOCKER, WIRE, LAN)
    network.choose("always", now=NOW)
    own.follow(now=NOW)
    assert server.listening == [("192.168.1.20", 8000), ("fd12::20", 8000), ("10.0.0.2", 8000)]
    assert own.addresses("https") == [
        "https://192.168.1.20:8000",
        "https://[fd12::20]:8000",
        "https://10.0.0.2:8000",
    ]


def test_ten_minutes_end(stored):
    server, own = made(LAN)
    network.choose("minutes", now=NOW)
    own.follow(now=NOW + timedelta(minutes=9))
    assert server.listening
    assert network.seen("https://127.0.0.1:8000", now=NOW) == "https://0.0.0.0:8000"
    own.follow(now=NOW + timedelta(minutes=10))
    assert server.listening == own.listening == []
    assert network.seen("http://127.0.0.1:8000", now=NOW + timedelta(hours=1)) == "http://127.0.0.1:8000"


def test_a_new_address_of_the_machine_replaces_the_old_one(stored):
    interfaces = [Interface("wlan0", ("192.168.1.20",))]
    server = FakeServer()
    own = Network(server, 8000, fixed=False, own=lambda: interfaces)
    network.choose("always", now=NOW)
    own.follow(now=NOW)
    interfaces[:] = [Interface("wlan0", ("192.168.7.3",))]
    own.follow(now=NOW)
    assert server.listening == [("192.168.7.3", 8000)]


def test_an_owner_chooses_over_the_api_and_a_token_may_not(app, client):
    server, own = made(LAN)
    app.extensions[network.CHOICE] = own
    assert client.get("/api/addresses").json["network"] == {"listen": "off", "until": None}
    answer = client.put("/api/network", json={"listen": "minutes"})
    assert answer.status_code == 200
    assert answer.json["listen"] == "minutes"
    assert answer.json["until"]
    shown = client.get("/api/addresses").json
    assert shown["addresses"][0] == "http://192.168.1.20:8000"
    assert shown["loopback_only"] is False

    assert client.put("/api/network", json={"listen": "always"}).json == {"listen": "always", "until": None}
    token = client.post("/api/tokens", json={"name": "phone", "scope": "full"}).json["token"]
    other = app.test_client()
    refused = other.put("/api/network", json={"listen": "off"}, headers={"Authorization": f"Bearer {token}"})
    assert refused.status_code == 403
    assert server.listening
    assert client.put("/api/network", json={"listen": "off"}).json == {"listen": "off", "until": None}
    assert server.listening == []
    assert client.put("/api/network", json={"listen": "everywhere"}).status_code == 400


def test_what_the_operator_has_set_is_not_changed_by_the_page(app, client):
    assert client.put("/api/network", json={"listen": "always"}).status_code == 409
    server, own = made(LAN, fixed=True)
    app.extensions[network.CHOICE] = own
    answer = client.put("/api/network", json={"listen": "always"})
    assert answer.status_code == 409
    assert "SNAPLORE_BIND" in answer.json["detail"]
    assert client.get("/api/addresses").json["network"] == {"listen": "fixed", "until": None}
    assert server.listening == []


def test_a_server_that_cannot_listen_anywhere_says_so_and_forgets_the_choice(app, client):
    _, own = made()
    app.extensions[network.CHOICE] = own
    answer = client.put("/api/network", json={"listen": "always"})
    assert answer.status_code == 503
    assert client.get("/api/addresses").json["network"] == {"listen": "off", "until": None}


# --------------------------------------------------------------------------------------------------- for real


def on_other_address(folder):
    """The arguments of a gunicorn that takes OTHER for its only address on a network."""
    path = folder / "other.py"
    lines = [
        (ROOT / "gunicorn.conf.py").read_text(),
        "import tls.network",
        "from tls.addresses import Interface",
        f"tls.network.Network.__init__.__kwdefaults__['own'] = lambda: [Interface('lan', ('{OTHER}',))]",
        "",
    ]
    folder.mkdir(exist_ok=True)
    path.write_text("\n".join(lines))
    return "-c", str(path), "-b", "127.0.0.1:0"


def connects(port):
    try:
        socket.create_connection((OTHER, port), 5).close()
    except ConnectionRefusedError:
        return False
    return True


@pytest.mark.slow
def test_the_running_service_listens_on_the_network_and_stops_without_a_restart(tmp_path):
    with Service(tmp_path, *on_other_address(tmp_path), bind="") as service:
        assert not connects(service.port)
        service.call("PUT", "/api/network", json={"listen": "always"})
        eventually(lambda: connects(service.port), "the network may connect")
        away = f"http://{OTHER}:{service.port}"
        kept = requests.Session()
        assert kept.get(f"{away}/api/health", timeout=30).ok
        assert kept.get(f"{away}/api/stats", timeout=30).status_code == 401  # the key is needed as ever
        assert service.get("/api/addresses")["addresses"] == [away]

        service.stop()
        service.start()  # with another port; the choice is stored
        eventually(lambda: connects(service.port), "the network may connect after a restart")
        away = f"http://{OTHER}:{service.port}"
        assert kept.get(f"{away}/api/health", timeout=30).ok

        service.call("PUT", "/api/network", json={"listen": "off"})
        eventually(lambda: not connects(service.port), "the network may no longer connect")
        with pytest.raises(requests.ConnectionError):
            kept.get(f"{away}/api/health", timeout=30)  # an idle connection ends too
        assert service.get("/api/health") == {"status": "ok"}


def test_snaplore_bind_wins_over_the_stored_choice(tmp_path):
    with Service(tmp_path, *on_other_address(tmp_path), bind="") as service:
        service.call("PUT", "/api/network", json={"listen": "always"})
        service.stop()
        service.start(bind="127.0.0.1:8000")  # gunicorn's own -b says the port
        assert service.get("/api/addresses")["network"] == {"listen": "fixed", "until": None}
        assert not connects(service.port)


@pytest.mark.slow
def test_with_a_certificate_the_network_is_let_in_over_https(tmp_path):
    with SecureService(tmp_path, *on_other_address(tmp_path), bind="") as service:
        service.call("PUT", "/api/network", json={"listen": "minutes"})
        eventually(lambda: connects(service.port), "the network may connect")
        assert service.get("/api/addresses")["addresses"] == [f"https://{OTHER}:{service.port}"]
        context = service.context(check_hostname=False)  # the certificate names no other loopback address
        with (
            socket.create_connection((OTHER, service.port), 30) as plain,
            context.wrap_socket(plain, server_hostname=OTHER) as client,
        ):
            client.sendall(b"GET /api/health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            assert client.recv(65_536).startswith(b"HTTP/1.1 200")
        plain = f"http://{OTHER}:{service.port}/api/stats"
        assert requests.get(plain, timeout=30, allow_redirects=False).status_code >= 300
