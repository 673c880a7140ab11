"""The commands that run the service: in the foreground, and as a unit of the person's own systemd."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from dataclasses import fields
from datetime import datetime
from pathlib import Path

import click

from errors import BadInput, Unavailable
from jobs import application, command
from settings import INSTALLED, NAME, ROOT, Settings, variable
from upkeep import demo

UNITS = ("snaplore.service", "snaplore-jobs.service")
TEMPLATES = ROOT / "deploy" / "user"
# What the demo must not share with the person's own service.
_OF_DATA = [
    variable(name)
    for name in ("data_dir", "master_key_file", "originals", "watch", "encryption", "push_webhook_url")
]


@command(name="serve", opens=False)
@click.option("--quiet", is_flag=True, help="Do not print the address and the API key.")
@click.option(
    "--demo", "is_demo", is_flag=True, help="Show drawn screens of a made-up person instead of your own."
)
def serve(quiet: bool, is_demo: bool) -> None:
    """Run the service here, until Ctrl+C.

    It prints its address and its API key. The settings are variables SNAPLORE_... of the environment. With
    --demo, nothing can be changed, and everything is gone at the end.
    """
    arguments = [] if quiet else ["--env", "SHOW_API_KEY=1"]
    if is_demo:
        _demonstrate(arguments)
        return
    settings = application().settings
    # gunicorn looks for modules in its working directory, which must be none of the person's folders. Paths
    # that were relative to that folder are made absolute.
    os.environ.update(_variables(settings, paths_only=True))
    os.chdir(ROOT)
    os.execv(sys.executable, [sys.executable, "-m", "gunicorn", *arguments])  # noqa: S606 - needs no shell


def _demonstrate(arguments: list[str]) -> None:
    """Serve the drawn screens from a temporary folder, which is removed at the end."""
    with tempfile.TemporaryDirectory(prefix="snaplore-demo-") as made:
        drawn = Path(made, "screens")
        drawn.mkdir()
        environment = {name: value for name, value in os.environ.items() if name not in _OF_DATA}
        environment |= {variable("data_dir"): str(Path(made, "data")), variable("retention_days"): "0"}
        count = demo.draw(drawn, now=datetime.now())
        click.echo(f"Drew {count} screens; they are read now, which takes a minute or two.", err=True)
        importing = [sys.executable, str(ROOT / "snaplore"), "import", str(drawn)]
        device = ["--device-id", "demo_phone", "--device-name", "Mara's phone"]
        done = subprocess.run([*importing, *device], env=environment, stdout=subprocess.DEVNULL, check=False)
        if done.returncode:
            raise Unavailable("The screens of the demo could not be stored.")
        environment[variable("read_only")] = "true"
        serving = [sys.executable, "-m", "gunicorn", *arguments]
        with subprocess.Popen(serving, cwd=ROOT, env=environment) as process:
            # Ctrl+C reaches gunicorn, too, which ends by itself.
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.signal(signal.SIGTERM, lambda *_signal: process.terminate())
            process.wait()
    if process.returncode:
        raise SystemExit(process.returncode)


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
    secret = (variable(field.name) for field in fields(settings) if field.metadata["secret"])
    for name in (name for name in secret if os.environ.get(name, "").strip()):
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


def _systemctl(*arguments: str) -> None:
    """Call the systemd of the person. Raises `Unavailable` where there is none."""
    program = shutil.which("systemctl")
    if program is None:
        raise Unavailable("This machine has no systemd. Run `snaplore serve` by what starts programs here.")
    done = subprocess.run([program, "--user", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise Unavailable(f"systemctl --user {arguments[0]} failed: {done.stderr.strip()[:500]}")
