import contextlib
import datetime
import gzip
import ipaddress
import itertools
import socket
import socketserver
import ssl
import threading
import traceback

import pytest
import requests
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

import net
from errors import BadInput
from settings import ROOT
from tests.support.drawing import draw
from tests.support.fake_llm import FakeLLM
from tests.support.fake_mcp import FakeMCP
from tests.support.loopback import Loopback
from tests.support.service import Service

PUBLIC = "93.184.215.14"


def answering(*rounds):
    """A resolver that returns the addresses of each round in turn, then those of the last one repeatedly."""
    remaining = itertools.chain(rounds, itertools.repeat(rounds[-1]))

    def resolve(host, port, **_):
        addresses = next(remaining)
        if not addresses:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return [
            (socket.AF_INET6 if ":" in a else socket.AF_INET, socket.SOCK_STREAM, 6, "", (a, port))
            for a in addresses
        ]

    return resolve


def guard(*rounds, **options):
    return net.Guard(resolve=answering(*rounds), **options)


@pytest.fixture
def server():
    with FakeLLM() as fake:
        yield fake


@pytest.fixture
def client():
    """A client that may call only this machine."""
    client = net.Client(net.Guard(dev_mode=True))
    yield client
    client.close()


# Malformed addresses, and addresses that some parser reads as 127.0.0.1, 10.0.0.1, 169.254.169.254 or the
# like.
DISGUISES = [
    "https://127.0.0.1/v1",
    "https://2130706433/",
    "https://0x7f000001/",
    "https://0X7F.0x0.0x0.0x1/",
    "https://017700000001/",
    "https://0177.0.0.1/",
    "https://127.1/",
    "https://127.0.1/",
    "https://0/",
    "https://0.0.0.0/",
    "https://010.0.0.1/",
    "https://127.0.0.1./",
    "https://2130706433./",
    "https://localhost./",
    "https://127.0.0.1:443/",
    "https://10.0.0.1/",
    "https://172.16.0.1/",
    "https://192.168.1.1/",
    "https://169.254.169.254/latest/meta-data",
    "https://100.64.0.1/",
    "https://224.0.0.1/",
    "https://240.0.0.1/",
    "https://255.255.255.255/",
    "https://192.88.99.1/",
    "https://198.18.0.1/",
    "https://[::]/",
    "https://[::1]/",
    "https://[0:0:0:0:0:0:0:1]/",
    "https://[::ffff:127.0.0.1]/",
    "https://[::ffff:7f00:1]/",
    "https://[::FFFF:169.254.169.254]/",
    "https://[::127.0.0.1]/",
    "https://[64:ff9b::127.0.0.1]/",
    "https://[64:ff9b::a00:1]/",
    "https://[64:ff9b:1::7f00:1]/",
    "https://[2002:7f00:1::]/",
    "https://[2002:a00:1::1]/",
    "https://[2001:0:4136:e378:8000:63bf:80ff:fffe]/",
    "https://[fe80::1]/",
    "https://[fe80::1%25eth0]/",
    "https://[fec0::1]/",
    "https://[fc00::1]/",
    "https://[fd00:ec2::254]/",
    "https://[ff02::1]/",
    "https://[2001:db8::1]/",
    "https://[3fff::1]/",
    "https://[127.0.0.1]/",
    "https://[::1/",
    "https://::1/",
    "https://１２７.0.0.1/",
    "https://127。0。0。1/",
    "https://①②⑦.0.0.1/",
    "https://ⅼocalhost/",
    "https://127%2e0%2e0%2e1/",
    "https://%31%32%37.0.0.1/",
    "https://user@model.example/",
    "https://user:word@model.example/",
    "https://model.example@127.0.0.1/",
    "https://127.0.0.1@model.example/",
    "https://model.example#@127.0.0.1/",
    "https://127.0.0.1#.model.example/",
    "https://127.0.0.1\\@model.example/",
    "https://model.example\\@127.0.0.1/",
    "https://127.0.0.1\\.model.example/",
    "https:\\\\127.0.0.1/",
    "https:///127.0.0.1/",
    "https:/127.0.0.1/",
    "https:127.0.0.1/",
    "//127.0.0.1/",
    "https://model.example:443@127.0.0.1/",
    "https://model.example:443:127.0.0.1/",
    "https://model.example 127.0.0.1/",
    "https://127.0.0.1 .model.example/",
    "https://127.0.0.1\t/",
    "https://127.0.0.1\n.model.example/",
    "https://model.example\r\nHost: 127.0.0.1/",
    "https://127.0.0.1\x00.model.example/",
    " https://model.example/",
    "https://model.example/\n",
    "https://model..example/",
    "https://.model.example/",
    "https://-model.example/",
    "https://model.example:/",
    "https://model.example:0/",
    "https://model.example:65536/",
    "https://model.example:４４３/",
    "https://model.example/v1#fragment",
    "https://",
    "https://?",
    "",
    "model.example",
    "ftp://model.example/",
    "file:///etc/passwd",
    "javascript:alert(1)",
    "http://model.example/",
    "https://" + "a" * 64 + ".example/",
    "https://" + "a." * 127 + "example/",
    "https://model.example/" + "a" * 2048,
]


