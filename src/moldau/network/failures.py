"""Errors of connections to other nodes; each names the node and the reason."""

from __future__ import annotations

import sys
from collections.abc import Sequence

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
    """The connection ended; whether a request in flight was executed is unknown.

    `unanswered`: the node answered no request on this connection, other than ApiVersions.
    """

    def __init__(self, message: str, *, unanswered: bool = False) -> None:
        super().__init__(ErrorCode.NETWORK_EXCEPTION, message)
        self.unanswered = unanswered


class PermanentFailure(KafkaError):
    """A failure that a retry with the same settings repeats; `reason` is a sentence."""

    def __init__(self, host: str, port: int, code: ErrorCode, reason: str, message: str) -> None:
        super().__init__(code, message)
        self.host, self.port, self.reason = host, port, reason


class LoginFailed(PermanentFailure):
    """The node refused the credentials or the SASL mechanism, or could not prove its own."""

    def __init__(
        self, host: str, port: int, code: ErrorCode, reason: str, mechanisms: Sequence[str] = ()
    ) -> None:
        super().__init__(host, port, code, reason, f"{host}:{port} refused the login: {reason}")
        #: The mechanisms that the node has enabled, if it refused the requested one.
        self.mechanisms = tuple(mechanisms)


class TlsFailed(PermanentFailure):
    """The TLS handshake failed, because of a certificate or of the TLS versions and cipher suites."""

    def __init__(self, host: str, port: int, reason: str) -> None:
        super().__init__(
            host, port, ErrorCode.NETWORK_EXCEPTION, reason, f"TLS to {host}:{port} failed: {reason}"
        )


class NotKafka(PermanentFailure):
    """The server on this port does not speak the Kafka protocol in plain text."""

    def __init__(self, host: str, port: int, reason: str) -> None:
        super().__init__(host, port, ErrorCode.NETWORK_EXCEPTION, reason, f"{host}:{port} {reason}")


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


#: What a verification error of OpenSSL means.
_CERTIFICATE_REASONS = (
    ("has expired", "the certificate of the server has expired"),
    ("not yet valid", "the certificate of the server is not yet valid: compare the clocks"),
    (
        "issuer certificate",
        "the certificate of the server is signed by a CA that is not in the truststore of this client "
        "(ssl.truststore.location)",
    ),
    (
        "self-signed certificate",
        "the certificate of the server is self-signed, or its CA is not in the truststore of this client "
        "(ssl.truststore.location)",
    ),
)
#: What a TLS alert of the server, or an error of OpenSSL, means. The first match counts.
_TLS_REASONS = (
    ("WRONG_VERSION_NUMBER", "the server does not speak TLS on this port: its listener has another protocol"),
    ("RECORD_LAYER_FAILURE", "the server does not speak TLS on this port: its listener has another protocol"),
    ("CERTIFICATE_REQUIRED", "the server requires a client certificate (ssl.keystore.location)"),
    ("ALERT_UNKNOWN_CA", "the server does not trust the CA of this client's certificate"),
    ("ALERT_CERTIFICATE_EXPIRED", "the server reports that this client's certificate has expired"),
    ("BAD_CERTIFICATE", "the server does not accept this client's certificate, or requires one"),
    ("ALERT_CERTIFICATE_UNKNOWN", "the server does not accept this client's certificate"),
    ("PROTOCOL_VERSION", "client and server have no TLS version in common (ssl.enabled.protocols)"),
    ("UNSUPPORTED_PROTOCOL", "client and server have no TLS version in common (ssl.enabled.protocols)"),
    (
        "HANDSHAKE_FAILURE",
        "the server refused the handshake: it requires a client certificate (ssl.keystore.location), or has "
        "no cipher suite in common (ssl.cipher.suites)",
    ),
)


def tls_reason(error: BaseException | None) -> str | None:
    """Return what a failed TLS handshake means, with the remedy; None for another failure.

    A connection that is closed during the handshake is another failure: the node may be stopping.
    """
    # Without TLS the module is not loaded.
    ssl = sys.modules.get("ssl")
    if ssl is None or not isinstance(error, ssl.SSLError) or isinstance(error, ssl.SSLEOFError):
        return None
    if isinstance(error, ssl.SSLCertVerificationError):
        return _certificate_reason(error.verify_message)
    # Only errors raised by OpenSSL have a reason.
    reason = getattr(error, "reason", None) or str(error)
    text = f"{reason} {error}".upper().replace(" ", "_")
    for part, meaning in _TLS_REASONS:
        if part in text:
            return meaning
    return reason


def _certificate_reason(message: str) -> str:
    for part, meaning in _CERTIFICATE_REASONS:
        if part in message:
            return meaning
    return f"the certificate of the server is not accepted: {message}"
