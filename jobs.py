"""The command line: commands that a person or cron runs beside the service, as `./snaplore <command>` or
`flask --app app <command>`.

Each command opens its own short database scopes, so that it can run beside a busy service. No command starts
threads or analyses screenshots: the service finds what a command has queued.

Cron and systemd timers run the `jobs`. Each prints one line for the log, with its name, its outcome and its
duration, and no stored content: to stdout on success (exit code 0), to stderr on failure (1). A job never
runs twice at the same time, over all processes.
"""

import contextlib
import functools
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ParamSpec, Protocol, cast, get_args

import click
from flask import current_app
from flask.cli import with_appcontext

import access
import agenda
import crypto
import database
import devices
import memory
import reasoner
from buckets.s3 import Bucket
from clock import utc_now
from curation import retention
from errors import Conflict, SnaploreError, Unavailable
from locks import ServiceLock, named_lock
from settings import MEGABYTE, NAME, S3_ADDRESS, VERSION, Settings
from terminal.service import Login
from tls import addresses, authority, certificates, trust
from upkeep import (
    backup,
    check,
    cleanup,
    clocks,
    importing,
    moving,
    offsite,
    progress,
    restore,
    rotation,
    schedule,
)
from web import shapes

MOST_NAMED = 1_000  # failures of an import that are shown, each with its reason
MOVING_SECONDS = 900.0  # of a clean-up, for moving originals; systemd ends a job after half an hour

Parameters = ParamSpec("Parameters")


class _Application(Protocol):
    """The part of `app.Application` that commands use. `app` imports this module and not the reverse."""

    settings: Settings
    api_key: str | None
    certificate: authority.Presented

    def open_data(self) -> None: ...


def _application() -> _Application:
    return cast(_Application, current_app)


def _listening() -> str:
    """The address that the service listens on, as far as the settings tell."""
    return f"{_application().certificate.scheme}://{_application().settings.bind}"


def own_login() -> Login:
    """The login of this machine's service, with the owner's key. Raises `click.ClickException`."""
    try:
        _application().open_data()
        certificate, key = _application().certificate, _application().api_key
        return Login(addresses.opened_here(_listening()), key or "", certificate.ca or "")
    except Exception as problem:
        known = database.known_failure(problem)
        if known is None:
            raise
        raise click.ClickException(known.detail) from None
    finally:
        database.close_connections()


def command(
    group: click.Group | None = None, *, name: str, opens: bool = True, failing: str = ""
) -> Callable[[Callable[Parameters, None]], click.Command]:
    """Make a function a click command that runs in the application's context. An expected failure is one
    line, `failing` and its sentence, without a traceback.

    The data folder is open during the command, except with `opens=False`, for commands that work on data that
    a start would refuse.
    """

    def wrap(function: Callable[Parameters, None]) -> click.Command:
        @functools.wraps(function)
        def run(*args: Parameters.args, **kwargs: Parameters.kwargs) -> None:
            umask = os.umask(0o077)  # only the owner can read the files that a command creates
            try:
                if opens:
                    _application().open_data()
                function(*args, **kwargs)
            except Exception as problem:
                known = database.known_failure(problem)
                if known is None:
                    raise
                raise click.ClickException(f"{failing}{known.detail}") from None
            finally:
                database.close_connections()
                os.umask(umask)

        return (group.command if group else click.command)(name)(with_appcontext(run))

    return wrap


# ----------------------------------------------------------------------------------------------------- import


def _device_id(_context: click.Context, _parameter: click.Parameter, value: str) -> str:
    if not re.match(devices.DEVICE_ID, value):
        raise click.BadParameter("must be 1 to 256 letters, digits or underscores")
    return value


