"""Decisions of the authorizer, and quotas of clients."""

from __future__ import annotations

from typing import Final

from moldau.metrics.family import counter, gauge

DECISIONS: Final = counter(
    "moldau_authorizer_decisions_total", "Decisions of the authorizer, `allowed` or `denied`.", ("result",)
)
ACLS: Final = gauge("moldau_authorizer_acls", "ACLs that the authorizer knows.")
QUOTA_CLIENTS: Final = gauge(
    "moldau_quota_clients", "Clients with a limit that were active in the last hour, by quota.", ("quota",)
)

FAMILIES: Final = (DECISIONS, ACLS, QUOTA_CLIENTS)
