"""One TCP connection to a broker, for requests that no client library sends.

Well-formed requests are sent with `call`, any other bytes with `send` and `send_frame`. Every wait
has a deadline: a broker that hangs fails the test.
"""

from __future__ import annotations

import select
import socket
import ssl
import struct
from typing import Any

from moldau.protocol.apis import APIS
from moldau.protocol.headers import RequestHeader, decode_response_header, encode_request_header
from moldau.protocol.schema import Message, decode, encode_bytes


class Wire:
    def __init__(
        self,
        bootstrap: str,
        *,
        timeout: float = 60.0,
        receive_buffer: int | None = None,
        tls: ssl.SSLContext | None = None,
        client_id: str = "raw",
    ) -> None:
        host, port = bootstrap.rsplit(":", 1)
        self._socket = socket.socket()
        if receive_buffer is not None:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self._socket.settimeout(timeout)
        self._socket.connect((host, int(port)))
        if tls is not None:
            self._socket = tls.wrap_socket(self._socket, server_hostname=host)
        self._next_correlation_id = 1
        self._client_id = client_id

    def send(self, data: bytes) -> None:
        self._socket.sendall(data)

    def send_frame(self, payload: bytes) -> None:
        self.send(struct.pack(">i", len(payload)) + payload)

    def read_frame(self) -> bytes | None:
        """Return the next frame without its length, or None if the broker has closed the connection."""
        prefix = self._read(4)
        return None if prefix is None else self._read(struct.unpack(">i", prefix)[0])

    def is_silent_for(self, seconds: float) -> bool:
        """Return whether the broker neither sends anything nor closes the connection for this time."""
        return not select.select([self._socket], [], [], seconds)[0]

    def is_closed_by_peer(self) -> bool:
        """Return whether the broker closes the connection within the deadline without sending more."""
        return self.read_frame() is None

    def post(self, request: Message, version: int) -> int:
        """Send a request without waiting; return its correlation id."""
        correlation_id = self._next_correlation_id
        self._next_correlation_id += 1
        self.send_frame(request_frame(request, version, correlation_id, self._client_id))
        return correlation_id

    def call(self, request: Message, version: int) -> Any:
        correlation_id = self.post(request, version)
        return self.answer(request, version, correlation_id)

    def answer(self, request: Message, version: int, correlation_id: int) -> Any:
        frame = self.read_frame()
        if frame is None:
            raise ConnectionError(f"the broker closed the connection instead of answering {request!r:.200}")
        api = APIS[api_key(request)]
        answered, start = decode_response_header(api.key, version, frame)
        if answered != correlation_id:
            raise AssertionError(f"answer to request {answered}, expected {correlation_id}")
        return decode(api.response, frame, version, start)

    def abort(self) -> None:
        """Close the connection with a reset."""
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._socket.close()

    def close(self) -> None:
        self._socket.close()

    def __enter__(self) -> Wire:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _read(self, size: int) -> bytes | None:
        data = bytearray()
        while len(data) < size:
            try:
                piece = self._socket.recv(min(size - len(data), 1 << 20))
            except ConnectionResetError:
                return None
            if not piece:
                return None
            data += piece
        return bytes(data)


def api_key(request: Message) -> int:
    return next(api.key for api in APIS.values() if api.name + "Request" == type(request).__name__)


def request_frame(request: Message, version: int, correlation_id: int = 1, client_id: str = "raw") -> bytes:
    header = encode_request_header(RequestHeader(api_key(request), version, correlation_id, client_id))
    return header + encode_bytes(request, version)
