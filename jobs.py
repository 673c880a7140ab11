"""The command line: what a person or cron runs beside the service, as `flask <command>`.

Each command opens its own database scopes, short ones, so that it works beside a busy service. Nothing here starts threads or
analyses anything: the service finds what a command has queued.

What cron runs are the `jobs`: each says one line, on stdout when it went well (exit code 0), on stderr when it failed (1). One run of a
job at a time, over all processes.
"""

import contextlib
import functools
import os
import re
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click
from flask import current_app
from flask.cli import with_appcontext

import check
import cleanup
import dynamics
import images
import memory
import models
import params
import photos
from errors import SnaploreError, Unavailable
from locks import named_lock
from settings import NAME, VERSION, timestamp, utc_now
from spool import Spool

BLOCK = 262_144  # bytes
LONGEST_ABSENCE = timedelta(days=7)  # of the daily jobs, until the clock is doubted


def command(group: click.Group | None = None, *, opens: bool = True, **options):
    """A click command in the application's context whose failures are one line, not a trace.

    The data folder is open in it, except with `opens=False`, for commands that work on data that a start would refuse.
    """

    def wrap(function):
        @functools.wraps(function)
        def run(*args, **kwargs):
            try:
                if opens:
                    current_app.open_data()
                return function(*args, **kwargs)
            except Exception as problem:
                known = models.known_failure(problem)
                if known is None:
                    raise
                raise click.ClickException(known.detail) from None
            finally:
                models.close_connection()

        return (group.command if group else click.command)(**options)(with_appcontext(run))

    return wrap


# --------------------------------------------------------------------------------------------------------------------- import


def _device_id(_context, _parameter, value: str) -> str:
    if not re.match(params.DEVICE_ID, value):
        raise click.BadParameter("must be 1 to 256 letters, digits or underscores")
    return value


@command(name="import")
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--device-id", default="import", show_default=True, callback=_device_id, help="The device that the screenshots are filed under."
)
@click.option("--device-name", default="", help="Its name.")
def import_folder(folder: Path, device_id: str, device_name: str):
    """Store every screenshot in FOLDER and below it.

    Can be stopped at any time and called again: what is stored already is skipped, also when it was moved or renamed. The time
    of a screenshot is that of its EXIF data, else of its file. The running service analyses them.
    """
    counts = {"imported": 0, "already there": 0, "no pictures": 0, "failed": 0}
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
    click.echo(", ".join(f"{count} {what}" for what, count in counts.items()))
    if failures:
        raise SystemExit(1)


def _regular_files(folder: Path, *, leave_out: Path) -> Iterator[Path]:
    """In a stable order, without hidden ones, links, and the service's own data."""
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and Path(parent, name).resolve() != leave_out.resolve())
        for name in sorted(names):
            path = Path(parent, name)
            if not name.startswith(".") and path.is_file() and not path.is_symlink():
                yield path


def _import_file(path: Path, device_id: str, device_name: str) -> str:
    """Store one file; returns the word that the summary counts it under."""
    with path.open("rb") as file:
        if not images.recognised(file):
            return "no pictures"
        taken = images.taken_at(file) or datetime.fromtimestamp(path.stat().st_mtime, UTC).replace(tzinfo=None)
        file.seek(0)
        spool = Spool(photos.MAX_FILE)
        try:
            while block := file.read(BLOCK):
                spool.write(block)
            # The bytes name the file, so that the next run knows it again wherever it lies.
            upload = photos.Upload(device_id, path.name, taken, device_name, local_media_store_id=f"sha256:{spool.sha256.hex()}")
            with models.scope():
                kept = photos.store(spool, upload, now=utc_now())
        finally:
            spool.close()
    return "already there" if kept.dedup else "imported"


