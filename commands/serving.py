"""The commands that run the service: in the foreground, and as a unit of the person's own systemd."""

import os
import shutil
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import click

from errors import BadInput, Unavailable
from jobs import application, command
from settings import INSTALLED, NAME, ROOT, Settings, variable

UNITS = ("snaplore.service", "snaplore-jobs.service")
TEMPLATES = ROOT / "deploy" / "user"


@command(name="serve", opens=False)
@click.option("--quiet", is_flag=True, help="Do not print the address and the API key.")
def serve(quiet: bool) -> None:
    """Run the service here, until Ctrl+C.

    It prints its address and its API key. The settings are variables SNAPLORE_... of the environment.
    """
    run([] if quiet else ["--env", "SHOW_API_KEY=1"], application().settings)


def run(arguments: list[str], settings: Settings) -> None:
    """Replace this process by gunicorn, with these settings."""
    # gunicorn looks for modules in its working directory, which must be none of the person's folders. Paths
    # that were relative to that folder are made absolute.
    os.environ.update(_variables(settings, paths_only=True))
    os.chdir(ROOT)
    os.execv(sys.executable, [sys.executable, "-m", "gunicorn", *arguments])  # noqa: S606 - needs no shell


service = click.Group("service", help="Run the service all the time, by the systemd of your user.")


@command(service, name="install", opens=False)
@click.option("--start/--no-start", default=True, help="Start it now, and at each login.")
def install(start: bool) -> None:
    """Write the units of the service and of its jobs, and start them.

    Settings that are set in the environment now are written into them, except keys and passwords: put those
    into ~/.config/snaplore/environment. Run it again to change settings.
    """
    settings = application().settings
    folder = _folder()
    folder.mkdir(parents=True, exist_ok=True)
    for name in UNITS:
        template = (TEMPLATES / name).read_text(encoding="utf-8")
        (folder / name).write_text(_filled(template, settings), encoding="utf-8")
        click.echo(f"Wrote {folder / name}")
    for name in _secrets(settings):
        click.echo(f"{name} is secret and was left out: put it into ~/.config/snaplore/environment", err=True)
    if start:
        _systemctl("daemon-reload")
        _systemctl("enable", *UNITS)
        _systemctl("restart", *UNITS)
        click.echo(f"{NAME} runs. Its log: journalctl --user -u snaplore")
        click.echo("To start it at boot, before you log in: sudo loginctl enable-linger $USER")
    else:
        click.echo("Next: systemctl --user daemon-reload && systemctl --user enable --now " + " ".join(UNITS))


@command(service, name="uninstall", opens=False)
def uninstall() -> None:
    """Stop the service and remove its units. The data stays."""
    there = [name for name in UNITS if (_folder() / name).exists()]
    if not there:
        raise BadInput("No unit is installed.")
    _systemctl("disable", "--now", *there)
    for name in there:
        (_folder() / name).unlink()
    _systemctl("daemon-reload")
    click.echo(f"Removed. The data is still in {application().settings.data_dir}.")


def _folder() -> Path:
    """Where systemd reads the person's units, by the XDG Base Directory Specification."""
    named = os.environ.get("XDG_CONFIG_HOME", "")
    return (Path(named) if os.path.isabs(named) else Path.home() / ".config") / "systemd" / "user"


def _filled(template: str, settings: Settings) -> str:
    """A unit with this program and these settings."""
    program = Path(sys.prefix, "bin", NAME.lower()) if INSTALLED else ROOT / NAME.lower()
    lines = [f'Environment="{name}={_escaped(value)}"' for name, value in _variables(settings).items()]
    return template.replace("@PROGRAM@", f'"{_escaped(str(program))}"').replace(
        "@SETTINGS@", "\n".join(lines)
    )


def _escaped(value: str) -> str:
    """A value as it stands between double quotes in a unit (systemd.syntax, systemd.unit: specifiers)."""
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")


def _variables(settings: Settings, *, paths_only: bool = False) -> dict[str, str]:
    """The settings of the environment, without secrets and with absolute paths; or only the paths."""
    found = {}
    for field in fields(Settings):
        name, value = variable(field.name), getattr(settings, field.name)
        if field.metadata["secret"] or not os.environ.get(name, "").strip():
            continue
        if isinstance(value, Path):
            found[name] = str(value)
        elif field.name == "watch":
            found[name] = ", ".join(f"{device}={path}" if device else str(path) for device, path in value)
        elif not paths_only:
            found[name] = os.environ[name].strip()
    return found


def _secrets(settings: Settings) -> list[str]:
    names = [variable(field.name) for field in fields(settings) if field.metadata["secret"]]
    return [name for name in names if os.environ.get(name, "").strip()]


def _systemctl(*arguments: str) -> None:
    """Call the systemd of the person. Raises `Unavailable` where there is none."""
    program = shutil.which("systemctl")
    if program is None:
        raise Unavailable("This machine has no systemd. Run `snaplore serve` by what starts programs here.")
    done = subprocess.run([program, "--user", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise Unavailable(f"systemctl --user {arguments[0]} failed: {done.stderr.strip()[:500]}")
