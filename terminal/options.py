"""What commands of the client have in common: the options that choose a service and the form of the output,
whole numbers, and help that is not cut.
"""

import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from terminal import logins
from terminal.failures import Failed
from terminal.service import Service

INTERRUPTED = 130  # the exit code of a program that Ctrl+C has ended


class Number(click.IntRange):
    """A whole number within its limits."""

    name = "whole number"


class Group(click.Group):
    """A group whose help has the whole first sentence of each command, where click cuts it."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        found = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        rows = [
            (name, command.get_short_help_str(limit=1_000))
            for name, command in found
            if command is not None and not command.hidden
        ]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


def connected(function: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that choose a service, and the service as its first argument."""

    @click.option("--url", default="", help="The service; else SNAPLORE_URL, the login, this machine.")
    @click.option(
        "--ca",
        envvar="SNAPLORE_CA_FILE",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="The certificate of the only authority to trust, a PEM file.",
    )
    @functools.wraps(function)
    def wrapped(url: str, ca: Path | None, **options: Any) -> None:
        beside = getattr(click.get_current_context().find_root().command, "beside", None)
        own = (lambda: beside().login()) if beside else None
        function(Service(logins.chosen(url, pem(ca), os.environ, own)), **options)

    return wrapped


def with_json(function: Callable[..., None]) -> Callable[..., None]:
    return click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")(function)


def with_reveal(function: Callable[..., None]) -> Callable[..., None]:
    return click.option("--reveal", is_flag=True, help="Show what is sensitive, too.")(function)


def with_dry_run(function: Callable[..., None]) -> Callable[..., None]:
    return click.option("--dry-run", is_flag=True, help="Only say what would be done.")(function)


def pem(file: Path | None) -> str:
    """The text of a certificate's file; empty without one. Raises `Failed`."""
    try:
        return file.read_text(errors="replace")[:1_000_000] if file else ""
    except OSError as problem:
        raise Failed(f"{file} cannot be read: {problem.strerror}.") from None
