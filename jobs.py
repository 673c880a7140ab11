"""The command line: what a person or cron runs beside the service, as `./snaplore <command>` or `flask --app
app <command>`.

Each command opens its own database scopes, short ones, so that it works beside a busy service. Nothing here
starts threads or analyses anything: the service finds what a command has queued.

What cron runs are the `jobs`: each prints one line for the log, with its name, its outcome and how long it
took, and nothing of what is stored: on stdout when it went well (exit code 0), on stderr when it failed (1).
One run of a job at a time, over all processes.
"""

import contextlib
import functools
import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click
from flask import current_app
from flask.cli import with_appcontext

import crypto
import database
import devices
import dynamics
import memory
import models
import photos
import pictures
from clock import iso, utc_now
from errors import SnaploreError, Unavailable
from locks import ServiceLock, named_lock
from settings import MEGABYTE, NAME, VERSION, Settings
from spool import Spool
from upkeep import backup, check, cleanup, restore, rotation
from upkeep.progress import Progress, silent

BLOCK = 262_144  # bytes
LONGEST_ABSENCE = timedelta(days=7)  # of the daily jobs, until the clock is doubted


def command(group: click.Group | None = None, *, opens: bool = True, failing: str = "", **options):
    """A click command in the application's context whose failures are one line, not a trace; `failing` is put
    before the sentence.

    The data folder is open in it, except with `opens=False`, for commands that work on data that a start
    would refuse.
    """

    def wrap(function):
        @functools.wraps(function)
        def run(*args, **kwargs):
            os.umask(0o077)  # as the service does: only the owner may read the files of the data folder
            try:
                if opens:
                    current_app.open_data()
                return function(*args, **kwargs)
            except Exception as problem:
                known = database.known_failure(problem)
                if known is None:
                    raise
                raise click.ClickException(f"{failing}{known.detail}") from None
            finally:
                database.close_connections()

        return (group.command if group else click.command)(**options)(with_appcontext(run))

    return wrap


# ----------------------------------------------------------------------------------------------------- import


def _device_id(_context, _parameter, value: str) -> str:
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
    help="The device that the screenshots are filed under.",
)
@click.option("--device-name", default="", help="Its name.")
def import_folder(folder: Path, device_id: str, device_name: str):
    """Store every screenshot in FOLDER and below it.

    Can be stopped at any time and called again: what is stored already is skipped, also when it was moved or
    renamed. The time of a screenshot is that of its EXIF data, else of its file. The running service analyses
    them.
    """
    counts = {"imported": 0, "already there": 0, "ignored (not a picture)": 0, "failed": 0}
    files = list(_regular_files(folder, leave_out=current_app.settings.data_dir))
    failures = []
    with click.progressbar(files, label=f"Importing {len(files)} files") as bar:
        for path in bar:
            try:
                counts[_import_file(path, device_id, device_name)] += 1
            except (SnaploreError, OSError) as problem:
                counts["failed"] += 1
                failures.append(f"{path}: {problem}")
    for failure in failures:
        click.echo(failure, err=True)
    always = ("imported", "already there")
    click.echo(", ".join(f"{count} {what}" for what, count in counts.items() if count or what in always))
    if counts["imported"] and sys.stdout.isatty():  # without a terminal cron would mail it
        click.echo("Next: the running service analyses them. If it is not running, start it (`make run`).")
        click.echo(
            f"http://{current_app.settings.bind} shows how far it is; search there finds each screenshot once it is analysed."
        )
    if failures:
        raise SystemExit(1)


def _regular_files(folder: Path, *, leave_out: Path) -> Iterator[Path]:
    """In a stable order, without hidden ones, links, and the service's own data."""
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(
            name
            for name in folders
            if not name.startswith(".") and Path(parent, name).resolve() != leave_out.resolve()
        )
        for name in sorted(names):
            path = Path(parent, name)
            if not name.startswith(".") and path.is_file() and not path.is_symlink():
                yield path


def _import_file(path: Path, device_id: str, device_name: str) -> str:
    """Store one file; returns the word that the summary counts it under."""
    with path.open("rb") as file:
        if not pictures.recognised(file):
            return "ignored (not a picture)"
        taken = pictures.taken_at(file) or datetime.fromtimestamp(path.stat().st_mtime, UTC).replace(
            tzinfo=None
        )
        file.seek(0)
        spool = Spool(photos.MAX_FILE)
        try:
            while block := file.read(BLOCK):
                spool.write(block)
            # The bytes name the file, so that the next run knows it again wherever it lies.
            upload = photos.Upload(
                device_id, path.name, taken, device_name, local_media_store_id=f"sha256:{spool.sha256.hex()}"
            )
            with database.scope():
                kept = photos.store(spool, upload, now=utc_now())
        finally:
            spool.close()
    return "already there" if kept.dedup else "imported"


