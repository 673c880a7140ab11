"""Sealed files and the key ring: what was written is read, and no alteration goes undetected."""

import io
import os
import secrets
import tempfile
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import crypto
import disk
from errors import StartRefused, Unreadable

SEALED_CHUNK = disk.CHUNK + 16
HEADER = 10
NOW = datetime(2026, 11, 21)


def seal(folder: Path, content: bytes, key: bytes | None, *, pieces: int = 7_000) -> Path:
    path = folder / secrets.token_hex(8)
    writer = disk.SealedWriter(path, key)
    for start in range(0, len(content), pieces):
        writer.write(content[start : start + pieces])
    writer.finish()
    return path


def unseal(path: Path, key: bytes | None) -> bytes:
    with disk.open_sealed(path, key) as reader:
        return reader.read()


edges = [0, 1, disk.CHUNK - 1, disk.CHUNK, disk.CHUNK + 1, 2 * disk.CHUNK, 3 * disk.CHUNK + 5]
sizes = st.one_of(st.sampled_from(edges), st.integers(0, 4 * disk.CHUNK))


@given(size=sizes, pieces=st.integers(1_000, 200_000))
def test_a_sealed_file_returns_what_was_written_in_pieces_of_any_size(size, pieces):
    with tempfile.TemporaryDirectory() as folder:
        content, key = os.urandom(size), crypto.new_key()
        path = seal(Path(folder), content, key, pieces=pieces)

        assert unseal(path, key) == content
        assert len(content) < 16 or content[:16] not in path.read_bytes()


@given(data=st.data(), size=sizes)
def test_a_reader_seeks_like_a_plain_file(data, size):
    with tempfile.TemporaryDirectory() as folder:
        content, key = os.urandom(size), crypto.new_key()
        plain = io.BytesIO(content)
        with disk.open_sealed(seal(Path(folder), content, key), key) as reader:
            for _ in range(8):
                offset, length = data.draw(st.integers(0, size + 10)), data.draw(st.integers(0, 100_000))
                assert reader.seek(offset) == plain.seek(offset)
                assert reader.read(length) == plain.read(length)
            assert reader.seek(0, io.SEEK_END) == size


@given(size=sizes, data=st.data())
def test_every_flipped_bit_is_detected(size, data):
    with tempfile.TemporaryDirectory() as folder:
        content, key = os.urandom(size), crypto.new_key()
        path = seal(Path(folder), content, key)
        sealed = bytearray(path.read_bytes())
        sealed[data.draw(st.integers(0, len(sealed) - 1))] ^= 1 << data.draw(st.integers(0, 7))
        path.write_bytes(sealed)

        with pytest.raises(Unreadable):
            unseal(path, key)


