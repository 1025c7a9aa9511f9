"""Errors of connections to other nodes; each names the node and the reason."""

from __future__ import annotations

import sys

from moldau.base.errors import ErrorCode, KafkaError


class NodeUnreachable(KafkaError):
    """No connection: unknown host, closed port, network failure.

    `passing`: a retry may succeed. `refused`: the host is reachable, and no process listens on the port.
    """

    def __init__(
        self, host: str, port: int, reason: str, *, passing: bool = True, refused: bool = False
    ) -> None:
        super().__init__(ErrorCode.NETWORK_EXCEPTION, f"cannot connect to {host}:{port}: {reason}")
        self.host, self.port, self.reason, self.passing = host, port, reason, passing
        self.refused = refused


class ConnectionLost(KafkaError):
    """The connection ended; whether a request in flight was executed is unknown."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.NETWORK_EXCEPTION, message)


class LoginFailed(KafkaError):
    """The node refused the credentials or the SASL mechanism, or could not prove its own."""

    def __init__(self, host: str, port: int, code: ErrorCode, reason: str) -> None:
        super().__init__(code, f"{host}:{port} refused the login: {reason}")
        self.host, self.port, self.reason = host, port, reason


class TlsFailed(KafkaError):
    """The TLS handshake failed; `reason` is a sentence about certificate or protocol."""

    def __init__(self, host: str, port: int, reason: str) -> None:
        super().__init__(ErrorCode.NETWORK_EXCEPTION, f"TLS to {host}:{port} failed: {reason}")
        self.host, self.port, self.reason = host, port, reason


class NotKafka(KafkaError):
    """The server on this port does not speak the Kafka protocol in plain text."""

    def __init__(self, host: str, port: int, reason: str) -> None:
        super().__init__(ErrorCode.NETWORK_EXCEPTION, f"{host}:{port} {reason}")
        self.host, self.port, self.reason = host, port, reason


def explain_protocol(first_bytes: bytes) -> str | None:
    """Return which other protocol the first bytes of a response belong to; None if unknown."""
    if first_bytes[:2] in (b"\x15\x03", b"\x16\x03"):
        return "speaks TLS: it is an SSL or SASL_SSL listener, and this client sent plain text"
    if first_bytes.startswith(b"HTTP/"):
        return "is an HTTP server, not a Kafka broker: is the port right?"
    if first_bytes.startswith(b"SSH-"):
        return "is an SSH server, not a Kafka broker: is the port right?"
    if first_bytes and all(32 <= byte < 127 or byte in b"\r\n\t" for byte in first_bytes):
        text = first_bytes.decode("ascii").strip()
        return f"does not speak the Kafka protocol (it answered {text!r}): is the port right?"
    return None


def reason_of(error: OSError) -> str:
    return error.strerror or str(error) or type(error).__name__


def tls_reason(error: BaseException | None) -> str | None:
    """Return what a failed TLS handshake means, with the remedy; None for another failure."""
    # Without TLS the module is not loaded.
    ssl = sys.modules.get("ssl")
    if ssl is None or not isinstance(error, ssl.SSLError):
        return None
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the certificate of the server is not accepted: {error.verify_message}"
    text = error.reason or str(error)
    if "WRONG_VERSION_NUMBER" in text:
        return "the server does not speak TLS on this port: is it a PLAINTEXT or SASL_PLAINTEXT listener?"
    return text
