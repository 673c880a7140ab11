"""`snaplore import` of more than a folder: zips and exports of other programs, and other libraries by their
address.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

import click

from commands.pace import Pace
from errors import SnaploreError
from jobs import application
from upkeep import archives, importing, libraries, takeout

MOST_NAMED = 1_000  # lines about what was left out or has failed
DONE = ("imported", "already there")


def is_more(sources: Sequence[Path], own: Path) -> bool:
    """Whether these are more than a folder of files: several, a zip, or an export with facts about files."""
    return (
        len(sources) > 1
        or sources[0].is_file()
        or any(
            file.name.endswith(".json") or takeout.is_table(file.name)
            for file in importing.files(sources[0], leave_out=own)
        )
    )


def import_archives(sources: Sequence[Path], device_id: str, device_name: str, names: Sequence[str]) -> None:
    """Store the pictures of zips and folders, which are read as one export."""
    found = archives.Sources(sources, own=application().settings.data_dir)
    run = _Run(device_id, device_name, names)
    label = f"Importing {found.count} files"
    with click.progressbar(length=found.count, label=label, item_show_func=Pace().shown) as bar:
        run.all(found.items(run.failed), lambda item: bar.update(1, item))
    run.end()


def import_library(
    library: type[libraries.Library], address: str, key: str, device: tuple[str, str], names: Sequence[str]
) -> None:
    """Store the pictures of a library."""
    run = _Run(*device, names)
    with library(address, key) as opened:
        run.all(opened.items(device[0]), lambda _item: None)
    run.end()


class _Run:
    """One import: what became of each file."""

    def __init__(self, device_id: str, device_name: str, names: Sequence[str]):
        self._device_id, self._device_name = device_id, device_name
        self._names = [name.casefold() for name in names]
        self._counts: dict[str, int] = dict.fromkeys(DONE, 0)
        self._lines: list[str] = []
        self._interrupted = False

    def all(self, items: Iterator[archives.Item], step: Callable[[archives.Item], object]) -> None:
        """Store every item. Ctrl+C ends it after the present one."""
        try:
            for item in items:
                self._one(item)
                step(item)
        except KeyboardInterrupt:
            self._interrupted = True

    def failed(self, shown: str, problem: Exception) -> None:
        self._count("failed", f"{shown}: {importing.reason(problem)}")

    def end(self) -> None:
        """Print what was left out and why, and the counts. Exit with 1 where something failed, and with 130
        after Ctrl+C.
        """
        for line in self._lines:
            click.echo(line, err=True)
        shown = [f"{count} {what}" for what, count in self._counts.items() if count or what in DONE]
        click.echo(", ".join(shown))
        if self._interrupted:
            click.echo("Stopped. Run it again to go on: what is stored is skipped.", err=True)
            sys.exit(130)
        if self._counts.get("failed"):
            sys.exit(1)

    def _one(self, item: archives.Item) -> None:
        name = item.shown.rpartition("/")[2].casefold()
        if self._names and not any(fnmatchcase(name, wanted) for wanted in self._names):
            self._count("of another name", "")
        elif item.left_out == archives.ALREADY_THERE:
            self._count("already there", "")
        elif item.left_out:
            self._count("left out", f"{item.shown}: {item.left_out}")
        else:
            try:
                is_new = archives.store(item, self._device_id, self._device_name)
            except (SnaploreError, OSError) as problem:
                self.failed(item.shown, problem)
                return
            if is_new is None:
                self._count("left out", f"{item.shown}: it is not a picture")
            else:
                self._count("imported" if is_new else "already there", "")

    def _count(self, what: str, line: str) -> None:
        self._counts[what] = self._counts.get(what, 0) + 1
        if line and len(self._lines) < MOST_NAMED:
            self._lines.append(line)
        elif line and len(self._lines) == MOST_NAMED:
            self._lines.append("... and more: import again to see them, once these are solved.")
