"""Every API, called by users without ACLs, with exactly the ACLs that it needs, and with one too few.

The expected outcomes are Apache Kafka's. `authorization/prepared.py` runs the variants against a broker.
"""

from __future__ import annotations

from tests.harness.security.authorization import (
    administration,
    controllers,
    groups,
    share_groups,
    streams_groups,
    tokens,
    topics,
    transactions,
)
from tests.harness.security.authorization.case import Case, Variant, variants

CASES: list[Case] = [
    *topics.CASES,
    *groups.CASES,
    *share_groups.CASES,
    *streams_groups.CASES,
    *transactions.CASES,
    *tokens.CASES,
    *administration.CASES,
    *controllers.CASES,
]
VARIANTS: list[Variant] = variants(CASES)
