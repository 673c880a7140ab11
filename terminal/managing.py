"""The client's commands that change or fetch what is stored: tags, keeping, the trash, an export; how the
service is; and its tokens.
"""

import contextlib
import sys
from pathlib import Path

import click

from terminal import showing, texts
from terminal.failures import Failed
from terminal.options import Number, connected, with_dry_run, with_json
from terminal.service import Service

AT_ONCE = 500  # photos that the service changes in one call

_IDS = click.argument("photo_ids", metavar="ID...", nargs=-1, required=True, type=Number(min=1))


@click.command()
@connected
@click.argument("name", metavar="TAG")
@_IDS
@click.option("--remove", is_flag=True, help="Take the tag away instead.")
@with_dry_run
@with_json
def tag(
    service: Service, name: str, photo_ids: tuple[int, ...], remove: bool, dry_run: bool, as_json: bool
) -> None:
    """Give screenshots a tag, or take it away."""
    words = ("would lose" if dry_run else "lost") if remove else ("would get" if dry_run else "got")
    _change(
        service,
        photo_ids,
        "untag" if remove else "tag",
        f"{words} the tag {name}",
        dry_run,
        as_json,
        tag=name,
    )


@click.command()
@connected
@_IDS
@click.option("--undo", is_flag=True, help="Let retention delete them again.")
@with_dry_run
@with_json
def keep(service: Service, photo_ids: tuple[int, ...], undo: bool, dry_run: bool, as_json: bool) -> None:
    """Keep screenshots, whatever the retention period is."""
    words = "would be" if dry_run else "are"
    done = f"{words} kept no longer" if undo else f"{words} kept"
    _change(service, photo_ids, "unkeep" if undo else "keep", done, dry_run, as_json)


@click.command()
@connected
@_IDS
@click.option("--undo", is_flag=True, help="Bring them back from the trash.")
@click.option("--for-good", is_flag=True, help="Delete them at once and for good; asks first.")
@click.option("--yes", is_flag=True, help="With --for-good: do not ask.")
@with_dry_run
@with_json
def delete(
    service: Service,
    photo_ids: tuple[int, ...],
    undo: bool,
    for_good: bool,
    yes: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Move screenshots to the trash, from which they come back for 30 days."""
    if undo and for_good:
        raise click.UsageError("Give --undo or --for-good.")
    if undo:
        done = "would come back" if dry_run else "came back"
        _change(service, photo_ids, "restore", done, dry_run, as_json, looks=False)
    elif for_good:
        if not (dry_run or yes):
            click.confirm(f"Delete {len(set(photo_ids))} screenshots for good?", abort=True, err=True)
        _change(
            service, photo_ids, "delete", "would be deleted" if dry_run else "are deleted", dry_run, as_json
        )
    else:
        done = "would go to the trash" if dry_run else "went to the trash"
        _change(service, photo_ids, "trash", done, dry_run, as_json)


def _change(
    service: Service,
    photo_ids: tuple[int, ...],
    action: str,
    done: str,
    dry_run: bool,
    as_json: bool,
    *,
    looks: bool = True,
    tag: str = "",
) -> None:
    """Do one thing to photos, and print how many it was done to. A dry run looks at each instead."""
    ids = list(dict.fromkeys(photo_ids))
    changed = 0
    if dry_run:
        if looks:
            for photo_id in ids:
                service.get(f"/api/photos/{photo_id}")  # raises `Failed` where there is none
        changed = len(ids)
    else:
        for start in range(0, len(ids), AT_ONCE):
            body: dict[str, object] = {"ids": ids[start : start + AT_ONCE], "action": action}
            answer = service.post("/api/photos/batch", {**body, **({"tag": tag} if tag else {})})
            changed += _count(answer.get("done"))
    if as_json:
        click.echo(texts.as_json({"action": action, "ids": ids, "changed": changed, "dry_run": dry_run}))
    else:
        click.echo(f"{changed} of {len(ids)} screenshots {texts.safe(done)}.")


@click.command()
@connected
@with_json
def status(service: Service, as_json: bool) -> None:
    """Say whether the service answers, and how far it is."""
    found = service.get("/api/stats")
    if as_json:
        click.echo(texts.as_json({"url": service.login.url, **found}))
        return
    waiting = _count(found.get("pending")) + _count(found.get("processing"))
    click.echo(f"Service:     {texts.safe(service.login.url)}")
    click.echo(f"Screenshots: {_count(found.get('total_photos'))}, {_count(found.get('done'))} analysed")
    click.echo(f"Waiting:     {waiting}, {_count(found.get('errors'))} failed")


@click.command()
@connected
@click.argument("file", type=click.Path(dir_okay=False))
@click.option("--trash", is_flag=True, help="Also what is in the trash.")
def export(service: Service, file: str, trash: bool) -> None:
    """Write everything to a new zip of readable files; - is stdout.

    It needs the API key: a token may not do this.
    """
    path = f"/api/data/export{'?trash=true' if trash else ''}"
    if file == "-":
        service.download(path, sys.stdout.buffer)
        return
    place = Path(file)
    try:
        with place.open("xb") as made:
            size = service.download(path, made)
    except FileExistsError:
        raise Failed(f"{place} exists already.") from None
    except OSError as problem:
        place.unlink(missing_ok=True)
        raise Failed(f"{place} cannot be written: {problem.strerror}.") from None
    except BaseException:
        place.unlink(missing_ok=True)  # in part, it would look complete
        raise
    click.echo(f"{size / 1_048_576:.1f} MB in {texts.safe(str(place))}.", err=True)


@click.command()
@connected
@click.option("--revoke", type=Number(min=1), metavar="ID", help="Let the holder of this token in no longer.")
@with_json
def tokens(service: Service, revoke: int | None, as_json: bool) -> None:
    """List the tokens of devices and programs, or revoke one.

    It needs the API key: a token may not do this.
    """
    if revoke is not None:
        service.delete(f"/api/tokens/{revoke}")
        click.echo(f"The token {revoke} is revoked.", err=True)
        return
    found = service.get("/api/tokens")
    if as_json:
        click.echo(texts.as_json(found))
        return
    for one in showing.dicts(found, "tokens"):
        used = texts.local_time(one.get("last_used_at")) or "never"
        with contextlib.suppress(KeyError):
            shown = (texts.safe(one[name]) for name in ("scope", "name"))
            click.echo(f"{_count(one.get('id')):>4}  {'  '.join(shown)}  (used {used})")


def _count(value: object) -> int:
    """A number of an answer, which may be that of any server."""
    return value if isinstance(value, int) else 0


COMMANDS = [tag, keep, delete, status, export, tokens]
