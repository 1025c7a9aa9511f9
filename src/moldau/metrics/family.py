"""A metric family: name, type, help and labels, as the table of metrics declares it.

Names and labels follow the rules of the JMX exporter's examples for Kafka and those of kafka_exporter, which
dashboards and alert rules expect; our own begin with `moldau_`.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Final

EVERY_NODE: Final = "every node"
EVERY_BROKER: Final = "every broker"
ACTIVE_CONTROLLER: Final = "active controller"


class Kind(enum.Enum):
    """The types of Prometheus. A summary has quantiles, `_sum` and `_count`."""

    COUNTER = "counter"
    GAUGE = "gauge"
    SUMMARY = "summary"


@dataclass(frozen=True, slots=True)
class Family:
    #: As in the text format: the name of a counter ends with `_total`.
    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()
    #: Which node reports it: `every node`, `leader`, `coordinator`, `active controller`, …
    reported_by: str = EVERY_NODE
    #: Whether a sample without labels is always present: the sum over all label values, or the only sample.
    has_total: bool = True

    def __post_init__(self) -> None:
        if (self.kind is Kind.COUNTER) != self.name.endswith("_total"):
            raise ValueError(f"{self.name}: the names of counters, and no others, end with _total")

    @property
    def is_of_broker(self) -> bool:
        """Whether only nodes with the broker role have it."""
        return self.reported_by not in (EVERY_NODE, ACTIVE_CONTROLLER)


def counter(
    name: str,
    help_text: str,
    labels: tuple[str, ...] = (),
    *,
    reported_by: str = EVERY_NODE,
    has_total: bool | None = None,
) -> Family:
    total = not labels if has_total is None else has_total
    return Family(name, Kind.COUNTER, help_text, labels, reported_by, total)


def gauge(
    name: str,
    help_text: str,
    labels: tuple[str, ...] = (),
    *,
    reported_by: str = EVERY_NODE,
    has_total: bool | None = None,
) -> Family:
    total = not labels if has_total is None else has_total
    return Family(name, Kind.GAUGE, help_text, labels, reported_by, total)


def summary(
    name: str, help_text: str, labels: tuple[str, ...] = (), *, reported_by: str = EVERY_NODE
) -> Family:
    return Family(name, Kind.SUMMARY, help_text, labels, reported_by, has_total=False)
