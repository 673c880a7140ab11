"""The jobs of cron and systemd timers, `./snaplore jobs <name>`; and, first, what they have in common with
all other commands (`commands/`): the application whose data they open, and failures in one line.

Each command opens its own short database scopes, so that it can run beside a busy service. No command starts
threads or analyses screenshots: the service finds what a command has queued.

A job prints one line for the log, with its name, its outcome and its duration, and no stored content: to
stdout on success (exit code 0), to stderr on failure (1). A job never runs twice at the same time, over all
processes.
"""

import contextlib
import functools
import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Any, ParamSpec, Protocol, cast

import click
from flask import current_app
from flask.cli import with_appcontext

import agenda
import database
import memory
import reasoner
from clock import utc_now
from curation import news, retention
from errors import Conflict, SnaploreError, Unavailable
from locks import named_lock
from settings import MEGABYTE, Settings
from terminal.options import Group
from terminal.service import Login
from tls import addresses, authority
from upkeep import cleanup, clocks, moving, progress, resealing, rotation, schedule

MOVING_SECONDS = 900.0  # of a clean-up, for moving originals; systemd ends a job after half an hour
Parameters = ParamSpec("Parameters")


class Application(Protocol):
    """The part of `app.Application` that commands use. `app` imports this module and not the reverse."""

    settings: Settings
    api_key: str | None
    certificate: authority.Presented

    def open_data(self) -> None: ...


def application() -> Application:
    return cast(Application, current_app)


def listening() -> str:
    """The address that the service listens on, as far as the settings tell."""
    return f"{application().certificate.scheme}://{application().settings.address}"


def own_login() -> Login:
    """The login of this machine's service, with the owner's key. Raises `click.ClickException`."""
    try:
        application().open_data()
        certificate, key = application().certificate, application().api_key
        return Login(addresses.opened_here(listening()), key or "", certificate.ca or "")
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
                    application().open_data()
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


def kept_for(settings: Settings) -> str:
    """How long the service keeps what it gets, and where to change that. Opens its own scope."""
    with database.scope():
        days = retention.days(settings)
    kept = f"everything for {days} days, then deletes it" if days else "everything until you delete it"
    return f"{kept}; change it on the page (Settings, Storage) or with SNAPLORE_RETENTION_DAYS"


def sealed_in_words(sealed: resealing.SealedAnew, verb: str) -> str:
    left = f", {sealed.unreadable} could not be read and are unchanged" if sealed.unreadable else ""
    return f"{sealed.done} pictures and attachments {verb}{left}"


jobs = Group("jobs", help="Regular jobs for cron, beside the service; each prints one line.")


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
        saved = reasoner.cycle(application().settings, device_id=device_id)
    except Unavailable as problem:
        # The service is writing notes itself, or the daily token limit is reached: the next run catches up.
        return problem.detail
    return f"{len(saved)} new notes"


@job("remind")
def remind() -> str:
    """Announce what is due: in the evening what happens the next day, in the morning what happens today.
    Write notes about orders, parcels, trips and bills whose state has changed.
    """
    settings = application().settings
    items = agenda.remind(settings, now=utc_now())
    notes = news.write(settings, now=utc_now())
    return f"{len(items)} announced, {len(notes)} notes about what has changed"


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
    settings = application().settings
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
    settings = application().settings
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
        if force or rotation.is_due(application().settings, now=utc_now()):
            began = time.monotonic()
            rotation.rotate(report, now=utc_now())
            outcomes.append(f"the database has a new key, after {time.monotonic() - began:.2f} s")
        else:
            outcomes.append(f"the database key is due on {rotation.due_at(application().settings):%Y-%m-%d}")
        if pictures:
            outcomes.append(sealed_in_words(resealing.seal_anew(report), "resealed"))
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