# ----------------------------------------------------------------------------------------------------------------------- jobs

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
                    lock.enter_context(named_lock(models.store().folder / "jobs", name, 0, busy="Another run is in progress."))
                except Unavailable:
                    click.echo(f"{name}: another run is in progress")
                    return
                if by_age and _clock_jumped(name, now=utc_now()):
                    days = LONGEST_ABSENCE.days
                    click.echo(f"{name}: more than {days} days have passed at once; if the clock is right, the next run makes up for it")
                    return
                click.echo(f"{name}: {function(*args, **kwargs)}")

        return command(jobs, name=name)(run)

    return wrap


def _clock_jumped(name: str, *, now: datetime) -> bool:
    """Whether the clock is further on than `LONGEST_ABSENCE` after the last run of this job; notes that there was one.

    A Pi has no clock of its own, and one that starts years ahead would delete, or let fade, all there is. By the next run the network has
    set it right, or the machine really was off for so long.
    """
    mark = f"jobs.{name}.ran_at"
    with models.scope():
        last = models.stored_value(mark)
        models.store_value(mark, timestamp(now))
    return last is not None and now - datetime.fromisoformat(last) > LONGEST_ABSENCE


@job("reason")
@click.option("--device-id", help="Look only at what is new of this device.")
def reason(device_id: str | None) -> str:
    """Look at what is new, and write notes of what is worth it."""
    try:
        saved = dynamics.cycle(current_app.settings, device_id=device_id)
    except Unavailable as problem:  # the service is at it, or the day's tokens are used up: the next hour makes up for it
        return problem.detail
    return f"{len(saved)} new notes"


@job("decay", by_age=True)
def decay() -> str:
    """Delete expired short-term memories, and let long-term ones fade by a day."""
    with models.scope():
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
        f"{cleaned.orphans} orphaned files, {cleaned.bytes / params.MEGABYTE:.1f} MB {'would be ' if dry_run else ''}freed"
    )


@contextlib.contextmanager
def _bars() -> Iterator[cleanup.Progress | None]:
    """A bar for each stage on a terminal; elsewhere none, because it would be mailed."""
    if not sys.stdout.isatty():
        yield None
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


# ----------------------------------------------------------------------------------------------------------------------- keys

keys = click.Group("keys", help="The keys of the service and of its data.")


@command(keys, name="show-api-key")
@click.option("--hint", is_flag=True, help="Also say where the service is and how to use the key.")
def show_api_key(hint: bool):
    """Print the key that clients send as `Authorization: Bearer <key>`."""
    api_key = current_app.api_key
    if not hint:
        click.echo(api_key or "No key is needed: dev mode is on and none is set.")
        return
    address = f"http://{current_app.settings.bind}"
    bearer = f" -H 'Authorization: Bearer {api_key}'" if api_key else ""
    click.echo(f"{NAME} {VERSION} at {address}")
    click.echo(f"API key: {api_key or 'none needed (dev mode)'}")
    click.echo(f"Upload:  curl{bearer} -F file=@screenshot.png {address}/api/photos/upload")
    click.echo(f"Find:    curl{bearer} '{address}/api/search?q=invoice'")


@click.command("version")
def show_version():
    """Print the version of the service."""
    click.echo(f"{NAME} {VERSION}")


# ---------------------------------------------------------------------------------------------------------------------- check


@command(name="check", opens=False)
@click.option("--repair", is_flag=True, help="Mend what can be made again: thumbnails, the search index, counts; remove orphaned files.")
@click.option("--forget-lost", is_flag=True, help="With --repair: delete photos and attachments whose file is lost for good.")
def check_data(repair: bool, forget_lost: bool):
    """Check that everything stored is there, whole, and agrees; a line for each kind. Works beside the service.

    The exit code is 0 when all is well or mended, 1 when something is wrong.
    """
    if forget_lost and not repair:
        raise click.UsageError("--forget-lost needs --repair")
    left = 0
    with _bars() as progress:
        for kind in check.check(current_app.settings, check.Orders(utc_now(), repair, forget_lost, progress or check.untold)):
            left += kind.wrong - kind.mended if repair else kind.wrong
            click.echo(kind)
    if left:
        raise SystemExit(1)


COMMANDS = (import_folder, jobs, keys, check_data, show_version)
