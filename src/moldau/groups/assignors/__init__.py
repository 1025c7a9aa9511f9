"""The server-side assignors, by the names clients and `group.consumer.assignors` use."""

from __future__ import annotations

from moldau.groups.assignors import range as range_assignor
from moldau.groups.assignors import uniform
from moldau.groups.assignors.spec import Assignor

ASSIGNORS: dict[str, Assignor] = {"uniform": uniform.assign, "range": range_assignor.assign}
#: Their Java classes, as a properties file may name them.
CLASS_NAMES: dict[str, str] = {
    f"org.apache.kafka.coordinator.group.assignor.{name.capitalize()}Assignor": name for name in ASSIGNORS
}
