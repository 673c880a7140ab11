"""gunicorn's configuration: `gunicorn` without arguments, in the project's folder, starts the service."""

import contextlib
import ctypes
import errno
import gc
import logging
import os
import re
import resource
import socket
import sys
from typing import Any

from gunicorn import systemd, util
from gunicorn.arbiter import Arbiter
from gunicorn.workers.base import Worker

from errors import StartRefused
from settings import NAME, Settings

try:
    _settings = Settings.from_environ(os.environ)
except StartRefused as refusal:
    sys.exit(f"{NAME} cannot start: {refusal}")

# Only the owner may read the files of the data folder, also where no systemd unit sets a umask.
os.umask(0o077)

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")

# glibc keeps freed memory for each thread, in ever larger blocks: after 3 uploads of 50 MB the process holds
# 400 MB. With these bounds it keeps the 10 MB that an ordinary screenshot needs again and returns the 16 MB
# blocks of Pillow's larger pictures, and holds 200 MB. Returning everything at once would cost a sixth of the
# upload rate in page faults.
# Two arenas, and not glibc's eight for each core: a quiet minute after three clients sent 170 screenshots it
# holds 85 MB instead of 118, as measured with these calls.
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8  # from glibc's malloc.h
_libc = ctypes.CDLL(None)
with contextlib.suppress(AttributeError):
    _libc.mallopt(M_MMAP_THRESHOLD, 12 * 1_048_576)
    _libc.mallopt(M_TRIM_THRESHOLD, 16 * 1_048_576)
    _libc.mallopt(M_ARENA_MAX, 2)

# The usual limit of 1,024 descriptors is too low for 1,000 connections and the files of the database.
_soft, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
if 0 <= _soft < 4_096 and (_hard == resource.RLIM_INFINITY or _hard >= 4_096):
    resource.setrlimit(resource.RLIMIT_NOFILE, (4_096, _hard))

wsgi_app = "app:serve()"
bind = _settings.address

# One worker, whose threads share the rate limiter, the model's child process and the vocabulary in memory.
# More workers (`gunicorn -w 2`) are correct, too, because claims are made in the database, but they need
# SNAPLORE_RATELIMIT_STORAGE: docs/operations.md, "Several workers".
workers = 1
# Threads, and a poller that keeps slow clients out of them.
worker_class = "web.worker.Worker"
# Its lines, also those of an access log, name no feed's secret address.
logger_class = "web.worker.Logger"
# Enough for three uploads, a browser's six connections and a few chats at once. A thread costs its stack and
# a database connection.
threads = 16
# gunicorn takes the headers SCRIPT_NAME and PATH_INFO from a proxy on this machine, and answers 500 with HTML
# where they do not fit the address. The service is at the root of its address, so they are dropped.
forwarder_headers = ""
# Only without encryption and TLS could a file go from the disk to the socket as it is.
sendfile = False
# gunicorn's maximum: an address may contain a whole search or broadcast, percent-encoded.
limit_request_line = 8_190
# The client should close an idle connection first; proxies and browsers do after a minute. A request that is
# sent while the server closes is lost: with gunicorn's default of 2 s that was one in some hundreds. An idle
# connection costs a descriptor, no thread.
keepalive = 75
# Load the application before the fork: a refusal to start is one line, and the processes share its memory.
preload_app = True
# Seconds; running requests and the analysis pool (15 s) end within them.
graceful_timeout = 30
# No control socket, and the heartbeat file is in memory, so neither touches the disk.
worker_tmp_dir = "/dev/shm" if os.path.isdir("/dev/shm") else None  # noqa: S108
control_socket_disable = True


LOOP_PATIENCE = 3.0  # seconds for a loop's last step; the next start finds unfinished work
TIDY_EVERY = 60.0  # seconds


def on_starting(server: Arbiter) -> None:
    """Refuse what this service cannot do. `app.serve` has made sure that it is the only one of its folder."""
    try:
        if server.cfg.is_ssl:
            raise StartRefused(
                "gunicorn's TLS (certfile, keyfile) is not supported: a slow handshake would block a "
                "thread. Use `./snaplore tls init` or a reverse proxy, as docs/operations.md describes."
            )
        _check_addresses(server)
    except StartRefused as refusal:
        sys.exit(f"{NAME} cannot start: {refusal}")
    if server.cfg.workers > 1 and _settings.ratelimit_storage.startswith("memory://"):
        logging.warning(
            "%d workers, each with a rate limit of its own: SNAPLORE_RATELIMIT_STORAGE is not shared",
            server.cfg.workers,
        )


