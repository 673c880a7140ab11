"""An own certificate authority (CA) for a service at home, and the certificates that it issues: made, read
and checked. They are kept by `tls/authority.py`.

No public CA certifies 192.168.1.20 or raspberrypi.local, and browsers allow an installable page, sharing to
it and notifications over https only. So the service is its own CA, which people install on their devices.
What a stolen key of this CA could do is limited by name constraints, which are part of the CA's certificate:
it can certify this machine's names and addresses, names below home.arpa and private networks, no website.

Choices that systems demand: elliptic curve P-256, which all of them accept; 397 days for a server (Apple
allows 825 for a CA that a person has installed, and 398 for public ones); names in the extension for
alternative names only; the purpose of server authentication.
"""

import datetime
import hashlib
import ipaddress
import os
import re
import ssl
from collections.abc import Iterable
from typing import NamedTuple

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from settings import NAME

CA_AGE = datetime.timedelta(days=3_652)
SERVER_AGE = datetime.timedelta(days=397)
EARLY = datetime.timedelta(days=1)  # for devices whose clock is behind
RENEWED_BEFORE = datetime.timedelta(days=30)  # the end
MOST_NAMES = 100  # in a certificate
# Names below it are never on the Internet (RFC 8375); many home routers use it.
HOME = "home.arpa"
# Networks whose addresses mean another machine in each home: private (RFC 1918), loopback, link-local,
# carrier NAT, which VPNs such as Tailscale use, and unique local IPv6 addresses.
PRIVATE = tuple(
    ipaddress.ip_network(network)
    for network in (
        *("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "127.0.0.0/8", "169.254.0.0/16", "100.64.0.0/10"),
        *("::1/128", "fc00::/7", "fe80::/10"),
    )
)
# A host name of a certificate. The expression has no repetition inside of another one.
_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class Issued(NamedTuple):
    """A certificate and its private key, both PEM."""

    certificate: str
    key: str

    def __repr__(self) -> str:
        return "Issued(…)"


class Facts(NamedTuple):
    """What a certificate says. Times are UTC without a zone."""

    begins: datetime.datetime
    ends: datetime.datetime
    names: tuple[str, ...]  # host names and addresses that it is valid for, or that a CA may certify
    fingerprint: str  # SHA-256, in pairs of hexadecimal digits


# ----------------------------------------------------------------------------------------------------- names


def spelled(name: str) -> str:
    """A host name or an address as certificates spell it. Raises `ValueError` when it is neither."""
    name = name.strip().strip("[]").lower().rstrip(".")
    try:
        return str(ipaddress.ip_address(name))
    except ValueError:
        pass
    if len(name) <= 253 and all(_LABEL.fullmatch(label) for label in name.split(".")):
        return name
    raise ValueError(f"{name!r} is neither a host name nor an address")


def is_host(name: str) -> bool:
    """Whether `name`, as `spelled` returns it, is no address."""
    return _address(name) is None


def permitted(name: str, constraints: Iterable[str]) -> bool:
    """Whether a CA with these constraints (`Facts.names`) may certify `name`, as `spelled` returns it."""
    address = _address(name)
    for constraint in constraints:
        network = _network(constraint)
        if address is not None and network is not None:
            if address.version == network.version and address in network:
                return True
        elif address is None and network is None and f".{name}".endswith(f".{constraint}"):
            return True
    return False


# ---------------------------------------------------------------------------------------------- certificates


def make_ca(machine: str, names: Iterable[str], *, now: datetime.datetime) -> Issued:
    """A new CA, which may certify `names` (of `spelled`), what is below them, and private addresses."""
    key = ec.generate_private_key(ec.SECP256R1())
    names = list(dict.fromkeys([*names, HOME]))
    hosts = filter(is_host, names)
    networks = [*PRIVATE, *(ipaddress.ip_network(name) for name in names if not is_host(name))]
    subtrees: list[x509.GeneralName] = [*map(x509.DNSName, hosts), *map(x509.IPAddress, networks)]
    title = f"{NAME} of {machine}"[:64]  # the longest common name
    subject = x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, NAME),
            x509.NameAttribute(NameOID.COMMON_NAME, title),
        ]
    )
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - EARLY)
        .not_valid_after(now - EARLY + CA_AGE)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(certifies=True), critical=True)
        .add_extension(identifier, critical=False)
        .add_extension(x509.NameConstraints(subtrees, None), critical=True)
        .sign(key, hashes.SHA256())
    )
    return _issued(made, key)