@command(name="import")
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--device-id",
    default="import",
    show_default=True,
    callback=_device_id,
    help="The id of the device that the screenshots belong to.",
)
@click.option("--device-name", default="", help="The name of that device.")
def import_folder(folder: Path, device_id: str, device_name: str) -> None:
    """Store every screenshot in FOLDER and its subfolders.

    You can stop an import at any time and run it again: it skips screenshots that are stored already, even if
    they were moved or renamed. The time of a screenshot is that of its EXIF data, or else of its file. The
    running service analyses the screenshots. Hidden files and links are skipped.
    """
    counts = {"imported": 0, "already there": 0, "ignored (not a picture)": 0, "failed": 0}
    failures: list[str] = []

    def failed(entry: importing.Entry, problem: Exception) -> None:
        counts["failed"] += 1
        if counts["failed"] <= MOST_NAMED:
            failures.append(f"{entry.shown}: {importing.reason(problem)}")

    own = _application().settings.data_dir
    count = sum(1 for _ in importing.files(folder, leave_out=own))
    found = importing.files(folder, leave_out=own, failed=failed)
    with click.progressbar(found, length=count, label=f"Importing {count} files") as bar:
        for file in bar:
            try:
                counts[importing.import_file(file, device_id, device_name)] += 1
            except (SnaploreError, OSError) as problem:
                failed(file, problem)
    for failure in failures:
        click.echo(failure, err=True)
    if more := counts["failed"] - len(failures):
        click.echo(f"{more} more files failed; import again to see them, once these are solved.", err=True)
    always = ("imported", "already there")
    click.echo(", ".join(f"{count} {what}" for what, count in counts.items() if count or what in always))
    if sys.stdout.isatty():  # elsewhere cron would mail it
        _next_step(folder, count, stored=counts["imported"] + counts["already there"])
    if failures:
        raise SystemExit(1)


def _next_step(folder: Path, files: int, *, stored: int) -> None:
    """Tell a person what to do after an import."""
    settings = _application().settings
    page = addresses.opened_here(_listening())
    if stored:
        click.echo("Next: the running service analyses them. If it is not running, start it (`make run`).")
        click.echo(f"{page} shows the progress; search finds each screenshot once it is analysed.")
        click.echo(f"{NAME} keeps {kept_for(settings)}.")
    elif files:
        click.echo("Next: name a folder with JPEG, PNG, WebP, GIF, HEIC or AVIF pictures.")
    else:
        click.echo(f"{folder} has no files. Next: name the folder that your screenshots are in.")


# ------------------------------------------------------------------------------------------------------- jobs

jobs = click.Group("jobs", help="Regular jobs for cron, beside the service; each prints one line.")


def job(
    name: str, *, removes: bool = False, by_age: bool = False
) -> Callable[[Callable[..., str]], click.Command]:
    """Make a function that returns its outcome a command of `jobs`.

    If another run holds the lock, exit 0 at once: it is already doing this work. A job that
    `removes` something fails while the database and the key ring are not of one time; one that removes
    `by_age` also does nothing while the clock is in doubt.
    """

    def wrap(function: Callable[..., str]) -> click.Command:
        @functools.wraps(function)
        def run(*args: Any, **kwargs: Any) -> None:
            with contextlib.ExitStack() as lock:
                try:
                    lock.enter_context(
                        named_lock(
                            database.store().folder / "jobs", name, 0, busy="Another run is in progress."
                        )
                    )
                except Unavailable:
                    click.echo(f"{name}: another run is in progress")
                    return
                if removes or by_age:
                    _refuse_wrong_age()
                if by_age and (reason := clocks.doubt(name, now=utc_now())):
                    click.echo(f"{name}: skipped, because {reason}")
                    return
                began = time.monotonic()
                outcome = function(*args, **kwargs)
                if by_age and not kwargs.get("dry_run"):
                    clocks.note_done(name, now=utc_now())
                click.echo(f"{name}: {outcome} ({time.monotonic() - began:.1f} s)")

        return command(jobs, name=name, failing=f"{name}: ")(run)

    return wrap


def _refuse_wrong_age() -> None:
    with database.scope():
        problem = database.difference()
    if problem:
        raise Conflict(f"nothing is removed, because {problem}. {database.ADVICE}.")


@job("reason")
@click.option("--device-id", help="Consider only new data of this device.")
def reason(device_id: str | None) -> str:
    """Write notes about new screenshots and chats that deserve one."""
    try:
        saved = reasoner.cycle(_application().settings, device_id=device_id)
    except Unavailable as problem:
        # The service is writing notes itself, or the daily token limit is reached: the next run catches up.
        return problem.detail
    return f"{len(saved)} new notes"


@job("remind")
def remind() -> str:
    """Announce what is due: in the evening what happens the next day, in the morning what happens today."""
    items = agenda.remind(_application().settings, now=utc_now())
    return f"{len(items)} announced"


