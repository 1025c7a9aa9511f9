"""Errors of connections to other nodes; each names the node and the reason."""

from __future__ import annotations

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