@pytest.mark.parametrize("url", DISGUISES)
def test_a_disguised_address_is_refused_at_saving_whatever_the_resolver_says(url):
    with pytest.raises(BadInput, match=r"^base_url: "):
        guard([PUBLIC]).check_address(url, field="base_url")


@pytest.mark.parametrize("url", DISGUISES)
def test_a_disguised_address_is_refused_at_calling_before_anything_is_looked_up(url):
    def resolve(*_, **__):
        raise AssertionError("a name was looked up")

    with pytest.raises(BadInput):
        net.Client(net.Guard(resolve=resolve)).post_json(url, {})


PRIVATE = [
    *(
        "127.0.0.1",
        "127.8.8.8",
        "0.0.0.0",
        "10.1.2.3",
        "172.31.255.255",
        "192.168.0.1",
        "169.254.169.254",
        "100.64.0.1",
        "100.127.255.255",
    ),
    *(
        "192.0.0.1",
        "192.0.2.1",
        "192.88.99.1",
        "198.19.0.1",
        "198.51.100.1",
        "203.0.113.1",
        "224.0.0.1",
        "239.1.1.1",
        "240.0.0.1",
    ),
    *(
        "255.255.255.255",
        "::",
        "::1",
        "::ffff:10.0.0.1",
        "::10.0.0.1",
        "64:ff9b::10.0.0.1",
        "64:ff9b:1::1",
        "100::1",
        "2001::1",
    ),
    *(
        "2001:2::1",
        "2001:10::1",
        "2001:db8::1",
        "2002:5db8:d70e::1",
        "3fff::1",
        "4000::1",
        "5f00::1",
        "fc00::1",
        "fd12::1",
        "fe80::1",
    ),
    *("fe80::1%eth0", "fec0::1", "ff02::1", "ff0e::1"),
]


@pytest.mark.parametrize("address", PRIVATE)
def test_a_name_that_resolves_to_an_address_that_is_not_global_is_refused(address):
    with pytest.raises(BadInput, match=r"^base_url: model\.example resolves to a private address"):
        guard([address]).check_address("https://model.example/v1", field="base_url")


# IANA's registries of special-purpose addresses, IPv4 and IPv6 (RFC 6890, as of 2026), with multicast and the
# reserved space: the blocks that are not globally reachable, and one cloud's metadata server at a public
# address.
SPECIAL = [
    *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12"),
    *("192.0.0.0/24", "192.0.0.0/29", "192.0.0.8/32", "192.0.0.170/32", "192.0.0.171/32", "192.0.2.0/24"),
    *("192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24"),
    *("224.0.0.0/4", "240.0.0.0/4", "255.255.255.255/32", "168.63.129.16/32", "::/128", "::1/128"),
    *("::/96", "64:ff9b:1::/48", "100::/64", "100:0:0:1::/64", "2001::/23", "2001::/32", "2001:2::/48"),
    *("2001:10::/28", "2001:20::/28", "2001:30::/28", "2001:db8::/32", "2002::/16", "3fff::/20"),
    *("5f00::/16", "fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8"),
]