@job("decay", by_age=True)
def decay() -> str:
    """Delete expired short-term memories, and lower the importance of long-term ones."""
    with database.scope():
        decayed = memory.decay(now=utc_now())
    faded = f"{decayed.decayed} faded by {decayed.days} days" if decayed.decayed else "0 faded"
    return f"{decayed.expired} expired memories deleted, {faded}"


@job("cleanup", by_age=True)
@click.option("--dry-run", is_flag=True, help="Only report what would be deleted.")
@click.option(
    "--many-orphans",
    is_flag=True,
    help="Go on although so many files belong to no row that the database may be an older one.",
)
def clean_up(dry_run: bool, many_orphans: bool) -> str:
    """Delete what is older than the retention period, what has expired, what was in the trash for 30 days,
    and orphaned files; move one-time codes to the trash if that is set. Then write a note about what will be
    deleted within a week.
    """
    settings = _application().settings
    with progress.bars() as report:
        cleaned = cleanup.clean(
            settings, now=utc_now(), dry_run=dry_run, many_orphans=many_orphans, progress=report
        )
    if not dry_run:
        with database.scope():
            retention.warn(settings, now=utc_now())
    elsewhere = "" if dry_run else _moved(settings)
    kept = f"; {cleaned.kept} older photos are kept" if cleaned.kept else ""
    if cleaned.codes:
        kept += f"; {cleaned.codes} one-time codes {'would go' if dry_run else 'went'} to the trash"
    if cleaned.aside:
        kept += f"; {cleaned.aside} files without a row {'would be' if dry_run else 'were'} set aside"
    if cleaned.back:
        kept += f"; {cleaned.back} that were set aside {'would come' if dry_run else 'came'} back"
    return (
        f"{cleaned.photos} photos, {cleaned.trash} from the trash, {cleaned.conversations} conversations, "
        f"{cleaned.dynamics} notes, {cleaned.memories} memories, {cleaned.orphans} orphaned files, "
        f"{cleaned.bytes / MEGABYTE:.1f} MB {'would be ' if dry_run else ''}freed{kept}{elsewhere}"
    )


def _moved(settings: Settings) -> str:
    """Move originals as a part of another job, whose outcome does not depend on the bucket."""
    try:
        with progress.bars() as report:
            moved = moving.move(settings, report, now=utc_now(), seconds=MOVING_SECONDS)
    except SnaploreError as problem:
        return f"; originals stay here: {problem.detail}"
    return f"; {_shown_move(moved, 'moved to')}" if moved is not None else ""


def _shown_move(moved: moving.Moved, verb: str) -> str:
    left = f", {moved.left} could not be read and stay" if moved.left else ""
    return (
        f"{moved.done} originals ({moved.bytes / MEGABYTE:.1f} MB) {verb} the bucket{left}, "
        f"{moved.deleted} deleted there"
    )


@job("move-originals", removes=True)
@click.option("--back", is_flag=True, help="Bring all originals back instead, as far as the disk has room.")
def move_originals(back: bool) -> str:
    """Move the originals of older pictures to the bucket of SNAPLORE_ORIGINALS now; clean-up does so every
    night.
    """
    settings = _application().settings
    with progress.bars() as report:
        if back:
            moved = moving.bring_back(settings, report)
        else:
            moved = moving.move(settings, report, now=utc_now())
    if moved is None:
        return "SNAPLORE_ORIGINALS names no bucket"
    return _shown_move(moved, "brought back from" if back else "moved to")


@job("rotate-keys")
@click.option("--force", is_flag=True, help="Rotate even if the key is not old enough.")
@click.option(
    "--pictures",
    is_flag=True,
    help="Also seal every file of an earlier generation under a new key. This takes a while.",
)
def rotate_keys(force: bool, pictures: bool) -> str:
    """Give the database a new key if the present one has reached its age; the service runs on. Renew the
    certificate of `tls init` if it is due.
    """
    outcomes = _certificate_kept()
    if not database.store().encrypted:
        return ", ".join(["encryption is off, so there is no key to rotate", *outcomes])
    with progress.bars() as report:
        if force or rotation.is_due(_application().settings, now=utc_now()):
            began = time.monotonic()
            rotation.rotate(report, now=utc_now())
            outcomes.append(f"the database has a new key, after {time.monotonic() - began:.2f} s")
        else:
            outcomes.append(f"the database key is due on {rotation.due_at(_application().settings):%Y-%m-%d}")
        if pictures:
            outcomes.append(_sealed(rotation.seal_anew(report), "resealed"))
    return ", ".join(outcomes)


