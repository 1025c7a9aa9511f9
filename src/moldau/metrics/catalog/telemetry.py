"""Client telemetry (KIP-714): the receiver. What clients push is `org_apache_kafka_*`, not in the table."""

from __future__ import annotations

from typing import Final

from moldau.metrics.family import EVERY_BROKER, counter, gauge

INSTANCES: Final = gauge(
    "kafka_server_client_metrics_instance_count",
    "Clients that have asked for their subscriptions: with an open connection, and not silent for three push "
    "intervals, at least a minute.",
    reported_by=EVERY_BROKER,
)
PUSHES: Final = counter(
    "moldau_client_telemetry_pushes_total", "Accepted pushes of clients.", reported_by=EVERY_BROKER
)
MALFORMED: Final = counter(
    "moldau_client_telemetry_malformed_total",
    "Pushes of clients that could not be read.",
    reported_by=EVERY_BROKER,
)
SERIES: Final = gauge(
    "moldau_client_telemetry_series", "Series of clients that are kept.", reported_by=EVERY_BROKER
)
DROPPED: Final = counter(
    "moldau_client_telemetry_dropped_points_total",
    "Points of clients that found no room.",
    reported_by=EVERY_BROKER,
)
FORWARDED: Final = counter(
    "moldau_client_telemetry_forwarded_total",
    "Pushes that `metrics.otlp.endpoint` has accepted.",
    reported_by=EVERY_BROKER,
)
FORWARD_LOST: Final = counter(
    "moldau_client_telemetry_forward_lost_total",
    "Pushes that `metrics.otlp.endpoint` has not accepted, or that found no room to wait for it.",
    reported_by=EVERY_BROKER,
)

FAMILIES: Final = (INSTANCES, PUSHES, MALFORMED, SERIES, DROPPED, FORWARDED, FORWARD_LOST)
