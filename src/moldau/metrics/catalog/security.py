"""Decisions of the authorizer, and quotas of clients: `kafka.server:type=Produce|Fetch|Request`.

The JMX exporter's example rules make `kafka_server_quota_byte_rate{resource="Produce"}` of them, Confluent's
make `kafka_server_produce_byte_rate`; both are served.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from moldau.metrics.family import EVERY_BROKER, Family, counter, gauge

DECISIONS: Final = counter(
    "moldau_authorizer_decisions_total", "Decisions of the authorizer, `allowed` or `denied`.", ("result",)
)
ACLS: Final = gauge("moldau_authorizer_acls", "ACLs that the authorizer knows.")
QUOTA_CLIENTS: Final = gauge(
    "moldau_quota_clients", "Clients with a limit that were active in the last hour, by quota.", ("quota",)
)
_CLIENT: Final = ("user", "client_id")
_RESOURCE: Final = ("resource", "user", "clientId")


def _of_resource(name: str, help_text: str) -> Family:
    return gauge(f"kafka_server_quota_{name}", help_text, _RESOURCE, reported_by=EVERY_BROKER)


def _of_quota(name: str, help_text: str) -> Family:
    return gauge(f"kafka_server_{name}", help_text, _CLIENT, reported_by=EVERY_BROKER)


_THROTTLED: Final = "Time in ms for which the client is throttled now, 0 within its quota."
_EVENT_LOOP: Final = "Percentage of the event loop that a client with a quota uses."
BYTE_RATE: Final = _of_resource(
    "byte_rate", "Bytes per second that a client with a quota produces or consumes: `Produce`, `Fetch`."
)
REQUEST_TIME: Final = _of_resource("request_time", f"{_EVENT_LOOP[:-1]}: `Request`.")
THROTTLE_TIME: Final = _of_resource("throttle_time", _THROTTLED)


class QuotaFigures(NamedTuple):
    """The families of a quota: the rate and the throttle time, in both dialects."""

    resource: str
    rate: Family
    rate_by_name: Family
    throttle_time_by_name: Family


#: By the key of the quota.
QUOTA_FIGURES: Final = {
    "producer_byte_rate": QuotaFigures(
        "Produce",
        BYTE_RATE,
        _of_quota("produce_byte_rate", "Bytes per second that a client with a quota produces."),
        _of_quota("produce_throttle_time", _THROTTLED),
    ),
    "consumer_byte_rate": QuotaFigures(
        "Fetch",
        BYTE_RATE,
        _of_quota("fetch_byte_rate", "Bytes per second that a client with a quota consumes."),
        _of_quota("fetch_throttle_time", _THROTTLED),
    ),
    "request_percentage": QuotaFigures(
        "Request",
        REQUEST_TIME,
        _of_quota("request_request_time", _EVENT_LOOP),
        _of_quota("request_throttle_time", _THROTTLED),
    ),
}
THROTTLED_CLIENTS: Final = gauge(
    "moldau_quota_throttled_clients", "Clients that are throttled now, by quota.", ("quota",)
)

FAMILIES: Final = (
    DECISIONS,
    ACLS,
    QUOTA_CLIENTS,
    THROTTLED_CLIENTS,
    BYTE_RATE,
    REQUEST_TIME,
    THROTTLE_TIME,
    *(
        family
        for each in QUOTA_FIGURES.values()
        for family in (each.rate_by_name, each.throttle_time_by_name)
    ),
)
