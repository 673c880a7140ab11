"""The commands of the keys: of the service, of a device that is paired, and of the data."""

import contextlib
from datetime import UTC, datetime
from pathlib import Path
from typing import get_args
from urllib.parse import quote

import click

import access
import crypto
import database
from clock import utc_now
from jobs import application, command, kept_for, listening, sealed_in_words
from locks import ServiceLock
from settings import MEGABYTE, NAME, START, VERSION, Settings
from terminal.options import Group
from tls import addresses, network
from upkeep import progress, resealing, rotation
from web import shapes

keys = Group("keys", help="Show, rotate and replace the keys of the service and its data.")


@command(keys, name="show-api-key")
@click.option(
    "--hint", "with_hint", is_flag=True, help="Also print the address of the service and how to use the key."
)
def show_api_key(with_hint: bool) -> None:
    """Print the key that clients send as `Authorization: Bearer <key>`."""
    api_key = application().api_key
    if with_hint:
        with database.scope():
            seen = network.seen(listening(), now=utc_now())
        click.echo(hint(seen, api_key, application().settings))
    else:
        click.echo(api_key or "No key is needed: dev mode is on and none is set.")


def hint(listening: str, api_key: str | None, settings: Settings) -> str:
    """What a person needs to use the service that listens on `listening`: addresses, key, two calls."""
    here, reach = addresses.opened_here(listening), addresses.reach(listening)
    everywhere = addresses.best(listening)
    port = listening.rpartition(":")[2]
    alone = (
        "only this machine can connect; let them in under Settings, Devices, or with "
        f"`SNAPLORE_BIND=0.0.0.0:{port} {START}`"
    )
    bearer = f" -H 'Authorization: Bearer {api_key}'" if api_key else ""
    signs_in = f"#key={quote(api_key, safe='')}" if api_key else ""
    # What most people need stands last, where they look after a start. The part behind # is not sent.
    lines = [
        f"{NAME} {VERSION} at {here}",
        f"Keeps:   {kept_for(settings)}",
        f"Upload:  curl{bearer} -F file=@screenshot.png {everywhere}/api/photos/upload",
        f"Find:    curl{bearer} '{everywhere}/api/search?q=invoice'",
        f"Phones:  {', '.join(reach.addresses) or (alone if reach.loopback_only else 'no address found')}",
        f"API key: {api_key or 'none needed (dev mode)'}",
        f"Open:    {here}/{signs_in}",
    ]
    return "\n".join(lines)


@command(name="pair")
@click.option("--name", default="", help="How the device is called in the list of devices.")
@click.option(
    "--scope",
    type=click.Choice(get_args(shapes.Scope)),
    default="full",
    show_default=True,
    help="What the device may do.",
)
@click.option(
    "--address",
    default="",
    help="The address of the service as the device sees it, like http://192.168.1.5:8000.",
)
def pair(name: str, scope: shapes.Scope, address: str) -> None:
    """Show a code and a QR code by which a device gets its own token, once, within five minutes."""
    with database.scope():
        reached = address.rstrip("/") or addresses.best(network.seen(listening(), now=utc_now()))
        begun = access.begin(name, scope, reached, now=utc_now())
    click.echo(access.qr_lines(begun["url"]))
    click.echo(f"Scan it with the device's camera, or open {begun['url']}")
    click.echo(f"Code: {begun['code'][:4]} {begun['code'][4:]} (valid for five minutes, once)")


@command(keys, name="status")
def show_keys() -> None:
    """Show the age of the keys and the files they open. Fails if a file does not open."""
    store, settings, now = database.store(), application().settings, utc_now()
    with progress.bars() as report:
        status = resealing.status(report)
    if store.encrypted:
        made = datetime.fromtimestamp(store.master_key_path.stat().st_mtime, UTC).replace(tzinfo=None)
        click.echo(f"Master key:   {store.master_key_path}, {_age(made, now)}")
        age = _age(store.ring.created_at, now)
        click.echo(f"Database key: generation {store.ring.generation}, {age}, {_rotation(settings, now)}")
    else:
        click.echo("Encryption:   off")
    click.echo(f"Database:     {store.ring.database_file}, {store.database.stat().st_size / MEGABYTE:.1f} MB")
    counts = ", ".join(
        f"{count} of generation {number}" for number, count in sorted(status.generations.items())
    )
    click.echo(f"Files:        {counts or 'none'}")
    click.echo(f"Unreadable:   {len(status.unreadable) or 'none'}")
    for place in status.unreadable:
        click.echo(f"  {place}")
    if status.unreadable:
        raise SystemExit(1)


def _age(made: datetime, now: datetime) -> str:
    return f"{max(0, (now - made).days)} days old"


def _rotation(settings: Settings, now: datetime) -> str:
    return (
        "due for the next `./snaplore jobs rotate-keys`"
        if rotation.is_due(settings, now=now)
        else f"due on {rotation.due_at(settings):%Y-%m-%d}"
    )


@command(keys, name="apply", opens=False)
def apply_encryption() -> None:
    """Encrypt or decrypt all data after a change of SNAPLORE_ENCRYPTION.

    The service must be stopped while the database is rewritten; you can start it again before the pictures
    follow. If a run is interrupted, run it again.
    """
    settings = application().settings
    encrypted = "encrypted" if settings.encryption else "not encrypted"
    with progress.bars() as report:
        if rotation.apply_encryption(settings, report, now=utc_now()):
            click.echo(f"The database is {encrypted} now. The service can be started; the pictures follow.")
        else:
            click.echo(f"The database is {encrypted} already.")
        sealed = resealing.seal_anew(report, only_unlike=True)
    click.echo(sealed_in_words(sealed, "sealed" if settings.encryption else "unsealed"))
    if sealed.unreadable:
        raise SystemExit(1)


@command(keys, name="change-master")
@click.option(
    "--new-key-file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File with the new master key. Without it, a key is generated.",
)
def change_master(new_key_file: Path | None) -> None:
    """Seal the key ring under another master key. The data is not rewritten.

    Snaplore does not write to the file that SNAPLORE_MASTER_KEY_FILE names: stop the service, give the new
    key with --new-key-file, and replace the file afterwards.
    """
    store, settings = database.store(), application().settings
    if not store.encrypted:
        raise click.ClickException("Encryption is off, so there is no master key.")
    key = crypto.read_master_key(new_key_file) if new_key_file else crypto.new_key()
    if settings.master_key_file is None:
        rotation.change_master_key(key)
        click.echo(
            f"The master key {store.master_key_path} was replaced. Backups made before need the old one."
        )
        return
    if new_key_file is None:
        raise click.UsageError(
            "SNAPLORE_MASTER_KEY_FILE names the master key: give the new one with --new-key-file."
        )
    with contextlib.closing(ServiceLock(settings.data_dir)):
        rotation.change_master_key(key)
    click.echo(
        f"The key ring is sealed under the new key. Before the next start, replace "
        f"{settings.master_key_file} with it."
    )
