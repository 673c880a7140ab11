"""HEIC and AVIF pictures: recognised by their bytes, and decoded in a process of its own for each picture.

Both are containers (HEIF) around a video codec, and their decoders are large native programs with a history
of holes. So they never run in the service: a picture goes through a pipe to a child process, and pixels come
back. A crash, a hang or a bomb costs nobody but that upload. The child gets no settings, no keys and no
variables. It has limits of memory and processor time, and before it reads the first byte it gives up the
right to open anything: without a free file descriptor there is no file and no network. What it answers is
checked as if a stranger had sent it: two numbers, a time and plain pixels.

The child is `python -m pictures`: it turns and reduces what it has decoded with the code that all formats
share, which is why `serve` is given that as a function. libheif (pi_heif) decodes HEIC, and Pillow's libavif
AVIF. The child starts in about 0.2 seconds, which an upload can afford; a pool of waiting ones would keep
memory that an idle service does not need.
"""

import contextlib
import io
import os
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO, Literal, TypeVar

import msgspec
from msgspec import Meta

import colours
from errors import Unavailable, UnsupportedImage

if TYPE_CHECKING:
    from PIL import Image

Kind = Literal["HEIC", "AVIF"]

# The brands of still pictures and of sequences, of which only the first picture is used (ISO 23008-12, annex
# B; the AVIF specification). The general ones, mif1 and msf1, name no codec; one that does follows them.
_BRANDS: dict[bytes, Kind] = {
    **dict.fromkeys((b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"hevm", b"hevs"), "HEIC"),
    **dict.fromkeys((b"avif", b"avis"), "AVIF"),
}
HEAD = 256  # bytes in which the brands are looked for

CHILD = (sys.executable, "-m", "pictures")
ROOT = Path(__file__).resolve().parent  # where `-m` finds the program
# One allocator arena: each would reserve 64 MB of the address space, which is limited.
ENVIRONMENT = {"PATH": os.defpath, "LC_ALL": "C.UTF-8", "MALLOC_ARENA_MAX": "1"}
CHUNK = 256 * 1024
STRIP_PIXELS = 1_000_000  # of the pixels that come back at once
MAX_MESSAGE = 4_096

# What one picture may take. The largest permitted one, 50 megapixels, takes half of it, and some 5 seconds of
# a desktop's processor.
MEMORY = 1_024 * 1024 * 1024  # bytes of address space
CPU_SECONDS = 40
# Only an overloaded machine lets so much time pass before the processor's limit ends the child.
SECONDS = 90.0
ENDING_SECONDS = 1.0  # in which a child that has closed its pipe ends
CHILDREN = 2  # at once, in each process; there are few cores
PATIENCE = 20.0  # seconds that a request waits for its turn before it answers 503

_turns = threading.BoundedSemaphore(CHILDREN)

Side = Annotated[int, Meta(ge=1, le=1_000_000)]


class Header(msgspec.Struct):
    """What the child has read before it decodes: the upright size, and when it was taken, by EXIF."""

    width: Side = 1
    height: Side = 1
    taken: Annotated[str, Meta(max_length=64)] = ""
    taken_offset: Annotated[str, Meta(max_length=64)] = ""
    problem: Literal["", "damaged", "no decoder"] = ""


class Pixels(msgspec.Struct):
    """The size of the picture whose pixels follow, three bytes each."""

    width: Side = 1
    height: Side = 1
    problem: Literal["", "damaged"] = ""


Message = TypeVar("Message", Header, Pixels)


def kind_of(picture: BinaryIO) -> Kind | None:
    """Whether this is a HEIC or AVIF file, by its first bytes. The rest may still be damaged."""
    picture.seek(0)
    head = picture.read(HEAD)
    if head[4:8] != b"ftyp":
        return None
    end = min(int.from_bytes(head[:4], "big"), len(head))
    brands = [head[8:12], *(head[place : place + 4] for place in range(16, end - 3, 4))]
    return next((_BRANDS[brand] for brand in brands if brand in _BRANDS), None)


@contextlib.contextmanager
def opened(picture: BinaryIO, kind: Kind, *, patience: float | None = PATIENCE) -> Iterator["Decoder"]:
    """A decoder that has read the header of `picture`. It ends with the context.

    Raises `UnsupportedImage` for a picture that is damaged or asks too much, and `Unavailable` when others
    are decoded for `patience` seconds, or the machine cannot decode at the moment. An error of reading
    `picture` itself is passed on.
    """
    if not _turns.acquire(timeout=patience):
        raise Unavailable("Other pictures are being read. Please come again in a moment.", retry_after=10)
    try:
        decoder = Decoder(kind)
        try:
            decoder.send(picture)
            yield decoder
        finally:
            decoder.end()
    finally:
        _turns.release()


