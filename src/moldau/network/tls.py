"""TLS on a connection: encrypts and decrypts between a plain transport and a protocol.

A `TlsLayer` is the protocol of the socket's transport and the transport of the protocol above it, so
`Connection` and `NodeConnection` work with and without TLS. OpenSSL works on two buffers in memory
(`ssl.MemoryBIO`), which costs less CPU and memory than the TLS of asyncio and uvloop.

Reading. All layers of a thread receive into one buffer; its bytes are decrypted at once into the buffer of
the protocol above. Writing. Data waits unencrypted, as views of mapped files, while the socket does not
accept more, and is encrypted in turns that the socket sends while the next one is encrypted; after each turn
other connections have theirs.

A `MemoryBIO` never shrinks. It is filled and emptied in small pieces, so that a connection that has once
transferred much does not keep the memory.

Invariants:

- Before the handshake is complete nothing is delivered or sent; a deadline ends slow handshakes. A server
  creates the TLS session when the first bytes arrive, so a silent connection costs little.
- The protocol above is paused while the socket is, or while more than its limit waits to be encrypted.
- The protocol above gets `connection_made` when the socket is connected, and `connection_lost` with an
  `ssl.SSLError` if TLS was the reason.
"""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, cast

from moldau.network.handshakes import Handshakes

Buffer = bytes | bytearray | memoryview

_RECEIVE_BYTES = 256 * 1024
#: Smaller parts are encrypted together: each call makes at least one TLS record.
_SMALL_BYTES = 16 * 1024
#: Encrypted in one turn of the loop. The loop writes to sockets at the end of a turn, so the peer decrypts a
#: part while the next one is encrypted; a megabyte at a time made consuming a third slower.
_TURN_BYTES = 256 * 1024
#: What a `MemoryBIO` is filled with at a time, in plain text and encrypted.
_PIECE_BYTES = 32 * 1024
_ENCRYPTED_PIECE_BYTES = 16 * 1024
#: What a connection costs after its first bytes: the session and both `MemoryBIO`, without data that waits.
_SESSION_BYTES = 48 * 1024
_HIGH_WATER = 256 * 1024
_EMPTY = memoryview(b"")
#: The first byte of a TLS record that begins a handshake.
_HANDSHAKE_RECORD = 0x16

_of_thread = threading.local()


