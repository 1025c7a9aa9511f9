"""Decisions of the authorizer, and quotas of clients."""

from __future__ import annotations

from typing import Final

from moldau.metrics.family import EVERY_BROKER, Family, counter, gauge

DECISIONS: Final = counter(
    "moldau_authorizer_decisions_total", "Decisions of the authorizer, `allowed` or `denied`.", ("result",)
)
ACLS: Final = gauge("moldau_authorizer_acls", "ACLs that the authorizer knows.")
QUOTA_CLIENTS: Final = gauge(
    "moldau_quota_clients", "Clients with a limit that were active in the last hour, by quota.", ("quota",)
)
_CLIENT: Final = ("user", "client_id")


def _of_quota(name: str, help_text: str) -> Family:
    return gauge(f"kafka_server_{name}", help_text, _CLIENT, reported_by=EVERY_BROKER)


_THROTTLED: Final = "Time in ms for which the client is throttled now, 0 within its quota."
#: Rate and throttle time, by the key of the quota.
QUOTA_FIGURES: Final = {
    "producer_byte_rate": (
        _of_quota("produce_byte_rate", "Bytes per second that a client with a quota produces."),
        _of_quota("produce_throttle_time", _THROTTLED),
    ),
    "consumer_byte_rate": (
        _of_quota("fetch_byte_rate", "Bytes per second that a client with a quota consumes."),
        _of_quota("fetch_throttle_time", _THROTTLED),
    ),
    "request_percentage": (
        _of_quota("request_request_time", "Percentage of the event loop that a client with a quota uses."),
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
    *(family for pair in QUOTA_FIGURES.values() for family in pair),
)
