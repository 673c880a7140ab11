"""`snaplore import`: folders, zips and exports of other programs, and other libraries by their address."""

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

import click

from commands.pace import Pace, searchable
from errors import SnaploreError
from jobs import application, kept_for, listening
from settings import NAME, START
from terminal import texts
from terminal.options import INTERRUPTED
from tls import addresses
from upkeep import archives, importing, libraries

NOT_A_PICTURE = "it is not a picture"
# So many files are named; cron mails their lines, and a folder may have many that are no pictures.
MOST_NAMED = {"not pictures": 5, "left out": 1_000, "failed": 1_000}
NEW, KNOWN = "imported", archives.ALREADY_THERE
OTHERS = ("of another name", "left out", "failed")


def import_archives(
    sources: Sequence[Path],
    device: tuple[str, str],
    names: Sequence[str],
    *,
    dry_run: bool = False,
    as_json: bool = False,
) -> None:
    """Store the pictures of zips and folders, which are read as one export, or count them."""
    run = _Run(*device, names, dry_run=dry_run, as_json=as_json)
    count = 0
    with run.until_stopped():
        found = archives.Sources(sources, own=application().settings.data_dir)
        count = found.count
        label = f"{'Reading' if dry_run else 'Importing'} {count} files"
        shown, file = Pace().shown, sys.stderr if as_json else None
        with click.progressbar(length=count, label=label, item_show_func=shown, file=file) as bar:
            for item in found.items(run.failed):
                run.store(item)
                bar.update(1, item)
    run.end(lambda stored: None if dry_run else _next_step(sources[0], count, stored=stored))


def import_library(
    library: type[libraries.Library],
    address: str,
    key: str,
    device: tuple[str, str],
    names: Sequence[str],
    *,
    as_json: bool = False,
) -> None:
    """Store the pictures of a library."""
    run = _Run(*device, names, as_json=as_json)
    with run.until_stopped(), library(address, key) as opened:
        for item in opened.items(device[0]):
            run.store(item)
    run.end(lambda stored: None)


def _next_step(folder: Path, files: int, *, stored: int) -> None:
    """Tell a person what to do after an import."""
    settings = application().settings
    page = addresses.opened_here(listening())
    if stored:
        click.echo(f"{searchable().capitalize()}.")
        click.echo(f"Next: the running service analyses them. If it is not running, start it (`{START}`).")
        click.echo(f"{page} shows the progress; search finds each screenshot once it is analysed.")
        click.echo(f"{NAME} keeps {kept_for(settings)}.")
    elif files:
        click.echo("Next: name a folder with JPEG, PNG, WebP, GIF, HEIC or AVIF pictures.")
    else:
        click.echo(f"{folder} has no files. Next: name the folder that your screenshots are in.")


class _Run:
    """One import: what became of each file."""

    def __init__(
        self,
        device_id: str,
        device_name: str,
        names: Sequence[str],
        *,
        dry_run: bool = False,
        as_json: bool = False,
    ):
        self._device_id, self._device_name = device_id, device_name
        self._names = [name.casefold() for name in names]
        self._store = archives.trial() if dry_run else archives.store
        self._dry_run, self._as_json = dry_run, as_json
        self._counts: dict[str, int] = dict.fromkeys((NEW, KNOWN, *OTHERS), 0)
        self._named: list[dict[str, str]] = []
        self._to_name = dict.fromkeys(MOST_NAMED, 0)
        self._interrupted = False

    @contextlib.contextmanager
    def until_stopped(self) -> Iterator[None]:
        """Ctrl+C ends it; a file that was being stored is stored whole or not at all."""
        try:
            yield
        except KeyboardInterrupt:
            self._interrupted = True
            click.echo(err=True)

    def failed(self, shown: str, problem: Exception) -> None:
        self._count("failed", shown, importing.reason(problem))

    def end(self, say_next: Callable[[int], None]) -> None:
        """Print what was left out and why, the counts, and, to a person, what is next: `say_next` gets the
        number of pictures that are stored now. Exit with 1 where something failed, and with 130 after Ctrl+C.
        """
        if self._as_json:
            self._print_json()
        else:
            self._print()
        if self._interrupted:
            click.echo(
                "Stopped. To go on, run the same command again: it skips what is stored already.", err=True
            )
            sys.exit(INTERRUPTED)
        if sys.stdout.isatty() and not self._as_json:  # elsewhere cron would mail it
            say_next(self._counts[NEW] + self._counts[KNOWN])
        if self._counts["failed"]:
            sys.exit(1)

    def _print(self) -> None:
        for named in self._named:
            click.echo(f"{named['file']}: {named['reason']}", err=True)
        for what, count in self._to_name.items():
            if count > MOST_NAMED[what]:
                click.echo(f"... and {count - MOST_NAMED[what]} more {what}", err=True)
        new = f"would be {NEW}" if self._dry_run else NEW
        shown = [f"{self._counts[NEW]} {new}", f"{self._counts[KNOWN]} {KNOWN}"]
        click.echo(", ".join(shown + [f"{count} {what}" for what in OTHERS if (count := self._counts[what])]))

    def _print_json(self) -> None:
        counts = {what.replace(" ", "_"): count for what, count in self._counts.items()}
        said = {"dry_run": self._dry_run, "stopped": self._interrupted}
        click.echo(texts.as_json({**counts, **said, "files": self._named}))

    def store(self, item: archives.Item) -> None:
        """Store one picture, or note why not."""
        name = item.shown.rpartition("/")[2].casefold()
        if self._names and not any(fnmatchcase(name, wanted) for wanted in self._names):
            self._count("of another name")
        elif item.said.left_out == archives.ALREADY_THERE:
            self._count(KNOWN)
        elif item.said.left_out:
            self._count("left out", item.shown, item.said.left_out)
        else:
            try:
                is_new = self._store(item, self._device_id, self._device_name)
            except (SnaploreError, OSError) as problem:
                self.failed(item.shown, problem)
                return
            if is_new is None:
                self._count("left out", item.shown, NOT_A_PICTURE)
            else:
                self._count(NEW if is_new else KNOWN)

    def _count(self, what: str, shown: str = "", reason: str = "") -> None:
        self._counts[what] += 1
        if shown:
            kind = "not pictures" if reason == NOT_A_PICTURE else what
            self._to_name[kind] += 1
            if self._to_name[kind] <= MOST_NAMED[kind]:
                self._named.append({"file": shown, "result": what, "reason": reason})
