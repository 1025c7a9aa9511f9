"""The webhook source: an HTTP endpoint that writes what it receives.

A request is answered after the brokers have acknowledged its record, so a sender that repeats failed requests
loses nothing. Requests beyond the bounds are answered with 503, wrong ones with 4xx. One task serves the
port, on the host where the task runs.
"""

from __future__ import annotations

import hmac
import json
import logging
import queue
import ssl
import threading
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from moldau.pipelines.connect.config.definition import (
    NO_DEFAULT,
    ConfigDef,
    ConfigType,
    ConfigValue,
    Importance,
    NonEmptyString,
    Password,
    Range,
    ValidString,
)
from moldau.pipelines.connect.connectors.http.pointers import at_pointer, check_pointer
from moldau.pipelines.connect.data.errors import ConfigError, ConnectError
from moldau.pipelines.connect.data.headers import Headers
from moldau.pipelines.connect.data.records import SourceRecord
from moldau.pipelines.connect.data.schema import BYTES, STRING, Schema
from moldau.pipelines.connect.sdk import ExactlyOnceSupport, SourceConnector, SourceContext, SourceTask

logger = logging.getLogger(__name__)

HOST, PORT, PATH = "listener.host", "listener.port", "listener.path"
TOPIC: Final = "topic"
FORMAT: Final = "body.format"
KEY_HEADER, KEY_POINTER = "key.header", "key.json.pointer"
HEADERS: Final = "headers.include"
AUTH: Final = "auth.type"
NONE, BASIC, BEARER, SIGNATURE = "NONE", "BASIC", "BEARER", "SIGNATURE"
USER, PASSWORD, TOKEN = "connection.user", "connection.password", "bearer.token"
SIGNATURE_HEADER, SIGNATURE_SECRET = "signature.header", "signature.secret"
MAX_BYTES, MAX_REQUESTS, TIMEOUT = "max.request.bytes", "max.requests", "response.timeout.ms"
CERTIFICATE, KEY_FILE = "ssl.certificate.location", "ssl.key.location"
_SOCKET_TIMEOUT_S: Final = 30.0
_MAX_PER_POLL: Final = 500


def _definition() -> ConfigDef:
    high, medium, low, text = Importance.HIGH, Importance.MEDIUM, Importance.LOW, ConfigType.STRING
    definition = ConfigDef()
    definition.define(TOPIC, text, NO_DEFAULT, high, "Topic to write to.", validator=NonEmptyString())
    definition.define(HOST, text, "127.0.0.1", high, "Address to listen on; 0.0.0.0 for all.")
    definition.define(PORT, ConfigType.INT, NO_DEFAULT, high, "Port.", validator=Range(1, 65535))
    definition.define(PATH, text, "/", medium, "Path that is served; others are answered with 404.")
    definition.define(
        FORMAT,
        text,
        "json",
        medium,
        "Form of bodies: json (a value without schema; others are refused), string or bytes.",
        validator=ValidString(("json", "string", "bytes")),
    )
    definition.define(KEY_HEADER, text, "", medium, "Header of the request that is the key.")
    definition.define(KEY_POINTER, text, "", medium, "JSON pointer in the body to the key.")
    definition.define(HEADERS, ConfigType.LIST, "", low, "Headers of the request that become headers.")
    definition.define(
        AUTH,
        text,
        NONE,
        high,
        "Authentication of senders: NONE, BASIC, BEARER, or SIGNATURE (HMAC-SHA256 of the body in a header, "
        "as GitHub and Stripe-like services send it).",
        validator=ValidString((NONE, BASIC, BEARER, SIGNATURE), ignore_case=True),
    )
    definition.define(USER, text, "", medium, "User for BASIC.")
    definition.define(PASSWORD, ConfigType.PASSWORD, None, medium, "Password for BASIC.")
    definition.define(TOKEN, ConfigType.PASSWORD, None, medium, "Token for BEARER.")
    definition.define(SIGNATURE_HEADER, text, "X-Hub-Signature-256", low, "Header for SIGNATURE.")
    definition.define(SIGNATURE_SECRET, ConfigType.PASSWORD, None, medium, "Secret for SIGNATURE.")
    definition.define(
        MAX_BYTES, ConfigType.INT, 1_048_576, medium, "Largest body; larger: 413.", validator=Range(1)
    )
    definition.define(
        MAX_REQUESTS,
        ConfigType.INT,
        200,
        medium,
        "Maximum number of requests at a time; further ones are answered with 503.",
        validator=Range(1, 5000),
    )
    definition.define(
        TIMEOUT,
        ConfigType.INT,
        30_000,
        medium,
        "Milliseconds until a request whose record is not acknowledged is answered with 503.",
        validator=Range(1),
    )
    definition.define(CERTIFICATE, text, None, medium, "PEM file with the certificate: serve HTTPS.")
    definition.define(KEY_FILE, text, None, medium, "PEM file with the private key.")
    return definition


