"""How gunicorn runs Snaplore: `gunicorn` alone, from the project's folder, starts the service."""

import contextlib
import ctypes
import errno
import gc
import logging
import os
import resource
import socket
import sys

from gunicorn import systemd, util

from errors import StartRefused
from locks import ServiceLock
from settings import NAME, Settings

try:
    _settings = Settings.from_environ(os.environ)
except StartRefused as refusal:
    sys.exit(f"{NAME} cannot start: {refusal}")

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")

# glibc keeps what was freed for each thread, ever larger blocks: 3 uploads of 50 MB then hold 400 MB. Bounded
# like this it keeps what an ordinary screenshot needs again, 10 MB, and gives the 16 MB blocks of Pillow's
# larger pictures back: 200 MB. Giving everything back at once would cost a sixth of the uploads' rate in page
# faults.
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # of glibc's malloc.h
_libc = ctypes.CDLL(None)
with contextlib.suppress(AttributeError):
    _libc.mallopt(M_MMAP_THRESHOLD, 12 * 1_048_576)
    _libc.mallopt(M_TRIM_THRESHOLD, 16 * 1_048_576)

# The usual limit of 1,024 descriptors is too low for 1,000 connections and the files of the database.
_soft, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
if 0 <= _soft < 4_096 and (_hard == resource.RLIM_INFINITY or _hard >= 4_096):
    resource.setrlimit(resource.RLIMIT_NOFILE, (4_096, _hard))

wsgi_app = "app:serve()"
bind = _settings.bind

# One worker: its threads share the rate limiter, the model's child process and the vocabulary in memory. More
# (`gunicorn -w 2`) stay correct, since work is claimed in the database, and then need
# SNAPLORE_RATELIMIT_STORAGE: README, "Several workers".
workers = 1
# Threads, and a poller that keeps slow clients out of them.
worker_class = "web.worker.Worker"
# Three uploads, a browser's six connections and a few chats at once; a thread costs its stack and a database
# connection.
threads = 16
# The most that gunicorn takes: a search or a broadcast may stand in the address, percent-encoded.
limit_request_line = 8_190
# An idle connection is for the client to close, and proxies and browsers do after a minute: a request that is
# on its way when the server closes is lost, and gunicorn's 2 s met one in some hundreds. It costs a
# descriptor, no thread.
keepalive = 75
# The application is loaded before the fork: a refusal to start is one line, and the pages are shared.
preload_app = True
# A request in flight and the analysis pool (15 s) end within it.
graceful_timeout = 30
# The control socket and the heartbeat file stay out of the disk.
worker_tmp_dir = "/dev/shm" if os.path.isdir("/dev/shm") else None  # noqa: S108
control_socket_disable = True


LOOP_PATIENCE = 3.0  # seconds; what a loop leaves undone is found by the next start
TIDY_EVERY = 60.0  # seconds


def on_starting(server):
    """One service for a data folder: two would each hold the other's rate limits, caches and model at half."""
    try:
        if server.cfg.is_ssl:
            raise StartRefused(
                "gunicorn's TLS (certfile, keyfile) is not supported: a slow handshake would block a "
                "thread. Use a reverse proxy, as docs/operations.md describes."
            )
        server.service_lock = ServiceLock(_settings.data_dir)
        _check_addresses(server)
    except StartRefused as refusal:
        sys.exit(f"{NAME} cannot start: {refusal}")
    if server.cfg.workers > 1 and _settings.ratelimit_storage.startswith("memory://"):
        logging.warning(
            "%d workers, each with a rate limit of its own: SNAPLORE_RATELIMIT_STORAGE names no shared one",
            server.cfg.workers,
        )


def _check_addresses(server):
    """Raise `StartRefused` when an address cannot be listened on. gunicorn itself would try five times and
    log ten lines.
    """
    # These sockets are open already, handed over by systemd or by the master that this one replaces.
    if systemd.listen_fds(unset_environment=False) or server.master_pid:
        return
    for name, address in zip(server.cfg.bind, server.cfg.address, strict=True):
        if not isinstance(address, tuple):  # a socket of Unix, or an open descriptor
            continue
        with socket.socket(socket.AF_INET6 if util.is_ipv6(address[0]) else socket.AF_INET) as trial:
            # As gunicorn sets them: an address that was closed a moment ago is free.
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, server.cfg.reuse_port)
            try:
                trial.bind(address)
            except OSError as problem:
                if problem.errno == errno.EADDRINUSE:
                    advice = "Stop the program that listens there, or set SNAPLORE_BIND to another address, like 127.0.0.1:8001."
                else:
                    advice = "Set SNAPLORE_BIND to an address of this machine and a port above 1023, like 127.0.0.1:8000."
                raise StartRefused(f"cannot listen on {name}: {problem.strerror}. {advice}") from None


def when_ready(server):
    """Print the address and the key, where `make run` asks for them by `--env`: only now it is certain that
    somebody listens.
    """
    if "SHOW_API_KEY" in server.cfg.env:
        import jobs

        print(jobs.hint(str(server.LISTENERS[0]), server.app.wsgi().api_key), flush=True)


def pre_fork(server, worker):
    """What is loaded by now stays for good: the collector would only copy the pages that the processes share,
    15 MB, by looking at it.
    """
    gc.collect()
    gc.freeze()


def post_worker_init(worker):
    """What works in the background starts in the worker, after the fork: threads do not survive one."""
    import analysis
    import dynamics
    from assistant import chat
    from loops import Loop

    worker.pool = analysis.Pool(_settings)
    worker.loops = [chat.reader(_settings), dynamics.reasoner(_settings), Loop("memory", _tidy)]
    for background in (worker.pool, *worker.loops):
        background.start()


def _tidy():
    """Give back what the last burst of requests has needed: connections with their caches, 4 MB each, and
    what lies free between them.
    """
    import database

    database.db.rest()
    with contextlib.suppress(AttributeError):
        _libc.malloc_trim(0)
    return TIDY_EVERY


def worker_exit(server, worker):
    """Finish or give back what is being analysed, end the model's child process, and leave a database without
    a log to be read first.
    """
    import database

    if hasattr(worker, "pool"):
        for loop in worker.loops:
            loop.stop()
        worker.pool.stop()
        for loop in worker.loops:
            loop.join(LOOP_PATIENCE)
    database.close_store()
