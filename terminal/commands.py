"""`snaplore` as a client: it searches, shows and adds screenshots, in a service on this machine or elsewhere.

It speaks the published API and nothing else, and needs no package but click: `make client` makes one file of
it that runs wherever Python does. Beside the service, `CommandLine` lists the service's own commands as well,
and loads them only when one is used, which takes seconds on a Raspberry Pi.

Results go to stdout and everything else to stderr. Exit codes: 0 done, 1 refused or failed, 2 wrong usage,
3 the service does not answer.
"""

import functools
import os
import platform
import shutil
import sys
from collections.abc import Callable, Mapping
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

import click

from settings import NAME, VERSION
from terminal import adding, logins, managing, showing, texts
from terminal.failures import Failed, Untrusted
from terminal.options import INTERRUPTED, Group, Number, connected, pem, with_json, with_reveal
from terminal.service import Login, Service, fingerprint, offered_authority

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
@click.option("--sort", default="", help="latest (default), earliest, highest, lowest, a_to_z or z_to_a.")
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
    sort: str,
    limit: int,
    as_csv: bool,
    reveal: bool,
    as_json: bool,
) -> None:
    """List what screenshots say: receipts, bills, parcels, trips, with sums.

    --csv has every field, also what is sensitive.
    """
    wanted: dict[str, Any] = {"type": types, "since": since, "until": until, "seller": seller, "sort": sort}
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
    """The authority (PEM) of the service's certificate, or "" for the system's. Raises `Failed`."""
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


COMMANDS = [search, show, adding.add, agenda, records, *managing.COMMANDS, login, logout]
