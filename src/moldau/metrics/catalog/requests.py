"""Requests by type: `kafka.network:type=RequestMetrics` and the socket server.

A node handles requests on one event loop, so no request is queued between threads: the queue and send phases
are 0, and what a loop that is too busy costs is `moldau_event_loop_lag_seconds`.
"""

from __future__ import annotations

from typing import Final

from moldau.metrics.family import Family, counter, gauge, summary

_PREFIX: Final = "kafka_network_requestmetrics_"


def _phase(name: str, help_text: str) -> Family:
    return summary(f"{_PREFIX}{name}", help_text, ("request",))


_SOCKET_SERVER: Final = "kafka_server_socket_server_metrics_"
_LISTENER: Final = ("listener", "networkProcessor")


def _of_listener(name: str, help_text: str) -> Family:
    return gauge(f"{_SOCKET_SERVER}{name}", help_text, _LISTENER)


def _logins(name: str, help_text: str) -> Family:
    return counter(f"{_SOCKET_SERVER}{name}_total", help_text, _LISTENER)


REQUESTS: Final = counter(f"{_PREFIX}requests_total", "Requests that were answered.", ("request", "version"))
ERRORS: Final = counter(
    f"{_PREFIX}errors_total",
    "Requests by the error of their response; for Produce and Fetch also errors of partitions.",
    ("request", "error"),
)
TOTAL_TIME: Final = _phase("totaltimems", "Time from the complete request to the encoded response.")
LOCAL_TIME: Final = _phase("localtimems", "Time of a request on the event loop before it waits.")
REMOTE_TIME: Final = _phase(
    "remotetimems", "Time that a request waits: for replicas, a flush, records, the disk or another node."
)
REQUEST_BYTES: Final = _phase("requestbytes", "Size of requests.")
THROTTLE_TIME: Final = _phase("throttletimems", "Time for which a quota mutes the connection.")
REQUEST_QUEUE_TIME: Final = _phase("requestqueuetimems", "Time in the request queue: 0, there is none.")
RESPONSE_QUEUE_TIME: Final = _phase("responsequeuetimems", "Time in the response queue: 0, there is none.")
RESPONSE_SEND_TIME: Final = _phase(
    "responsesendtimems", "Time to send: 0, a response is given to the socket when it is encoded."
)
REQUEST_QUEUE_SIZE: Final = gauge(
    "kafka_network_requestchannel_requestqueuesize", "Always 0: there is no queue."
)
RESPONSE_QUEUE_SIZE: Final = gauge(
    "kafka_network_requestchannel_responsequeuesize", "Always 0: there is no queue."
)
HANDLER_IDLE: Final = gauge(
    "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent",
    "Share of the last minute in which the event loop used no processor, 0 to 1.",
)
NETWORK_IDLE: Final = gauge(
    "kafka_network_socketserver_networkprocessoravgidle_percent",
    "As `requesthandleravgidle_percent`: one event loop does both.",
)
#: As the JMX exporter's example rules and as Kafka's own reporter spell it.
PROCESSOR_IDLE: Final = tuple(
    gauge(
        f"kafka_network_processor_{name}",
        "As `requesthandleravgidle_percent`: a node has one network processor, its event loop.",
        ("networkProcessor",),
    )
    for name in ("idle_percent", "idlepercent")
)
CONNECTIONS: Final = gauge(
    "kafka_server_socket_server_metrics_connection_count",
    "Open connections.",
    ("listener", "networkProcessor"),
)
CONNECTIONS_CREATED: Final = counter(
    "kafka_server_socket_server_metrics_connection_creation_total",
    "Connections that were accepted and admitted.",
    ("listener", "networkProcessor"),
)
CONNECTIONS_CLOSED: Final = counter(
    "kafka_server_socket_server_metrics_connection_close_total",
    "Connections that were closed.",
    ("listener", "networkProcessor"),
)
CLIENT_SOFTWARE: Final = gauge(
    "kafka_server_socket_server_metrics_connections_software",
    "Open connections by the software of the client (KIP-511).",
    ("clientSoftwareName", "clientSoftwareVersion", "listener", "networkProcessor"),
)
TLS_CONNECTIONS: Final = gauge(
    "kafka_server_socket_server_metrics_connections_tls_info",
    "Open connections by TLS version and cipher suite, in OpenSSL's words.",
    ("cipher", "protocol", "listener", "networkProcessor"),
)
CONNECTION_CREATION_RATE: Final = _of_listener("connection_creation_rate", "Connections admitted per second.")
CONNECTION_CLOSE_RATE: Final = _of_listener("connection_close_rate", "Connections closed per second.")
EXPIRED_CONNECTIONS: Final = _of_listener(
    "expired_connections_killed_count",
    "Connections that were closed because their SASL session had ended (KIP-368).",
)
SUCCESSFUL_LOGINS: Final = _logins("successful_authentication", "Logins with SASL, or with TLS alone.")
FAILED_LOGINS: Final = _logins("failed_authentication", "Failed logins and TLS handshakes.")
SUCCESSFUL_RELOGINS: Final = _logins("successful_reauthentication", "Re-authentications (KIP-368).")
FAILED_RELOGINS: Final = _logins("failed_reauthentication", "Failed re-authentications.")
LOGIN_RATES: Final = {
    family: _of_listener(
        family.name.removeprefix(_SOCKET_SERVER).replace("_total", "_rate"),
        f"Rate of `{family.name.removeprefix(_SOCKET_SERVER)}` per second in the last minute.",
    )
    for family in (SUCCESSFUL_LOGINS, FAILED_LOGINS, SUCCESSFUL_RELOGINS, FAILED_RELOGINS)
}
TLS_HANDSHAKES: Final = counter(
    "moldau_tls_handshakes_total",
    "TLS handshakes of clients, `successful` or `failed`.",
    ("listener", "result"),
)
UNSENT_BYTES: Final = gauge(
    "moldau_unsent_response_bytes", "Bytes of responses that clients do not read, of stalled connections."
)

#: The summaries of the phases that are measured, and those that are 0.
ZERO_PHASES: Final = (REQUEST_QUEUE_TIME, RESPONSE_QUEUE_TIME, RESPONSE_SEND_TIME)

FAMILIES: Final = (
    REQUESTS,
    ERRORS,
    TOTAL_TIME,
    LOCAL_TIME,
    REMOTE_TIME,
    THROTTLE_TIME,
    REQUEST_BYTES,
    *ZERO_PHASES,
    REQUEST_QUEUE_SIZE,
    RESPONSE_QUEUE_SIZE,
    HANDLER_IDLE,
    NETWORK_IDLE,
    *PROCESSOR_IDLE,
    CONNECTIONS,
    CONNECTIONS_CREATED,
    CONNECTIONS_CLOSED,
    CLIENT_SOFTWARE,
    TLS_CONNECTIONS,
    CONNECTION_CREATION_RATE,
    CONNECTION_CLOSE_RATE,
    EXPIRED_CONNECTIONS,
    *LOGIN_RATES,
    *LOGIN_RATES.values(),
    TLS_HANDSHAKES,
    UNSENT_BYTES,
)
