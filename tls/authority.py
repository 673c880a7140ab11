"""The service's own certificate authority (CA) and certificate: made once by `./snaplore tls init`, renewed
by itself, and shown to clients by the running service.

Both keys are stored in the database. So they are encrypted on the disk as everything else is, a backup
contains them, and after a restore on another machine the devices that trust the CA go on to do so. No file
in the data folder holds them.

The running service looks for a new certificate every half minute, in each of its processes, and shows it to
new connections; those that are open go on with the old one, so no request is lost. It also renews: 30 days
before the end, and when the machine has a name or an address that the certificate lacks. A name or an address
that is gone stays in it until then, so that a network interface that comes and goes causes nothing.
"""

import logging
import ssl
from collections.abc import Iterable
from datetime import datetime

import msgspec

import database
from database import db
from errors import BadInput, Conflict, DataDamaged, NotFound
from models import store_value, stored_value
from settings import Settings
from tls import addresses, certificates
from tls.certificates import Issued
from web import shapes

log = logging.getLogger(__name__)

STORED = "tls"
EVERY = 30.0  # seconds
EARLIEST = 2025  # a Pi without a network may believe that it is 1970


class Stored(msgspec.Struct, frozen=True):
    """What is stored: the CA, the names that a person has added, and the certificate."""

    ca: Issued
    names: list[str]
    server: Issued

    def __repr__(self) -> str:
        return f"Stored(names={self.names!r})"


def init(names: Iterable[str], *, now: datetime, anew: bool = False) -> Stored:
    """Make the CA and the first certificate. `names` are host names and addresses beside the machine's own.

    Needs a scope. Raises `Conflict` when there is a CA, except with `anew`, and `BadInput`.
    """
    if now.year < EARLIEST:
        raise BadInput(f"The clock of this machine is wrong: it says {now:%Y-%m-%d}. Set it first.")
    try:
        chosen = list(dict.fromkeys(map(certificates.spelled, names)))
    except ValueError as problem:
        raise BadInput(f"name: {problem}") from None
    with db.atomic():
        if not anew and stored() is not None:
            raise Conflict(
                "There is a certificate authority already. A new one has to be installed on every device "
                "again; `--anew` makes it."
            )
        ca = certificates.make_ca(addresses.machine(), [*own_names(), *chosen], now=now)
        return _store(ca, chosen, now)


def renew(*, now: datetime, forced: bool = False) -> Stored | None:
    """Renew the certificate if it is due or `forced`. Returns the new one. Needs a scope.

    Raises `NotFound` when there is no CA, and `Conflict` when it has expired or the clock is wrong.
    """
    with db.atomic():
        present = stored()
        if present is None:
            raise NotFound("There is no certificate. Make one with `./snaplore tls init`.")
        ca = certificates.facts(present.ca.certificate)
        if forced and not ca.begins <= now < ca.ends:
            raise Conflict(
                f"The CA is valid from {ca.begins:%Y-%m-%d} to {ca.ends:%Y-%m-%d}; today is {now:%Y-%m-%d}. "
                "If the clock is right, make another one with `./snaplore tls init --anew`."
            )
        if forced or _is_due(present, now):
            return _store(present.ca, present.names, now)
    return None


def stored() -> Stored | None:
    """What is stored, or None. Needs a scope. Raises `DataDamaged`."""
    value = stored_value(STORED)
    try:
        return None if value is None else msgspec.convert(value, Stored)
    except msgspec.ValidationError:
        raise DataDamaged(
            "The stored certificate cannot be read. `./snaplore tls init --anew` makes another one."
        ) from None


def own_names() -> list[str]:
    """The names and the addresses of this machine."""
    return [*addresses.names(), *addresses.own_addresses()]


def uncertified(present: Stored) -> list[str]:
    """The names and addresses of this machine that the CA may not certify."""
    allowed = certificates.facts(present.ca.certificate).names
    return [name for name in own_names() if not certificates.permitted(name, allowed)]


def problems(*, now: datetime) -> list[str]:
    """What is wrong with the stored CA and certificate, for the integrity check. Needs a scope."""
    try:
        present = stored()
    except DataDamaged:
        return ["cannot be read"]
    if present is None:
        return []
    if wrong := certificates.problem(present.ca):
        return [f"CA: {wrong}"]
    found = [f"certificate: {wrong}"] if (wrong := certificates.problem(present.ca, present.server)) else []
    if certificates.facts(present.ca.certificate).ends <= now:
        found.append("CA: it has expired")
    elif not found and certificates.facts(present.server.certificate).ends <= now:
        found.append("certificate: it has expired")
    return found


class Presented:
    """What this process shows to its clients. One thread refreshes it, and any thread reads it."""

    def __init__(self, settings: Settings):
        self._is_off = settings.tls == "off"
        self._stored: Stored | None = None
        self.context: ssl.SSLContext | None = None

    @property
    def scheme(self) -> str:
        return "http" if self.context is None else "https"

    @property
    def ca(self) -> str | None:
        """The certificate of the CA, PEM."""
        return self._stored.ca.certificate if self._stored else None

    def fields(self) -> shapes.CertificateFields | None:
        present = self._stored
        if present is None:
            return None
        ca, server = (
            certificates.facts(present.ca.certificate),
            certificates.facts(present.server.certificate),
        )
        found = {
            "fingerprint": server.fingerprint,
            "expires_at": server.ends,
            "names": list(server.names),
            "ca_fingerprint": ca.fingerprint,
            "ca_expires_at": ca.ends,
        }
        return shapes.of(found, shapes.CertificateFields)

    def load(self) -> None:
        """Take what is stored. Opens a scope. What cannot be read replaces nothing."""
        if self._is_off:
            return
        with database.scope():
            try:
                present = stored()
                if present is not None and present != self._stored:
                    self.context = certificates.server_context(present.ca, present.server)
            except (DataDamaged, OSError, ValueError):  # ssl.SSLError is an OSError
                log.error("the certificate cannot be read: `./snaplore check` says more")
                return
        self._stored = present

    def keep(self, *, now: datetime) -> float:
        """Renew what is stored if it is due, and take it. Returns the seconds until the next call."""
        self.load()
        if self._stored is not None and _is_due(self._stored, now):
            with database.scope():
                is_renewed = renew(now=now) is not None
            if is_renewed:  # and not by another process
                log.info("the certificate was renewed")
            self.load()
        return EVERY


def _store(ca: Issued, names: list[str], now: datetime) -> Stored:
    made = Stored(ca, names, certificates.issue(ca, [*own_names(), *names], now=now))
    store_value(STORED, msgspec.to_builtins(made))
    return made


def _is_due(present: Stored, now: datetime) -> bool:
    facts, ca = (
        certificates.facts(present.server.certificate),
        certificates.facts(present.ca.certificate),
    )
    if not ca.begins <= now < ca.ends:  # the clock is wrong, or a new CA is needed
        return False
    if now < facts.begins:  # made while the clock was ahead
        return True
    if now >= facts.ends - certificates.RENEWED_BEFORE and facts.ends < ca.ends:
        return True
    certifiable = [name for name in own_names() if certificates.permitted(name, ca.names)]
    return len(facts.names) < certificates.MOST_NAMES and not set(certifiable) <= set(facts.names)
