"""The commands of https at home: `./snaplore tls <name>`."""

import click

import database
from clock import utc_now
from jobs import application, command, listening
from terminal.options import Group
from tls import addresses, authority, certificates, trust

tls = Group("tls", help="Serve https at home, with a certificate authority (CA) of its own.")


@command(tls, name="init")
@click.option(
    "--name",
    "names",
    multiple=True,
    help="Another host name or address of the service, beside this machine's own. Repeatable.",
)
@click.option("--anew", is_flag=True, help="Make another CA, which every device has to install again.")
def begin_tls(names: tuple[str, ...], anew: bool) -> None:
    """Make a CA and a certificate. The running service serves https within half a minute.

    The CA can certify nothing but this machine's names, names below home.arpa, the names that you add, and
    addresses of private networks.
    """
    with database.scope():
        made = authority.init(names, now=utc_now(), anew=anew)
    _show_certificate(made)
    application().certificate.load()
    page = addresses.best(listening()) + trust.PATHS["ca"]
    click.echo(f"Next: open {page} on each device, and install the CA as it says.")
    if addresses.reach(listening()).loopback_only:
        port = listening().rpartition(":")[2]
        click.echo(f"Only this machine can connect now. Set SNAPLORE_BIND=0.0.0.0:{port} to let devices in.")
    click.echo("Programs that send screenshots to http:// need the new address: connect them again.")
    if application().settings.tls == "off":
        click.echo("SNAPLORE_TLS is off, so the service goes on with plain http.", err=True)


@command(tls, name="status")
def show_tls() -> None:
    """Show the fingerprint of the CA, and what the certificate is valid for."""
    with database.scope():
        present = authority.stored()
    if present is None:
        click.echo("There is no certificate: `./snaplore tls init` makes one.")
        return
    _show_certificate(present)
    if left_out := authority.uncertified(present):
        click.echo(f"Left out:    {', '.join(left_out)} (the CA may not certify these)")


@command(tls, name="renew")
def renew_tls() -> None:
    """Renew the certificate now. The service does so by itself, 30 days before the end."""
    with database.scope():
        renewed = authority.renew(now=utc_now(), forced=True)
    if renewed is not None:
        _show_certificate(renewed)


def _show_certificate(present: authority.Stored) -> None:
    ca, server = (
        certificates.facts(present.ca.certificate),
        certificates.facts(present.server.certificate),
    )
    click.echo(f"CA:          valid until {ca.ends:%Y-%m-%d}, SHA-256 fingerprint")
    click.echo(f"             {ca.fingerprint}")
    click.echo(f"Certificate: valid until {server.ends:%Y-%m-%d}, for {', '.join(server.names)}")
