"""What all commands have in common: the application whose data they open, and failures in one line.

Each command opens its own short database scopes, so that it can run beside a busy service. No command starts
threads or analyses screenshots: the service finds what a command has queued.
"""

import functools
import os
from collections.abc import Callable
from typing import ParamSpec, Protocol, cast

import click
from flask import current_app
from flask.cli import with_appcontext

import database
from curation import retention
from settings import Settings
from terminal.service import Login
from tls import addresses, authority
from upkeep import rotation

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
    return f"{application().certificate.scheme}://{application().settings.bind}"


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


def sealed_in_words(sealed: rotation.SealedAnew, verb: str) -> str:
    left = f", {sealed.unreadable} could not be read and are unchanged" if sealed.unreadable else ""
    return f"{sealed.done} pictures and attachments {verb}{left}"
