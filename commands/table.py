"""All commands that a person or cron runs beside the service, as `./snaplore <command>` or
`flask --app app <command>`.
"""

import click

from commands.data import back_up, bring_back, check_data, import_folder, mend_dates
from commands.keys import keys, pair
from commands.serving import serve, service
from commands.tls import tls
from jobs import jobs
from settings import NAME, VERSION


@click.command("version")
def show_version() -> None:
    """Print the version of the service."""
    click.echo(f"{NAME} {VERSION}")


COMMANDS = (
    *(serve, service, import_folder, jobs, keys, tls, pair, back_up, bring_back, check_data),
    *(mend_dates, show_version),
)
