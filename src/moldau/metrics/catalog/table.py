"""The table of all families that a node serves, in the order in which they are served."""

from __future__ import annotations

from typing import Final

from moldau.metrics.catalog import (
    controller,
    coordinators,
    exporter,
    process,
    raft,
    remote,
    replicas,
    requests,
    security,
    telemetry,
    traffic,
)
from moldau.metrics.family import Family

#: Title of a section of the reference, and its families.
SECTIONS: Final[tuple[tuple[str, tuple[Family, ...]], ...]] = (
    ("Traffic", traffic.FAMILIES),
    ("Requests and connections", requests.FAMILIES),
    ("Replicas and logs", replicas.FAMILIES),
    ("Tiered storage", remote.FAMILIES),
    ("Controller and cluster", controller.FAMILIES),
    ("Metadata quorum", raft.FAMILIES),
    ("Coordinators", coordinators.FAMILIES),
    ("Topics, partitions and groups, as kafka_exporter names them", exporter.FAMILIES),
    ("Security and quotas", security.FAMILIES),
    ("Client telemetry", telemetry.FAMILIES),
    ("Process", process.FAMILIES),
)
FAMILIES: Final[tuple[Family, ...]] = tuple(family for _, families in SECTIONS for family in families)