class Decoder:
    """The child that decodes one picture, from this side."""

    header: Header

    def __init__(self, kind: Kind):
        self._late = False
        try:
            self._child = subprocess.Popen(
                [*CHILD, kind],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd=ROOT,
                env=ENVIRONMENT,
                start_new_session=True,  # Ctrl-C is meant for the service, which may want to finish first
            )
        except OSError as problem:  # no memory, no process left
            raise Unavailable(
                f"The picture cannot be decoded at the moment: {problem.strerror}.", retry_after=30
            ) from None
        if self._child.stdin is None or self._child.stdout is None:
            raise AssertionError("the child is started with both pipes")
        self._to, self._from = self._child.stdin, self._child.stdout
        self._timer = threading.Timer(SECONDS, self._give_up)
        self._timer.daemon = True
        self._timer.start()

    def send(self, picture: BinaryIO) -> None:
        """Copy `picture` to the child, chunk by chunk as it is decrypted, and read the header."""
        length = picture.seek(0, io.SEEK_END)
        picture.seek(0)
        with self._failures():
            self._to.write(length.to_bytes(8, "big"))
        while chunk := picture.read(CHUNK):
            with self._failures():
                self._to.write(chunk)
        with self._failures():
            self._to.flush()
            self.header = self._message(Header)
        if self.header.problem == "no decoder":
            raise UnsupportedImage("file: this installation has no decoder for pictures of this type")
        _check(self.header.problem)

    def image(self, side: int = 0) -> "Image.Image":
        """The upright picture in sRGB, transparency on white, with a long side of at most `side` pixels, or
        its own size for 0. Raises as `opened` does.
        """
        from PIL import Image

        with self._failures():
            self._to.write(side.to_bytes(4, "big"))
            self._to.flush()
            made = self._message(Pixels)
            _check(made.problem)
            as_it_is = (made.width, made.height) == (self.header.width, self.header.height)
            if not as_it_is and max(made.width, made.height) > side:
                raise EOFError
            image = Image.new("RGB", (made.width, made.height))
            for top, bottom in _strips(made.width, made.height):
                size = made.width, bottom - top
                data = self._from.read(3 * size[0] * size[1])
                if len(data) != 3 * size[0] * size[1]:
                    raise EOFError
                image.paste(Image.frombytes("RGB", size, data), (0, top))
            return image

    def end(self) -> None:
        """End the child, which holds nothing worth saving."""
        self._timer.cancel()
        self._child.kill()
        self._child.wait()
        for pipe in (self._to, self._from):
            with contextlib.suppress(OSError):  # what was not sent yet
                pipe.close()

    def _give_up(self) -> None:
        self._late = True
        self._child.kill()

    @contextlib.contextmanager
    def _failures(self) -> Iterator[None]:
        """Turn the end of the child, or an answer that it should not give, into a failure of this picture."""
        try:
            yield
        except (BrokenPipeError, EOFError, msgspec.DecodeError, msgspec.ValidationError, UnicodeDecodeError):
            code = self._ended()
            if self._late:
                raise Unavailable(
                    "Decoding the picture took too long. Please come again later.", retry_after=60
                ) from None
            if code == -signal.SIGKILL:  # by the kernel: the picture alone would have met its own limit
                raise Unavailable(
                    "The machine has no memory for decoding the picture. Please come again later.",
                    retry_after=60,
                ) from None
            reason = "it takes too long" if code == -signal.SIGXCPU else "the decoder failed"
            raise UnsupportedImage(f"file: the picture cannot be decoded ({reason})") from None

    def _ended(self) -> int:
        """The exit code of the child. One that goes on after a wrong answer is ended."""
        try:
            return self._child.wait(ENDING_SECONDS)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()
            return 0

    def _message(self, kind: type[Message]) -> Message:
        length = int.from_bytes(self._from.read(4), "big")
        if not 0 < length <= MAX_MESSAGE:
            raise EOFError
        return msgspec.json.decode(self._from.read(length), type=kind)


def _check(problem: str) -> None:
    if problem:
        raise UnsupportedImage("file: the picture is damaged or cut off")


