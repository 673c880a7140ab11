"""`snaplore` as a client: it searches, shows and adds screenshots, in a service on this machine or elsewhere.

It speaks the published API and nothing else, and needs no package but click: `make client` makes one file of
it that runs wherever Python does. Beside the service, `CommandLine` lists the service's own commands as well,
and loads them only when one is used, which takes seconds on a Raspberry Pi.

Results go to stdout and everything else to stderr. Exit codes: 0 done, 1 refused or failed, 2 wrong usage,
3 the service does not answer.
"""

import contextlib
import functools
import hashlib
import os
import platform
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

import click

from settings import MEGABYTE, NAME, VERSION
from terminal import logins, managing, showing, texts
from terminal.failures import Failed, Unreachable, Untrusted
from terminal.options import INTERRUPTED, Group, Number, connected, pem, with_dry_run, with_json, with_reveal
from terminal.service import Login, Service, fingerprint, offered_authority
from text import storable

MOST_FILE = 50 * MEGABYTE  # that the service accepts
TRIES = 3
DELAYS = (1.0, 4.0)  # seconds before the second and the third try
LONGEST_DELAY = 30.0
BUSY = (429, 503)
NOT_ALLOWED = (401, 403)
PICTURES = (".png", ".jpg", ".jpeg", ".webp", ".gif", ".heic", ".heif", ".avif")  # names in folders
HIT_ROWS = 8  # of a picture beside a hit
LOCAL = ("localhost", "127.0.0.1", "[::1]")

HELP = "Find, show and add screenshots, and manage the data of the service on this machine."
HELP_ALONE = "Find, show and add screenshots in a Snaplore. Begin with `login`."


class Beside(NamedTuple):
    """The service that this client is installed beside."""

    commands: Mapping[str, click.Command]
    context: object  # by which Flask's commands find their application
    login: Callable[[], Login]  # with the owner's key, as the service's own commands find it


class CommandLine(Group):
    """The client's commands, and those of the service beside it."""

    def __init__(self, beside: Callable[[], Beside] | None = None):
        super().__init__(NAME.lower(), commands=COMMANDS, help=HELP if beside else HELP_ALONE)
        self.beside = functools.cache(beside) if beside else None

    def list_commands(self, ctx: click.Context) -> list[str]:
        self._load(ctx)
        return super().list_commands(ctx)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.commands:
            self._load(ctx)
        return super().get_command(ctx, cmd_name)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command. Ctrl+C ends it with the exit code that shells expect."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            click.echo("Stopped.", err=True)
            ctx.exit(INTERRUPTED)

    def _load(self, ctx: click.Context) -> None:
        if self.beside is not None:
            loaded = self.beside()
            self.commands = {**loaded.commands, **self.commands}
            ctx.obj = loaded.context


