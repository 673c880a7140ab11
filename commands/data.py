"""The commands of the data as a whole: import, check, backup and restore."""

import contextlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

import click

import database
import devices
from analysis import backlog
from buckets.s3 import Bucket
from clock import utc_now
from commands import past
from jobs import application, command
from settings import MEGABYTE, S3_ADDRESS, Settings
from terminal import adding
from terminal.options import with_json
from upkeep import backup, check, dates, findings, libraries, offsite, progress, restore, verifying

_LEFT_OUT = "are lost or damaged and were left out; `./snaplore check` lists them."


def _device_id(_context: click.Context, _parameter: click.Parameter, value: str) -> str:
    if not re.match(devices.DEVICE_ID, value):
        raise click.BadParameter("must be 1 to 256 letters, digits or underscores")
    return value


@command(name="import", opens=False)
@click.pass_context
@click.argument("sources", nargs=-1, type=click.Path(exists=True, path_type=Path), metavar="SOURCE...")
@click.option(
    "--device-id",
    default="import",
    show_default=True,
    callback=_device_id,
    help="The id of the device that the screenshots belong to.",
)
@click.option("--device-name", default="", help="The name of that device.")
@click.option(
    "--name", "names", multiple=True, help="Only files of this name, like '*screenshot*'; may repeat."
)
@click.option("--from", "library", type=click.Choice(list(libraries.LIBRARIES)), help="Another library.")
@click.option("--address", default="", help="With --from: its address, like https://photos.example.org.")
@click.option(
    "--key-file",
    type=click.File("r"),
    help="With --from: a file with its API key; - is stdin. [default: it is asked for]",
)
@click.option("--url", default="", help="Send pictures and folders to the service there, as `add` does.")
@click.option("--dry-run", is_flag=True, help="Only count what would be imported.")
@with_json
def import_folder(
    context: click.Context,
    sources: tuple[Path, ...],
    device_id: str,
    device_name: str,
    names: tuple[str, ...],
    library: str | None,
    address: str,
    key_file: TextIO | None,
    url: str,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Store every screenshot in SOURCE: a folder with its subfolders, or a zip; several are read as one.

    It may be the export of Google Photos (Takeout), of Apple (iCloud Photos), or Snaplore's own: times,
    notes, tags and favourites come along. --from imports from Immich or Karakeep.

    You can stop an import at any time (Ctrl+C) and run it again: it skips screenshots that are stored
    already, even if they were moved or renamed. The time of a screenshot is that of its EXIF data, else of
    its name, else of its file. The running service analyses the screenshots. Hidden files and links are
    skipped.
    """
    if not sources and not library:
        raise click.UsageError("Name a folder or a zip.")
    if url:
        if library or names or device_name:
            raise click.UsageError("--url goes with --device-id, --dry-run and --json only.")
        options = {"device_id": device_id, "dry_run": dry_run, "as_json": as_json}
        context.invoke(adding.add, url=url, files=sources, **options)
        return
    application().open_data()
    if library:
        if sources or not address or dry_run:
            raise click.UsageError("--from needs --address, no SOURCE and no --dry-run.")
        key = key_file.readline(1_000) if key_file else click.prompt("API key", hide_input=True, err=True)
        device = (device_id, device_name)
        past.import_library(
            libraries.LIBRARIES[library], address, key.strip(), device, names, as_json=as_json
        )
        return
    past.import_archives(sources, (device_id, device_name), names, dry_run=dry_run, as_json=as_json)


@command(name="mend-dates")
@click.option("--dry-run", is_flag=True, help="Only count what would change.")
def mend_dates(dry_run: bool) -> None:
    """Correct when stored screenshots were taken.

    EXIF data and the names of files say it for those that were imported, or uploaded without a time.
    Previously, the date of the file counted, or the time of the upload. A time that a phone has given stays.
    """
    with progress.bars() as report:
        mended = dates.mend(report, now=utc_now(), dry_run=dry_run)
    if mended.changed and not dry_run:
        backlog.judge_all_again()
    left = f", {mended.elsewhere} are in the bucket and stay as they are" if mended.elsewhere else ""
    left += f", {mended.unreadable} could not be read" if mended.unreadable else ""
    would = "would be " if dry_run else ""
    click.echo(f"mend-dates: {mended.changed} of {mended.examined} times {would}corrected{left}")
    if mended.unreadable:
        raise SystemExit(1)


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
            application().settings, findings.Orders(utc_now(), repair, forget_lost, report)
        ):
            left += kind.wrong - kind.repaired if repair else kind.wrong
            click.echo(kind)
    if left:
        raise SystemExit(1)


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
    bucket = Bucket(address, application().settings)
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
    settings = application().settings
    if discard_previous:
        click.echo(f"restore: {restore.discard_previous(settings) / MEGABYTE:.1f} MB freed")
        return
    with contextlib.ExitStack() as opened:
        source: Path | verifying.Snapshot | None = file
        if address is not None:
            bucket = opened.enter_context(contextlib.closing(Bucket(address, settings)))
            if only_list:
                click.echo("\n".join(offsite.snapshots(bucket)) or "There is no backup.")
                return
            source = verifying.Snapshot(bucket, offsite.chosen(bucket, name))
        _restore(settings, source, master_key_file)


def _restore(
    settings: Settings, source: Path | verifying.Snapshot | None, master_key_file: Path | None
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
