"""`snaplore add`: pictures, and those in folders, sent to a service."""

import contextlib
import hashlib
import os
import platform
import re
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import click

from settings import MEGABYTE
from terminal import texts
from terminal.failures import Failed, Unreachable, Untrusted
from terminal.options import INTERRUPTED, connected, with_dry_run, with_json
from terminal.service import Service
from text import storable

MOST_FILE = 50 * MEGABYTE  # that the service accepts
DELAYS = (1.0, 4.0)  # seconds before the second and the third try
LONGEST_DELAY = 30.0
BUSY = (429, 503)
NOT_ALLOWED = (401, 403)
PICTURES = (".png", ".jpg", ".jpeg", ".webp", ".gif", ".heic", ".heif", ".avif")  # names in folders


class Picture(NamedTuple):
    """A picture that is to be added."""

    name: str
    content: bytes
    changed: str  # when the file was, in epoch milliseconds; empty when unknown


@click.command()
@connected
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE...")
@click.option("--device-id", default="", help="The device that they belong to. [default: this machine]")
@with_dry_run
@with_json
def add(service: Service, files: tuple[Path, ...], device_id: str, dry_run: bool, as_json: bool) -> None:
    """Add pictures, and those in folders and their subfolders; - is one from stdin.

    Those that this device has sent already are recognised by their content, so a run that was stopped can be
    repeated. What was added is listed with its id. A file that fails does not stop the others, and makes the
    exit code 1. In folders, hidden files, links and what is no picture by its name are skipped.
    """
    files = tuple(_found(files))
    if dry_run:
        shown = [storable(str(file)) for file in files]
        click.echo(texts.as_json(shown) if as_json else f"{len(files)} pictures would be sent.")
        return
    name = platform.node() or "terminal"
    device = {"device_id": device_id or re.sub("[^A-Za-z0-9]", "_", name)[:256], "device_name": name}
    shows_progress = len(files) > 1 and sys.stderr.isatty()
    done: list[dict[str, object]] = []
    stopped: Failed | None = None
    bar = click.progressbar(files, label=f"Adding {len(files)} files", file=sys.stderr)
    with bar if shows_progress else contextlib.nullcontext(files) as each:
        for file in each:
            result: dict[str, object] = {"file": storable(str(file))}
            try:
                answer = _uploaded(service, _read(file), device)
                result |= {"id": answer.get("id"), "dedup": answer.get("dedup") is True}
            except KeyboardInterrupt:
                _print_totals(done, failures=shows_progress)
                click.echo(f"Stopped after {len(done)} of {len(files)}. Run it again to go on.", err=True)
                raise SystemExit(INTERRUPTED) from None
            except Failed as problem:
                if isinstance(problem, Unreachable) or problem.status in NOT_ALLOWED:
                    stopped = problem  # the next file would meet the same
                    break
                result["error"] = problem.message
            done.append(result)
            if not as_json and not shows_progress:
                _print_added(result)
    if as_json:
        click.echo(texts.as_json(done))
    elif len(files) > 1:
        _print_totals(done, failures=shows_progress)
    if stopped is not None:
        raise stopped
    if any("error" in result for result in done):
        raise SystemExit(1)


def _found(files: tuple[Path, ...]) -> Iterator[Path]:
    """The files, and the pictures in the folders among them, in the order of their names."""
    for file in files:
        if not os.path.isdir(file):  # also of one that may not be looked at: its failure is said below
            yield file
            continue
        for folder, names, found in os.walk(file):
            names[:] = sorted(name for name in names if not name.startswith("."))
            for name in sorted(found):
                place = Path(folder, name)
                is_picture = place.suffix.lower() in PICTURES and not name.startswith(".")
                if is_picture and place.is_file() and not place.is_symlink():
                    yield place


def _print_added(result: Mapping[str, object]) -> None:
    shown = texts.safe(result["file"])
    if "error" in result:
        click.echo(f"{shown}: {texts.safe(result['error'])}", err=True)
    else:
        click.echo(f"{texts.safe(result['id']):>6}  {shown}{'  (already there)' if result['dedup'] else ''}")


def _print_totals(done: list[dict[str, object]], *, failures: bool) -> None:
    failed = [result for result in done if "error" in result]
    for result in failed if failures else ():
        _print_added(result)
    known = sum(result.get("dedup") is True for result in done)
    counts = {"added": len(done) - len(failed) - known, "already there": known, "failed": len(failed)}
    click.echo(", ".join(f"{count} {what}" for what, count in counts.items() if count) or "none", err=True)


def _read(file: Path) -> Picture:
    """A picture from a file, or from stdin for `-`. Raises `Failed`."""
    try:
        if str(file) == "-":
            content, changed = sys.stdin.buffer.read(MOST_FILE + 1), ""
        else:
            if not file.is_file() and file.exists():
                raise Failed("it is not a file")
            with file.open("rb") as opened:
                content, changed = opened.read(MOST_FILE + 1), str(int(file.stat().st_mtime * 1000))
    except OSError as problem:
        raise Failed(problem.strerror or "it cannot be read") from None
    if not content or len(content) > MOST_FILE:
        raise Failed(f"it is larger than {MOST_FILE // MEGABYTE} MB" if content else "it is empty")
    # The service takes digits only, and a clock before 1970 gives none.
    name = "stdin" if str(file) == "-" else storable(file.name)
    return Picture(name, content, changed if changed.isdigit() else "")


def _uploaded(service: Service, picture: Picture, device: Mapping[str, str]) -> dict[str, Any]:
    """Upload a picture, up to three times while the service is busy or hangs up. Raises `Failed`."""
    fields = {
        **device,
        # As `./snaplore import` identifies a file, so that neither its name nor its folder matters.
        "local_media_store_id": f"sha256:{hashlib.sha256(picture.content).hexdigest()}",
        "file_timestamp": picture.changed,
    }
    for delay in DELAYS:
        try:
            return service.upload(picture.name, picture.content, fields)
        except Failed as problem:
            if isinstance(problem, Untrusted) or (
                not isinstance(problem, Unreachable) and problem.status not in BUSY
            ):
                raise
            time.sleep(min(max(delay, problem.retry_after), LONGEST_DELAY))
    return service.upload(picture.name, picture.content, fields)
