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
from tls import addresses
from upkeep import archives, importing, libraries

STOPPED = 130  # the exit code after Ctrl+C, as shells have it
# So many files are named; cron mails their lines, and a folder may have many that are no pictures.
MOST_NAMED = {"not pictures": 5, "left out": 1_000, "failed": 1_000}
NEW, KNOWN = "imported", archives.ALREADY_THERE
OTHERS = ("of another name", "left out", "failed")


def import_archives(
    sources: Sequence[Path], device: tuple[str, str], names: Sequence[str], *, dry_run: bool = False
) -> None:
    """Store the pictures of zips and folders, which are read as one export, or count them."""
    run = _Run(*device, names, dry_run=dry_run)
    count = 0
    with run.until_stopped():
        found = archives.Sources(sources, own=application().settings.data_dir)
        count = found.count
        label = f"{'Reading' if dry_run else 'Importing'} {count} files"
        with click.progressbar(length=count, label=label, item_show_func=Pace().shown) as bar:
            for item in found.items(run.failed):
                run.store(item)
                bar.update(1, item)
    run.end(lambda stored: None if dry_run else _next_step(sources[0], count, stored=stored))


def import_library(
    library: type[libraries.Library], address: str, key: str, device: tuple[str, str], names: Sequence[str]
) -> None:
    """Store the pictures of a library."""
    run = _Run(*device, names)
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

    def __init__(self, device_id: str, device_name: str, names: Sequence[str], *, dry_run: bool = False):
        self._device_id, self._device_name = device_id, device_name
        self._names = [name.casefold() for name in names]
        self._store = archives.trial() if dry_run else archives.store
        self._new = f"would be {NEW}" if dry_run else NEW
        self._counts: dict[str, int] = dict.fromkeys((self._new, KNOWN, *OTHERS), 0)
        self._lines: dict[str, list[str]] = {what: [] for what in MOST_NAMED}
        self._unnamed = dict.fromkeys(MOST_NAMED, 0)
        self._interrupted = False

    @contextlib.contextmanager
    def until_stopped(self) -> Iterator[None]:
        """Ctrl+C ends it; a file that was being stored is stored whole or not at all."""
        try:
            yield
        except KeyboardInterrupt:
            self._interrupted = True
            click.echo()

    def failed(self, shown: str, problem: Exception) -> None:
        self._counts["failed"] += 1
        self._name("failed", f"{shown}: {importing.reason(problem)}")

    def end(self, say_next: Callable[[int], None]) -> None:
        """Print what was left out and why, the counts, and, to a person, what is next: `say_next` gets the
        number of pictures that are stored now. Exit with 1 where something failed, and with 130 after Ctrl+C.
        """
        for what, lines in self._lines.items():
            for line in lines:
                click.echo(line, err=True)
            if self._unnamed[what]:
                click.echo(f"... and {self._unnamed[what]} more {what}", err=True)
        always = (self._new, KNOWN)
        shown = [f"{count} {what}" for what, count in self._counts.items() if count or what in always]
        click.echo(", ".join(shown))
        if self._interrupted:
            click.echo(
                "Stopped. To go on, run the same command again: it skips what is stored already.", err=True
            )
            sys.exit(STOPPED)
        if sys.stdout.isatty():  # elsewhere cron would mail it
            say_next(self._counts[self._new] + self._counts[KNOWN])
        if self._counts["failed"]:
            sys.exit(1)

    def store(self, item: archives.Item) -> None:
        """Store one picture, or note why not."""
        name = item.shown.rpartition("/")[2].casefold()
        if self._names and not any(fnmatchcase(name, wanted) for wanted in self._names):
            self._counts["of another name"] += 1
        elif item.left_out == archives.ALREADY_THERE:
            self._counts[KNOWN] += 1
        elif item.left_out:
            self._counts["left out"] += 1
            self._name("left out", f"{item.shown}: {item.left_out}")
        else:
            try:
                is_new = self._store(item, self._device_id, self._device_name)
            except (SnaploreError, OSError) as problem:
                self.failed(item.shown, problem)
                return
            if is_new is None:
                self._counts["left out"] += 1
                self._name("not pictures", f"{item.shown}: it is not a picture")
            else:
                self._counts[self._new if is_new else KNOWN] += 1

    def _name(self, what: str, line: str) -> None:
        if len(self._lines[what]) < MOST_NAMED[what]:
            self._lines[what].append(line)
        else:
            self._unnamed[what] += 1