@command(jobs, name="schedule", opens=False)
def keep_schedule() -> None:
    """Run all jobs at the times of the file `crontab`, where there is neither cron nor systemd."""
    stopping = threading.Event()
    for ending in (signal.SIGTERM, signal.SIGINT):
        signal.signal(ending, lambda _number, _frame: stopping.set())
    schedule.keep(
        stopping, failed=lambda job, code: click.echo(f"{job}: failed with exit code {code}", err=True)
    )


def _certificate_kept() -> list[str]:
    with database.scope():
        if authority.stored() is None:
            return []
        renewed = authority.renew(now=utc_now())
    return ["the certificate was renewed"] if renewed else []


def _sealed(sealed: rotation.SealedAnew, verb: str) -> str:
    left = f", {sealed.unreadable} could not be read and are unchanged" if sealed.unreadable else ""
    return f"{sealed.done} pictures and attachments {verb}{left}"


# ------------------------------------------------------------------------------------------------------- keys

keys = click.Group("keys", help="Show, rotate and replace the keys of the service and its data.")


@command(keys, name="show-api-key")
@click.option(
    "--hint", "with_hint", is_flag=True, help="Also print the address of the service and how to use the key."
)
def show_api_key(with_hint: bool) -> None:
    """Print the key that clients send as `Authorization: Bearer <key>`."""
    api_key = _application().api_key
    if with_hint:
        click.echo(hint(_listening(), api_key, _application().settings))
    else:
        click.echo(api_key or "No key is needed: dev mode is on and none is set.")


def hint(listening: str, api_key: str | None, settings: Settings) -> str:
    """What a person needs to use the service: addresses, key, two calls, and how long it keeps data.
    `listening` is the address that it listens on.
    """
    here, reach = addresses.opened_here(listening), addresses.reach(listening)
    everywhere = addresses.best(listening)
    port = listening.rpartition(":")[2]
    alone = f"only this machine can connect; let them in with `SNAPLORE_BIND=0.0.0.0:{port} make run`"
    bearer = f" -H 'Authorization: Bearer {api_key}'" if api_key else ""
    lines = [
        f"{NAME} {VERSION} at {here}",
        f"Phones:  {', '.join(reach.addresses) or (alone if reach.loopback_only else 'no address found')}",
        f"API key: {api_key or 'none needed (dev mode)'}",
        f"Upload:  curl{bearer} -F file=@screenshot.png {everywhere}/api/photos/upload",
        f"Find:    curl{bearer} '{everywhere}/api/search?q=invoice'",
        f"Keeps:   {kept_for(settings)}",
    ]
    return "\n".join(lines)


def kept_for(settings: Settings) -> str:
    """How long the service keeps what it gets, and where to change that. Opens its own scope."""
    with database.scope():
        days = retention.days(settings)
    kept = f"everything for {days} days, then deletes it" if days else "everything until you delete it"
    return f"{kept}; change it on the page (Settings, Storage) or with SNAPLORE_RETENTION_DAYS"


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
        reached = address.rstrip("/") or addresses.best(_listening())
        begun = access.begin(name, scope, reached, now=utc_now())
    click.echo(access.qr_lines(begun["url"]))
    click.echo(f"Scan it with the device's camera, or open {begun['url']}")
    click.echo(f"Code: {begun['code'][:4]} {begun['code'][4:]} (valid for five minutes, once)")


# -------------------------------------------------------------------------------------------------------- tls

tls = click.Group("tls", help="Serve https at home, with a certificate authority (CA) of its own.")


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
    _application().certificate.load()
    page = addresses.best(_listening()) + trust.PATHS["ca"]
    click.echo(f"Next: open {page} on each device, and install the CA as it says.")
    if addresses.reach(_listening()).loopback_only:
        click.echo("Only this machine can connect now. Set SNAPLORE_BIND=0.0.0.0:8000 to let devices in.")
    click.echo("Programs that send screenshots to http:// need the new address: connect them again.")
    if _application().settings.tls == "off":
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