@given(size=sizes, data=st.data())
def test_every_cut_and_every_addition_is_detected(size, data):
    with tempfile.TemporaryDirectory() as folder:
        key = crypto.new_key()
        path = seal(Path(folder), os.urandom(size), key)
        sealed = path.read_bytes()
        boundaries = st.sampled_from(
            [HEADER + number * SEALED_CHUNK for number in range(size // disk.CHUNK + 1)]
        )
        cut = data.draw(
            st.one_of(boundaries, st.integers(0, len(sealed) - 1)).filter(lambda place: place < len(sealed))
        )
        for altered in (sealed[:cut], sealed + os.urandom(data.draw(st.integers(1, 2 * SEALED_CHUNK)))):
            path.write_bytes(altered)
            with pytest.raises(Unreadable):
                unseal(path, key)


@given(data=st.data())
def test_swapped_and_repeated_chunks_are_detected(data):
    with tempfile.TemporaryDirectory() as folder:
        key = crypto.new_key()
        path = seal(Path(folder), os.urandom(4 * disk.CHUNK), key)
        sealed = path.read_bytes()
        chunks = [sealed[HEADER + n * SEALED_CHUNK : HEADER + (n + 1) * SEALED_CHUNK] for n in range(4)]
        order = data.draw(
            st.lists(st.integers(0, 3), min_size=1, max_size=6).filter(lambda found: found != [0, 1, 2, 3])
        )
        path.write_bytes(sealed[:HEADER] + b"".join(chunks[n] for n in order))

        with pytest.raises(Unreadable):
            unseal(path, key)


def test_a_file_opens_with_no_other_key(tmp_path):
    path = seal(tmp_path, b"private", crypto.new_key())

    with pytest.raises(Unreadable):
        unseal(path, crypto.new_key())


def test_a_missing_file_is_unreadable_and_no_trace(tmp_path):
    with pytest.raises(Unreadable, match="cannot be opened"):
        disk.open_sealed(tmp_path / "gone", crypto.new_key())


def test_without_a_key_the_same_calls_write_a_plain_file(tmp_path):
    path = seal(tmp_path, b"plain", None)

    assert path.read_bytes() == b"plain"
    assert unseal(path, None) == b"plain"


def test_the_key_ring_survives_the_round_trip_and_hides_its_key(tmp_path):
    store = crypto.KeyStore(tmp_path, os.urandom(32))
    ring = crypto.new_key_ring(encrypted=True, now=NOW)
    store.write(ring)

    assert store.read() == ring
    assert ring.database_key not in b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert ring.database_key.hex() not in repr(ring)
    assert repr(ring.database_key) not in repr(ring)


@pytest.mark.parametrize("copy", ["ring.1", "ring.2"])
@pytest.mark.parametrize("harm", ["lost", "emptied", "flipped"])
def test_a_lost_or_damaged_copy_of_the_key_ring_is_replaced_from_the_other(tmp_path, copy, harm):
    store = crypto.KeyStore(tmp_path, os.urandom(32))
    ring = crypto.new_key_ring(encrypted=True, now=NOW)
    store.write(ring)
    path = tmp_path / copy
    whole = path.read_bytes()
    if harm == "lost":
        path.unlink()
    else:
        path.write_bytes(b"" if harm == "emptied" else whole[:-1] + bytes([whole[-1] ^ 1]))

    assert store.read() == ring
    store.heal()
    assert (tmp_path / "ring.1").stat().st_size == (tmp_path / "ring.2").stat().st_size == len(whole)


def test_the_newer_of_two_different_copies_counts(tmp_path):
    store = crypto.KeyStore(tmp_path, os.urandom(32))
    old = crypto.new_key_ring(encrypted=True, now=NOW)
    store.write(old)
    kept = (tmp_path / "ring.1").read_bytes()
    store.write(crypto.KeyRing(old.generation + 1, NOW, "database/next.db", os.urandom(32)))
    (tmp_path / "ring.1").write_bytes(kept)

    assert store.read().database_file == "database/next.db"


def test_a_wrong_master_key_is_distinguished_from_a_changed_setting(tmp_path):
    crypto.KeyStore(tmp_path, os.urandom(32)).write(crypto.new_key_ring(encrypted=True, now=NOW))

    with pytest.raises(StartRefused, match="not the one it was made with"):
        crypto.KeyStore(tmp_path, os.urandom(32)).read()
    with pytest.raises(StartRefused, match="Set it to true"):
        crypto.KeyStore(tmp_path, None).read()


@pytest.mark.parametrize("form", ["hex", "hex with a line break", "base64", "raw"])
def test_a_master_key_file_may_be_written_in_the_usual_ways(tmp_path, form):
    import base64

    key = os.urandom(32)
    written = {
        "hex": key.hex().encode(),
        "hex with a line break": key.hex().encode() + b"\n",
        "base64": base64.b64encode(key),
        "raw": key,
    }
    (tmp_path / "key").write_bytes(written[form])

    assert crypto.read_master_key(tmp_path / "key") == key


@pytest.mark.parametrize("content", [b"", b"short", b"g" * 64, bytes(range(31))])
def test_a_damaged_master_key_is_refused_without_showing_it(tmp_path, content):
    (tmp_path / "key").write_bytes(content)

    with pytest.raises(StartRefused, match="damaged") as refusal:
        crypto.read_master_key(tmp_path / "key")
    assert not content or content.decode("latin-1") not in str(refusal.value)


def test_a_master_key_is_never_written_over_a_file(tmp_path):
    (tmp_path / "key").write_bytes(b"something")

    with pytest.raises(FileExistsError):
        crypto.make_master_key(tmp_path / "key")
    assert (tmp_path / "key").read_bytes() == b"something"