class WebhookSourceConnector(SourceConnector):
    config = _definition()

    def validate(self, properties: Mapping[str, str]) -> dict[str, ConfigValue]:
        values = super().validate(properties)
        needed = {BASIC: (USER, PASSWORD), BEARER: (TOKEN,), SIGNATURE: (SIGNATURE_SECRET,)}
        auth = str(values[AUTH].value).upper()
        for name in needed.get(auth, ()):
            if not values[name].value:
                values[name].errors.append(f"Required with auth.type {auth}.")
        try:
            check_pointer(KEY_POINTER, values[KEY_POINTER].value or "")
        except ConfigError as error:
            values[KEY_POINTER].errors.append(str(error))
        return values

    def task(self) -> SourceTask:
        return WebhookSourceTask(self.config)

    def exactly_once_support(self, properties: Mapping[str, str]) -> ExactlyOnceSupport:
        """Senders repeat requests whose answer they did not get."""
        return ExactlyOnceSupport.UNSUPPORTED


@dataclass(slots=True, eq=False)
class _Received:
    record: SourceRecord
    stored: threading.Event = field(default_factory=threading.Event)


class _RequestError(Exception):
    """A request that is refused with a status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class WebhookSourceTask(SourceTask):
    def __init__(self, definition: ConfigDef) -> None:
        self._definition = definition
        self._server: ThreadingHTTPServer | None = None
        self._received: queue.Queue[_Received] = queue.Queue()
        #: Records that were handed out, by identity, until they are acknowledged.
        self._waiting: dict[int, _Received] = {}

    def start(self, context: SourceContext) -> None:
        self._config = config = self._definition.parse(context.config)
        self._context = context
        self._free = threading.BoundedSemaphore(config[MAX_REQUESTS])
        try:
            self._server = server = _Server((config[HOST], config[PORT]), _handler(self))
        except OSError as error:
            raise ConnectError(f"Cannot listen on {config[HOST]}:{config[PORT]}: {error.strerror}") from error
        if config[CERTIFICATE]:
            tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            tls.load_cert_chain(config[CERTIFICATE], config[KEY_FILE])
            server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        self._thread = threading.Thread(target=server.serve_forever, name="webhook", daemon=True)
        self._thread.start()

    def poll(self) -> Sequence[SourceRecord]:
        try:
            found = [self._received.get(timeout=0.2)]
        except queue.Empty:
            return ()
        while len(found) < _MAX_PER_POLL and not self._received.empty():
            found.append(self._received.get_nowait())
        self._waiting.update({id(each.record): each for each in found})
        return [each.record for each in found]

    def commit_record(self, record: SourceRecord) -> None:
        received = self._waiting.pop(id(record), None)
        if received is not None:
            received.stored.set()

    def stop(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            server.shutdown()
            server.server_close()
            self._thread.join()

    # In the threads of requests.

    def accept(self, path: str, headers: Any, body: bytes) -> None:
        """Wait until the record of a request is stored; `_RequestError` if it is refused."""
        config = self._config
        if path.partition("?")[0] != config[PATH]:
            raise _RequestError(404, "Not found")
        if not self._is_authentic(headers, body):
            raise _RequestError(401, "Unauthorized")
        received = _Received(self._record(headers, body))
        self._received.put(received)
        if not received.stored.wait(config[TIMEOUT] / 1000):
            raise _RequestError(503, "The record was not stored in time")

    def acquire(self) -> bool:
        return self._free.acquire(blocking=False)

    def release(self) -> None:
        self._free.release()

    @property
    def most_bytes(self) -> int:
        most: int = self._config[MAX_BYTES]
        return most

    def _is_authentic(self, headers: Any, body: bytes) -> bool:
        config, kind = self._config, self._config[AUTH].upper()
        if kind == NONE:
            return True
        if kind == SIGNATURE:
            digest = hmac.digest(_secret(config[SIGNATURE_SECRET]), body, "sha256").hex()
            given = headers.get(config[SIGNATURE_HEADER], "").removeprefix("sha256=")
            return hmac.compare_digest(given.encode(), digest.encode())
        if kind == BASIC:
            pair = config[USER].encode() + b":" + _secret(config[PASSWORD])
            expected = b"Basic " + b64encode(pair)
        else:
            expected = b"Bearer " + _secret(config[TOKEN])
        return hmac.compare_digest(headers.get("Authorization", "").encode(), expected)

    def _record(self, headers: Any, body: bytes) -> SourceRecord:
        schema, value = _parsed(self._config[FORMAT], body)
        key = headers.get(self._config[KEY_HEADER]) if self._config[KEY_HEADER] else None
        if self._config[KEY_POINTER]:
            key = at_pointer(value, self._config[KEY_POINTER])
            if key is not None and not isinstance(key, str):
                key = json.dumps(key)
        kept = Headers()
        for name in self._config[HEADERS]:
            if (text := headers.get(name)) is not None:
                kept.add(name, text, STRING)
        return SourceRecord(
            topic=self._config[TOPIC],
            key_schema=None if key is None else STRING,
            key=key,
            value_schema=schema,
            value=value,
            headers=kept,
        )


def _parsed(form: str, body: bytes) -> tuple[Schema | None, Any]:
    if form == "bytes":
        return BYTES, body
    try:
        text = body.decode()
        return (STRING, text) if form == "string" else (None, json.loads(text))
    except ValueError as error:
        raise _RequestError(400, f"The body is not {form}: {error}") from error


def _secret(value: Any) -> bytes:
    return value.value.encode() if isinstance(value, Password) else b""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        logger.debug("A connection of %s failed", client_address, exc_info=True)


def _handler(task: WebhookSourceTask) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        server_version = "moldau"
        sys_version = ""
        timeout = _SOCKET_TIMEOUT_S

        def do_POST(self) -> None:
            status, message = 503, "Too many requests at a time"
            if task.acquire():
                try:
                    task.accept(self.path, self.headers, self._body())
                    status, message = 200, ""
                except _RequestError as error:
                    status, message = error.status, str(error)
                finally:
                    task.release()
            if status != 200:
                # What remains of a refused request is not read.
                self.close_connection = True
            self._answer(status, message)

        do_PUT = do_POST

        def _body(self) -> bytes:
            length = self.headers.get("Content-Length")
            if length is None or not length.isdecimal():
                raise _RequestError(411, "Content-Length is required")
            if int(length) > task.most_bytes:
                raise _RequestError(413, f"The body is larger than {task.most_bytes} bytes")
            return self.rfile.read(int(length))

        def _answer(self, status: int, message: str) -> None:
            body = json.dumps({"message": message} if message else {}).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            if status == 503:
                self.send_header("Retry-After", "1")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: Any) -> None:
            logger.debug(format, *arguments)

    return Handler