@pytest.mark.parametrize("block", SPECIAL)
def test_no_special_purpose_address_is_called_in_any_form(block):
    network = ipaddress.ip_network(block)
    size = network.num_addresses
    addresses = {network[part] for part in (0, size // 3, size // 2, size - 1)}
    if block == "192.0.0.0/24":
        addresses = set(network)  # here clouds have services of their own
    forms = {str(address) for address in addresses}
    if network.version == 4:
        forms |= {f"{prefix}{address}" for address in addresses for prefix in ("::ffff:", "64:ff9b::")}
    called = []
    for form in sorted(forms):
        with contextlib.suppress(net.AddressBlocked):
            called += guard([form]).addresses("model.example", 443, secure=True)
    assert called == []


@pytest.mark.parametrize("block", SPECIAL)
def test_what_is_public_does_not_depend_on_the_version_of_python(block, monkeypatch):
    for kind in (ipaddress.IPv4Address, ipaddress.IPv6Address):
        for name in ("is_global", "is_private", "is_multicast", "is_reserved"):
            monkeypatch.setattr(kind, name, name == "is_global")
    with pytest.raises(net.AddressBlocked):
        guard([block.partition("/")[0]]).addresses("model.example", 443, secure=True)


@pytest.mark.parametrize(
    "address",
    [
        *("9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.0"),
        *("169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0", "191.255.255.255", "192.0.1.0"),
        *("192.88.98.255", "192.88.100.0", "192.167.255.255", "192.169.0.0", "198.17.255.255", "198.20.0.0"),
        *(
            "223.255.255.255",
            "168.63.129.15",
            "168.63.129.17",
            "192.31.196.1",
            "192.52.193.1",
            "192.175.48.1",
        ),
        *(
            "2001:200::",
            "2001:db7:ffff::",
            "2001:db9::",
            "2003::",
            "2620:4f:8000::1",
            "3ffe::",
            "3fff:1000::",
        ),
    ],
)
def test_the_neighbours_of_special_purpose_addresses_are_public(address):
    found = guard([address]).addresses("model.example", 443, secure=True)
    assert found == [ipaddress.ip_address(address)]


@pytest.mark.parametrize(
    "address", [PUBLIC, "1.1.1.1", "2606:4700::1111", "2a00:1450::1", "64:ff9b::1.1.1.1", "::ffff:1.1.1.1"]
)
def test_a_name_that_resolves_to_a_global_address_is_accepted(address):
    assert guard([address]).check_address("https://model.example/v1") == "https://model.example/v1"


def test_one_private_address_among_global_ones_is_enough_to_refuse():
    with pytest.raises(BadInput, match="private"):
        guard([PUBLIC, "1.1.1.1", "10.0.0.1"]).check_address("https://model.example")


@pytest.mark.parametrize(
    ("url", "normal"),
    [
        ("HTTPS://Model.Example:443/V1/", "https://model.example/V1/"),
        ("https://model.example", "https://model.example"),
        ("https://model.example:8443/a/b?c=d&e=%20", "https://model.example:8443/a/b?c=d&e=%20"),
        ("https://model.example?c=d", "https://model.example?c=d"),
        ("https://93.184.215.14/v1", "https://93.184.215.14/v1"),
        ("https://[2606:4700:0::0:1111]/v1", "https://[2606:4700::1111]/v1"),
        ("https://xn--fsq.example/~user/@tag", "https://xn--fsq.example/~user/@tag"),
        ("https://my_model.example", "https://my_model.example"),
    ],
)
def test_an_accepted_address_comes_back_in_its_normal_form(url, normal):
    assert guard([PUBLIC]).check_address(url) == normal


def test_a_name_that_does_not_resolve_now_is_accepted_and_fails_only_when_it_is_called():
    offline = guard([])
    assert offline.check_address("https://model.example/v1") == "https://model.example/v1"
    with pytest.raises(net.Unreachable, match="does not resolve"):
        net.Client(offline).post_json("https://model.example/v1", {})


def test_a_name_that_changes_its_answer_between_saving_and_use_is_refused_without_a_connection(server):
    rebinding = guard([PUBLIC], ["127.0.0.1"])
    url = rebinding.check_address(f"https://model.example:{server.port}/v1")
    with pytest.raises(net.AddressBlocked, match="rebinding"):
        net.Client(rebinding).post_json(url, {})
    assert server.connections == 0


def test_every_new_connection_is_checked_again(server):
    moving = guard(["127.0.0.1"], ["10.0.0.1"], allowed_hosts=["127.0.0.1"])
    client = net.Client(moving)
    url = f"http://model.example:{server.port}/v1"
    server.close_mid_answer()
    with pytest.raises(net.Unreachable):
        client.post_json(url, {"messages": []})
    with pytest.raises(net.AddressBlocked):
        client.post_json(url, {"messages": []})
    assert server.connections == 1


def test_the_answer_that_was_checked_is_the_one_that_is_connected_to(server):
    # A second lookup, anywhere below, would return 127.0.0.1 and reach the server.
    checked_once = guard(["127.0.0.2"], ["127.0.0.1"], allowed_hosts=["127.0.0.0/8"])
    with pytest.raises(net.Unreachable):
        net.Client(checked_once).post_json(f"http://model.example:{server.port}/v1", {})
    assert server.connections == 0


def test_the_next_address_is_tried_when_one_does_not_answer(server):
    both = guard(["127.0.0.2", "127.0.0.1"], allowed_hosts=["127.0.0.0/8"])
    assert (
        net.Client(both).post_json(f"http://model.example:{server.port}/v1", {"messages": []}).status == 200
    )


def test_dev_mode_opens_localhost_and_nothing_else(server, client):
    url = f"http://localhost:{server.port}/v1"
    dev = net.Guard(dev_mode=True)
    assert dev.check_address(url) == url
    assert client.post_json(url, {"messages": []}).status == 200
    others = (
        "http://127.0.0.1/",
        "http://[::1]/",
        "https://127.0.0.1/",
        "http://model.example/",
        "http://localhost.example/",
    )
    for other in (*others, "http://a.localhost/"):
        with pytest.raises(BadInput):
            guard(["127.0.0.1"], dev_mode=True).check_address(other)
    with pytest.raises(BadInput):
        net.Guard().check_address(url)


def test_localhost_is_only_this_machine_whatever_the_resolver_says():
    with pytest.raises(BadInput, match="localhost resolves to"):
        guard(["10.0.0.1"], dev_mode=True).check_address("http://localhost:11434/v1")


@pytest.mark.parametrize(
    ("trusted", "url", "address"),
    [
        ("box.lan", "http://box.lan:11434/v1", "192.168.1.5"),
        ("Box.LAN", "https://BOX.lan/v1", "192.168.1.5"),
        ("192.168.1.5", "http://192.168.1.5:11434/v1", None),
        ("192.168.1.5", "http://box.lan:11434/v1", "192.168.1.5"),
        ("192.168.1.0/24", "http://192.168.1.77/v1", None),
        ("192.168.1.0/24", "https://box.lan/v1", "192.168.1.77"),
        ("[fd00::5]", "http://[fd00::5]:11434/v1", None),
        ("fd00::/8", "http://box.lan/v1", "fd00::77"),
    ],
)
def test_allowed_hosts_open_what_they_name(trusted, url, address):
    guard([address] if address else [], allowed_hosts=[trusted]).check_address(url)


@pytest.mark.parametrize(
    ("trusted", "url", "address"),
    [
        ("box.lan", "http://other.lan/v1", "192.168.1.5"),
        ("box.lan", "http://sub.box.lan/v1", "192.168.1.5"),
        ("box.lan", "https://192.168.1.5/v1", None),
        ("192.168.1.5", "https://192.168.1.6/v1", None),
        ("192.168.1.5", "https://box.lan/v1", "192.168.1.6"),
        ("192.168.1.5", "http://model.example/v1", PUBLIC),
        ("192.168.1.0/24", "https://[::ffff:192.168.1.5]/v1", None),
        ("192.168.1.0/24", "http://3232235781/v1", None),
        ("127.0.0.1", "http://127.1/v1", None),
    ],
)
def test_allowed_hosts_open_nothing_beside_what_they_name(trusted, url, address):
    with pytest.raises(BadInput):
        guard([address] if address else [], allowed_hosts=[trusted]).check_address(url)


def test_a_plain_http_name_that_leaves_the_trusted_network_is_refused_at_connecting():
    moving = guard(["192.168.1.5"], [PUBLIC], allowed_hosts=["192.168.1.0/24"])
    url = moving.check_address("http://box.lan/v1")
    with pytest.raises(net.AddressBlocked, match="without https"):
        net.Client(moving).post_json(url, {})


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """PEM files (certificate, key) for model.example, self-signed."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "model.example")])
    now = datetime.datetime.now(datetime.UTC)
    builder = x509.CertificateBuilder(
        name, name, key.public_key(), x509.random_serial_number(), now, now + datetime.timedelta(days=1)
    )
    builder = builder.add_extension(
        x509.SubjectAlternativeName([x509.DNSName("model.example")]), critical=False
    )
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(
        x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False
    )
    usage = dict.fromkeys(
        ("content_commitment", "key_encipherment", "data_encipherment", "key_agreement", "crl_sign"), False
    )
    usage |= {
        "encipher_only": False,
        "decipher_only": False,
        "digital_signature": True,
        "key_cert_sign": True,
    }
    signed = builder.add_extension(x509.KeyUsage(**usage), critical=True).sign(key, hashes.SHA256())
    folder = tmp_path_factory.mktemp("tls")
    (folder / "cert.pem").write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    plain = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / "key.pem").write_bytes(key.private_bytes(*plain))
    return str(folder / "cert.pem"), str(folder / "key.pem")


@pytest.fixture
def tls_server(certificate):
    """An https server for model.example that records in `asked_for` the names which clients request (SNI)."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*certificate)
    asked_for = []
    context.sni_callback = lambda _socket, name, _context: asked_for.append(name)
    with FakeLLM(tls=context) as fake:
        fake.asked_for = asked_for
        yield fake


def test_tls_is_checked_for_the_name_while_the_socket_goes_to_the_checked_address(tls_server, certificate):
    local = guard(["127.0.0.1"], allowed_hosts=["127.0.0.1"])
    client = net.Client(local, ca_file=certificate[0])
    assert client.post_json(f"https://model.example:{tls_server.port}/v1", {"messages": []}).status == 200
    assert tls_server.asked_for == ["model.example"]
    assert tls_server.requests[0].headers["host"] == f"model.example:{tls_server.port}"
    client.close()


@pytest.mark.parametrize("host", ["other.example", "127.0.0.1"])
def test_a_certificate_for_another_name_is_refused(tls_server, certificate, host):
    client = net.Client(guard(["127.0.0.1"], allowed_hosts=["127.0.0.1"]), ca_file=certificate[0])
    with pytest.raises(net.Unreachable, match="TLS"):
        client.post_json(f"https://{host}:{tls_server.port}/v1", {})
    assert not tls_server.requests


def test_a_certificate_of_an_unknown_authority_is_refused(tls_server):
    with pytest.raises(net.Unreachable, match="TLS"):
        net.Client(guard(["127.0.0.1"], allowed_hosts=["127.0.0.1"])).post_json(
            f"https://model.example:{tls_server.port}/v1", {}
        )
    assert not tls_server.requests


@pytest.mark.slow
@pytest.mark.parametrize(
    ("head", "piece"),
    [
        (b"", b"H"),
        (b"HTTP/1.1 200 OK\r\n", b"X-Pad: 1\r\n"),
        (b"HTTP/1.1 200 OK\r\nX-Pad: ", b"1"),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", b" "),
        (b"HTTP/1.1 200 OK\r\n\r\n", b" "),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1", b";"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffff\r\n", b" "),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", b"X-Pad: 1\r\n"),
        (b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n", gzip.compress(b"", mtime=0)),
    ],
)
def test_a_server_that_drips_is_cut_off_at_the_deadline(server, client, head, piece):
    server.drip(head, piece)
    with pytest.raises(net.TimedOut, match="localhost: no whole answer in time"):
        client.post_json(server.url, {"messages": []}, deadline=0.4)


def test_a_server_that_stays_silent_is_abandoned_at_the_deadline(server, client):
    server.stay_silent()
    with pytest.raises(net.TimedOut):
        client.post_json(server.url, {"messages": []}, deadline=0.2)


def test_a_server_that_drips_over_tls_is_cut_off_at_the_deadline(tls_server, certificate):
    client = net.Client(guard(["127.0.0.1"], allowed_hosts=["127.0.0.1"]), ca_file=certificate[0])
    tls_server.drip()
    with pytest.raises(net.TimedOut):
        client.post_json(f"https://model.example:{tls_server.port}/v1", {"messages": []}, deadline=0.6)


def test_a_server_that_never_finishes_the_tls_handshake_is_abandoned_at_the_deadline():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        local = guard(["127.0.0.1"], allowed_hosts=["127.0.0.1"])
        with pytest.raises(net.TimedOut):
            net.Client(local).post_json(
                f"https://model.example:{listener.getsockname()[1]}/", {}, deadline=0.2
            )


def test_a_server_that_does_not_read_is_abandoned_at_the_deadline():
    with socket.create_server(("127.0.0.1", 0)) as listener, pytest.raises(net.TimedOut):
        net.Client(net.Guard(dev_mode=True)).post_json(
            f"http://localhost:{listener.getsockname()[1]}/", {"pad": "x" * 20_000_000}, deadline=0.4
        )


def test_an_answer_over_the_size_limit_is_cut_off(server, client):
    server.reply(b" " * (net.MAX_ANSWER_BYTES + 1))
    with pytest.raises(net.AnswerTooLarge, match="over 10 MB"):
        client.post_json(server.url, {"messages": []})


def test_an_answer_of_just_the_size_limit_is_whole(server, client):
    server.reply(b" " * net.MAX_ANSWER_BYTES)
    assert len(client.post_json(server.url, {"messages": []}).body) == net.MAX_ANSWER_BYTES


@pytest.mark.parametrize("encoding", ["gzip", "gzip, gzip"])
def test_a_compressed_bomb_is_cut_off_by_what_it_becomes(server, client, encoding):
    gigabyte = gzip.compress(bytes(10_000_000)) * 100
    server.reply(
        gigabyte if encoding == "gzip" else gzip.compress(gigabyte), headers={"Content-Encoding": encoding}
    )
    with pytest.raises(net.AnswerTooLarge):
        client.post_json(server.url, {"messages": []})


def test_a_compressed_answer_is_decoded(server, client):
    server.reply(gzip.compress(b'{"fine": true}'), headers={"Content-Encoding": "gzip"})
    assert client.post_json(server.url, {"messages": []}).body == b'{"fine": true}'


def test_a_redirect_is_an_answer_and_is_not_followed(server, client):
    with FakeLLM() as elsewhere:
        server.reply(b"", status=307, headers={"Location": elsewhere.url})
        response = client.post_json(server.url, {"messages": []})
        assert response.status == 307
        assert elsewhere.connections == 0
    assert len(server.requests) == 1


def test_proxies_and_passwords_of_the_environment_are_ignored(server, client, monkeypatch, tmp_path):
    with FakeLLM() as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.delenv(name, raising=False)
        (tmp_path / "netrc").write_text("machine localhost login somebody password something\n")
        monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
        assert client.post_json(server.url, {"messages": []}).status == 200
        assert proxy.connections == 0
    assert "authorization" not in server.requests[0].headers


def test_cookies_are_not_kept(server, client):
    server.reply({}, headers={"Set-Cookie": "track=me; Path=/"})
    client.post_json(server.url, {"messages": []})
    client.post_json(server.url, {"messages": []})
    assert "cookie" not in server.requests[1].headers


def test_a_key_goes_to_its_own_origin_and_nowhere_else(server, client):
    key = net.Key("sk-very-secret", net.origin(server.url))
    client.post_json(f"{server.url}/any/path", {"messages": []}, key=key)
    assert server.requests[0].key == "sk-very-secret"
    with FakeLLM() as other:
        with pytest.raises(BadInput, match="the key belongs to http://localhost"):
            client.post_json(other.url, {"messages": []}, key=key)
        assert other.connections == 0
    assert "sk-very-secret" not in repr(key)


@pytest.mark.parametrize("secret", ["two words", "line\r\nHost: evil", "ключ", "nul\0", ""])
def test_a_key_that_cannot_stand_in_a_header_is_refused_without_quoting_it(secret):
    with pytest.raises(BadInput, match=r"^api_key: must be printable ASCII without blanks$"):
        net.Key(secret, "https://model.example:443")


def test_no_failure_reveals_the_key_or_the_query(server, client):
    key = net.Key("sk-very-secret", net.origin(server.url))
    url = f"{server.url}?token=also-secret"
    server.fail(500)
    server.close_mid_answer()
    server.drip()
    server.reply(b" " * (net.MAX_ANSWER_BYTES + 1))
    server.reply(b"not gzip", headers={"Content-Encoding": "gzip"})
    assert client.post_json(url, {"messages": []}, key=key).status == 500
    failures = []
    for _ in range(4):
        with pytest.raises(net.CallFailed) as caught:
            client.post_json(url, {"messages": []}, key=key, deadline=1)
        failures.append(caught.value)
    server.close()
    with pytest.raises(net.Unreachable) as caught:
        client.post_json(url, {"messages": []}, key=key)
    assert [type(failure) for failure in failures] == [
        net.Unreachable,
        net.TimedOut,
        net.AnswerTooLarge,
        net.Unreachable,
    ]
    for failure in [*failures, caught.value]:
        shown = "".join(traceback.format_exception(failure)) + repr(failure)
        assert "sk-very-secret" not in shown
        assert "also-secret" not in shown
        assert failure.detail.startswith("localhost: ")


@pytest.mark.parametrize(
    ("head", "pieces"),
    [
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            [b"5\r\nfirst\r\n", b"6\r\nsecond\r\n0\r\n\r\n"],
        ),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n", [b"first", b"second"]),
        (b"HTTP/1.1 200 OK\r\n\r\n", [b"first", b"second"]),
    ],
)
def test_an_answer_can_be_read_while_it_is_still_coming(client, head, pieces):
    seen = threading.Event()

    def in_two(handler, request):
        handler.send(head + pieces[0])
        if seen.wait(90):
            handler.send(pieces[1])

    with FakeMCP() as server:
        server.act("ping", in_two)
        with client.open("POST", server.url, {"method": "ping"}) as answer:
            assert next(iter(answer)) == b"first"
            seen.set()
            assert answer.read() == b"second"


def test_a_call_without_a_body_has_none(client):
    with FakeMCP() as server:
        with client.open("DELETE", server.url, headers={"X-Mark": "1"}) as answer:
            assert (answer.status, answer.read()) == (200, b"")
        request = server.requests[0]
    assert (request.verb, request.headers["x-mark"]) == ("DELETE", "1")
    assert "content-type" not in request.headers


def test_a_call_may_have_a_smaller_size_limit_of_its_own(server, client):
    server.reply(b" " * (1024 * 1024 + 1))
    with (
        client.open("POST", server.url, {"messages": []}, max_bytes=1024 * 1024) as answer,
        pytest.raises(net.AnswerTooLarge, match="over 1 MB"),
    ):
        answer.read()


def test_connections_are_kept_between_calls(server, client):
    for _ in range(3):
        client.post_json(server.url, {"messages": []})
    assert server.connections == 1


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("https://Model.example/v1", "https://model.example:443"),
        ("https://model.example:8443", "https://model.example:8443"),
        ("http://localhost/x", "http://localhost:80"),
        ("https://[2606:4700:0::1]/", "https://[2606:4700::1]:443"),
    ],
)
def test_the_origin_of_an_address_is_scheme_host_and_port(url, origin):
    assert net.origin(url) == origin


