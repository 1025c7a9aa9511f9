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
    *ZERO_PHASES,
    REQUEST_QUEUE_SIZE,
    RESPONSE_QUEUE_SIZE,
    HANDLER_IDLE,
    NETWORK_IDLE,
    CONNECTIONS,
    CONNECTIONS_CREATED,
    CONNECTIONS_CLOSED,
    CLIENT_SOFTWARE,
    UNSENT_BYTES,
)
