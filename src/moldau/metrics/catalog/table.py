"""The table of all families that a node serves, in the order in which they are served."""

from __future__ import annotations

from typing import Final

from moldau.metrics.catalog import process, replicas, requests, traffic
from moldau.metrics.family import Family

#: Title of a section of the reference, and its families.
SECTIONS: Final[tuple[tuple[str, tuple[Family, ...]], ...]] = (
    ("Traffic", traffic.FAMILIES),
    ("Requests and connections", requests.FAMILIES),
    ("Replicas and logs", replicas.FAMILIES),
    ("Process", process.FAMILIES),
)
FAMILIES: Final[tuple[Family, ...]] = tuple(family for _, families in SECTIONS for family in families)