def _strips(width: int, height: int) -> Iterator[tuple[int, int]]:
    """The rows of a picture in pieces of about `STRIP_PIXELS`."""
    rows = max(1, STRIP_PIXELS // width)
    return ((top, min(top + rows, height)) for top in range(0, height, rows))


# -------------------------------------------------------------------------------------------------- the child

# Makes an image upright, RGB, without transparency, and at most so many pixels long (0: as it is).
Rendering = Callable[["Image.Image", int], "Image.Image"]


def serve(kind: str, rendered: Rendering) -> None:
    """Decode the picture on standard input, once: the program of the child.

    It reads 8 bytes of length and the file, and answers with a `Header`; it reads the side, 4 bytes, and
    answers with `Pixels` and the pixels.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # meant for the service, which ends this process itself
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as score:
        score.write("1000")  # if memory runs out, the kernel kills this process first
    source, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # nothing that a library prints gets between the answers

    def send(message: msgspec.Struct) -> None:
        body = msgspec.json.encode(message)
        answers.write(len(body).to_bytes(4, "big") + body)
        answers.flush()

    try:
        opener = _avif() if kind == "AVIF" else _heic()
        _rehearse(rendered)
    except ImportError:
        send(Header(problem="no decoder"))
        return
    _give_up_rights()
    content = source.read(int.from_bytes(source.read(8), "big"))
    try:
        header, load = opener(content)
        if min(header.width, header.height) < 1:
            raise ValueError("the picture has no size")
        send(header)
    except Exception:  # decoders raise anything for damaged pictures
        send(Header(problem="damaged"))
        return
    wanted = source.read(4)
    if len(wanted) < 4:  # only the header was of interest
        return
    try:
        image = load()
        in_srgb = colours.conversion(content, image.info.get("icc_profile"))
        image = in_srgb(rendered(image, int.from_bytes(wanted, "big")))
    except Exception:
        send(Pixels(problem="damaged"))
        return
    send(Pixels(*image.size))
    for top, bottom in _strips(*image.size):
        answers.write(image.crop((0, top, image.width, bottom)).tobytes())
    answers.flush()


Opened = tuple[Header, Callable[[], "Image.Image"]]


def _heic() -> Callable[[bytes], Opened]:
    import pi_heif
    from PIL import Image

    pi_heif.options.THUMBNAILS = pi_heif.options.DEPTH_IMAGES = pi_heif.options.AUX_IMAGES = False
    pi_heif.options.DECODE_THREADS = 2

    def opener(content: bytes) -> Opened:
        file = pi_heif.open_heif(content, convert_hdr_to_8bit=True)
        primary = file[file.primary_index]
        width, height = primary.size
        exif = Image.Exif()
        with contextlib.suppress(Exception):  # metadata that cannot be read is as good as none
            exif.load(primary.info.get("exif") or b"")

        def load() -> "Image.Image":
            data = primary.data  # decodes it, and may change its size
            image = Image.frombytes(primary.mode, primary.size, data, "raw", primary.mode, primary.stride)
            if image.size != (width, height):
                raise ValueError("the picture has another size than its header says")
            # The container says how to turn the picture, and libheif has done so. What EXIF data says beside
            # it is not to be applied (ISO 23008-12).
            image.info = {"icc_profile": primary.info.get("icc_profile")}
            return image

        return _header(exif, width, height), load

    return opener


def _avif() -> Callable[[bytes], Opened]:
    from PIL import AvifImagePlugin, features

    if not features.check("avif"):
        raise ImportError("Pillow without libavif")
    AvifImagePlugin.DEFAULT_MAX_THREADS = 2

    def opener(content: bytes) -> Opened:
        image = AvifImagePlugin.AvifImageFile(io.BytesIO(content))
        width, height = image.size
        # Pillow has put the container's way of turning into the EXIF data.
        if image.getexif().get(0x0112, 1) >= 5:
            width, height = height, width

        def load() -> "Image.Image":
            image.load()
            return image

        return _header(image.getexif(), width, height), load

    return opener


def _header(exif: "Image.Exif", width: int, height: int) -> Header:
    header = Header(width, height)
    with contextlib.suppress(Exception):  # as above
        found = exif.get_ifd(0x8769)
        header.taken, header.taken_offset = str(found.get(0x9003, ""))[:64], str(found.get(0x9011, ""))[:64]
    return header


def _rehearse(rendered: Rendering) -> None:
    """Import whatever a picture may need: later, no file can be opened."""
    from PIL import Image, ImageCms

    described = Image.Exif()
    described[0x0112] = 1
    read = Image.Exif()
    read.load(described.tobytes())
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    for mode in ("RGB", "RGBA", "LA"):
        colours.in_srgb(rendered(Image.new(mode, (2, 2)), 1), profile)


def _give_up_rights() -> None:
    """From here on, this process can only compute: see the module's docstring."""
    limits = {
        "RLIMIT_AS": (MEMORY, MEMORY),
        "RLIMIT_CPU": (CPU_SECONDS, CPU_SECONDS + 5),  # SIGXCPU, and SIGKILL five seconds later
        "RLIMIT_FSIZE": (0, 0),
        "RLIMIT_CORE": (0, 0),
        "RLIMIT_NOFILE": (0, 0),
    }
    for name, limit in limits.items():
        with contextlib.suppress(OSError, ValueError):  # a system that does not know one still has the others
            resource.setrlimit(getattr(resource, name), limit)
