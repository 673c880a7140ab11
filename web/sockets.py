"""A client's socket: it keeps the end of an answer for a client that reads slowly, so that no thread waits,
and it speaks TLS, if the client does, without ever waiting for a handshake.

TLS runs in memory (`ssl.MemoryBIO`), not on the socket: received bytes are put in, and what is to be sent
comes out and waits with the rest of what is unsent. So a handshake is no state of its own: it goes on
whenever the poller calls `recv`, which reports that nothing has arrived until the first byte of the client's
request has. An `ssl.SSLSocket` can also need to write in order to read and the reverse, which no poller
expects.
"""

import contextlib
import errno
import os
import socket
import ssl
import time
from collections import deque
from collections.abc import Iterator

KILOBYTE = 1_024
PIECE = 64 * KILOBYTE  # read from a socket at once
# Of an answer that a client has not taken yet, this much is kept for the poller; for more, the thread waits.
# Every answer without the key fits, of which the dashboard's page is the largest (150 kB, shared by all).
MAX_UNSENT = 256 * KILOBYTE

CLIENT_HELLO = 0x16  # the first byte of a TLS connection; no HTTP request begins with it


class ClientSocket(socket.socket):
    """A client's socket. Sending does not wait for the client while at most MAX_UNSENT bytes are unsent.

    It belongs to one thread at a time.
    """

    def __init__(self, accepted: socket.socket) -> None:
        super().__init__(accepted.family, accepted.type, accepted.proto, fileno=accepted.detach())
        self._unsent: deque[memoryview] = deque()
        self._incoming = self._outgoing = ssl.MemoryBIO()
        self._tls: ssl.SSLObject | None = None
        self._has_ended = False

    @property
    def unsent(self) -> int:
        """Bytes."""
        return sum(map(len, self._unsent))

    @property
    def is_encrypted(self) -> bool:
        return self._tls is not None

    @property
    def has_more(self) -> bool:
        """Whether bytes have arrived that no `recv` has returned: the poller does not know of them."""
        return self._tls is not None and (self._tls.pending() > 0 or self._incoming.pending > 0)

    def begins_with_tls(self) -> bool | None:
        """Whether the client's first byte begins TLS; None while it has not arrived."""
        try:
            first = super().recv(1, socket.MSG_PEEK)
        except (BlockingIOError, InterruptedError):
            return None
        except OSError:
            return False
        return first[0] == CLIENT_HELLO if first else False

    def begin_tls(self, context: ssl.SSLContext) -> None:
        """Speak TLS from here on. Nothing has been read yet."""
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)

    def recv(self, bufsize: int, flags: int = 0) -> bytes:
        """As `socket.recv`; the timeout holds for the call. TLS failures are `ConnectionResetError`s."""
        if self._tls is None:
            return super().recv(bufsize, flags)
        timeout = self.gettimeout()
        until = time.monotonic() + timeout if timeout else None
        has_asked = False
        try:
            while True:
                try:
                    return self._tls.read(bufsize)
                except ssl.SSLWantReadError:
                    self._pass_on()
                    # Otherwise a client could keep the poller here with records that carry no data.
                    if has_asked and timeout == 0.0:
                        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN)) from None
                has_asked = True
                if until is not None:
                    if (left := until - time.monotonic()) <= 0:
                        raise TimeoutError("timed out")
                    self.settimeout(left)
                if piece := super().recv(PIECE):
                    self._incoming.write(piece)
                else:
                    self._incoming.write_eof()
        # The client's end, announced or not: HTTP knows by itself whether a body is complete.
        except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
            return b""
        except ssl.SSLError:
            raise ConnectionResetError(errno.ECONNRESET, "TLS has failed") from None
        finally:
            self.settimeout(timeout)
            self._pass_on()

    def recv_unread(self, bufsize: int) -> bytes:
        """Receive bytes that nobody reads: of TLS, as they are."""
        return super().recv(bufsize)

    def sendall(self, data: bytes, flags: int = 0) -> None:  # type: ignore[override]  # gunicorn sends bytes
        try:
            for piece in self._encrypted(data):
                self._unsent.append(memoryview(piece))
                self.flush()
                while self.unsent > MAX_UNSENT:
                    super().sendall(self._unsent.popleft(), flags)
        except OSError as problem:
            self._unsent.clear()  # the connection is lost
            if isinstance(problem, ssl.SSLError):
                raise ConnectionResetError(errno.ECONNRESET, "TLS has failed") from None
            raise

    def send(self, data: bytes, flags: int = 0) -> int:  # type: ignore[override]  # as above
        self.sendall(data, flags)  # gunicorn's "100 Continue"
        return len(data)

    def flush(self) -> None:
        """Send what the client takes at once."""
        timeout = self.gettimeout()
        self.settimeout(0.0)
        try:
            while self._unsent:
                sent = super().send(self._unsent[0])
                self._unsent[0] = self._unsent[0][sent:]
                if not self._unsent[0]:
                    self._unsent.popleft()
        except BlockingIOError:
            pass
        finally:
            self.settimeout(timeout)

    def shutdown(self, how: int) -> None:
        if how != socket.SHUT_RD:
            self._end_tls()
        super().shutdown(how)

    def close(self) -> None:
        if self.fileno() >= 0:
            self._end_tls()
        super().close()

    def _end_tls(self) -> None:
        """Tell the client that nothing was cut off (`close_notify`), without waiting for its answer."""
        if self._tls is None or self._has_ended:
            return
        self._has_ended = True
        with contextlib.suppress(OSError, ValueError):  # the handshake has not ended, or TLS has failed
            self._tls.unwrap()
        self._pass_on()

    def _encrypted(self, data: bytes) -> Iterator[bytes]:
        if self._tls is None:
            yield data
            return
        view = memoryview(data)
        for start in range(0, len(view), PIECE):
            self._tls.write(view[start : start + PIECE])
            yield self._outgoing.read()

    def _pass_on(self) -> None:
        """Send what TLS itself has to say; what is left goes with the next call or answer."""
        if answer := self._outgoing.read():
            self._unsent.append(memoryview(answer))
        if self._unsent:
            try:
                self.flush()
            except OSError:  # the next `recv` or `send` fails as well
                self._unsent.clear()