# ------------------------------------------------------------------------------------------------------- jobs

jobs = click.Group("jobs", help="What cron runs beside the service: each says one line.")


def job(name: str, *, by_age: bool = False):
    """A command of `jobs` whose function returns its line.

    A run that finds another one under way leaves at once, and well: that one does what this one would have done. One that acts
    `by_age` does nothing when the clock has jumped.
    """

    def wrap(function: Callable[..., str]):
        @functools.wraps(function)
        def run(*args, **kwargs):
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
                if by_age and _clock_jumped(name, now=utc_now()):
                    days = LONGEST_ABSENCE.days
                    click.echo(
                        f"{name}: more than {days} days have passed at once; if the clock is right, the next run makes up for it"
                    )
                    return
                began = time.monotonic()
                outcome = function(*args, **kwargs)
                click.echo(f"{name}: {outcome} ({time.monotonic() - began:.1f} s)")

        return command(jobs, name=name, failing=f"{name}: ")(run)

    return wrap


def _clock_jumped(name: str, *, now: datetime) -> bool:
    """Whether the clock is further on than `LONGEST_ABSENCE` after the last run of this job; notes that there
    was one.

    A Pi has no clock of its own, and one that starts years ahead would delete, or let fade, all there is. By
    the next run the network has set it right, or the machine really was off for so long.
    """
    mark = f"jobs.{name}.ran_at"
    with database.scope():
        last = models.stored_value(mark)
        models.store_value(mark, iso(now))
    return last is not None and now - datetime.fromisoformat(last) > LONGEST_ABSENCE


@job("reason")
@click.option("--device-id", help="Look only at what is new of this device.")
def reason(device_id: str | None) -> str:
    """Look at what is new, and write notes of what is worth it."""
    try:
        saved = dynamics.cycle(current_app.settings, device_id=device_id)
    except (
        Unavailable
    ) as problem:  # the service is at it, or the day's tokens are used up: the next hour makes up for it
        return problem.detail
    return f"{len(saved)} new notes"


@job("decay", by_age=True)
def decay() -> str:
    """Delete expired short-term memories, and let long-term ones fade by a day."""
    with database.scope():
        decayed = memory.decay(now=utc_now())
    faded = f"{decayed.decayed} faded by {decayed.days} days" if decayed.decayed else "0 faded"
    return f"{decayed.expired} expired memories deleted, {faded}"


@job("cleanup", by_age=True)
@click.option("--dry-run", is_flag=True, help="Only say what would be removed.")
def clean_up(dry_run: bool) -> str:
    """Remove what is older than the retention period, what has expired, and files that belong to nothing."""
    with _bars() as progress:
        cleaned = cleanup.clean(current_app.settings, now=utc_now(), dry_run=dry_run, progress=progress)
    return (
        f"{cleaned.photos} photos, {cleaned.conversations} conversations, {cleaned.dynamics} notes, {cleaned.memories} memories, "
        f"{cleaned.orphans} orphaned files, {cleaned.bytes / MEGABYTE:.1f} MB {'would be ' if dry_run else ''}freed"
    )


@job("rotate-keys")
@click.option("--force", is_flag=True, help="Also when the key is not old enough yet.")
@click.option(
    "--pictures",
    is_flag=True,
    help="Seal every file of an earlier generation under a new key as well. Takes a while.",
)
def rotate_keys(force: bool, pictures: bool) -> str:
    """Put the database under a new key when the present one has reached its age. Requests wait meanwhile."""
    if not database.store().encrypted:
        return "encryption is off, so there is no key to turn"
    said = []
    with _bars() as progress:
        if force or rotation.is_due(current_app.settings, now=utc_now()):
            began = time.monotonic()
            rotation.rotate(progress, now=utc_now())
            said.append(f"the database has a new key, after {time.monotonic() - began:.2f} s")
        else:
            said.append(f"the database key is to turn on {rotation.due_at(current_app.settings):%Y-%m-%d}")
        if pictures:
            said.append(_sealed(rotation.seal_anew(progress), "sealed anew"))
    return ", ".join(said)


def _sealed(sealed: rotation.SealedAnew, what_was_done: str) -> str:
    left = f", {sealed.unreadable} could not be read and stay as they are" if sealed.unreadable else ""
    return f"{sealed.done} pictures and attachments {what_was_done}{left}"


