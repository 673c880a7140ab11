"""The check of what is stored in files: originals here and in a bucket, thumbnails, attachments, files that
no row names, and the certificate.
"""

import contextlib
import hashlib
from collections.abc import Callable
from typing import TypeVar

import database
import disk
import photos
import pictures
from assistant import turns
from buckets import away
from buckets.s3 import BucketAway, Listed
from errors import Unreadable
from models import ForgottenOriginal, Message, Photo
from settings import Settings, variable
from tls import authority
from upkeep import archive, orphans
from upkeep.findings import Kind, Orders, act, every_row

Row = TypeVar("Row", Photo, Message)


def look_at_certificate(kind: Kind, orders: Orders) -> None:
    """The certificate can be issued again; the CA cannot be recreated, because devices trust its key."""
    with database.scope():
        for problem in authority.problems(now=orders.now):
            is_repaired = orders.repair and problem.startswith("certificate")
            if is_repaired:
                authority.renew(now=orders.now, forced=True)
            else:
                kind.advice = "`./snaplore tls init --anew` makes a new CA, which every device has to install"
            kind.note(problem, repaired=is_repaired)


def look_at_pictures(originals: Kind, thumbnails: Kind, orders: Orders) -> None:
    for photo in every_row(Photo.select(), "pictures", orders):
        original = _confirmed(photo, _original_problem)
        if original:
            originals.note(
                f"photo {photo.id} ({photo.filename}) is {original}",
                repaired=orders.forget_lost and act(photos.delete, photo.id),
            )
        if (problem := _confirmed(photo, _thumbnail_problem)) and not (original and orders.forget_lost):
            repaired = orders.repair and not original and act(photos.make_thumbnail_anew, photo)
            thumbnails.note(f"the thumbnail of photo {photo.id} is {problem}", repaired=repaired)


def look_at_elsewhere(settings: Settings, kind: Kind, orders: Orders) -> None:
    """Each original that is only in the bucket is there, with its size, and nothing else is."""
    source = away.bucket(settings)
    there = Photo.select().where(Photo.away > away.HERE)
    if source is None:
        with database.scope():
            number = photos.sizes().away
        kind.note(f"{number} originals are in a bucket, and {variable('originals')} does not name one")
        return

    def unnamed(listed: Listed) -> None:
        with database.scope():
            named = there.where(Photo.original_path == listed.name).exists()
            known = ForgottenOriginal.select().where(ForgottenOriginal.path == listed.name).exists()
        if not named and not known:  # what was forgotten is deleted when originals are moved
            is_repaired = orders.repair and not archive.is_kept_aside(database.store().folder)
            if is_repaired:
                source.delete(listed.name)
            kind.note(f"object {listed.name} belongs to no photo", repaired=is_repaired)

    with contextlib.closing(source):
        try:
            objects = archive.Ascending(source.listed("photos/"), unnamed)
            for photo in every_row(there, "bucket", orders, key=Photo.original_path):
                listed = objects.find(photo.original_path)
                here = database.store().folder / photo.original_path
                if here.exists() or (listed is not None and listed.size == photo.away_bytes):
                    continue
                with database.scope():
                    current = there.where(Photo.id == photo.id, Photo.original_path == photo.original_path)
                    is_named = current.exists()
                if is_named and source.size(photo.original_path) != photo.away_bytes:
                    repaired = orders.forget_lost and act(photos.delete, photo.id)
                    problem = "is lost" if listed is None else "is damaged"
                    kind.note(f"photo {photo.id} ({photo.filename}) {problem}", repaired=repaired)
            objects.end()
        except BucketAway as problem:
            kind.note(f"they cannot be checked now: {problem.detail}")


def look_at_attachments(kind: Kind, orders: Orders) -> None:
    for message in every_row(
        Message.select().where(Message.attachment_path.is_null(False)), "attachments", orders
    ):
        if problem := _confirmed(message, _attachment_problem):
            repaired = orders.forget_lost and act(turns.forget_picture, message.id)
            kind.note(f"the attachment of message {message.id} is {problem}", repaired=repaired)


def look_at_aside(kind: Kind, orders: Orders) -> None:
    """Files that were set aside although a row names them: their database is back."""
    folder = database.store().folder
    for path, place in orphans.asked_for():
        kind.note(f"{place.relative_to(folder)} is in {path.parents[2]}", repaired=orders.repair)
    if kind.wrong and orders.repair:
        orphans.bring_back()


def look_at_files(kind: Kind, orders: Orders) -> None:
    lost = orphans.found(orders.report, now=orders.now)
    kind.advice = orphans.too_many(lost)
    is_repaired = orders.repair and not kind.advice
    if is_repaired:
        orphans.set_aside(lost, now=orders.now)
    for path in lost:
        kind.note(f"{path.relative_to(database.store().folder)} belongs to no row", repaired=is_repaired)


def _confirmed(row: Row, problem_of: Callable[[Row], str]) -> str:
    """The problem with a row's file, empty if there is none. It is confirmed with a fresh copy of the row,
    which may have been deleted or may name another file by now.
    """
    if not problem_of(row):
        return ""
    with database.scope():
        current = type(row).get_or_none(type(row).id == row.id)
    return problem_of(current) if current is not None else ""


def _original_problem(photo: Photo) -> str:
    if photo.away and not (database.store().folder / photo.original_path).exists():
        return ""  # `look_at_elsewhere` looks for it
    return _file_problem(photo.original_path, photo.file_key, photo.sha256)


def _thumbnail_problem(photo: Photo) -> str:
    return _file_problem(photo.thumbnail_path, photo.thumbnail_key)


def _attachment_problem(message: Message) -> str:
    return _file_problem(message.attachment_path, message.attachment_key) if message.attachment_path else ""


def _file_problem(name: str, key: bytes | None, sha256: bytes | None = None) -> str:
    """The problem with a stored file, or "". The file is read, and so authenticated, to its end."""
    path = database.store().folder / name
    try:
        with disk.open_sealed(path, key) as file:
            # An unsealed thumbnail or attachment has no checksum: only its first bytes can be checked.
            intact = key is not None or sha256 is not None or pictures.recognised(file)
            file.seek(0)
            digest = hashlib.file_digest(file, "sha256").digest()
    except disk.DamagedFile:
        return "damaged"
    except Unreadable:
        return "unreadable" if path.exists() else "lost"
    except OSError as problem:
        return f"unreadable: {problem.strerror}"
    return "damaged" if not intact or sha256 not in (None, digest) else ""