@command(keys, name="status")
def show_keys() -> None:
    """Show the age of the keys and the files they open. Fails if a file does not open."""
    store, settings, now = database.store(), _application().settings, utc_now()
    with progress.bars() as report:
        status = rotation.status(report)
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
    settings = _application().settings
    encrypted = "encrypted" if settings.encryption else "not encrypted"
    with progress.bars() as report:
        if rotation.apply_encryption(settings, report, now=utc_now()):
            click.echo(f"The database is {encrypted} now. The service can be started; the pictures follow.")
        else:
            click.echo(f"The database is {encrypted} already.")
        sealed = rotation.seal_anew(report, only_unlike=True)
    click.echo(_sealed(sealed, "sealed" if settings.encryption else "unsealed"))
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
    store, settings = database.store(), _application().settings
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


@click.command("version")
def show_version() -> None:
    """Print the version of the service."""
    click.echo(f"{NAME} {VERSION}")


# ------------------------------------------------------------------------------------------------------ check


@command(name="check", opens=False)
@click.option(
    "--repair",
    is_flag=True,
    help="Recreate what can be derived (thumbnails, search index, counts), accept the age of the data, and "
    "set aside files without a row.",
)
@click.option(
    "--forget-lost",
    is_flag=True,
    help="With --repair: delete photos and attachments whose files are lost.",
)
def check_data(repair: bool, forget_lost: bool) -> None:
    """Verify everything stored, while the service runs, and print one line per kind.

    The exit code is 0 if everything is correct or repaired, and 1 if a problem is left.
    """
    if forget_lost and not repair:
        raise click.UsageError("--forget-lost needs --repair.")
    left = 0
    with progress.bars() as report:
        for kind in check.check(
            _application().settings, check.Orders(utc_now(), repair, forget_lost, report)
        ):
            left += kind.wrong - kind.repaired if repair else kind.wrong
            click.echo(kind)
    if left:
        raise SystemExit(1)


# ----------------------------------------------------------------------------------------- backup and restore


def _bucket_address(_context: click.Context, _parameter: click.Parameter, value: str | None) -> str | None:
    if value is not None and not re.fullmatch(S3_ADDRESS, value):
        raise click.BadParameter("must be an address like s3://bucket/prefix")
    return value


def _keep_option(flag: str, unit: str) -> Callable[..., Any]:
    return click.option(
        flag,
        type=click.IntRange(0, 1_000),
        default=0,
        help=f"With --to: keep the last backup of each of so many {unit}, and delete those that no --keep "
        "option names. 0: keep all.",
    )


@command(name="backup")
@click.argument("file", required=False, type=click.Path(dir_okay=False, path_type=Path))
@click.option("--to", "address", callback=_bucket_address, help="Instead of FILE: s3://bucket/prefix.")
@_keep_option("--keep-daily", "days")
@_keep_option("--keep-monthly", "months")
@click.option("--force", is_flag=True, help="Replace FILE if it exists.")
@click.option(
    "--with-master-key",
    is_flag=True,
    help="Include the master key: whoever has FILE can read everything.",
)
def back_up(
    file: Path | None,
    address: str | None,
    keep_daily: int,
    keep_monthly: int,
    force: bool,
    with_master_key: bool,
) -> None:
    """Write everything to FILE, as it is at one moment, while the service runs; or to a bucket of an
    S3-compatible store, which gets only what it does not have yet.

    The master key is left out: keep a copy of it elsewhere, because the backup cannot be read without it.
    """
    if (file is None) == (address is None):
        raise click.UsageError("Give FILE or --to.")
    if address is not None and (force or with_master_key):
        raise click.UsageError("--force and --with-master-key are for FILE.")
    if file is not None:
        if keep_daily or keep_monthly:
            raise click.UsageError("--keep-daily and --keep-monthly are for --to.")
        _back_up_to_file(file, force=force, with_master_key=with_master_key)
    elif address is not None:
        _back_up_to_bucket(address, offsite.Keep(keep_daily, keep_monthly))