class TlsLayer(asyncio.BufferedProtocol, asyncio.Transport):
    """`handshakes` bounds the handshakes of a server; a client has none."""

    __slots__ = (
        "_above_paused",
        "_below_paused",
        "_closing",
        "_context",
        "_deadline",
        "_encrypting",
        "_failure",
        "_handshake_timeout",
        "_handshakes",
        "_high_water",
        "_incoming",
        "_loop",
        "_low_water",
        "_on_failure",
        "_on_handshake",
        "_outgoing",
        "_protocol",
        "_reading_paused",
        "_secured",
        "_server_hostname",
        "_server_side",
        "_session",
        "_transport",
        "_unsent",
        "_unsent_bytes",
        "_waiting",
    )

    def __init__(
        self,
        protocol: asyncio.BufferedProtocol,
        context: ssl.SSLContext,
        *,
        server_side: bool,
        handshake_timeout: float,
        loop: asyncio.AbstractEventLoop,
        server_hostname: str | None = None,
        on_handshake: Callable[[ssl.SSLObject], None] | None = None,
        on_failure: Callable[[], None] | None = None,
        handshakes: Handshakes | None = None,
    ) -> None:
        self._protocol = protocol
        self._context = context
        self._server_side = server_side
        self._server_hostname = server_hostname
        self._handshake_timeout = handshake_timeout
        self._loop = loop
        self._on_handshake = on_handshake
        #: Called when the handshake of a server's connection fails.
        self._on_failure = on_failure
        self._handshakes = handshakes
        self._transport: asyncio.Transport | None = None
        self._session: ssl.SSLObject | None = None
        self._incoming: ssl.MemoryBIO | None = None
        self._outgoing: ssl.MemoryBIO | None = None
        #: Received bytes that are not in `_incoming` yet.
        self._waiting = _EMPTY
        self._secured = False
        self._deadline: asyncio.TimerHandle | None = None
        self._failure: Exception | None = None
        self._unsent: deque[Buffer] = deque()
        self._unsent_bytes = 0
        self._high_water, self._low_water = _HIGH_WATER, _HIGH_WATER // 4
        #: Whether `_encrypt` runs in the next turn of the loop.
        self._encrypting = False
        self._above_paused = False
        self._below_paused = False
        self._reading_paused = False
        self._closing = False

    # The protocol of the socket's transport.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=_HIGH_WATER)
        self._deadline = self._loop.call_later(self._handshake_timeout, self._late)
        self._protocol.connection_made(self)
        if not self._server_side and not self.is_closing():
            self._begin_session()
            self._step()

    def connection_lost(self, exc: Exception | None) -> None:
        if exc is None and self._failure is None and not self._secured and not self._closing:
            exc = _closed_early()
        self._end_handshake()
        self._closing = True
        self._secured = False
        self._unsent.clear()
        self._unsent_bytes = 0
        self._waiting = _EMPTY
        self._protocol.connection_lost(self._failure or exc)
        # A connection refers to this layer and the reverse: without the session it is small.
        self._session = self._incoming = self._outgoing = None

    def get_buffer(self, sizehint: int) -> memoryview:
        # Until the handshake is complete, the rest stays in the socket.
        return _receive_buffer() if self._secured else _receive_buffer()[:_ENCRYPTED_PIECE_BYTES]

    def buffer_updated(self, nbytes: int) -> None:
        received = _receive_buffer()[:nbytes]
        if self._secured:
            self._received(received)
        elif not self._closing:
            self._received_handshake(received)

    def eof_received(self) -> bool:
        """Close, also if the peer has not said goodbye: frames have a size, so none can be cut unnoticed."""
        if self._secured:
            return bool(self._protocol.eof_received())
        if not self._closing and self._failure is None:
            self._failure = _closed_early()
        return False

    def pause_writing(self) -> None:
        self._below_paused = True
        self._regulate_writing()

    def resume_writing(self) -> None:
        self._below_paused = False
        self._encrypt()

    # The transport of the protocol above.

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        if name == "ssl_object":
            return self._session
        if name == "buffer_bytes":
            return self._buffer_bytes()
        return default if self._transport is None else self._transport.get_extra_info(name, default)

    def is_closing(self) -> bool:
        return self._closing or self._transport is None or self._transport.is_closing()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._high_water = _HIGH_WATER if high is None else high
        self._low_water = self._high_water // 4 if low is None else low

    def get_write_buffer_size(self) -> int:
        below = 0 if self._transport is None else self._transport.get_write_buffer_size()
        return self._unsent_bytes + below

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.writelines((data,))

    def writelines(self, list_of_data: Iterable[Any]) -> None:
        if self._closing:
            return
        for part in list_of_data:
            if part:
                self._unsent.append(part)
                self._unsent_bytes += len(part)
        if not self._encrypting:
            self._encrypt()

    def pause_reading(self) -> None:
        self._reading_paused = True
        self._regulate_reading()

    def resume_reading(self) -> None:
        self._reading_paused = False
        self._regulate_reading()
        if self._secured:
            self._loop.call_soon(self._decrypt)

    def close(self) -> None:
        """Close once all data is sent."""
        if self._closing:
            return
        self._closing = True
        self._regulate_reading()
        if not self._secured or not self._unsent:
            self._finish()

    def abort(self) -> None:
        self._closing = True
        self._unsent.clear()
        self._unsent_bytes = 0
        if self._transport is not None:
            self._transport.abort()

    # The handshake.

    def give_up(self, reason: str) -> None:
        """Close a connection whose handshake is not complete."""
        if not self._secured and not self._closing:
            self._fail(ssl.SSLError(ssl.SSL_ERROR_SSL, reason))

    def _received_handshake(self, received: memoryview) -> None:
        if self._session is None:
            if received[0] != _HANDSHAKE_RECORD:
                reason = "the client sent plain text to a listener with TLS (its security.protocol?)"
                self._fail(ssl.SSLError(ssl.SSL_ERROR_SSL, reason))
                return
            self._begin_session()
        if self._incoming is None:
            return
        self._incoming.write(received)
        if self._handshakes is None:
            self._step()
        else:
            # Until its step the client's bytes stay in the socket.
            self._read_below(False)
            self._handshakes.run(self._step, self._loop)

    def _begin_session(self) -> None:
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        if self._handshakes is not None:
            self._handshakes.begin(self)
        try:
            self._session = self._context.wrap_bio(
                self._incoming, self._outgoing, self._server_side, self._server_hostname
            )
        except ValueError as error:
            self._fail(ssl.SSLError(ssl.SSL_ERROR_SSL, f"the host name cannot be used for TLS: {error}"))

    def _step(self) -> None:
        if self._session is None or self._secured or self._closing:
            return
        try:
            self._session.do_handshake()
        except ssl.SSLWantReadError:
            self._flush()
            self._regulate_reading()
        except ssl.SSLError as error:
            self._flush()
            self._fail(error)
        else:
            self._flush()
            self._handshake_complete(self._session)

    def _handshake_complete(self, session: ssl.SSLObject) -> None:
        self._secured = True
        self._end_handshake()
        self._regulate_reading()
        if self._on_handshake is not None:
            self._on_handshake(session)
        self._encrypt()
        self._decrypt()

    def _end_handshake(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        if self._handshakes is not None:
            self._handshakes.end(self)

    def _late(self) -> None:
        if self._reading_paused and self._session is None:
            # The connection waits for a place under `max.connections`.
            self._deadline = self._loop.call_later(self._handshake_timeout, self._late)
            return
        self._deadline = None
        self.give_up(f"it was not complete within {self._handshake_timeout:g} s")

    def _fail(self, error: Exception) -> None:
        self._failure = error
        if self._server_side and self._handshakes is not None and not self._secured:
            peer = self.get_extra_info("peername") or ("unknown",)
            self._handshakes.log_failure(str(peer[0]), _reason(error))
            if self._on_failure is not None:
                self._on_failure()
        self._end_handshake()
        self._unsent.clear()
        self._unsent_bytes = 0
        self._closing = True
        if self._transport is not None:
            self._transport.close()

    # Reading.

    def _received(self, received: memoryview) -> None:
        self._waiting = memoryview(bytes(self._waiting) + received) if self._waiting else received
        self._decrypt()
        # What is left because the protocol above has paused leaves the buffer that all layers share.
        self._waiting = memoryview(bytes(self._waiting)) if self._waiting else _EMPTY

    def _feed(self) -> bool:
        """Move the next received bytes to where OpenSSL reads them; return False if there are none."""
        waiting = self._waiting
        if not waiting:
            return False
        cast(ssl.MemoryBIO, self._incoming).write(waiting[:_ENCRYPTED_PIECE_BYTES])
        self._waiting = waiting[_ENCRYPTED_PIECE_BYTES:]
        return True

    def _buffer_bytes(self) -> int:
        if self._session is None:
            return 0
        return _SESSION_BYTES + len(self._waiting) + self._unsent_bytes

    def _decrypt(self) -> None:
        """Deliver what is received, unless the protocol above has paused."""
        protocol = self._protocol
        while self._secured and not self._reading_paused and not self._closing:
            room = protocol.get_buffer(-1)
            if not room:
                # The protocol should have paused: without room this loop would never end.
                self._fail(BufferError("received data has no room"))
                break
            size, ended = self._read_into(cast(memoryview, room))
            if size:
                protocol.buffer_updated(size)
            if ended:
                break
        if self._outgoing is not None and self._outgoing.pending:
            self._flush()

    def _read_into(self, room: memoryview) -> tuple[int, bool]:
        """Decrypt into `room`; return the number of bytes, and whether no more are received."""
        session, incoming = cast(ssl.SSLObject, self._session), cast(ssl.MemoryBIO, self._incoming)
        # Into any buffer, and returns the number of bytes, unlike what typeshed says.
        read: Any = session.read
        filled, size = 0, len(room)
        try:
            while filled < size:
                if not incoming.pending and not session.pending() and not self._feed():
                    return filled, True
                try:
                    count: int = read(size - filled, room[filled:])
                except ssl.SSLWantReadError:
                    if self._feed():
                        continue
                    return filled, True
                if not count:
                    self._loop.call_soon(self._peer_closed)
                    return filled, True
                filled += count
        except ssl.SSLError as error:
            self._loop.call_soon(self._fail, error)
            return filled, True
        return filled, False

    def _peer_closed(self) -> None:
        if not self._closing and not self._protocol.eof_received():
            self.close()

    def _regulate_reading(self) -> None:
        self._read_below(not self._reading_paused and not self._closing)

    def _read_below(self, reading: bool) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        if reading:
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()

    # Writing.

    def _encrypt(self) -> None:
        """Encrypt and send what waits, as far as the socket accepts it."""
        self._encrypting = False
        if self._secured and self._unsent:
            self._encrypt_turn()
            if self._unsent and not self._below_paused and not self._encrypting:
                self._encrypting = True
                self._loop.call_soon(self._encrypt)
        self._regulate_writing()
        if self._closing and self._secured and not self._unsent:
            self._finish()

    def _encrypt_turn(self) -> None:
        session, outgoing = cast(ssl.SSLObject, self._session), cast(ssl.MemoryBIO, self._outgoing)
        left = _TURN_BYTES
        encrypted: list[bytes] = []
        try:
            while self._unsent and not self._below_paused and left > 0:
                piece = self._next_piece()
                left -= len(piece)
                session.write(piece)
                encrypted.append(outgoing.read())
        except ssl.SSLError as error:
            self._fail(error)
        if self._transport is not None and not self._transport.is_closing():
            self._transport.writelines(encrypted)

    def _next_piece(self) -> Buffer:
        """Take the next data to encrypt: a part of a large piece, or several small ones."""
        unsent = self._unsent
        first = unsent.popleft()
        size = len(first)
        if size > _PIECE_BYTES:
            view = memoryview(first)
            unsent.appendleft(view[_PIECE_BYTES:])
            self._unsent_bytes -= _PIECE_BYTES
            return view[:_PIECE_BYTES]
        if size < _SMALL_BYTES and unsent and len(unsent[0]) < _SMALL_BYTES:
            small = [first]
            while unsent and size + len(unsent[0]) <= _SMALL_BYTES:
                small.append(unsent.popleft())
                size += len(small[-1])
            first = b"".join(small)
        self._unsent_bytes -= size
        return first

    def _flush(self) -> None:
        """Hand encrypted data to the socket."""
        if self._outgoing is not None and self._outgoing.pending and self._transport is not None:
            data = self._outgoing.read()
            if not self._transport.is_closing():
                self._transport.write(data)

    def _regulate_writing(self) -> None:
        if self._below_paused or self._unsent_bytes > self._high_water:
            if not self._above_paused:
                self._above_paused = True
                self._protocol.pause_writing()
        elif self._above_paused and self._unsent_bytes <= self._low_water:
            self._above_paused = False
            self._protocol.resume_writing()

    def _finish(self) -> None:
        """Say goodbye to the peer and close the socket."""
        self._end_handshake()
        if self._secured and self._session is not None:
            try:
                self._session.unwrap()
            except ssl.SSLError:
                pass  # the answer of the peer is not awaited
            self._flush()
        if self._transport is not None:
            self._transport.close()


def _receive_buffer() -> memoryview:
    """Return the buffer in which all layers of a thread receive: its bytes are taken out at once."""
    try:
        return cast(memoryview, _of_thread.buffer)
    except AttributeError:
        _of_thread.buffer = memoryview(bytearray(_RECEIVE_BYTES))
        return cast(memoryview, _of_thread.buffer)


def _closed_early() -> ssl.SSLError:
    return ssl.SSLEOFError(ssl.SSL_ERROR_EOF, "the peer closed the connection during the handshake")


def _reason(error: Exception) -> str:
    reason = getattr(error, "reason", None) or getattr(error, "strerror", None)
    return str(reason or error)
