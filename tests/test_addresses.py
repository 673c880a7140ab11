"""The addresses that are shown to people: each must be one that their phone can open."""

import ipaddress
import socket

import pytest
import requests

from tests.support.service import Service
from tls import addresses
from tls.addresses import Interface, Reach

LAN = Interface("wlan0", ("192.168.1.20", "fd12::20"), is_default=True)


def reach(listening, *interfaces):
    return addresses.reach(listening, lambda: list(interfaces))


@pytest.mark.parametrize(
    "listening", ["127.0.0.1:8000", "http://127.0.0.1:8000", "[::1]:8000", "localhost:80"]
)
def test_a_service_on_loopback_is_reached_by_nobody_else(listening):
    assert reach(listening, LAN) == Reach((), loopback_only=True)


def test_a_service_on_all_interfaces_is_reached_at_each_address_of_the_machine():
    assert reach("http://0.0.0.0:8000", LAN).addresses == ("http://192.168.1.20:8000",)
    assert reach("[::]:8000", LAN).addresses == ("http://192.168.1.20:8000", "http://[fd12::20]:8000")


def test_a_service_on_one_address_is_reached_there_only():
    assert reach("http://192.168.1.20:8000", LAN, Interface("eth0", ("10.0.0.2",))) == Reach(
        ("http://192.168.1.20:8000",), loopback_only=False
    )
    assert reach("[fd12::20]:8000", LAN).addresses == ("http://[fd12::20]:8000",)


def test_the_network_of_the_default_route_comes_first_and_container_networks_are_left_out():
    docker, bridge = Interface("docker0", ("172.17.0.1",)), Interface("br-8f3c", ("172.18.0.1",))
    wire = Interface("eth0", ("10.0.0.2", "2a02::2"))

    assert reach("[::]:80", docker, wire, bridge, LAN).addresses == (
        "http://192.168.1.20:80",
        "http://[fd12::20]:80",
        "http://10.0.0.2:80",
        "http://[2a02::2]:80",
    )


def test_of_a_hundred_networks_a_few_are_listed():
    many = [Interface(f"eth{number}", (f"10.0.{number}.1",)) for number in range(100)]
    assert len(reach("0.0.0.0:80", *many).addresses) == addresses.LONGEST_LIST


def test_a_unix_socket_has_no_address():
    assert reach("unix:/run/snaplore.sock", LAN) == Reach((), loopback_only=False)


def test_the_kernel_names_the_addresses_of_this_machine():
    for interface in addresses.interfaces():
        for text in interface.addresses:
            address = ipaddress.ip_address(text)
            assert not {address.is_loopback, address.is_link_local, address.is_unspecified} & {True}
            with socket.socket(socket.AF_INET if address.version == 4 else socket.AF_INET6) as own:
                own.bind((text, 0))  # the kernel refuses an address that is not the machine's


def test_a_service_on_all_interfaces_prints_and_answers_where_phones_reach_it(tmp_path):
    with Service(tmp_path, "--env", "SHOW_API_KEY=1", bind="0.0.0.0:0") as service:
        port = service.port
        answer = service.get("/api/addresses")
        hint = service.output[service.output.index("Snaplore ") :]
        assert all(address in hint for address in answer["addresses"])

    assert answer == {
        "addresses": list(addresses.reach(f"0.0.0.0:{port}").addresses),
        "loopback_only": False,
        "certificate": None,
        "network": None,
    }
    assert f"Snaplore 0.1.0 at http://127.0.0.1:{port}" in hint
    assert "0.0.0.0" not in hint.split("Upload:")[1]
    assert "Keeps:   everything for 30 days, then deletes it" in hint


def test_a_service_on_loopback_says_how_to_let_phones_in(tmp_path):
    with Service(tmp_path, "--env", "SHOW_API_KEY=1", retention_days=0) as service:
        assert service.get("/api/addresses") == {
            "addresses": [],
            "loopback_only": True,
            "certificate": None,
            "network": {"listen": "fixed", "until": None},
        }
        assert f"SNAPLORE_BIND=0.0.0.0:{service.port} make run" in service.output
        assert "Keeps:   everything until you delete it" in service.output


@pytest.mark.slow
def test_a_first_start_ends_with_the_key_and_an_address_that_signs_in(tmp_path):
    with Service(tmp_path, "--env", "SHOW_API_KEY=1") as service:
        lines = service.output.splitlines()
        key = lines[-2].removeprefix("API key: ")
        assert lines[-1] == f"Open:    {service.url}/#key={key}"
        assert requests.get(
            f"{service.url}/api/stats", headers={"Authorization": f"Bearer {key}"}, timeout=30
        ).ok
        assert [line for line in lines if "database" in line and "made" not in line] == []
        assert len(lines) < 15
        assert sum(key in line for line in lines) == 4  # the commands, the key, the address


def test_the_addresses_need_the_key(app):
    assert app.test_client().get("/api/addresses").status_code == 401