def _back_up_to_file(file: Path, *, force: bool, with_master_key: bool) -> None:
    with progress.bars() as report:
        made = backup.make(
            file.absolute(), report, now=utc_now(), force=force, with_master_key=with_master_key
        )
    click.echo(
        f"backup: {made.head.photos} photos, {made.head.files} files, {made.size / MEGABYTE:.1f} MB in {file}"
    )
    if not made.head.encrypted:
        click.echo("Encryption is off: whoever has the file can read everything.", err=True)
    elif with_master_key:
        click.echo("The file includes the master key: whoever has it can read everything.", err=True)
    _name_unreadable(made.unreadable, _LEFT_OUT)


def _back_up_to_bucket(address: str, keep: offsite.Keep) -> None:
    bucket = Bucket(address, _application().settings)
    with database.scope():
        is_of_one_time = not database.difference()
    with contextlib.closing(bucket), progress.bars() as report:
        made = offsite.make(bucket, report, now=utc_now(), keep=keep if is_of_one_time else offsite.Keep())
    pruned = f"; {made.pruned} earlier backups deleted" if made.pruned else ""
    click.echo(
        f"backup: {made.head.photos} photos, {made.head.files} files, {made.sent} of them new, in {address} "
        f"as {made.name}{pruned}"
    )
    _name_unreadable(made.unreadable, _LEFT_OUT)


_LEFT_OUT = "are lost or damaged and were left out; `./snaplore check` lists them."


@command(opens=False, name="restore")
@click.argument("file", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--from", "address", callback=_bucket_address, help="Instead of FILE: s3://bucket/prefix.")
@click.option("--at", "name", help="With --from: the name of a backup there. Without it, the newest.")
@click.option("--list", "only_list", is_flag=True, help="With --from: only list the backups there.")
@click.option(
    "--master-key-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The master key of the data to restore.",
)
@click.option("--undo", is_flag=True, help="Bring back the data that the last restore replaced.")
@click.option("--discard-previous", is_flag=True, help="Delete the data that was kept aside.")
def bring_back(
    file: Path | None,
    address: str | None,
    name: str | None,
    only_list: bool,
    master_key_file: Path | None,
    undo: bool,
    discard_previous: bool,
) -> None:
    """Replace all data with the backup FILE, or one in a bucket, which is verified first. The service must be
    stopped.

    The previous data is kept aside until it is discarded. The master key is this machine's, or else the
    backup's; --master-key-file names another one.
    """
    if [file is not None, address is not None, undo, discard_previous].count(True) != 1:
        raise click.UsageError("Give FILE, --from, --undo or --discard-previous.")
    if (name is not None or only_list) and address is None:
        raise click.UsageError("--at and --list are for --from.")
    settings = _application().settings
    if discard_previous:
        click.echo(f"restore: {restore.discard_previous(settings) / MEGABYTE:.1f} MB freed")
        return
    with contextlib.ExitStack() as opened:
        source: Path | restore.Snapshot | None = file
        if address is not None:
            bucket = opened.enter_context(contextlib.closing(Bucket(address, settings)))
            if only_list:
                click.echo("\n".join(offsite.snapshots(bucket)) or "There is no backup.")
                return
            source = restore.Snapshot(bucket, offsite.chosen(bucket, name))
        _restore(settings, source, master_key_file)


def _restore(
    settings: Settings, source: Path | restore.Snapshot | None, master_key_file: Path | None
) -> None:
    if source is None:
        restored = restore.undo(settings, now=utc_now(), master_key_file=master_key_file)
        click.echo(f"restore: {restored.photos} photos brought back")
    else:
        with progress.bars() as report:
            restored = restore.restore(
                settings, source, report, now=utc_now(), master_key_file=master_key_file
            )
        click.echo(
            f"restore: {restored.photos} photos, as they were at {restored.made_at:%Y-%m-%d %H:%M} UTC"
        )
    if restored.aside is not None:
        click.echo(f"The previous data is in {restored.aside}.")
        click.echo(
            "`./snaplore restore --undo` brings it back; `./snaplore restore --discard-previous` deletes it."
        )
    _name_unreadable(restored.unreadable, "were already lost or damaged when the backup was made.")


def _name_unreadable(paths: list[str], what: str) -> None:
    if paths:
        click.echo(f"{len(paths)} files {what} The first: {', '.join(paths[:3])}", err=True)


COMMANDS = (import_folder, jobs, keys, tls, pair, back_up, bring_back, check_data, show_version)