@contextlib.contextmanager
def _bars() -> Iterator[Progress]:
    """A bar for each stage on a terminal; elsewhere none, because it would be mailed."""
    if not sys.stdout.isatty():
        yield silent
        return
    with contextlib.ExitStack() as shown:
        bar = None

        def progress(stage: str, done: int, total: int) -> None:
            nonlocal bar
            if bar is None or bar.label != stage:
                shown.close()
                bar = shown.enter_context(click.progressbar(length=total, label=stage))
            bar.update(done - bar.pos)
            if done >= total:  # what is said next gets a line of its own
                shown.close()
                bar = None

        yield progress


# ------------------------------------------------------------------------------------------------------- keys

keys = click.Group("keys", help="The keys of the service and of its data.")


@command(keys, name="show-api-key")
@click.option(
    "--hint", "with_hint", is_flag=True, help="Also say where the service is and how to use the key."
)
def show_api_key(with_hint: bool):
    """Print the key that clients send as `Authorization: Bearer <key>`."""
    api_key = current_app.api_key
    if with_hint:
        click.echo(hint(f"http://{current_app.settings.bind}", api_key))
    else:
        click.echo(api_key or "No key is needed: dev mode is on and none is set.")


def hint(address: str, api_key: str | None) -> str:
    """The lines that say where the service is and how to use its key."""
    bearer = f" -H 'Authorization: Bearer {api_key}'" if api_key else ""
    return "\n".join(
        (
            f"{NAME} {VERSION} at {address}",
            f"API key: {api_key or 'none needed (dev mode)'}",
            f"Upload:  curl{bearer} -F file=@screenshot.png {address}/api/photos/upload",
            f"Find:    curl{bearer} '{address}/api/search?q=invoice'",
        )
    )


@command(keys, name="status")
def show_keys():
    """Show how old the keys are and what they open; fails when a file does not open."""
    store, settings, now = database.store(), current_app.settings, utc_now()
    with _bars() as progress:
        status = rotation.status(progress)
    if store.encrypted:
        made = datetime.fromtimestamp(store.master_key_path.stat().st_mtime, UTC).replace(tzinfo=None)
        click.echo(f"Master key:   {store.master_key_path}, {_age(made, now)}")
        click.echo(
            f"Database key: generation {store.ring.generation}, {_age(store.ring.created_at, now)}, {_next_turn(settings, now)}"
        )
    else:
        click.echo("Encryption:   off")
    click.echo(f"Database:     {store.ring.database_file}, {store.database.stat().st_size / MEGABYTE:.1f} MB")
    of_each = ", ".join(
        f"{count} of generation {number}" for number, count in sorted(status.generations.items())
    )
    click.echo(f"Files:        {of_each or 'none'}")
    click.echo(f"Unreadable:   {len(status.unreadable) or 'none'}")
    for place in status.unreadable:
        click.echo(f"  {place}")
    if status.unreadable:
        raise SystemExit(1)


def _age(made: datetime, now: datetime) -> str:
    return f"{max(0, (now - made).days)} days old"


def _next_turn(settings: Settings, now: datetime) -> str:
    return (
        "to turn with the next `flask jobs rotate-keys`"
        if rotation.is_due(settings, now=now)
        else f"to turn on {rotation.due_at(settings):%Y-%m-%d}"
    )


@command(keys, name="apply", opens=False)
def apply_encryption():
    """Encrypt or decrypt what is stored, after SNAPLORE_ENCRYPTION was changed.

    The service must be stopped while the database is written anew; it may be started again when the pictures
    have their turn. A run that was cut off is called again.
    """
    settings = current_app.settings
    encrypted = "encrypted" if settings.encryption else "not encrypted"
    with _bars() as progress:
        if rotation.apply_encryption(settings, progress, now=utc_now()):
            click.echo(f"The database is {encrypted} now. The service can be started; the pictures follow.")
        else:
            click.echo(f"The database is {encrypted} already.")
        sealed = rotation.seal_anew(progress, only_unlike=True)
    click.echo(_sealed(sealed, "sealed" if settings.encryption else "unsealed"))
    if sealed.unreadable:
        raise SystemExit(1)


@command(keys, name="change-master")
@click.option(
    "--new-key-file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File with the new master key. Otherwise one is made.",
)
def change_master(new_key_file: Path | None):
    """Seal the key ring under another master key; the data stays as it is.

    A master key that SNAPLORE_MASTER_KEY_FILE names is not Snaplore's to write: give the new one with
    --new-key-file, with the service stopped, and put it in the old one's place afterwards.
    """
    store, settings = database.store(), current_app.settings
    if not store.encrypted:
        raise click.ClickException("Encryption is off, so there is no master key.")
    key = crypto.read_master_key(new_key_file) if new_key_file else crypto.new_key()
    if settings.master_key_file is None:
        rotation.change_master_key(key)
        click.echo(
            f"The master key {store.master_key_path} is a new one. Backups that were made before need the old one."
        )
        return
    if new_key_file is None:
        raise click.UsageError("The master key is in a file of yours: give the new one with --new-key-file.")
    with contextlib.closing(ServiceLock(settings.data_dir)):
        rotation.change_master_key(key)
    click.echo(
        f"The key ring is sealed under the new key. Put it in the place of {settings.master_key_file} before the next start."
    )


