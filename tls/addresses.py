"""The addresses under which other devices reach the service: `make run` prints them, and the page shows them.

A service that listens on 0.0.0.0 is reached under each address of its machine, but not under that one; one
that listens on 127.0.0.1 is reached by no phone. So neither is shown to people. The kernel is asked directly,
because a machine's own name often resolves to 127.0.1.1, and a Pi need not have the program `ip`.
"""

import contextlib
import dataclasses
import fcntl
import ipaddress
import re
import socket
import struct
from collections.abc import Callable
from pathlib import Path

LONGEST_LIST = 8  # a machine with more has them from virtual networks
# Networks between the containers and virtual machines of this machine: nothing outside can reach them.
INTERNAL = re.compile(r"(docker|veth|br-|virbr|cni|podman|lxc|lxd|vboxnet|vmnet|kube|flannel|cali)")
HOST = re.compile(r"[a-z0-9.-]{1,253}")
SIOCGIFADDR = 0x8915  # from Linux' sockios.h: the IPv4 address of an interface
TEMPORARY, DEPRECATED, TENTATIVE = 0x01, 0x20, 0x40  # flags of an IPv6 address, from Linux' if_addr.h


@dataclasses.dataclass(frozen=True)
class Reach:
    """`addresses` are those that other devices can open, the best first, like http://192.168.1.20:8000.

    With `loopback_only`, there are none, because the service listens for this machine alone.
    """

    addresses: tuple[str, ...]
    loopback_only: bool


@dataclasses.dataclass(frozen=True)
class Interface:
    """A network interface and its addresses, without loopback and link-local ones."""

    name: str
    addresses: tuple[str, ...]
    is_default: bool = False  # whether the default route leaves through it


def interfaces() -> list[Interface]:
    """This machine's interfaces with an address for other devices; empty where the kernel does not tell."""
    names = [name for _, name in socket.if_nameindex()]
    default, later = _default_interface(), _ipv6()
    found = [Interface(name, (*_ipv4(name), *later.get(name, ())), name == default) for name in names]
    return [interface for interface in found if interface.addresses]


def machine() -> str:
    """The name of this machine, without a domain."""
    return socket.gethostname().partition(".")[0].lower() or "localhost"


def names() -> list[str]:
    """The host names of this machine: its own, also by multicast DNS (raspberrypi.local), and localhost."""
    found = (socket.gethostname().lower().rstrip("."), machine(), f"{machine()}.local", "localhost")
    return [name for name in dict.fromkeys(found) if HOST.fullmatch(name)]


def own_addresses() -> list[str]:
    """The addresses of this machine, as other devices and it itself know them."""
    outside = [interface for interface in interfaces() if not INTERNAL.match(interface.name)]
    return [*(address for interface in outside for address in interface.addresses), "127.0.0.1", "::1"]


def reach(listening: str, own: Callable[[], list[Interface]] = interfaces) -> Reach:
    """Where other devices reach a service that listens on `listening`, like https://0.0.0.0:8000."""
    parts = re.fullmatch(r"(?:(https?)://)?(?:\[([^\]]*)\]|([^:/\[\]]*)):([0-9]{1,5})", listening)
    if parts is None:
        return Reach((), loopback_only=False)
    scheme, host, port = parts[1] or "http", parts[2] or parts[3], parts[4]
    try:
        bound = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:  # a name
        return Reach((), True) if host == "localhost" else Reach((f"{scheme}://{host}:{port}",), False)
    if not bound.is_unspecified:
        return Reach((), True) if bound.is_loopback else Reach((url(scheme, bound, port),), False)
    found = [
        (
            not interface.is_default,
            address.version,
            not address.is_private,
            place,
            url(scheme, address, port),
        )
        for place, interface in enumerate(own())
        if not INTERNAL.match(interface.name)
        for address in map(ipaddress.ip_address, interface.addresses)
        # An IPv4 socket is not reached by IPv6; an IPv6 one is by both.
        if address.version <= bound.version
    ]
    return Reach(tuple(url for *_, url in sorted(found)[:LONGEST_LIST]), False)


def best(listening: str) -> str:
    """The address to give to another device: the first that it can open, or else this machine's own."""
    found = reach(listening).addresses
    return found[0] if found else opened_here(listening)


def opened_here(listening: str) -> str:
    """The address under which this machine itself opens a service that listens on `listening`."""
    return re.sub(r"^(https?)://(0\.0\.0\.0|\[::\])(?=:[0-9]+$)", r"\1://127.0.0.1", listening)


def url(scheme: str, address: ipaddress.IPv4Address | ipaddress.IPv6Address, port: str) -> str:
    return f"{scheme}://{f'[{address}]' if address.version == 6 else address}:{port}"


def _default_interface() -> str:
    """The interface of the default route with the least metric, else an empty text."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        rows = [line.split() for line in Path("/proc/net/route").read_text(encoding="ascii").splitlines()[1:]]
        routes = sorted((int(row[6]), row[0]) for row in rows if row[1] == row[7] == "00000000")
        return routes[0][1]
    return ""


def _ipv4(name: str) -> list[str]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking, contextlib.suppress(OSError):
        answer = fcntl.ioctl(asking, SIOCGIFADDR, struct.pack("256s", name.encode()[:15]))
        address = ipaddress.IPv4Address(answer[20:24])  # behind the name and the port of a `sockaddr_in`
        if not (address.is_loopback or address.is_link_local):
            return [str(address)]
    return []


def _ipv6() -> dict[str, list[str]]:
    """By interface: global and unique local addresses that stay, so not those of privacy extensions."""
    found: dict[str, list[str]] = {}
    with contextlib.suppress(OSError, ValueError):
        for line in Path("/proc/net/if_inet6").read_text(encoding="ascii").splitlines():
            digits, _, _, scope, flags, name = line.split()
            if scope == "00" and not int(flags, 16) & (TEMPORARY | DEPRECATED | TENTATIVE):
                found.setdefault(name, []).append(str(ipaddress.IPv6Address(int(digits, 16))))
    return found