def run(beside: Callable[[], Beside] | None = None) -> None:
    """Run the command in the arguments of the process. `beside` loads the service on this machine."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="replace")  # type: ignore[union-attr]  # for terminals without UTF-8
    command_line = CommandLine(beside)
    click.version_option(VERSION, prog_name=NAME, message="%(prog)s %(version)s")(command_line)
    command_line.main(prog_name=command_line.name)


# -------------------------------------------------------------------------------------------------- finding


@click.command()
@connected
@click.argument("query", nargs=-1, required=True)
@click.option("--limit", type=Number(1, 100), default=10, show_default=True, help="The most hits.")
@click.option("--pictures", "with_pictures", is_flag=True, help="Draw each one, in a terminal that can.")
@with_reveal
@with_json
def search(
    service: Service,
    query: tuple[str, ...],
    limit: int,
    with_pictures: bool,
    reveal: bool,
    as_json: bool,
) -> None:
    """Find screenshots, the best first.

    QUERY has words, "phrases" and operators, which are those of the dashboard, like app:Mail after:2026-06.
    Put words that begin with a minus into quotes with another: "hotel -berlin".
    """
    found = service.get("/api/search", q=" ".join(query), limit=limit)
    if as_json:
        click.echo(texts.as_json(found))
        return
    hits = showing.dicts(found, "items")
    for near_miss in showing.near_misses(found) if hits else ():
        click.echo(near_miss, err=True)
    for hit in hits:
        showing.print_hit(hit, revealed=reveal)
        if with_pictures and (reveal or not showing.sensitive(hit)):
            showing.draw(service, hit, HIT_ROWS)
    total = found.get("total")
    if not hits:
        near = ", ".join(texts.safe(word.get("word")) for word in showing.dicts(found, "nearest"))
        click.echo(f"Nothing found.{f' Words that exist: {near}.' if near else ''}", err=True)
    elif isinstance(total, int) and total > len(hits):
        click.echo(f"{len(hits)} of {total}; --limit shows more.", err=True)


@click.command()
@connected
@click.argument("photo_id", metavar="ID", type=Number(min=0))
@click.option("--picture/--no-picture", default=True, help="Draw it, in a terminal that can.")
@click.option(
    "--save", type=click.Path(dir_okay=False), help="Write the original to a new file; - is stdout."
)
@with_reveal
@with_json
def show(
    service: Service, photo_id: int, picture: bool, save: str | None, reveal: bool, as_json: bool
) -> None:
    """Show a screenshot, its picture and its text.

    The picture is drawn by kitty, Ghostty, Konsole, iTerm2, WezTerm and mintty.
    """
    place = f"/api/photos/{photo_id}"
    if save == "-":
        sys.stdout.buffer.write(service.picture(f"{place}/image"))
        return
    photo = service.get(place)
    if save:
        _save(Path(save), service.picture(f"{place}/image"))
    if as_json:
        click.echo(texts.as_json(photo))
        return
    showing.print_photo(photo, revealed=reveal)
    if picture and (reveal or not showing.sensitive(photo)):
        showing.draw(service, photo, max(10, min(30, shutil.get_terminal_size().lines - 8)))
    if reveal or not showing.sensitive(photo):
        for line in texts.lines(photo.get("text")):
            click.echo(line)


@click.command()
@connected
@click.option("--since", default="", help="A day or a time, like 2026-11-22. [default: today]")
@click.option("--until", default="", help="A day or a time.")
@with_reveal
@with_json
def agenda(service: Service, since: str, until: str, reveal: bool, as_json: bool) -> None:
    """List what is due, by day.

    These are the events, deadlines and journeys that screenshots name.
    """
    found = service.get("/api/agenda", since=since or date.today().isoformat(), until=until)
    if as_json:
        click.echo(texts.as_json(found))
        return
    items = showing.dicts(found, "items")
    showing.print_agenda(items, revealed=reveal)
    if not items:
        click.echo("Nothing is due.", err=True)


@click.command()
@connected
@click.option("--type", "types", multiple=True, help="Only these, like Receipt; may repeat.")
@click.option("--since", default="", help="The first day, like 2026-11-01.")
@click.option("--until", default="", help="The last day.")
@click.option("--seller", default="", help="Who it is from: a shop, a carrier, a bank.")
@click.option("--limit", type=Number(1, 100), default=20, show_default=True, help="The most rows.")
@click.option("--csv", "as_csv", is_flag=True, help="Print all of them as a table for spreadsheets.")
@with_reveal
@with_json
def records(
    service: Service,
    types: tuple[str, ...],
    since: str,
    until: str,
    seller: str,
    limit: int,
    as_csv: bool,
    reveal: bool,
    as_json: bool,
) -> None:
    """List what screenshots say: receipts, bills, parcels, trips, with sums.

    --csv has every field, also what is sensitive.
    """
    wanted: dict[str, Any] = {"type": types, "since": since, "until": until, "seller": seller}
    if as_csv:
        table = service.table("/api/records.csv", **wanted)
        if sys.stdout.isatty():
            click.echo(texts.as_table(table))
        else:
            sys.stdout.buffer.write(table)
        return
    found = service.get("/api/records", **wanted, page_size=limit)
    if as_json:
        click.echo(texts.as_json(found))
        return
    showing.print_records(found, revealed=reveal)
    total, shown = found.get("total"), len(showing.dicts(found, "records"))
    if not shown:
        click.echo("Nothing found.", err=True)
    elif isinstance(total, int) and total > shown:
        click.echo(f"{shown} of {total}; --limit shows more, and --csv all.", err=True)


# --------------------------------------------------------------------------------------------------- adding


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

    Those that are there already are recognised by their content, so a run that was stopped can be repeated.
    What was added is listed with its id. A file that fails does not stop the others, and makes the exit code
    1. In folders, hidden files, links and what is no picture by its name are skipped.
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


# ------------------------------------------------------------------------------------------------ logging in


@click.command()
@click.argument("url")
@click.argument("code", required=False)
@click.option(
    "--ca",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The certificate of the service's authority, a PEM file.",
)
@click.option("--fingerprint", "expected", help="Its SHA-256, as `./snaplore tls status` prints it.")
def login(url: str, code: str | None, ca: Path | None, expected: str | None) -> None:
    """Remember a service, and a token for it.

    URL is its address, or the link that pairing shows. CODE is a pairing code, from the dashboard (Settings,
    Devices) or from `./snaplore pair`. Without one, the code or a token is asked for, or read from stdin.
    """
    if code and code.startswith("snp_"):
        raise click.UsageError("Others on this machine can read arguments: leave the token out, and type it.")
    address, code_in_url = logins.address(url)
    authority = _trusted(address, pem(ca), expected)
    given = code or code_in_url or _asked()
    token = given
    if not given.startswith("snp_") and len("".join(filter(str.isalnum, given))) == 8:
        name = platform.node() or "terminal"
        redeeming = Service(Login(address, "", authority))
        redeemed = redeeming.post("/api/pairing/redeem", {"code": given[:64], "device_name": name[:100]})
        token = str(redeemed.get("token"))
    made = Login(address, logins.usable(token), authority)
    Service(made).check()
    file = logins.store(made, os.environ)
    click.echo(f"Logged in to {address}. The token is in {texts.safe(str(file))}.", err=True)
    if address.startswith("http://") and not address.removeprefix("http://").startswith(LOCAL):
        click.echo("This is plain http: others in its network can read what is sent.", err=True)


@click.command()
def logout() -> None:
    """Forget the remembered service. Its token stays valid until you revoke it there (Settings, Devices)."""
    if not logins.forget(os.environ):
        click.echo("No login was stored.", err=True)


def _trusted(address: str, pem: str, expected: str | None) -> str:
    """The authority that the service's certificate is held against, PEM; empty: those of the system. A person
    is asked where neither knows it. Raises `Failed`.
    """
    if pem or not address.startswith("https://"):
        return pem
    if expected is None:
        try:
            Service(Login(address, "")).get("/api/health")
            return ""
        except Untrusted:
            if not (sys.stdin.isatty() and sys.stderr.isatty()):
                raise
    offered = offered_authority(address)
    found = fingerprint(offered)
    if expected is None:
        click.echo(f"{address} has an authority of its own, with the SHA-256 fingerprint\n{found}", err=True)
        if not click.confirm("Does `./snaplore tls status` show the same one?", err=True):
            raise Failed("Not logged in.")
    elif _digits(expected) != _digits(found):
        raise Failed(f"The service's authority has another fingerprint: {found}")
    return offered


def _digits(fingerprint: str) -> str:
    return "".join(filter(str.isalnum, fingerprint)).upper()


def _asked() -> str:
    """A code or token: typed without being shown, or the first line of stdin."""
    if sys.stdin.isatty():
        typed: str = click.prompt("Code or token", hide_input=True, err=True)
        return typed.strip()
    return sys.stdin.readline(1_000).strip()


def _save(file: Path, picture: bytes) -> None:
    try:
        with file.open("xb") as made:
            made.write(picture)
    except FileExistsError:
        raise Failed(f"{file} exists already.") from None
    except OSError as problem:
        raise Failed(f"{file} cannot be written: {problem.strerror}.") from None


COMMANDS = [search, show, add, agenda, records, *managing.COMMANDS, login, logout]