@click.command("version")
def show_version():
    """Print the version of the service."""
    click.echo(f"{NAME} {VERSION}")


# ------------------------------------------------------------------------------------------------------ check


@command(name="check", opens=False)
@click.option(
    "--repair",
    is_flag=True,
    help="Mend what can be made again: thumbnails, the search index, counts; remove orphaned files.",
)
@click.option(
    "--forget-lost",
    is_flag=True,
    help="With --repair: delete photos and attachments whose file is lost for good.",
)
def check_data(repair: bool, forget_lost: bool):
    """Check that everything stored is there, whole, and agrees; a line for each kind. Works beside the
    service.

    The exit code is 0 when all is well or mended, 1 when something is wrong.
    """
    if forget_lost and not repair:
        raise click.UsageError("--forget-lost needs --repair")
    left = 0
    with _bars() as progress:
        for kind in check.check(current_app.settings, check.Orders(utc_now(), repair, forget_lost, progress)):
            left += kind.wrong - kind.mended if repair else kind.wrong
            click.echo(kind)
    if left:
        raise SystemExit(1)


# ----------------------------------------------------------------------------------------- backup and restore


@command(name="backup")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--force", is_flag=True, help="Replace FILE if it exists.")
@click.option(
    "--with-master-key",
    is_flag=True,
    help="Put the master key in, so that whoever has FILE can read everything.",
)
def back_up(file: Path, force: bool, with_master_key: bool):
    """Write everything that is kept to FILE, as it is at one moment, while the service runs.

    The master key is left out: keep a copy of it elsewhere, because FILE cannot be read without it.
    """
    with _bars() as progress:
        made = backup.make(
            file.absolute(), progress, now=utc_now(), force=force, with_master_key=with_master_key
        )
    click.echo(
        f"backup: {made.head.photos} photos, {made.head.files} files, {made.size / MEGABYTE:.1f} MB in {file}"
    )
    if not made.head.encrypted:
        click.echo("Encryption is off: whoever has the file can read everything in it.", err=True)
    elif with_master_key:
        click.echo("The master key is in it: whoever has the file can read everything in it.", err=True)
    _name_unreadable(made.unreadable, "are lost or damaged, and were left out. `flask check` tells more.")


@command(opens=False, name="restore")
@click.argument("file", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--master-key-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The master key of what is restored.",
)
@click.option("--undo", is_flag=True, help="Bring back the data that the last restore has replaced.")
@click.option("--discard-previous", is_flag=True, help="Remove the data that was kept aside.")
def bring_back(file: Path | None, master_key_file: Path | None, undo: bool, discard_previous: bool):
    """Replace all data by the backup FILE, which is verified first. The service must be stopped.

    The data that was there is kept aside until it is discarded. The master key is that of this machine, else
    that in the backup; another one is named with --master-key-file.
    """
    if [file is not None, undo, discard_previous].count(True) != 1:
        raise click.UsageError("Give FILE, or --undo, or --discard-previous.")
    settings = current_app.settings
    if discard_previous:
        click.echo(f"restore: {restore.discard_previous(settings) / MEGABYTE:.1f} MB freed")
        return
    if undo:
        restored = restore.undo(settings, now=utc_now(), master_key_file=master_key_file)
        click.echo(f"restore: {restored.photos} photos are back")
    else:
        with _bars() as progress:
            restored = restore.restore(
                settings, file, progress, now=utc_now(), master_key_file=master_key_file
            )
        click.echo(
            f"restore: {restored.photos} photos, as they were at {restored.made_at:%Y-%m-%d %H:%M} UTC"
        )
    if restored.aside is not None:
        click.echo(f"What was there before is in {restored.aside}.")
        click.echo(
            "Go back to it with `flask restore --undo`, or remove it with `flask restore --discard-previous`."
        )
    _name_unreadable(restored.unreadable, "were lost or damaged already when the backup was made.")


def _name_unreadable(paths: list[str], what: str) -> None:
    if paths:
        click.echo(f"{len(paths)} files {what} The first: {', '.join(paths[:3])}", err=True)


COMMANDS = (import_folder, jobs, keys, back_up, bring_back, check_data, show_version)

command_line = click.Group(
    NAME.lower(),
    commands=COMMANDS,
    help="Look after Snaplore's data, beside the running service. Settings come from the environment.",
)
click.version_option(VERSION, prog_name=NAME, message="%(prog)s %(version)s")(command_line)