class Recorder(Loopback):
    """A server that answers any request with `body`. `lines` has the first line of each, and `TLS` for a
    client that begins a handshake, whose connection is closed.
    """

    def __init__(self, body: bytes = b"{}"):
        self.body = body
        self.lines: list[bytes] = []
        super().__init__(_Recording)


class _Recording(socketserver.StreamRequestHandler):
    def __init__(self, recorder, *args):
        self._recorder = recorder
        super().__init__(*args)

    def handle(self):
        if self.rfile.peek(1)[:1] == b"\x16":
            self._recorder.lines.append(TLS)
            return
        self._recorder.lines.append(self.rfile.readline(1_000))
        length = 0
        while (line := self.rfile.readline(10_000)).strip():
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        self.rfile.read(length)
        head = f"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {len(self._recorder.body)}\r\n\r\n"
        self.wfile.write(head.encode() + self._recorder.body)


TLS = b"the beginning of a TLS handshake"
PROXY_VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "FTP_PROXY", "WS_PROXY", "WSS_PROXY")


def test_no_call_of_the_service_goes_through_a_proxy_of_its_environment(tmp_path, monkeypatch):
    """Such a proxy would choose the address that is called, behind the check."""
    with (
        Recorder() as proxy,
        Recorder() as webhook,
        Recorder(b'{"results": []}') as searxng,
        Recorder() as duckduckgo,
        FakeMCP() as tools,
        FakeLLM() as model,
    ):
        for name in PROXY_VARIABLES:
            for spelling in (name, name.lower(), f"DDGS_{name}", f"PRIMP_{name}"):
                monkeypatch.setenv(spelling, f"http://127.0.0.1:{proxy.port}")
        for name in ("DDGS_PROXY", "PRIMP_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.delenv(name, raising=False)
        assert requests.get("http://a.example/", timeout=120).status_code == 200
        assert proxy.lines == [b"GET http://a.example/ HTTP/1.1\r\n"]  # a client that honours the variables
        proxy.lines.clear()

        searching = tmp_path / "searching.py"
        searching.write_text(
            (ROOT / "gunicorn.conf.py").read_text()
            + "\n\nbegin = post_worker_init\n\n\n"
            + "def post_worker_init(worker):\n"
            + "    from ddgs.engines import ENGINES\n\n"
            + f"    ENGINES['text']['duckduckgo'].search_url = 'https://127.0.0.1:{duckduckgo.port}/html/'\n"
            + "    begin(worker)\n"
        )
        settings = {
            "api_key": "key",
            "dev_mode": "true",
            "llm_base_url": model.url,
            "llm_model": "scripted",
            "llm_api_key": "sk-scripted",
            "push_webhook_url": f"http://localhost:{webhook.port}/hook",
            "searxng_url": f"http://127.0.0.1:{searxng.port}",
        }
        with Service(tmp_path, "-c", str(searching), **settings) as service:
            service.upload(draw("An invoice"))
            assert service.wait_until_analysed()["done"] == 1
            assert model.connections == 1

            registered = {"id": "weather", "name": "Weather", "url": tools.url}
            assert service.call("POST", "/api/mcp-servers", json=registered).ok
            calls = [
                {"id": f"call_{name}", "type": "function", "function": {"name": name, "arguments": arguments}}
                for name, arguments in (
                    ("web_search", '{"query": "cats"}'),
                    ("mcp__weather__weather", '{"place": "Rome"}'),
                )
            ]
            model.answer(None, tool_calls=calls, finish_reason="tool_calls")
            model.answer("It is sunny.")
            answer = service.call("POST", "/api/chat/send", json={"message": "Search, and the weather?"})
            assert answer.json()["message"]["content"] == "It is sunny.", answer.text
            assert "tools/call" in tools.methods
            assert [line.split(b"?")[0] for line in searxng.lines] == [b"GET /search"]
            assert duckduckgo.lines == [TLS]

            device = {"device_id": "phone", "token": "token"}
            assert service.call("POST", "/api/push/register", json=device).ok
            assert service.call("POST", "/api/push/test", json={"device_id": "phone"}).ok
            assert webhook.lines == [b"POST /hook HTTP/1.1\r\n"]
        assert proxy.lines == []
