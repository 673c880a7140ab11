"""Listening on the network because the owner says so, at run time; `/api/network`.

A service that nobody has configured listens on 127.0.0.1, which no phone reaches. The owner lets the own
network in from the page, for ten minutes or for good, without a restart. The choice is stored, so that it
outlives the worker. SNAPLORE_BIND wins: what an operator has set is not widened by a page.

The service then listens on each private address of this machine, at the same port. It does not listen on
0.0.0.0, whose port the socket on 127.0.0.1 already has, nor on a public address, nor on the networks of
containers. Addresses change when the machine moves to another network, so they are looked up every minute.
Every request still needs the key, and TLS works as at the first socket.
"""

import ipaddress
import logging
import threading
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Protocol

import flask
import msgspec
from flask import Blueprint

import database
import models
from clock import iso, utc_now
from errors import Conflict, Unavailable
from loops import Loop
from tls.addresses import INTERNAL, Interface, interfaces, reach, url
from web import inputs, shapes

log = logging.getLogger(__name__)

CHOICE = "network"  # the name of the stored choice
MINUTES = timedelta(minutes=10)
LOOK_EVERY = 60.0  # seconds
FIXED = "SNAPLORE_BIND sets where the service listens. Change it there, and start the service again."


class Choice(msgspec.Struct):
    """The network may connect until this time, or for good."""

    until: datetime | None


class Server(Protocol):
    """What listens: the gunicorn worker."""

    def listen_also(self, addresses: Iterable[tuple[str, int]]) -> list[tuple[str, int]]: ...


class Network:
    """The sockets on the network of a service that listens on `port` of loopback.

    With `fixed`, the operator has set where it listens, and nothing can be chosen.
    """

    def __init__(
        self,
        server: Server,
        port: int,
        *,
        fixed: bool,
        own: Callable[[], list[Interface]] = interfaces,
    ):
        self.fixed = fixed
        self.listening: list[tuple[str, int]] = []
        self._server, self._port, self._own = server, port, own
        self._guard = threading.Lock()
        self._loop = Loop("network", self._step)

    def loop(self) -> Loop:
        """The thread that follows the stored choice, the time and the addresses of this machine."""
        return self._loop

    def addresses(self, scheme: str) -> list[str]:
        """Where other devices open the service now, the best first."""
        return [url(scheme, ipaddress.ip_address(address), str(port)) for address, port in self.listening]

    def follow(self, *, now: datetime) -> Choice | None:
        """Listen on the network if the stored choice allows it, or no longer. Returns it. Needs a scope."""
        with self._guard:  # the choice is read inside: the last caller must not act on an older one
            choice = chosen(now=now)
            wanted = [(address, self._port) for address in self._addresses()] if choice else []
            before, self.listening = self.listening, self._server.listen_also(wanted)
        if before != self.listening:
            listening = ", ".join(f"{address} port {port}" for address, port in self.listening)
            log.info("listening on the network: %s", listening or "no longer")
        return choice

    def _addresses(self) -> list[str]:
        found = [
            (not interface.is_default, address)
            for interface in self._own()
            if not INTERNAL.match(interface.name)
            for address in interface.addresses
            if not ipaddress.ip_address(address).is_global
        ]
        return [address for _, address in sorted(found, key=lambda one: one[0])]

    def _step(self) -> float:
        now = utc_now()
        with database.scope():
            choice = self.follow(now=now)
        if choice is None:
            return 60 * LOOK_EVERY
        left = (choice.until - now).total_seconds() if choice.until else LOOK_EVERY
        return min(left, LOOK_EVERY)


def chosen(*, now: datetime) -> Choice | None:
    """The choice of the owner, if its time is not over. Needs a scope."""
    stored = models.stored_value(CHOICE)
    if stored is None:
        return None
    choice = msgspec.convert(stored, Choice, strict=False)
    return choice if choice.until is None or now < choice.until else None


def choose(wanted: shapes.NetworkChoice, *, now: datetime) -> None:
    """Store what the owner has chosen. Needs a scope."""
    until = iso(now + MINUTES) if wanted == "minutes" else None
    models.store_value(CHOICE, None if wanted == "off" else {"until": until})


def state(network: Network, *, now: datetime) -> shapes.NetworkFields:
    """What is chosen, and until when. Needs a scope."""
    if network.fixed:
        return {"listen": "fixed", "until": None}
    choice = chosen(now=now)
    if choice is None:
        return {"listen": "off", "until": None}
    return {"listen": "minutes" if choice.until else "always", "until": iso(choice.until)}


def seen(listening: str, *, now: datetime) -> str:
    """Where a service that listens on `listening` can be reached. Needs a scope."""
    scheme, port = listening.partition("://")[0], listening.rpartition(":")[2]
    return f"{scheme}://0.0.0.0:{port}" if reach(listening).loopback_only and chosen(now=now) else listening


def current() -> Network | None:
    """The network of the service that answers the request; None where it is not gunicorn on loopback."""
    found: Network | None = flask.current_app.extensions.get(CHOICE)
    return found


# ----------------------------------------------------------------------------------------------------- routes

routes = Blueprint("network", __name__, url_prefix="/api/network")


class Wanted(msgspec.Struct):
    listen: shapes.NetworkChoice


@routes.put("")
@inputs.operation(Conflict, Unavailable)
def change(body: Wanted) -> shapes.NetworkFields:
    """Let devices on the own network connect for ten minutes (`minutes`), for good (`always`), or no longer
    (`off`). Only for a service that listens on loopback because SNAPLORE_BIND is not set; otherwise 409.
    """
    network, now = current(), utc_now()
    if network is None or network.fixed:
        raise Conflict(FIXED)
    choose(body.listen, now=now)
    network.follow(now=now)
    network.loop().wake()
    if body.listen != "off" and not network.listening:
        choose("off", now=now)
        raise Unavailable("This server has no address on a network that it can listen on.", retry_after=60)
    return state(network, now=now)
