"""The server-side assignors of consumer and share groups, by their names in requests and configs."""

from __future__ import annotations

from moldau.groups.assignors import range as range_assignor
from moldau.groups.assignors import uniform
from moldau.groups.assignors.spec import Assignor

ASSIGNORS: dict[str, Assignor] = {"uniform": uniform.assign, "range": range_assignor.assign}
#: Kafka's class names, as properties files may contain them.
CLASS_NAMES: dict[str, str] = {
    f"org.apache.kafka.coordinator.group.assignor.{name.capitalize()}Assignor": name for name in ASSIGNORS
}