def _check_addresses(server: Arbiter) -> None:
    """Raise `StartRefused` when the service cannot listen on an address.

    gunicorn itself would try five times and log ten lines.
    """
    # systemd, or the master that this one replaces, has passed open sockets.
    if systemd.listen_fds(unset_environment=False) or server.master_pid:
        return
    for name, address in zip(server.cfg.bind, server.cfg.address, strict=True):
        if not isinstance(address, tuple):  # a Unix socket or an open descriptor
            continue
        with socket.socket(socket.AF_INET6 if util.is_ipv6(address[0]) else socket.AF_INET) as trial:
            # As gunicorn does: an address that was closed a moment ago is free.
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, server.cfg.reuse_port)
            try:
                trial.bind(address)
            except OSError as problem:
                if problem.errno == errno.EADDRINUSE:
                    advice = (
                        "Stop the program that listens there, or set SNAPLORE_BIND to another address, like "
                        "127.0.0.1:8001."
                    )
                else:
                    advice = (
                        "Set SNAPLORE_BIND to an address of this machine and a port above 1023, like "
                        "127.0.0.1:8000."
                    )
                raise StartRefused(f"cannot listen on {name}: {problem.strerror}. {advice}") from None


def pre_fork(server: Arbiter, worker: Worker) -> None:
    """Exempt all objects loaded so far from garbage collection.

    They stay for good, and the collector's visits would copy the 15 MB that the processes share.
    """
    gc.collect()
    gc.freeze()


def post_worker_init(worker: Worker) -> None:
    """Start the background threads in the worker: threads do not survive a fork."""
    import meaning
    import reasoner
    from analysis.pool import Pool
    from assistant import recollection
    from clock import utc_now
    from loops import Loop
    from outlets import webhooks
    from tls import network
    from upkeep import watching

    certificate = worker.wsgi.certificate
    worker.certificate = certificate
    worker.pool = Pool(_settings)
    worker.loops = [recollection.reader(_settings), reasoner.loop(_settings), webhooks.loop(_settings)]
    worker.loops.append(Loop("memory", _tidy))
    if _settings.tls != "off":
        worker.loops.append(Loop("certificate", lambda: certificate.keep(now=utc_now())))
    if _settings.watch:
        worker.loops.append(watching.loop(_settings))
    if _settings.meaning != "off":
        worker.loops.append(meaning.loop(_settings))
        if _settings.embeddings:
            worker.loops.append(meaning.provider_loop(_settings))
    if (own := _network(worker)) is not None:
        worker.wsgi.extensions[network.CHOICE] = own
        if not own.fixed:
            worker.loops.append(own.loop())
    for background in (worker.pool, *worker.loops):
        background.start()
    if "SHOW_API_KEY" in worker.cfg.env and worker.age == 1:
        _show_address_and_key(worker)


def _network(worker: Worker) -> Any:
    """What may let the network in at run time: of a local service with a key and one worker."""
    from tls.network import Network

    names = [socket_.getsockname() for socket_ in worker.sockets]
    on_loopback = [name for name in names if isinstance(name, tuple) and name[0] in ("127.0.0.1", "::1")]
    if len(names) != 1 or not on_loopback or worker.cfg.workers > 1 or _settings.authentication_skipped:
        return None
    return Network(worker, names[0][1], fixed=_settings.bind is not None)


def _show_address_and_key(worker: Worker) -> None:
    """Print the address and the key, which `make run` requests by `--env SHOW_API_KEY`.

    This is the last step of the start, so that they are its last lines. They are printed and not logged.
    """
    import database
    from clock import utc_now
    from commands import keys
    from tls import network

    app = worker.wsgi
    listening = re.sub("^http:", f"{app.certificate.scheme}:", str(worker.sockets[0]))
    with database.scope():
        listening = network.seen(listening, now=utc_now())
    print(keys.hint(listening, app.api_key, _settings), flush=True)


def _tidy() -> float:
    """Release the memory of the last burst of requests, and return the seconds until the next run.

    It closes idle database connections, with page caches of 4 MB each, and trims the heap.
    """
    import database

    database.db.rest()
    with contextlib.suppress(AttributeError):
        _libc.malloc_trim(0)
    return TIDY_EVERY


def worker_exit(server: Arbiter, worker: Worker) -> None:
    """Finish or return running analyses, end the model's child process, and close the database.

    A closed database leaves no write-ahead log that the next start would have to read.
    """
    import database

    if hasattr(worker, "pool"):
        for loop in worker.loops:
            loop.stop()
        worker.pool.stop()
        for loop in worker.loops:
            loop.join(LOOP_PATIENCE)
    database.close_store()