def issue(ca: Issued, names: Iterable[str], *, now: datetime.datetime) -> Issued:
    """A new certificate with a new key, for those of `names` that the CA may certify."""
    authority = x509.load_pem_x509_certificate(ca.certificate.encode())
    authority_key = _private_key(ca.key)
    constraints = facts(ca.certificate).names
    allowed = [name for name in dict.fromkeys(names) if permitted(name, constraints)][:MOST_NAMES]
    alternatives = x509.SubjectAlternativeName([_general(name) for name in allowed])
    key = ec.generate_private_key(ec.SECP256R1())
    first = next((name for name in allowed if len(name) <= 64), NAME)
    made = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, first)]))
        .issuer_name(authority.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - EARLY)
        .not_valid_after(min(now - EARLY + SERVER_AGE, _utc(authority.not_valid_after_utc)))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(certifies=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()), critical=False
        )
        .add_extension(alternatives, critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    return _issued(made, key)


def facts(certificate: str) -> Facts:
    """What a certificate of `make_ca` or `issue` says. Raises `ValueError` when it cannot be read."""
    read = x509.load_pem_x509_certificate(certificate.encode())
    named: list[x509.GeneralName] = []
    for extension in read.extensions:
        if isinstance(extension.value, x509.SubjectAlternativeName):
            named += list(extension.value)
        elif isinstance(extension.value, x509.NameConstraints):
            named += extension.value.permitted_subtrees or []
    digest = hashlib.sha256(read.public_bytes(serialization.Encoding.DER)).hexdigest().upper()
    return Facts(
        _utc(read.not_valid_before_utc),
        _utc(read.not_valid_after_utc),
        tuple(str(name.value) for name in named),
        ":".join(digest[start : start + 2] for start in range(0, len(digest), 2)),
    )


def problem(ca: Issued, server: Issued | None = None) -> str:
    """What is wrong with a CA, or a certificate of it, apart from time: half a sentence, or ""."""
    try:
        authority = x509.load_pem_x509_certificate(ca.certificate.encode())
        checked = server or ca
        certificate = x509.load_pem_x509_certificate(checked.certificate.encode())
        if _private_key(checked.key).public_key() != certificate.public_key():
            return "its private key is another one's"
        certificate.verify_directly_issued_by(authority)
        constraints = facts(ca.certificate).names
        foreign = [name for name in facts(checked.certificate).names if not permitted(name, constraints)]
        if server and foreign:
            return f"the CA may not certify {foreign[0]}"
    except InvalidSignature:
        return "the CA did not sign it"
    except (ValueError, TypeError):
        return "it cannot be read"
    return ""


def server_context(ca: Issued, server: Issued) -> ssl.SSLContext:
    """What the server shows to its clients. Raises `ssl.SSLError` when the certificate is damaged."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    # OpenSSL reads certificates from files only. This one is in memory and has no name, so that the key is
    # never on the disk. The CA is sent as well, for clients that pin its fingerprint.
    descriptor = os.memfd_create("certificate", os.MFD_CLOEXEC)
    try:
        os.write(descriptor, f"{server.key}{server.certificate}{ca.certificate}".encode())
        context.load_cert_chain(f"/proc/self/fd/{descriptor}")
    finally:
        os.close(descriptor)
    return context


def _issued(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> Issued:
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return Issued(certificate.public_bytes(serialization.Encoding.PEM).decode(), secret.decode())


def _private_key(pem: str) -> ec.EllipticCurvePrivateKey:
    key = serialization.load_pem_private_key(pem.encode(), None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise ValueError("the key is of another kind")
    return key


def _usage(*, certifies: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not certifies,
        key_cert_sign=certifies,
        crl_sign=certifies,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _general(name: str) -> x509.GeneralName:
    address = _address(name)
    return x509.DNSName(name) if address is None else x509.IPAddress(address)


def _address(name: str) -> Address | None:
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None


def _network(name: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    try:
        return ipaddress.ip_network(name)
    except ValueError:
        return None


def _utc(moment: datetime.datetime) -> datetime.datetime:
    return moment.replace(tzinfo=None)
